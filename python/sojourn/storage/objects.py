"""Places for immutable objects: directories, and S3-compatible buckets through obstore.

``docs/adr/0020-shared-stores.md`` explains why removal during a sweep loses nothing.
"""

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sojourn import _core, files
from sojourn.storage import batch

if TYPE_CHECKING:
    from obstore import UpdateVersion

# An object that is written to read the clock of the store.
CLOCK = "clock"
# Prefix of the names of files that are being written.
_TEMPORARY = ".writing-"
# A writer that has not finished after this time is considered dead.
_PATIENCE_S = 3_600.0
# Attempts per request, and their total time. obstore's defaults are 10 attempts in 3 minutes: a
# user with a wrong address would see nothing during this time.
_RETRIES = 4
_RETRY_TIME = timedelta(seconds=20)
# Attempts to create an object that others remove.
_ATTEMPTS = 3
# The metadata service, which provides credentials to machines in a cloud; others do not have it.
_METADATA = "169.254."


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a list of objects."""

    name: str
    size: int
    modified_s: float


class Objects(Protocol):
    """A place for immutable objects.

    Every method raises ``ResultError``, whose message begins with the place, if the place cannot be
    read or written.
    """

    @property
    def url(self) -> str:
        """The place, as in the argument `shared` of sweeps."""

    def put(self, name: str, data: bytes) -> None:
        """Write a batch; replace a damaged one of this name, and renew the time of another one."""

    def get(self, name: str) -> bytes | None:
        """Read an object; None if there is none."""

    def list(self, prefix: str) -> Sequence[Item]:
        """List the objects whose names begin with a prefix that ends with ``/``, in any order."""

    def remove(self, names: Sequence[str], before_s: float) -> Sequence[str]:
        """Remove objects that nobody has written after `before_s`, by the clock of the store.

        The time of each object is read again, since a writer may have written it after it was
        listed. Returns the names of the removed objects; those that do not exist are ignored.
        """

    def now_s(self) -> float:
        """Return the time by the clock of the store, which must be writable."""


class Directory:
    """A directory of objects, for example on NFS, that several machines mount.

    It needs neither locks nor hard links: an object is written under another name and renamed,
    which is atomic. Equal names mean equal rows, so a second writer changes only the time.
    """

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
            return files.head(self._path / name, batch.MAX_BYTES)
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
                with suppress(FileNotFoundError):
                    if _modified_s(path) <= before_s:
                        path.unlink()
                        removed.append(name)
            now = self.now_s()
            for path in self._path.rglob(f"{_TEMPORARY}*"):
                with suppress(FileNotFoundError):
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
            with suppress(FileNotFoundError):
                found = entry.stat()
                name = path.relative_to(self._path).as_posix()
                yield Item(name, found.st_size, found.st_mtime)

    def _unusable(self, error: OSError) -> _core.ResultError:
        place = self._path if error.filename is None else error.filename
        return _core.ResultError(f"store {place}: {error.strerror or error}")


class Bucket:
    """A bucket of objects."""

    def __init__(self, url: str) -> None:
        try:
            # Imported here: few commands need it.
            import obstore  # noqa: PLC0415
            from obstore.store import S3Store  # noqa: PLC0415
        except ModuleNotFoundError:
            message = f"store {url}: requires obstore; install it with: pip install obstore"
            raise _core.UnavailableError(message) from None
        self._obstore = obstore
        self._url = url.rstrip("/")
        # The user has chosen an address without TLS.
        is_plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
        with self._named():
            self._store = S3Store.from_url(
                self._url,
                client_options={"allow_http": True} if is_plain else None,
                retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_TIME},
            )

    @property
    def url(self) -> str:
        """``s3://bucket/prefix``."""
        return self._url

    def put(self, name: str, data: bytes) -> None:
        """Create a batch; renew an existing one, or replace it if it is damaged."""
        with self._named(name):
            for _ in range(_ATTEMPTS):
                with suppress(self._obstore.exceptions.AlreadyExistsError):
                    self._obstore.put(self._store, name, data, mode="create", use_multipart=False)
                    return
                # `store gc` may remove the object at any time: create it then.
                with suppress(FileNotFoundError):
                    self._renew(name, data)
                    return
            message = f"removed {_ATTEMPTS} times while it was written"
            raise OSError(message)

    def _renew(self, name: str, data: bytes) -> None:
        """Write an existing batch again, or `data` if it is damaged."""
        found = self._obstore.get(self._store, name)
        content = bytes(found.bytes())
        # Only this content: another writer may have replaced or renewed it already.
        same: UpdateVersion = {"e_tag": found.meta["e_tag"]}
        kept = content if batch.is_undamaged(name, content) else data
        try:
            self._obstore.put(self._store, name, kept, mode=same, use_multipart=False)
        except self._obstore.exceptions.PreconditionError:
            # Servers also answer so if it was removed: this raises FileNotFoundError then.
            self._obstore.head(self._store, name)

    def get(self, name: str) -> bytes | None:
        """Read an object; None if there is none."""
        with self._named(name):
            try:
                found = self._obstore.get(self._store, name)
            except FileNotFoundError as error:
                if "NoSuchBucket" in f"{error}":
                    raise
                return None
            # No batch is this large: the rest of such an object does not match its digest.
            return b"" if found.meta["size"] > batch.MAX_BYTES else bytes(found.bytes())

    def list(self, prefix: str) -> Sequence[Item]:
        """List the objects whose names begin with a prefix."""
        with self._named():
            return [
                Item(one["path"], one["size"], one["last_modified"].timestamp())
                for part in self._obstore.list(self._store, prefix.rstrip("/"))
                for one in part
            ]

    def remove(self, names: Sequence[str], before_s: float) -> Sequence[str]:
        """Remove objects not written after a time."""
        removed = []
        for folder, among in groupby(sorted(names), lambda name: name.rpartition("/")[0]):
            wanted = set(among)
            # One request per 1,000 objects; the time of one object takes a request as well.
            listed = self.list(f"{folder}/")
            old = [one.name for one in listed if one.name in wanted and one.modified_s <= before_s]
            with self._named():
                if old:
                    self._obstore.delete(self._store, old)
            removed += old
        return removed

    def now_s(self) -> float:
        """Return the time by the clock of the server."""
        with self._named(CLOCK):
            self._obstore.put(self._store, CLOCK, b"", use_multipart=False)
            return self._obstore.head(self._store, CLOCK)["last_modified"].timestamp()

    @contextmanager
    def _named(self, name: str = "") -> Iterator[None]:
        """Add the place to errors of obstore."""
        place = f"{self._url}/{name}" if name else self._url
        try:
            yield
        except (self._obstore.exceptions.BaseError, OSError, ValueError) as error:
            message = f"store {place}: {_reason(error)}"
            raise _core.ResultError(message) from None


def _reason(error: Exception) -> str:
    """Return the message of the server, without the details of the request.

    Examples
    --------
    >>> _reason(ValueError("Generic S3 error: Error performing PUT http://x/y in 4ms - <Error>"
    ...     "<Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>"))
    'SlowDown: Reduce your rate'
    >>> _reason(ValueError("Generic S3 error: Error performing GET http://x/y in 455ms, "
    ...     "after 3 retries, max_retries: 3  - HTTP error: error sending request"))
    'HTTP error: error sending request (http://x/y)'
    >>> _reason(ValueError("Error performing PUT http://169.254.169.254/latest/api/token in 1s"))
    'no credentials; expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
    """
    text, *_ = f"{error}".split("\n\nDebug source")
    if _METADATA in text:
        return "no credentials; expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if found := re.search(r"<Code>(.*?)</Code>\s*(?:<Message>(.*?)</Message>)?", text, re.DOTALL):
        return ": ".join(part.rstrip(".") for part in found.groups() if part)
    if found := re.search(r"Error performing \w+ (\S+) in .*? - (.*)", text, re.DOTALL):
        return f"{found[2]} ({found[1]})"
    return text


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
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # Users do not know the temporary name.
        error.filename = f"{path}"
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Sync the entries of a directory, where the file system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
