"""Agreement of simulated and live runs: the comparison, its page, the command and a real run."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core
from sojourn.agreement import agreement as module
from sojourn.agreement import wording
from sojourn.agreement.comparison import (
    DELAY,
    GOODPUT,
    OF_APPLICATIONS,
    OF_GROUPS,
    TOLERANCES,
    interval,
    tolerance,
    verdict,
)
from sojourn.agreement.page import Overlay
from sojourn.cli import continued
from sojourn.cli.app import app
from sojourn.plot import curves
from sojourn.presentation.model import plain
from sojourn.result.catalogue import shown
from sojourn.result.naming import described
from support.live_runs import need_live_runs
from support.shell import ROOT, Command

LIVE = """
name = "short"
duration = "5s"
warmup = "1s"
rtt = "20ms"
[links.down]
rate = "10mbit"
qdisc = "fq_codel"
[links.up]
rate = "10mbit"
qdisc = "fq_codel"
[[traffic]]
type = "tcp"
direction = "down"
cc = "cubic"
[[traffic]]
type = "ping"
direction = "up"
interval = "20ms"
"""


class Stand(sj.Result):
    """A simulated result that stands for a live one, with facts of a live backend."""

    def __init__(self, result: sj.Result, facts: list[dict[str, Any]]) -> None:
        self._result = result
        self._outcome = result._outcome  # noqa: SLF001 - metrics are computed from it
        self.facts = facts

    @property
    def provenance(self) -> dict[str, Any]:
        """The provenance with the facts, and where the runs took place."""
        backend = {"name": "live", "kernel": "6.1.0-<test>", "version": "0.1.0"}
        return self._result.provenance | {"validity": self.facts, "backend": backend}

    @property
    def manifest_sha256(self) -> str | None:
        """It is not saved."""
        return None

    @property
    def finished(self) -> int:
        """All runs."""
        return self._result.finished

    @property
    def total(self) -> int:
        """All runs."""
        return self._result.total

    @property
    def complete(self) -> bool:
        """It is."""
        return True

    def _frame(self, name: str) -> pl.DataFrame:
        frame: pl.DataFrame = getattr(self._result, name)
        return frame

    def save_claimed(self, claim: _core.Claim) -> None:
        """Save the result that it stands for."""
        self._result.save_claimed(claim)


def fact(arm: str, name: str, *, passed: bool) -> dict[str, Any]:
    return {
        "arm": arm,
        "replication": 1,
        "name": name,
        "value": "p99 <4> ms",
        "passed": passed,
    }


FACTS = [
    fact("fifo", "datapath_cpu", passed=True),
    fact("fq", "datapath_lateness", passed=False),
]


@pytest.fixture(scope="module")
def live(scenario: sj.Scenario) -> Stand:
    """The same runs, one arm with a failed check."""
    return Stand(sj.run(scenario, seed=1), FACTS)


@pytest.fixture(scope="module")
def compared(result: sj.Result, live: Stand) -> sj.Agreement:
    """Both results, which are equal."""
    return sj.Agreement(result, live)


def test_equal_results_agree(compared: sj.Agreement, result: sj.Result) -> None:
    table = compared.table
    judged = table.filter(pl.col("tolerance").is_not_null())
    assert judged.height > 10
    assert set(judged["difference"]) == {0.0}
    assert table["n_measured"].eq(table["n_simulated"]).all()
    # Some metrics vary so much from run to run that three runs do not decide.
    assert set(judged["verdict"]) <= {"agrees", "undecided"}
    goodput = table.filter(arm="fifo", metric="goodput_down_mbit_per_s")
    mean = result.summary().filter(arm="fifo", metric="goodput_down_mbit_per_s")["mean"].item()
    assert goodput["simulated"].item() == pytest.approx(mean)
    assert goodput["tolerance"].item() == pytest.approx(0.05 * mean)
    assert goodput["low"].item() <= 0.0 <= goodput["high"].item()


def test_counts_and_shares_have_no_verdict(compared: sj.Agreement) -> None:
    without = compared.table.filter(pl.col("verdict").is_null())
    assert {"drops", "marks", "data_share_percent", "retransmit_percent"} <= set(without["metric"])
    assert without["tolerance"].null_count() == without.height
    assert without["difference"].null_count() == 0
    assert not {"ms", "s", "Mbit/s"} & set(without["unit"])


def test_groups_are_compared_if_there_are_several(compared: sj.Agreement) -> None:
    groups = compared.table.drop_nulls("group")
    assert set(groups["group"]) == {"tcp up", "tcp down"}
    assert "goodput_mbit_per_s_mean" in groups["metric"]


def test_one_group_repeats_no_metric_of_the_run() -> None:
    result = sj.run(sj.Scenario.from_toml(LIVE))
    table = sj.Agreement(result, Stand(result, [])).table
    of_group = set(table.drop_nulls("group")["metric"])
    assert of_group == {"rtt_inflation_ms_mean", "retransmit_percent"}
    # One run has no interval; the verdict is that of the difference.
    assert table["low"].null_count() == table.height
    assert set(table.drop_nulls("tolerance")["verdict"]) == {"agrees"}
    assert "with one run there is no interval" in wording.note(table, "live")


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.0, None, None, 1.0), "agrees"),
        ((1.0, None, None, 1.0), "agrees"),
        ((-1.1, None, None, 1.0), "differs"),
        ((0.5, 0.1, 0.9, 1.0), "agrees"),
        ((0.5, -0.1, 1.1, 1.0), "undecided"),
        ((0.0, -3.0, 3.0, 1.0), "undecided"),
        ((-2.0, -3.0, -1.0, 1.0), "undecided"),
        ((-2.0, -3.0, -1.1, 1.0), "differs"),
        ((2.0, 1.1, 3.0, 1.0), "differs"),
    ],
)
def test_an_interval_across_the_tolerance_is_undecided(
    numbers: tuple[float, float | None, float | None, float], expected: str
) -> None:
    assert verdict(*numbers) == expected


def test_runs_are_not_paired() -> None:
    # Paired, every difference is 1 and the interval has no width.
    low, high = interval([1.0, 5.0, 9.0], [2.0, 6.0, 10.0])
    assert low is not None
    assert high is not None
    assert low < -3.0
    assert high > 5.0
    assert interval([1.0, 2.0, 3.0], [7.0]) == (None, None)
    assert interval([], [7.0, 8.0]) == (None, None)


def test_every_metric_has_the_tolerance_of_its_unit() -> None:
    goodput, ping, drops, jain = described(
        ["goodput_up_mbit_per_s", "ping_ms_p99", "drops", "jain_up"]
    )
    assert tolerance(goodput) is GOODPUT
    assert tolerance(ping) is DELAY
    assert tolerance(drops) is tolerance(jain) is None
    assert DELAY.of(50.0, "ms") == pytest.approx(5.0)
    assert DELAY.of(0.001, "s") == pytest.approx(0.001)
    assert GOODPUT.of(-10.0, "Mbit/s") == pytest.approx(0.5)
    # The bit rate of a video is one of a few rates.
    (rate,) = [one for one in shown("application") if one.column == "bitrate_mbit_per_s_mean"]
    assert tolerance(rate) is None


def test_named_metrics_of_groups_exist() -> None:
    assert set(OF_GROUPS) <= {one.column for one in shown("group")}
    assert set(OF_APPLICATIONS) <= {one.column for one in shown("application")}


def _without(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    return frame.drop(column, strict=False)


def test_a_metric_that_one_side_lacks_is_not_measured(
    result: sj.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Stand(result, [])
    monkeypatch.setattr(lost, "table", lambda by="run": _without(result.table(by), "ping_ms_p99"))
    table = sj.Agreement(result, lost).table.filter(metric="ping_ms_p99", arm="fq")
    assert table["verdict"].item() == "not measured"
    assert table["measured"].item() is table["difference"].item() is None
    ((cells,),) = [part.rows for part in wording.tables(table, "live")]
    assert [plain(cell) for cell in cells[2:4]] == ["–", "–"]


def test_arms_with_a_failed_check_are_marked(compared: sj.Agreement) -> None:
    (failed,) = compared.failed_checks
    assert (failed.arm, failed.replication, failed.name) == ("fq", 1, "datapath_lateness")
    marked = compared.table.filter(pl.col("valid").not_())
    assert set(marked["arm"]) == {"fq"}
    (table,) = wording.tables(marked, "live")
    assert all(plain(cells[-1]).endswith("[invalid]") for cells in table.rows)


def test_results_may_differ_in_their_numbers_of_runs() -> None:
    scenario = sj.Scenario.from_toml(LIVE)
    simulated = sj.run(scenario.replace(replications=3))
    compared = sj.Agreement(simulated, sj.run(scenario.replace(replications=2)))
    assert set(compared.table["n_simulated"]) == {3}
    assert set(compared.table["n_measured"]) == {2}
    assert "agrees" in set(compared.table["verdict"])
    assert "<html" in compared.to_html()


def test_results_of_different_scenarios_are_refused(result: sj.Result) -> None:
    other = sj.run(sj.Scenario.from_toml(LIVE))
    with pytest.raises(sj.ResultError, match="different scenarios"):
        sj.Agreement(result, other)


def test_figures_show_both_under_their_names(result: sj.Result, live: Stand) -> None:
    overlay = Overlay(result, live, "fifo")
    assert [curve.arm for curve in curves.over_time(overlay, curves.ping_times(overlay))] == [
        "simulated",
        "live",
    ]
    first, second = curves.sojourn_cdfs(overlay, "up")
    assert first.x == second.x
    (only,) = [one for one in curves.sojourn_cdfs(result, "up") if one.arm == "fifo"]
    assert first.x == only.x


def test_the_page_has_tables_and_figures_and_no_scripts(compared: sj.Agreement) -> None:
    page = compared.to_html()
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "<script" not in page
    for text in ("Validity of live runs: invalid", "fifo: Over time", "fq: Distributions"):
        assert text in page
    for title in ("Ping", "Goodput up", "Sojourn time, up", "RTT of connections"):
        assert page.count(f"<figcaption>{title}</figcaption>") == 2
    assert "p99 &lt;4&gt; ms" in page
    assert "6.1.0-&lt;test&gt;" in page
    assert "<4>" not in page
    # Every arm has its table, with a cell per column.
    for arm in compared.simulated.arms:
        head, *rows = re.findall(
            r"<tr>(.*?)</tr>", page.split(f"<h3>{arm}</h3>")[1].split("</table>")[0]
        )
        assert re.findall(r">([^<]+)</th>", head) == list(wording.head("live"))
        assert len(rows) == compared.table.filter(arm=arm).height
        assert {row.count("</td>") + row.count("</th>") for row in rows} == {
            len(wording.head("live"))
        }
        assert all(("[invalid]" in row) == (arm == "fq") for row in rows)
    # Both are toggled for all arms of the scenario.
    assert page.count('type="checkbox"') == 2
    assert all(one.reason.split(";")[0] in page for one in TOLERANCES)


def test_notebooks_show_the_table(compared: sj.Agreement) -> None:
    shown = compared._repr_html_()
    assert "goodput down [Mbit/s]" in shown
    assert "datapath_lateness" in shown
    assert re.search(r"\d+ of \d+ metrics? agree", repr(compared))


def test_the_page_replaces_only_reports(compared: sj.Agreement, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("mine")
    with pytest.raises(sj.ResultError, match="not a Sojourn report"):
        compared.save(file)
    file.unlink()
    compared.save(file)
    compared.save(file)
    assert "simulated and live" in file.read_text(encoding="utf-8")


def refusal(scenario: sj.Scenario) -> str:
    with pytest.raises(sj.ScenarioError) as refused:
        module.check(scenario, ["live"])
    return str(refused.value)


def test_arms_that_cannot_run_live_are_named() -> None:
    if "live" not in _core.backend_names():
        pytest.skip("this build has no live backend")
    base = sj.Scenario.from_toml(LIVE)
    quic = base.replace(
        traffic=[sj.Quic(direction="up")],
        arms=[sj.Arm(name="a", set={}), sj.Arm(name="b", set={"links.up.qdisc": "codel"})],
    )
    said = refusal(quic)
    assert 'backend "live" does not support traffic[0].type (arm "a")' in said
    assert '(arm "b")' in said
    one = base.replace(
        arms=[
            sj.Arm(name="good", set={"links.up.qdisc": "codel"}),
            sj.Arm(name="bad", set={"traffic.tcp down.cc": "ledbat"}),
        ]
    )
    assert '(arm "bad")' in refusal(one)
    assert '"good"' not in refusal(one)
    program = base.replace(
        traffic=[sj.Program(name="p", command=["true"], direction="up")], arms=[]
    )
    assert 'backend "sim" does not support' in refusal(program)


def test_a_build_without_live_runs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "backend_names", lambda: ["sim"])
    with pytest.raises(_core.UnavailableError, match="live runs need Linux"):
        sj.agree(sj.Scenario.from_toml(LIVE))


@pytest.fixture
def pretended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Path
) -> Iterator[Callable[..., int]]:
    """The command, whose live runs are simulated and fail a check if wanted."""
    file = tmp_path / "a.toml"
    file.write_text(LIVE)
    facts: list[dict[str, Any]] = []
    real = continued.run

    def run(scenario: sj.Scenario, *, backend: str, **options: Any) -> Any:
        execution = real(scenario, backend="sim", **options)
        if backend == "sim":
            return execution
        stand = Stand(execution.result, facts)
        return continued.KeptResult(stand, execution.invocation)

    monkeypatch.setattr(continued, "run", run)
    monkeypatch.setattr(module, "check", lambda *_: None)

    def agree(*options: str, failed: bool = False) -> int:
        facts[:] = [fact("default", "datapath_lateness", passed=not failed)]
        code: int = app(["agree", str(file), *options], standalone_mode=False)
        return code

    yield agree
    assert not list(store.rglob("*.runs"))


def test_the_command_prints_and_saves(
    pretended: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "out", tmp_path / "pages" / "a.html"
    code = pretended("--replications", "2", "--out", str(out), "--report", str(report))
    shown = capsys.readouterr()
    assert code == 0
    assert "goodput down [Mbit/s]" in shown.out
    assert re.match(r"Simulated and live: \d+ of \d+ metrics agree", shown.out)
    assert f"wrote report to {report}" in shown.err
    assert (out / "agreement.html").read_bytes() == report.read_bytes()
    first, second = (sj.Result.load(out / name) for name in ("sim", "live"))
    assert first.complete
    again = sj.Agreement(first, second)
    assert set(again.table["n_measured"]) == {2}
    with pytest.raises(sj.ResultError, match="contains a result"):
        pretended("--out", str(out))
    assert pretended("--out", str(out), "--force") == 0


def test_an_invalid_live_run_is_named_and_strict_ends_with_code_4(
    pretended: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert pretended("--strict") == 0
    capsys.readouterr()
    assert pretended(failed=True) == 0
    shown = capsys.readouterr()
    assert "agrees [invalid]" in shown.out
    line = "error: default: live replication 1 is invalid: datapath_lateness: p99 <4> ms"
    assert shown.err.count(line) == 1
    assert pretended("--strict", failed=True) == 4


def test_json_has_the_table_and_the_validity_of_both(
    pretended: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert pretended("--json", failed=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["validity"]["measured"]["verdict"] == "invalid"
    assert document["failed_checks"][0]["name"] == "datapath_lateness"
    assert document["backend"]["name"] == "live"
    assert {row["verdict"] for row in document["agreement"]} == {"agrees", None}


def test_the_guide_states_the_tolerances() -> None:
    text = (ROOT / "docs/howto/compare-simulated-and-live.md").read_text(encoding="utf-8")
    for one in TOLERANCES:
        assert f"| {one.quantity} | {one} |" in text


def test_a_real_live_run_agrees_in_goodput(sojourn: Command, tmp_path: Path) -> None:
    need_live_runs()
    (tmp_path / "a.toml").write_text(LIVE)
    done = sojourn("agree", "a.toml", "--json", "--out", "both")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    rows = {row["metric"]: row for row in document["agreement"] if row["group"] is None}
    assert rows["goodput_down_mbit_per_s"]["measured"] > 5.0
    assert rows["ping_ms_p95"]["measured"] > 20.0
    live = sj.Result.load(tmp_path / "both" / "live")
    assert live.provenance["backend"]["name"] == "live"
    # A busy machine makes runs invalid, which proves nothing about the simulator.
    if document["validity"]["measured"]["verdict"] != "invalid":
        assert rows["goodput_down_mbit_per_s"]["verdict"] == "agrees"


def test_an_interrupt_of_the_simulation_keeps_the_live_runs(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    store: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "a.toml"
    file.write_text(LIVE)
    real = continued.run

    def run(scenario: sj.Scenario, *, backend: str, **options: Any) -> continued.KeptResult:
        if backend == "live":
            return real(scenario, backend="sim", **options)
        # Another seed: simulated runs that the store does not take for the live ones.
        return real(scenario.replace(seed=7), backend="sim", **options)

    def interrupted(scenario: sj.Scenario, *, backend: str, **options: Any) -> continued.KeptResult:
        execution = run(scenario, backend=backend, **options)
        if backend == "live":
            return execution
        monkeypatch.setattr(sj.Result, "complete", property(lambda _: False))
        monkeypatch.setattr(sj.Result, "finished", property(lambda _: 0))
        return execution

    monkeypatch.setattr(module, "check", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["sojourn", "agree", "a.toml"])
    with monkeypatch.context() as patch:
        patch.setattr(continued, "run", interrupted)
        assert app(["agree", str(file)], standalone_mode=False) == 130
    monkeypatch.undo()
    monkeypatch.setenv("SOJOURN_STORE", str(store))
    shown = capsys.readouterr()
    assert "interrupted: finished 0 of 1 simulated runs" in shown.err
    assert shown.err.count("to continue: sojourn agree a.toml") == 1
    monkeypatch.setattr(module, "check", lambda *_: None)
    monkeypatch.setattr(continued, "run", run)
    with pytest.raises(sj.ResultError, match="different scenarios"):
        app(["agree", str(file)], standalone_mode=False)
    assert "continuing: 1 of 1 live runs are stored" in capsys.readouterr().err
