"""The note on rings that hold packets below a queue, and the answer where the delay changes."""

from collections.abc import Mapping

import pytest

import sojourn as sj
from sojourn.report.answer import answer
from sojourn.report.view import view


def ring(arm: Mapping[str, object] | None = None, **link: object) -> sj.Result:
    """Run an upload and pings through a ring of 256 packets at 10 Mbit/s, below FQ-CoDel."""
    keys = {"rate": "10mbit", "qdisc": "fq_codel", "tx_ring": 256, **link}
    up = sj.Link(**keys)  # type: ignore[arg-type]
    return sj.run(
        sj.Scenario(
            links={"up": up, "down": "unlimited"},
            traffic=[
                sj.Tcp(direction="up", start="2s"),
                sj.Ping(direction="up", interval="100ms"),
            ],
            rtt="20ms",
            duration="12s",
            warmup="6s",
            arms=[sj.Arm(name="arm", set=arm or {})],
        )
    )


@pytest.mark.parametrize("bql", [False, True])
def test_packets_that_wait_below_their_queue_are_noted(bql: bool) -> None:  # noqa: FBT001
    found = [one.text for one in ring(bql=bql).validity.findings if "in the ring" in one.text]
    assert len(found) == (0 if bql else 1)
    assert all("in the queue above it" in text for text in found)


def test_a_link_whose_packets_wait_in_its_ring_is_a_bottleneck() -> None:
    up = sj.Link(rate="10mbit", qdisc="pfifo", tx_ring=4000, bql=False)
    queues = ["pfifo", "fq_codel"]
    result = sj.run(
        sj.Scenario(
            links={"up": up, "down": "unlimited"},
            traffic=[sj.Tcp(direction="up")],
            rtt="20ms",
            duration="12s",
            warmup="6s",
            arms=[sj.Arm(name=name, set={"links.up.qdisc": name}) for name in queues],
        ),
        replications=1,
    )
    assert max(result.links["busy_share"].drop_nulls()) < 0.05
    assert not any("was a bottleneck" in one.text for one in result.validity.findings)


def test_two_packets_on_a_slow_link_are_no_deep_ring() -> None:
    found = [one.text for one in ring(rate="1mbit").validity.findings]
    assert not any("in the ring" in text for text in found)


@pytest.mark.parametrize("delay", ["30ms", "0ms"])
@pytest.mark.parametrize("where", ["link", "arm", "nowhere"])
def test_the_answer_says_that_the_delay_of_the_path_changes(where: str, delay: str) -> None:
    changes = [{"at": "4s", "delay": delay}]
    here = {"changes": changes} if where == "link" else {}
    of_arm = {"links.up.changes": changes} if where == "arm" else {}
    sentence = answer(view(ring(bql=True, delay="10ms", arm=of_arm, **here)))
    assert sentence is not None
    assert ("on an idle line" in sentence) is (where == "nowhere")
    assert sentence.endswith("includes that.") is (where != "nowhere")
