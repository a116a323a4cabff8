"""Stores of the metrics of finished runs, so that these runs are not repeated."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sojourn import _core
from sojourn.result import runs
from sojourn.sweeps.carriers import Carrier
from sojourn.sweeps.executors import Row


class RowCache(Protocol):
    """A store of rows.

    The methods raise :class:`ResultError` or :class:`OSError` if the store fails. The sweep then
    continues without it.
    """

    def finished(self, carrier: Carrier) -> set[int]:
        """Begin a carrier, and return the numbers of the runs whose rows are stored."""
        ...

    def read(self, carrier: Carrier, numbers: Iterable[int]) -> Iterator[Row]:
        """Yield stored rows; damaged rows may be left out. Their runs are executed again."""
        ...

    def append(self, carrier: Carrier, rows: Sequence[Row]) -> None:
        """Store rows; they may be synced later."""
        ...

    def close(self, carrier: Carrier) -> None:
        """Sync the rows of a carrier that has ended."""
        ...


@dataclass(slots=True, kw_only=True)
class LocalCache:
    """The run store as a store of rows."""

    store: _core.RunStore
    backend: str | None = None
    _open: dict[Carrier, _core.Invocation] = field(default_factory=dict)

    def finished(self, carrier: Carrier) -> set[int]:
        """Return the numbers of the runs whose rows are stored."""
        meter = runs.meter(carrier.scenario, self.backend)
        invocation = self._open[carrier] = self.store.begin_rows(meter)
        return set(invocation.finished)

    def read(self, carrier: Carrier, numbers: Iterable[int]) -> Iterator[Row]:
        """Yield stored rows."""
        invocation = self._open[carrier]
        for number in numbers:
            row = invocation.read(number)
            if row is not None:
                yield number, row

    def append(self, carrier: Carrier, rows: Sequence[Row]) -> None:
        """Store rows, which are synced at most five times per second."""
        invocation = self._open[carrier]
        for number, row in rows:
            invocation.append(number, row)

    def close(self, carrier: Carrier) -> None:
        """Sync the rows of a carrier."""
        invocation = self._open.pop(carrier, None)
        if invocation is None:
            return
        invocation.close()
        if invocation.failure is not None:
            raise _core.ResultError(invocation.failure)


def local_cache(folder: str | Path | None, backend: str | None) -> LocalCache | None:
    """Open the run store in a directory, or return None without one."""
    if folder is None:
        return None
    return LocalCache(store=_core.RunStore(folder), backend=backend)
