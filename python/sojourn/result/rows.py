"""Rows and columns of tables as plain values: what commands print needs no polars.

Importing polars takes more time than most commands.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any, TypeVar

from sojourn import _core

Record = Mapping[str, Any]
Records = Sequence[Record]
Columns = Mapping[str, Sequence[Any]]
# An arm and a replication.
Run = tuple[str, int]
_Row = TypeVar("_Row")
_Key = TypeVar("_Key", bound=Hashable)

KEYS = ("arm", "replication")

_TYPES = _core.traffic_types()
# Types of flows that are a connection, with a congestion window.
CONNECTIONS = frozenset(name for name, of in _TYPES.items() if of["has_connection"])
# Types of flows without goodput; that of unknown types counts.
WITHOUT_DATA = frozenset(name for name, of in _TYPES.items() if not of["carries_data"])
# Types of flows whose rate the scenario sets, whatever the network does.
CONSTANT_RATE = frozenset(name for name, of in _TYPES.items() if of["constant_rate"])
# Types of traffic that consist of transactions.
WITH_TRANSACTIONS = frozenset(name for name, of in _TYPES.items() if of["transactions"])
# Types of flows that groups of flows have metrics of.
MEASURED_AS_FLOW = frozenset(name for name, of in _TYPES.items() if of["measured"] == "group")


def transactions(kind: str) -> str | None:
    """Return what the transactions of a type of traffic are called, such as ``"pages"``."""
    return _TYPES[kind]["transactions"]


def rows(table: _core.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some columns, row by row; a table may be too long for a list."""
    for piece in range(table.pieces):
        yield from zip(*table.columns(piece, names), strict=True)


def records(table: _core.Table, *names: str) -> list[dict[str, Any]]:
    """List the rows of a table, by default with all columns."""
    chosen = names or tuple(table.column_names)
    return [dict(zip(chosen, row, strict=True)) for row in rows(table, *chosen)]


def columns(table: _core.Table) -> dict[str, list[Any]]:
    """Return the columns of a table."""
    names = table.column_names
    pieces = [table.columns(piece, names) for piece in range(table.pieces)]
    return {name: [value for of in pieces for value in of[at]] for at, name in enumerate(names)}


def by_run(table: _core.Table, *names: str) -> Iterator[tuple[Run, list[list[Any]]]]:
    """Yield the arm and the replication of each run, and some columns of its rows."""
    pieces = range(table.pieces)
    order = [run for piece in pieces for run, _ in _runs(*table.columns(piece, KEYS))]
    order = [run for run, _ in groupby(order)]
    # The rows of a run follow each other, unless another program wrote the table.
    is_sorted = len(set(order)) == len(order)
    found: dict[Run, list[list[Any]]] = {}
    for piece in pieces:
        arms, replications, *columns = table.columns(piece, (*KEYS, *names))
        for run, place in _runs(arms, replications):
            if is_sorted and run not in found:
                yield from found.items()
                found.clear()
            of_run = found.setdefault(run, [[] for _ in names])
            for column, values in zip(of_run, columns, strict=True):
                column.extend(values[place])
    yield from sorted(found.items())


def _runs(arms: list[str], replications: list[int]) -> Iterator[tuple[Run, slice]]:
    """Yield the runs of a piece, and where their rows are; a piece is mostly one run."""
    if arms and arms.count(arms[0]) == replications.count(replications[0]) == len(arms):
        yield (arms[0], replications[0]), slice(len(arms))
    else:
        yield from stretches(zip(arms, replications, strict=True))


def stretches(keys: Iterable[_Key]) -> Iterator[tuple[_Key, slice]]:
    """Yield where equal keys follow each other.

    Examples
    --------
    >>> list(stretches("aab"))
    [('a', slice(0, 2, None)), ('b', slice(2, 3, None))]
    """
    begin = 0
    for key, equal in groupby(keys):
        end = begin + sum(1 for _ in equal)
        yield key, slice(begin, end)
        begin = end


def grouped(rows: Iterable[_Row], key: Callable[[_Row], _Key]) -> dict[_Key, list[_Row]]:
    """Group rows by a key, in the order of the first ones.

    Examples
    --------
    >>> grouped([3, 1, 2], lambda number: number % 2)
    {1: [3, 1], 0: [2]}
    """
    groups: dict[_Key, list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def known(values: Iterable[float | None]) -> list[float]:
    """List the values that are not missing."""
    return [value for value in values if value is not None]


def mean(values: Iterable[float | None]) -> float | None:
    """Average the known values; None if there are none."""
    found = known(values)
    return fmean(found) if found else None
