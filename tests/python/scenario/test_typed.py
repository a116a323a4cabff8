"""Typed parts of a scenario: checked as they are built, equal to what TOML says."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.scenario import link as links
from sojourn.traffic import TYPES, applications, block, connections, datagrams

TOML = """
duration = "5s"
rtt = "50ms"
links.up = {{ rate = "10mbit", qdisc = "pfifo"{link} }}
links.down = "unlimited"
traffic = [{{ type = "{kind}", direction = "up"{traffic} }}]
"""


def toml_message(link: str = "", traffic: str = "", kind: str = "tcp") -> str:
    """The message with which a scenario file is refused."""
    with pytest.raises(sj.ScenarioError) as refused:
        sj.Scenario.from_toml(TOML.format(link=link, traffic=traffic, kind=kind))
    return re.sub(r" \(line \d+\)$", "", str(refused.value))


@pytest.mark.parametrize(
    ("build", "toml", "place"),
    [
        (lambda: sj.Tcp(direction="up", cc="cubci"), {"traffic": ', cc = "cubci"'}, "traffic[0]."),
        (
            lambda: sj.Tcp(direction="up", after_idle="x"),  # type: ignore[arg-type]
            {"traffic": ', after_idle = "x"'},
            "traffic[0].",
        ),
        (
            lambda: sj.Tcp(direction="up", mss=127),
            {"traffic": ", mss = 127"},
            "traffic[0].",
        ),
        (
            lambda: sj.Tcp(direction="up", count=-1),
            {"traffic": ", count = -1"},
            "traffic[0].",
        ),
        (
            lambda: sj.Tcp(direction="up", bytes=sj.Lognormal(median="1kb", sigma=9)),
            {"traffic": ', bytes = {distribution = "lognormal", median = "1kb", sigma = 9}'},
            "traffic[0].bytes.",
        ),
        (
            lambda: sj.Link(rate="10mbit", qdisc="pfifo", framing="atn"),  # type: ignore[arg-type]
            {"link": ', framing = "atn"'},
            "links.up.",
        ),
        (
            lambda: sj.Sessions(direction="up", every="1s", bytes="0b"),
            {"kind": "sessions", "traffic": ', every = "1s", bytes = "0b"'},
            "traffic[0].",
        ),
        (
            lambda: sj.Incast(direction="up", servers=1, bytes="1kb"),
            {"kind": "incast", "traffic": ', servers = 1, bytes = "1kb"'},
            "traffic[0].",
        ),
        (lambda: sj.Bernoulli("2"), {"link": ', loss = "2"'}, "links.up.loss: "),
        (
            lambda: sj.GilbertElliott(to_bad="1%", to_good="1"),
            {"link": ', loss = {model = "gilbert-elliott", to_bad = "1%", to_good = "1"}'},
            "links.up.loss.",
        ),
        (
            lambda: sj.Jitter(spread="5"),
            {"link": ', jitter = {spread = "5"}'},
            "links.up.jitter.",
        ),
        (
            lambda: sj.Change(at="10s"),
            {"link": ', changes = [{at = "10s"}]'},
            "links.up.changes[0]: ",
        ),
        (
            lambda: sj.Wifi(driver="0p"),
            {"link": ', medium = {type = "wifi", driver = "0p"}'},
            "links.up.medium.",
        ),
        (
            lambda: sj.Station(host=300, rate="1mbit"),
            {"link": ', medium = {type = "wifi", stations = [{host = 300, rate = "1mbit"}]}'},
            "links.up.medium.stations[0].",
        ),
        (
            lambda: sj.Wifi(aggregate_packets=65),
            {"link": ', medium = {type = "wifi", aggregate_packets = 65}'},
            "links.up.medium.",
        ),
        (
            lambda: sj.Wifi(driver="65 aggregates"),
            {"link": ', medium = {type = "wifi", driver = "65 aggregates"}'},
            "links.up.medium.",
        ),
    ],
)
def test_a_mistake_is_refused_at_construction_with_the_message_of_toml(
    build: Callable[[], object], toml: dict[str, str], place: str
) -> None:
    with pytest.raises(sj.ScenarioError) as refused:
        build()
    said = toml_message(**toml)
    assert said.startswith(place)
    assert str(refused.value) == said.removeprefix(place)


def test_a_change_may_have_every_part_of_a_link() -> None:
    changes = [
        sj.Change(at="1s", loss=sj.Bernoulli("2%"), duplicate="1%", jitter=sj.Jitter(spread="5ms")),
        sj.Change(at="2s", loss="0%", jitter="0s", qdisc=sj.CoDel(target="10ms")),
        sj.Change(at="3s", qdisc=sj.FqCoDel),
    ]
    link = sj.Link(rate="10mbit", qdisc="codel ecn", changes=changes)
    scenario = sj.Scenario(
        duration="4s", links={"up": link, "down": "unlimited"}, traffic=[sj.Ping(direction="up")]
    )
    document = json.loads(scenario.checked.to_json())["links"]["up"]["changes"]
    assert document[0]["loss"] == "2%"
    assert document[1]["jitter"] == "0s"
    assert document[2]["qdisc"] == "fq_codel"
    with pytest.raises(sj.ScenarioError, match=r"fq_codel: flows cannot change during a run"):
        sj.Link(
            rate="10mbit",
            qdisc="fq_codel",
            changes=[sj.Change(at="1s", qdisc=sj.FqCoDel(flows=9))],
        )


def test_a_link_follows_traces(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,mbit,ms\n0,5,20\n10,15,30\n", encoding="utf-8")
    file = str(tmp_path / "t.csv")
    link = sj.Link(
        rate_trace={"file": file, "column": "mbit"},
        qdisc="codel",
        delay_trace={"file": file, "column": "ms"},
        drop=[3, 7],
    )
    scenario = sj.Scenario(
        duration="4s", links={"up": link, "down": "unlimited"}, traffic=[sj.Ping(direction="up")]
    )
    document = json.loads(scenario.checked.to_json())["links"]["up"]
    assert document["rate_trace"]["points"] == "0s 5mbit, 10s 15mbit"
    assert document["delay_trace"]["period"] == "20s"
    assert document["drop"] == [3, 7]
    again = sj.Link(rate_trace=document["rate_trace"], qdisc="codel")
    assert again.bits_per_s == pytest.approx(10e6)


def test_tables_become_objects() -> None:
    link = sj.Link(
        rate="10mbit",
        qdisc="pfifo",
        loss={"model": "gilbert-elliott", "to_bad": "1%", "to_good": "25%"},
        jitter={"spread": "5ms"},
        changes=[{"at": "1s", "rate": "5mbit"}],
        medium={"type": "wifi", "stations": [{"host": 1, "rate": "6500kbit"}]},
    )
    assert link.loss == sj.GilbertElliott(to_bad="1%", to_good="25%")
    assert link.jitter == sj.Jitter(spread="5ms")
    assert link.changes == [sj.Change(at="1s", rate="5mbit")]
    assert link.medium == sj.Wifi(stations=[sj.Station(host=1, rate="6500kbit")])
    sessions = sj.Sessions(
        direction="down",
        every={"distribution": "exponential", "mean": "1s"},
        bytes={"distribution": "pareto", "least": "4kb", "shape": 1.2},
    )
    assert sessions.every == sj.Exponential(mean="1s")
    assert sessions.bytes == sj.Pareto(least="4kb", shape=1.2)


def test_objects_in_an_arm_are_written_as_tables(scenario: sj.Scenario) -> None:
    loss = sj.GilbertElliott(to_bad="1%", to_good="25%")
    arms = [
        sj.Arm(name="bursts", set={"links.up.loss": loss}),
        sj.Arm(name="single", set={"links.up.loss": sj.Bernoulli("1%")}),
    ]
    built = scenario.replace(arms=arms)
    assert sj.Scenario.from_toml(built.to_toml()) == built
    assert "gilbert-elliott" in built.to_toml()


# The types of choices, with the places in the schema of what they are for.
CHOICES: list[tuple[Any, list[str]]] = [
    (block.Direction, ["traffic_tcp.direction"]),
    (connections.SlowStart, ["traffic_tcp.slow_start", "traffic_quic.slow_start"]),
    (connections.Ecn, ["traffic_tcp.ecn"]),
    (connections.Profile, ["traffic_tcp.profile"]),
    (connections.OnCe, ["traffic_tcp.on_ce"]),
    (connections.PeerEcn, ["traffic_tcp.peer_ecn"]),
    (connections.AfterIdle, ["traffic_tcp.after_idle"]),
    (connections.QuicClient, ["traffic_quic.client"]),
    (datagrams.Spacing, ["traffic_udp.spacing"]),
    (datagrams.PingProtocol, ["traffic_ping.protocol"]),
    (applications.Http, ["traffic_web.http"]),
    (applications.Transport, ["traffic_web.transport", "traffic_dash.transport"]),
    (applications.MediaControl, ["traffic_media.control"]),
    (applications.MediaEcn, ["traffic_media.ecn"]),
    (links.EcnRewrite, ["link.ecn"]),
    (links.Bucket, ["link.bucket"]),
    (links.JitterDistribution, ["link.jitter.distribution"]),
    (links.PacketOrder, ["link.jitter.order"]),
    (links.Framing, ["link.framing"]),
    (links.WifiStandard, ["link.medium.standard"]),
    (links.WifiSharing, ["link.medium.sharing"]),
    (links.WifiRateControl, ["link.medium.rate_control"]),
]


def schema_choices(place: str) -> set[str]:
    """List the words that the schema accepts at a place such as ``link.jitter.order``."""
    definition, *keys = place.split(".")
    form = json.loads(_core.scenario_schema())["$defs"][definition]
    for key in keys:
        holders = [form, *form.get("anyOf", []), *form.get("oneOf", [])]
        form = next(
            each["properties"][key] for each in holders if key in each.get("properties", {})
        )
    forms = [form, *form.get("anyOf", []), *form.get("oneOf", [])]
    words = [word for each in forms for word in [*each.get("enum", []), each.get("const")]]
    return {word for word in words if isinstance(word, str)}


def type_choices(choices: Any) -> set[str]:
    """List the words of a ``Literal``, also in a union with other types."""
    parts = [choices, *get_args(choices)]
    words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
    return {word for word in words if isinstance(word, str)}


@pytest.mark.parametrize(("choices", "places"), CHOICES)
def test_the_choices_of_a_type_are_those_of_the_core(choices: Any, places: list[str]) -> None:
    for place in places:
        assert type_choices(choices) == schema_choices(place) != set(), place


def test_every_type_of_choices_is_compared() -> None:
    modules = (block, connections, datagrams, applications, links)
    listed = [choices for choices, _ in CHOICES]
    for module in modules:
        for name, value in vars(module).items():
            assert not type_choices(value) or value in listed, f"{module.__name__}.{name}"


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(sj.SojournError, match="unknown part"):
        _core.check_part("arms", "{}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (3, {}, "^name: 3 is not a string"),
        ("", {}, '^name: "" is not a name'),
        ("a", {"nonsense": object()}, r"^set\.nonsense: expected a string, a number.*type object$"),
        ("a", {"links..up": 3}, r"^set\.links\.\.up: invalid path; expected one such as links\.up"),
        ("a", {"traffic[x].cc": "bbr"}, r"^set\.traffic\[x\]\.cc: invalid path"),
        ("a", {"seed": 3}, r"^set\.seed: must be the same for all arms"),
        ("a", {3: 3}, "^set: expected string keys"),
        ("a", None, "^set: expected a mapping from paths to values, not None"),
        ("a", "links.up.qdisc", "^set: expected a mapping from paths to values"),
        ("a", {"links.up.qdisc": sj.Cubic}, r"the class Cubic; pass an object: Cubic\(\)$"),
    ],
)
def test_an_arm_refuses_what_no_scenario_accepts(name: Any, changes: Any, message: str) -> None:
    with pytest.raises(sj.ScenarioError, match=message):
        sj.Arm(name=name, set=changes)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sj.CoDel(target="5ms limit 3"), '^target: "5ms limit 3" is not a single value'),
        (
            lambda: sj.Cubic(beta="0.7 bic_scale 3"),
            '^beta: "0.7 bic_scale 3" is not a single value',
        ),
        (lambda: sj.Cubic(beta=""), '^beta: "" is not a single value'),
        (lambda: sj.Drr(leaf=sj.Cubic), r"^leaf: expected a queue.*pass an object: Cubic\(\)"),
        (
            lambda: sj.Prio(leaf=[sj.CoDel(), 3]),
            "^leaf: expected a queue, not a value of type int",
        ),
        (lambda: sj.Tcp(direction="up", cc=sj.Cubic), r"^cc: .*pass an object: Cubic\(\)$"),
        (
            lambda: sj.CoDel(target=timedelta(milliseconds=5)),
            '^target: expected a string or a number, .* write a time as a string, such as "5ms"$',
        ),
        (
            lambda: sj.Ledbat(target=timedelta(milliseconds=5)),
            '^target: expected a string, .* such as "5ms"$',
        ),
        (
            lambda: sj.Link(rate="1mbit", qdisc="pfifo", delay=timedelta(milliseconds=5)),
            '^delay: expected a string, .* such as "5ms"$',
        ),
        (
            lambda: sj.Link(rate="1mbit", qdisc="pfifo", loss=sj.GilbertElliott),
            r"^loss: .*pass an object: GilbertElliott\(\)$",
        ),
    ],
)
def test_a_value_is_one_value_of_its_parameter(build: Callable[[], object], message: str) -> None:
    with pytest.raises(sj.ScenarioError, match=message):
        build()


def test_every_traffic_class_is_checked_by_the_common_base() -> None:
    own = [cls for cls in TYPES.values() if "__post_init__" in vars(cls)]
    assert own == [sj.Web]  # which also refuses a Page, and then calls the base
    with pytest.raises(sj.ScenarioError, match=r"^request: "):
        sj.Web(direction="up", page="small", request="x")
    converted = sj.Incast(
        direction="up",
        servers=2,
        bytes={"distribution": "pareto", "least": "4kb", "shape": 1.2},  # type: ignore[arg-type]
        think={"distribution": "exponential", "mean": "1s"},  # type: ignore[arg-type]
    )
    assert converted.bytes == sj.Pareto(least="4kb", shape=1.2)
    assert converted.think == sj.Exponential(mean="1s")


@pytest.mark.parametrize("mean", ["5 seconds", "x", 5, None])
def test_the_mean_of_a_distribution_is_checked_at_once(mean: Any) -> None:
    with pytest.raises(sj.ScenarioError, match=r'^mean: .*expected a size or a time, such as "36'):
        sj.Exponential(mean=mean)


def test_a_repr_has_only_what_was_given() -> None:
    assert repr(sj.Red()) == "Red()"
    assert repr(sj.Red(limit=150_000, ecn=True)) == "Red(limit=150000, ecn=True)"
    assert repr(sj.Cubic(beta=0.7)) == "Cubic(beta=0.7)"
    assert repr(sj.Link(rate="1mbit", qdisc="pfifo")) == "Link(rate='1mbit', qdisc='pfifo')"
    assert repr(sj.Tcp(direction="up", count=2)) == "Tcp(direction='up', count=2)"
