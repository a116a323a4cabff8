"""Replace several files of a directory at once: all of them or none.

The protocol is that of saved results (``crates/store/src/folder.rs``): the new files are written to
a subdirectory, whose renaming is the commit, and are then moved to their places. Readers look in
the subdirectory first, and the next writer finishes a commit that was interrupted.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")

# Holds files that are not committed.
NEW = ".sojourn-new"
# Holds files that are committed but not yet moved to their places.
COMMIT = ".sojourn-commit"


def current(directory: Path, name: str) -> Path:
    """Return the current path of a file, even after an unfinished commit."""
    committed = directory / COMMIT
    # A link could lead to files of another directory.
    is_real = committed.is_dir() and not committed.is_symlink()
    return committed / name if is_real and (committed / name).exists() else directory / name


def read(directory: Path, name: str, reader: Callable[[Path], _T]) -> _T:
    """Read the current file of a name, even if a writer moves it in the meantime."""
    try:
        return reader(current(directory, name))
    except FileNotFoundError:
        # Between the search for the file and its reading, a commit may have moved it.
        return reader(current(directory, name))


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, and finish a commit that was interrupted.

    On a file system without locks, several processes can hold it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        _remove(directory / NEW)
        if (directory / COMMIT).is_dir() and not (directory / COMMIT).is_symlink():
            _finish(directory)
        yield
    finally:
        os.close(descriptor)


def commit(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Write files, all or none; the caller holds the lock of the directory."""
    new = directory / NEW
    try:
        new.mkdir()
        for name, data in contents.items():
            with (new / name).open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        _sync(new)
        new.rename(directory / COMMIT)
    except BaseException:
        _remove(new)
        raise
    _finish(directory, tuple(contents)[-1:])


def _finish(directory: Path, last: tuple[str, ...] = ()) -> None:
    """Move the committed files to their places; this can be interrupted and repeated."""
    _sync(directory)
    committed = directory / COMMIT
    for path in sorted(committed.iterdir(), key=lambda path: path.name in last):
        path.replace(directory / path.name)
    _sync(directory)
    committed.rmdir()
    _sync(directory)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _sync(directory: Path) -> None:
    """Sync the entries of a directory to disk, where the file system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
