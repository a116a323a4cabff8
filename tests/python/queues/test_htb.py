"""Trees of ``htb``: as objects, as tables, and in results."""
# ruff: noqa: E501 - lines of TOML

import pytest

import sojourn as sj

TREE = sj.Htb(
    default="bulk",
    classes=[
        sj.HtbClass(name="line", rate="10mbit"),
        sj.HtbClass(
            name="voice", parent="line", rate="1mbit", ceil="10mbit", leaf=sj.Pfifo(limit=50)
        ),
        sj.HtbClass(
            name="bulk", parent="line", rate="9mbit", ceil="10mbit", prio=1, leaf="fq_codel"
        ),
    ],
    filters=[sj.HtbFilter(to="voice", dscp=46), sj.HtbFilter(to="voice", traffic="call")],
)
TOML = """
duration = "6s"
warmup = "1s"
rtt = "20ms"
links.down = "unlimited"

[links.up]
rate = "1gbit"

[links.up.qdisc]
kind = "htb"
default = "bulk"
classes = [
    { name = "line", rate = "10mbit" },
    { name = "voice", parent = "line", rate = "1mbit", ceil = "10mbit", leaf = { kind = "pfifo", limit = 50 } },
    { name = "bulk", parent = "line", rate = "9mbit", ceil = "10mbit", prio = 1, leaf = "fq_codel" },
]
filters = [{ to = "voice", dscp = "EF" }, { to = "voice", traffic = "call" }]

[[traffic]]
type = "tcp"
name = "upload"
direction = "up"

[[traffic]]
type = "udp"
name = "call"
rate = "500kbit"
direction = "up"

[[traffic]]
type = "ping"
direction = "up"
dscp = "EF"
"""


def test_objects_and_tables_are_the_same_queue() -> None:
    scenario = sj.Scenario.from_toml(TOML)
    assert sj.qdisc(TREE.spec).spec == sj.qdisc(f"{scenario.links['up'].qdisc}").spec


def test_packets_go_to_the_classes_that_the_filters_name() -> None:
    result = sj.run(sj.Scenario.from_toml(TOML))
    sent = {row["class"]: row["sent_bytes"] for row in result.classes.iter_rows(named=True)}
    assert sent.keys() == {"voice", "bulk"}
    # 500 kbit/s of payload and the pings for 5 s.
    assert 310_000 < sent["voice"] < 420_000
    total = 8 * sum(sent.values()) / 5e6
    assert total == pytest.approx(10, abs=0.2)


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        (
            'traffic = "call"',
            'traffic = "cal"',
            'a filter names unknown traffic "cal"; expected upload, call or ping up',
        ),
        (
            'traffic = "call"',
            'host = "7"',
            "a filter names unknown host 7; no traffic has a host",
        ),
        (
            'parent = "line", rate = "1mbit"',
            'parent = "lin", rate = "1mbit"',
            "parent lin of class voice is not",
        ),
        ('rate = "9mbit"', 'rat = "9mbit"', 'classes 3: unknown key "rat"; did you mean "rate"?'),
    ],
)
def test_an_error_has_its_place(before: str, after: str, refused: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        sj.Scenario.from_toml(TOML.replace(before, after))
    assert f"{error.value}".startswith("links.up.qdisc: ")
    assert refused in f"{error.value}"


def test_a_wrong_entry_is_refused_when_the_queue_is_made() -> None:
    with pytest.raises(sj.ScenarioError, match="htb: classes 1: class a has no rate"):
        sj.Htb(classes=[sj.HtbClass(name="a")])
