"""Runs: what identifies one, its metrics, and the store in which finished ones are kept."""

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sojourn import _core

# The folder in the store of the user in which workers of this machine store runs of sweeps.
CLUSTER = "cluster"


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
