"""The ``sojourn`` command.

Data goes to stdout, everything else to stderr. ``docs/policy.md`` lists the exit codes.
"""

import gc
import sys

from sojourn.cli import namespaces, process

__all__ = ["main"]


def main() -> int:
    """Run the command line and return the exit code."""
    # Before the signals, for which a thread is started.
    namespaces.prepare(sys.argv[1:])
    process.install()
    # No garbage collection during imports: it takes a tenth of their time and frees nothing.
    gc.disable()
    # Imported after Ctrl-C has a handler: the libraries take some tenths of a second.
    from sojourn.cli.app import execute  # noqa: PLC0415

    return execute()
