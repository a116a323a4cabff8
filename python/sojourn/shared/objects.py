"""Places for immutable objects: the interface of folders and buckets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# No object is larger: a batch has some thousand rows at most.
MAX_OBJECT = 256 << 20


@dataclass(frozen=True, slots=True)
class Item:
    """An object in a list.

    Parameters
    ----------
    name
        Its name within the store, such as ``runs/0123/4567.12.parquet``.
    size
        Its size in bytes.
    modified_s
        When it was written, in seconds since 1970 by the clock of the store.
    """

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
        """The place, as in ``--store``."""

    def put(self, name: str, data: bytes) -> None:
        """Write an object unless it exists with this content; a damaged one is replaced."""

    def get(self, name: str) -> bytes | None:
        """Read an object; None if there is none."""

    def list(self, prefix: str) -> Sequence[Item]:
        """List the objects whose names begin with a prefix that ends with ``/``, in any order."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects; it does not matter whether they exist."""

    def now_s(self) -> float:
        """Return the time by the clock of the store, which must be writable."""
