"""The state of queues as ``tc -j -s qdisc`` would print it."""

import json
from pathlib import Path

import pytest

import sojourn as sj
from shell import Command
from sojourn import _core
from sojourn.result import tc_stats

SHAPE = [
    "kind",
    "handle",
    "root",
    "dev",
    "refcnt",
    "options",
    "bytes",
    "packets",
    "drops",
    "overlimits",
    "requeues",
    "backlog",
    "qlen",
]


def test_a_queue_has_the_shape_of_tc_and_its_own_numbers(result: sj.Result) -> None:
    queues = tc_stats.queues(result, arm="fq")
    assert [queue["dev"] for queue in queues] == ["down", "up"]
    for queue in queues:
        assert list(queue)[: len(SHAPE)] == SHAPE
        assert queue["kind"] == "fq_codel"
        assert queue["options"]["target"] == 5_000
        assert queue["options"]["ecn"] is True
        assert queue["new_flow_count"] > 0
        assert isinstance(queue["new_flow_count"], int)


def test_counters_are_of_the_whole_run(result: sj.Result) -> None:
    series = result.link_series.filter(arm="fifo", replication=1, link="up")
    up = tc_stats.queues(result, arm="fifo", replication=1)[1]
    assert up["packets"] == series["sent_packets"].sum()
    assert up["drops"] == series["drops_overlimit"].sum() > 0
    assert up["overlimits"] == 0


def test_a_leaf_has_an_entry_of_its_own() -> None:
    scenario = sj.Scenario(
        links={"up": sj.Link(rate="5mbit", qdisc="prio leaf codel target 9ms / (drr leaf pie)")},
        traffic=[
            sj.Tcp(path=["up"], rtt="20ms"),
            sj.Udp(path=["up"], rate="1mbit", dscp="af11"),
            sj.Ping(path=["up"], dscp="af12"),
        ],
        duration="3s",
    )
    root, *leaves = tc_stats.queues(sj.run(scenario), arm="default")
    assert root["kind"] == "prio"
    assert "bands" not in root
    assert [(leaf["kind"], leaf["parent"], leaf["handle"]) for leaf in leaves] == [
        ("codel", "1:1", "10:"),
        ("drr", "1:2", "20:"),
        ("pfifo", "1:3", "30:"),
    ]
    assert leaves[0]["options"]["target"] == 9_000
    assert all(leaf["packets"] > 0 for leaf in leaves)
    assert sum(leaf["bytes"] for leaf in leaves) == root["bytes"]


def test_the_catalogue_says_what_tc_calls_the_counters(result: sj.Result) -> None:
    declared = {
        entry["name"]: entry["tc_statistics"] for entry in json.loads(_core.qdisc_catalogue())
    }
    columns = {column for each in declared.values() for _, column in each["counters"]}
    assert columns <= set(result.link_series.columns)
    assert columns == {"drops_aqm", "drops_overlimit", "marks_aqm", "marks_ce_threshold"}
    assert declared["sfq_codel"] == declared["codel"] != declared["fq"]
    assert {name: each["leaves"] for name, each in declared.items() if each["leaves"]} == {
        "prio": "bands",
        "drr": "classes",
        **dict.fromkeys(("red", "ared", "sfb"), "leaf"),
    }
    up = tc_stats.queues(result, arm="fq")[1]
    assert list(up)[len(SHAPE) :][:3] == ["ecn_mark", "ce_mark", "drop_overlimit"]


def test_a_run_that_is_not_there_is_named(result: sj.Result) -> None:
    with pytest.raises(sj.ResultError, match='no finished run of arm "pie"; expected one of fifo'):
        tc_stats.queues(result, arm="pie")
    message = 'arm "fq" has no finished replication 7; finished: 0 to 2$'
    with pytest.raises(sj.ResultError, match=message):
        tc_stats.queues(result, arm="fq", replication=7)


def test_the_command_prints_it(result: sj.Result, sojourn: Command, tmp_path: Path) -> None:
    result.save(tmp_path / "kept")
    printed = sojourn("stats", "kept", "--arm", "fq", "--tc-json")
    assert json.loads(printed.stdout) == tc_stats.queues(result, arm="fq")
    table = sojourn("stats", "kept", "--arm", "fq")
    assert "new_flow_count" in table.stdout
    assert "down: fq_codel (arm fq, replication 0)" in table.stdout


def test_a_reconstruction_is_said_wherever_it_is_met(sojourn: Command) -> None:
    assert "reconstruction: " in sojourn("qdiscs", "floq").stdout
    assert "reconstruction: " not in sojourn("qdiscs", "codel").stdout
    short = ("--duration", "7s", "--warmup", "6s", "--replications", "1")
    done = sojourn("compare", "codel", "prio leaf predict", *short)
    assert "notice: predict: " in done.stderr
    assert "notice: codel" not in done.stderr


def test_options_read_back_from_the_words_of_tc() -> None:
    words = "bandwidth 9mbit diffserv4 dual-dsthost nat wash ack-filter rtt 100ms noatm"
    assert tc_stats._options("cake", words.split()) == {  # noqa: SLF001 - it has no other door
        "bandwidth": 1_125_000,
        "diffserv": "diffserv4",
        "flowmode": "dual-dsthost",
        "nat": True,
        "wash": True,
        "ack_filter": "ack-filter",
        "rtt": 100_000,
        "framing": "noatm",
    }
    words = "bands 3 priomap 1 2 2 leaf codel limit 5 / pfifo"
    assert tc_stats._options("prio", words.split()) == {  # noqa: SLF001 - as above
        "bands": 3,
        "priomap": [1, 2, 2],
        "leaf": "codel limit 5 / pfifo",
    }
    assert tc_stats._options("codel", ["limit", "5", "noecn"]) == {"limit": 5, "ecn": False}  # noqa: SLF001
