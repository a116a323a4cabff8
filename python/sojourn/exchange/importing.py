"""Files of other programs as measured runs: the formats, and how they are detected."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sojourn import files
from sojourn.errors import invalid_file
from sojourn.exchange import flent_runs, mahimahi
from sojourn.exchange.measurement import Measurement, numbered
from sojourn.exchange.untrusted import PART, beginning, damaged

Reader = Callable[[str | Path, str | None], Measurement]
# A format is added here, and to the check of the first bytes.
READERS: Mapping[str, Reader] = {
    "flent": flent_runs.measured,
    "mahimahi": mahimahi.measured,
}
# Signs of events in a log of Mahimahi.
SIGNS = {b"#", b"+", b"-", b"d"}
EXPECTED = "expected a data file of flent or a log of mm-link"


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
    begin = beginning(path).lstrip()
    if begin.startswith(b"{"):
        return "flent"
    words = begin.split(b"\n", 1)[0].split()
    if not begin.startswith(b"# mahimahi") and not (len(words) > 1 and words[1] in SIGNS):
        damaged(path, f"unknown format; {EXPECTED}")
    return "mahimahi"
