"""Published claims: what is measured, how it is judged, and a short check."""

import json
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from shell import ROOT, Command
from sojourn import claims

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
CLAIMS = """scenario,arm,quantity,than,least,most,origin
two,codel,sojourn_ms_mean,pfifo,,0.5,delay
two,codel,share_percent:udp,,30,50,share
two,codel,throughput_mbit_per_s,,20,,more than the link has
"""


def measured(rows: list[tuple[str, str, float]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["arm", "quantity", "mean"], orient="row")


def claim(**told: object) -> pl.DataFrame:
    row = {"scenario": "s", "arm": "a", "quantity": "q", "than": None, "origin": "o"}
    return pl.DataFrame([{**row, "least": None, "most": None, **told}], schema=claims.CLAIMS)


@pytest.mark.parametrize(
    ("told", "value", "holds"),
    [
        ({"least": 2.0, "most": 4.0}, 3.0, True),
        ({"least": 3.0}, 3.0, True),
        ({"least": 3.1}, 3.0, False),
        ({"most": 2.9}, 3.0, False),
        ({"than": "b", "most": 0.5}, 0.5, True),
        ({"than": "b", "least": 0.6}, 0.5, False),
        ({"than": "nobody", "least": 0.6}, None, None),
    ],
)
def test_a_claim_is_on_a_quantity_or_on_its_ratio_to_that_of_another_arm(
    told: dict[str, object], value: float | None, *, holds: bool | None
) -> None:
    found = claims.checked(claim(**told), "s", measured([("a", "q", 3.0), ("b", "q", 6.0)]))
    assert found.select("value", "holds").row(0) == (value, holds)


@pytest.mark.parametrize("name", ["afcd"])
def test_every_claim_has_its_scenario_its_arms_and_a_known_quantity(name: str) -> None:
    study = claims.load(ROOT / "papers" / name)
    for key, scenario in study.scenarios.items():
        of = study.claims.filter(scenario=key)
        arms = set(scenario.checked.arms)
        assert set(of["arm"]) <= arms
        assert set(of["than"].drop_nulls()) <= arms
        assert of["origin"].null_count() == 0
        assert of.filter(pl.col("least").is_null() & pl.col("most").is_null()).is_empty()
        groups = {f"share_percent:{group}" for group in ("udp", "cubic", "sack", "hstcp")}
        quantities = {"jain", "throughput_mbit_per_s", "sojourn_ms_mean", "sojourn_ms_max"}
        assert set(of["quantity"]) <= quantities | groups


def test_a_folder_without_claims_is_told(tmp_path: Path) -> None:
    with pytest.raises(sj.ResultError, match=r"claims\.csv"):
        claims.load(tmp_path)


def test_reproduce_checks_claims_and_keeps_reports(sojourn: Command, tmp_path: Path) -> None:
    folder = tmp_path / "papers" / "small"
    folder.mkdir(parents=True)
    (folder / "two.toml").write_text(SCENARIO)
    (folder / "claims.csv").write_text(CLAIMS)
    told = ["reproduce", "small", "--papers", str(folder.parent)]

    done = sojourn(*told, "--out", str(tmp_path / "text"))
    assert done.returncode == 0, done.stderr
    assert "verdict on small: 2 of 3 claims hold: codel 2 of 3" in done.stdout
    assert "MISSED: codel throughput_mbit_per_s 9." in done.stdout
    assert (tmp_path / "text" / "two" / "report.html").exists()

    done = sojourn(*told, "--out", str(tmp_path / "json"), "--json")
    two = json.loads(done.stdout)["two"]
    assert [row["holds"] for row in two["claims"]] == [True, True, False]
    shares = [row["mean"] for row in two["measured"] if row["quantity"].startswith("share")]
    # Two arms, each of which has all.
    assert sum(shares) == pytest.approx(2 * 100)
