"""A directory of immutable objects, for example on NFS, that several machines mount.

It needs neither locks nor hard links: an object is written under another name and renamed, which is
atomic. Equal names mean equal rows, so a second writer changes only the time.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from sojourn import _core, files
from sojourn.storage import batch
from sojourn.storage.objects import CLOCK, MAX_OBJECT, Item

# Prefix of the names of files that are being written.
_TEMPORARY = ".writing-"
# A writer that has not finished after this time is considered dead.
_PATIENCE_S = 3_600.0


class Folder:
    """A directory of objects."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def url(self) -> str:
        """The path of the directory."""
        return f"{self._path}"

    def put(self, name: str, data: bytes) -> None:
        """Write a batch, synced to disk; renew an existing one, or replace it if it is damaged."""
        path = self._path / name
        try:
            found = self.get(name)
            if found is not None and batch.is_undamaged(name, found):
                # Written again and not touched: only the owner of a file may touch it.
                data = found
            _write(path, data)
        except OSError as error:
            raise self._unusable(error) from None

    def get(self, name: str) -> bytes | None:
        """Read an object; None if there is none."""
        try:
            return files.head(self._path / name, MAX_OBJECT)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from None

    def list(self, prefix: str) -> Sequence[Item]:
        """List the objects below a directory."""
        try:
            return list(self._below(self._path / prefix))
        except OSError as error:
            raise self._unusable(error) from None

    def remove(self, names: Sequence[str], before_s: float) -> Sequence[str]:
        """Remove objects not written after a time, and files left by dead writers."""
        removed = []
        try:
            for name in names:
                path = self._path / name
                with contextlib.suppress(FileNotFoundError):
                    if _modified_s(path) <= before_s:
                        path.unlink()
                        removed.append(name)
            now = self.now_s()
            for path in self._path.rglob(f"{_TEMPORARY}*"):
                with contextlib.suppress(FileNotFoundError):
                    if now - path.stat().st_mtime > _PATIENCE_S:
                        path.unlink()
        except OSError as error:
            raise self._unusable(error) from None
        return removed

    def now_s(self) -> float:
        """Return the time by the clock of the file server."""
        path = self._path / CLOCK
        try:
            _write(path, b"")
            return path.stat().st_mtime
        except OSError as error:
            raise self._unusable(error) from None

    def _below(self, folder: Path) -> Iterator[Item]:
        try:
            entries = list(os.scandir(folder))
        except FileNotFoundError:
            return
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(path)
                continue
            # Another process may have removed it.
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat()
                name = path.relative_to(self._path).as_posix()
                yield Item(name, found.st_size, found.st_mtime)

    def _unusable(self, error: OSError) -> _core.ResultError:
        place = self._path if error.filename is None else error.filename
        return _core.ResultError(f"store {place}: {error.strerror or error}")


def _modified_s(path: Path) -> float:
    """Return when a file was written; NFS caches this time until the file is opened."""
    try:
        with path.open("rb") as stream:
            return os.fstat(stream.fileno()).st_mtime
    except PermissionError:
        return path.stat().st_mtime


def _write(path: Path, data: bytes) -> None:
    """Write a file under another name, sync it and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        # Users do not know the temporary name.
        error.filename = f"{path}"
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Sync the entries of a directory, where the file system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
