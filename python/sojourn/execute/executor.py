"""What executes runs."""

import os
from collections.abc import Generator, Iterable, Sequence
from typing import Protocol, runtime_checkable

from sojourn import _core
from sojourn.execute.runs import Row, Run


@runtime_checkable
class Executor(Protocol):
    """Executes runs and returns their rows."""

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        """Execute runs, and yield the rows of finished ones as they come, in any order.

        The runs of a part have the same scenario. `parts` looks up which runs are stored, so an
        executor takes a part when it can start it soon. Closing the iterator cancels the runs that
        have not finished.
        """
        ...


def jobs_at_once(jobs: int | None, backend: str | None) -> int:
    """Return how many runs are executed at once."""
    if jobs is not None:
        _core.check_jobs(jobs)
    allowed = _core.backend_concurrency(backend)
    affinity = getattr(os, "sched_getaffinity", None)
    wanted = jobs or (os.cpu_count() or 1 if affinity is None else len(affinity(0)))
    return wanted if allowed is None else min(wanted, allowed)
