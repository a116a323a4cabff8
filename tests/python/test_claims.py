"""Published claims: what is measured, how it is judged, and short checks."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from shell import ROOT, Command
from sojourn.studies import audit, claims

SCENARIO = """
name = "two flows"
duration = "15s"
warmup = "5s"
replications = 2
rtt = "20ms"

[links.bottleneck]
rate = "10mbit"
qdisc = "pfifo limit 100"

[[traffic]]
name = "udp"
type = "udp"
path = ["bottleneck"]
rate = "4mbit"

[[traffic]]
name = "tcp"
type = "tcp"
path = ["bottleneck"]
count = 2

[[arms]]
name = "pfifo"

[[arms]]
name = "codel"
set."links.bottleneck.qdisc" = "codel"
"""
CLAIMS = """target,scenario,group,quantity,arm,relation,reference,value,origin
A,two,,sojourn_ms_mean,codel,at_most,pfifo,0.5,delay
A,two,udp,share_percent,codel,at_least,,30,share
B,two,,sojourn_ms_mean,codel,below,pfifo,,delay
B,two,,throughput_mbit_per_s,codel,at_least,,20,more than the link has
"""
PAPERS = ROOT / "papers"


def estimates(rows: list[tuple[str, float, float, float]]) -> pl.DataFrame:
    schema = ["arm", "mean", "low", "high"]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(group=pl.lit(None, pl.String), quantity=pl.lit("jain"))


def met(
    relation: str, reference: str | None, value: float | None, measured: pl.DataFrame
) -> object:
    claim = pl.DataFrame(
        [("T", "s", None, "jain", "a", relation, reference, value, "here")],
        schema=claims.CLAIMS,
        orient="row",
    )
    return claims.checked(claim, "s", measured)["met"].item()


@pytest.mark.parametrize(
    ("relation", "reference", "value", "holds"),
    [
        ("at_least", None, 3.0, True),
        ("at_least", None, 3.1, False),
        ("at_most", None, 3.0, True),
        ("at_most", None, 2.9, False),
        ("at_most", "b", 0.5, True),
        ("at_least", "b", 0.6, False),
        ("at_least", "nobody", 0.6, None),
        ("same_side", "b", 0.9, True),
        ("same_side", "b", 1.1, False),
    ],
)
def test_a_claim_is_on_a_mean_or_on_its_ratio_to_that_of_another_arm(
    relation: str, reference: str | None, value: float, *, holds: bool | None
) -> None:
    measured = estimates([("a", 3.0, 2.5, 3.5), ("b", 6.0, 5.0, 7.0)])
    assert met(relation, reference, value, measured) is holds


def test_below_means_that_intervals_do_not_overlap() -> None:
    apart = estimates([("a", 1.0, 0.5, 1.5), ("b", 2.0, 1.6, 2.4)])
    assert met("below", "b", None, apart) is True
    touching = estimates([("a", 1.0, 0.5, 1.7), ("b", 2.0, 1.6, 2.4)])
    assert met("below", "b", None, touching) is False
    assert met("below", "b", None, apart.head(1)) is None


@pytest.mark.parametrize("name", ["afcd", "floq"])
def test_every_claim_has_its_scenario_its_arms_and_a_known_quantity(name: str) -> None:
    study = claims.load(PAPERS / name)
    for key, scenario in study.scenarios.items():
        of = study.claims.filter(scenario=key)
        arms = set(of["arm"]) | set(of["reference"].drop_nulls())
        assert arms <= set(scenario.checked.arms)
        assert set(of["group"].drop_nulls()) <= {group.name for group in scenario.traffic}
        assert of["origin"].null_count() == 0
        complete = of["value"].is_not_null() | (of["relation"].cast(pl.String) == "below")
        assert complete.all()
        for group, known in ((False, claims.RUN_METRICS), (True, claims.GROUP_METRICS)):
            of_kind = of.filter(pl.col("group").is_not_null() == group)
            assert set(of_kind["quantity"]) <= {metric.column for metric in known}


def test_a_folder_without_claims_is_reported(tmp_path: Path) -> None:
    with pytest.raises(sj.ResultError, match=r"claims\.csv"):
        claims.load(tmp_path)


def test_a_claim_that_is_not_understood_is_reported(tmp_path: Path) -> None:
    (tmp_path / "claims.csv").write_text(CLAIMS.replace("below", "beneath"))
    with pytest.raises(sj.ResultError, match=r"claims\.csv.*beneath"):
        claims.load(tmp_path)


def test_reproduce_checks_claims_and_keeps_reports(sojourn: Command, tmp_path: Path) -> None:
    folder = tmp_path / "papers" / "small"
    folder.mkdir(parents=True)
    (folder / "two.toml").write_text(SCENARIO)
    (folder / "claims.csv").write_text(CLAIMS)
    arguments = ["reproduce", "small", "--papers", str(folder.parent)]

    done = sojourn(*arguments, "--out", str(tmp_path / "text"))
    assert done.returncode == 0, done.stderr
    by = "by target: A 2 of 2, B 1 of 2; by arm: codel 3 of 4"
    assert f"verdict on small: 3 of 4 claims hold; {by}" in done.stdout
    assert (tmp_path / "text" / "two" / "report.html").exists()

    done = sojourn(*arguments, "--out", str(tmp_path / "json"), "--json")
    document = json.loads(done.stdout)
    assert [row["met"] for row in document["claims"]] == [True, True, True, False]
    shares = [
        row["mean"] for row in document["measured"]["two"] if row["quantity"] == "share_percent"
    ]
    # Two arms, each of which has all.
    assert sum(shares) == pytest.approx(2 * 100)


def test_the_slides_divide_gains_by_their_own_value_and_losses_by_codels() -> None:
    percentages = audit.audited(audit.load(PAPERS / "floq"))
    throughput = percentages.filter(metric="tcp_throughput")
    assert throughput["against"].to_list() == [
        "codel",
        "pie, as a share of FLOQ's value",
        "; ".join(f"{name}, as a share of FLOQ's value" for name in ("codel", "pie", "fifo")),
    ]
    assert throughput["change_codel"].round(1).to_list() == [-29.9, 36.0, 42.5]
    loss = percentages.filter(metric="udp_loss")
    # The second matches none of the three.
    assert loss["against"].to_list() == ["codel; fifo", "", "codel"]


def test_the_core_of_floqs_claims_in_seconds() -> None:
    medium = claims.load(PAPERS / "floq").scenarios["medium"]
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
