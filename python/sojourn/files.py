"""Read untrusted files, and write files atomically.

A path may refer to a FIFO without a writer, an endless device, a file of any size, or a symbolic
link to another file of the user.
"""

import contextlib
import errno
import fcntl
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from sojourn import _core

# What names of files begin with that are being written. A writer locks its file, so that those of
# dead writers are known.
TEMPORARY = ".sojourn-tmp-"


class NotRegularError(OSError):
    """The file is a directory, a FIFO, a device, or a link that may not be followed."""


def head(path: str | Path, most: int, *, follow: bool = True) -> bytes:
    """Read the first bytes of a regular file."""
    descriptor = _open(path, os.O_RDONLY, follow=follow)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)


def read_json(path: str | Path, most: int, *, follow: bool = True) -> Any:
    """Read a file in JSON."""
    return parsed_json(head(path, most + 1, follow=follow), most)


def parsed_json(content: bytes, most: int) -> Any:
    """Parse JSON of at most `most` bytes."""
    if len(content) > most:
        message = f"too large; expected at most {most} bytes"
        raise ValueError(message)
    try:
        return json.loads(content)
    except RecursionError:
        message = "nested too deeply"
        raise ValueError(message) from None


@contextlib.contextmanager
def opened(path: str | Path, *, follow: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file to read it."""
    with os.fdopen(_open(path, os.O_RDONLY, follow=follow), "rb") as stream:
        yield stream


def replace(path: str | Path, data: bytes) -> None:
    """Write a file atomically; an existing file keeps its permissions."""
    with replacing(path) as stream:
        stream.write(data)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file atomically, in parts; an existing file keeps its permissions.

    After an error in the body, the file is as before.
    """
    target = Path(path)
    mode = _mode(target)
    _remove_stale(target.parent)
    descriptor, temporary = _create(target.parent, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            if mode is not None:
                # Some file systems have no permissions.
                with contextlib.suppress(OSError):
                    os.fchmod(descriptor, mode)
            os.fsync(descriptor)
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(target.parent)


@contextlib.contextmanager
def replacing_by_name(path: str | Path, *, rest: str | Path | None) -> Iterator[Path]:
    """Write a file atomically by code that opens it by its name.

    After an error in the body, the file is as before.
    """
    target = Path(path)
    mode = _mode(target)
    _remove_stale(target.parent)
    descriptor, temporary = _create(target.parent, 0o666 if mode is None else 0o600)
    try:
        yield temporary
        if mode is not None:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, mode)
        os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:
        if rest is not None and os.fstat(descriptor).st_size > 0:
            with contextlib.suppress(OSError):
                temporary.replace(rest)
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    _sync(target.parent)


@contextlib.contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock of a file, which is created if needed, while it is read and replaced.

    A file system without locks admits several holders.
    """
    while True:
        if Path(path).is_symlink():
            Path(path).unlink(missing_ok=True)
        descriptor = _open(path, os.O_RDWR | os.O_CREAT, follow=False)
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The former holder may have replaced or removed what was opened.
            if _is_at(descriptor, path):
                yield
                return
        finally:
            os.close(descriptor)


def check_writable_file(file: str | Path) -> None:
    """Check that a file can be written."""
    place = Path(file)
    if place.is_symlink() or (place.exists() and not place.is_file()):
        message = f"cannot write {place}: it exists and is not a regular file"
        raise _core.ResultError(message)
    if not place.parent.is_dir():
        message = f"cannot write {place}: {place.parent} is not a directory"
        raise _core.ResultError(message)
    check_writable(place, place.parent)


def check_writable(place: Path, directory: Path) -> None:
    """Check that files can be created in a directory, which need not exist."""
    nearest = next(one for one in (directory, *directory.absolute().parents) if one.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        message = f"cannot write {place}: {nearest}: {error.strerror}"
        raise _core.ResultError(message) from None


def _open(path: str | Path, flags: int, *, follow: bool) -> int:
    """Open a regular file."""
    # O_NONBLOCK: opening a FIFO would otherwise wait for a writer.
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.EISDIR:
            raise NotRegularError(errno.EISDIR, "is a directory", f"{path}") from None
        if not follow and error.errno == errno.ELOOP:
            raise NotRegularError(errno.ELOOP, "is a symbolic link", f"{path}") from None
        raise
    try:
        _check_regular(os.fstat(descriptor).st_mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(mode: int, path: str | Path) -> None:
    if stat.S_ISDIR(mode):
        raise NotRegularError(errno.EISDIR, "is a directory", f"{path}")
    if not stat.S_ISREG(mode):
        raise NotRegularError(errno.EINVAL, "not a regular file", f"{path}")


def _mode(path: Path) -> int | None:
    """Return the permissions of a regular file; None: there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    _check_regular(found.st_mode, path)
    return stat.S_IMODE(found.st_mode) & 0o777


def _create(directory: Path, mode: int) -> tuple[int, Path]:
    """Create a file of a new name and lock it."""
    while True:
        path = directory / f"{TEMPORARY}{secrets.token_hex(8)}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Before it was locked, it looked like the file of a dead writer.
        if _is_at(descriptor, path):
            return descriptor, path
        os.close(descriptor)


def _remove_stale(directory: Path) -> None:
    """Remove the files of dead writers, as far as this is possible."""
    stale: list[Path] = []
    with contextlib.suppress(OSError):
        stale = [path for path in directory.iterdir() if path.name.startswith(TEMPORARY)]
    for path in stale:
        with contextlib.suppress(OSError):
            descriptor = _open(path, os.O_RDWR, follow=False)
            try:
                # Fails if the writer is alive.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


def _is_at(descriptor: int, path: str | Path) -> bool:
    """Whether an open file is the one of this name."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), found)


def _sync(directory: Path) -> None:
    """Sync the entries of a directory to disk, where the file system supports it."""
    # A directory may be writable and not readable.
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
