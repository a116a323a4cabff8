"""Write reports, tables and figures atomically, and list them in the directory of their result."""

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from sojourn import _core, files

MANIFEST = "manifest.json"
# The manifest of a sweep.
SWEEP = "sweep.json"
# Files of a result and of its scenario: never overwritten by a report, even if they do not exist.
RESULT_SUFFIXES = {".json", ".parquet", ".toml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file that replaces only files of its kind."""

    name: str
    mark: bytes
    suffixes: tuple[str, ...]
    named: str
    # The marks of its other formats, and where marks are looked for.
    others: tuple[bytes, ...] = ()
    head_bytes: int = 4096


REPORT = Kind(
    name="report",
    mark=b'<meta name="generator" content="Sojourn',
    suffixes=("", ".html", ".htm"),
    named="a report is HTML; expected a name such as report.html",
)
TABLE = Kind(
    name="table",
    mark=b"% Table by Sojourn",
    suffixes=("", ".tex"),
    named="a table is LaTeX; expected a name such as table.tex",
)

# The metadata of each format; that of a PDF is at its end.
FIGURE = Kind(
    name="figure",
    mark=b"% Figure by Sojourn",
    others=(b"Software\0Sojourn", b"<dc:title>Sojourn</dc:title>", b"/Creator (Sojourn)"),
    suffixes=(".svg", ".pdf", ".png", ".pgf"),
    named="unknown figure format; expected .png, .svg, .pdf or .pgf",
    head_bytes=1 << 25,
)


@contextlib.contextmanager
def claimed(path: str | Path | None, kind: Kind = REPORT) -> Iterator[Path | None]:
    """Check that a report or a table can be written to a file."""
    if path is None:
        yield None
        return
    file = Path(path)
    check_replaced(file, kind)
    directory = Path(os.path.realpath(file)).parent
    created = list(takewhile(lambda one: not one.exists(), [directory, *directory.parents]))
    try:
        _check_writable(file, directory)
        yield file
    finally:
        for one in created:
            # Those that are not empty stay.
            with contextlib.suppress(OSError):
                one.rmdir()


def _check_writable(file: Path, directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except (FileExistsError, NotADirectoryError):
        message = f"cannot write {file}: {file.parent} is not a directory"
        raise _core.ResultError(message) from None
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise _core.ResultError(message) from None


def inside(directory: str | Path, name: str) -> Path:
    """Return a file in a directory of a result, for a name that the user has not typed.

    A directory from elsewhere may contain links to any file of the user.
    """
    file = Path(directory) / name
    if Path(os.path.realpath(file)).parent != Path(os.path.realpath(directory)):
        message = f"cannot write {file}: it is a link that leads out of {directory}"
        raise _core.ResultError(message)
    return file


def check_report(file: Path) -> None:
    """Refuse to replace anything but a report, as :func:`check_replaced` does."""
    check_replaced(file, REPORT)


def check_replaced(file: Path, kind: Kind) -> None:
    """Refuse to replace anything but a file of this kind."""
    target = Path(os.path.realpath(file))
    other = file.suffix.lower() not in kind.suffixes
    if other or target.suffix.lower() in RESULT_SUFFIXES:
        message = f"cannot write {file}: {kind.named}"
        raise _core.ResultError(message)
    try:
        found = target.stat()
    except OSError:
        return
    if stat.S_ISDIR(found.st_mode):
        message = f"cannot write {file}: it is a directory"
        raise _core.ResultError(message)
    if found.st_size and not _is_marked(target, kind):
        message = f"cannot write {file}: it exists and is not a Sojourn {kind.name}"
        raise _core.ResultError(message)


def _is_marked(file: Path, kind: Kind) -> bool:
    try:
        head = files.head(file, kind.head_bytes)
        return any(mark in head for mark in (kind.mark, *kind.others))
    except OSError:
        return False


def write(path: str | Path, data: bytes, manifest_sha256: str | None) -> None:
    """Write a report or a figure.

    Beside a manifest, it is listed, so that `_core` removes it with the result that it shows.
    """
    target = Path(os.path.realpath(path))
    try:
        files.replace(target, data)
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    manifests = (target.parent / name for name in (MANIFEST, SWEEP))
    if manifest_sha256 is None or not any(one.is_file() for one in manifests):
        return
    try:
        _core.add_derived(target, manifest_sha256, hashlib.sha256(data).hexdigest())
    except OSError as error:
        message = f"{path}: cannot be added to the list of reports: {error.strerror}"
        raise _core.ResultError(message) from None
