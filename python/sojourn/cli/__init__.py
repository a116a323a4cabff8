"""The ``sojourn`` command.

Data goes to stdout, everything else to stderr. Exit codes: 0 success, 1 pipe closed by its reader
(set by Typer), 2 invalid command line or scenario, 3 unusable file or directory, 130 interrupted.
"""

import os
import sys

from typer.exceptions import TyperException

from sojourn import _core
from sojourn._core import ResultError, SojournError
from sojourn.cli.app import app

USAGE = 2
ENVIRONMENT = 3
INTERRUPTED = 130


def main() -> int:
    """Run the command line and return the exit code.

    Returns
    -------
    int
        The exit code.
    """
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        return _failed(error.format_message(), error.exit_code)
    except SojournError as error:
        return _failed(str(error), ENVIRONMENT if isinstance(error, ResultError) else USAGE)
    except BrokenPipeError:
        # The reader closed the pipe. Without this, Python reports the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        place = "output" if error.filename is None else error.filename
        return _failed(f"{place}: {error.strerror}", ENVIRONMENT)
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _failed(message: str, code: int) -> int:
    print(f"sojourn: {_core.message(' '.join(message.split()))}", file=sys.stderr)
    return code


__all__ = ["app", "main"]
