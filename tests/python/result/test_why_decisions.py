"""Decisions of queues against a second program, and explanations of packets of all queues."""

import json
import math
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.result import why
from support import decided
from support.decided import NS, Chance, Codel, FqCodel, Seen, ahead, reread, scenario

RATE = 5_000_000
Row = dict[str, Any]


def drops_of(result: sj.Result, link: str) -> list[Row]:
    """Return the drops at a link, with their state."""
    rows = result.events.filter(link=link, action="drop").to_dicts()
    return [row | {"state": json.loads(row["state"])} for row in rows]


def captured(queue: str, tmp_path: Path, **changes: Any) -> tuple[sj.Result, dict[str, Any]]:
    """Run a scenario with a queue, and read its packets."""
    file = tmp_path / "run.pcapng"
    result = sj.run(scenario(queue, sample_state=True, **changes), pcap=file)
    return result, reread(file)


@pytest.mark.parametrize(
    ("queue", "program"),
    [("codel profile rfc", Codel), ("fq_codel profile rfc noecn", FqCodel)],
)
def test_codel_drops_what_the_rfc_drops(
    queue: str, program: type[Codel | FqCodel], tmp_path: Path
) -> None:
    """Which packets leave and when, every drop, its count, and when the next one is due."""
    result, packets = captured(queue, tmp_path)
    counts: Counter[int] = Counter()
    for link in ("up", "down"):
        found = list(decided.replay(packets[link], program(), RATE))
        drops = drops_of(result, link)
        assert len(found) == len(drops)
        for (at, drop), row in zip(found, drops, strict=True):
            assert round(row["t_s"] * NS) == at
            state = row["state"]
            assert state["count"] == drop.count
            assert state["drop_next"] == pytest.approx((drop.drop_next - at) / 1e3, abs=1)
            assert state["above"] == pytest.approx((at - drop.above_since) / 1e3, abs=1e-3)
            assert state["delay"] == pytest.approx(row["sojourn_ms"] * 1e3, abs=1e-3)
            counts[drop.count] += 1
    assert sum(counts.values()) > 40
    assert len(counts) > 2


def numbers_of(packets: list[Seen]) -> list[int]:
    """Return the numbers of the packets that were dropped on arrival, in this order."""
    dropped = [one for one in packets if one.is_dropped and one.left == one.arrived]
    return [one.number for one in sorted(dropped, key=lambda one: one.first)]


def check_certain(packets: list[Seen], chances: Iterable[Chance]) -> None:
    """Check that what must pass was not dropped, and that what must be dropped was."""
    dropped = set(numbers_of(packets))
    for chance in chances:
        assert chance.certain in {None, chance.number in dropped}


def test_pie_drops_by_the_probability_of_the_rfc(tmp_path: Path) -> None:
    """Its probability and the sum of them at every drop; and what the RFC leaves to no chance."""
    result, packets = captured("pie profile rfc", tmp_path)
    drawn = 0
    for link in ("up", "down"):
        chances = {chance.number: chance for chance in decided.pie(packets[link])}
        check_certain(packets[link], chances.values())
        for number, row in zip(numbers_of(packets[link]), drops_of(result, link), strict=True):
            state, chance = row["state"], chances[number]
            assert state["prob"] == pytest.approx(chance.probability, rel=1e-6)
            assert state["accu_prob"] == pytest.approx(chance.average, rel=1e-6)
            drawn += 1
        open_to_chance = [one.probability for one in chances.values() if one.certain is None]
        assert drawn == 0 or open_to_chance
    assert drawn > 40


@pytest.mark.parametrize("queue", ["red limit 100kb", "red limit 60kb min 8kb max 30kb"])
def test_red_drops_by_the_average_of_floyd_and_jacobson(queue: str, tmp_path: Path) -> None:
    """Its average, probability and count at every drop; no drop below min, every one above max.

    The kernel's average falls in steps while the link is idle. Where it is within 2 % of a
    threshold, the two may be on either side of it, and count one packet more or less since.
    """
    result, packets = captured(queue, tmp_path)
    drops = 0
    for link in ("up", "down"):
        text = result.links.filter(link=link)["qdisc"][0]
        given = dict(_core.qdisc_parameters(text, RATE))
        names = ("min", "max", "burst", "avpkt", "probability")
        parameters = {name: float(given[name].removesuffix("b")) for name in names}
        bounds = (parameters["min"], parameters["max"])
        chances = {one.number: one for one in decided.red(packets[link], parameters, RATE)}
        clear = {
            one.number: one
            for one in chances.values()
            if all(abs(one.average / bound - 1) > 0.02 for bound in bounds)
        }
        assert len(clear) > 0.7 * len(chances)
        limited = {one.number for one in packets[link] if one.comment.endswith("overlimit")}
        check_certain([one for one in packets[link] if one.number not in limited], clear.values())
        numbers = [number for number in numbers_of(packets[link]) if number not in limited]
        rows = [row for row in drops_of(result, link) if row["reason"] == "aqm"]
        for number, row in zip(numbers, rows, strict=True):
            state, chance = row["state"], chances[number]
            assert state["average"] == pytest.approx(chance.average, rel=0.01)
            if number in clear:
                slope = parameters["probability"] / (bounds[1] - bounds[0])
                most = 0.01 * chance.average * slope
                assert state["prob"] == pytest.approx(chance.probability, abs=most)
            if number in clear and chance.certain is None:
                assert abs(state["count"] - chance.count) <= 1
                assert state["count"] * state["prob"] < 1.1
            drops += 1
    assert drops > 40


# Queues that drop too little in a short run without this.
SMALL = {"fq_nocodel": "fq_nocodel limit 100", "fq": "fq flow_limit 20", "predict": "predict noecn"}
# Queues of the short test; the long one has all.
SOME = ("dualpi2", "sfb", "sfq_codel", "cobalt", "afd", "fq_nocodel")
NAMES = [str(entry["name"]) for entry in json.loads(_core.qdisc_catalogue())]
# Even numbers for each, of its two runs.
EACH, SLOWEST = (2 * math.ceil(total / len(NAMES) / 2) for total in (1000, 200))
# Marks that are explained besides.
MARKS = 2


def explain_many(name: str, folder: Path, *, drops: int, slowest: int) -> Counter[str]:
    """Explain random drops and slow packets of runs with a queue, and count them.

    Sojourn time, what was ahead, and what waited at the decision are those of the capture.
    """
    queue = SMALL.get(name, name)
    result = sj.run(scenario(queue, replications=2))
    sj.export(result, folder, "pcapng")
    counts: Counter[str] = Counter()
    for replication in (0, 1):
        packets = reread(folder / f"default-{replication}.pcapng")
        events = result.events.filter(replication=replication)
        generator = random.Random(f"{name} {replication}")  # noqa: S311 - reproducible
        chosen = [
            number
            for action, most in (("drop", drops // 2), ("mark", MARKS))
            for rows in [[n for n, what in enumerate(events["action"]) if what == action]]
            for number in generator.sample(rows, min(len(rows), most))
        ]
        places = [(flow, link) for flow in result.flows["flow"].unique() for link in packets]
        with why.repeating(result, None, replication) as run:
            for number in chosen:
                facts = run.explained(why.Choice(drop=number))
                event = events.row(number, named=True)
                names = ("link", "flow", "action", "reason")
                assert {name: facts[name] for name in names} == {
                    name: event[name] for name in names
                }
                assert facts["action_s"] == pytest.approx(event["t_s"], abs=1e-9)
                assert facts["waited_until_action_ms"] == pytest.approx(event["sojourn_ms"])
                check_explained(facts, packets[facts["link"]])
                counts[facts["action"]] += 1
            for flow, link in sorted(places)[: slowest // 2]:
                facts = run.explained(why.Choice(slowest=True, flow=flow, link=link))
                check_explained(facts, packets[link])
                check_slowest(facts, packets[link])
                counts["slowest"] += 1
    return counts


def check_explained(facts: Row, packets: list[Seen]) -> None:
    """Compare an explanation with the packets of its link."""
    seen = next(one for one in packets if one.number == facts["packet"])
    there = ahead(packets, seen)
    assert facts["ahead"] == {
        "packets": len(there),
        "bytes": sum(one.bytes for one in there),
        "flows": len({one.ports for one in there}),
    }
    assert facts["arrived_s"] == seen.arrived / NS
    assert facts["waited_ms"] == pytest.approx((seen.left - seen.arrived) / 1e6, abs=1e-9)
    if facts["action"] in {None, "loss"}:
        return
    assert "decision" in f"{facts}"
    moment = seen.last if round(facts["action_s"] * NS) == seen.left else seen.first
    then = [one for one in packets if one.first < moment < one.last and one != seen]
    assert facts["backlog"] == {
        "packets": len(then),
        "bytes": sum(one.bytes for one in then),
        "flows": len({one.ports for one in then}),
        "packets_of_flow": sum(one.ports == seen.ports for one in then),
    }


def check_slowest(facts: Row, packets: list[Seen]) -> None:
    """Check that no other packet of the flow that was sent after the warm-up waited longer."""
    seen = next(one for one in packets if one.number == facts["packet"])
    others = (
        one.left - one.arrived
        for one in packets
        if one.ports == seen.ports and NS <= one.left < decided.WAITS and not one.is_dropped
    )
    assert max(others) == seen.left - seen.arrived


@pytest.mark.parametrize("name", SOME)
def test_random_packets_are_explained(name: str, tmp_path: Path) -> None:
    counts = explain_many(name, tmp_path, drops=4, slowest=2)
    assert (counts["drop"], counts["slowest"]) == (4, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_random_packets_of_every_queue_are_explained(name: str, tmp_path: Path) -> None:
    """Of all queues that can be built by their name: 1,000 drops and 200 slowest packets."""
    counts = explain_many(name, tmp_path, drops=EACH, slowest=SLOWEST)
    assert (counts["drop"], counts["slowest"]) == (EACH, SLOWEST)
