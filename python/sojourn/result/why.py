"""Explains one packet of a run: what it met at a queue, what the queue did, how its sender reacted.

The run is repeated with its packets captured, its events kept, and series of short intervals.
"""

import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError, in_argument
from sojourn.queues import plugin
from sojourn.queues.python_class import registered
from sojourn.queues.queue_file import short
from sojourn.result import decisions, repeated
from sojourn.result.estimates import check_arms
from sojourn.result.formatting import counted, first_of, significant, size
from sojourn.result.visits import Visit, visits, way
from sojourn.scenario import Scenario

if TYPE_CHECKING:
    from sojourn.result.result import Result

Row = dict[str, Any]

_NS_PER_S, _NS_PER_MS = 1e9, 1e6
# The series of the repeated run have the shortest sample interval with at most this many rows.
_ROWS = 1_000_000
# A drop or mark is near a time if it is at most this many milliseconds away.
_NEAR_MS = 100
# Round trips in which a window that reacts has fallen.
_ROUND_TRIPS = 3
_REASONS = {
    "overlimit": " over its limit",
    "aqm": " by its AQM",
    "ack_filter": " by its ACK filter",
    "replaced": " with its queue",
    "ce_threshold": " above ce_threshold",
    "wire": "",
}
_DONE = {"drop": "dropped", "mark": "CE-marked", "loss": "lost"}
_ACTIONS = {"dropped": "drop", "marked": "mark", "lost": "loss"}
# The sender of flows without a host, over IPv4 and IPv6; the first characters of the addresses of
# the hosts of the others, and of their servers.
_SENDERS = {"198.18.0.1", "2001:2::1"}
_CLIENTS = ("198.18.1.", "2001:2::1")
_SERVERS = ("10.", "fd53:6f6a:6f75:726e:")


class Explanation(dict[str, Any]):
    """The facts about a packet, by name; as a text, their explanation."""

    # The repeated run, which figures show.
    again: "Result"

    @property
    def answer(self) -> str:
        """What happened to the packet, in one line."""
        return _core.printable(_answer(self))

    def __str__(self) -> str:
        """Return the explanation: the answer, then the history of the packet."""
        history = ((name, line) for name, line in _history(self) if line)
        lines = [_core.printable(f"  {name:9}{line}") for name, line in history]
        return "\n".join([self.answer, *lines])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which packet to explain; by default the one that waited longest."""

    at: str | None = None
    drop: int | None = None
    slowest: bool = False
    flow: int | str | None = None
    link: str | None = None

    def at_s(self) -> float | None:
        """Check that the choice is one, and return its time."""
        given = {"at": self.at, "drop": self.drop, "slowest": self.slowest or None}
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise ArgumentError(names[1], rule=f"expected without {{{names[0]}}}")
        if self.at is None:
            return None
        with in_argument("at", self.at):
            return _core.parse_time_s(self.at)


def explain(
    result: "Result", choice: Choice, *, arm: str | None = None, replication: int = 0
) -> Explanation:
    """Explain a packet of a run; see :meth:`sojourn.Result.why`."""
    choice.at_s()
    with repeating(result, arm, replication) as run:
        return run.explained(choice)


@contextmanager
def repeating(result: "Result", arm: str | None, replication: int) -> Iterator["Run"]:
    """Repeat a run, to explain packets of it."""
    arm = result.arms[0] if arm is None else arm
    check_arms(result.table()["arm"], "arm", arm)
    repeated.check(result)
    flows = result.flows.filter(arm=arm)
    finished = flows["replication"].unique().to_list()
    if replication not in finished:
        rule = "no finished run; expected 0 to {last}"
        raise ArgumentError("replication", replication, rule, last=max(finished))
    names = result.scenario.checked.external_queues
    plugin.loaded(names)
    for name in names:
        if name.startswith(_core.python_prefix()):
            registered(name)
    with tempfile.TemporaryDirectory(prefix="sojourn-") as folder:
        capture = Path(folder, "run.pcapng")
        capture.touch()
        of_run = flows.filter(replication=replication)
        sample = sample_interval(result.scenario, flows=of_run.height)
        try:
            again = repeated.repeat(result, (arm, replication), capture, sample=sample)
        except OSError as error:
            message = f"cannot write the packets to {capture}: {error.strerror or error}"
            raise _core.ResultError(message) from None
        yield Run(again, capture)


def sample_interval(scenario: Scenario, *, flows: int) -> str:
    """Return the sample interval of a repeated run."""
    milliseconds = scenario.checked.duration_s * 1000
    return f"{max(math.ceil(milliseconds * flows / _ROWS), 1)}ms"


class Run:
    """The repeated run: its tables and its capture."""

    def __init__(self, again: "Result", capture: Path) -> None:
        self.again = again
        self.capture = capture
        self.flows = again.flows.to_dicts()
        self.names = [row["flow"] for row in self.flows]
        self.links = {row["link"]: row for row in again.links.to_dicts()}
        self._applications = [self.names.index(name) for name in again.applications["flow"]]

    def explained(self, choice: Choice) -> Explanation:
        """Explain a packet of it."""
        (arm, replication), *_ = self.again.links.select("arm", "replication").rows()
        facts = _Facts(self, _Search(self, choice).found()).all()
        explanation = Explanation(arm=arm, replication=replication, **facts)
        explanation.again = self.again
        return explanation

    def number(self, given: int | str) -> int:
        """Return the number of a flow that is given by number or name."""
        if given in self.names:
            return self.names.index(f"{given}")
        number = int(given) if f"{given}".isdecimal() else len(self.names)
        if number >= len(self.names):
            rule = "unknown; expected 0 to {last}, or a name: {names}"
            last, names = len(self.names) - 1, first_of(self.names)
            raise ArgumentError("flow", given, rule, last=last, names=names)
        return number

    def is_known(self, flow: int) -> bool:
        """Whether the packets of a flow can be distinguished from those of others."""
        return flow not in self._applications or len(self._applications) == 1

    def flow_of(self, visit: Visit) -> int | None:
        """Return the flow of a packet; None for a connection of one of several applications."""
        if visit.flow < len(self.names):
            return visit.flow
        return self._applications[0] if len(self._applications) == 1 else None

    def alike(self) -> Row | None:
        """Return what flows of several applications have in common; None if they differ."""
        keys = ("group", "direction", "rtt_ms", "cc")
        rows = [{key: self.flows[number][key] for key in keys} for number in self._applications]
        return rows[0] | {"flow": None} if all(row == rows[0] for row in rows) else None

    def events(self, *, flow: int | None = None, link: str | None = None) -> list[Row]:
        """Return the drops, marks and losses, of all flows and links or of one, in their order."""
        chosen = self.again.events.with_row_index("number")
        if flow is not None:
            chosen = chosen.filter(flow=self.names[flow])
        if link is not None:
            chosen = chosen.filter(link=link)
        at = (pl.col("t_s") * _NS_PER_S).round().cast(pl.Int64)
        return chosen.with_columns(at=at).to_dicts()


@dataclass(frozen=True, slots=True)
class Found:
    """The packet that was chosen; what the queue or the wire did to it."""

    visit: Visit
    flow: int | None
    event: Row | None
    # The rest of a sentence that says why it was chosen, unless for the event.
    because: str = ""


class _Search:
    """The search for the packet in the repeated run."""

    def __init__(self, run: Run, choice: Choice) -> None:
        self._run, self._choice, self._at_s = run, choice, choice.at_s()
        if choice.link is not None and choice.link not in run.links:
            known = ", ".join(run.links)
            raise ArgumentError("link", choice.link, "unknown; expected {known}", known=known)
        self._flow = None if choice.flow is None else run.number(choice.flow)

    def found(self) -> Found:
        """Return the packet."""
        drop, at_s = self._choice.drop, self._at_s
        events = self._run.events(flow=self._flow, link=self._choice.link)
        if drop is not None:
            if 0 <= drop < len(events):
                return self._of_event(events[drop])
            rule = f"the run has {_counted(len(events))}{self._where()}, counted from 0"
            raise ArgumentError("drop", drop, rule)
        if at_s is None:
            return self._slowest()
        near = min(events, key=lambda one: abs(one["t_s"] - at_s), default=None)
        if near is None or abs(near["t_s"] - at_s) > _NEAR_MS / 1000:
            return self._waiting(round(at_s * _NS_PER_S))
        return self._of_event(near)

    def _where(self) -> str:
        """Return the part of the run that is searched."""
        flow = "" if self._flow is None else f" of flow {self._run.names[self._flow]}"
        return flow + (f" at {self._choice.link}" if self._choice.link is not None else "")

    def _visits(self) -> Iterator[Visit]:
        """Return the visits of the chosen flow or link that ended with sending the packet."""
        if self._flow is not None and not self._run.is_known(self._flow):
            rule = "a capture does not tell connections of applications apart; expected {drop}"
            raise ArgumentError("flow", self._choice.flow, rule)
        return (
            one
            for one in visits(self._run.capture)
            if self._choice.link in {None, one.link}
            and self._flow in {None, self._run.flow_of(one)}
            and not one.comment.startswith("lost")
        )

    def _slowest(self) -> Found:
        """Return the packet that waited longest, of those that were sent after the warm-up."""
        warmup = self._run.again.scenario.checked.warmup_s * _NS_PER_S
        longest, number = None, 0
        for one in self._visits():
            if one.left >= warmup and not one.is_dropped:
                number += 1
                if longest is None or one.waited > longest.waited:
                    longest = one
        if longest is None:
            message = f"no packet{self._where()} left a queue after the warm-up"
            raise _core.ResultError(message)
        return self._of_visit(longest, f"{self._longest_of(number)} sent after the warm-up")

    def _waiting(self, at: int) -> Found:
        """Return the packet that waited longest, of those that were in a queue at a time."""
        there = [one for one in self._visits() if one.arrived <= at < one.left]
        if not there:
            rule = (
                f"no packet{self._where()} waited then, and none was dropped or marked within "
                f"{_NEAR_MS} ms; expected another time"
            )
            raise ArgumentError("at", self._choice.at, rule)
        longest = max(there, key=lambda one: one.waited)
        return self._of_visit(longest, f"{self._longest_of(len(there))} waiting then")

    def _longest_of(self, number: int) -> str:
        """Write that a packet is the one of a number that waited longest."""
        packets = "the only packet" if number == 1 else f"the longest of the {number} packets"
        return packets + self._where()

    def _of_visit(self, visit: Visit, because: str) -> Found:
        """Return a visit with what happened to the packet."""
        flow = self._run.flow_of(visit)
        if not visit.comment:
            return Found(visit, flow, None, because)
        events = self._run.events(flow=flow, link=visit.link)
        event = next((one for one in events if _fits(visit, one)), None)
        return Found(visit, flow, event, because)

    def _of_event(self, event: Row) -> Found:
        """Return the packet of a drop, mark or loss."""
        flow = self._run.names.index(event["flow"])
        known = flow if self._run.is_known(flow) else None
        fitting = [
            one
            for one in visits(self._run.capture)
            if one.link == event["link"] and self._run.flow_of(one) == known and _fits(one, event)
        ]
        # Decisions about packets that arrived together have the order of the packets.
        keys = ("at", "action", "sojourn_ms")
        alike = [
            one["number"]
            for one in self._run.events(flow=flow, link=event["link"])
            if all(one[key] == event[key] for key in keys)
        ]
        return Found(fitting[alike.index(event["number"])], flow, event)


def _fits(visit: Visit, event: Row) -> bool:
    """Return whether an event at the link of a visit, of its flow, may be that of the packet."""
    if _ACTIONS.get(visit.comment.partition(" ")[0].rstrip(":")) != event["action"]:
        return False
    if visit.lost is not None:
        return bool(event["at"] == visit.lost)
    waited = round(event["sojourn_ms"] * _NS_PER_MS)
    return bool(event["at"] - waited == visit.arrived and event["at"] <= visit.left)


class _Facts:
    """The facts about the packet that was found."""

    def __init__(self, run: Run, found: Found) -> None:
        self._run, self._found = run, found
        self._visit = found.visit
        self._flow = run.alike() if found.flow is None else run.flows[found.flow]

    def all(self) -> dict[str, Any]:
        """Return the facts, by name."""
        visit, flow, event = self._visit, self._flow, self._found.event
        entered, again = way(self._run.capture, visit)
        delay = self._delay()
        sent = None if delay is None else entered - delay
        link = self._run.links[visit.link]
        reason = None if event is None else event["reason"]
        return {
            "because": self._found.because or None,
            "link": visit.link,
            "queue": link["qdisc"],
            "rate_mbit_per_s": link["rate_mbit_per_s"],
            "packet": visit.number,
            "kind": visit.kind,
            "bytes": visit.length,
            "flow": flow and flow["flow"],
            "flow_number": self._found.flow,
            "group": flow and flow["group"],
            "sent_s": None if sent is None else sent / _NS_PER_S,
            "window": None if sent is None or not self._is_data() else self._window(sent),
            "arrived_s": visit.arrived / _NS_PER_S,
            "ahead": {
                "packets": visit.ahead.packets,
                "bytes": visit.ahead.bytes,
                "flows": visit.flows_ahead,
            },
            "inner_queue": None
            if visit.inner_ahead is None
            else {
                "number": visit.inner,
                "packets": visit.inner_ahead.packets,
                "bytes": visit.inner_ahead.bytes,
            },
            "waited_ms": visit.waited / _NS_PER_MS,
            "left_s": visit.left / _NS_PER_S,
            "action": None if event is None else event["action"],
            "reason": reason,
            "action_s": None if event is None else event["at"] / _NS_PER_S,
            "waited_until_action_ms": None
            if event is None
            else (event["at"] - visit.arrived) / _NS_PER_MS,
            "parameters": self._parameters(f"{reason}", link),
            "state": None if event is None else json.loads(event["state"] or "null"),
            "backlog": self._backlog(event),
            "sent_again_s": None if again is None or delay is None else (again - delay) / _NS_PER_S,
            "reaction": None if event is None or not self._is_data() else self._reaction(event),
        }

    def _is_forward(self) -> bool:
        """Whether the packet goes from the sender of data to its receiver."""
        source = self._visit.source
        if source in _SENDERS:
            return True
        if source.startswith(_SERVERS):
            return self._flow is not None and self._flow["direction"] == "down"
        if source.startswith(_CLIENTS):
            return self._flow is None or self._flow["direction"] != "down"
        return False

    def _is_data(self) -> bool:
        """Whether the window of the sender counts the packet."""
        return self._is_forward() and self._visit.kind in {"segment", "datagram"}

    def _delay(self) -> int | None:
        """Return the time from sending a packet to the first link, in ns; None: not known.

        Half of the RTT is before the links if the far host sends, and behind them otherwise.
        """
        if self._flow is None:
            return None
        rtt = round(self._flow["rtt_ms"] * _NS_PER_MS)
        there = rtt // 2
        if self._is_forward():
            return there if self._flow["direction"] == "down" else 0
        return 0 if self._flow["direction"] == "down" else rtt - there

    def _parameters(self, reason: str, link: Row) -> dict[str, str]:
        """Return the parameters of the queue that a decision of this reason depends on."""
        rate = link["rate_mbit_per_s"]
        bits = None if rate is None else round(rate * 1e6)
        values = dict(_core.qdisc_parameters(link["qdisc"], bits))
        return {key: values[key] for key in decisions.PARAMETERS.get(reason, ()) if key in values}

    def _backlog(self, event: Row | None) -> dict[str, int | None] | None:
        """Return what was in the queue when it had decided, without the packet."""
        if event is None or event["backlog_packets"] is None:
            return None
        visit = self._visit
        on_arrival = event["at"] == visit.arrived < visit.left
        return {
            "packets": event["backlog_packets"],
            "bytes": event["backlog_bytes"],
            "flows": visit.flows_ahead if on_arrival else visit.flows_behind,
            "packets_of_flow": visit.of_flow_ahead if on_arrival else visit.of_flow_behind,
        }

    def _series(self) -> list[Row]:
        """Return the samples of the window of the flow."""
        if self._found.flow is None:
            return []
        samples = self._run.again.flow_series.filter(flow=self._run.names[self._found.flow])
        return samples.drop_nulls("cwnd_packets").to_dicts()

    def _window(self, at: int) -> dict[str, Any] | None:
        """Return the last sample of the window up to a time."""
        last = None
        for one in self._series():
            if one["t_s"] * _NS_PER_S > at:
                break
            last = one
        return last and {
            "packets": last["cwnd_packets"],
            "in_flight_packets": last["in_flight_packets"],
            "t_s": last["t_s"],
        }

    def _reaction(self, event: Row) -> dict[str, Any] | None:
        """Return the first fall of the window that may follow from an event."""
        samples = self._series()
        before, delay = self._window(event["at"]), self._delay()
        if before is None or delay is None or self._flow is None:
            return None
        base = self._flow["rtt_ms"] / 1000
        srtt = next(one["srtt_ms"] for one in samples if one["t_s"] == before["t_s"])
        round_trip = base if srtt is None else srtt / 1000
        # The sender cannot know earlier.
        first = event["t_s"] + base - delay / _NS_PER_S
        last = event["t_s"] + _ROUND_TRIPS * round_trip
        within = [one for one in samples if before["t_s"] <= one["t_s"] <= last]
        facts = {
            "cc": self._flow["cc"],
            "round_trip_ms": round_trip * 1000,
            "before_packets": before["packets"],
        }
        for one, two in pairwise(within):
            if two["t_s"] >= first and two["cwnd_packets"] < one["cwnd_packets"]:
                end = _end_of_fall(samples[samples.index(two) :], two["t_s"] + round_trip)
                return facts | {
                    "fell": True,
                    "from_packets": one["cwnd_packets"],
                    "to_packets": end["cwnd_packets"],
                    "from_s": two["t_s"],
                    "to_s": end["t_s"],
                    "other_events": self._others(event, two["t_s"], round_trip),
                }
        return facts | {
            "fell": False,
            "from_packets": before["packets"],
            "to_packets": within[-1]["cwnd_packets"],
            "from_s": before["t_s"],
            "to_s": within[-1]["t_s"],
            "other_events": 0,
        }

    def _others(self, event: Row, fell_s: float, round_trip: float) -> int:
        """Count the other events of the flow, from a round trip before this one to the fall."""
        return sum(
            event["t_s"] - round_trip <= one["t_s"] < fell_s
            for one in self._run.events(flow=self._found.flow)
            if one["number"] != event["number"]
        )


def _end_of_fall(samples: Sequence[Row], until: float) -> Row:
    """Return the sample at the end of a fall that begins with the first sample."""
    end = samples[0]
    for one in samples[1:]:
        if one["cwnd_packets"] > end["cwnd_packets"] or one["t_s"] > until:
            break
        if one["cwnd_packets"] < end["cwnd_packets"]:
            end = one
    return end


def _counted(number: int, which: str = "") -> str:
    """Write a number of events."""
    if number == 1:
        return f"1 {which}drop, mark or loss"
    return f"{number or 'no'} {which}drops, marks and losses"


def _at(seconds: float) -> str:
    return f"{seconds:.4f} s"


def _packets(facts: Row) -> str:
    """Write packets and their bytes."""
    number, length = facts["packets"], facts["bytes"]
    return f"{counted(number, 'packet')} ({size(length)})" if number else "no packet"


def _answer(facts: Row) -> str:
    """Write what happened to the packet."""
    of = f"a connection of {facts['group'] or 'an application'}"
    if facts["flow"] is not None:
        of = f"{facts['flow']} (flow {facts['flow_number']})"
    queue, link = short(facts["queue"]).split()[0], facts["link"]
    packet = f"packet {facts['packet']} of {of}"
    if facts["because"]:
        waited = significant(facts["waited_ms"])
        return f"{packet} waited {waited} ms in {queue} at {link}, {facts['because']}"
    if facts["action"] == "loss":
        return f"the wire behind {link} lost {packet} at {_at(facts['action_s'])}"
    until = facts["waited_until_action_ms"]
    had = f"after waiting {significant(until)} ms" if until else "on arrival"
    done = f"{_DONE[facts['action']]} {packet} at {_at(facts['action_s'])}"
    return f"{queue} at {link} {done}{_REASONS[facts['reason']]}, {had}"


def _history(facts: Row) -> Iterator[tuple[str, str]]:
    """Write the lines of the history of the packet, with their names."""
    rate = facts["rate_mbit_per_s"]
    yield "queue", short(facts["queue"]) + ("" if rate is None else f", {rate:g} Mbit/s")
    window = facts["window"]
    in_flight = (
        f"; window {window['packets']}, {window['in_flight_packets']} in flight" if window else ""
    )
    sent = "" if facts["sent_s"] is None else f"{_at(facts['sent_s'])}: "
    yield "sent", f"{sent}{facts['kind']}, {facts['bytes']} B{in_flight}"
    ahead, inner = facts["ahead"], facts["inner_queue"]
    of = f" of {counted(ahead['flows'], 'flow')}" if ahead["flows"] else ""
    yield "arrived", f"{_at(facts['arrived_s'])}: {_packets(ahead)}{of} waited in the queue"
    yield "", "" if inner is None else f"{_packets(inner)} of these in its queue {inner['number']}"
    if facts["because"] and facts["action"]:
        yield _DONE[facts["action"]], f"{_at(facts['action_s'])}{_REASONS[facts['reason']]}"
    if facts["backlog"] is not None:
        numbers, waiting = decisions.explained(facts)
        yield "decision", numbers or waiting
        yield "", waiting if numbers else ""
    if facts["action"] != "drop":
        yield "left", f"{_at(facts['left_s'])}, after {significant(facts['waited_ms'])} ms"
    if facts["sent_again_s"] is not None:
        yield "resent", _at(facts["sent_again_s"])
    if facts["reaction"] is not None:
        yield from _reacted(facts["reaction"], facts["action_s"])


def _reacted(facts: Row, action_s: float) -> Iterator[tuple[str, str]]:
    """Write how the sender reacted."""
    change = f"{facts['from_packets']} → {facts['to_packets']} packets ({facts['cc']})"
    trips = f"round trip {significant(facts['round_trip_ms'])} ms"
    if not facts["fell"]:
        yield "sender", f"not reduced by {_at(facts['to_s'])}: window {change}; {trips}"
        return
    until = f" to {_at(facts['to_s'])}" if facts["to_s"] > facts["from_s"] else ""
    after = significant((facts["from_s"] - action_s) * 1000)
    yield "sender", f"{_at(facts['from_s'])}{until}: window {change}, {after} ms later; {trips}"
    others, before = facts["other_events"], facts["before_packets"]
    if before > facts["from_packets"]:
        yield "", f"before that, it had already fallen from {before} packets"
    if others:
        yield "", f"{_counted(others, 'other ')} of this flow in the round trip before, or since"
