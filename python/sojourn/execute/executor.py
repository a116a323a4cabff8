"""What executes runs, and the arguments that choose it."""

import os
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, runtime_checkable

from sojourn import _core
from sojourn.arguments import Argument, Plan
from sojourn.arguments.common import EXECUTION, Fresh, Jobs, MaxMemory, Progress, Seed
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


@dataclass(frozen=True, kw_only=True)
class ExecutionPlan(Plan):
    """How the runs of a sweep or a search are executed."""

    seed: Seed = None
    jobs: Jobs = None
    progress: Progress = None
    on: Annotated[
        str | Executor | None,
        Argument(
            help=f"Where the runs are executed: {', '.join(_core.backend_names())} (backends), "
            "dask (processes of Dask Distributed on this machine) or dask://HOST:PORT (workers of "
            "a running scheduler).",
            more="An object of a class that executes runs may be given, too.",
            unset=_core.backend_names()[0],
            expected="a text or an executor",
            metavar="PLACE",
            heading=EXECUTION,
            completion="targets",
        ),
    ] = None
    store: Annotated[
        str | Path | None,
        Argument(
            help="Directory in which each run is stored when it finishes; stored runs are not "
            "repeated.",
            unset="runs are not stored",
            option="",
        ),
    ] = None
    shared: Annotated[
        str | Path | None,
        Argument(
            help="Store that several machines share: s3://bucket/prefix, with address and "
            "credentials in the variables AWS_*, or a directory. The runs in it are not repeated. "
            "Required if {on} is dask://HOST:PORT.",
            metavar="STORE",
            heading=EXECUTION,
            rare=True,
        ),
    ] = None
    fresh: Fresh = False
    max_memory: MaxMemory = None
