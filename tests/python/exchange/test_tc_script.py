"""Scripts of ``tc`` commands, in the forms that manuals, routers and sqm-scripts use."""
# ruff: noqa: E501 - lines of tc

from pathlib import Path

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.exchange import tc_script
from sojourn.exchange.configuration import Source
from support.refusals import refused
from support.shell import Command

# The example of tc-htb(8), with a queue in a leaf.
MANUAL = """\
#!/bin/sh
DEV=eth0
tc qdisc add dev $DEV root handle 1: htb default 12
tc class add dev $DEV parent 1: classid 1:1 htb rate 100kbps ceil 100kbps
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 30kbps ceil 100kbps
tc class add dev $DEV parent 1:1 classid 1:11 htb rate 10kbps ceil 100kbps
tc class add dev $DEV parent 1:1 classid 1:12 htb rate 60kbps ceil 100kbps
tc filter add dev $DEV protocol ip parent 1:0 prio 1 u32 match ip src 1.2.3.4 match ip dport 80 0xffff flowid 1:10
tc filter add dev $DEV protocol ip parent 1:0 prio 1 u32 match ip src 1.2.3.4 flowid 1:11
tc qdisc add dev $DEV parent 1:10 handle 20: pfifo limit 5
"""
# The three tiers of a shaper for a home line, below a size table.
TIERS = """\
tc qdisc del dev eth1 root 2>/dev/null
tc qdisc add dev eth1 root handle 1: stab mtu 2047 tsize 512 mpu 68 overhead 44 linklayer atm htb default 12
tc class add dev eth1 parent 1: classid 1:1 htb quantum 1514 rate 900kbit ceil 900kbit burst 1514 cburst 1514
tc class add dev eth1 parent 1:1 classid 1:11 htb rate 128kbit ceil 300kbit prio 1 burst 1514 cburst 1514
tc class add dev eth1 parent 1:1 classid 1:12 htb rate 150kbit ceil 884kbit prio 2 burst 1514 cburst 1514
tc class add dev eth1 parent 1:1 classid 1:13 htb rate 150kbit ceil 884kbit prio 3 burst 1514 cburst 1514
tc qdisc add dev eth1 parent 1:11 handle 110: fq_codel limit 1001 noecn quantum 300
tc qdisc add dev eth1 parent 1:12 handle 120: fq_codel limit 1001 noecn quantum 300
tc qdisc add dev eth1 parent 1:13 handle 130: fq_codel limit 1001 noecn quantum 300
tc filter add dev eth1 parent 1:0 protocol ip prio 999 u32 match ip protocol 0 0x00 flowid 1:12
tc filter add dev eth1 parent 1:0 protocol ip prio 1 handle 1 fw classid 1:11
tc filter add dev eth1 parent 1:0 protocol ip prio 2 handle 2 fw classid 1:12
tc filter add dev eth1 parent 1:0 protocol ip prio 3 handle 3 fw classid 1:13
tc filter add dev eth1 parent 1:0 protocol ip prio 4 u32 match ip tos 0xb8 0xfc flowid 1:11
"""
BATCH = """\
qdisc replace dev wan root handle 1: htb default 0x30 r2q 5 direct_qlen 50
class replace dev wan parent 1: classid 1:1 htb rate 20Mbit burst 15k
class replace dev wan parent 1:1 classid 1:30 htb rate 5Mbit ceil 20Mbit
class replace dev wan parent 1:1 classid 1:20 htb rate 1000000 ceil 20Mbit prio 1 quantum 3000
qdisc replace dev wan parent 1:20 codel target 10ms
filter replace dev wan parent 1: protocol ip pref 7 flower ip_proto tcp dst_port 443 classid 1:20
filter replace dev wan parent 1: protocol ip pref 5 flower ip_tos 0xb8/0xfc ip_proto udp src_ip 10.0.0.0/8 classid 1:20
filter replace dev wan parent 1: protocol ip pref 9 matchall classid 1:30
"""
TREE = """\
tc qdisc add dev e root handle 1: htb default 10
tc class add dev e parent 1: classid 1:1 htb rate 1mbit
tc class add dev e parent 1:1 classid 1:2 htb rate 1mbit
tc class add dev e parent 1:2 classid 1:10 htb rate 1mbit
"""


def tree(text: str) -> dict[str, object]:
    """Read a script with one device."""
    (queue,) = tc_script.of_text(text, "x").queues.values()
    return queue


def test_the_example_of_the_manual_is_read() -> None:
    queue = tree(MANUAL)
    assert queue["default"] == "1:12"
    assert queue["classes"] == [
        {"name": "1:1", "rate": "100kbps", "ceil": "100kbps"},
        {
            "name": "1:10",
            "parent": "1:1",
            "rate": "30kbps",
            "ceil": "100kbps",
            "leaf": "pfifo limit 5",
        },
        {"name": "1:11", "parent": "1:1", "rate": "10kbps", "ceil": "100kbps"},
        {"name": "1:12", "parent": "1:1", "rate": "60kbps", "ceil": "100kbps"},
    ]
    assert queue["filters"] == [
        {"to": "1:10", "source": "1.2.3.4", "destination_port": "80"},
        {"to": "1:11", "source": "1.2.3.4"},
    ]


def test_a_size_table_becomes_the_link_layer_of_the_classes_and_marks_become_traffic() -> None:
    script = tc_script.of_text(TIERS, "x")
    queue = script.queues["eth1"]
    assert queue["classes"][1] == {
        "name": "1:11",
        "parent": "1:1",
        "mpu": "68",
        "overhead": "44",
        "linklayer": "atm",
        "rate": "128kbit",
        "ceil": "300kbit",
        "prio": "1",
        "burst": "1514",
        "cburst": "1514",
        "leaf": "fq_codel limit 1001 noecn quantum 300",
    }
    assert queue["filters"] == [
        {"to": "1:11", "traffic": "mark_1", "ip": "4"},
        {"to": "1:12", "traffic": "mark_2", "ip": "4"},
        {"to": "1:13", "traffic": "mark_3", "ip": "4"},
        {"to": "1:11", "dscp": "46", "ip": "4"},
        {"to": "1:12", "ip": "4"},
    ]
    assert "stab: read as the link layer of the queue" in script.notes[0]


def test_a_batch_file_and_flower_are_read_in_the_order_of_preference() -> None:
    queue = tree(BATCH)
    assert (queue["default"], queue["r2q"], queue["direct_qlen"]) == ("1:30", "5", "50")
    names = [one["name"] for one in queue["classes"]]  # type: ignore[attr-defined]
    assert names == ["1:1", "1:20", "1:30"]
    assert queue["filters"] == [
        {"to": "1:20", "dscp": "46", "protocol": "udp", "source": "10.0.0.0/8"},
        {"to": "1:20", "protocol": "tcp", "destination_port": "443", "ip": "4"},
        {"to": "1:30", "ip": "4"},
    ]


def test_filters_without_a_preference_follow_the_others_and_the_last_goes_first() -> None:
    lines = [
        f"tc filter add dev e parent 1: protocol ip {one}"
        for one in (
            "u32 match ip dport 1 0xffff flowid 1:1",
            "u32 match ip dport 2 0xffff flowid 1:1",
            "prio 5 u32 match ip dport 3 0xffff flowid 1:1",
            "prio 2 u32 match ip tos 0xb8 0xff flowid 1:1",
        )
    ]
    head = (
        "tc qdisc add dev e root handle 1: htb default 1\n"
        "tc class add dev e parent 1: classid 1:1 htb rate 9mbit\n"
    )
    read = tc_script.of_text(head + "\n".join(lines), "x")
    (queue,) = read.queues.values()
    order = [one.get("destination_port", one.get("dscp")) for one in queue["filters"]]
    assert order == ["46", "3", "2", "1"]
    assert any("the mask 0xff of the TOS byte" in note for note in read.notes)


def test_filters_of_both_versions_become_one_unless_another_one_decides_between_them() -> None:
    head = (
        "tc qdisc add dev e root handle 1: htb default 2\n"
        "tc class add dev e parent 1: classid 1:1 htb rate 1mbit\n"
        "tc class add dev e parent 1: classid 1:2 htb rate 1mbit\n"
    )

    def filters(*lines: str) -> object:
        added = "".join(
            f"tc filter add dev e parent 1: protocol {line} flowid 1:1\n" for line in lines
        )
        return tree(head + added)["filters"]

    [a, b] = ["u32 match ip dport 80 0xffff", "u32 match ip sport 80 0xffff"]
    both = [{"to": "1:1", "destination_port": "80"}, {"to": "1:1", "source_port": "80"}]
    assert (
        filters(f"ip prio 1 {a}", f"ip prio 2 {b}", f"ipv6 prio 3 {a}", f"ipv6 prio 4 {b}") == both
    )
    # Those of all protocols decide first.
    assert filters(f"ip prio 1 {a}", f"all prio 2 {b}", f"ipv6 prio 3 {a}") == [
        both[0] | {"ip": "4"},
        both[1],
        both[0] | {"ip": "6"},
    ]
    one = "ipv6 prio 1 u32 match ip6 src 2001:2::1/128"
    assert filters(one) == [{"to": "1:1", "source": "2001:2::1/128"}]


def test_a_change_keeps_the_parameters_that_it_does_not_name() -> None:
    added = "fq_codel limit 1000 flows 512 target 5ms quantum 300 noecn"
    wanted = _core.parse_qdisc("fq_codel limit 1000 flows 512 target 10ms quantum 300 noecn")
    root = tree(
        f"tc qdisc add dev e root handle 1: {added}\n"
        "tc qdisc change dev e root fq_codel target 10ms"
    )
    assert _core.parse_qdisc(f"{root['text']}") == wanted
    classes = tree(
        "tc qdisc add dev e root handle 1: htb default 1\n"
        "tc class add dev e parent 1: classid 1:1 htb rate 9mbit\n"
        f"tc qdisc add dev e parent 1:1 {added}\n"
        "tc qdisc change dev e parent 1:1 fq_codel target 10ms"
    )["classes"]
    assert _core.parse_qdisc(classes[0]["leaf"]) == wanted  # type: ignore[index]
    # tc sends all parameters of prio, and the queues in its bands stay.
    bands = tree(
        "tc qdisc add dev e root handle 1: prio bands 4\n"
        "tc qdisc add dev e parent 1:1 codel target 7ms\n"
        "tc qdisc change dev e root prio"
    )
    whole = _core.parse_qdisc(f"{bands['text']}")
    assert "bands 3" in whole
    assert "codel" in whole


def test_a_line_may_have_several_commands_and_estimators_are_left_out() -> None:
    read = tc_script.of_text(
        "tc -s qdisc add dev e root handle 1: htb default 20; tc class add dev e parent 1:0 "
        "classid 1:20 est 1sec 8sec htb rate 2mbit&&tc qdisc add dev e parent 1:20 codel;echo done",
        "x",
    )
    assert read.queues["e"]["classes"] == [{"name": "1:20", "rate": "2mbit", "leaf": "codel"}]
    assert read.notes == ("x: line 1: est: rate estimators are left out",)


def test_abbreviations_of_tc_are_read() -> None:
    short = (
        "tc q a dev e root handle 1: htb\ntc -n net clas r dev e parent 1: classid 1:1 htb rate 1mbit\n"
        "tc -s q\ntc qdisc\ntc q s dev e\ntc monitor\ntc act ls\ntc -V\nsudo tc -b - <<EOF\n"
        "c a dev e parent 1: classid 1:2 htb rate 1mbit\nf add dev e parent 1: matchall flowid 1:1\n"
        "f d dev e parent 1:\nf a dev e parent 1: fw classid 1:2 handle 3\nEOF\n"
        'U32="tc filter add dev e parent 1: u32"\n$U32 match ip dport 80 0xffff flowid 1:1\n'
    )
    assert tc_script.is_script(short)
    found = tree(short)
    assert [one["name"] for one in found["classes"]] == ["1:1", "1:2"]  # type: ignore[index]
    assert [one["to"] for one in found["filters"]] == ["1:1", "1:2"]  # type: ignore[index]


def test_each_line_of_a_batch_file_is_a_command(tmp_path: Path, sojourn: Command) -> None:
    (tmp_path / "rules").write_text(f"{BATCH}\nfylter add dev wan parent 1: matchall flowid 1:30\n")
    refused(
        sojourn("import", "rules"), 2, 'rules: line 10: tc: "fylter" is unknown; expected qdisc'
    )
    (tmp_path / "one.sh").write_text("tc qdsic add dev e root cake\n")
    refused(sojourn("import", "one.sh"), 2, 'one.sh: line 1: tc: "qdsic" is unknown')


def test_what_a_script_deletes_is_not_imported() -> None:
    queue = tree(
        TREE + "tc class add dev e parent 1:1 classid 1:3 htb rate 2mbit\n"
        "tc qdisc add dev e parent 1:3 codel\n"
        "tc class add dev e parent 1:1 classid 1:4 htb rate 2mbit\n"
        "tc filter add dev e parent 1: prio 1 matchall flowid 1:3\n"
        "tc filter add dev e parent 1: prio 2 matchall flowid 1:4\n"
        "tc filter del dev e parent 1: prio 2\n"
        "tc class del dev e classid 1:4\n"
        "tc qdisc del dev e parent 1:3\n"
    )
    classes = {one["name"]: one for one in queue["classes"]}  # type: ignore[attr-defined]
    assert list(classes) == ["1:1", "1:2", "1:3", "1:10"]
    assert "leaf" not in classes["1:3"]
    assert queue["filters"] == [{"to": "1:3"}]
    read = tc_script.of_text(
        TREE + "tc qdisc add dev f root codel\ntc qdisc del dev e root\n"
        "tc class del dev e classid 1:9\n",
        "x",
    )
    assert list(read.queues) == ["f"]
    assert read.notes == ("x: line 7: class 1:9 is not there, so nothing is deleted",)
    one = "tc filter del dev e parent 1: prio 1 handle 800::800 u32\n"
    assert "single filters are not deleted" in tc_script.of_text(TREE + one, "x").notes[0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("tc class del dev e classid 1:2", "class 1:2 has classes below it; delete them first"),
        ("tc class del dev e classid 1:10", "filters lead to class 1:10; delete them first"),
    ],
)
def test_a_class_in_use_is_not_deleted(line: str, why: str) -> None:
    used = "tc filter add dev e parent 1: matchall flowid 1:10\n"
    with pytest.raises(sj.ScenarioError, match=f"^x: line 6: {why}$"):
        tc_script.of_text(f"{TREE}{used}{line}\n", "x")


def test_a_word_of_a_queue_without_effect_gives_a_note() -> None:
    line = "tc qdisc add dev e root cake bandwidth 20mbit fwmark 0xff\n"
    (note,) = tc_script.of_text(line, "x").notes
    assert note.startswith("x: line 1: cake: fwmark: no effect: ")


def test_a_tree_without_a_class_is_refused_with_its_line() -> None:
    with pytest.raises(sj.ScenarioError) as error:
        tc_script.of_text("# x\ntc qdisc add dev eth0 root handle 1: htb default 10\n", "x")
    assert f"{error.value}" == (
        "x: line 2: htb has no class; expected a command such as tc class add dev eth0 parent 1: "
        "classid 1:10 htb rate 10mbit"
    )


def test_a_number_without_a_unit_is_noted() -> None:
    (note,) = tc_script.of_text("tc qdisc add dev eth0 root cake bandwidth 10", "x").notes
    assert note == "x: line 1: cake: bandwidth 10: tc reads 10 as 10bit"


@pytest.mark.parametrize(
    ("first", "change", "why"),
    [
        ("fq_codel", "codel", "change: the queue is fq_codel, not codel; use replace"),
        ("tbf rate 1mbit burst 5k limit 9k", "fq_codel", "change: the queue is tbf, not fq_codel"),
        ("htb", "htb default 1", "change: Linux changes classes of htb, not the queue"),
    ],
)
def test_a_change_that_linux_refuses_is_refused(first: str, change: str, why: str) -> None:
    with pytest.raises(sj.ScenarioError, match=f"^x: line 2: {why}"):
        tree(f"tc qdisc add dev e root {first}\ntc qdisc change dev e root {change}")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "tc class add dev e parent 1: classid 1:1 hfsc ls rate 1mbit",
            "classes of hfsc are not read",
        ),
        ("tc class add dev e parent 1: classid 1:1 htb ceil 1mbit", "class 1:1 has no rate"),
        ("tc class add dev e parent 1:9 classid 1:1 htb rate 1mbit", "parent 1:9 is not a class"),
        ("tc class add dev e parent 1: classid 1:1 htb rate 1mbit pbs 3", '"pbs" is unknown'),
        ("tc qdisc add dev e parent 1:7 fq_codel", "parent 1:7 is not a class before it"),
        (
            "tc filter add dev e parent 1: protocol ip prio 1 bpf obj x flowid 1:1",
            'filter "bpf" is not read',
        ),
        (
            "tc filter add dev e parent 1: protocol ip prio 1 u32 match u16 1 1 at 2 flowid 1:1",
            '"match u16 1" is not read',
        ),
        (
            "tc filter add dev e parent 1: protocol ip prio 1 u32 match ip dport 80 0x0f0f flowid 1:1",
            "is not a range of ports",
        ),
        (
            "tc filter add dev e parent 1:2 protocol ip prio 1 matchall flowid 1:1",
            "filters of 1:2 are not",
        ),
        (
            "tc qdisc replace dev e root handle 1: prio\ntc qdisc add dev e parent 1:2 tbf rate 20kbit",
            "tbf inside another queue is not modelled; expected tbf only at the root",
        ),
        (
            "tc filter add dev e parent 1: prio 1 flower dst_port 53 action skbedit priority 1:20",
            'filter: "action skbedit priority 1:20" is not read; expected flowid or classid',
        ),
        ("for i in 1 2; do tc qdisc add dev $i root htb; done", '"for": loops, conditions'),
        (
            "tc fylter add dev e parent 1: matchall flowid 1:1",
            'tc: "fylter" is unknown; expected qdisc',
        ),
        (
            "tc -n ns x add dev e parent 1: classid 1:1",
            'tc: "x" is unknown; expected qdisc, class or',
        ),
        ("tc -force -batch rules.tc", "tc -batch is not read; import the file of its commands"),
        ("cat rules.tc | tc -b -", '"tc -b" is not read here; expected a line that begins with tc'),
        ("true && tc qdisc change dev e root cake", '"tc qdisc change" is not read here'),
        ("ip netns exec a tc class add dev e classid 1:1 htb", '"tc class add" is not read here'),
        ("RATE=1 tc filter replace dev e parent 1:", '"tc filter replace" is not read here'),
        ("tc qdisc add dev ${1:-e} root cake", "no line sets ${1:-e} to a fixed value"),
        (
            "tc cl modify dev e parent 1: classid 1:1",
            '"class modify" is not read; expected add, change',
        ),
        ("tc class add dev $WHERE parent 1: classid 1:1 htb rate 1mbit", "no line sets $WHERE"),
    ],
)
def test_what_is_not_modelled_is_refused_with_its_line(line: str, why: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        tc_script.of_text(f"tc qdisc add dev e root handle 1: htb\n{line}\n", "x")
    assert f"{error.value}".startswith(f"x: line {2 + line.count(chr(10))}: ")
    assert why in f"{error.value}"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "tc class change dev e parent 1:10 classid 1:1 htb rate 1mbit",
            (
                "line 5: the classes form a loop: 1:1 below 1:10 below 1:2 below 1:1; expected a tree "
                "below 1:"
            ),
        ),
        (
            "tc class change dev e parent 1:1 classid 1:1 htb rate 1mbit",
            "line 5: the classes form a loop: 1:1 below 1:1; expected a tree below 1:",
        ),
        (
            "tc filter add dev e parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:99",
            "line 5: e: filter to 1:99, which is not a leaf class; expected a leaf class such as 1:10",
        ),
        (
            "tc filter add dev e parent 1: protocol ip prio 1 matchall flowid 1:2",
            "line 5: e: filter to 1:2, which is not a leaf class; expected a leaf class such as 1:10",
        ),
        (
            "tc qdisc add dev e parent 1:2 fq_codel",
            "e: htb: class 1:2 has a leaf and classes below it",
        ),
    ],
)
def test_what_is_no_tree_is_refused_with_the_class(line: str, why: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        tc_script.of_text(f"{TREE}{line}\n", "x")
    assert f"{error.value}" == f"x: {why}"


def test_marks_and_dscps_of_a_firewall_give_one_note() -> None:
    rules = (
        "# iptables -j MARK\niptables -t mangle -A POSTROUTING -p udp \\\n  -j MARK --set-mark 1\n"
        "$IPT -A x -j DSCP --set-dscp 46\nnft add rule t c udp dport 53 meta mark set 1\n"
        "iptables -A INPUT -j DROP\n"
    )
    (note,) = tc_script.of_text(f"tc qdisc show\n{rules}" + TREE, "x").notes
    assert note == (
        "x: lines 3, 5, 6: marks and DSCPs that iptables and nft set are not read, although "
        "filters may use them; give traffic this dscp, or the name mark_n"
    )


@pytest.mark.parametrize(
    ("tos", "dscp", "note"),
    [
        ("184/0xfc", "46", ""),
        ("184/252", "46", ""),
        ("b8/fc", "46", ""),
        ("46", "11", "the mask 0xff of the TOS byte is read as one of the DSCP 11: in Linux, it "),
        ("46", "11", "also compares the ECN field, here with ECT(0)"),
        ("0xb8", "46", "also compares the ECN field, here with Not-ECT"),
    ],
)
def test_flower_reads_a_byte_as_decimal_before_hexadecimal(tos: str, dscp: str, note: str) -> None:
    line = f"tc filter add dev e parent 1: protocol ip prio 1 flower ip_tos {tos} classid 1:10\n"
    read = tc_script.of_text(TREE + line, "x")
    assert read.queues["e"]["filters"] == [{"to": "1:10", "dscp": dscp, "ip": "4"}]
    assert len(read.notes) == bool(note)
    assert note in " ".join(read.notes)


@pytest.mark.parametrize("mask", ["ffff", "0xffff", "FFFF"])
def test_masks_of_u32_are_hexadecimal(mask: str) -> None:
    line = f"tc filter add dev e parent 1: protocol ip u32 match ip dport 80 {mask} flowid 1:10\n"
    assert tree(TREE + line)["filters"] == [{"to": "1:10", "destination_port": "80", "ip": "4"}]


def test_the_mtu_of_a_class_is_its_default_burst() -> None:
    head = "tc qdisc add dev e root handle 1: htb default 2\n"
    line = "tc class add dev e parent 1: classid 1:2 htb rate 512kbit {}mtu 9000\n"
    of_tc = {"name": "1:2", "rate": "512kbit", "burst": "9000b", "cburst": "9000b"}
    assert tree(head + line.format(""))["classes"] == [of_tc]
    assert tree(head + line.format("burst 15k "))["classes"] == [of_tc | {"burst": "15k"}]
    with pytest.raises(sj.ScenarioError, match='line 2: mtu "9k" is not a whole number'):
        tree(head + "tc class add dev e parent 1: classid 1:2 htb rate 1mbit mtu 9k")


def test_a_replaced_filter_of_a_handle_is_there_once() -> None:
    replaced = "".join(
        f"tc filter replace dev e parent 1: protocol ip prio 1 handle 800::1 u32 match ip dport {port} "
        "0xffff flowid 1:10\n"
        for port in (80, 443)
    )
    filters = tree(TREE + replaced)["filters"]
    assert filters == [{"to": "1:10", "destination_port": "443", "ip": "4"}]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("tc qdisc add dev e root cake", "add: a queue at the root is there already; expected"),
        (
            "tc class add dev e parent 1:2 classid 1:10 htb rate 2mbit",
            "add: class 1:10 is there already; expected replace, or del before it",
        ),
        (
            "tc class change dev e parent 1:2 classid 1:11 htb rate 2mbit",
            "change: class 1:11 is not there; expected add or replace",
        ),
        ("tc qdisc change dev f root fq_codel", "change: a queue at the root is not there"),
        ("tc qdisc change dev e parent 1:10 fq_codel", "change: a queue at 1:10 is not there"),
        (
            "tc filter add dev e parent 1: prio 1 handle 1 fw classid 1:10\n" * 2,
            "add: a filter with handle 1 is there already",
        ),
        (
            "tc filter add dev e parent 1: u32 match ip src 10.0.0.1 match ip src 10.0.0.2 flowid 1:2",
            "filter: source is 10.0.0.1 and 10.0.0.2; expected one condition for a field",
        ),
    ],
)
def test_what_linux_refuses_the_second_time_is_refused(line: str, why: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        tc_script.of_text(f"{TREE}{line}\n", "x")
    assert why in f"{error.value}"


def test_what_arrives_gives_a_note_unless_all_of_it_reaches_a_queue() -> None:
    head = "tc qdisc add dev e root cake bandwidth 1mbit\ntc qdisc add dev e handle ffff: ingress\n"
    redirect = (
        "tc filter add dev e parent ffff: protocol ip prio 1 u32 match {} flowid 1:1 action mirred "
        "egress redirect dev ifb0\n"
    )
    queue = "tc qdisc add dev ifb0 root cake bandwidth 5mbit\n"

    def notes(*lines: str) -> tuple[str, ...]:
        return tc_script.of_text(head + "".join(lines), "x").notes

    assert notes(redirect.format("u32 0 0"), queue) == ()
    assert notes(redirect.format("ip src 0.0.0.0/0"), queue) == ()
    ingress = (
        "x: line 2: ingress: not modelled; a queue at a device to which it redirects all packets is"
    )
    assert notes() == (ingress,)
    assert notes(redirect.format("u32 0 0")) == (ingress,)
    some = "x: line 3: filters at the ingress are not read"
    assert notes(redirect.format("ip dport 80 0xffff"), queue) == (ingress, some)


@pytest.mark.parametrize(
    ("devices", "found", "note"),
    [
        (("eth0 cake bandwidth 1mbit", "ifb0 cake bandwidth 2mbit"), ["eth0", "ifb0"], None),
        (
            ("ifb0 cake bandwidth 2mbit", "wlan0 fq_codel", "eth0 cake bandwidth 1mbit"),
            ["eth0", "ifb0"],
            "x: the queue of wlan0, which has no rate, is left out: eth0 has one",
        ),
        (
            ("br-lan cake bandwidth 5mbit", "wan cake bandwidth 1mbit"),
            ["wan", "br-lan"],
            (
                "x: wan is read as links.up, and br-lan as links.down; swap them in the scenario if "
                "the LAN is behind the other one"
            ),
        ),
        (
            ("eth0 cake bandwidth 5mbit", "eth1 cake bandwidth 1mbit"),
            ["eth0", "eth1"],
            (
                "x: eth0 is read as links.up, and eth1 as links.down; swap them in the scenario if "
                "the LAN is behind the other one"
            ),
        ),
    ],
)
def test_each_device_has_a_direction_or_a_note(
    devices: tuple[str, ...], found: list[str], note: str | None
) -> None:
    text = "".join(f"tc qdisc add dev {one.replace(' ', ' root ', 1)}\n" for one in devices)
    read = tc_script.configuration(tc_script.of_text(text, "x"), Source(text, "x", "x"))
    shapers = {direction: shaper.device for direction, shaper in read.shapers.items()}
    assert shapers == dict(zip(("up", "down"), found, strict=True))
    assert read.notes == (() if note is None else (note,))


@pytest.mark.parametrize(
    "devices",
    [
        ("lan1 tbf rate 5mbit burst 5k limit 9k", "wan cake bandwidth 1mbit", "ifb0 cake"),
        ("a fq_codel", "b fq_codel", "ifb0 cake"),
    ],
)
def test_several_devices_for_one_direction_are_refused(devices: tuple[str, ...]) -> None:
    text = "".join(f"tc qdisc add dev {one.replace(' ', ' root ', 1)}\n" for one in devices)
    with pytest.raises(sj.ScenarioError, match="have queues for one direction; expected one"):
        tc_script.configuration(tc_script.of_text(text, "x"), Source(text, "x", "x"))


def test_a_class_that_no_traffic_reaches_is_named(tmp_path: Path, sojourn: Command) -> None:
    (tmp_path / "router.sh").write_text(MANUAL)
    said = sojourn("import", "router.sh").stderr.splitlines()
    assert said[:2] == [
        (
            "note: router.sh: eth0: no traffic of this scenario matches source 1.2.3.4 and "
            "destination_port 80, so class 1:10 stays empty"
        ),
        (
            "note: router.sh: eth0: no traffic of this scenario matches source 1.2.3.4, so class 1:11 "
            "stays empty"
        ),
    ]


@pytest.mark.parametrize("text", [MANUAL, TIERS, BATCH])
def test_the_scenario_of_a_script_runs(text: str, tmp_path: Path, sojourn: Command) -> None:
    (tmp_path / "router.sh").write_text(text)
    imported = sojourn("import", "router.sh")
    assert imported.returncode == 0, imported.stderr
    scenario = sj.Scenario.from_toml(imported.stdout.replace("30s", "6s").replace('"5s"', '"1s"'))
    classes = sj.run(scenario).classes
    assert classes["sent_bytes"].sum() > 0


def test_a_script_is_printed_without_options(tmp_path: Path, sojourn: Command) -> None:
    (tmp_path / "router.sh").write_text(MANUAL)
    refused(
        sojourn("import", "router.sh", "--json"),
        2,
        "^sojourn: router.sh: --json is only for measurements$",
    )
