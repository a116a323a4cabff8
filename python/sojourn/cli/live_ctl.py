"""``sojourn live ctl``: list and watch live runs, and change their links."""

import json as js
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError
from sojourn.arguments.common import Json
from sojourn.cli import session
from sojourn.cli.commands import Command, Group
from sojourn.cli.plans import command
from sojourn.live import links, sockets
from sojourn.live.lines import Lines
from sojourn.presentation.model import text_table
from sojourn.presentation.terminal import print_table
from sojourn.queues.base import queues_in

HEAD = ("run", "name", "time", "link", "rate", "queue")
START = "start one with sojourn live or sojourn bridge"

ctl = typer.Typer(
    name="live ctl",
    cls=Group,
    help="List, watch and change live runs and bridges while they run.",
    no_args_is_help=True,
)
RunName = Annotated[
    str | None,
    Argument(
        help="The run: its name or number, as `sojourn live ctl ls` lists them.",
        option="--run",
        unset="the only run",
        metavar="NAME",
    ),
]


@ctl.command("ls", cls=Command)
@command()
def list_(*, json: Json = False) -> int:
    """List the runs of this user with the settings of their links."""
    found = [(run.number, run.ask()) for run in sockets.running()]
    if json:
        print(js.dumps([{"run": number, **answer} for number, answer in found], indent=2))
        return 0
    rows = [
        [
            *([number, answer["name"], f"{answer['time_s']:.0f} s"] if first else ["", "", ""]),
            name,
            keys.get("rate", "trace"),
            keys["qdisc"],
        ]
        for number, answer in found
        for first, (name, keys) in _first(answer["links"])
    ]
    if rows:
        print_table(text_table(HEAD, rows, "live runs"))
    else:
        print(f"no live runs; {START}")
    return 0


@ctl.command("get", cls=Command)
@command()
def get(
    *,
    paths: Annotated[
        Sequence[str],
        Argument(
            help="What to print, such as links.down.qdisc or links.*.rate.",
            unset="all settings",
            option="PATH",
        ),
    ] = (),
    run: RunName = None,
    json: Json = False,
) -> int:
    """Print settings of a run, as `set` accepts them."""
    _refuse_empty("paths", paths, "a path such as links.down.qdisc")
    _, answer = _chosen(run)
    found = links.values(answer["links"], paths)
    if json:
        print(js.dumps(found, indent=2))
    else:
        _print(found)
    return 0


@ctl.command("set", cls=Command)
@command()
def set_(
    *,
    changes: Annotated[
        Sequence[str],
        Argument(
            help="What to change, such as links.down.qdisc=pie, links.down.qdisc.target=20ms or "
            "links.*.rate=5mbit. All changes take effect at the same time, or none does.",
            option="PATH=VALUE",
            least_items=1,
        ),
    ],
    run: RunName = None,
) -> int:
    """Change the links of a live run.

    The keys have the same meaning as in the `changes` of a scenario: a queue of the same kind gets
    the given parameters and keeps its packets; a queue of another kind replaces the old one. The
    result of the run has the time of each change.
    """
    _refuse_empty("changes", changes, "one such as links.down.qdisc=pie")
    asked = [links.assignment(text) for text in changes]
    session.warn_of_bytes(*changes)
    session.note_queues(*(queue for one in asked for queue in queues_in(dict([one]))))
    _, answer = _chosen(run, *asked)
    shown = list(dict.fromkeys(path for path, _ in asked))
    print(f"{answer['time_s']:.2f} s")
    _print(links.values(answer["links"], shown))
    return 0


@ctl.command("view", cls=Command)
@command()
def view(*, run: RunName = None) -> int:
    """Show a run that another terminal started full-screen, with keys that change it.

    Without a terminal, print a line per link and second to standard error.
    """
    # Slow to import.
    from sojourn.live import screen, terminal  # noqa: PLC0415

    chosen, answer = _chosen(run)
    watched = sockets.Watched(chosen)
    if not terminal.is_possible():
        lines = Lines()
        for links_ in watched.views():
            lines.show(links_)
        return 0
    shown = screen.Screen(
        answer["name"], watched, second=answer["second"], leave=watched.end, leaving="quit"
    )
    with terminal.Terminal(shown) as place:
        for links_ in watched.views():
            place.show(links_)
    return 0


def _refuse_empty(argument: str, words: Sequence[str], expected: str) -> None:
    for word in words:
        if not word.strip():
            raise ArgumentError(argument, word, f"empty; expected {expected}")


def _first(settings: dict[str, Any]) -> Any:
    """Pair each link with whether it is the first."""
    return ((number == 0, item) for number, item in enumerate(settings.items()))


def _print(found: dict[str, Any]) -> None:
    for path, value in found.items():
        shown = value
        if isinstance(value, dict):
            # As `set` reads it: a table of TOML.
            shown = ", ".join(f"{key} = {js.dumps(one)}" for key, one in value.items())
            shown = f"{{{shown}}}"
        print(f"{path}={_core.printable(f'{shown}')}")


def _chosen(name: str | None, *changes: tuple[str, Any]) -> tuple[sockets.Run, dict[str, Any]]:
    """Ask the run that is named, or the only one; return it with its answer."""
    runs = sockets.running()
    if not runs:
        message = f"no live run of this user; {START}"
        raise _core.ScenarioError(message)
    if name is None and len(runs) == 1:
        return runs[0], runs[0].ask(*changes)
    names = [(one, one.ask()["name"]) for one in runs]
    listed = ", ".join(f"{one.number} ({label})" for one, label in names)
    if name is None:
        message = f"several live runs: {listed}; name one with --run"
        raise _core.ScenarioError(message)
    found = [one for one, label in names if name in {label, one.number}]
    if len(found) != 1:
        problem = "several runs have this name" if found else "no such run"
        raise ArgumentError(
            "run", name, "{problem}; expected one of {listed}", problem=problem, listed=listed
        )
    return found[0], found[0].ask(*changes)
