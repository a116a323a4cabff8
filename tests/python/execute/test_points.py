"""Groups of points: the arms of common scenarios as points of a sweep."""

from collections.abc import Mapping, Sequence

import pytest

import sojourn as sj
from sojourn.execute.points import PointArm, PointGroup, grouped
from sojourn.execute.runs import meter
from sojourn.scenario.paths import Value
from sojourn.sweeps.space import Point

TEXT = """
name = "swept"
duration = "4s"
warmup = "1s"
rtt = "20ms"
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo" }
traffic = [{ name = "bulk", type = "tcp", direction = "up" }]
"""
BASE = sj.Scenario.from_toml(TEXT)
ARMS = BASE.replace(
    arms=[sj.Arm(name="codel", set={}), sj.Arm(name="pie", set={"links.up.qdisc": "pie"})]
)


def built(
    changes: Sequence[Mapping[str, Value]], most: int = 1, of: sj.Scenario = BASE
) -> list[PointGroup]:
    return list(grouped(of, [Point(one, one) for one in changes], most))


def test_arms_are_named_by_what_they_are() -> None:
    (group,) = built([{"rtt": "10ms"}, {"rtt": "30ms"}], of=ARMS)
    assert group.scenario.arms == [
        f"{arm} (rtt={rtt})" for rtt in ("10ms", "30ms") for arm in ("codel", "pie")
    ]
    assert group.arms == tuple(PointArm((n,), arm) for n in (0, 1) for arm in ("codel", "pie"))
    # A search begins with the scenario itself.
    assert built([{}])[0].scenario.arms == ["default"]


def test_equal_points_are_one_arm() -> None:
    (group,) = built([{"rtt": "10ms"}, {"rtt": "30ms"}, {"rtt": "10ms"}])
    assert group.arms == (PointArm((0, 2), "default"), PointArm((1,), "default"))
    assert len(group.runs(range(2), 0, 1)) == 2


def test_runs_with_other_metrics_or_durations_have_their_own_group() -> None:
    found = built(
        [
            {"duration": duration, "traffic.bulk.count": count, "links.up.rate": rate}
            for duration in ("2s", "3s")
            for count in (1, 2)
            for rate in ("1mbit", "2mbit")
        ]
    )
    assert [len(group.arms) for group in found] == [2, 2, 2, 2]
    assert len({group.scenario for group in found}) == 4


def test_the_runs_of_a_round_come_replication_by_replication() -> None:
    (group,) = built([{"rtt": "10ms"}, {"rtt": "30ms"}], most=5)
    assert [run.number for run in group.runs([0, 1], 1, 3)] == [1, 6, 2, 7]


def test_a_point_has_the_same_keys_in_another_sweep() -> None:
    (some,), (others,) = (
        built([{"rtt": f"{rtt}ms"} for rtt in values], most=most)
        for values, most in (((10, 30), 1), ((5, 30, 40), 2))
    )
    assert meter(some.scenario).key(1) == meter(others.scenario).key(2)


def test_long_and_unprintable_names_are_valid_and_differ() -> None:
    queues = [f"codel{' ' * 250}target {n}ms" for n in (2, 3)]
    (group,) = built([{"links.up.qdisc": queue} for queue in (*queues, "codel\ttarget 4ms")])
    assert len(set(group.scenario.arms)) == 3
    assert [len(name) for name in group.scenario.arms[:2]] == [200, 200]
    assert group.scenario.arms[2] == r'default (links.up.qdisc="codel\ttarget 4ms")'


def test_a_wrong_value_is_named_with_its_point_and_arm() -> None:
    with pytest.raises(sj.ScenarioError) as raised:
        built([{"links.up.qdisc.interval": "9ms"}], of=ARMS)
    assert f"{raised.value}".startswith("parameters['links.up.qdisc.interval']: ")
    assert f"{raised.value}".endswith('(point links.up.qdisc.interval=9ms; arm "pie")')
    with pytest.raises(
        sj.ScenarioError, match=r"^parameters\['duration'\]: warmup: .* \(point dura"
    ):
        built([{"duration": "1s"}])
