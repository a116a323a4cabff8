"""The core as Python sees it: errors, tables, threads and Ctrl-C."""

import json
import math
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from sojourn import _core

SCENARIO = """
duration = "4s"
warmup = "1s"
replications = 2
rtt = "20ms"
links.up = { rate = "5mbit", qdisc = "fq_codel" }
links.down = "unlimited"
traffic = [
    { type = "tcp", direction = "up" },
    { type = "ping", direction = "up" },
    { type = "udp", direction = "down", rate = "1mbit" },
]
arms = [{ name = "fq_codel" }, { name = "pfifo", set = { links.up.qdisc = "pfifo" } }]
"""

LONG = SCENARIO.replace('"4s"', '"100000s"').replace('"fq_codel" }', '"pfifo" }', 1)


@pytest.fixture(scope="module")
def outcome() -> _core.Outcome:
    return _core.run(_core.Scenario.from_toml(SCENARIO))


def test_a_scenario_tells_what_it_is() -> None:
    scenario = _core.Scenario.from_toml(SCENARIO)
    again = _core.Scenario.from_json(scenario.to_json())
    assert scenario == again
    assert hash(scenario) == hash(again)
    assert scenario != "a scenario"
    assert scenario != _core.Scenario.from_toml(SCENARIO + "seed = 2")
    assert scenario.arms == ["fq_codel", "pfifo"]
    assert (scenario.duration_s, scenario.warmup_s, scenario.replications) == (4.0, 1.0, 2)
    assert len(scenario.hash) == len("f") * 64


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: _core.Scenario.from_toml("rat = 1"), _core.ScenarioError, "rat: unknown key"),
        (lambda: _core.parse_time_s("5"), _core.ScenarioError, "the unit is missing"),
        (lambda: _core.parse_qdisc("codle"), _core.ScenarioError, 'did you mean "codel"?'),
        (lambda: _core.Outcome.load("/nowhere"), _core.ResultError, "does not exist; expected"),
        (lambda: _core.bootstrap_means([[]]), _core.SojournError, "no values"),
        (lambda: _core.bootstrap_means([["x"]]), TypeError, "must be real number"),
        (lambda: _core.Scenario.from_toml("\udce4"), UnicodeEncodeError, "surrogates"),
    ],
)
def test_errors_are_of_one_tree_and_one_line(call, error, message) -> None:
    with pytest.raises(error, match=message.replace("?", r"\?")) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b\u00e9", "a\\u001b\u00e9"),
        # A name of a file that is not UTF-8, as Python decodes it.
        ("b\udcff.toml", "b\ufffd.toml"),
        ("b\ud800", "b\ufffd\ufffd\ufffd"),
    ],
)
def test_every_text_can_be_shown(text: str, shown: str) -> None:
    assert _core.printable(text) == shown
    assert _core.message(text) == shown


def test_jobs_are_at_least_one() -> None:
    scenario = _core.Scenario.from_toml(SCENARIO)
    for jobs in (0, -1):
        with pytest.raises(_core.ScenarioError, match="at least 1"):
            _core.run(scenario, jobs=jobs)


def test_pyarrow_takes_the_tables(outcome: _core.Outcome) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    for name in outcome.table_names:
        assert pyarrow.table(outcome.table(name)).num_rows == len(outcome.table(name))


def test_polars_takes_the_tables(outcome: _core.Outcome) -> None:
    for name in outcome.table_names:
        table = outcome.table(name)
        frame = pl.DataFrame(table)
        assert frame.height == table.num_rows == len(table)
        assert frame.columns == table.column_names
        assert frame.columns[:2] == ["arm", "replication"]
    flows = pl.DataFrame(outcome.table("flows"))
    assert flows.height == 2 * 2 * 3
    assert flows.filter(kind="ping")["goodput_mbit_per_s"].is_null().all()
    assert flows.filter(kind="tcp")["goodput_mbit_per_s"].is_between(4.0, 5.0).all()


def test_a_table_outlives_its_outcome() -> None:
    table = _core.run(_core.Scenario.from_toml(SCENARIO)).table("link_series")
    unused = table.__arrow_c_stream__()
    del unused
    assert pl.DataFrame(table)["t_s"].max() == pytest.approx(4.0)


def test_a_result_is_read_back(outcome: _core.Outcome, tmp_path: Path) -> None:
    outcome.save(tmp_path / "result")
    read = _core.Outcome.load(str(tmp_path / "result"))
    assert read.manifest == outcome.manifest
    assert json.loads(read.manifest)["complete"] is True
    for name in outcome.table_names:
        assert pl.DataFrame(read.table(name)).equals(pl.DataFrame(outcome.table(name)))


def test_progress_is_reported_in_the_calling_thread() -> None:
    reported: list[tuple[int, int, int]] = []
    scenario = _core.Scenario.from_toml(SCENARIO)
    _core.run(scenario, progress=lambda n, of: reported.append((n, of, threading.get_ident())))
    assert reported[-1] == (4, 4, threading.get_ident())
    assert reported == sorted(reported)


def test_an_exception_of_progress_ends_the_run() -> None:
    text = LONG.replace('"pfifo" } }]', '"pfifo", duration = "2s" } }]')
    with pytest.raises(ZeroDivisionError):
        _core.run(_core.Scenario.from_toml(text), jobs=4, progress=lambda n, _: n // 0)


def test_other_threads_go_on_while_a_scenario_runs() -> None:
    beats = 0
    done = threading.Event()

    def count() -> None:
        nonlocal beats
        while not done.wait(0.005):
            beats += 1

    thread = threading.Thread(target=count)
    thread.start()
    text = SCENARIO.replace('"4s"', '"2000s"').replace('"5mbit"', '"50mbit"')
    start = time.monotonic()
    _core.run(_core.Scenario.from_toml(text), jobs=1)
    elapsed = time.monotonic() - start
    done.set()
    thread.join()
    assert beats > 0.2 * elapsed / 0.005


def test_ctrl_c_keeps_what_has_finished() -> None:
    text = LONG.replace('"pfifo" } }]', '"pfifo", duration = "2s" } }]')
    program = textwrap.dedent(f"""
        import threading, time
        from sojourn import _core
        scenario = _core.Scenario.from_toml({text!r})
        print("ready", flush=True)
        outcome = _core.run(scenario, jobs=4, progress=lambda n, _: print(n, flush=True))
        print("ended", outcome.complete, outcome.finished, outcome.total, flush=True)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "2":
                break
        interrupted = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(timeout=30) == 0
    assert time.monotonic() - interrupted < 5.0
    assert "ended False 2 4" in rest


def test_one_value_has_no_interval() -> None:
    ((mean, low, high),) = _core.bootstrap_means([[2.0]])
    assert mean == 2.0
    assert math.isnan(low)
    assert math.isnan(high)
    frame = pl.Series([1.0, 2.0, 3.0, 4.0])
    assert _core.bootstrap_means([frame]) == _core.bootstrap_means([[1.0, 2.0, 3.0, 4.0]])


def test_the_catalogue_reads_as_documented() -> None:
    for queue in json.loads(_core.qdisc_catalogue()):
        assert set(queue) == {
            "name",
            "page",
            "class",
            "summary",
            "source",
            "reconstruction",
            "profiles",
            "parameters",
            "tc_statistics",
        }
        assert _core.parse_qdisc(queue["name"])
        for parameter in queue["parameters"]:
            # Lists of entries, such as the classes of htb, have parameters of their own.
            assert set(parameter) - {"parameters"} == {
                "key",
                "unit",
                "default",
                "derived",
                "min",
                "max",
                "range",
                "choices",
                "meaning",
                "provenance",
            }
