"""Names of metrics, links and groups that are checked before the first run."""

import re
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.cli.app import app
from sojourn.expectations.expectation import expectation, groups
from sojourn.expectations.judging import check_groups
from sojourn.result.naming import is_possible, queued_links

# No queue at one link; all kinds of groups.
TEXT = """
name = "named"
duration = "3s"
warmup = "1s"
rtt = "20ms"
replications = 2
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = "unlimited"
traffic = [
    { name = "bulk", type = "tcp", direction = "up" },
    { name = "call", type = "voip", direction = "up" },
    { name = "surf", type = "web", direction = "down", page = "small" },
    { name = "flood", type = "udp", direction = "down", rate = "1mbit" },
    { name = "probe", type = "ping", direction = "up" },
]
"""
NO_METRIC = 'unknown metric "sojourn_down_ms_p95"; did you mean "sojourn_up_ms_p95"?'


@pytest.fixture(scope="module")
def scenario() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


@pytest.fixture(scope="module")
def result(scenario: sj.Scenario) -> sj.Result:
    return sj.run(scenario)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "named.toml"
    written.write_text(TEXT, encoding="utf-8")
    return written


def test_links_without_a_queue_have_no_metrics(scenario: sj.Scenario, result: sj.Result) -> None:
    links = queued_links(scenario.checked)
    assert links == ["up"]
    columns = result.table().columns[2:]
    assert all(is_possible(column, links) for column in columns)
    # Only the metrics of links differ between this scenario and one with a queue at all links.
    lost = [name for name in ("down", "up") if f"sojourn_{name}_ms_p95" not in columns]
    assert lost == ["down"]
    assert not is_possible("sojourn_down_ms_p95", links)
    assert not is_possible("driver_down", links)


def test_a_link_has_metrics_if_it_has_a_queue_in_an_arm_or_at_a_point(
    scenario: sj.Scenario,
) -> None:
    links = {**scenario.links, "down": sj.Link(rate="9mbit", qdisc="pie")}
    none = {"links.down": "unlimited"}
    arms = [sj.Arm(name="fast", set=none), sj.Arm(name="slow", set={})]
    with_arms = scenario.replace(links=links, arms=arms)
    assert sorted(queued_links(with_arms.checked)) == ["down", "up"]
    assert "sojourn_down_ms_p95" in sj.run(with_arms).table().columns
    fast = with_arms.replace(arms=arms[:1])
    assert queued_links(fast.checked) == ["up"]
    assert "sojourn_down_ms_p95" not in sj.run(fast).table().columns
    assert queued_links(with_arms.checked, [none]) == ["up"]
    assert sorted(queued_links(with_arms.checked, [none, {}])) == ["down", "up"]
    slow = {"links.down": {"rate": "9mbit"}}
    assert sorted(queued_links(fast.checked, [none, slow])) == ["down", "up"]


def test_traffic_with_a_path_has_the_direction_total() -> None:
    base = sj.parking_lot(
        rate="5mbit", queues={"codel": sj.CoDel()}, duration="3s", warmup="1s", replications=1
    )
    links = queued_links(base.checked)
    columns = sj.run(base).table().columns[2:]
    assert "goodput_total_mbit_per_s" in columns
    assert all(is_possible(column, links) for column in columns)
    assert not is_possible(f"goodput_{links[0]}", links)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("sweep", "-p", "rtt=9ms,10ms", "--metric", "sojourn_down_ms_p95"), "--metric"),
        (
            ("sweep", "-p", "rtt=9ms,10ms", "--until", "sojourn_down_ms_p95 ±5 %"),
            '--until "sojourn_down_ms_p95 ±5 %"',
        ),
        (
            ("sweep", "-p", "rtt=9ms,10ms", "--expect", "sojourn_down_ms_p95 < 4"),
            '--expect "sojourn_down_ms_p95 < 4"',
        ),
        (("run", "--expect", "sojourn_down_ms_p95 < 4"), '--expect "sojourn_down_ms_p95 < 4"'),
        (
            ("tune", "-p", "rtt=uniform(9ms,20ms)", "--objective", "min sojourn_down_ms_p95"),
            '--objective "min sojourn_down_ms_p95"',
        ),
    ],
)
def test_a_metric_of_a_link_without_a_queue_is_refused_before_the_runs(
    file: Path, store: Path, words: tuple[str, ...], place: str
) -> None:
    command, *options = words
    with pytest.raises(sj.ScenarioError, match=re.escape(f"{place}: {NO_METRIC}")):
        app([command, f"{file}", *options], standalone_mode=False)
    assert not list(store.glob("*"))


def test_a_metric_of_some_points_is_accepted(file: Path) -> None:
    file.write_text(TEXT.replace('"unlimited"', '{ rate = "9mbit", qdisc = "pie" }'))
    link = 'links.down="unlimited",{rate="9mbit",qdisc="pie"}'
    words = ["sweep", f"{file}", "-p", link, "--metric", "sojourn_down_ms_p95", "--dry-run"]
    assert app(words, standalone_mode=False) == 0
    words[3] = 'links.down="unlimited"'
    with pytest.raises(sj.ScenarioError, match=re.escape(f"--metric: {NO_METRIC}")):
        app(words, standalone_mode=False)


def test_groups_are_those_of_a_run(scenario: sj.Scenario, result: sj.Result) -> None:
    found = groups(scenario)
    frames = (result.table("group"), result.table("application"))
    assert set(found) == {name for frame in frames for name in frame["group"]}
    for frame in frames:
        for name in frame["group"].unique():
            assert {"arm", "replication", "group", "kind", *found[name]} >= set(frame.columns)
    renamed = scenario.replace(
        arms=[
            sj.Arm(name="a", set={"traffic.bulk.name": "heavy"}),
            sj.Arm(name="b", set={"traffic": [sj.Tcp(name="only", direction="up")]}),
        ]
    )
    assert set(groups(renamed)) == {*found, "heavy", "only"}


@pytest.mark.parametrize(
    ("that", "said"),
    [
        ("bluk.jain < 1", 'unknown group "bluk"; expected one of bulk, call, surf, flood'),
        ("probe.jain < 1", 'unknown group "probe"; expected one of bulk, call, surf, flood'),
        ("bulk.mos_mean > 3", 'unknown metric "mos_mean"; expected one of flows, goodput_'),
        ("call.mos_maen > 3", 'unknown metric "mos_maen"; did you mean "mos_mean"?'),
    ],
)
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_groups_and_their_metrics_are_checked_before_the_runs(
    file: Path, store: Path, that: str, said: str, more: tuple[str, ...]
) -> None:
    with pytest.raises(sj.ScenarioError, match=re.escape(f'--expect "{that}": {said}')):
        app(["run", f"{file}", "--expect", that, *more], standalone_mode=False)
    file.write_text(f"{TEXT}[[expect]]\nthat = '{that}'\n", encoding="utf-8")
    with pytest.raises(sj.ScenarioError, match=re.escape(f'expect[0].that "{that}": {said}')):
        app(["test", f"{file}"], standalone_mode=False)
    assert not list(store.glob("*"))


def test_known_groups_are_accepted(scenario: sj.Scenario) -> None:
    for text in ("bulk.goodput_mbit_per_s_mean > 1", "call.mos_mean > 1", "flood.loss < 1"):
        check_groups([expectation(text)], groups(scenario))


@pytest.mark.parametrize("command", ["sweep", "test"])
def test_an_error_of_until_during_the_runs_names_the_key_of_the_table(
    file: Path, command: str
) -> None:
    # One flow has no index of Jain.
    tables = '[sweep]\nuntil = "jain_up ±5 %"\nparameters.rtt = ["9ms", "10ms"]\n'
    file.write_text(f'{TEXT}{tables}[[expect]]\nthat = "drops < 1e6"\n', encoding="utf-8")
    with pytest.raises(
        sj.ScenarioError, match=r'^\S*named.toml: sweep\.until "jain_up ±5 %": .* \(line '
    ) as error:
        app([command, f"{file}"], standalone_mode=False)
    assert "--until" not in f"{error.value}"
    words = ["sweep", f"{file}", "--until", "jain_up ±5 %"]
    with pytest.raises(sj.ScenarioError, match=r"^--until"):
        app(words, standalone_mode=False)
