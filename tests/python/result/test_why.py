"""Explanations of packets: every number again from the capture by another program, and refusals.

The other program counts what is ahead of a packet from the positions of records in the file; the
engine's own samples of the backlog and its longest sojourn time confirm the replay.
"""

import json
import random
import re
from collections import defaultdict
from errno import ENOSPC
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.plot import packet
from sojourn.queues import python_class
from sojourn.result import repeated, why
from sojourn.result.visits import Visit, visits
from support.decided import NS, RATE, RTT_MS, Seen, ahead, reread, scenario
from support.refusals import refused
from support.shell import Command

QUEUES = ("pfifo limit 30", "codel ecn", "fq_codel limit 60", "pie ecn", "red limit 100kb", "cake")


@pytest.fixture(scope="module", params=QUEUES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the result and the capture of a run with a queue."""
    file = tmp_path_factory.mktemp("why") / "run.pcapng"
    return sj.run(scenario(request.param), pcap=file), file


def test_explanations_are_those_of_the_capture(run: tuple[sj.Result, Path]) -> None:
    result, file = run
    packets = reread(file)
    dropped = result.events.height
    assert dropped > 10
    chosen = random.Random(3).sample(range(dropped), 4)  # noqa: S311 - reproducible
    explained = [result.why(drop=number) for number in chosen]
    for facts in [*explained, result.why(slowest=True)]:
        seen = next(one for one in packets[facts["link"]] if one.number == facts["packet"])
        there = ahead(packets[facts["link"]], seen)
        assert facts["ahead"] == {
            "packets": len(there),
            "bytes": sum(one.bytes for one in there),
            "flows": len({one.ports for one in there}),
        }
        assert facts["arrived_s"] == seen.arrived / NS
        assert facts["waited_ms"] == pytest.approx((seen.left - seen.arrived) / 1e6, abs=1e-9)
        if facts["action"] is not None:
            assert seen.comment.startswith({"drop": "dropped", "mark": "marked"}[facts["action"]])
            assert seen.comment.endswith(facts["reason"])
    for number, facts in zip(chosen, explained, strict=True):
        event = result.events.row(number, named=True)
        names = ("link", "flow", "action", "reason")
        assert {name: facts[name] for name in names} == {name: event[name] for name in names}
        assert facts["action_s"] == pytest.approx(event["t_s"], abs=1e-9)


def test_the_slowest_packets_are_those_of_the_capture(run: tuple[sj.Result, Path]) -> None:
    result, file = run
    packets = reread(file)

    def key(one: Seen | Visit) -> int:
        return one.arrived - one.left

    replayed: dict[str, list[Visit]] = defaultdict(list)
    for visit in visits(file):
        replayed[visit.link].append(visit)
    for link, those in packets.items():
        ended = [one for one in those if one.left < 1 << 62]
        for visit, seen in zip(
            sorted(replayed[link], key=key)[:20], sorted(ended, key=key)[:20], strict=True
        ):
            assert (visit.number, visit.arrived, visit.left) == (
                seen.number,
                seen.arrived,
                seen.left,
            )
            there = ahead(those, seen)
            assert visit.ahead.packets == len(there)
            assert visit.ahead.bytes == sum(one.bytes for one in there)
            assert visit.flows_ahead == len({one.ports for one in there})
    slowest = result.links.select("link", "sojourn_ms_max").rows()
    for link, longest in slowest:
        assert result.why(link=link)["waited_ms"] == pytest.approx(longest, rel=1e-6)


def test_the_replay_has_the_backlog_of_the_engine(run: tuple[sj.Result, Path]) -> None:
    result, file = run
    ended = list(visits(file))
    checked = 0
    for row in result.link_series.filter(pl.col("t_s") < 5).to_dicts():
        now = round(row["t_s"] * NS)
        there = [one for one in ended if one.link == row["link"] and one.arrived < now <= one.left]
        if not any(now in {one.arrived, one.left} for one in there):
            assert len(there) == row["backlog_packets"]
            assert sum(one.length for one in there) == row["backlog_bytes"]
            checked += len(there) > 0
    assert checked > 20


@pytest.fixture(scope="module")
def codel() -> sj.Result:
    """Return a run with CoDel."""
    return sj.run(scenario("codel"))


def stamp(file: Path, number: int) -> int:
    """Read the TCP timestamp of a packet, with the options in the order of Linux."""
    head = next(one.head for one in visits(file) if one.number == number)
    options = head[40 : 20 + (head[32] >> 4) * 4]
    # Two of padding, then kind 8 and its length.
    assert options[:4] == b"\x01\x01\x08\x0a"
    return int.from_bytes(options[4:8])


def test_the_time_of_sending_is_that_of_the_tcp_timestamp(tmp_path: Path) -> None:
    """Timestamps count milliseconds by the clock of the sending host."""
    file = tmp_path / "run.pcapng"
    result = sj.run(scenario("codel"), pcap=file)
    hosts = defaultdict(list)
    for flow, data in (("tcp up/1", "up"), ("tcp up/2", "up"), ("tcp down", "down")):
        for link in ("up", "down"):
            facts = result.why(flow=flow, link=link)
            assert facts["kind"] == ("segment" if link == data else "acknowledgement")
            offset = stamp(file, facts["packet"]) - facts["sent_s"] * 1000
            hosts[facts["kind"]].append(offset)
    # Data and acknowledgements come from one host each; the links are near one of them.
    for offsets in hosts.values():
        assert max(offsets) - min(offsets) < 1


def test_the_reaction_is_the_first_fall_that_the_sender_could_know_of() -> None:
    result = sj.run(scenario("codel", sample="1ms", duration="4s"))
    series = result.flow_series
    fell = 0
    for number, event in enumerate(result.events.to_dicts()):
        facts = result.why(drop=number)["reaction"] if event["flow"] == "tcp up/1" else None
        if facts is None:
            continue
        of_flow = series.filter(flow="tcp up/1").select("t_s", "cwnd_packets").drop_nulls()
        changes = of_flow.with_columns(
            before=pl.col("cwnd_packets").shift(1), until=pl.col("t_s")
        ).filter(pl.col("cwnd_packets") < pl.col("before"))
        # The next packets need a round trip until their acknowledgements are back.
        after = changes.filter(pl.col("t_s") >= event["t_s"] + RTT_MS / 1000)
        if facts["fell"]:
            first = after.row(0, named=True)
            assert (facts["from_s"], facts["from_packets"]) == (first["t_s"], first["before"])
            assert facts["to_packets"] <= first["cwnd_packets"] < facts["from_packets"]
            before = of_flow.filter(pl.col("t_s") <= event["t_s"])["cwnd_packets"][-1]
            assert facts["before_packets"] == before
            already = f"it had already fallen from {before} packets"
            assert (already in f"{result.why(drop=number)}") == (before > facts["from_packets"])
            fell += 1
        else:
            assert after.filter(pl.col("t_s") <= facts["to_s"]).is_empty()
    assert fell > 2


def test_a_segment_that_was_dropped_is_sent_again(codel: sj.Result) -> None:
    events = codel.events.with_row_index("number").filter(flow="tcp up/1", link="up")
    assert not events.is_empty()
    for number, t_s in events.select("number", "t_s").rows():
        facts = codel.why(drop=number)
        if t_s < 5:
            assert facts["sent_again_s"] >= t_s + RTT_MS / 1000
            assert f"resent   {facts['sent_again_s']:.4f} s" in f"{facts}"
    text = f"{facts}".splitlines()
    assert text[0].startswith(
        f"codel at up dropped packet {facts['packet']} of tcp up/1 (flow 0) at "
    )
    assert re.search(r" s by its AQM, after waiting [0-9.]+ ms$", text[0])
    assert re.fullmatch(
        r"  decision [0-9.]+ ms > target 5 ms for [0-9.]+ ms, count \d+; next drop in [0-9.]+ ms\n"
        r" +\d+ other packets \([0-9.]+ kB\) of \d flows? waited(, (\d+|none) of its flow)?",
        "\n".join(text[4:6]),
    )
    assert len(text) <= 10
    assert facts["window"]["packets"] >= facts["window"]["in_flight_packets"] > 0


def test_a_time_chooses_the_nearest_drop_or_else_the_longest_wait(codel: sj.Result) -> None:
    t_s = codel.events["t_s"].to_list()
    number = max(
        range(1, len(t_s) - 1), key=lambda n: min(t_s[n] - t_s[n - 1], t_s[n + 1] - t_s[n])
    )
    assert codel.why(at=f"{t_s[number] + 0.001}s") == codel.why(drop=number)
    slowest = codel.why(flow="udp up")
    between = (slowest["arrived_s"] + slowest["left_s"]) / 2
    drops = codel.events.filter(flow="udp up")["t_s"]
    assert min(abs(t_s - between) for t_s in drops) > 0.2
    at_that_time = codel.why(at=f"{between}s", flow="udp up")
    assert at_that_time["packet"] == slowest["packet"]
    assert at_that_time["because"].endswith(" packets of flow udp up waiting then")


def test_a_run_with_losses_behind_a_link_names_the_wire() -> None:
    up = sj.Link(rate=RATE, qdisc="pfifo", loss="1%")
    down = sj.Link(rate=RATE, qdisc="pfifo")
    result = sj.run(scenario("pfifo", links={"up": up, "down": down}, duration="3s"))
    losses = result.events.with_row_index("number").filter(action="loss", flow="tcp up/2")
    assert not losses.is_empty()
    for number in losses["number"]:
        facts = result.why(drop=number)
        assert f"{facts}".startswith(
            f"the wire behind up lost packet {facts['packet']} of tcp up/2"
        )
        assert facts["left_s"] <= facts["action_s"]


def test_connections_of_several_applications_are_named_by_their_group() -> None:
    page = sj.Web(direction="down", page="small", think="200ms", count=2)
    result = sj.run(scenario("codel", traffic=[page], duration="4s"))
    facts = result.why(link="down")
    assert " of a connection of web down waited " in f"{facts}"
    assert (facts["flow"], facts["window"]) == (None, None)
    assert facts["sent_s"] == pytest.approx(facts["arrived_s"] - RTT_MS / 2000)
    assert result.why(drop=0)["flow"] in {"web down/1", "web down/2"}
    with pytest.raises(sj.ScenarioError, match="flow='web down/1': a capture does not tell"):
        result.why(flow="web down/1")
    alone = sj.run(scenario("codel", traffic=[page, sj.Ping(direction="up")], duration="4s"))
    assert alone.why(flow="ping up")["kind"] in {"echo request", "echo reply"}
    one = sj.Web(direction="down", page="small", think="200ms")
    assert sj.run(scenario("codel", traffic=[one], duration="4s")).why()["flow"] == "web down"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"drop": 9999}, r"drop=9999: the run has \d+ drops, marks and losses, counted from 0"),
        ({"drop": -1}, r"drop=-1: the run has \d+ drops"),
        ({"drop": 0, "at": "1s"}, "drop: expected without at"),
        ({"slowest": True, "drop": 1}, "slowest: expected without drop"),
        ({"at": "1"}, "at='1': not a time: the unit is missing; write 1s or 1ms"),
        ({"at": "99s"}, "at='99s': no packet waited then, and none was dropped or marked within"),
        ({"flow": 9}, "flow=9: unknown; expected 0 to 4, or a name: tcp up/1, tcp up/2, "),
        ({"flow": "x"}, "flow='x': unknown; expected 0 to 4"),
        ({"link": "x"}, "link='x': unknown; expected down, up"),
        ({"arm": "x"}, "arm='x': no finished run of this arm; expected one of default"),
        ({"replication": 1}, "replication=1: no finished run; expected 0 to 0$"),
        (
            {"drop": 99, "flow": "ping down", "link": "up"},
            "the run has 1 drop, mark or loss of flow ping down at up, counted from 0",
        ),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(
    codel: sj.Result, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(sj.SojournError, match=said) as error:
        codel.why(**given)
    assert "\n" not in f"{error.value}"


def changed(result: sj.Result, monkeypatch: pytest.MonkeyPatch, *path: str, value: Any) -> None:
    """Change a value of the provenance."""
    manifest = json.loads(json.dumps(result.provenance))
    table = manifest
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    monkeypatch.setitem(result.__dict__, "provenance", manifest)


def test_runs_that_cannot_be_repeated_are_refused(
    codel: sj.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        backend = {"name": "live", "deterministic": False}
        changed(codel, patched, "backend", value=backend)
        with pytest.raises(sj.ResultError, match=r"^the packets of a live run cannot be repeated$"):
            codel.why()
    with monkeypatch.context() as patched:
        changed(codel, patched, "sojourn", "version", value="0.0.9")
        with pytest.raises(
            sj.ResultError, match=r"^the result is of Sojourn 0\.0\.9 .* may differ$"
        ):
            codel.why()
    for table in ("links", "flows", "events"):
        with monkeypatch.context() as patched:
            column = pl.last().alias("reason" if table == "events" else "goodput_mbit_per_s")
            other = getattr(codel, table).reverse().with_columns(column)
            patched.setitem(codel.__dict__, table, other)
            with pytest.raises(
                sj.ResultError, match=f"differs from the result in the table {table}$"
            ):
                codel.why()


class Short(sj.PythonQueue):
    """A short FIFO."""

    def __init__(self) -> None:
        self.waiting: list[sj.Packet] = []

    def enqueue(self, now: float, packet: sj.Packet) -> None:  # noqa: ARG002 - protocol
        """Drop what does not fit."""
        if len(self.waiting) >= 10:
            packet.drop("overlimit")
        else:
            self.waiting.append(packet)

    def dequeue(self, now: float) -> sj.Packet | None:  # noqa: ARG002 - protocol
        """Send the oldest packet."""
        return self.waiting.pop(0) if self.waiting else None


def test_a_queue_in_python_is_explained_if_its_class_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = sj.run(scenario(Short, duration="2s"))
    facts = result.why(drop=3)
    assert (facts["ahead"]["packets"], facts["reason"]) == (10, "overlimit")
    assert f"{facts}".startswith("Short at ")
    monkeypatch.setattr(python_class, "_registered", {})
    with pytest.raises(
        sj.ScenarioError, match=r"^python:Short:.*: the class is not loaded; define"
    ):
        result.why(drop=3)


def test_an_arm_is_repeated_with_what_it_sets_and_without_its_sample(codel: sj.Result) -> None:
    arms = [
        sj.Arm(name="a", set={"links.up.qdisc": "pfifo limit 20"}),
        sj.Arm(name="b", set={"links.up.qdisc": "codel"}),
    ]
    result = sj.run(scenario("codel", arms=arms, keep_events=False, replications=2))
    first = result.why(drop=0, link="up")
    assert (first["arm"], first["queue"], first["reason"]) == ("a", "pfifo limit 20", "overlimit")
    second = result.why(drop=0, arm="b")
    assert {**second, "arm": "default"} == codel.why(drop=0)


def test_any_replication_is_repeated(codel: sj.Result) -> None:
    arms = [
        sj.Arm(name="a", set={"links.up.qdisc": "pfifo limit 20"}),
        sj.Arm(name="b", set={"links.up.qdisc": "codel"}),
    ]
    result = sj.run(scenario("codel", arms=arms, replications=3, sample_state=True))
    for arm, replication in (("a", 1), ("b", 2)):
        events = result.events.filter(arm=arm, replication=replication)
        facts = result.why(drop=5, arm=arm, replication=replication)
        assert (facts["arm"], facts["replication"]) == (arm, replication)
        event = events.row(5, named=True)
        assert facts["action_s"] == pytest.approx(event["t_s"], abs=1e-9)
        assert facts["state"] == json.loads(event["state"])
    third = result.why(arm="b", replication=2)
    assert third["waited_ms"] != codel.why()["waited_ms"]


@pytest.mark.parametrize(
    ("queue", "reason", "said"),
    [
        ("red limit 100kb", "aqm", r"average [0-9.]+ kB \(min 8.5 kB, max 25.6 kB\), probability "),
        (
            "pie",
            "aqm",
            r"delay [0-9.]+ ms, target 15 ms, probability [0-9.]+ %\n +\d+ other packets",
        ),
        ("dualpi2", "aqm", r"queue C, probability [0-9.]+ %"),
        ("cake", "aqm", r"tin 1, waited [0-9.]+ ms, count \d+; next drop in [0-9.]+ ms"),
        (
            "cobalt limit 20",
            "aqm",
            r"(BLUE probability [0-9.]+ %|.*> target)",
        ),
        ("codel ce_threshold 2ms", "ce_threshold", r"[0-9.]+ ms > ce_threshold 2 ms"),
        ("fq_codel limit 60", "overlimit", r"limit 60, memory_limit 33.6 MB\n +\d+ other packets"),
        ("choke", "aqm", r"average \d+ packets \(min 83, max 250\), matched a packet of its flow"),
        ("sfb", "aqm", r"probability [0-9.]+ %(,|$)"),
        ("afd", "aqm", r"probability [0-9.]+ %, \d+ samples of its flow, fair share [0-9.]+"),
        ("predict", "aqm", r"marking is on(,|$)"),
        (
            "cake ack-filter-aggressive",
            "ack_filter",
            r"a later acknowledgement in the queue makes it redundant",
        ),
        ("pfifo limit 30", "overlimit", r"limit 30\n +30 other packets"),
    ],
)
def test_decisions_are_explained_by_the_numbers_of_the_queue(
    queue: str, reason: str, said: str
) -> None:
    result = sj.run(scenario(queue))
    numbers = result.events.with_row_index("n").filter(reason=reason)["n"].to_list()
    with why.repeating(result, None, 0) as run:
        texts = [
            f"{run.explained(why.Choice(drop=number))}" for number in [*numbers[:2], *numbers[-2:]]
        ]
    assert any(re.search(rf"^  decision {said}", text, re.MULTILINE) for text in texts), texts[0]


def test_the_command_prints_text_or_json(
    sojourn: Command, tmp_path: Path, codel: sj.Result
) -> None:
    codel.save(tmp_path / "r")
    done = sojourn("why", "r", "--drop", "2")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{codel.why(drop=2)}\n", "")
    done = sojourn("why", "r", "--flow", "tcp down", "--link", "down", "--json")
    assert json.loads(done.stdout) == codel.why(flow=2, link="down")
    refused(sojourn("why", "r", "--drop", "9999"), 2, "--drop 9999: the run has ")
    refused(sojourn("why", "r", "--at", "2"), 2, "--at 2: not a time")
    refused(sojourn("why", "r", "--at", "2s", "--slowest"), 2, "--slowest: expected without --at")
    refused(sojourn("why", "r", "--replication", "1"), 2, "--replication 1: no finished run")
    refused(sojourn("why", "x"), 3, "x: does not exist; expected a result directory")


def test_a_figure_shows_the_backlog_the_window_and_the_moment(
    codel: sj.Result, tmp_path: Path
) -> None:
    number = codel.events["flow"].to_list().index("tcp down")
    facts: Any = codel.why(drop=number, path=tmp_path / "packet.svg")
    assert b"<svg" in (tmp_path / "packet.svg").read_bytes()
    figure = packet.draw(facts.again, facts, facts.answer)
    backlog = figure.axes[0]
    assert backlog.get_ylabel().replace("\n", " ") == f"backlog {facts['link']} [packets]"
    assert backlog.get_title(loc="left").replace("\n", " ") == facts.answer
    moment = [line.get_xdata()[0] for line in backlog.lines if len(set(line.get_xdata())) == 1]
    assert facts["action_s"] in moment
    low, high = backlog.get_xlim()
    assert low < facts["arrived_s"] <= facts["left_s"] < high
    of_ping = codel.why(flow="ping down", path=tmp_path / "ping.png")
    assert len(packet.draw(of_ping.again, of_ping, of_ping.answer).axes) == 1
    with pytest.raises(sj.ResultError, match="unknown figure format"):
        codel.why(drop=0, path=tmp_path / "packet.xyz")


def test_a_full_disk_is_reported(codel: sj.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(repeated, "repeat", fail)
    with pytest.raises(sj.ResultError, match=r"^cannot write the packets to .*: No space left on"):
        codel.why()


def test_the_sample_interval_keeps_the_series_small(codel: sj.Result) -> None:
    long = codel.scenario.replace(duration="10800s")
    assert why.sample_interval(codel.scenario, flows=5) == "1ms"
    assert why.sample_interval(long, flows=5) == "54ms"
