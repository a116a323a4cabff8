"""Scenarios: checked when built, the same in Python and in TOML."""

import dataclasses
import math
import re
import typing
from collections.abc import Callable
from pathlib import Path

import pytest

import sojourn as sj
from sojourn import _core, report
from sojourn.traffic import Traffic

TRAFFIC: tuple[type[Traffic], ...] = typing.get_args(Traffic)


def link(rate: str = "10mbit") -> dict[str, sj.Link]:
    return {"up": sj.Link(rate=rate, qdisc="codel"), "down": sj.Link(rate="10mbit", qdisc="pfifo")}


def test_toml_and_python_give_equal_scenarios(scenario: sj.Scenario) -> None:
    read = sj.Scenario.from_toml(scenario.to_toml())
    assert read.hash == scenario.hash
    assert read.to_toml() == scenario.to_toml()


def test_a_scenario_is_hashable_and_equal_ones_hash_alike(scenario: sj.Scenario) -> None:
    same = scenario.replace(duration=scenario.duration)
    assert {scenario, same} == {scenario}


def test_replace_changes_one_field_and_the_hash(scenario: sj.Scenario) -> None:
    changed = scenario.replace(duration="20s")
    assert changed.duration == "20s"
    assert changed.rtt == scenario.rtt
    assert changed.hash != scenario.hash


def test_runs_are_arms_times_replications(scenario: sj.Scenario) -> None:
    assert scenario.runs == 6


def test_a_typed_queue_and_its_text_are_the_same_scenario(scenario: sj.Scenario) -> None:
    arms = [
        sj.Arm(name="fifo", set={"links.up.qdisc": "pfifo limit 127"}),
        sj.Arm(name="fq", set={"links.up.qdisc": "fq_codel", "links.down.qdisc": sj.FqCoDel()}),
    ]
    assert scenario.replace(arms=arms).hash == scenario.hash


def test_quic_survives_the_file() -> None:
    quic = sj.Quic(
        direction="down",
        bytes="100kb",
        cc="dctcp",
        slow_start="standard",
        zero_rtt=True,
        certificate="4kb",
        ack_every=10,
        max_stream_data="100kb",
    )
    built = sj.Scenario(links=link(), traffic=[quic], rtt="30ms", duration="5s")
    read = sj.Scenario.from_toml(built.to_toml())
    assert read.hash == built.hash
    group = read.traffic[0]
    assert isinstance(group, sj.Quic)
    assert (group.zero_rtt, group.ack_every, group.client) == (True, 10, "receiver")


def test_rtts_may_differ_between_the_flows_of_a_group() -> None:
    built = sj.Scenario(
        links=link(),
        traffic=[sj.Tcp(direction="up", count=2, rtt=["10ms", "200ms"])],
        duration="5s",
    )
    assert list(sj.Scenario.from_toml(built.to_toml()).traffic[0].rtt or ()) == ["10ms", "200ms"]


def test_a_path_with_its_return_survives_the_file() -> None:
    built = sj.Scenario(
        links={"a": sj.Link(rate="5mbit", qdisc="codel"), "b": sj.Link(rate="4mbit", qdisc="pie")},
        traffic=[sj.Tcp(path=["a", "b"], reverse=["b"])],
        rtt="30ms",
        duration="5s",
    )
    read = sj.Scenario.from_toml(built.to_toml()).traffic[0]
    assert (list(read.path or ()), list(read.reverse or ())) == (["a", "b"], ["b"])


@pytest.mark.parametrize(
    ("rate", "part"),
    [("10", "unit"), ("-10mbit", "-10mbit"), ("10 apples", "10 apples"), ("0mbit", "rate")],
)
def test_a_wrong_rate_is_refused_when_the_link_is_built(rate: str, part: str) -> None:
    with pytest.raises(sj.ScenarioError, match=part) as caught:
        sj.Link(rate=rate, qdisc="pfifo")
    assert str(caught.value).startswith("rate: ")


def test_no_traffic_is_refused() -> None:
    with pytest.raises(sj.ScenarioError, match="traffic"):
        sj.Scenario(links=link(), traffic=[], duration="5s")


def test_zero_flows_are_refused() -> None:
    with pytest.raises(sj.ScenarioError, match="count"):
        sj.Scenario(links=link(), traffic=[sj.Tcp(direction="up", count=0)], duration="5s")


def test_a_warmup_as_long_as_the_run_is_refused() -> None:
    with pytest.raises(sj.ScenarioError, match="warmup"):
        sj.Scenario(links=link(), traffic=[sj.Tcp(direction="up")], duration="5s", warmup="5s")


def test_an_arm_that_names_no_link_is_refused() -> None:
    with pytest.raises(sj.ScenarioError, match="middle"):
        sj.Scenario(
            links=link(),
            traffic=[sj.Tcp(direction="up")],
            duration="5s",
            arms=[sj.Arm(name="x", set={"links.middle.qdisc": "codel"})],
        )


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "binary.toml"
    file.write_bytes(b"name = '\xff'")
    with pytest.raises(sj.ScenarioError, match=r"binary\.toml: not valid UTF-8"):
        sj.Scenario.from_file(file)


def test_a_link_with_a_trace_keeps_what_the_file_holds(tmp_path: Path) -> None:
    (tmp_path / "cell.trace").write_text("0\n2\n2\n5\n")
    (tmp_path / "cell.toml").write_text(
        """
        duration = "2s"
        rtt = "20ms"
        links.up = { trace = "cell.trace", qdisc = "codel", loss = "1%", jitter = "2ms" }
        links.down = "unlimited"
        traffic = [{ type = "tcp", direction = "up" }]
        """
    )
    read = sj.Scenario.from_file(tmp_path / "cell.toml")
    (tmp_path / "cell.trace").unlink()
    assert read.links["up"].trace == {"file": "cell.trace", "gaps_ms": "0 2 0 3"}
    assert read.links["up"].bits_per_s == 4 * 1504 * 8 * 200
    assert sj.run(read).links["lost_packets"].sum() > 0
    with pytest.raises(sj.ScenarioError, match=r"links\.up\.trace: cannot read"):
        sj.Scenario.from_toml(
            "duration = '1s'\nlinks.up = { trace = 'no', qdisc = 'codel' }\n"
            "links.down = 'unlimited'\n"
            "traffic = [{ type = 'ping', direction = 'up' }]"
        )


def test_a_link_that_changes_is_the_same_in_python_and_in_toml() -> None:
    built = sj.Scenario(
        links={
            "up": sj.Link(
                rate="5mbit",
                qdisc="codel",
                overhead="pppoe-ptm",
                loss={"model": "gilbert-elliott", "to_bad": "1%", "to_good": "20%"},
                duplicate="1%",
                jitter={"spread": "1ms", "order": "free"},
                changes=[{"at": "1s", "rate": "8mbit", "delay": "3ms"}],
            ),
            "down": "unlimited",
        },
        traffic=[sj.Tcp(direction="up")],
        rtt="30ms",
        duration="5s",
    )
    assert sj.Scenario.from_toml(built.to_toml()).hash == built.hash
    assert built.links["up"].bits_per_s == 8e6
    with pytest.raises(sj.ScenarioError, match=r"loss: \"101%\" is out of range"):
        built.replace(
            links={"up": sj.Link(rate="5mbit", qdisc="codel", loss="101%"), "down": "unlimited"}
        )


def test_a_wireless_link_tells_what_waits_below_its_queue() -> None:
    def radio(driver: str) -> sj.Link:
        medium = {"type": "wifi", "driver": driver, "stations": [{"host": 1, "rate": "13mbit"}]}
        return sj.Link(rate="130mbit", qdisc="fq_codel", medium=medium)

    built = sj.Scenario(
        links={
            "down": radio("1000p"),
            "up": radio("1000p"),
            "wired": sj.Link(rate="1mbit", qdisc="pfifo"),
        },
        traffic=[sj.Tcp(direction="down", host=1, count=2)],
        rtt="20ms",
        duration="10s",
        warmup="4s",
        arms=[
            sj.Arm(name="deep", set={}),
            sj.Arm(name="limited", set={"links.down.medium.driver": "12ms"}),
        ],
    )
    assert sj.Scenario.from_toml(built.to_toml()).hash == built.hash
    result = sj.run(built)
    links = result.links
    below = dict(links.filter(link="down").select("arm", "driver_ms_mean").iter_rows())
    assert below["deep"] > 5 * below["limited"]
    assert links.filter(link="wired")["driver_ms_mean"].null_count() == 2
    p95 = result.summary().filter(arm="deep", metric="driver_down_ms_p95")["mean"].item()
    assert p95 == links.filter(arm="deep", link="down")["driver_ms_p95"].item()
    change = result.difference("deep", "limited").filter(metric="driver_down_ms_p95")
    assert change["mean"].item() < -0.5 * p95
    assert "driver down p95 [ms]" in report.html(result)


def test_a_wrong_object_is_refused_at_its_place(scenario: sj.Scenario) -> None:
    tcp = sj.Tcp(direction="up")
    link = {"rate": "1mbit", "qdisc": "codel"}
    page = {"objects": [{"bytes": "1kb"}]}
    wrong: list[tuple[dict[str, typing.Any], str]] = [
        ({"traffic": [None]}, "traffic[0]: expected a traffic object, such as Tcp, not None"),
        (
            {"traffic": [tcp, sj.Tcp]},
            (
                "traffic[1]: expected a traffic object, such as Tcp, not the class Tcp; pass an "
                "object: Tcp()"
            ),
        ),
        (
            {"traffic": {"up": tcp}},
            "traffic: expected a list of traffic blocks, not a ",
        ),
        ({"traffic": tcp}, "traffic: expected a list of traffic blocks, not a value of type Tcp"),
        ({"traffic": "tcp"}, "traffic: expected a list of traffic blocks, not a value of type str"),
        (
            {"links": [link]},
            "links: expected a mapping from names to Links, not a ",
        ),
        ({"links": {"up": link}}, "links.up: expected a Link, not a value of type dict"),
        (
            {"links": {1: sj.Link(rate="1mbit", qdisc="codel")}},
            "links: expected string keys",
        ),
        ({"arms": [{"name": "a"}]}, "arms[0]: expected an Arm, not a value of type dict"),
        ({"arms": sj.Arm(name="a", set={})}, "arms: expected a list of Arms, not a "),
        (
            {"pages": [page]},
            "pages: expected a mapping from names to Pages, not a ",
        ),
        ({"pages": {"x": page}}, "pages.x: expected a Page, not a value of type dict"),
        (
            {"duration": b"5s"},
            "duration: expected a string, a number, a list",
        ),
    ]
    for change, said in wrong:
        with pytest.raises(sj.ScenarioError, match="^" + re.escape(said)) as refused:
            scenario.replace(**change)
        assert "\n" not in str(refused.value)
    objects: list[typing.Any] = [{"bytes": "1kb"}]
    parts: list[tuple[Callable[[], object], str]] = [
        (
            lambda: sj.Link(rate="1mbit", qdisc="codel", jitter={"spread": math.inf}),  # type: ignore[dict-item]
            "jitter.spread: expected a finite number, not inf",
        ),
        (
            lambda: sj.Page(objects=objects),
            "objects[0]: expected a PageObject, not a value of type dict",
        ),
        (
            lambda: sj.Udp(direction="up", rate="1mbit", spread=math.inf),
            "spread: expected a finite number, not inf",
        ),
    ]
    for build, said in parts:
        with pytest.raises(sj.ScenarioError, match="^" + re.escape(said)):
            build()
    with pytest.raises(sj.ScenarioError, match=r"^scenario: expected a Scenario, not None$"):
        sj.run(None)  # type: ignore[arg-type]


def test_a_trace_may_be_a_path(tmp_path: Path) -> None:
    file = tmp_path / "cell.trace"
    file.write_text("1\n", encoding="utf-8")

    def scenario(trace: str | Path) -> sj.Scenario:
        return sj.Scenario(
            links={"up": sj.Link(trace=trace, qdisc="codel"), "down": "unlimited"},
            traffic=[sj.Tcp(direction="up")],
            rtt="20ms",
            duration="2s",
        )

    assert scenario(file) == scenario(str(file))


def test_a_scenario_read_back_equals_what_it_was_written_from(scenario: sj.Scenario) -> None:
    assert sj.Scenario.from_toml(scenario.to_toml()) == scenario
    assert scenario.replace(seed=scenario.checked.replications + 1000) != scenario


def test_python_has_every_key_of_the_schema_and_no_other() -> None:
    classes: dict[str, type] = {
        "scenario": sj.Scenario,
        "link": sj.Link,
        "page object": sj.PageObject,
        **{kind.kind: kind for kind in TRAFFIC},
    }
    keys = _core.scenario_keys()
    assert set(keys) == set(classes)
    for table, known in keys.items():
        has = {field.name for field in dataclasses.fields(classes[table]) if field.init}
        has = {"return" if name == "reverse" else name for name in has}
        assert has == set(known) - {"type"}, table


def test_the_error_of_a_page_instead_of_its_name_says_where_pages_belong(
    scenario: sj.Scenario,
) -> None:
    page = sj.Page(objects=[sj.PageObject(name="document", bytes="15kb")])
    with pytest.raises(sj.ScenarioError, match="the scenario's pages"):
        sj.Web(direction="down", page=page)  # type: ignore[arg-type]
    with pytest.raises(sj.ScenarioError, match=r"^name: expected a string, .* type set"):
        scenario.replace(name={"a"})  # type: ignore[arg-type]


def test_a_direction_without_a_link_is_an_explicit_choice() -> None:
    up = sj.Link(rate="1mbit", qdisc="pfifo")
    traffic = [sj.Tcp(direction="up"), sj.Ping(direction="up")]
    with pytest.raises(sj.ScenarioError) as refused:
        sj.Scenario(links={"up": up, "dwon": up}, traffic=traffic, rtt="20ms", duration="2s")
    assert str(refused.value) == (
        'traffic[0].direction: responses cross the link "down", which is not defined; define '
        'links.down, or set links.down = "unlimited" (defined links: dwon, up)'
    )
    with pytest.raises(sj.ScenarioError, match=r'links\.down: "none" is not a link'):
        sj.Scenario(links={"up": up, "down": "none"}, traffic=traffic, rtt="20ms", duration="2s")
    built = sj.Scenario(
        links={"up": up, "down": "unlimited"}, traffic=traffic, rtt="20ms", duration="2s"
    )
    assert sj.Scenario.from_toml(built.to_toml()) == built
    assert built.replace(seed=3).links["down"] == "unlimited"
    assert "down unlimited" in sj.report.html(sj.run(built))
