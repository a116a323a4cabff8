"""The command ``sojourn``: one module per subcommand, registered here."""

from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.cli.commands import Deferred, Group

# Subcommands by the heading of the help, in its order: name, module and function.
COMMANDS = {
    "Compare": (
        ("compare", "compare", "compare"),
        ("run", "run", "run"),
        ("sweep", "sweep", "sweep"),
        ("test", "test", "test"),
        ("advise", "advise", "advise"),
        ("rfc7928", "rfc7928", "rfc7928"),
    ),
    "Search": (
        ("tune", "tune", "tune"),
        ("sensitivity", "sensitivity", "sensitivity"),
        ("adversary", "adversary", "adversary"),
    ),
    "Measure with real packets": (
        ("live", "live", "live"),
        ("agree", "agree", "agree"),
        ("doctor", "doctor", "doctor"),
    ),
    "Results": (
        ("report", "report", "report"),
        ("stats", "stats", "stats"),
        ("export", "export", "export"),
        ("import", "importing", "import_"),
        ("store", "store", "store"),
    ),
    "Papers": (
        ("reproduce", "reproduce", "reproduce"),
        ("cite", "cite", "cite"),
    ),
    "Reference": (
        ("qdiscs", "qdiscs", "qdiscs"),
        ("ccs", "ccs", "ccs"),
        ("schema", "schema", "schema"),
    ),
}
# Words after the program are its arguments, even if they begin with a dash.
SETTINGS: dict[str, dict[str, Any]] = {"live": {"allow_interspersed_args": False}}


class Root(Group):
    """The command ``sojourn``, with its subcommands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for panel, commands in COMMANDS.items():
            for name, module, function in commands:
                settings = SETTINGS.get(name, {})
                self.add_command(Deferred(name, module, function, panel, settings))


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
    "complete: the same command continues an interrupted one.",
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
