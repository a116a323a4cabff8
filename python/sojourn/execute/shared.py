"""A shared store of rows, which several machines use."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.execute.runs import ERRORS, Row, RowStore, Run, binary, by_scenario, meter
from sojourn.result.formatting import counted
from sojourn.storage.store import Rows, Store
from sojourn.storage.writer import Writer

# Most scenarios whose keys are kept: a cluster executes runs of many scenarios at once.
_KEPT = 1_024
# Concurrent lists of batches at the end of a sweep.
_AT_ONCE = 16


@lru_cache(maxsize=_KEPT)
def keys(scenario: _core.Scenario, backend: str | None) -> list[str]:
    """Return the keys of the runs of a scenario in shared stores."""
    found = meter(scenario, backend).shared_keys(binary())
    if found is None:
        rule = (
            f"runs of the backend {backend} differ each time, so they cannot be shared; expected "
            "another {on}, or no {shared}"
        )
        raise ArgumentError("shared", rule=rule)
    return found


@dataclass(slots=True, kw_only=True)
class SharedRowStore:
    """A shared store as a store of rows, in front of the run store of the user.

    Rows that cannot be written to it stay in memory and in the run store of the user; the sweep
    tries again later.
    """

    store: Store
    backend: str | None = None
    local: RowStore | None = None
    # Whether to execute stored runs again.
    fresh: bool = False
    failure: str | None = None
    # One thread writes the rows of all scenarios: a search may have hundreds.
    _writer: Writer = field(default_factory=Writer)
    _rows: dict[str, Rows] = field(default_factory=dict)
    _open: dict[_core.Scenario, Rows] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)

    def open(self, scenarios: Iterable[_core.Scenario]) -> None:
        """Read the stored runs of scenarios."""
        for number, scenario in enumerate(scenarios):
            if number == 0:
                # The runs of some backends cannot be shared.
                keys(scenario, self.backend)
            self.rows_of(scenario)

    def rows_of(self, scenario: _core.Scenario) -> Rows:
        """Return the rows in the shared store for a scenario."""
        if scenario not in self._open:
            rows = self.store.rows_of(scenario)
            if rows.prefix not in self._rows:
                if not self.fresh:
                    rows.refresh()
                self._rows[rows.prefix] = rows
            self._open[scenario] = self._rows[rows.prefix]
        return self._open[scenario]

    def read(self, runs: Sequence[Run]) -> Iterator[Row]:
        """Yield stored rows, and share those that only the run store of the user has."""
        scenario = runs[0].scenario
        rows, known = self.rows_of(scenario), keys(scenario, self.backend)
        accepts = meter(scenario, self.backend).accepts
        others = []
        for run in runs:
            row = rows.find(known[run.number])
            if row is not None and accepts(run.number, row):
                yield run, row
            else:
                others.append(run)
        if others:
            with self._using_local() as local:
                for run, row in () if local is None else local.read(others):
                    self._writer.append(rows, known[run.number], row)
                    yield run, row

    def append(self, rows: Sequence[Row]) -> None:
        """Store rows: at once in the run store of the user, within seconds in the shared store."""
        with self._using_local() as local:
            if local is not None:
                local.append(rows)
        for scenario, some in by_scenario(rows):
            stored, known = self.rows_of(scenario), keys(scenario, self.backend)
            for run, row in some:
                # Workers of a cluster have already stored their rows.
                if stored.find(known[run.number]) is None:
                    self._writer.append(stored, known[run.number], row)

    def close(self, scenario: _core.Scenario) -> None:
        """Sync the rows of a scenario in the run store of the user."""
        self._open.pop(scenario, None)
        with self._using_local() as local:
            if local is not None:
                local.close(scenario)

    def end(self) -> str | None:
        """Write the waiting rows; return why rows are not in the shared store, None if all are."""
        missing = self._writer.close()
        failure = self._writer.failure
        if failure is None:
            return self._restored() or self.failure
        return f"{failure} ({counted(missing, 'run')} missing in the store)"

    def _restored(self) -> str | None:
        """Write batches again that were removed during the sweep; return why that failed."""
        try:
            with ThreadPoolExecutor(_AT_ONCE) as executor:
                list(executor.map(Rows.restore, self._rows.values()))
        except _core.ResultError as error:
            return f"{error}"
        return None

    def damaged(self) -> list[str]:
        """Return the damaged objects found since the last call, their faults and what follows."""
        found = {fault: rows for rows in self._rows.values() for fault in rows.damaged}
        new = {fault: rows for fault, rows in found.items() if fault not in self._named}
        self._named.update(new)
        stays = "; it stays until `sojourn store gc` removes it"
        return [
            f"{fault}; runs that no other batch has were repeated"
            f"{stays if rows.remains(fault) else ''}"
            for fault, rows in new.items()
        ]

    @contextmanager
    def _using_local(self) -> Iterator[RowStore | None]:
        """Use the run store of the user; if it fails, continue without it."""
        try:
            yield self.local
        except ERRORS as error:
            self.failure = self.failure or f"{error}"
            self.local = None
