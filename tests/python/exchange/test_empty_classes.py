"""Classes that stay empty: what is predicted from filters and traffic is what a run shows."""

from typing import Any

import pytest

import sojourn as sj
from sojourn.exchange.empty_classes import empty_classes
from sojourn.scenario import presets

LEAVES = ("a", "b", "c", "rest")
TRAFFIC = {
    "rrul": presets.traffic("rrul", None),
    "household": presets.traffic("household", None),
    "quic": presets.traffic("quic_1up_1down+voip_nqb", None),
    "call": [
        sj.Voip(name="call", direction="up", dscp="AF42", host=7),
        sj.Udp(name="blast", direction="down", rate="1mbit"),
        sj.Web(name="pages", direction="down", page="objects50", http="3", think="1s"),
    ],
    "ipv6": [
        sj.Tcp(name="six", direction="up", ip=6),
        sj.Tcp(name="mark_7", direction="down", dscp="EF", ip=6, host=7),
        sj.Ping(name="ping", direction="up"),
    ],
}
FILTERS: list[list[dict[str, str]]] = [
    [{"to": "a", "dscp": "46"}, {"to": "b", "dscp": "CS5"}, {"to": "c", "protocol": "icmp"}],
    [{"to": "a", "protocol": "udp"}, {"to": "b", "protocol": "tcp"}, {"to": "c", "dscp": "0"}],
    [{"to": "a", "destination_port": "5001"}, {"to": "b", "source_port": "443"}],
    [{"to": "a", "source_port": "1-50000", "protocol": "tcp"}, {"to": "b", "source": "10.0.0.0/8"}],
    [{"to": "a", "source": "198.18.1.0/28"}, {"to": "b", "destination": "198.18.0.0/16"}],
    [{"to": "a"}, {"to": "b", "dscp": "EF"}],
    [
        {"to": "a", "dscp": "AF42"},
        {"to": "b", "destination_port": "443"},
        {"to": "c", "dscp": "45"},
    ],
    [{"to": "a", "destination_port": "80"}, {"to": "a", "dscp": "8"}],
    [
        {"to": "a", "protocol": "tcp", "destination_port": "5001", "ip": "4"},
        {"to": "b", "source_port": "5001", "ip": "4"},
        {"to": "c", "protocol": "tcp", "ip": "6"},
    ],
    [{"to": "a", "dscp": "46", "ip": "4"}, {"to": "b", "dscp": "46", "ip": "6"}, {"to": "c"}],
    [
        {"to": "a", "protocol": "icmp", "ip": "4"},
        {"to": "b", "source": "2001:2::1"},
        {"to": "c", "destination": "198.18.0.0/16", "ip": "any"},
    ],
    [{"to": "a", "destination": "2001:2::107"}, {"to": "b", "ip": "6"}, {"to": "c", "ip": "4"}],
]


def tree(filters: list[dict[str, str]]) -> dict[str, Any]:
    """Four leaf classes below one, which borrow from each other."""
    leaves = [{"name": name, "parent": "line", "rate": "1mbit", "ceil": "8mbit"} for name in LEAVES]
    return {
        "kind": "htb",
        "default": "rest",
        "classes": [{"name": "line", "rate": "8mbit"}, *leaves],
        "filters": filters,
    }


@pytest.mark.parametrize("name", TRAFFIC)
@pytest.mark.parametrize("filters", FILTERS)
def test_a_class_stays_empty_in_the_run_if_a_note_says_so(
    name: str, filters: list[dict[str, str]]
) -> None:
    queue = tree(filters)
    queue_object = sj.Htb(
        default="rest",
        classes=[sj.HtbClass(**one) for one in queue["classes"]],
        filters=[sj.HtbFilter(**one) for one in filters],  # type: ignore[arg-type]
    )
    link = sj.Link(rate="1gbit", qdisc=queue_object)
    result = sj.run(
        sj.Scenario(
            links={"up": link, "down": link},
            traffic=TRAFFIC[name],
            rtt="20ms",
            duration="12s",
            warmup="1s",
        )
    )
    for direction in ("up", "down"):
        classes = result.classes.filter(link=direction)
        sent = dict(classes.select("class", "sent_bytes").iter_rows())
        notes = list(empty_classes(queue, TRAFFIC[name], direction))  # type: ignore[arg-type]
        empty = {one for one in LEAVES if not sent[one]} - {"rest"}
        assert {note.rpartition("class ")[2].split()[0].strip(",") for note in notes} == empty


def test_filters_by_mark_and_version_of_ip_reach_their_classes() -> None:
    queue = tree(
        [
            {"to": "a", "traffic": "mark_7", "ip": "4"},
            {"to": "b", "dscp": "46", "ip": "4"},
            {"to": "c", "traffic": "mark_7", "ip": "6"},
        ]
    )
    groups = [
        sj.Tcp(name="mark_7", direction="up"),
        sj.Voip(name="call", direction="up", dscp="EF"),
    ]
    assert list(empty_classes(queue, groups, "up")) == [
        "no traffic of this scenario matches traffic mark_7 and ip 6, so class c stays empty"
    ]


def test_a_note_names_the_class_and_its_filters() -> None:
    queue = tree(
        [
            {"to": "a", "destination_port": "80", "protocol": "tcp"},
            {"to": "a", "dscp": "8"},
            {"to": "rest"},
            {"to": "b"},
        ]
    )
    assert list(empty_classes(queue, [sj.Ping(direction="up", name="ping")], "up")) == [
        (
            "no traffic of this scenario matches destination_port 80 and protocol tcp or dscp 8, "
            "so class a stays empty"
        ),
        (
            "no traffic of this scenario matches a filter behind one that takes all packets, so "
            "class b stays empty"
        ),
        "no filter leads to class c, so it stays empty",
    ]
