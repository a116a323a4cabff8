"""Arguments that several plans share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from sojourn import _core
from sojourn.arguments.declaration import Argument, Plan

MAX_SEED = _core.max_seed()
MAX_REPLICATIONS = 100_000
# More threads than any machine has processors.
MAX_JOBS = 4096

# Headings of the options in the help.
SCENARIO, POINTS, RUNS, EXECUTION = "Scenario", "Points", "Runs", "Execution"
OUTPUT = "Output"

_VALUES = "a mapping from paths to values"
Parameters = Annotated[
    Mapping[Any, Any],
    Argument(
        help="Values by path, such as a list or linspace(1ms,9ms,5).",
        more="Values by their path: a list such as ``['1ms', '5ms']``, or a text such as "
        "``'logspace(1mbit,1gbit,7)'``, ``'linspace(1ms,9ms,5)'`` or ``'range(10ms,50ms,10ms)'``. "
        "``*`` in a path stands for all links, or all traffic that has the key. The key of "
        "parameters that change together is a tuple of paths, and each of its values a tuple. All "
        "others are combined with each other.",
        option="--parameter",
        short="-p",
        metavar="PATH=VALUES",
        expected=_VALUES,
        in_files=True,
        heading=POINTS,
    ),
]
Where = Annotated[
    str | Sequence[str],
    Argument(
        help="Conditions that points must meet, such as 'links.down.rate >= links.up.rate'.",
        metavar="CONDITION",
        in_files=True,
        heading=POINTS,
    ),
]

Seed = Annotated[
    int | None,
    Argument(
        help="Seed for all random numbers.",
        unset="that of the scenario",
        least=0,
        most=MAX_SEED,
        metavar="N",
        heading=RUNS,
    ),
]
# Of functions that compose the scenario.
OwnSeed = Annotated[
    int,
    Argument(
        help="Seed for all random numbers.", least=0, most=MAX_SEED, metavar="N", heading=RUNS
    ),
]
Replications = Annotated[
    int | None,
    Argument(
        help=f"Number of runs per arm, 1 to {MAX_REPLICATIONS}.",
        unset="that of the scenario",
        least=1,
        most=MAX_REPLICATIONS,
        metavar="N",
        heading=RUNS,
    ),
]
OwnReplications = Annotated[
    int,
    Argument(
        help=f"Number of runs per arm, 1 to {MAX_REPLICATIONS}.",
        least=1,
        most=MAX_REPLICATIONS,
        metavar="N",
        heading=RUNS,
    ),
]
Jobs = Annotated[
    int | None,
    Argument(
        help=f"Number of threads (processes if a queue is written in Python), 1 to {MAX_JOBS}.",
        unset="one per processor",
        least=1,
        most=MAX_JOBS,
        metavar="N",
        heading=EXECUTION,
        rare=True,
    ),
]
Progress = Annotated[
    Callable[[int, int], object] | None,
    Argument(
        help="Called with the number of finished runs and that of all runs.",
        option="",
    ),
]
MaxMemory = Annotated[
    str | None,
    Argument(
        help="Maximum memory for the runs, such as 4gb; a scenario that may need more is "
        "rejected before the first run.",
        unset="80 % of the smallest of the available memory, the control group limits and "
        "ulimit -v",
        metavar="SIZE",
        heading=EXECUTION,
        rare=True,
    ),
]


@dataclass(frozen=True, kw_only=True)
class ExecutionPlan(Plan):
    """How the runs of a sweep or a search are executed."""

    seed: Seed = None
    jobs: Jobs = None
    progress: Progress = None
    on: Annotated[
        str | None,
        Argument(
            help=f"Where the runs are executed: {', '.join(_core.backend_names())} (backends; "
            f"default: {_core.backend_names()[0]}), dask (processes of Dask Distributed on this "
            "machine) or dask://HOST:PORT (workers of a running scheduler).",
            metavar="PLACE",
            heading=EXECUTION,
            completion="places",
        ),
    ] = None
    store: Annotated[
        str | Path | None,
        Argument(
            help="Directory in which each run is stored when it finishes; stored runs are not "
            "repeated. By default, runs are not stored.",
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
