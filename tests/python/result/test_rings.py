"""The note on rings that hold packets below a queue, and the answer where the delay changes."""

import pytest

import sojourn as sj
from sojourn.report.answer import answer
from sojourn.report.view import view


def ring(**link: object) -> sj.Result:
    """Run an upload and pings through a ring of 256 packets at 10 Mbit/s, below FQ-CoDel."""
    up = sj.Link(rate="10mbit", qdisc="fq_codel", **{"tx_ring": 256, **link})  # type: ignore[arg-type]
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
        )
    )


@pytest.mark.parametrize("bql", [False, True])
def test_packets_that_wait_below_their_queue_are_noted(bql: bool) -> None:  # noqa: FBT001
    found = [one.text for one in ring(bql=bql).validity.findings if "in the ring" in one.text]
    assert len(found) == (0 if bql else 1)
    assert all("ring of link up, below its queue" in text for text in found)


@pytest.mark.parametrize("changes", [None, [{"at": "4s", "delay": "30ms"}]])
def test_the_answer_says_that_the_delay_of_the_path_changes(changes: object) -> None:
    sentence = answer(view(ring(bql=True, changes=changes)))
    assert sentence is not None
    assert ("before the load" in sentence) is bool(changes)
    assert ("on an idle line" in sentence) is not bool(changes)
    assert sentence.endswith("which changes, is part of this.") is bool(changes)
