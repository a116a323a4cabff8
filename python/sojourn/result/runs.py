"""The run store: its default directory, and executions that can be resumed."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from sojourn import _core

# The folder in the store of the user in which workers of this machine store runs of sweeps.
CLUSTER = "cluster"


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


@lru_cache(maxsize=4)
def meter(scenario: _core.Scenario, backend: str | None = None) -> _core.Meter:
    """Return what computes the metrics of the runs of a scenario."""
    return _core.Meter(scenario, backend=backend, binary=_binary())


def _binary() -> str | None:
    """Return the digest of the extension, or None if its commit identifies it."""
    commit = _core.commit()
    return binary() if commit == "unknown" or commit.endswith("-dirty") else None


@lru_cache(maxsize=1)
def binary() -> str:
    """Return the SHA-256 digest of the extension, in hexadecimal."""
    with Path(_core.__file__).open("rb") as extension:
        return hashlib.file_digest(extension, "sha256").hexdigest()
