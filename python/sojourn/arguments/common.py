"""Arguments that several plans share."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from sojourn import _core
from sojourn.arguments.declaration import Argument

MAX_SEED = _core.max_seed()
MAX_REPLICATIONS = 100_000
# More threads than any machine has processors.
MAX_JOBS = 4096

# Headings of the options in the help.
SCENARIO, POINTS, RUNS, EXECUTION = "Scenario", "Points", "Runs", "Execution"
OUTPUT, CHECKS, SELECTION = "Output", "Checks", "Selection"

# Of a line; each plan says which default it has.
LINK = Argument(
    help="Down/up rates of the line, such as 10/1mbit, or one rate for both directions.",
    metavar="RATES",
    heading=SCENARIO,
)
RTT = Argument(
    help="Round-trip time with empty queues.", kind="time", metavar="TIME", heading=SCENARIO
)
QDISC = Argument(
    help="Queue for both directions: in tc syntax, a file and a class such as ./mine.py:Ramp, or a "
    "plug-in such as ./libramp.so.",
    kind="queue",
    expected="a queue",
    metavar="QDISC",
    heading=SCENARIO,
    completion="queues",
)
QUEUES = Argument(
    help="Queues in tc syntax, quoted if they have parameters, such as 'codel target 13ms'; a file "
    "and a class of your own, such as ./mine.py:Ramp; or a plug-in, such as ./libramp.so.",
    more="A queue may also be an object such as ``CoDel(target='13ms')``, a class such as "
    "``CoDel``, or a subclass of :class:`PythonQueue`.",
    kind="queues",
    expected="a list of queues",
    option="QDISC",
    completion="queues",
)
Ecn = Annotated[bool, Argument(help="Negotiate ECN on all connections.", heading=SCENARIO)]

_VALUES = "a mapping from paths to values"
Parameters = Annotated[
    Mapping[Any, Any],
    Argument(
        help="Values of a parameter by its path: 1ms,5ms,20ms, linspace(low,high,count), "
        "logspace(low,high,count) or range(low,high,step); with {sampling} also "
        "uniform(low,high), loguniform(low,high) or integers(low,high). * in a path stands for all "
        "links, or all traffic that has the key. PATH,PATH=10mbit/1mbit,9mbit/9mbit changes two "
        "parameters together.",
        more="A list such as ``['1ms', '5ms']`` may replace the text; the key of parameters that "
        "change together may be a tuple of paths, and each of their values a tuple. All others are "
        "combined with each other.",
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
        rare=True,
    ),
]
# Of functions that compose the scenario.
OwnSeed = Annotated[
    int,
    Argument(
        help="Seed for all random numbers.",
        least=0,
        most=MAX_SEED,
        metavar="N",
        heading=RUNS,
        rare=True,
    ),
]
Replications = Annotated[
    int | None,
    Argument(
        help="Number of runs per arm.",
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
        help="Number of runs per arm.",
        least=1,
        most=MAX_REPLICATIONS,
        metavar="N",
        heading=RUNS,
    ),
]
# Of a saved result.
ARM = Argument(help="Use only this arm.", unset="all", metavar="ARM", heading=SELECTION)
REPLICATION = Argument(
    help="Use only this replication, counted from 0.",
    unset="all",
    least=0,
    most=MAX_REPLICATIONS - 1,
    metavar="N",
    heading=SELECTION,
)
Full = Annotated[
    bool,
    Argument(
        help="Full durations and numbers of runs instead of fewer and shorter runs.",
        heading=RUNS,
    ),
]
Jobs = Annotated[
    int | None,
    Argument(
        help="Number of threads (processes if a queue is written in Python).",
        unset="one per processor",
        least=1,
        most=MAX_JOBS,
        metavar="N",
        heading=EXECUTION,
        rare=True,
    ),
]
Backend = Annotated[
    str | None,
    Argument(
        help=f"Where the runs are executed: {', '.join(_core.backend_names())}.",
        unset=_core.backend_names()[0],
        known=tuple(_core.backend_names()),
        metavar="PLACE",
        heading=EXECUTION,
        completion="backends",
    ),
]
Fresh = Annotated[
    bool,
    Argument(
        help="Execute all runs, including those already stored or saved.",
        heading=EXECUTION,
        rare=True,
    ),
]
PCAP = Argument(
    help="Write the packets at the bottlenecks to this file, in the format pcapng, which "
    "Wireshark reads; requires a single run.",
    more="The packets of an interrupted run are in a file of the same name with the suffix "
    "``.partial``.",
    metavar="FILE",
    heading=OUTPUT,
    rare=True,
)
Pcap = Annotated[Path | str | None, PCAP]
Force = Annotated[
    bool,
    Argument(
        help="Replace existing results and files of the same kind; a complete result is never "
        "replaced by an incomplete one.",
        heading=OUTPUT,
        rare=True,
    ),
]
Json = Annotated[bool, Argument(help="Print JSON instead of text.", heading=OUTPUT, rare=True)]
Progress = Annotated[
    Callable[[int, int], object] | None,
    Argument(
        help="Called with the number of finished runs and the total number of runs.",
        option="",
    ),
]
DEFAULT_MEMORY = (
    "80 % of the smallest of the available memory, the control group limits and ulimit -v"
)
# Of a saved result that is loaded.
MaxBytes = Annotated[
    int, Argument(help="Maximum memory of the tables in bytes.", least=1, most=sys.maxsize)
]
MaxMemory = Annotated[
    str | None,
    Argument(
        help="Maximum memory for the runs, such as 4gb; a scenario that may need more is "
        "rejected before the first run, and runs that need more are stopped.",
        unset=DEFAULT_MEMORY,
        kind="size",
        metavar="SIZE",
        heading=EXECUTION,
        rare=True,
    ),
]
