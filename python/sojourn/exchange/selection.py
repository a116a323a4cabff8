"""The part of a result that is exported, and the files that an export consists of."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.result import Result
from sojourn.result.estimates import check_arms

# Of a file name; most file systems have 255 as their limit.
LONGEST_NAME = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A result, or some of its runs."""

    result: Result
    arm: str | None = None
    replication: int | None = None

    def check(self) -> None:
        """Refuse an arm or a replication without a finished run."""
        if self.arm is not None:
            check_arms(self.result.table()["arm"], "arm", self.arm)
        if any(True for _ in self.runs()):
            return
        found = self._of_arm(self.result.table())["replication"].to_list()
        if not found:
            message = "the result has no finished run"
            raise _core.ResultError(message)
        rule = f"no finished run; expected 0 to {max(found)}"
        raise ArgumentError("replication", self.replication, rule)

    def runs(self) -> Iterator[tuple[str, int]]:
        """List the finished runs: pairs of an arm and the number of the replication."""
        yield from self.of(self.result.table()).select("arm", "replication").iter_rows()

    def of(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the selected runs."""
        rows = self._of_arm(table)
        if self.replication is None:
            return rows
        return rows.filter(pl.col("replication") == self.replication)

    def _of_arm(self, table: pl.DataFrame) -> pl.DataFrame:
        return table if self.arm is None else table.filter(pl.col("arm") == self.arm)


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One file of an export."""

    name: str
    data: bytes = b""
    notes: list[str] = field(default_factory=list)
    write: Callable[[Path], None] | None = None


def plain_name(text: str) -> str:
    """Replace characters that a file name should not contain.

    Examples
    --------
    >>> plain_name("codel target 13ms/../x")
    'codel_target_13ms____x'
    """
    return re.sub(r"[^A-Za-z0-9-]", "_", text)


def named(text: str, ending: str) -> str:
    """Return a file name for a text, of bounded length.

    Examples
    --------
    >>> named("a b", ".trace"), len(named("x" * 1000, ".trace"))
    ('a_b.trace', 250)
    """
    return plain_name(text)[: LONGEST_NAME - len(ending)] + ending
