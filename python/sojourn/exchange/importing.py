"""Files of other programs as measured runs: the formats, and how they are detected."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sojourn import _core, files
from sojourn.errors import invalid_file
from sojourn.exchange import (
    cake_autorate,
    captures,
    flent_runs,
    har,
    iperf3,
    irtt,
    libreqos,
    mahimahi,
    networkd,
    qlog_runs,
    qosify,
    tc_script,
)
from sojourn.exchange.configuration import Configuration, Source
from sojourn.exchange.measurement import Measurement, numbered
from sojourn.exchange.tc_script import TcScript
from sojourn.exchange.untrusted import PART, beginning, damaged

Reader = Callable[[str | Path, str | None], Measurement]
# A format is added here, and to the check of the first bytes.
READERS: Mapping[str, Reader] = {
    "capture": captures.measured,
    "flent": flent_runs.measured,
    "iperf3": iperf3.measured,
    "irtt": irtt.measured,
    "mahimahi": mahimahi.measured,
    "qlog": qlog_runs.measured,
}
# Signs of events in a log of Mahimahi.
SIGNS = {b"#", b"+", b"-", b"d"}
EXPECTED = (
    "expected a packet capture, JSON of iperf3 or irtt, a qlog file, a data file of flent, a "
    "log of mm-link, a HAR file or the configuration of a router, such as a script of tc commands"
)
# How the JSON of programs other than flent begins.
JSON = {
    "iperf3": re.compile(rb'\{\s*"start"\s*:\s*\{|' + iperf3.STREAM.pattern),
    "irtt": re.compile(rb'\{\s*"version"\s*:\s*\{'),
}
# How a HAR file begins: it describes pages, and is not a measured run.
HAR = re.compile(rb'\{\s*"log"\s*:\s*\{')


def measured(paths: Sequence[str | Path], arm: str | None = None) -> list[Measurement]:
    """Read files of other programs as measured runs."""
    return numbered([_read(path, arm) for path in paths])


def configuration(paths: Sequence[str | Path], source: Source | None) -> Configuration | None:
    """Read the configuration of a router as queues; None: the files are something else."""
    if libreqos.are_files(paths):
        return libreqos.configuration(paths)
    found = None if source is None else script_of(source.text, source.place)
    if source is None or found is None:
        return None
    read = tc_script.configuration(found, source)
    if cake_autorate.is_configuration(source.text):
        said = f"{source.place}: the first lines of the scenario say how to run the controller"
        return replace(
            read,
            notes=(*read.notes, said),
            comment=cake_autorate.controller(source.text),
            reflectors=[cake_autorate.reflectors(source.text)],
        )
    return read


def is_measured(path: str | Path) -> bool:
    """Whether a file has the format of a measured run."""
    try:
        return _format(path) in READERS
    except (_core.ResultError, OSError):
        return False


def is_script(text: str) -> bool:
    """Whether a text is a script of tc commands, or stands for one."""
    kinds = (
        networkd.is_network,
        qosify.is_qosify,
        cake_autorate.is_configuration,
        tc_script.is_script,
    )
    return any(one(text) for one in kinds)


def script_of(text: str, place: str) -> TcScript | None:
    """Read a text that is a script of tc commands, or that stands for one; None: it is another."""
    notes: Sequence[str] = ()
    if networkd.is_network(text):
        text = networkd.script(text, place)
    elif qosify.is_qosify(text):
        text, notes = qosify.script(text, place)
    elif cake_autorate.is_configuration(text):
        text, notes = cake_autorate.script(text, place)
    elif not tc_script.is_script(text):
        return None
    found = tc_script.of_text(text, place)
    return replace(found, notes=(*found.notes, *notes))


def pages(paths: Sequence[str | Path]) -> tuple[str, list[str]] | None:
    """Return the pages of a HAR file for a scenario file, and what to note about them.

    None: the files are something else.
    """
    files_of_pages = [path for path in paths if not Path(path).is_dir() and _is_har(path)]
    if not files_of_pages:
        return None
    if len(paths) > 1:
        message = f"{files_of_pages[0]}: a HAR file describes pages; import it alone"
        raise _core.ScenarioError(message)
    return har.toml(files_of_pages[0])


def _is_har(path: str | Path) -> bool:
    return HAR.match(beginning(path).lstrip(b"\xef\xbb\xbf \t\r\n")) is not None


def _read(path: str | Path, arm: str | None) -> Measurement:
    found = READERS[_format(path)](path, arm)
    digest = hashlib.sha256()
    with files.opened(path) as stream:
        while part := stream.read(PART):
            digest.update(part)
    return replace(found, origin=found.origin | {"sha256": digest.hexdigest()})


def _format(path: str | Path) -> str:
    """Determine the format of a file."""
    if Path(path).is_dir():
        raise invalid_file(path, f"is a directory; {EXPECTED}")
    begin = beginning(path)
    if _core.is_capture(begin):
        return "capture"
    begin = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    if qlog_runs.begins_qlog(begin):
        return "qlog"
    if libreqos.is_one_of_two(begin):
        both = "LibreQoS needs two files; expected sojourn import network.json ShapedDevices.csv"
        damaged(path, both)
    if cake_autorate.is_log(begin):
        said = "a log of cake-autorate has no measured run; expected it as"
        damaged(path, f"{said} rate_trace or delay_trace of a link in a scenario")
    if begin.startswith(b"{"):
        return next((name for name, form in JSON.items() if form.match(begin)), "flent")
    words = begin.split(b"\n", 1)[0].split()
    if not begin.startswith(b"# mahimahi") and not (len(words) > 1 and words[1] in SIGNS):
        damaged(path, f"unknown format; {EXPECTED}")
    return "mahimahi"
