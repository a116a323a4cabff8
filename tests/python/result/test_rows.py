"""Tables as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.result import rows


@dataclass
class Pieces:
    """A table of three columns whose pieces are lists of rows."""

    rows: Sequence[Sequence[tuple[str, int, float]]]

    @property
    def pieces(self) -> int:
        return len(self.rows)

    def columns(self, piece: int, names: Sequence[str]) -> list[list[Any]]:
        known = dict(
            zip(("arm", "replication", "t_s"), zip(*self.rows[piece], strict=True), strict=True)
        )
        return [list(known[name]) for name in names]


def runs_of(*pieces: Sequence[tuple[str, int, float]]) -> list[tuple[tuple[str, int], list[float]]]:
    table = cast("_core.Table", Pieces(pieces))
    return [(run, times) for run, (times,) in rows.by_run(table, "t_s")]


def test_the_rows_of_a_run_are_together_although_pieces_end_within_it() -> None:
    first, second = [("b", 0, 1.0), ("b", 0, 2.0)], [("b", 0, 3.0), ("a", 0, 1.0)]
    assert runs_of(first, second) == [(("b", 0), [1.0, 2.0, 3.0]), (("a", 0), [1.0])]


def test_the_rows_of_a_run_are_together_although_those_of_another_are_between_them() -> None:
    mixed = [("b", 0, 1.0), ("a", 0, 1.0)], [("b", 0, 2.0), ("a", 1, 1.0)]
    assert runs_of(*mixed) == [(("a", 0), [1.0]), (("a", 1), [1.0]), (("b", 0), [1.0, 2.0])]


def test_plain_values_are_those_of_the_frames() -> None:
    links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
    traffic = [sj.Tcp(direction="up"), sj.Ping(direction="up"), sj.Voip(direction="down")]
    scenario = sj.Scenario(
        links=links, traffic=traffic, rtt="50ms", duration="4s", warmup="1s", replications=2
    )
    outcome = _core.run(scenario.checked)
    result = sj.Result(outcome)
    for name in outcome.table_names:
        assert rows.records(outcome.table(name)) == getattr(result, name).to_dicts()
    for by in ("run", "group", "class", "application", "link"):
        assert result.estimates.table(by) == result.table(by).to_dict(as_series=False)
        assert result.estimates.summary(by) == result.summary(by).to_dicts()
    flows = outcome.table("flows")
    with pytest.raises(IndexError):
        flows.columns(flows.pieces, ["flow"])
    with pytest.raises(KeyError, match="no_column"):
        flows.columns(0, ["no_column"])
