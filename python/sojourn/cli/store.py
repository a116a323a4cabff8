"""``sojourn store``: list, measure, check and clean the store of finished runs."""

import json as js
import re
from typing import Annotated, Any, Protocol

import typer

from sojourn import _core
from sojourn.arguments import Argument
from sojourn.arguments.common import SELECTION, Json
from sojourn.cli.commands import Command, Group
from sojourn.cli.plans import command
from sojourn.cli.process import say
from sojourn.execute import runs
from sojourn.execute.runs import default_folder
from sojourn.presentation.model import text_table
from sojourn.presentation.terminal import print_table
from sojourn.result.formatting import counted

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


StoreName = Annotated[
    str | None,
    Argument(
        help="A shared store: s3://bucket/prefix or a directory, as in `sojourn sweep --shared`.",
        unset="the run store of the user",
        option="STORE",
    ),
]


class _Store(Protocol):
    """The methods that the commands need from a store."""

    @property
    def name(self) -> str: ...

    def scenarios(self) -> list[dict[str, Any]]: ...

    def verify(self) -> tuple[int, list[tuple[str, int, str]]]:
        """Count the records; list the damaged files with the number of damaged records and why."""

    def collect(self, age_s: float) -> int: ...


class _Local:
    """The run store of the user."""

    def __init__(self) -> None:
        self._folder = default_folder()

    @property
    def name(self) -> str:
        return f"{self._folder}"

    def scenarios(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = js.loads(_core.RunStore(self._folder).scenarios())
        return found

    def verify(self) -> tuple[int, list[tuple[str, int, str]]]:
        # Opening a store repairs it.
        if not self._folder.exists():
            return 0, []
        records, damaged = _core.RunStore.verify(self._folder)
        return records, [(file, count, "damaged records") for file, count in damaged]

    def collect(self, age_s: float) -> int:
        return _core.RunStore(self._folder).collect(age_s)


class _Shared:
    """A shared store."""

    def __init__(self, name: str, *, named: bool) -> None:
        # Whether the user has named it: a directory without runs may be none.
        self._named = named
        # Imported here: it loads polars.
        from sojourn.storage.store import Store  # noqa: PLC0415

        self._store = Store.at(name)

    @property
    def name(self) -> str:
        return self._store.url

    def scenarios(self) -> list[dict[str, Any]]:
        found = self._store.scenarios()
        if not found:
            self._check()
        return found

    def verify(self) -> tuple[int, list[tuple[str, int, str]]]:
        rows, damaged = self._store.verify()
        if not rows and not damaged:
            self._check()
        return rows, [(name, count, f"damaged rows: {why}") for name, count, why in damaged]

    def collect(self, age_s: float) -> int:
        # It writes to the store.
        self._check()
        return self._store.collect(age_s)

    def _check(self) -> None:
        if self._named:
            self._store.check()


def _opened(name: str | None) -> list[_Store]:
    """Open a shared store, or the run store of the user with that of workers on this machine."""
    if name is not None:
        return [_Shared(name, named=True)]
    of_cluster = default_folder() / runs.CLUSTER
    return [_Local(), *([_Shared(f"{of_cluster}", named=False)] if of_cluster.exists() else [])]


@store.command("ls", cls=Command)
@command()
def list_(*, name: StoreName = None, json: Json = False) -> int:
    """List the scenarios with stored runs of sweeps, searches and interrupted commands."""
    found = [(opened.name, opened.scenarios()) for opened in _opened(name)]
    if json:
        print(
            js.dumps([{"store": where, **one} for where, all_ in found for one in all_], indent=2)
        )
        return 0
    for where, scenarios in found:
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
            for one in scenarios
        ]
        if rows:
            print_table(text_table(HEAD, rows, f"run store {where}"))
        else:
            print(f"run store {where}: no runs")
    return 0


@store.command("du", cls=Command)
@command()
def usage(*, name: StoreName = None) -> int:
    """Print the size of the store."""
    for opened in _opened(name):
        found = opened.scenarios()
        number, stored = (sum(one[key] for one in found) for key in ("runs", "bytes"))
        scenarios = counted(len(found), "scenario")
        print(f"{size(stored)}  {counted(number, 'run')} of {scenarios}  {opened.name}")
    return 0


@store.command("gc", cls=Command)
@command()
def collect(
    *,
    name: StoreName = None,
    older_than: Annotated[
        str,
        Argument(
            help="Minimum age of the runs to remove, such as 0s, 12h or 7d.",
            metavar="TIME",
            heading=SELECTION,
        ),
    ] = "7d",
) -> int:
    """Remove the runs of old executions, which then cannot be continued.

    In the run store of the user, every command also removes runs that are 30 days old. In a shared
    store, only this command removes runs; it uses the clock of the store.
    """
    age = seconds(older_than)
    print(f"removed {size(sum(opened.collect(age) for opened in _opened(name)))}")
    return 0


@store.command("verify", cls=Command)
@command()
def verify(*, name: StoreName = None) -> int:
    """Read all stored runs and compare their checksums; exit code 4 if some are damaged.

    Nothing is repaired or removed.
    """
    all_records = all_damaged = 0
    for opened in _opened(name):
        records, damaged = opened.verify()
        all_records += records
        for file, count, what in damaged:
            all_damaged += count
            say(
                f"error: {file}: {count} {what}; the next command repeats runs that are "
                "stored nowhere else; the file stays until `sojourn store gc` removes it"
            )
    print(f"{all_records} records, {all_damaged} damaged")
    return DAMAGED if all_damaged else 0


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
    """Read an age, such as ``7d``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h|d)", text.strip())
    if found is None:
        message = f"--older-than: {text!r} is not a time; expected one such as 0s, 30min, 12h or 7d"
        raise _core.ScenarioError(message)
    return float(found[1]) * _UNITS[found[2]]
