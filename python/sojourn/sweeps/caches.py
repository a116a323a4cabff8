"""Keep the metrics of finished runs, so that they are not repeated."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sojourn import _core
from sojourn.result import runs
from sojourn.sweeps.carriers import Carrier
from sojourn.sweeps.executors import Row


class RowCache(Protocol):
    """A store of rows.

    The methods raise :class:`ResultError` or :class:`OSError` if the store fails. The sweep then
    goes on without it.
    """

    def finished(self, carrier: Carrier) -> set[int]:
        """Begin with a carrier, and return the numbers of the runs whose rows are stored."""
        ...

    def read(self, carrier: Carrier, numbers: Iterable[int]) -> Iterator[Row]:
        """Yield stored rows; damaged ones may be left out, and are executed again in any case."""
        ...

    def append(self, carrier: Carrier, rows: Sequence[Row]) -> None:
        """Store rows; they may be synced later."""
        ...

    def close(self, carrier: Carrier) -> None:
        """Sync the rows of a carrier, of which there are no more."""
        ...


@dataclass(slots=True, kw_only=True)
class LocalCache:
    """The run store as a store of rows.

    Parameters
    ----------
    store
        The run store.
    backend
        Name of the backend of the runs; by default the first.
    """

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
