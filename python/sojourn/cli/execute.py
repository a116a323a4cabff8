"""Run the command line and convert errors to one-line messages and exit codes."""

import sys

from typer.exceptions import TyperException

from sojourn import _core
from sojourn._core import DamagedResultError, ResultError, SojournError, UnavailableError
from sojourn.cli import signals
from sojourn.cli.app import app
from sojourn.cli.pipes import close_stdout, open_missing, tolerate_stderr, tolerated

USAGE = 2
ENVIRONMENT = 3
INVALID = 4


def execute() -> int:
    """Run the command line and return the exit code."""
    open_missing()
    tolerate_stderr()
    try:
        code = _command()
        with tolerated():
            pass
    except (KeyboardInterrupt, signals.Stopped):
        close_stdout()
        return _failed(signals.message(), signals.exit_code())
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


def _failed(message: str, code: int) -> int:
    print(f"sojourn: {_core.message(' '.join(message.split()))}", file=sys.stderr)
    return code
