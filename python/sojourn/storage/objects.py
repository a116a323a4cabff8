"""The interface of places for immutable objects: directories and buckets.

``docs/adr/0020-shared-stores.md`` explains why removal during a sweep loses nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# No object is larger: a batch has at most 4,096 rows.
MAX_OBJECT = 256 << 20
# An object that is written to read the clock of the store.
CLOCK = "clock"


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
        """The place, as in ``--store``."""

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
