"""What ``benches/live.py`` accepts as a result, without a live run."""

import importlib.util
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest

from support.shell import ROOT

SECONDS = 11
RATE_MBIT = 100.0


@pytest.fixture
def bench() -> ModuleType:
    """The module, which is a script."""
    spec = importlib.util.spec_from_file_location("bench_live", ROOT / "benches/live.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(
    share: float = 1.0,
    lost: int = 0,
    *,
    late: bool = False,
    above_ms: float = 0.1,
    load_percent: int = 20,
) -> Any:
    """A run on a link of 100 Mbit/s that carried this share of its rate."""
    values = {
        "datapath_cpu": f"{load_percent} % of a processor",
        "datapath_lateness": "median 0 us",
        "lost_outside_queue": f"{lost} of 1000 packets",
    }
    facts = [
        {"name": name, "value": value, "passed": not (late and name == "datapath_lateness")}
        for name, value in values.items()
    ]
    sent = int(share * RATE_MBIT * 1e6 / 8 * (SECONDS - 1))
    flows = {"ping_ms_median": [10 + above_ms], "ping_ms_p99": [10 + 4 * above_ms]}
    return SimpleNamespace(
        links=pl.DataFrame({"link": ["down"], "sent_bytes": [sent]}),
        flows=pl.DataFrame({**flows, "goodput_mbit_per_s": [95.0]}),
        provenance={"validity": facts},
    )


@pytest.mark.parametrize(
    ("run", "is_carried"),
    [
        (result(), True),
        (result(share=0.98), False),
        (result(lost=1), False),
        (result(late=True), False),
    ],
)
def test_a_link_is_carried_only_by_a_valid_run(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, run: Any, *, is_carried: bool
) -> None:
    monkeypatch.setattr(bench, "run", lambda *_, **__: run)
    found = bench.carried("pfifo", RATE_MBIT, SECONDS)
    assert found == ("20 % of a processor" if is_carried else None)


def test_datagrams_at_a_gigabit_need_one_valid_run(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = iter([None, "32 % of a processor"])
    monkeypatch.setattr(bench, "carried", lambda _, mbit, __: next(runs) if mbit == 1_000 else "")
    assert bench.datagrams("pfifo", SECONDS) == ["pfifo", "32 % of a processor", bench.MET]
    monkeypatch.setattr(bench, "carried", lambda *_: None)
    assert bench.datagrams("pfifo", SECONDS) == ["pfifo", "invalid", bench.MISSED]


@pytest.mark.parametrize(("limit", "least", "most"), [(40, None, None), (900, 900 / 1.1, 900)])
def test_the_fastest_link_is_found_or_there_is_none(
    bench: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    limit: float,
    least: float | None,
    most: float | None,
) -> None:
    monkeypatch.setattr(bench, "carried", lambda _, mbit, __: "9 %" if mbit <= limit else None)
    _, mbit, packets, load = bench.fastest("pfifo", SECONDS)
    if least is None or most is None:
        assert (mbit, packets, load) == ("none", "none", "none")
    else:
        assert least <= float(mbit) <= most
        assert load == "9 %"


def test_a_missed_bound_ends_the_bench_with_code_1(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates, rtts, queues, rows_of_udp = ([[bench.MET]] for _ in range(4))
    monkeypatch.setattr("sys.argv", ["live.py"])
    monkeypatch.setattr(bench, "shaped_rate", lambda *_: rates[0])
    monkeypatch.setattr(bench, "idle_ping", lambda *_: rtts[0])
    monkeypatch.setattr(bench, "fastest", lambda *_: ["pfifo", "none", "none", "none"])
    monkeypatch.setattr(bench, "datagrams", lambda *_: rows_of_udp[0])
    monkeypatch.setattr(bench, "bulk", lambda *_: queues[0])
    monkeypatch.setattr(bench, "htb", lambda *_: ["1gbit"])
    assert bench.main() == 0
    for rows in (rates, rtts, queues, rows_of_udp):
        rows[0] = [bench.MISSED]
        assert bench.main() == 1
        assert "miss a bound" in capsys.readouterr().err
        rows[0] = [bench.MET]


@pytest.mark.parametrize(
    ("run", "verdicts"),
    [
        (result(), ["yes", "yes", "yes"]),
        (result(share=0.9951), ["yes", "yes", "yes"]),
        (result(share=0.994), ["no", "yes", "yes"]),
        (result(share=1.006), ["no", "yes", "yes"]),
        (result(load_percent=21), ["no", "yes", "yes"]),
        (result(above_ms=0.21), ["yes", "no", "yes"]),
        (result(lost=1), ["yes", "yes", "no"]),
    ],
)
def test_each_bound_has_a_verdict(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, run: Any, verdicts: list[str]
) -> None:
    monkeypatch.setattr(bench, "run", lambda *_, **__: run)
    rows = (
        bench.shaped_rate("100mbit", SECONDS),
        bench.idle_ping("10ms", SECONDS),
        bench.bulk("pfifo", SECONDS),
    )
    for row, verdict in zip(rows, verdicts, strict=True):
        assert [word for word in row if word in {bench.MET, bench.MISSED}] == [verdict]
