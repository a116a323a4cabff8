"""Enter a user namespace before the process has more than one thread.

Live runs create network namespaces. Without privileges that needs a user namespace, which the
kernel gives only to a process with one thread; the libraries and the handling of signals start
more.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

# Commands that always have live runs.
LIVE_COMMANDS = ("live", "agree")
OPTIONS = ("--on", "--backend")
HELP = {"--help", "-h"}
# Options of `sojourn live` that take a value; after the first other word, the words are those of
# the program. A test compares the list with the command, whose module is slow to import.
VALUES = {
    "--link",
    "--rtt",
    "--qdisc",
    "--qdisc-up",
    "--server",
    "--time",
    "--view-flows",
    "--metrics",
    "--pcap",
    "--set",
    "-s",
    "--out",
    "--report",
}
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
        print(f"sojourn: {error}", file=sys.stderr)
        raise SystemExit(ENVIRONMENT) from None


def is_live(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for live runs.

    Examples
    --------
    >>> is_live(["agree", "a.toml"]), is_live(["run", "a.toml", "--on", "live"])
    (True, True)
    >>> is_live(["run", "a.toml", "--backend=sim"]), is_live(["live", "--help"]), is_live([])
    (False, False, False)

    The options of the program are not those of ``sojourn live``.

    >>> is_live(["live", "curl", "--help"]), is_live(["live", "--rtt", "9ms", "df", "-h"])
    (True, True)
    >>> is_live(["live", "--rtt", "9ms", "-h", "df"])
    False
    """
    if arguments and arguments[0] == "live":
        return not HELP & set(_options(arguments[1:]))
    # What follows are the arguments of a program.
    own = list(takewhile(lambda argument: argument != "--", arguments))
    if not own or HELP & set(own):
        return False
    apart = any(name in OPTIONS and value == "live" for name, value in pairwise(own))
    return own[0] in LIVE_COMMANDS or apart or any(f"{name}=live" in own for name in OPTIONS)


def _options(arguments: Sequence[str]) -> Iterator[str]:
    """List the options of ``sojourn live``, without their values and the program."""
    words = iter(arguments)
    for word in words:
        if word in {"--", "-"} or not word.startswith("-"):
            return
        yield word
        if word in VALUES:
            next(words, None)
