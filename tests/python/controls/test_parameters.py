"""Parameters of congestion controls by path: changes, arms, sweeps and conditions."""

import itertools
import json

import pytest

import sojourn as sj
from sojourn.scenario.paths import assignment, expanded, find, overridden
from sojourn.scenario.quantities import quantity
from sojourn.sweeps.parameters import parameters
from sojourn.sweeps.space import points, space

TEXT = """
duration = "4s"
warmup = "1s"
rtt = "20ms"
links.up = { rate = "5mbit", qdisc = "pfifo limit 50" }
links.down = "unlimited"
traffic = [
    { name = "bulk", type = "tcp", direction = "up" },
    { name = "ping", type = "ping", direction = "up", interval = "50ms" },
    { name = "other", type = "quic", direction = "up", cc = "bbr", start = "3s" },
]
"""
ARMS = """
arms = [
    { name = "plain" },
    { name = "gentle", set = { "traffic.bulk.cc.beta" = 0.9 } },
]
"""


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


def controls(scenario: sj.Scenario) -> list[object]:
    found = [block["cc"] for block in json.loads(scenario.checked.to_json())["traffic"][::2]]
    assert len(found) == 2
    return found


def test_one_parameter_of_a_control_is_changed(base: sj.Scenario) -> None:
    texts = [
        "traffic.bulk.cc.beta=0.75",
        "traffic[0].cc.fast_convergence=false",
        'traffic[2].cc.pacing_gain=[1.5, "1/2", 1, 1, 1, 1, 1, 1]',
    ]
    changed = overridden(base, dict(assignment(text) for text in texts))
    assert controls(changed) == [
        "cubic beta 3/4 fast_convergence off",
        "bbr pacing_gain 3/2,1/2,1,1,1,1,1,1",
    ]


def test_arms_set_parameters_of_controls_in_python_and_in_files(base: sj.Scenario) -> None:
    arms = [sj.Arm(name="plain", set={}), sj.Arm(name="gentle", set={"traffic.bulk.cc.beta": 0.9})]
    built, read = base.replace(arms=arms), sj.Scenario.from_toml(TEXT + ARMS)
    assert built.checked.to_json() == read.checked.to_json()
    assert read.checked.arms_that_set("traffic[0].cc.beta") == ["gentle"]
    cubic = sj.run(read).flows.rows(named=True)
    plain, gentle = (row["goodput_mbit_per_s"] for row in cubic if row["flow"] == "bulk")
    assert plain != gentle
    whole = sj.Scenario.from_toml(
        (TEXT + ARMS).replace("cc.beta", "cc").replace("0.9", '"cubic beta 0.9"')
    )
    assert sj.run(whole).flows.equals(sj.run(read).flows)


def test_a_sweep_varies_parameters_of_controls(base: sj.Scenario) -> None:
    swept = sj.sweep(base, {"traffic.bulk.cc.beta": "0.5,9/10"}, replications=1)
    texts = ["cubic beta 0.5", "cubic beta 9/10"]
    whole = sj.sweep(base, {"traffic.bulk.cc": texts}, replications=1)
    values = swept.points["goodput_up_mbit_per_s"].to_list()
    assert values == whole.points["goodput_up_mbit_per_s"].to_list()
    assert len(set(values)) == 2
    assert swept.points["traffic.bulk.cc.beta"].to_list() == ["0.5", "9/10"]


def test_a_wrong_point_is_named(base: sj.Scenario) -> None:
    with pytest.raises(sj.ScenarioError) as caught:
        sj.sweep(base, {"traffic[*].cc.beta": [0.5]})
    # Only the connection with CUBIC has the parameter.
    assert str(caught.value).startswith(
        "parameters['traffic[*].cc.beta']: traffic[2].cc.beta: bbr: unknown parameter \"beta\"; exp"
    )
    assert str(caught.value).endswith("(point traffic[*].cc.beta=0.5)")
    with pytest.raises(sj.ScenarioError, match=r"beta 2 is out of range; expected 1/1024 to"):
        sj.sweep(base, {"traffic.bulk.cc.beta": [0.5, 2]})


def test_a_star_stands_for_the_traffic_with_a_control(base: sj.Scenario) -> None:
    document = json.loads(base.checked.to_json())
    found = expanded(document, "traffic[*].cc.beta")
    assert found == ["traffic[0].cc.beta", "traffic[2].cc.beta"]


@pytest.mark.parametrize(
    "names", list(itertools.product(("traffic.bulk.cc", "traffic[0].cc"), repeat=2))
)
def test_a_control_is_replaced_before_its_parameters(
    base: sj.Scenario, names: tuple[str, str]
) -> None:
    part, whole = f"{names[0]}.beta", names[1]
    given = parameters({part: "0.5,0.75", whole: "cubic,reno"})
    found = [controls(overridden(base, one.changes))[0] for one in points(space(given), base)]
    assert found == ["cubic beta 1/2", "reno", "cubic beta 3/4", "reno beta 3/4"]


def test_conditions_read_parameters_of_controls(base: sj.Scenario) -> None:
    changed = overridden(base, {"traffic.bulk.cc.beta": 0.75})

    def count(condition: str) -> int:
        given = parameters({"traffic.bulk.cc.bic_scale": [20, 41, 80]})
        return len(points(space(given, where=[condition]), changed))

    assert count("traffic.bulk.cc.beta == 0.75 and traffic.bulk.cc.bic_scale > 40") == 2
    assert count("traffic.bulk.cc.fast_convergence") == 3
    with pytest.raises(sj.ScenarioError, match="none of 3 points"):
        count("not traffic.bulk.cc.hystart")
    with pytest.raises(sj.ScenarioError, match=r"unknown name traffic\.bulk\.cc\.betta"):
        count("traffic.bulk.cc.betta > 1")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("traffic[0].cc", "cubic"),
        ("traffic.bulk.cc.beta", "717/1024"),
        ("traffic.0.cc.hystart", True),
        ("traffic.other.cc.beta", None),
        ("traffic.bulk.cc.beta.x", None),
        ("traffic.ping.cc.beta", None),
        ("links.up.qdisc.limit", "50"),
        ("links.down.qdisc.limit", None),
    ],
)
def test_values_are_found(base: sj.Scenario, path: str, value: object) -> None:
    assert find(json.loads(base.checked.to_json()), path) == value


@pytest.mark.parametrize("text", ["1/0", "1/", "/2", "1/2/3", "-1/2", "0.5/2", "1/2ms"])
def test_only_ratios_of_whole_numbers_are_read_as_such(text: str) -> None:
    assert quantity(text) is None
