"""Tables, means and differences of a sweep, by run and by point."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sojourn as sj
from support.swept import ARMS, TEXT


@pytest.fixture(scope="module")
def swept() -> sj.SweepResult:
    base = sj.Scenario.from_toml(TEXT + ARMS)
    return sj.sweep(base, {"links.up.rate": ["8mbit", "2mbit"]}, replications=3)


def at(table: pl.DataFrame, **keys: object) -> dict[str, object]:
    """The only row with some values."""
    found = table.filter(**keys)
    assert found.height == 1
    return found.row(0, named=True)


def test_a_table_has_a_row_per_run_or_per_point(swept: sj.SweepResult) -> None:
    assert_frame_equal(swept.table(), swept.runs)
    assert_frame_equal(swept.table("point"), swept.points)


def test_a_summary_by_point_has_the_estimates_of_the_points(swept: sj.SweepResult) -> None:
    found = swept.summary()
    assert found.height == swept.points.height * len(swept.metrics)
    assert found.columns[:4] == ["point", "links.up.rate", "arm", "metric"]
    assert found["point"].is_sorted()
    for row in swept.points.iter_rows(named=True):
        for name in ("ping_ms_p99", "goodput_up_mbit_per_s"):
            one = at(found, point=row["point"], arm=row["arm"], metric=name)
            assert (one["mean"], one["low"], one["high"]) == tuple(
                row[f"{name}{end}"] for end in ("", "_low", "_high")
            )
            assert (one["n"], one["links.up.rate"]) == (3, row["links.up.rate"])
    assert at(found, point=0, arm="pie", metric="ping_ms_p99")["unit"] == "ms"


def test_a_summary_by_run_averages_over_the_points(swept: sj.SweepResult) -> None:
    found = at(swept.summary("run"), arm="codel", metric="drops")
    drops = swept.runs.filter(arm="codel")["drops"]
    assert found["n"] == drops.len() == 6
    assert found["mean"] == pytest.approx(drops.mean())


def test_differences_are_those_of_runs_at_the_same_point(swept: sj.SweepResult) -> None:
    codel, pie = (swept.runs.filter(arm=arm) for arm in ("codel", "pie"))
    name = "goodput_up_mbit_per_s"
    both = codel.join(pie, on=["point", "replication"], suffix="_pie")
    both = both.with_columns(difference=pl.col(f"{name}_pie") - pl.col(name))
    for point in (0, 1):
        one = at(swept.difference("codel", "pie"), point=point, metric=name)
        assert one["mean"] == pytest.approx(both.filter(point=point)["difference"].mean())
        assert (one["n"], one["links.up.rate"]) == (3, ["8mbit", "2mbit"][point])
    every = at(swept.difference("codel", "pie", by="run"), metric=name)
    assert every["mean"] == pytest.approx(both["difference"].mean())
    assert every["n"] == 6


def test_a_point_alone_has_the_difference_of_its_result(swept: sj.SweepResult) -> None:
    alone = sj.sweep(swept.scenario, {"links.up.rate": ["2mbit"]}, replications=3)
    columns = ["metric", "n", "mean", "low", "high", "significant"]
    one = swept.difference("codel", "pie").filter(point=1).select(columns)
    assert_frame_equal(alone.difference("codel", "pie").select(columns), one)
    assert_frame_equal(alone.difference("codel", "pie", by="run").select(columns), one)


def test_unknown_arms_and_rows_are_refused(swept: sj.SweepResult) -> None:
    with pytest.raises(sj.ArgumentError, match="other='x': no finished run of this arm; expected"):
        swept.difference("codel", "x")
    for wrong in (swept.table, swept.summary):
        with pytest.raises(sj.ArgumentError, match="by='group': unknown; expected run or point"):
            wrong("group")  # type: ignore[arg-type]
