"""Memory limit of runs, and estimates of memory and CPU time before they start."""

import json
import os
from typing import Any

from sojourn import _core

# The backend whose runs take place in real time, one after another.
LIVE = "live"
# What only runs of the simulator have.
SIMULATED = ("packets", "events", "cpu_s")
# Results that need more than this share of the memory of the machine are announced.
LARGE_SHARE = 0.25


def limit(max_memory: str | None) -> int | None:
    """Convert a limit such as ``4gb`` to bytes.

    Parameters
    ----------
    max_memory
        The limit; by default 80 % of the smallest of the available memory, the limits of the
        control groups and the limit of the address space.

    Returns
    -------
    int or None
        The limit in bytes; None if there is none.

    Raises
    ------
    ScenarioError
        `max_memory` is not a size.
    """
    if max_memory is None:
        return _core.default_max_memory()
    try:
        return _core.parse_size_bytes(max_memory)
    except _core.ScenarioError as error:
        message = f"max_memory: {error}"
        raise _core.ScenarioError(message) from None


def machine_bytes() -> int | None:
    """Return the memory of the machine in bytes; None if it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def large_bytes(
    checked: _core.Scenario, *, jobs: int | None, backend: str | None = None
) -> int | None:
    """Return the memory that runs may need in bytes if it is a large share of that of the machine.

    Parameters
    ----------
    checked
        The scenario.
    jobs
        Number of concurrent runs.
    backend
        Name of the backend; by default the simulator.

    Returns
    -------
    int or None
        The estimate; None if it is small, or the memory of the machine is not known.
    """
    machine = machine_bytes()
    if machine is None or backend == LIVE:
        return None
    needed = int(json.loads(_core.estimate(checked, jobs=jobs))["peak_memory_bytes"])
    return needed if needed > LARGE_SHARE * machine else None


def check(
    checked: _core.Scenario, *, jobs: int | None, max_memory: str | None, metrics: bool = False
) -> None:
    """Reject a scenario whose runs may need more memory than the limit.

    Parameters
    ----------
    checked
        The scenario.
    jobs
        Number of concurrent runs.
    max_memory
        As for :func:`limit`.
    metrics
        Whether only the metrics of runs are kept, not their tables.

    Raises
    ------
    ScenarioError
        The runs may need more memory; the message names the key that needs the most.
    """
    allowed = limit(max_memory)
    if allowed is not None:
        _core.check_memory(checked, allowed, jobs=jobs, metrics=metrics)


def estimate(
    checked: _core.Scenario, *, jobs: int | None, max_memory: str | None, backend: str | None = None
) -> dict[str, Any]:
    """Estimate packets, events, CPU time and memory of the runs of a scenario.

    For live runs, estimate the real time and the memory of the packet buffers instead.

    Parameters
    ----------
    checked
        The scenario.
    jobs
        Number of concurrent runs.
    max_memory
        As for :func:`limit`.
    backend
        Name of the backend; by default the simulator.

    Returns
    -------
    dict
        ``runs``, ``packets``, ``events``, ``cpu_s``, ``real_s``, ``peak_memory_bytes``, ``memory``
        (a list of ``place``, ``cause`` and ``bytes``), ``max_memory_bytes``, and ``refused``: the
        error message if the scenario would be rejected, else None. ``packets``, ``events`` and
        ``cpu_s`` are None for live runs, ``real_s`` is None for simulated runs.
    """
    estimated: dict[str, Any] = json.loads(_core.estimate(checked, jobs=jobs)) | {"real_s": None}
    if backend == LIVE:
        estimated |= _live(checked, estimated["runs"])
    refused: str | None = None
    try:
        check(checked, jobs=jobs, max_memory=max_memory)
    except _core.ScenarioError as error:
        refused = f"{error}"
    return {**estimated, "max_memory_bytes": limit(max_memory), "refused": refused}


def _live(checked: _core.Scenario, runs: int) -> dict[str, Any]:
    """Return what differs in the estimate of live runs."""
    buffers = _core.live_buffer_bytes()
    part = {"place": "links", "cause": "packet buffers of a run", "bytes": buffers}
    return {
        **dict.fromkeys(SIMULATED),
        "real_s": runs * checked.duration_s,
        "peak_memory_bytes": buffers,
        "memory": [part],
    }
