"""``sojourn store``: list, measure, check and clean the store of finished runs."""

import json as js
import re
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.cli import tables
from sojourn.cli.commands import Command, Group
from sojourn.cli.options import Json
from sojourn.cli.session import say
from sojourn.result.runs import default_folder

HEAD = ("scenario", "hash", "commit", "runs", "size", "last stored", "state")
DAMAGED = 4
_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))

store = typer.Typer(
    name="store",
    cls=Group,
    help="List, measure, check and clean the store of finished runs.",
    no_args_is_help=True,
)


def _opened() -> _core.RunStore:
    return _core.RunStore(default_folder())


@store.command("ls", cls=Command)
def list_(*, json: Json = False) -> int:
    """List the scenarios with stored runs: of sweeps, and of commands that were interrupted."""
    opened = _opened()
    found: list[dict[str, Any]] = js.loads(opened.scenarios())
    if json:
        print(js.dumps(found, indent=2))
        return 0
    rows = [
        [
            one["name"] or "unknown",
            one["scenario_sha256"][:12],
            one["commit"][:12],
            str(one["runs"]),
            size(one["bytes"]),
            f"{duration(one['age_s'])} ago",
            "running" if one["active"] else "stored",
        ]
        for one in found
    ]
    if rows:
        tables.print_table(HEAD, rows, title=f"run store {opened.folder}", words=len(HEAD))
    else:
        print(f"run store {opened.folder}: no runs")
    return 0


@store.command("du", cls=Command)
def usage() -> int:
    """Print the size of the store."""
    opened = _opened()
    found = js.loads(opened.scenarios())
    runs, stored = (sum(one[key] for one in found) for key in ("runs", "bytes"))
    print(f"{size(stored)}  {runs} runs of {len(found)} scenarios  {opened.folder}")
    return 0


@store.command("gc", cls=Command)
def collect(
    *,
    older_than: Annotated[
        str,
        typer.Option(metavar="TIME", help="Keep runs that were stored later: 0s, 12h, 7d."),
    ] = "7d",
) -> int:
    """Remove the runs of executions that ended some time ago; they can no longer be resumed.

    Runs that are 30 days old are removed by any command.
    """
    age = seconds(older_than)
    removed = _opened().collect(age)
    print(f"removed {size(removed)}")
    return 0


@store.command("verify", cls=Command)
def verify() -> int:
    """Read all stored runs and compare their checksums; exit code 4 if some are damaged."""
    records, damaged = _opened().verify()
    for file, count in damaged:
        say(f"error: {file}: {count} damaged records; --resume repeats their runs")
    print(f"{records} records, {sum(count for _, count in damaged)} damaged")
    return DAMAGED if damaged else 0


def size(count: int) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> size(950), size(12_345_678)
    ('950 B', '12.3 MB')
    """
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def duration(age_s: float) -> str:
    """Write an age in its largest unit.

    Examples
    --------
    >>> duration(12.3), duration(200_000)
    ('12 s', '2 d')
    """
    fits = [name for name, length in _UNITS.items() if length <= age_s]
    unit = fits[-1] if fits else "s"
    return f"{age_s / _UNITS[unit]:.0f} {unit}"


def seconds(text: str) -> float:
    """Read an age, such as ``7d``.

    Raises
    ------
    ScenarioError
        It is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h|d)", text.strip())
    if found is None:
        message = f"--older-than: {text!r} is not a time; expected one such as 0s, 30min, 12h or 7d"
        raise _core.ScenarioError(message)
    return float(found[1]) * _UNITS[found[2]]
