"""Runs: what identifies one, its metrics, and the stores in which finished ones are kept."""

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from sojourn import _core

# The folder in the store of the user in which workers of this machine store runs of sweeps.
CLUSTER = "cluster"
# Scenarios of the run store that are open at once: each has file descriptors. The rows of a cluster
# belong to several.
OPEN = 4
# What the methods of a store raise.
ERRORS = (_core.ResultError, OSError)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: an arm of a scenario with the seed of a replication.

    `number` counts the runs of the scenario arm by arm.
    """

    scenario: _core.Scenario
    number: int

    @property
    def name(self) -> str:
        """Arm and replication, as in the errors of queues."""
        arm, replication = divmod(self.number, self.scenario.replications)
        return f'arm "{self.scenario.arms[arm]}", replication {replication}'

    def measure(self, backend: str | None = None) -> bytes:
        """Execute the run, and return its row: its metrics, for any process of this build."""
        return meter(self.scenario, backend).measure(self.number)


# A run and its row.
Row = tuple[Run, bytes]


def by_scenario(rows: Iterable[Row]) -> Iterator[tuple[_core.Scenario, list[Row]]]:
    """Group consecutive rows of the same scenario: most rows come from one."""
    for scenario, some in itertools.groupby(rows, key=lambda row: row[0].scenario):
        yield scenario, list(some)


@lru_cache(maxsize=4)
def meter(scenario: _core.Scenario, backend: str | None = None) -> _core.Meter:
    """Return what computes the metrics of the runs of a scenario."""
    return _core.Meter(scenario, backend=backend, binary=_binary())


def default_folder() -> Path:
    """Return the directory of the run store that the command uses."""
    if chosen := os.environ.get("SOJOURN_STORE"):
        return Path(chosen)
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / "sojourn" / "runs"
    return Path.home() / ".local" / "state" / "sojourn" / "runs"


def begin(
    store: _core.RunStore, scenario: _core.Scenario, *, backend: str | None, resume: bool
) -> _core.Invocation:
    """Begin an execution whose runs are stored, or continue an interrupted one."""
    return store.begin(scenario, backend=backend, resume=resume, binary=_binary())


def _binary() -> str | None:
    """Return the digest of the extension, or None if its commit identifies it."""
    commit = _core.commit()
    return binary() if commit == "unknown" or commit.endswith("-dirty") else None


@lru_cache(maxsize=1)
def binary() -> str:
    """Return the SHA-256 digest of the extension, in hexadecimal."""
    with Path(_core.__file__).open("rb") as extension:
        return hashlib.file_digest(extension, "sha256").hexdigest()


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
    # Whether to execute stored runs again.
    fresh: bool = False
    _open: dict[_core.Scenario, _core.Invocation] = field(default_factory=dict)

    def read(self, runs: Sequence[Run]) -> Iterator[Row]:
        """Yield the stored rows of runs of one scenario."""
        if self.fresh:
            return
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


def local_store(
    folder: str | Path | None, backend: str | None, *, fresh: bool = False
) -> LocalRowStore | None:
    """Open the run store in a directory, or return None without one."""
    if folder is None:
        return None
    return LocalRowStore(store=_core.RunStore(folder), backend=backend, fresh=fresh)
