"""A sweep of a million points: none is kept, and one that does not fit into memory is refused."""

import gc
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.execute.points import PointGroup, grouped
from sojourn.sweeps.run import SweepPlan, prepared
from support.shell import environment
from support.swept import ARMS, TEXT

MILLION = {
    "rtt": "linspace(10ms,100ms,100)",
    "links.up.qdisc.target": "linspace(1ms,20ms,100)",
    "links.up.rate": "linspace(1mbit,20mbit,100)",
}


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


def test_points_and_groups_are_made_when_they_are_used(base: sj.Scenario) -> None:
    tracemalloc.start()
    planned = prepared(SweepPlan(base, MILLION, max_memory="100gb"), dry=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6
    assert len(planned.points) == 1_000_000
    assert dict(planned.points[-1].values) == {
        "rtt": "100ms",
        "links.up.qdisc.target": "20ms",
        "links.up.rate": "20mbit",
    }
    assert [point.label for point in planned.points[101:103]] == [
        planned.points[101].label,
        planned.points[102].label,
    ]
    runs = 0
    for group in grouped(base, planned.points[:3_000], 1):
        runs += len(group.arms)
        # The one in hand, and none before it.
        assert sum(isinstance(one, PointGroup) for one in gc.get_objects()) == 1
    assert runs == 3_000


def test_equal_samples_are_one_arm_wherever_they_are(base: sj.Scenario) -> None:
    given = {"traffic.bulk.count": "integers(1,3)", "rtt": "10ms,20ms"}
    planned = prepared(SweepPlan(base, given, sampling="lhs:40"))
    arms = [arm for group in planned.groups for arm in group.arms]
    assert len(arms) == 6
    assert sorted(number for arm in arms for number in arm.points) == list(range(80))
    labels = [{planned.points[number].label for number in arm.points} for arm in arms]
    assert [len(one) for one in labels] == [1] * 6
    assert len(set.union(*labels)) == 6
    assert planned.estimate(jobs=1, max_memory=None)["runs"] == planned.runs == 12


def test_conditions_select_points(base: sj.Scenario) -> None:
    planned = prepared(
        SweepPlan(
            base, {"rtt": "5ms,10ms,20ms", "links.up.rate": "1mbit,2mbit"}, where=["rtt > 7ms"]
        )
    )
    assert [point.values["rtt"] for point in planned.points] == ["10ms"] * 2 + ["20ms"] * 2
    assert [point.values["rtt"] for point in planned.points[1:3]] == ["10ms", "20ms"]


def test_points_that_do_not_fit_into_memory_are_refused_before_they_are_made() -> None:
    rule = "max_memory='1000mb': too little for the scenarios and metrics of 1000000 points, .* GB"
    with pytest.raises(sj.ScenarioError, match=rule) as error:
        sj.sweep(sj.Scenario.from_toml(TEXT + ARMS), MILLION, max_memory="1000mb")
    assert "\n" not in f"{error.value}"


def test_the_estimate_contains_the_scenarios_of_all_points(base: sj.Scenario) -> None:
    few, many = (
        prepared(SweepPlan(base, {"rtt": f"linspace(10ms,20ms,{count})"}), dry=True)
        for count in (2, 2_000)
    )
    peaks = [one.estimate(jobs=1, max_memory=None)["peak_memory_bytes"] for one in (few, many)]
    assert peaks[1] - peaks[0] > 1_990 * 4_000


# The peak of the program itself: that of `wait4` includes the process that started it.
MEASURED = """
import pathlib, runpy, sys
try:
    runpy.run_module("sojourn", run_name="__main__", alter_sys=True)
finally:
    print(pathlib.Path("/proc/self/status").read_text(), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_a_dry_run_of_a_million_points_needs_less_than_300_mb(tmp_path: Path) -> None:
    file, output = tmp_path / "swept.toml", tmp_path / "output"
    file.write_text(TEXT.replace("replications = 2", "replications = 1"), encoding="utf-8")
    given = [word for path, values in MILLION.items() for word in ("-p", f"{path}={values}")]
    words = ["sweep", f"{file}", "--dry-run", *given, "--max-memory", "100gb"]
    with output.open("w") as written:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *words],
            env=environment(),
            stdout=written,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    (peak_kb,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stderr)
    assert int(peak_kb) * 1_024 < 300e6
    assert "1000000 points, 1 arm, 1000000 runs" in output.read_text(encoding="utf-8")


def test_the_estimate_is_that_of_the_place(base: sj.Scenario) -> None:
    planned = prepared(SweepPlan(base, {"rtt": "10ms,20ms"}))
    simulated, in_kernel = (
        planned.estimate(jobs=1, max_memory=None, backend=place) for place in (None, "linux-6.12")
    )
    assert in_kernel["runs"] == simulated["runs"]
    # Each run boots a kernel.
    assert in_kernel["cpu_s"] > in_kernel["runs"] > simulated["cpu_s"]
