"""Queues as objects and as text."""

import pytest

import sojourn as sj
from sojourn import _core


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (sj.Pfifo(limit=127), "pfifo limit 127"),
        (sj.Bfifo(limit="64kb"), "bfifo limit 64kb"),
        (sj.Bfifo(headdrop=True), "bfifo headdrop"),
        (sj.PfifoHeadDrop(limit=9), "pfifo_head_drop limit 9"),
        (sj.Red(), "red"),
        (sj.Ared(avpkt=1514), "red avpkt 1514 adaptive"),
        (sj.FqNoCoDel(limit=127), "fq_nocodel limit 127"),
        (sj.Nlred(min=5, max=15), "nlred min 5 max 15"),
        (sj.CoDel(target="13ms", ecn=False), "codel target 13ms noecn"),
        (sj.FqCoDel(flows=64, quantum=300), "fq_codel flows 64 quantum 300"),
        (sj.Pie(target="20ms", tupdate="30ms"), "pie target 20ms tupdate 30ms"),
        (
            sj.Red(limit=1514000, min=12500, avpkt=1514, bandwidth="10mbit", adaptive=True),
            "red limit 1514000 min 12500 avpkt 1514 bandwidth 10mbit adaptive",
        ),
        (sj.Sfq(limit=127), "sfq limit 127"),
        (sj.Fq(flow_limit=50, refill_delay="20ms"), "fq flow_limit 50 refill_delay 20ms"),
        (sj.Choke(limit=400, min=30, max=90, ecn=True), "choke limit 400 min 30 max 90 ecn"),
        (sj.Blue(freeze="50ms", increment=0.02), "blue freeze 50ms increment 0.02"),
        (sj.Sfb(leaf=sj.Sfq(limit=9)), "sfb leaf sfq limit 9"),
        (
            sj.Drr(leaf=sj.Prio(leaf=[sj.Pie(), sj.Sfq()])),
            "drr leaf (prio leaf pie / sfq)",
        ),
        (sj.Pfifo(limit=9, ce_threshold="2ms"), "pfifo limit 9 ce_threshold 2ms"),
        (sj.Drr(classes=4, leaf=sj.CoDel()), "drr classes 4 leaf codel"),
        (sj.PfifoFast(limit=5, profile="linux-3.14"), "pfifo_fast limit 5 profile linux-3.14"),
        (sj.Prio(bands=2, priomap=[0, 1] * 8), "prio bands 2 priomap" + " 0 1" * 8),
        (sj.Prio(leaf=sj.CoDel()), "prio leaf codel"),
        (sj.Prio(leaf=[sj.CoDel(), sj.Pfifo(limit=9)]), "prio leaf codel / pfifo limit 9"),
        (
            sj.Prio(leaf=[sj.Prio(leaf=[sj.Pie(), sj.Sfq()]), sj.qdisc("codel ecn")]),
            "prio leaf (prio leaf pie / sfq) / codel ecn",
        ),
        (sj.Cocoa(profile="linux", flow_limit=200), "cocoa profile linux flow_limit 200"),
        (sj.Sfb(target=20, max=25), "sfb target 20 max 25"),
        (
            sj.DualPi2(coupling_factor=2, step_thresh="1ms", drop_on_overload=False),
            "dualpi2 coupling_factor 2 step_thresh 1ms nodrop_on_overload",
        ),
        (sj.FqPie(flows=64, ecn_prob=20, ecn=True), "fq_pie flows 64 ecn_prob 20 ecn"),
        (
            sj.Cake(bandwidth="10mbit", flowmode="dual-srchost", nat=True, overhead=18),
            "cake bandwidth 10mbit dual-srchost nat overhead 18",
        ),
        (sj.Ns2Red(min=5, max=15, bytes=False), "red_ns2 min 5 max 15 nobytes"),
        (sj.Hred(rtt="50ms", bandwidth="10mbit"), "hred rtt 50ms bandwidth 10mbit"),
        (sj.SfqCodel(limit=500, quantum=300), "sfq_codel limit 500 quantum 300"),
        (sj.Predict(slot="2ms", full=2, compact=True), "predict slot 2ms full 2 compact"),
        (sj.Cobalt(target="5ms", ecn=True), "cobalt target 5ms ecn"),
        (sj.Afcd(sample=50, average=True), "afcd sample 50 average"),
        (sj.AfcdKernel2012(limit=10_000), "afcd_kernel2012 limit 10000"),
        (sj.Afd(random=False, gain=0.5), "afd norandom gain 0.5"),
        (sj.AfqKernel2012(table=200), "afq table 200"),
        (
            sj.Floq(limit=200, setup_weight=0, resume="1s"),
            "floq limit 200 setup_weight 0 resume 1s",
        ),
        (sj.FloqShare(quic=False), "floq_share noquic"),
        (sj.FloqFixed(pushout=True), "floq_fixed pushout"),
        (sj.FloqProtect(ecn=True), "floq_protect ecn"),
    ],
)
def test_an_object_means_what_its_text_means(queue: sj.Queue, text: str) -> None:
    assert _core.parse_qdisc(queue.spec) == _core.parse_qdisc(text)


@pytest.mark.parametrize(
    "text",
    [
        "fq_codel target 5ms",
        "pfifo limit 10",
        "pie",
        "sfq",
        "red limit 100000 avpkt 1000",
        "fq",
        "choke",
        "blue",
        "drr leaf codel",
        "pfifo_fast",
        "prio leaf codel / (prio leaf pie / sfq)",
        "cocoa",
        "sfb",
        "predict",
        "cobalt",
        "sfq_codel",
        "red_ns2",
        "nlred",
        "hred",
        "fq_pie",
        "cake bandwidth 10mbit diffserv4 ack-filter",
        "afcd",
        "afcd_kernel2012",
        "afd",
        "afq",
        "floq",
        "floq_fixed",
        "dualpi2 step_thresh 500us profile linux",
    ],
)
def test_the_canonical_text_is_read_back_as_itself(text: str) -> None:
    canonical = sj.qdisc(text).spec
    assert sj.qdisc(canonical).spec == canonical


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("codell", "codel"),
        ("codel tarqet 5ms", "target"),
        ("pfifo limit 0", "limit"),
        ("codel target", "target"),
        ("prio leaf codel tarqet 5ms", "target"),
        ("prio priomap 1 2", "16 numbers"),
        ("", "queue"),
    ],
)
def test_the_error_of_a_queue_says_what_is_accepted(text: str, part: str) -> None:
    with pytest.raises(sj.ScenarioError, match=part):
        sj.qdisc(text)


def test_a_typed_queue_is_checked_when_built() -> None:
    with pytest.raises(sj.ScenarioError, match="target"):
        sj.CoDel(target="5")


def test_a_bare_time_in_a_text_is_a_warning_once() -> None:
    text = "fq_codel target 5432"
    note = "fq_codel: target 5432: tc reads 5432 as 5432us; write 5432us"
    with pytest.warns(sj.QueueWarning) as warned:
        queue = sj.qdisc(text)
    assert [str(one.message) for one in warned] == [note]
    assert warned[0].filename == __file__
    # Once: a scenario is copied often. The suite makes every warning an error.
    assert sj.qdisc(text) == queue


WHERE = ("links", "arms", "toml")


@pytest.mark.parametrize("where", WHERE)
def test_a_text_in_a_scenario_is_a_warning(where: str) -> None:
    text = f"codel interval {70_001 + WHERE.index(where)}"
    note = "codel: interval (7000.): tc reads .* as .*us"

    def build() -> None:
        if where == "toml":
            sj.Scenario.from_toml(TOML.replace("QUEUE", text))
            return
        sj.Scenario(
            links={
                "up": sj.Link(rate="10mbit", qdisc=text if where == "links" else "codel"),
                "down": sj.Link(rate="10mbit", qdisc="pfifo"),
            },
            traffic=[sj.Tcp(direction="up")],
            rtt="50ms",
            duration="10s",
            warmup="2s",
            arms=[sj.Arm(name="a", set={"links.up.qdisc": text})] if where == "arms" else [],
        )

    with pytest.warns(sj.QueueWarning, match=note) as warned:
        build()
    assert [one.filename for one in warned] == [__file__]


TOML = """
duration = "10s"
warmup = "2s"
rtt = "50ms"
links.up = {rate = "10mbit", qdisc = "QUEUE"}
links.down = {rate = "10mbit", qdisc = "pfifo"}
traffic = [{type = "tcp", direction = "up"}]
"""


def test_a_typed_number_that_the_kernel_would_change_is_an_error() -> None:
    with pytest.raises(sj.ScenarioError, match="sfq: depth: 127, not 1000: as in the kernel"):
        sj.Sfq(depth=1000)
    with pytest.raises(sj.ScenarioError, match="quantum: 256b, not 100: as in the kernel"):
        sj.FqCoDel(quantum=100)
    assert sj.FqCoDel(quantum=100, profile="rfc").spec == "fq_codel quantum 100 profile rfc"
