"""Results of a real run."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, get_args

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sojourn as sj
from sojourn import _core, report
from sojourn.cli import printed, session
from sojourn.execute.run import RunPlan
from sojourn.result import catalogue
from support.manifests import edit

ROOT = Path(__file__).parents[3]
CATALOGUE = json.loads(_core.column_catalogue())
#: The types of polars that a column may have, by its type in the catalogue.
POLARS: dict[str, Any] = {
    "text": (pl.String,),
    "count": (pl.UInt32, pl.UInt64),
    "real": (pl.Float64,),
    "flag": (pl.Boolean,),
}


def test_every_run_of_every_arm_is_there(result: sj.Result) -> None:
    assert result.complete
    assert (result.finished, result.total) == (6, 6)
    assert result.arms == ["fifo", "fq"]
    assert result.table().select("arm", "replication").rows() == [
        (arm, replication) for arm in ("fifo", "fq") for replication in range(3)
    ]


def test_tables_are_tidy(result: sj.Result) -> None:
    for frame in (result.flows, result.links, result.flow_series, result.link_series, result.pings):
        assert frame.columns[:2] == ["arm", "replication"]
        assert not frame.is_empty()


def test_links_carry_no_more_than_their_rate(result: sj.Result) -> None:
    assert result.links["utilisation"].max() <= 1.001  # type: ignore[operator]
    for side, rate in (("up", 1.0), ("down", 10.0)):
        goodput = result.table()[f"goodput_{side}_mbit_per_s"]
        assert goodput.max() < rate  # type: ignore[operator]


def test_a_run_shorter_than_a_packet_uses_no_more_than_the_link() -> None:
    link = sj.Link(rate="10kbit", qdisc="pfifo")
    scenario = sj.Scenario(
        links={"up": link, "down": link},
        traffic=[sj.Udp(direction="up", rate="1mbit", phase="0s")],
        duration="10ms",
        warmup="0s",
        rtt="1ms",
    )
    (used,) = sj.run(scenario).links.filter(link="up")["utilisation"]
    assert 0.5 < used <= 1.0


def test_fair_queueing_keeps_the_ping_low_where_a_fifo_does_not(result: sj.Result) -> None:
    row = result.difference("fifo", "fq").row(
        by_predicate=pl.col("metric") == "induced_latency_ms", named=True
    )
    assert row["n"] == 3
    assert row["high"] < -100.0
    assert row["significant"]


def test_means_lie_within_their_intervals(result: sj.Result) -> None:
    rows = result.summary().drop_nulls(["low", "high"])
    assert rows.filter(
        (pl.col("mean") < pl.col("low")) | (pl.col("mean") > pl.col("high"))
    ).is_empty()
    assert rows["n"].unique().to_list() == [3]


def test_an_arm_that_is_not_there_is_named(result: sj.Result) -> None:
    with pytest.raises(sj.ArgumentError, match="other='pie': no finished run of this arm"):
        result.difference("fifo", "pie")
    with pytest.raises(sj.ArgumentError, match="other: expected a text, not a value of type"):
        result.difference("fifo", 3)  # type: ignore[arg-type]


def test_what_a_table_of_metrics_is_about_is_checked(result: sj.Result) -> None:
    expected = "by='flow': unknown; expected run, group, class, application or link$"
    calls: list[Callable[[Any], object]] = [
        result.table,
        result.summary,
        lambda by: result.difference("fifo", "fq", by),
    ]
    for call in calls:
        with pytest.raises(sj.ArgumentError, match=expected):
            call("flow")


def test_tables_of_metrics_have_the_declared_columns(result: sj.Result) -> None:
    for by in get_args(catalogue.By)[1:]:
        declared = [metric.column for metric in catalogue.of_scope(by)]
        columns = result.table(by).columns
        assert columns[:3] == ["arm", "replication", "group"]
        assert columns[-len(declared) :] == declared
        shown = [metric.column for metric in catalogue.shown(by)]
        found = dict.fromkeys(result.summary(by)["metric"])
        assert list(found) == [name for name in shown if name in found]


def test_metrics_of_links_are_those_of_the_table(result: sj.Result) -> None:
    links, found = result.links, result.table("link")
    assert found["group"].to_list() == links["link"].to_list()
    assert found["sojourn_ms_p50"].equals(links["sojourn_ms_p50"], check_names=False)
    # The network carries more than the payload.
    goodput, throughput = (
        result.table()["goodput_up_mbit_per_s"],
        found.filter(group="up")["throughput_mbit_per_s"],
    )
    assert (goodput < throughput).all()
    assert (throughput <= 1.001).all()


def test_a_saved_result_is_the_result(result: sj.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "kept")
    read = sj.Result.load(tmp_path / "kept")
    assert_frame_equal(read.table(), result.table())
    assert read.provenance["scenario_sha256"] == result.scenario.hash
    assert read.build == result.build


def test_a_truncated_table_is_named(result: sj.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "kept")
    file = tmp_path / "kept" / "pings.parquet"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(sj.ResultError, match=r"pings\.parquet"):
        sj.Result.load(tmp_path / "kept")


def test_the_provenance_reruns_to_the_same_numbers(result: sj.Result) -> None:
    again = sj.run(sj.Scenario.from_toml(result.scenario.to_toml()))
    assert_frame_equal(again.flows, result.flows)


def test_another_seed_gives_other_numbers(scenario: sj.Scenario, result: sj.Result) -> None:
    other = sj.run(scenario.replace(replications=1), seed=2)
    here = result.flows.filter(pl.col("replication") == 0)
    assert other.flows["delivered_bytes"].to_list() != here["delivered_bytes"].to_list()


def test_the_backend_is_passed_to_the_core(
    scenario: sj.Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[str | None] = []
    original = _core.run

    def record(*given: Any, backend: str | None = None, **options: Any) -> _core.Outcome:
        chosen.append(backend)
        return original(*given, backend=backend, **options)

    monkeypatch.setattr(_core, "run", record)
    short = scenario.replace(replications=1, duration="3s")
    name = _core.backend_names()[0]
    named, default = sj.run(short, on=name), sj.run(short)
    assert chosen == [name, None]
    assert named.provenance["backend"]["name"] == name
    assert_frame_equal(named.flows, default.flows)
    *others, last = _core.backend_names()
    names = f"{', '.join(others)} or {last}"
    with pytest.raises(sj.ScenarioError, match=f"^on='x': unknown; expected {names}$"):
        sj.run(short, on="x")


def test_a_failed_check_of_the_backend_is_an_error(
    result: sj.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert result.validity.verdict != "invalid"
    result.save(tmp_path / "kept")
    facts = [
        {"arm": "fq", "replication": run, "name": "late", "value": f"{run} <&>", "passed": run == 0}
        for run in range(2)
    ]
    edit(tmp_path / "kept", {"validity": facts})
    read = sj.Result.load(tmp_path / "kept")
    assert read.validity.verdict == "invalid"
    text = "fq: replication 1 failed the backend check late: 1 <&>."
    errors = [found.text for found in read.validity.findings if found.severity == "error"]
    assert errors == [text]
    assert read.validity.findings[0].text == text
    assert printed.document(read)["validity"]["findings"][0] == {"severity": "error", "text": text}
    request = session.RunRequest(run=RunPlan(read.scenario), output=session.Output())
    assert session.conclude(read, request, None) == (session.Saved.AS_WANTED, 0)
    assert f"error: {text}" in capsys.readouterr().err
    assert text.replace("<&>", "&lt;&amp;&gt;") in report.html(read)


def test_progress_counts_to_the_total(scenario: sj.Scenario) -> None:
    seen: list[tuple[int, int]] = []
    sj.run(scenario, progress=lambda finished, total: seen.append((finished, total)))
    assert seen[-1] == (6, 6)
    assert [finished for finished, _ in seen] == sorted(finished for finished, _ in seen)


def test_an_exception_in_progress_reaches_the_caller(scenario: sj.Scenario) -> None:
    def refuse(finished: int, total: int) -> None:
        message = f"{finished} of {total}"
        raise LookupError(message)

    with pytest.raises(LookupError, match="of 6"):
        sj.run(scenario, progress=refuse)


@pytest.mark.parametrize("table", CATALOGUE, ids=lambda table: table["name"])
def test_a_table_has_the_columns_of_the_catalogue(table: dict[str, Any], result: sj.Result) -> None:
    frame = getattr(result, table["name"])
    assert frame.columns == [column["name"] for column in table["columns"]]
    for column in table["columns"]:
        assert frame[column["name"]].dtype in POLARS[column["type"]], column["name"]
        assert column["nullable"] or frame[column["name"]].null_count() == 0, column["name"]


@pytest.mark.parametrize("table", CATALOGUE, ids=lambda table: table["name"])
def test_help_and_the_reference_describe_every_column(table: dict[str, Any]) -> None:
    documented = str(getattr(sj.Result, table["name"]).__doc__)
    columns = re.findall(r"^ *(\w+) : (?:str|int|float|bool)$", documented, re.MULTILINE)
    assert columns == [column["name"] for column in table["columns"][2:]]
    page = (ROOT / "docs" / "reference" / "columns.md").read_text(encoding="utf-8")
    section = page.split(f"## `{table['name']}`\n")[1].split("\n## ")[0]
    plain = re.sub(r"\s+", " ", documented.replace("``", "`"))
    for column in table["columns"][2:]:
        assert column["description"] in plain, column["name"]
        assert f" {column['unit']} | {column['description']} |".replace("  ", " ") in section


def test_every_table_is_in_the_catalogue(result: sj.Result) -> None:
    assert [table["name"] for table in CATALOGUE] == result._outcome.table_names  # noqa: SLF001


def test_progress_hears_of_simulated_time_before_a_run_ends(scenario: sj.Scenario) -> None:
    class Progress:
        shares: ClassVar[list[float]] = []

        def __call__(self, finished: int, total: int) -> None:
            """Nothing finishes in time."""

        def reached(self, share: float) -> None:
            self.shares.append(share)
            if share > 0:
                raise KeyboardInterrupt

    with pytest.raises(sj.Interrupted) as interrupted:
        sj.run(scenario.replace(duration="100000s", replications=1), progress=Progress())
    assert interrupted.value.result.finished == 0
    assert 0 < Progress.shares[-1] < 0.1
