"""Enter a user namespace before the process has more than one thread.

Live runs create network namespaces. Without privileges that needs a user namespace, which the
kernel gives only to a process with one thread; the libraries and the handling of signals start
more.
"""

import sys
from collections.abc import Sequence
from itertools import pairwise, takewhile

# Commands that have live runs unless they say otherwise; the first is the name of the backend, too.
LIVE, AGREE = "live", "agree"
# Asks a live run that goes on.
CTL = "ctl"
ON = "--on"
HELP = {"--help", "--help-all", "-h"}
ENVIRONMENT = 3


def prepare(arguments: Sequence[str]) -> None:
    """Enter a user namespace if the command line asks for live runs.

    If the kernel does not permit it, the process ends with a message.
    """
    if not is_live(arguments):
        return
    # Other commands import it with a handler for Ctrl-C.
    from sojourn import _core  # noqa: PLC0415

    try:
        _core.enter_user_namespace()
    except _core.UnavailableError as error:
        # Possibly an option of the program: live runs would end with the same error.
        if HELP & set(arguments):
            return
        print(f"sojourn: {error}", file=sys.stderr)
        raise SystemExit(ENVIRONMENT) from None


def is_live(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for live runs, or for the help of ``live``.

    Examples
    --------
    >>> is_live(["agree", "a.toml"]), is_live(["run", "a.toml", "--on", "live"])
    (True, True)
    >>> is_live(["run", "a.toml", "--on=sim"]), is_live(["agree", "--help"]), is_live([])
    (False, False, False)
    >>> is_live(["agree", "a.toml", "--on=sim,linux-6.12"])
    False
    >>> is_live(["live", "ctl", "ls"]), is_live(["live", "--", "ctl"])
    (False, True)
    """
    # Its options and those of the program are not separated here.
    if arguments and arguments[0] == LIVE:
        return CTL not in arguments[1:2]
    # What follows are the arguments of a program.
    own = list(takewhile(lambda argument: argument != "--", arguments))
    if not own or HELP & set(own):
        return False
    chosen = [value for name, value in pairwise(own) if name == ON]
    chosen += [word.removeprefix(f"{ON}=") for word in own if word.startswith(f"{ON}=")]
    # Without the option, `agree` is live; it takes several places.
    return any(LIVE in value.split(",") for value in chosen) or (own[0] == AGREE and not chosen)
