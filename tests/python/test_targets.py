"""Studies of claims: how they are judged, what they are, and the core of one."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from shell import ROOT
from sojourn import targets

FLOQ = ROOT / "papers" / "floq"


class Measured(sj.Result):
    """A result of which only the summary of groups is known."""

    def __init__(self, rows: list[tuple[str, float, float, float]]) -> None:
        self.rows = rows

    def group_summary(self) -> pl.DataFrame:
        schema = ["arm", "mean", "low", "high"]
        return pl.DataFrame(self.rows, schema=schema, orient="row").with_columns(
            group=pl.lit("web"), metric=pl.lit("jain")
        )


def met(relation: str, value: float | None, rows: list[tuple[str, float, float, float]]) -> object:
    expected = pl.DataFrame(
        [("T", "s", "web", "jain", "a", relation, "b", value, "here")],
        schema=targets.EXPECTED,
        orient="row",
    )
    claims = targets.Claims(name="x", scenarios={}, expected=expected, printed=pl.DataFrame())
    return targets.judged(claims, "s", Measured(rows))["met"].item()


def test_below_means_that_intervals_do_not_overlap() -> None:
    assert met("below", None, [("a", 1.0, 0.5, 1.5), ("b", 2.0, 1.6, 2.4)]) is True
    assert met("below", None, [("a", 1.0, 0.5, 1.7), ("b", 2.0, 1.6, 2.4)]) is False
    assert met("below", None, [("a", 1.0, 0.5, 1.5)]) is None


def test_at_least_is_about_the_mean_and_a_ratio_about_its_side_of_one() -> None:
    rows = [("a", 0.9, 0.8, 0.95), ("b", 1.0, 0.9, 1.1)]
    assert met("at_least", 0.9, rows) is True
    assert met("at_least", 0.91, rows) is False
    assert met("ratio", 0.5, rows) is True
    assert met("ratio", 1.5, rows) is False


def test_the_slides_divide_gains_by_their_own_value_and_losses_by_codels() -> None:
    audit = targets.audited(targets.load(FLOQ).printed)
    throughput = audit.filter(metric="tcp_throughput")
    assert throughput["against"].to_list() == [
        "codel",
        "pie, of FLOQ's value",
        "codel, of FLOQ's value; pie, of FLOQ's value; fifo, of FLOQ's value",
    ]
    assert throughput["change_codel"].round(1).to_list() == [-29.9, 36.0, 42.5]
    loss = audit.filter(metric="udp_loss")
    # The second matches none of the three.
    assert loss["against"].to_list() == ["codel; fifo", "", "codel"]


def test_every_claim_has_its_arms_and_group() -> None:
    claims = targets.load(FLOQ)
    for key, scenario in claims.scenarios.items():
        of = claims.expected.filter(scenario=key)
        arms = set(of["arm"]) | set(of["reference"].drop_nulls())
        assert arms <= set(scenario.checked.arms)
        assert set(of["group"]) <= {group.name for group in scenario.traffic}
        assert of["origin"].null_count() == 0


def test_the_study_says_what_came_out() -> None:
    assert "verdict on floq, reconstructed" in (FLOQ / "README.md").read_text(encoding="utf-8")


def test_a_folder_without_claims_is_no_study_of_claims(tmp_path: Path) -> None:
    with pytest.raises(sj.ResultError, match=r"expected\.csv"):
        targets.load(tmp_path)


def test_the_core_of_floqs_claims_in_seconds() -> None:
    medium = targets.load(FLOQ).scenarios["medium"]
    shorter = {"web": {"count": 160, "start_jitter": "40s"}}
    result = sj.run(
        medium.replace(
            duration="50s",
            replications=4,
            arms=[
                arm for arm in medium.arms if arm.name in {"pfifo", "codel", "pie", "floq_share"}
            ],
            traffic=[
                replace(group, **shorter.get(group.name or "", {})) for group in medium.traffic
            ],
        )
    )
    summary = result.group_summary()
    lost = {
        row["arm"]: row
        for row in summary.filter(metric="initial_loss_percent", group="web").to_dicts()
    }
    for baseline in ("pfifo", "codel", "pie"):
        assert lost["floq_share"]["high"] < lost[baseline]["low"]
    fair = summary.filter(metric="jain", group="long", arm="floq_share")["mean"].item()
    # The bar of 0.995 is for 210 s; in 40 s chance alone is more.
    assert fair > 0.98
