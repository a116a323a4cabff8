"""Arguments of functions that execute the runs of sweeps and searches."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, Plan
from sojourn.arguments.common import EXECUTION, Jobs, MaxMemory, Progress, Seed
from sojourn.execute.executor import Executor


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
            completion="places",
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
    max_memory: MaxMemory = None
