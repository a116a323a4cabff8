"""Rows and columns of tables as plain values: what commands print needs no polars.

Importing polars takes more time than most commands.
"""

from array import array
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
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
# How arrays store numbers; counts are not negative.
_PACKED = {float: "d", int: "Q"}

_TYPES = _core.traffic_types()
# Types of flows that are a connection, with a congestion window.
CONNECTIONS = frozenset(name for name, of in _TYPES.items() if of["has_connection"])
# Types of flows without goodput; that of unknown types counts.
WITHOUT_DATA = frozenset(name for name, of in _TYPES.items() if not of["carries_data"])
# Types of flows whose rate the scenario sets, whatever the network does.
CONSTANT_RATE = frozenset(name for name, of in _TYPES.items() if of["constant_rate"])
# Types of traffic that consist of transactions.
WITH_TRANSACTIONS = frozenset(name for name, of in _TYPES.items() if of["transactions"])


def transactions(kind: str) -> str | None:
    """Return what the transactions of a type of traffic are called, such as ``"pages"``."""
    return _TYPES[kind]["transactions"]


def rows(table: _core.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some columns, row by row; a table may be too long for a list."""
    for piece in range(table.pieces):
        yield from zip(*table.columns(piece, names), strict=True)


class Row(Mapping[str, Any]):
    """A row of columns that many rows share: a dictionary of its own takes several times as much.

    Examples
    --------
    >>> row = Row({"flow": ["tcp", "ping"], "t_s": [1.0, 2.0]}, 1)
    >>> row["flow"], dict(row)
    ('ping', {'flow': 'ping', 't_s': 2.0})
    """

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: Columns, at: int) -> None:
        self._columns = columns
        self._at = at

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self._at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def shared(table: _core.Table) -> list[Row]:
    """List the rows of a table, of which there may be many."""
    names = table.column_names
    found: list[Row] = []
    for piece in range(table.pieces):
        columns = dict(zip(names, map(_packed, table.columns(piece, names)), strict=True))
        found.extend(Row(columns, at) for at in range(len(columns[KEYS[0]])))
    return found


def _packed(column: list[Any]) -> Sequence[Any]:
    """Return a column of numbers without an object for each, if none is missing."""
    kind = _PACKED.get(type(column[0])) if column else None
    if kind is None or None in column:
        return column
    return array(kind, column)


def digest(rows: Iterable[Record], without: Container[str]) -> int:
    """Summarise rows, of which some columns do not count, in a number that equal rows share.

    Examples
    --------
    >>> digest([{"arm": "a", "n": 1}], {"arm"}) == digest([{"arm": "b", "n": 1}], {"arm"})
    True
    """
    # Rows of one table have the same columns.
    names: list[str] = []
    found = []
    for row in rows:
        names = names or [name for name in row if name not in without]
        found.append(tuple([row[name] for name in names]))
    return hash(tuple(found))


def records(table: _core.Table, *names: str) -> list[dict[str, Any]]:
    """List the rows of a table, by default with all columns."""
    chosen = names or tuple(table.column_names)
    return [dict(zip(chosen, row, strict=True)) for row in rows(table, *chosen)]


def columns(table: _core.Table) -> dict[str, list[Any]]:
    """Return the columns of a table."""
    names = table.column_names
    pieces = [table.columns(piece, names) for piece in range(table.pieces)]
    return {name: [value for of in pieces for value in of[at]] for at, name in enumerate(names)}


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
