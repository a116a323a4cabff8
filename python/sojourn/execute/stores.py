"""Stores of the rows of finished runs, so that these runs are not repeated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sojourn import _core
from sojourn.execute.runs import Row, Run, by_scenario, meter

# Scenarios of the run store that are open at once: each has file descriptors. The rows of a cluster
# belong to several.
OPEN = 4
ERRORS = (_core.ResultError, OSError)


class RowStore(Protocol):
    """A store of rows.

    The methods raise one of `ERRORS` if the store fails. The sweep then continues without it.
    """

    def read(self, runs: Sequence[Run]) -> Iterator[Row]:
        """Yield the stored rows of runs of one scenario; damaged rows may be left out."""
        ...

    def append(self, rows: Sequence[Row]) -> None:
        """Store rows; they may be synced later."""
        ...

    def close(self, scenario: _core.Scenario) -> None:
        """Sync the rows of a scenario, all runs of which have finished for now."""
        ...


@dataclass(slots=True, kw_only=True)
class LocalRowStore:
    """The run store of the user as a store of rows."""

    store: _core.RunStore
    backend: str | None = None
    _open: dict[_core.Scenario, _core.Invocation] = field(default_factory=dict)

    def read(self, runs: Sequence[Run]) -> Iterator[Row]:
        """Yield the stored rows of runs of one scenario."""
        invocation = self._opened(runs[0].scenario)
        stored = set(invocation.finished)
        for run in runs:
            row = invocation.read(run.number) if run.number in stored else None
            if row is not None:
                yield run, row

    def append(self, rows: Sequence[Row]) -> None:
        """Store rows, which are synced at most five times per second."""
        for scenario, some in by_scenario(rows):
            invocation = self._opened(scenario)
            for run, row in some:
                invocation.append(run.number, row)

    def close(self, scenario: _core.Scenario) -> None:
        """Sync the rows of a scenario."""
        invocation = self._open.pop(scenario, None)
        if invocation is None:
            return
        invocation.close()
        if invocation.failure is not None:
            raise _core.ResultError(invocation.failure)

    def _opened(self, scenario: _core.Scenario) -> _core.Invocation:
        invocation = self._open.get(scenario)
        if invocation is None:
            while len(self._open) >= OPEN:
                self.close(next(iter(self._open)))
            invocation = self.store.begin_rows(meter(scenario, self.backend))
            self._open[scenario] = invocation
        return invocation


def local_store(folder: str | Path | None, backend: str | None) -> LocalRowStore | None:
    """Open the run store in a directory, or return None without one."""
    if folder is None:
        return None
    return LocalRowStore(store=_core.RunStore(folder), backend=backend)
