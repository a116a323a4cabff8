"""Published studies: the comparison, and a short reproduction."""

import json
import re
import tomllib
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from shell import ROOT, Command
from sojourn.studies import study


def test_the_package_contains_the_studies() -> None:
    inside = Path(study.__file__).parent / "papers"
    assert study.studies_folder(None) == inside.resolve() == ROOT / "papers"
    assert study.studies_folder(ROOT / "docs") == ROOT / "docs"
    with pytest.raises(sj.ResultError, match=r"^nowhere is not a directory; set --papers"):
        study.studies_folder(Path("nowhere"))
    # maturin leaves a link out of wheels unless a pattern of files names it.
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]
    packed = [path for entry in build["include"] for path in ROOT.glob(entry["path"])]
    assert inside / "residential" / "study.toml" in packed
    assert len([path for path in packed if path.is_file()]) == len(
        [path for path in (ROOT / "papers").rglob("*") if path.is_file()]
    )


def comparison(rows: list[tuple[str, float, float, float]]) -> pl.DataFrame:
    schema = ["arm", "mean", "published", "error"]
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        metric=pl.lit("induced_latency_ms"),
        low=pl.col("mean") - 1.0,
        high=pl.col("mean") + 1.0,
        difference_percent=(pl.col("mean") - pl.col("published")) / pl.col("published") * 100,
    )


def test_pairs_that_could_not_be_distinguished_do_not_count() -> None:
    found = study.order(
        comparison([("a", 9.0, 7.5, 1.0), ("b", 8.0, 8.1, 1.0), ("c", 80.0, 60.0, 1.0)]),
        "induced_latency_ms",
    )
    assert (found.pairs, found.kept, list(found.exchanged)) == (2, 2, [])


def test_an_exchanged_pair_is_named_the_published_better_first() -> None:
    rows = comparison([("a", 30.0, 10.0, 1.0), ("b", 20.0, 25.0, 1.0)])
    found = study.order(rows, "induced_latency_ms")
    assert list(found.exchanged) == [("a", "b")]


def test_near_is_by_percent_or_by_interval() -> None:
    rows = comparison([("a", 100.0, 110.0, 0.1), ("b", 2.0, 1.2, 0.3), ("c", 50.0, 80.0, 0.1)])
    margin = study.Margin(kind="latency", metrics="induced_", width=20.0, unit="percent")
    assert study.judged(rows, margin)["near"].to_list() == [True, True, False]


def test_a_margin_in_points_is_of_the_number_itself_and_may_be_for_some_arms() -> None:
    rows = comparison([("a", 100.0, 110.0, 0.1), ("b", 105.0, 110.0, 0.1), ("c", 2.0, 80.0, 0.1)])
    margin = study.Margin(
        kind="latency", metrics="induced_", width=5.0, unit="points", arms=["a", "b"]
    )
    assert study.judged(rows, margin)["near"].to_list() == [False, True]
    assert str(margin) == "5 points"


@pytest.mark.parametrize("name", ["cocoa", "residential"])
def test_every_published_number_has_its_arm_and_scenario(name: str) -> None:
    loaded = study.load(ROOT / "papers" / name)
    for key, scenario in loaded.scenarios.items():
        of = loaded.published.filter(scenario=key)
        assert set(of["arm"]) == set(scenario.checked.arms)
        assert of["origin"].null_count() == 0


def test_a_folder_without_published_numbers_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(sj.ResultError, match=r"published\.csv"):
        study.load(tmp_path)


def test_reproduce_lists_the_studies_with_their_titles(sojourn: Command, tmp_path: Path) -> None:
    lines = sojourn("reproduce").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["afcd", "cocoa", "floq", "residential"]
    assert "cocoa        Cocoa: Congestion Control Aware Queuing" in lines
    for name, readme in (("own", b"# My \x1b study\n"), ("bare", None), ("binary", b"\xff")):
        (tmp_path / "papers" / name).mkdir(parents=True)
        (tmp_path / "papers" / name / "published.csv").touch()
        if readme is not None:
            (tmp_path / "papers" / name / "README.md").write_bytes(readme)
    listed = sojourn("reproduce", "--papers", "papers").stdout
    assert listed == "bare\nbinary\nown     My \\u001b study\n"


def test_reproduce_compares_prints_a_verdict_and_keeps_reports(
    sojourn: Command, tmp_path: Path
) -> None:
    done = sojourn("reproduce", "residential", "--replications", "1")
    assert done.returncode == 0, done.stderr
    found = re.search(
        r"^verdict on residential: goodput (\d+) of 28 within 3 %; induced latency (\d+) of 14 "
        r"within 25 %; fairness (\d+) of 14 within 10 %; "
        r"order of induced latency: (\d+) of 40 pairs",
        done.stdout,
        re.MULTILINE,
    )
    assert found, done.stdout
    # One run per arm, not ten. A queue or a TCP that went wrong costs far more than the margins;
    # latency, the weakest, has none: these runs yield 9.
    goodput, latency, fairness, pairs = (int(count) for count in found.groups())
    assert goodput >= 25, done.stdout
    assert latency >= 9, done.stdout
    assert fairness >= 12, done.stdout
    assert pairs >= 39, done.stdout
    assert "; Linux 6.1 " in done.stdout
    for key in ("rrul_10_10", "rrul_10_1", "fair_10_10", "fair_10_1"):
        kept = tmp_path / "results" / "residential" / key
        assert (kept / "report.html").exists()
        assert (kept / "ellipse.png").exists()
        assert sj.Result.load(kept).complete


def test_reproduce_as_json_holds_measured_and_published(sojourn: Command) -> None:
    done = sojourn("reproduce", "residential", "--replications", "1", "--json")
    document = json.loads(done.stdout)
    assert set(document) == {"rrul_10_10", "rrul_10_1", "fair_10_10", "fair_10_1"}
    assert all(row["published"] > 0 and row["mean"] is not None for row in document["rrul_10_1"])
