"""The command ``sojourn``: its subcommands and the modules that have them."""

import sys
import warnings
from typing import Annotated, Any, TextIO

import typer
from typer.exceptions import TyperException

from sojourn import _core
from sojourn._core import DamagedResultError, ResultError, SojournError, UnavailableError
from sojourn.cli import process
from sojourn.cli.commands import Group, LazyCommand
from sojourn.cli.process import (
    close_stdout,
    open_missing,
    tolerate_encoding,
    tolerate_stderr,
    tolerated,
)
from sojourn.errors import QueueWarning

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
        ("tune", "search", "tune"),
        ("sensitivity", "search", "sensitivity"),
        ("adversary", "search", "adversary"),
    ),
    "Measure with real packets": (
        ("live", "live", "live"),
        ("agree", "agree", "agree"),
        ("doctor", "reference", "doctor"),
    ),
    "Results": (
        ("report", "results", "report"),
        ("stats", "results", "stats"),
        ("export", "results", "export"),
        ("import", "results", "import_"),
        ("store", "store", "store"),
    ),
    "Papers": (
        ("reproduce", "reproduce", "reproduce"),
        ("cite", "cite", "cite"),
    ),
    "Reference": (
        ("qdiscs", "reference", "qdiscs"),
        ("ccs", "reference", "ccs"),
        ("schema", "reference", "schema"),
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
                self.add_command(LazyCommand(name, module, function, panel, settings))


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
    "complete. To continue an interrupted command, run it again.",
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


USAGE = 2
ENVIRONMENT = 3
INVALID = 4


def execute() -> int:
    """Run the command line and return the exit code."""
    open_missing()
    tolerate_stderr()
    tolerate_encoding()
    warnings.showwarning = _say_warning
    try:
        code = _command()
        with tolerated():
            pass
    except (KeyboardInterrupt, process.Stopped):
        close_stdout()
        return _failed(process.message(), process.exit_code())
    return code


def _command() -> int:
    try:
        # The name in completion scripts and in help: `python -m sojourn` is no word of a shell.
        code = app(standalone_mode=False, prog_name="sojourn")
    except TyperException as error:
        return _failed(error.format_message(), error.exit_code)
    except DamagedResultError as error:
        return _failed(str(error), INVALID)
    except SojournError as error:
        of_machine = isinstance(error, ResultError | UnavailableError)
        return _failed(str(error), ENVIRONMENT if of_machine else USAGE)
    except OSError as error:
        place = "output" if error.filename is None else error.filename
        return _failed(f"{place}: {error.strerror}", ENVIRONMENT)
    return code if isinstance(code, int) else 0


def _say_warning(  # noqa: PLR0917 - the signature of `warnings.showwarning`
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 - as above
    line: str | None = None,
) -> None:
    """Print a warning of the library as a command does."""
    if issubclass(category, QueueWarning):
        # Commands print these notes themselves.
        return
    if category is UserWarning:
        process.say(f"warning: {message}")
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), file=sys.stderr)


def _failed(message: str, code: int) -> int:
    print(f"sojourn: {_core.message(' '.join(message.split()))}", file=sys.stderr)
    return code
