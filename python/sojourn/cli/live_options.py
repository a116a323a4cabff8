"""The scenario of ``sojourn live``: built from options, which its errors name."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sojourn import _core
from sojourn.scenario import Link, Scenario
from sojourn.traffic import Program

# The longest run of a program without --time.
LONGEST = "3600s"
# Characters of the longest name of a scenario.
MAX_NAME = 200
RATES = "RATE or DOWN/UP such as 10/1mbit"
QUEUE = "a queue in tc syntax, such as 'fq_codel target 13ms' (see sojourn qdiscs)"
COMMAND = "a program and its arguments as separate words, such as ping -c 3 100.64.0.2"
SERVER = "a program and its arguments in one string, such as 'iperf3 -s'"
# Errors that end with what is accepted need no more.
EXPECTED = "; expected "
_UNIT = re.compile(r"[A-Za-z].*$")


@dataclass(frozen=True, slots=True)
class Typed:
    """A value of the command line."""

    option: str
    value: str
    expected: str

    def __post_init__(self) -> None:
        """Refuse bytes that are not UTF-8."""
        if any(map(_is_surrogate, self.value)):
            self.refuse("not UTF-8")

    def refuse(self, problem: str) -> NoReturn:
        """Raise the error that names the option, the problem and what is accepted."""
        accepted = "" if EXPECTED in problem else f"{EXPECTED}{self.expected}"
        value = shlex.quote(os.fsencode(self.value).decode(errors="replace"))
        message = f"{self.option} {value}: {problem}{accepted}"
        raise _core.ScenarioError(message) from None


@contextmanager
def named(options: Mapping[str, Typed]) -> Iterator[None]:
    """Name the option in errors of a key of the scenario that an option sets."""
    try:
        yield
    except _core.ScenarioError as error:
        # Errors of scenarios begin with the key.
        key, _, problem = str(error).partition(": ")
        if key not in options:
            raise
        options[key].refuse(problem)


def scenario(
    *,
    command: list[str] | None,
    server: str | None,
    link: str,
    rtt: str,
    qdisc: str,
    qdisc_up: str | None,
    time: str | None,
) -> Scenario:
    """Build the scenario of a program behind one link in each direction."""
    words = _command(command)
    times = {
        "rtt": Typed("--rtt", rtt, "TIME such as 20ms"),
        "duration": Typed("--time", LONGEST if time is None else time, "TIME such as 30s"),
    }
    program = Program(
        name="program",
        direction="down",
        command=words,
        server=None if server is None else _server(server),
    )
    down, up = _rates(link)
    queue = Typed("--qdisc", qdisc, QUEUE)
    queue_up = queue if qdisc_up is None else Typed("--qdisc-up", qdisc_up, QUEUE)
    links = {"down": _link(link, down, queue), "up": _link(link, up, queue_up)}
    with named(times):
        return Scenario(
            name=_name(words[0]),
            links=links,
            traffic=[program],
            rtt=times["rtt"].value,
            duration=times["duration"].value,
            warmup="0s",
        )


def _is_surrogate(character: str) -> bool:
    """Return whether a character stands for a byte of the command line that is not UTF-8."""
    return "\ud800" <= character <= "\udfff"


def _name(program: str) -> str:
    """Return the name of the scenario: that of the program, as far as it is the name of one."""
    name = _core.printable(Path(program).name or program).strip()
    return name[:MAX_NAME].strip() or "program"


def _command(words: list[str] | None) -> list[str]:
    """Return the words of the program; without any, a shell."""
    if not words:
        return [os.environ.get("SHELL") or "/bin/sh"]
    typed = [Typed("COMMAND", word, COMMAND) for word in words]
    if not words[0]:
        typed[0].refuse("the program has no name")
    return words


def _server(text: str) -> list[str]:
    """Split the command of a server as a shell does."""
    typed = Typed("--server", text, SERVER)
    try:
        words = shlex.split(text)
    except ValueError as error:
        typed.refuse(str(error).lower())
    if not words or not words[0]:
        typed.refuse("the program has no name")
    return words


def _rates(text: str) -> tuple[str, str]:
    """Return the rates of a link, down and up: ``10/1mbit`` is 10mbit and 1mbit."""
    typed = Typed("--link", text, RATES)
    down, *rest = text.split("/")
    if len(rest) > 1:
        typed.refuse(f"{len(rest) + 1} rates")
    up = rest[0] if rest else down
    unit = _UNIT.search(up)
    if not all((down, up)):
        typed.refuse("a rate is missing")
    if unit is None:
        typed.refuse("a rate needs a unit")
    if not _UNIT.search(down):
        down += unit.group()
    return down, up


def _link(rates: str, rate: str, queue: Typed) -> Link:
    """Build a link from one of the rates and its queue."""
    with named({"rate": Typed("--link", rates, RATES), "qdisc": queue}):
        return Link(rate=rate, qdisc=queue.value)
