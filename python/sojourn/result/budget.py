"""Memory limit of runs, and estimates of memory and CPU time before they start."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, NoReturn

from sojourn import _core
from sojourn.arguments import ArgumentError, in_argument
from sojourn.arguments.common import DEFAULT_MEMORY
from sojourn.result.formatting import size

# The backend whose runs take place in real time, one after another.
LIVE = "live"
# What the names of backends with a Linux kernel begin with, and what a run takes in one.
KERNEL = "linux-"
KERNEL_BOOT_S = 1.0
KERNEL_PACKET_S = 8e-5
KERNEL_BYTES = 120_000_000
# What only runs of the simulator have.
SIMULATED = ("packets", "events", "cpu_s")
# Results that need more than this share of the memory of the machine are announced.
LARGE_SHARE = 0.25
# Whether the runs of this thread have a limit already, and the limits of all threads.
_ENFORCED = ContextVar("enforced", default=False)
_LIMITS: list[int | None] = []
_LOCK = Lock()


def limit(max_memory: str | None) -> int | None:
    """Convert a limit such as ``4gb`` to bytes."""
    if max_memory is None:
        return _core.default_max_memory()
    with in_argument("max_memory", max_memory):
        return _core.parse_size_bytes(max_memory)


def machine_bytes() -> int | None:
    """Return the memory of the machine in bytes; None if it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def large_bytes(
    checked: _core.Scenario, *, jobs: int | None, backend: str | None = None, stored: bool = False
) -> int | None:
    """Return the memory of the runs in bytes if it is a large share of the machine's."""
    machine = machine_bytes()
    if machine is None or backend == LIVE:
        return None
    found = json.loads(_core.estimate(checked, jobs=jobs, stored=stored))
    needed = int(found["peak_memory_bytes"])
    return needed if needed > LARGE_SHARE * machine else None


def check(
    checked: _core.Scenario,
    *,
    jobs: int | None,
    max_memory: str | None,
    metrics: bool = False,
    stored: bool = False,
    name: str | None = None,
) -> None:
    """Reject a scenario, of several that have names, whose runs may need more than the limit.

    With `metrics`, only the metrics of runs are kept; with `stored`, their series stay in the run
    store.
    """
    allowed = limit(max_memory)
    if allowed is None:
        return
    found = json.loads(_core.estimate(checked, jobs=jobs, metrics=metrics, stored=stored))
    needed = found["peak_memory_bytes"]
    if needed <= allowed:
        return
    own = needed - sum(part["bytes"] for part in found["memory"])
    process = {"place": "memory", "cause": "the process itself", "bytes": own}
    most = max([process, *found["memory"]], key=lambda part: part["bytes"])
    runs = "all runs" if name is None else f"all runs of {name}"
    cause = f"{most['place']}: {most['cause']} ({size(most['bytes'])}); {runs} may take"
    refuse(f"{cause} {size(needed)}", max_memory, allowed, "a smaller scenario")


@contextmanager
def enforced(max_memory: str | None) -> Iterator[None]:
    """Stop runs when this process takes more memory than the limit, unless they have one."""
    if _ENFORCED.get():
        yield
        return
    allowed = limit(max_memory)
    _limit(lambda: _LIMITS.append(allowed))
    token = _ENFORCED.set(True)
    try:
        yield
    except _core.ScenarioError as error:
        if error.path != "max_memory" or error.problem is None or allowed is None:
            raise
        cause = re.sub(r"(\d+) bytes", lambda found: size(int(found[1])), error.problem)
        refuse(cause, max_memory, allowed, "a smaller scenario")
    finally:
        _ENFORCED.reset(token)
        _limit(lambda: _LIMITS.remove(allowed))


def _limit(change: Callable[[], object]) -> None:
    """Change the limits of the threads; the memory of the process is limited by the least."""
    with _LOCK:
        change()
        _core.limit_memory(min((one for one in _LIMITS if one is not None), default=None))


def refuse(cause: str, max_memory: str | None, allowed: int, instead: str) -> NoReturn:
    """Raise the error of what needs more memory than is allowed."""
    if max_memory is None:
        limited = f"the limit is {size(allowed)}, {DEFAULT_MEMORY}"
        message = f"{cause}; {limited}; expected {instead}"
        raise _core.ScenarioError(message) from None
    rule = "too little for {cause}; expected more memory or {instead}"
    raise ArgumentError("max_memory", max_memory, rule, cause=cause, instead=instead) from None


def estimate(
    checked: _core.Scenario,
    *,
    jobs: int | None,
    max_memory: str | None,
    backend: str | None = None,
    stored: bool = False,
) -> dict[str, Any]:
    """Estimate packets, events, CPU time and memory of the runs of a scenario.

    For live runs, estimate the real time and the memory of the packet buffers instead; for runs
    in a kernel, the CPU time and memory of the virtual machines.
    """
    estimated: dict[str, Any] = json.loads(_core.estimate(checked, jobs=jobs, stored=stored))
    estimated["real_s"] = None
    if backend == LIVE:
        estimated |= _live(checked, estimated["runs"])
    else:
        estimated |= in_kernel(estimated, jobs=jobs, backend=backend)
    refused: _core.ScenarioError | None = None
    try:
        check(checked, jobs=jobs, max_memory=max_memory, stored=stored)
    except _core.ScenarioError as error:
        refused = error
    return {**estimated, "max_memory_bytes": limit(max_memory), "refused": refused}


def in_kernel(
    estimated: Mapping[str, Any], *, jobs: int | None, backend: str | None
) -> dict[str, Any]:
    """Return what differs in the estimate of runs if the backend is a kernel."""
    if backend is None or not backend.startswith(KERNEL):
        return {}
    guests = KERNEL_BYTES * min(jobs or os.cpu_count() or 1, estimated["runs"])
    cpu_s = estimated["runs"] * KERNEL_BOOT_S + estimated["packets"] * KERNEL_PACKET_S
    part = {"place": "runs", "cause": "virtual machines", "bytes": guests}
    return {"events": None, "cpu_s": cpu_s, "peak_memory_bytes": guests, "memory": [part]}


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
