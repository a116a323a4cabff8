"""Write reports, tables and figures atomically, and list them in the directory of their result."""

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from sojourn import _core, files

MANIFEST = "manifest.json"
# The manifest of a sweep.
SWEEP = "sweep.json"
# Lists the reports and figures in a result directory; `_core` removes those of replaced results,
# and :func:`remove_obsolete` those of replaced sweeps.
INDEX = ".sojourn-derived.json"
HEAD_BYTES = 4096
# Files of a result and of its scenario: never overwritten by a report, even if they do not exist.
RESULT_SUFFIXES = {".json", ".parquet", ".toml"}
MAX_INDEX_BYTES = 1 << 20
# As in the core, which reads a report or a figure again before it removes it.
MAX_DERIVED_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file that replaces only files of its kind."""

    name: str
    mark: bytes
    named: str


REPORT = Kind(
    name="report",
    mark=b'<meta name="generator" content="Sojourn',
    named="a report is HTML; expected a name such as report.html",
)
TABLE = Kind(
    name="table",
    mark=b"% Table by Sojourn",
    named="a table is LaTeX; expected a name such as table.tex",
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
    if RESULT_SUFFIXES & {file.suffix.lower(), target.suffix.lower()}:
        message = f"cannot write {file}: {kind.named}"
        raise _core.ResultError(message)
    try:
        found = target.stat()
    except OSError:
        return
    if stat.S_ISDIR(found.st_mode):
        message = f"cannot write {file}: it is a directory"
        raise _core.ResultError(message)
    if found.st_size and not _is_marked(target, kind.mark):
        message = f"cannot write {file}: it exists and is not a Sojourn {kind.name}"
        raise _core.ResultError(message)


def _is_marked(file: Path, mark: bytes) -> bool:
    try:
        return mark in files.head(file, HEAD_BYTES)
    except OSError:
        return False


def write(path: str | Path, data: bytes, manifest_sha256: str | None) -> None:
    """Write a report or a figure; beside a manifest it is removed with the result that it shows."""
    target = Path(os.path.realpath(path))
    try:
        files.replace(target, data)
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    manifests = (target.parent / name for name in (MANIFEST, SWEEP))
    if manifest_sha256 is None or not any(one.is_file() for one in manifests):
        return
    entry = {"manifest": manifest_sha256, "sha256": hashlib.sha256(data).hexdigest()}
    index = target.parent / INDEX
    try:
        with files.locked(index):
            known = {
                name: entry
                for name, entry in _read(index).items()
                if (target.parent / name).is_file()
            }
            _write(index, known | {target.name: entry})
    except OSError as error:
        message = f"{index}: {error.strerror}"
        raise _core.ResultError(message) from None


def tidy(directory: str | Path) -> None:
    """Remove the list of reports and figures in a directory if none of them is left."""
    place = Path(os.path.realpath(directory))
    index = place / INDEX
    # It is read again by whoever writes the next report.
    with contextlib.suppress(OSError):
        if not index.is_file() or index.is_symlink():
            return
        with files.locked(index):
            if not any(_is_unchanged(place / name, entry) for name, entry in _read(index).items()):
                index.unlink()


def remove_obsolete(directory: str | Path, manifest_sha256: str) -> None:
    """Remove the reports and figures of another manifest, unless they were modified since."""
    place = Path(directory)
    index = place / INDEX
    # A report that stays is only obsolete, and says which sweep it shows.
    with contextlib.suppress(OSError):
        if not index.is_file() or index.is_symlink():
            return
        with files.locked(index):
            for name, entry in _read(index).items():
                is_other = isinstance(entry, dict) and entry.get("manifest") != manifest_sha256
                if is_other and _is_unchanged(place / name, entry):
                    (place / name).unlink()
    tidy(directory)


def _is_unchanged(file: Path, entry: Any) -> bool:
    """Whether a file is what Sojourn wrote."""
    try:
        content = files.head(file, MAX_DERIVED_BYTES)
    except (OSError, ValueError):
        return False
    return isinstance(entry, dict) and entry.get("sha256") == hashlib.sha256(content).hexdigest()


def _read(index: Path) -> dict[str, Any]:
    """Read a list of reports and figures; one that is missing or damaged is empty."""
    try:
        entries = files.read_json(index, MAX_INDEX_BYTES, follow=False)
    except (OSError, ValueError):
        return {}
    if not isinstance(entries, dict):
        return {}
    # Another name could lead out of the directory.
    return {name: entry for name, entry in entries.items() if name == Path(name).name}


def _write(index: Path, entries: dict[str, Any]) -> None:
    text = json.dumps(entries, indent=2, sort_keys=True)
    files.replace(index, f"{text}\n".encode())
