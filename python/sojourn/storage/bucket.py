"""An S3-compatible bucket of immutable objects, through obstore."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.storage import batch
from sojourn.storage.objects import CLOCK, MAX_OBJECT, Item

if TYPE_CHECKING:
    from obstore import UpdateVersion

# Attempts per request, and their total time. obstore's defaults are 10 attempts in 3 minutes: a
# user with a wrong address would see nothing during this time.
_RETRIES = 4
_RETRY_TIME = timedelta(seconds=20)
# Attempts to create an object that others remove.
_ATTEMPTS = 3
# The metadata service, which provides credentials to machines in a cloud; others do not have it.
_METADATA = "169.254."


class Bucket:
    """A bucket of objects."""

    def __init__(self, url: str) -> None:
        try:
            # Imported here: few commands need it.
            import obstore  # noqa: PLC0415
            from obstore.store import S3Store  # noqa: PLC0415
        except ModuleNotFoundError:
            message = f"--store {url}: requires obstore; install it with: pip install 'sojourn[s3]'"
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
            return b"" if found.meta["size"] > MAX_OBJECT else bytes(found.bytes())

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
