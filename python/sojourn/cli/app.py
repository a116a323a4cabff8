"""The command ``sojourn``: its subcommands and the modules that have them."""

import difflib
import re
import sys
import warnings
from typing import Annotated, Any, TextIO

import typer
from typer.exceptions import TyperException

from sojourn import _core
from sojourn._core import DamagedResultError, ResultError, SojournError, UnavailableError
from sojourn.cli import process
from sojourn.cli.commands import HELP_ALL, Group, LazyCommand, rare
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
    "Compare and set up": (
        ("demo", "demo", "demo"),
        ("compare", "compare", "compare"),
        ("run", "run", "run"),
        ("advise", "advise", "advise"),
        ("new-queue", "new_queue", "new_queue"),
    ),
    "Sweep and test": (
        ("sweep", "sweep", "sweep"),
        ("test", "test", "test"),
        ("rfc7928", "rfc7928", "rfc7928"),
        ("rfc9743", "control_suite", "rfc9743"),
        ("cc-cases", "control_suite", "cc_cases"),
    ),
    "Search": (
        ("tune", "search", "tune"),
        ("sensitivity", "search", "sensitivity"),
        ("adversary", "search", "adversary"),
    ),
    "Real packets": (
        ("live", "live", "live"),
        ("live ctl", "live_ctl", "ctl"),
        ("bridge", "bridge", "bridge"),
        ("interop", "interop", "interop"),
        ("agree", "agree", "agree"),
        ("kernel", "kernel", "kernel"),
        ("doctor", "reference", "doctor"),
    ),
    "Results": (
        ("report", "results", "report"),
        ("plot", "plot", "plot"),
        ("why", "results", "why"),
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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; ``live ctl`` has two words."""
        two = " ".join(args[:2])
        if two in self.commands:
            args = [two, *args[2:]]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="sojourn",
    cls=Root,
    context_settings={"help_option_names": ["--help", "-h"]},
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Compare queue disciplines in simulated networks.",
    epilog="Exit codes: 0 success, 1 failed expectation, 2 invalid command or scenario, "
    "3 unusable result or report, or live runs not possible, 4 damaged result or, with --strict, "
    "invalid one, 129 SIGHUP, 130 Ctrl-C, 143 SIGTERM. Finished runs are in $SOJOURN_STORE "
    "(sojourn store): to continue an interrupted command, run it again.",
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


# What Typer says of values that are not numbers.
_NUMBERS = {
    "Input should be a valid integer": "not a whole number; expected one such as 5",
    "Input should be a valid number": "not a number; expected one such as 0.5",
}
# Options that are less similar are not suggested.
_NEAR = 0.65
USAGE = 2
ENVIRONMENT = 3
INVALID = 4


def execute() -> int:
    """Run the command line and return the exit code."""
    open_missing()
    tolerate_stderr()
    tolerate_encoding()
    warnings.showwarning = _say_warning
    code = 0
    try:
        with tolerated():
            code = _command()
    except (KeyboardInterrupt, process.Stopped):
        close_stdout()
        return _failed(process.message(), process.exit_code())
    return code


def _command() -> int:
    try:
        # The name in completion scripts and in help: `python -m sojourn` is no word of a shell.
        code = app(standalone_mode=False, prog_name="sojourn")
    except TyperException as error:
        # Without a subcommand, `sojourn store` has printed its help, and the message is empty.
        message = _usage(error)
        return _failed(message, error.exit_code) if message.strip() else error.exit_code
    except DamagedResultError as error:
        return _failed(str(error), INVALID)
    except SojournError as error:
        of_machine = isinstance(error, ResultError | UnavailableError)
        return _failed(str(error), ENVIRONMENT if of_machine else USAGE)
    except OSError as error:
        place = "output" if error.filename is None else error.filename
        return _failed(f"{place}: {error.strerror}", ENVIRONMENT)
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> str:
    """Write an error of Typer as all other errors: the place, the problem, what is accepted."""
    message: str = error.format_message()
    if option := getattr(error, "option_name", None):
        return f"{option}: {_option_problem(error, message)}"
    if (context := getattr(error, "ctx", None)) is None:
        return message
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    if parameter := getattr(error, "param", None):
        is_option = parameter.param_type_name == "option"
        name = max(parameter.opts, key=len) if is_option else parameter.metavar or parameter.name
        if not hasattr(error, "param_type"):
            problem = message.rpartition(": ")[2].partition(",")[0]
            return f"{name}: {_NUMBERS.get(problem, message)}"
        accepted = f"{name} {parameter.metavar}" if is_option else usage
        return f"{name.strip('{}[].')}: missing; expected {accepted}"
    if found := re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        message = f'unexpected argument "{found[1]}"; expected {usage}'
    elif found := re.match(r"No such command '(.*?)'\.?(?: Did you mean '(.*?)')?", message):
        known = f"expected one of {', '.join(context.command.commands)}"
        accepted = f'did you mean "{found[2]}"?' if found[2] else known
        message = f'unknown command "{found[1]}"; {accepted}'
    return message


def _option_problem(error: Any, message: str) -> str:
    if "does not take" in message:
        return "takes no value"
    if "requires" in message:
        return "no value given; expected one"
    # The dashes would make all options similar.
    possible = {one.lstrip("-"): one for one in getattr(error, "possibilities", None) or ()}
    name = error.option_name.lstrip("-")
    if near := difflib.get_close_matches(name, possible, n=1, cutoff=_NEAR):
        return f"unknown option; did you mean {possible[near[0]]}?"
    if error.ctx is None:
        return "unknown option"
    listing = HELP_ALL if rare(error.ctx.command) else "--help"
    return f"unknown option; {error.ctx.command_path} {listing} lists the options"


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
    text = process.with_short_names(" ".join(message.split()))
    print(f"sojourn: {_core.message(text)}", file=sys.stderr)
    return code
