"""Options that several commands share."""

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from sojourn.arguments import Argument, Declared, common
from sojourn.arguments.common import (
    CHECKS,
    EXECUTION,
    MAX_REPLICATIONS,
    OUTPUT,
    RUNS,
    SCENARIO,
)
from sojourn.cli import completion
from sojourn.document import bounded


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


# Heading of the options in the help.
SELECTION = "Selection"


def declared(option: str, declaration: Any) -> Any:
    """Return the option of an argument that plans share, for commands whose plan lacks it."""
    kind, argument = get_args(declaration)
    one = Declared(option.removeprefix("--").replace("-", "_"), kind, argument, field())
    return typer.Option(
        option,
        metavar=argument.metavar,
        parser=path if Path in get_args(kind) else None,
        callback=one.check,
        help=argument.help,
        show_default=argument.unset,
        rich_help_panel=argument.heading,
        hidden=argument.rare,
    )


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
Backend = Annotated[str | None, declared("--on", common.Backend)]
Fresh = Annotated[bool, declared("--fresh", common.Fresh)]
Full = Annotated[
    bool,
    typer.Option(
        "--full",
        help="Full durations and numbers of runs instead of fewer and shorter runs.",
        rich_help_panel=RUNS,
    ),
]
# Names that end in Field are for fields of the plans of commands.
DryRunField = Annotated[
    bool,
    Argument(
        help="Check the input and estimate runs, time and memory; run nothing.",
        heading=EXECUTION,
    ),
]
DryRun = Annotated[bool, declared("--dry-run", DryRunField)]
OutField = Annotated[
    Path | None,
    Argument(
        help="Directory to save the result in; created if needed, with its parents.",
        metavar="DIR",
        heading=OUTPUT,
    ),
]
Force = Annotated[bool, declared("--force", common.Force)]
ReportField = Annotated[
    Path | None,
    Argument(
        help="Write an HTML report to this file; its directory is created if needed, with its "
        "parents.",
        metavar="FILE",
        heading=OUTPUT,
    ),
]
ReportFile = Annotated[Path | None, declared("--report", ReportField)]
Json = Annotated[bool, declared("--json", common.Json)]
EverythingField = Annotated[
    bool,
    Argument(
        help="Print all tables, rows and findings instead of the main ones.",
        option="--all",
        heading=OUTPUT,
    ),
]
Everything = Annotated[bool, declared("--all", EverythingField)]
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
