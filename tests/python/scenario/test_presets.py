"""Named traffic, links and changes by path."""

import re

import pytest

import sojourn as sj
from sojourn.scenario import presets
from sojourn.scenario.paths import assignment, overridden
from support.shell import ROOT


@pytest.mark.parametrize(
    ("text", "down", "up"),
    [
        ("10/1mbit", "10mbit", "1mbit"),
        ("10/1Mbit", "10Mbit", "1Mbit"),
        ("100mbit", "100mbit", "100mbit"),
        ("8mbit/768kbit", "8mbit", "768kbit"),
        ("1.5/0.5gbit", "1.5gbit", "0.5gbit"),
    ],
)
def test_a_link_is_down_then_up(text: str, down: str, up: str) -> None:
    assert presets.link_rates(text) == presets.Rates(down=down, up=up)


@pytest.mark.parametrize("text", ["", "10", "10/1", "mbit", "10/1/1mbit", "10mbit/1"])
def test_what_is_no_link_is_refused(text: str) -> None:
    with pytest.raises(sj.ScenarioError, match="link"):
        presets.link_rates(text)


def test_rtt_fair_has_one_upload_an_rtt() -> None:
    groups = presets.traffic("rtt_fair", presets.link_rates("10mbit"))
    assert groups[0].count == len(list(groups[0].rtt or ())) == 4


def test_udp_flood_exceeds_the_uplink() -> None:
    flood = presets.traffic("udp_flood", presets.link_rates("10/1mbit"))[0]
    assert isinstance(flood, sj.Udp)
    assert flood.rate == "1200kbit"


def test_a_household_has_transfers_pages_and_a_call_of_three_hosts() -> None:
    *groups, ping = presets.traffic("household", None)
    hosts = {group.name: (group.host, group.count) for group in groups}
    assert hosts == {
        "tcp up": (1, 2),
        "tcp down": (1, 4),
        "web": (2, None),
        "voip up": (3, None),
        "voip down": (3, None),
    }
    assert isinstance(ping, sj.Ping)


def test_a_load_relative_to_the_line_needs_its_rates() -> None:
    for name in ("udp_flood", "web+sessions"):
        with pytest.raises(sj.ScenarioError, match="relative to the rate of the line"):
            presets.traffic(name, None)


def test_ecn_of_media_is_classic() -> None:
    groups = presets.traffic("media+tcp_1up", presets.link_rates("10mbit"), ecn=True)
    assert [getattr(group, "ecn", None) for group in groups] == ["classic", "classic", True, None]


def test_rrul_has_the_series_and_marks_of_flent() -> None:
    groups = presets.traffic("rrul", presets.link_rates("10mbit"))
    marks = {"BE": "CS0", "BK": "CS1", "CS5": "CS5", "EF": "EF"}
    loads = {f"TCP {side} {name}": marks[name] for side in ("upload", "download") for name in marks}
    pings = {f"Ping (ms) UDP {name}": marks[name] for name in ("EF", "BK", "BE")}
    assert {group.name: group.dscp for group in groups if group.name in loads} == loads
    assert {
        group.name: group.dscp
        for group in groups
        if isinstance(group, sj.Ping) and group.protocol == "udp"
    } == pings
    assert groups[-1].name == "Ping (ms) ICMP"
    assert len(groups) == len(loads) + len(pings) + 1


def test_responsiveness_is_tested_in_both_directions() -> None:
    *tests, ping = presets.traffic("responsiveness", presets.link_rates("10mbit"))
    assert all(isinstance(test, sj.Responsiveness) for test in tests)
    assert {test.direction for test in tests} == {"up", "down"}
    assert isinstance(ping, sj.Ping)


@pytest.mark.parametrize("name", ["", "tcp", "rrul_ef", "TCP_1UP"])
def test_an_unknown_traffic_is_refused_with_the_known(name: str) -> None:
    with pytest.raises(sj.ScenarioError, match="rrul_be"):
        presets.traffic(name, presets.link_rates("10mbit"))


def test_parts_joined_by_a_plus_are_one_traffic_and_have_one_ping() -> None:
    groups = presets.traffic("web+tcp_2up_1down+voip", presets.link_rates("10mbit"))
    names = ["web", "tcp up", "tcp down", "voip up", "voip down", "ping"]
    assert [group.name for group in groups] == names
    for part in ("tcp_1up+tcp_2up_1down", "web+web", "rrul+voip+rrul"):
        with pytest.raises(sj.ScenarioError, match="in more than one part"):
            presets.traffic(part, presets.link_rates("10mbit"))


def test_a_congestion_control_reaches_every_connection_but_those_of_ledbat() -> None:
    groups = presets.traffic(
        "tcp_1up+quic_1up+ledbat_1up+web+dash+voip",
        presets.link_rates("10mbit"),
        cc="bbr",
        ecn=True,
    )
    controls = {
        group.name: group.cc for group in groups if not isinstance(group, (sj.Voip, sj.Ping))
    }
    assert controls == {
        "tcp up": "bbr",
        "quic up": "bbr",
        "ledbat up": "ledbat",
        "web": "bbr",
        "dash": "bbr",
    }


def test_sessions_offer_half_of_the_downlink() -> None:
    sessions = presets.traffic("sessions", presets.link_rates("10/1mbit"))[0]
    assert isinstance(sessions, sj.Sessions)
    # 24 kB on average at 5 Mbit/s.
    assert sessions.every == sj.Exponential(mean="38400us")


@pytest.mark.parametrize(
    "name", ["web", "web_http1", "web_http3", "dash", "voip", "sessions", "incast"]
)
def test_users_of_an_application_are_served(name: str) -> None:
    scenario = presets.access_link(
        rates=presets.link_rates("20mbit"),
        groups=presets.traffic(name, presets.link_rates("20mbit")),
        queues={"fq_codel": sj.FqCoDel()},
        rtt="20ms",
        duration="15s",
        warmup="5s",
        replications=1,
        seed=1,
        name=name,
    )
    result = sj.run(scenario)
    served = result.table("application").filter(group=name if name != "voip" else "voip up")
    assert len(served) == 1
    if name == "voip":
        assert served["mos_mean"][0] > 4.2
    else:
        assert served["transactions"][0] >= 1


def test_a_call_marked_nqb_waits_less_than_cubic_in_dualpi2() -> None:
    rates = presets.link_rates("20/20mbit")
    scenario = presets.access_link(
        rates=rates,
        groups=presets.traffic("voip_nqb+tcp_2up_2down", rates),
        queues={"nqb": sj.DualPi2(nqb=True), "plain": sj.DualPi2()},
        rtt="20ms",
        duration="25s",
        warmup="5s",
        replications=1,
        seed=1,
        name="nqb",
    )
    assert {group.dscp for group in scenario.traffic[:2]} == {"NQB"}
    served = sj.run(scenario).table("application").filter(group="voip_nqb up")
    delay = dict(served.select("arm", "mos_mean").iter_rows())
    assert delay["nqb"] > delay["plain"]


def test_changes_reach_links_traffic_and_the_whole(scenario: sj.Scenario) -> None:
    texts = ["links.up.rate=2mbit", "traffic[0].count=3", "traffic.tcp down.cc=reno", "seed=5"]
    changed = overridden(scenario, dict(assignment(text) for text in texts))
    assert changed.links["up"].rate == "2mbit"
    assert changed.traffic[0].count == 3
    down = changed.traffic[1]
    assert isinstance(down, sj.Tcp)
    assert down.cc == "reno"
    assert changed.seed == 5


def test_one_parameter_of_a_queue_is_changed(scenario: sj.Scenario) -> None:
    queues = {"up": sj.Link(rate="1mbit", qdisc="fq_codel target 5ms limit 100")}
    built = scenario.replace(links={**scenario.links, **queues}, arms=[])
    texts = ["links.up.qdisc.target=7ms", "links.up.qdisc.ecn=false", "links.up.qdisc.quantum=300"]
    changed = overridden(built, dict(assignment(text) for text in texts)).links["up"].qdisc
    assert changed == sj.qdisc("fq_codel target 7ms limit 100 noecn quantum 300").spec
    arms = [sj.Arm(name="slow", set={"links.up.qdisc.target": "20ms"})]
    slow = sj.Scenario.from_toml(built.replace(arms=arms).to_toml()).arms[0]
    assert slow.set["links.up.qdisc.target"] == "20ms"


def test_a_list_of_leaves_is_changed_as_in_an_arm(scenario: sj.Scenario) -> None:
    path, leaves = "links.up.qdisc.leaf", ["codel", "pie"]
    queue = sj.Link(rate="1mbit", qdisc=sj.Drr(classes=2))
    built = scenario.replace(links={**scenario.links, "up": queue}, arms=[])
    changed = overridden(built, dict([assignment(f'{path}=["codel", "pie"]')]))
    expected = sj.Drr(classes=2, leaf=[sj.CoDel(), sj.Pie()])
    assert changed.links["up"].qdisc == sj.qdisc(str(expected)).spec
    arms = [sj.Arm(name="leaves", set={path: leaves})]  # type: ignore[dict-item]
    assert built.replace(arms=arms).checked.arms_that_set("links.up.qdisc.leaf") == ["leaves"]


def test_items_and_lists_are_changed_as_in_an_arm(scenario: sj.Scenario) -> None:
    changes = [
        'traffic[0].rtt=["10ms", "20ms"]',
        "traffic[0].count=2",
        'traffic[1]={type="udp", direction="down", rate="1mbit"}',
    ]
    changed = overridden(scenario, dict(assignment(text) for text in changes))
    assert changed.traffic[0].rtt == ["10ms", "20ms"]
    assert isinstance(changed.traffic[1], sj.Udp)


def test_a_change_may_be_a_table_and_may_be_of_all_groups(scenario: sj.Scenario) -> None:
    without_pings = scenario.replace(traffic=scenario.traffic[:2])
    texts = [
        'links.up.loss={model = "gilbert-elliott", to_bad = "1%", to_good = "25%"}',
        'links.down.medium={type = "wifi", name = "home"}',
        "traffic[*].cc=bbr",
    ]
    changed = overridden(without_pings, dict(assignment(text) for text in texts))
    assert isinstance(changed.links["up"].loss, sj.GilbertElliott)
    assert changed.links["up"].loss.to_good == "25%"
    assert isinstance(changed.links["down"].medium, sj.Wifi)
    assert changed.links["down"].medium.name == "home"
    assert [getattr(group, "cc", None) for group in changed.traffic] == ["bbr", "bbr"]


def test_a_flow_across_a_parking_lot_competes_at_every_link() -> None:
    scenario = presets.parking_lot(
        rate="10mbit",
        queues={"fifo": sj.Pfifo(limit=100), "fair": sj.FqCoDel()},
        duration="40s",
        warmup="10s",
        replications=2,
    )
    flows = sj.run(scenario).flows
    assert flows["flow"].unique().sort().to_list() == ["cross1", "cross2", "cross3", "through"]
    rate = {key: value["goodput_mbit_per_s"].mean() for key, value in flows.group_by("arm", "flow")}
    # Behind a FIFO who waits and loses at three links gets the least; max-min fair is a half.
    for cross in ("cross1", "cross2", "cross3"):
        assert rate["fifo", "through"] < 0.6 * rate["fifo", cross]
        assert 0.8 < rate["fair", "through"] / rate["fair", cross] <= 1.05
        assert 9.0 < rate["fair", "through"] + rate["fair", cross] < 9.6


@pytest.mark.parametrize(("hops", "queues"), [(1, {"a": sj.Pfifo()}), (2, {})])
def test_a_parking_lot_has_links_and_queues(hops: int, queues: dict[str, sj.Queue]) -> None:
    with pytest.raises(sj.ScenarioError, match=r"^(hops=1|queues): "):
        presets.parking_lot(rate="10mbit", queues=queues, hops=hops)


def test_the_documentation_has_every_preset() -> None:
    text = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")
    section = text.split("\n## Named traffic\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)", cell)}
    kinds = {name.split("_N")[0] + "_" for name in presets.TRAFFIC_NAMES if "_N" in name}
    fixed = {name for name in presets.TRAFFIC_NAMES if "_N" not in name}
    assert {name for name in named if not name.startswith(tuple(kinds))} == fixed
    assert all(any(name.startswith(kind) for name in named) for kind in kinds)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rrul_bee", 'unknown traffic "rrul_bee"; did you mean "rrul_be"?'),
        ("tcp_up", 'unknown traffic "tcp_up"; did you mean "tcp_1up"?'),
        ("tpc_4up", 'unknown traffic "tpc_4up"; did you mean "tcp_4up"?'),
        ("web+qiuc_12up_3down", '"qiuc_12up_3down"; did you mean "quic_12up_3down"?'),
        ("tcp_0up", 'unknown traffic "tcp_0up"; did you mean "tcp_1up"?'),
        ("web_htp3", 'unknown traffic "web_htp3"; did you mean "web_http3"?'),
        ("web+dahs", 'unknown traffic "dahs"; expected one of rrul,'),
        ("", 'unknown traffic ""; expected one of rrul,'),
    ],
)
def test_unknown_traffic_names_what_is_near(given: str, message: str) -> None:
    with pytest.raises(sj.ScenarioError, match=re.escape(message)):
        presets.traffic(given, presets.link_rates("10mbit"))
