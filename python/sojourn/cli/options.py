"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

# The largest seed that a scenario takes.
MAX_SEED = 2**63 - 1
# More threads than any machine has processors.
MAX_JOBS = 4096

Change = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="Change a value, such as links.up.rate=5mbit."),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A saved result.")]
ScenarioFile = Annotated[Path, typer.Argument(metavar="FILE", help="A scenario in TOML.")]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MAX_SEED,
        metavar="INTEGER",
        help="What random numbers derive from, instead of the scenario's.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, max=MAX_JOBS, help="Threads; by default one a processor."),
]
Out = Annotated[Path | None, typer.Option(help="Folder to save the result in.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, run nothing.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="HTML file to write.")]
