"""The tables of ``benches/agreement.py``, without a live run."""

import importlib.util

import sojourn as sj
from support.shell import ROOT


def test_each_row_of_the_comparison_is_a_line() -> None:
    spec = importlib.util.spec_from_file_location("bench", ROOT / "benches/agreement.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    scenario = bench.scenario("cubic", "10mbit", seconds=7, replications=1)
    result = sj.run(scenario)
    lines = [bench.line(row) for row in bench.rows(sj.Agreement(result, result))]
    # Goodput and ping of four queues.
    assert len(lines) == 8
    for line in lines:
        _, queue, _, simulated, measured, _, share, _, _ = (
            cell.strip() for cell in line.split("|")
        )
        assert queue in bench.QUEUES
        assert simulated == measured
        assert float(simulated) > 0
        assert share == "+0.0 %"
