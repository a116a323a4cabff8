"""How options are written, and those that several commands share and no plan of a function has."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, OutputError
from sojourn.arguments.common import ARM, CHECKS, EXECUTION, OUTPUT, SCENARIO

Change = Annotated[
    Sequence[str],
    Argument(
        help="Change a value of the scenario, such as links.up.rate=5mbit or "
        "links.up.qdisc.target=5ms.",
        option="--set",
        short="-s",
        metavar="PATH=VALUE",
        heading=SCENARIO,
        completion="changes",
    ),
]
Folder = Annotated[Path, Argument(help="Directory of a saved result.", option="DIR")]
ScenarioFile = Annotated[
    Path, Argument(help="Scenario file in TOML; - for standard input.", option="FILE")
]
DryRun = Annotated[
    bool,
    Argument(
        help="Check the input and estimate runs, time and memory; run nothing.",
        heading=EXECUTION,
    ),
]
Out = Annotated[
    Path | None,
    Argument(
        help="Directory to save the result in; created if needed, with its parents.",
        metavar="DIR",
        heading=OUTPUT,
    ),
]
REPORT = Argument(
    help="Write an HTML report to this file; its directory is created if needed, with its parents.",
    metavar="FILE",
    heading=OUTPUT,
)
ReportFile = Annotated[Path | None, REPORT]
Everything = Annotated[
    bool,
    Argument(
        help="Print all tables, rows and findings instead of the main ones.",
        option="--all",
        heading=OUTPUT,
        rare=True,
    ),
]
Arms = Annotated[Sequence[str], ARM]
Expect = Annotated[
    Sequence[str],
    Argument(
        help="Exit with code 1 unless the intervals show that a comparison holds, such as "
        "'ping_ms_p99 < 40', 'goodput_down > 0.9 * capacity' or 'drops < drops[\"pfifo\"]'.",
        metavar="COMPARISON",
        heading=CHECKS,
    ),
]
Junit = Annotated[
    Path | None,
    Argument(
        help="Write the verdicts on expectations as JUnit XML to this file.",
        option="--junit",
        metavar="FILE",
        heading=CHECKS,
        rare=True,
    ),
]
Strict = Annotated[
    bool,
    Argument(
        help="Exit with code 4 if the result has a validity error.", heading=CHECKS, rare=True
    ),
]


class OptionSpelling:
    """Arguments as options of a command: ``--trials 0``."""

    def name(self, argument: str, beside: str | None = None) -> str:  # noqa: ARG002 - protocol
        """Write the name of an argument."""
        return f"--{argument.replace('_', '-')}"

    def entry(self, argument: str, key: str) -> str:
        """Write the name of an entry of an argument that is a mapping."""
        return f"{self.name(argument)} {key}"

    def given(self, argument: str, value: object) -> str:
        """Write an argument with its value."""
        text = f"{value}"
        shown = f'"{text}"' if not text or any(map(str.isspace, text)) else text
        return f"{self.name(argument)} {shown}"

    def located(self, problem: str, argument: str, key: str | None) -> str:  # noqa: ARG002 - same
        """Write nothing more: the option is on the command line."""
        return problem


def spell_options(error: _core.SojournError) -> None:
    """Let an error of an argument that no plan of a command declares name an option."""
    if isinstance(error, ArgumentError | OutputError):
        error.spelling = error.spelling or OptionSpelling()
