"""Keep the metrics of finished runs in a shared store."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache

from sojourn import _core
from sojourn.result import runs
from sojourn.result.formatting import counted
from sojourn.storage.store import Rows, SharedStore
from sojourn.storage.writer import Writer
from sojourn.sweeps.caches import RowCache
from sojourn.sweeps.carriers import Carrier
from sojourn.sweeps.executors import Row

# Most carriers whose keys are kept: a cluster executes runs of many carriers at once.
_KEPT = 1_024
# Concurrent lists of batches at the end of a sweep.
_AT_ONCE = 16


@lru_cache(maxsize=_KEPT)
def keys(scenario: _core.Scenario, backend: str | None) -> list[str]:
    """Return the keys of the runs of a scenario in shared stores."""
    found = runs.meter(scenario, backend).shared_keys(runs.binary())
    if found is None:
        message = (
            f"--store: runs of the backend {backend} differ each time, so they cannot be shared; "
            "expected another --on, or no --store"
        )
        raise _core.ScenarioError(message)
    return found


@dataclass(slots=True, kw_only=True)
class SharedCache:
    """A shared store as a store of rows, in front of the run store of the user.

    Rows that cannot be written to it stay in memory and in the run store of the user; the sweep
    tries again later.
    """

    store: SharedStore
    backend: str | None = None
    local: RowCache | None = None
    failure: str | None = None
    # One thread writes the rows of all scenarios: a search may have hundreds.
    _writer: Writer = field(default_factory=Writer)
    _rows: dict[str, Rows] = field(default_factory=dict)
    _open: dict[Carrier, Rows] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)

    def open(self, carriers: Sequence[Carrier]) -> None:
        """Read the stored runs of a sweep."""
        for carrier in carriers[:1]:
            keys(carrier.scenario, self.backend)
        for carrier in carriers:
            self.rows_of(carrier)

    def rows_of(self, carrier: Carrier) -> Rows:
        """Return the rows in the shared store for a carrier."""
        if carrier not in self._open:
            rows = self.store.rows_of(carrier.scenario)
            if rows.prefix not in self._rows:
                rows.refresh()
                self._rows[rows.prefix] = rows
            self._open[carrier] = self._rows[rows.prefix]
        return self._open[carrier]

    def finished(self, carrier: Carrier) -> set[int]:
        """Return the numbers of the runs whose rows are stored."""
        rows = self.rows_of(carrier)
        known = enumerate(keys(carrier.scenario, self.backend))
        shared = {number for number, key in known if rows.find(key) is not None}
        return shared | self._local_finished(carrier)

    def read(self, carrier: Carrier, numbers: Iterable[int]) -> Iterator[Row]:
        """Yield stored rows, and share those that only the run store of the user has."""
        rows = self.rows_of(carrier)
        known = keys(carrier.scenario, self.backend)
        meter = runs.meter(carrier.scenario, self.backend)
        others = []
        for number in numbers:
            row = rows.find(known[number])
            if row is not None and meter.accepts(number, row):
                yield number, row
            else:
                others.append(number)
        if self.local is not None and others:
            for number, row in self.local.read(carrier, others):
                self._writer.append(rows, known[number], row)
                yield number, row

    def append(self, carrier: Carrier, rows: Sequence[Row]) -> None:
        """Store rows: at once in the run store of the user, within seconds in the shared store."""
        stored = self.rows_of(carrier)
        known = keys(carrier.scenario, self.backend)
        if self.local is not None:
            try:
                self.local.append(carrier, rows)
            except (_core.ResultError, OSError) as error:
                self._give_up(error)
        for number, row in rows:
            # Workers of a cluster have already stored their rows.
            if stored.find(known[number]) is None:
                self._writer.append(stored, known[number], row)

    def keep(self, carrier: Carrier, rows: Mapping[str, bytes]) -> None:
        """Store rows that a worker could not store."""
        stored = self.rows_of(carrier)
        for key, row in rows.items():
            self._writer.append(stored, key, row)

    def close(self, carrier: Carrier) -> None:
        """Sync the rows of a carrier in the run store of the user."""
        self._open.pop(carrier, None)
        if self.local is not None:
            try:
                self.local.close(carrier)
            except (_core.ResultError, OSError) as error:
                self._give_up(error)

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

    def _local_finished(self, carrier: Carrier) -> set[int]:
        if self.local is None:
            return set()
        try:
            return self.local.finished(carrier)
        except (_core.ResultError, OSError) as error:
            self._give_up(error)
            return set()

    def _give_up(self, error: Exception) -> None:
        """Continue without the run store of the user."""
        self.failure = self.failure or f"{error}"
        self.local = None
