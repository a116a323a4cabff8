"""The command ``sojourn``: one module per subcommand, registered here."""

from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli.agree import agree
from sojourn.cli.ccs import ccs
from sojourn.cli.cite import cite
from sojourn.cli.commands import Command, Group
from sojourn.cli.compare import compare
from sojourn.cli.doctor import doctor
from sojourn.cli.export import export
from sojourn.cli.importing import import_
from sojourn.cli.live import live
from sojourn.cli.qdiscs import qdiscs
from sojourn.cli.report import report
from sojourn.cli.reproduce import reproduce
from sojourn.cli.rfc7928 import rfc7928
from sojourn.cli.run import run
from sojourn.cli.schema import schema
from sojourn.cli.stats import stats
from sojourn.cli.store import store
from sojourn.cli.sweep import sweep
from sojourn.cli.test import test

app = typer.Typer(
    name="sojourn",
    cls=Group,
    context_settings={"help_option_names": ["--help", "-h"]},
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Compare queue disciplines in simulated networks.",
    epilog="Exit codes: 0 success, 1 failed or undecided expectation or unexpected error, "
    "2 invalid command line, or invalid or "
    "unreadable scenario, 3 unusable result, report or output, or no live run "
    "is possible, 4 damaged result or, with --strict, validity error, 129 SIGHUP, 130 Ctrl-C, "
    "143 SIGTERM. Finished runs are stored in $SOJOURN_STORE, by default "
    "$XDG_STATE_HOME/sojourn/runs or ~/.local/state/sojourn/runs, until their result is "
    "complete; --resume continues an interrupted command.",
)
COMMANDS = (
    run,
    compare,
    sweep,
    test,
    rfc7928,
    agree,
    qdiscs,
    ccs,
    schema,
    report,
    stats,
    export,
    reproduce,
    cite,
    doctor,
)
for command in COMMANDS:
    app.command(cls=Command)(command)
# What follows the program are its own arguments, also those that begin with a dash.
app.command(cls=Command, context_settings={"allow_interspersed_args": False})(live)
app.command("import", cls=Command)(import_)
app.add_typer(store)


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it with a flag
    if asked:
        typer.echo(f"sojourn {_core.version()} ({_core.commit()})")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
