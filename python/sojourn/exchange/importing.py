"""Files of other programs as measured runs: the formats, and how they are detected."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sojourn import _core, files
from sojourn.errors import invalid_file
from sojourn.exchange import captures, flent_runs, har, iperf3, irtt, mahimahi
from sojourn.exchange.measurement import Measurement, numbered
from sojourn.exchange.untrusted import PART, beginning, damaged

Reader = Callable[[str | Path, str | None], Measurement]
# A format is added here, and to the check of the first bytes.
READERS: Mapping[str, Reader] = {
    "capture": captures.measured,
    "flent": flent_runs.measured,
    "iperf3": iperf3.measured,
    "irtt": irtt.measured,
    "mahimahi": mahimahi.measured,
}
# Signs of events in a log of Mahimahi.
SIGNS = {b"#", b"+", b"-", b"d"}
EXPECTED = (
    "expected a packet capture, JSON of iperf3 or irtt, a data file of flent, a log of mm-link or "
    "a HAR file"
)
# How the JSON of programs other than flent begins.
JSON = {
    "iperf3": re.compile(rb'\{\s*"start"\s*:\s*\{'),
    "irtt": re.compile(rb'\{\s*"version"\s*:\s*\{'),
}


# How a HAR file begins: it describes pages, and is not a measured run.
HAR = re.compile(rb'\{\s*"log"\s*:\s*\{')


def pages(paths: Sequence[str | Path]) -> str | None:
    """Write the pages of HAR files for a scenario file; None if the files are measurements."""
    found = [HAR.match(beginning(path).lstrip(b"\xef\xbb\xbf \t\r\n")) for path in paths]
    if not any(found):
        return None
    if not all(found) or len(paths) > 1:
        message = f"{paths[0]}: a HAR file describes pages; import it alone"
        raise _core.ScenarioError(message)
    return har.toml(paths[0])


def measured(paths: Sequence[str | Path], arm: str | None = None) -> list[Measurement]:
    """Read files of other programs as measured runs."""
    return numbered([_read(path, arm) for path in paths])


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
    begin = begin.lstrip()
    if begin.startswith(b"{"):
        return next((name for name, form in JSON.items() if form.match(begin)), "flent")
    words = begin.split(b"\n", 1)[0].split()
    if not begin.startswith(b"# mahimahi") and not (len(words) > 1 and words[1] in SIGNS):
        damaged(path, f"unknown format; {EXPECTED}")
    return "mahimahi"
