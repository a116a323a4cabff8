"""Options that several commands share."""

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args

import typer

from sojourn import _core
from sojourn.arguments import common
from sojourn.arguments.common import (
    EXECUTION,
    MAX_REPLICATIONS,
    OUTPUT,
    RUNS,
    SCENARIO,
)
from sojourn.cli import completion
from sojourn.document import bounded

# Errors that end with what is accepted need no more.
EXPECTED = "; expected "


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


@dataclass(frozen=True, slots=True)
class Typed:
    """A value of the command line."""

    option: str
    value: str
    expected: str

    def __post_init__(self) -> None:
        """Refuse bytes that are not UTF-8."""
        if any(map(_is_surrogate, self.value)):
            self.refuse("not UTF-8")

    def refuse(self, problem: str) -> NoReturn:
        """Raise the error that names the option, the problem and what is accepted."""
        accepted = "" if EXPECTED in problem else f"{EXPECTED}{self.expected}"
        value = shlex.quote(os.fsencode(self.value).decode(errors="replace"))
        message = f"{self.option} {value}: {problem}{accepted}"
        raise _core.ScenarioError(message) from None


def _is_surrogate(character: str) -> bool:
    """Return whether a character stands for a byte of the command line that is not UTF-8."""
    return "\ud800" <= character <= "\udfff"


def path(text: str) -> Path:
    """Convert an argument to a path; an empty one would be the working directory."""
    if not text:
        message = "empty; expected a path"
        raise typer.BadParameter(message)
    return Path(text)


# Headings of the options in the help.
SELECTION, CHECKS = "Selection", "Checks"


def declared(option: str, declaration: Any) -> Any:
    """Return the option of an argument that plans share, for commands without a plan."""
    argument = get_args(declaration)[1]
    is_number = argument.least is not None
    return typer.Option(
        option,
        metavar=argument.metavar,
        callback=within(option, argument.least, argument.most) if is_number else None,
        help=argument.help,
        show_default=argument.unset,
        rich_help_panel=argument.heading,
        hidden=argument.rare,
    )


# The round-trip time of commands that compose the scenario.
RTT = "50ms"

Rtt = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="Round-trip time with empty queues.", rich_help_panel=SCENARIO
    ),
]
Ecn = Annotated[
    bool,
    typer.Option("--ecn", help="Negotiate ECN on all connections.", rich_help_panel=SCENARIO),
]
Change = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="PATH=VALUE",
        autocompletion=completion.changes,
        help="Change a value of the scenario, such as links.up.rate=5mbit or "
        "links.up.qdisc.target=5ms. Repeatable.",
        rich_help_panel=SCENARIO,
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
Seed = Annotated[int | None, declared("--seed", common.Seed)]
Replications = Annotated[int | None, declared("--replications", common.Replications)]
# Of a saved result.
REPLICATION = within("--replication", 0, MAX_REPLICATIONS - 1)
Jobs = Annotated[int | None, declared("--jobs", common.Jobs)]
MaxMemory = Annotated[str | None, declared("--max-memory", common.MaxMemory)]
Backend = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="PLACE",
        callback=_known_backend,
        autocompletion=completion.backends,
        help=f"Where the runs are executed: {' or '.join(_core.backend_names())}.",
        show_default=_core.backend_names()[0],
        rich_help_panel=EXECUTION,
    ),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh",
        help="Execute all runs, also those that an interrupted command has stored or that the "
        "output directory already contains.",
        rich_help_panel=EXECUTION,
        hidden=True,
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full",
        help="Full durations and numbers of runs instead of fewer and shorter runs.",
        rich_help_panel=RUNS,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Check the input and estimate runs, time and memory; run nothing.",
        rich_help_panel=EXECUTION,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        parser=path,
        help="Directory to save the result in; created if needed, with its parents.",
        rich_help_panel=OUTPUT,
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace existing results and files of the same kind; a complete result is never "
        "replaced by an incomplete one.",
        rich_help_panel=OUTPUT,
        hidden=True,
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        parser=path,
        help="Write an HTML report to this file; its directory is created if needed, with its "
        "parents.",
        rich_help_panel=OUTPUT,
    ),
]
Pcap = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=path,
        help="Write the packets at the bottlenecks to this file, in the format pcapng, which "
        "Wireshark reads; requires a single run.",
        rich_help_panel=OUTPUT,
        hidden=True,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print JSON instead of text.", rich_help_panel=OUTPUT, hidden=True),
]
Everything = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Print all tables, rows and findings instead of the main ones.",
        rich_help_panel=OUTPUT,
    ),
]
Arm = Annotated[
    str | None,
    typer.Option(
        metavar="ARM",
        help="Use only this arm.",
        show_default="all",
        rich_help_panel=SELECTION,
    ),
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMPARISON",
        help="Exit with code 1 unless the intervals show that a comparison holds, such as "
        "'ping_ms_p99 < 40', 'goodput_down > 0.9 * capacity' or 'drops < drops[\"pfifo\"]'. "
        "Repeatable.",
        rich_help_panel=CHECKS,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with code 4 if the result has a validity error.",
        rich_help_panel=CHECKS,
        hidden=True,
    ),
]
