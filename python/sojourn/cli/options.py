"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli import completion
from sojourn.document import bounded
from sojourn.scenario.model import MAX_REPLICATIONS

MAX_SEED = _core.max_seed()
# More threads than any machine has processors.
MAX_JOBS = 4096


def _known_backend(name: str | None) -> str | None:
    """Refuse an unknown backend before anything else is done."""
    _core.backend_concurrency(name)
    return name


def within(option: str, least: int, most: int | None = None) -> Callable[[int | None], int | None]:
    """Return a check of the range of a number, as the callback of its option."""

    def check(value: int | None) -> int | None:
        if value is not None:
            bounded(option, value, least, most)
        return value

    return check


def path(text: str) -> Path:
    """Convert an argument to a path; an empty one would be the working directory."""
    if not text:
        message = "empty; expected a path"
        raise typer.BadParameter(message)
    return Path(text)


Change = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        autocompletion=completion.changes,
        help="Change a value of the scenario, such as links.up.rate=5mbit or "
        "links.up.qdisc.target=5ms; repeatable.",
    ),
]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", parser=path, help="Directory of a saved result.")
]
ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", parser=path, help="Scenario file in TOML; - for standard input."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        callback=within("--seed", 0, MAX_SEED),
        help="Seed for all random numbers; overrides the seed in the scenario.",
    ),
]
# Of commands that compose the scenario, with a default.
OwnSeed = Annotated[
    int,
    typer.Option(callback=within("--seed", 0, MAX_SEED), help="Seed for all random numbers."),
]
Replications = Annotated[
    int | None,
    typer.Option(
        callback=within("--replications", 1, MAX_REPLICATIONS),
        help=f"Number of runs per arm, 1 to {MAX_REPLICATIONS}; overrides replications in the "
        "scenario.",
    ),
]
# Of a saved result.
REPLICATION = within("--replication", 0, MAX_REPLICATIONS - 1)
Jobs = Annotated[
    int | None,
    typer.Option(
        callback=within("--jobs", 1, MAX_JOBS),
        help=f"Number of threads (processes if a queue is written in Python), 1 to {MAX_JOBS}; by "
        "default one per processor.",
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Maximum memory for the runs, such as 4gb; a scenario that may need more is rejected "
        "before the first run. By default 80 % of the smallest of the available memory, the "
        "control group limits and ulimit -v.",
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        "--on",
        "--backend",
        metavar="NAME",
        callback=_known_backend,
        autocompletion=completion.backends,
        help=f"Backend that executes the runs: {' or '.join(_core.backend_names())} (default: "
        f"{_core.backend_names()[0]}).",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        parser=path,
        help="Directory to save the result in; created if needed, with its parents.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace a result in the output directory; a complete result is never replaced by an "
        "incomplete one.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Arm = Annotated[str | None, typer.Option(metavar="NAME", help="Run only this arm of the scenario.")]
Pcap = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=path,
        help="Write the packets at the bottlenecks to this file, in the format pcapng, which "
        "Wireshark reads; requires one arm (--arm) and one replication (--replications 1). "
        "--force replaces a capture.",
    ),
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMPARISON",
        help="Exit with code 1 unless the intervals show that a comparison holds, such as "
        "'ping_ms_p99 < 40', 'goodput_down > 0.9 * capacity' or 'drops < drops[\"pfifo\"]'; "
        "repeatable.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Check the scenario and estimate packets, time and memory; run nothing."
    ),
]
Everything = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Print all tables. By default, a terminal narrower than 120 columns shows only the "
        "metrics that differ between arms.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with code 4 if the result has a validity error.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the last interrupted execution of the same scenario and seed without "
        "repeating its finished runs. Finished runs are kept in $SOJOURN_STORE, by default "
        "~/.local/state/sojourn/runs, until the result is complete.",
    ),
]
ResumeAccepted = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="No effect: this command always reuses stored runs. Accepted so that a command can be "
        "repeated with --resume.",
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="PATH",
        parser=path,
        help="Write an HTML report to this file; its directory is created if needed, with its "
        "parents.",
    ),
]
