"""The interface of places for immutable objects: directories and buckets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# No object is larger: a batch has at most 4,096 rows.
MAX_OBJECT = 256 << 20
# An object that is written to read the clock of the store.
CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a list of objects.

    Parameters
    ----------
    name
        Its name within the store, such as ``runs/0123/4567.12.parquet``.
    size
        Its size in bytes.
    modified_s
        Time when it was written, in seconds since 1970, by the clock of the store.
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
        """Write a batch unless an undamaged one of this name exists; replace a damaged one."""

    def get(self, name: str) -> bytes | None:
        """Read an object; None if there is none."""

    def list(self, prefix: str) -> Sequence[Item]:
        """List the objects whose names begin with a prefix that ends with ``/``, in any order."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects; objects that do not exist are ignored."""

    def now_s(self) -> float:
        """Return the time by the clock of the store, which must be writable."""
