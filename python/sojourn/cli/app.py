"""The command ``sojourn``: one module per subcommand, registered here."""

from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.cli.commands import Deferred, Group

# Subcommands in the order of the help: name, module and function.
COMMANDS = (
    ("run", "run", "run"),
    ("compare", "compare", "compare"),
    ("sweep", "sweep", "sweep"),
    ("test", "test", "test"),
    ("tune", "tune", "tune"),
    ("sensitivity", "sensitivity", "sensitivity"),
    ("adversary", "adversary", "adversary"),
    ("advise", "advise", "advise"),
    ("rfc7928", "rfc7928", "rfc7928"),
    ("agree", "agree", "agree"),
    ("qdiscs", "qdiscs", "qdiscs"),
    ("ccs", "ccs", "ccs"),
    ("schema", "schema", "schema"),
    ("report", "report", "report"),
    ("stats", "stats", "stats"),
    ("export", "export", "export"),
    ("reproduce", "reproduce", "reproduce"),
    ("cite", "cite", "cite"),
    ("doctor", "doctor", "doctor"),
    ("live", "live", "live"),
    ("import", "importing", "import_"),
    ("store", "store", "store"),
)
# Words after the program are its arguments, even if they begin with a dash.
SETTINGS: dict[str, dict[str, Any]] = {"live": {"allow_interspersed_args": False}}


class Root(Group):
    """The command ``sojourn``, with its subcommands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, module, function in COMMANDS:
            self.add_command(Deferred(name, module, function, SETTINGS.get(name, {})))


app = typer.Typer(
    name="sojourn",
    cls=Root,
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
