"""Save results, reports and figures atomically, and never replace one by accident."""

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.result.result import Result
from sojourn.scenario import Scenario

MANIFEST = "manifest.json"
# Lists the reports and figures in a result directory; `_core` removes those of replaced results.
INDEX = ".sojourn-derived.json"
# Every report has this in its first lines.
REPORT_MARK = b'<meta name="generator" content="Sojourn'
HEAD_BYTES = 4096
# Files of a result and of its scenario: never overwritten by a report, even if they do not exist.
RESULT_SUFFIXES = {".json", ".parquet", ".toml"}
MAX_INDEX_BYTES = 1 << 20
# As in the core, which reads a manifest again before it is replaced.
MAX_MANIFEST_BYTES = 1 << 28


class NotSavedError(_core.ResultError):
    """A result could not be saved where it was wanted.

    Parameters
    ----------
    message
        Why, and where the result is instead.
    place
        The directory in which it was saved instead; None if it is on no disk.
    """

    def __init__(self, message: str, place: Path | None) -> None:
        super().__init__(message)
        self.place = place


@contextlib.contextmanager
def claimed(
    path: str | Path | None, *, force: bool = False, resumed: Scenario | None = None
) -> Iterator[_core.Claim | None]:
    """Reserve a directory for a result, and check that the result can be saved in it.

    The check creates, writes and renames files in the directory as saving does. The directory is
    created if needed, and removed again if nothing was saved in it.

    Parameters
    ----------
    path
        The directory; without one, nothing is reserved.
    force
        Whether a result in the directory may be replaced.
    resumed
        The scenario that is being continued: its result in the directory may be replaced.

    Yields
    ------
    Claim or None
        The reservation, for :func:`save`.

    Raises
    ------
    ResultError
        The directory cannot be written, another process writes to it, or it contains something
        that may not be replaced.
    """
    if path is None:
        yield None
        return
    if resumed is not None and not force:
        force = _is_result_of(Path(path), resumed)
    claim = _core.Claim(path, force)
    try:
        yield claim
    finally:
        claim.release()


def _is_result_of(directory: Path, scenario: Scenario) -> bool:
    """Whether a directory has a result of the scenario, complete or not."""
    manifest = directory / MANIFEST
    try:
        if not manifest.is_file() or manifest.stat().st_size > MAX_MANIFEST_BYTES:
            return False
        written = json.loads(manifest.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(written, dict) and written.get("scenario_sha256") == scenario.hash


def save(result: Result, claim: _core.Claim) -> None:
    """Save a result to a reserved directory, or to a temporary directory if that fails.

    Parameters
    ----------
    result
        The result.
    claim
        The directory.

    Raises
    ------
    NotSavedError
        The result could not be saved there; the message says why and where it is instead.
    """
    try:
        result.save_claimed(claim)
    except _core.ResultError as error:
        place, said = _saved_elsewhere(result)
        message = f"{error}; {said}"
        raise NotSavedError(message, place) from None


def _saved_elsewhere(result: Result) -> tuple[Path | None, str]:
    """Save a result in a new directory that is not the wanted one; return it and say so."""
    reasons: dict[str, None] = {}
    # Each of them may not exist.
    parents: list[Callable[[], str | Path]] = [tempfile.gettempdir, Path.cwd, Path.home]
    for parent in parents:
        place: Path | None = None
        try:
            place = Path(tempfile.mkdtemp(prefix="sojourn-result-", dir=parent()))
            result.save(place)
        except (OSError, RuntimeError, _core.ResultError) as error:
            # RuntimeError: the user has no home directory.
            reasons[_reason(error)] = None
            if place is not None:
                with contextlib.suppress(OSError):
                    place.rmdir()
        else:
            return place, f"the result was saved to {place} instead"
    return None, f"it could not be saved elsewhere either ({'; '.join(reasons)})"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{error.strerror}" if isinstance(error, OSError) else f"{error}"


def claim_file(path: str | Path) -> Path:
    """Check that a report can be written to a file.

    Parameters
    ----------
    path
        The file. Its directory is created if needed.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ResultError
        The directory of the file cannot be created or written, or the file is not a report.
    """
    file = Path(path)
    directory = Path(os.path.realpath(file)).parent
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
    check_report(file)
    return file


def check_report(file: Path) -> None:
    """Check that a file may be replaced by a report.

    Parameters
    ----------
    file
        The file, which need not exist.

    Raises
    ------
    ResultError
        The file exists and is not a report, or its name is that of a file of a result.
    """
    if file.suffix.lower() in RESULT_SUFFIXES:
        message = f"cannot write {file}: a report is HTML; expected a name such as report.html"
        raise _core.ResultError(message)
    try:
        found = file.stat()
    except OSError:
        return
    if stat.S_ISDIR(found.st_mode):
        message = f"cannot write {file}: it is a directory"
        raise _core.ResultError(message)
    if not stat.S_ISREG(found.st_mode) or (found.st_size and not _is_report(file)):
        message = f"cannot write {file}: it exists and is not a Sojourn report"
        raise _core.ResultError(message)


def _is_report(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return REPORT_MARK in stream.read(HEAD_BYTES)
    except OSError:
        return False


def write_file(path: str | Path, data: bytes) -> None:
    """Write a file atomically; a symbolic link is followed.

    Parameters
    ----------
    path
        The file.
    data
        Its content.

    Raises
    ------
    ResultError
        The file cannot be written, or is a directory, a pipe or a device.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".sojourn-tmp-{target.name}")
    try:
        if target.exists() and not target.is_file():
            message = f"{path}: not a regular file"
            raise _core.ResultError(message)
        # Left by a process that died.
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(target.parent)
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None


def _sync(directory: Path) -> None:
    """Sync the entries of a directory to disk, where the file system supports it."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_derived(path: str | Path, data: bytes, result: Result) -> None:
    """Write a report or a figure; in a result directory, record which result it shows.

    Parameters
    ----------
    path
        The file.
    data
        Its content.
    result
        The result that it shows.

    Raises
    ------
    ResultError
        The file cannot be written.
    """
    write_file(path, data)
    target = Path(os.path.realpath(path))
    if result.manifest_sha256 is None or not (target.parent / MANIFEST).is_file():
        return
    known = {
        name: entry
        for name, entry in _index(target.parent).items()
        if (target.parent / name).is_file()
    }
    known[target.name] = {
        "manifest": result.manifest_sha256,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    text = json.dumps(known, indent=2, sort_keys=True)
    write_file(target.parent / INDEX, f"{text}\n".encode())


def _index(directory: Path) -> dict[str, Any]:
    """Read the index of a directory; return an empty one if it is missing or damaged."""
    file = directory / INDEX
    try:
        if not file.is_file() or file.stat().st_size > MAX_INDEX_BYTES:
            return {}
        index = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return index if isinstance(index, dict) else {}
