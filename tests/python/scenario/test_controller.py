"""Controllers written in Python: what they see, what they change, and how they fail."""
# ruff: noqa: ARG002 - the parameters are part of the interface

import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core

ROOT = Path(__file__).parents[3]
TABLES = [table["name"] for table in json.loads(_core.column_catalogue())]

Changes = Mapping[str, Mapping[str, Any]] | None


def scenario(**fields: Any) -> sj.Scenario:
    base: dict[str, Any] = {
        "links": {
            "down": sj.Link(rate="10mbit", qdisc="fq_codel limit 500", delay="5ms"),
            "up": sj.Link(rate="2mbit", qdisc="cake bandwidth 1mbit", overhead="20b"),
        },
        "traffic": [
            sj.Tcp(name="down", direction="down", count=2),
            sj.Tcp(name="up", direction="up", cc="bbr3"),
            sj.Ping(name="ping", direction="up", interval="20ms"),
        ],
        "rtt": "30ms",
        "duration": "6s",
        "warmup": "1s",
    }
    return sj.Scenario(**(base | fields))


def tables(result: sj.Result) -> dict[str, pl.DataFrame]:
    """All tables but that of the controller."""
    return {name: getattr(result, name) for name in TABLES if name != "link_changes"}


def assert_same(one: sj.Result, other: sj.Result) -> None:
    for (name, frame), expected in zip(tables(one).items(), tables(other).values(), strict=True):
        assert frame.equals(expected), name


class Constant(sj.Controller):
    """Asks for what is in force already."""

    interval = "70ms"

    def control(self, now: float, measured: sj.Measured) -> Changes:
        down = measured.links["down"]
        return {
            "down": {"rate": f"{down.rate_bits_per_s}bit", "qdisc": down.qdisc},
            "up": {"qdisc": "cake bandwidth 1mbit"},
        }


class Silent(sj.Controller):
    def control(self, now: float, measured: sj.Measured) -> Changes:
        return None


class SilentOnWires(Silent):
    changes_wires = True


class Recorder(sj.Controller):
    """Keeps what it sees in its class, for tests in one process."""

    interval = "30ms"
    seen: ClassVar[list[tuple[float, sj.Measured]]] = []

    def control(self, now: float, measured: sj.Measured) -> Changes:
        _SEEN.append((now, measured))
        return None


_SEEN: list[tuple[float, sj.Measured]] = []


@pytest.mark.parametrize("controller", [Constant, Silent, SilentOnWires])
def test_a_controller_that_changes_nothing_leaves_all_records(
    controller: type[sj.Controller],
) -> None:
    result = sj.run(scenario(controller=controller))
    assert result.link_changes.is_empty()
    assert_same(result, sj.run(scenario()))


def once(change: Mapping[str, Any], *, wires: bool = False) -> type[sj.Controller]:
    """A controller that makes one change of the downlink, at 2 s."""

    class Once(sj.Controller):
        interval = "500ms"
        changes_wires = wires
        asked = change

        def control(self, now: float, measured: sj.Measured) -> Changes:
            return {"down": self.asked} if now == 2 else None

    return Once


@pytest.mark.parametrize(
    ("change", "wires"),
    [
        ({"rate": "4mbit"}, False),
        ({"rate": "30mbit", "qdisc": "fq_codel target 2ms"}, False),
        ({"qdisc": "sfq"}, False),
        ({"qdisc": sj.Pie(target="20ms")}, False),
        ({"delay": "25ms"}, True),
        ({"loss": "1%", "duplicate": "1%", "jitter": "3ms"}, True),
        ({"loss": sj.GilbertElliott(to_bad="1%", to_good="25%"), "rate": "6mbit"}, True),
    ],
)
def test_a_change_is_the_same_as_in_the_scenario(change: dict[str, Any], *, wires: bool) -> None:
    controlled = sj.run(scenario(controller=once(change, wires=wires)))
    down = sj.Link(
        rate="10mbit",
        qdisc="fq_codel limit 500",
        delay="5ms",
        changes=[sj.Change(at="2s", **change)],
    )
    written = sj.run(scenario(links={**scenario().links, "down": down}))
    assert_same(controlled, written)
    assert not written.links.equals(sj.run(scenario()).links)
    (row,) = controlled.link_changes.to_dicts()
    rate = change.get("rate")
    assert (row["t_s"], row["link"]) == (2.0, "down")
    assert row["rate_mbit_per_s"] == (None if rate is None else float(rate.removesuffix("mbit")))
    keys = tomllib.loads(f"change = {row['change']}")["change"]
    assert keys.keys() == change.keys()


class Alternating(sj.Controller):
    """Draws rates."""

    interval = "130ms"

    def control(self, now: float, measured: sj.Measured) -> Changes:
        assert measured.links["down"].rate_bits_per_s is not None
        if self.random.random() < 0.5:
            return {"down": {"rate": f"{self.random.randint(3, 12)}mbit"}}
        return {"up": {"qdisc": f"cake bandwidth {self.random.randint(300, 1900)}kbit"}}


def test_the_changes_of_a_result_replay_its_run() -> None:
    result = sj.run(scenario(controller=Alternating))
    assert len(result.link_changes) > 20
    changes: dict[str, list[dict[str, Any]]] = {"down": [], "up": []}
    for row in result.link_changes.to_dicts():
        keys = tomllib.loads(f"change = {row['change']}")["change"]
        changes[row["link"]].append({"at": f"{round(row['t_s'] * 1e9)}ns", **keys})
    document = json.loads(scenario().checked.to_json())
    for name, of_link in changes.items():
        document["links"][name]["changes"] = of_link
    assert_same(sj.run(sj.Scenario.from_json(json.dumps(document))), result)


def test_the_same_seed_gives_the_same_run_in_any_process() -> None:
    twice = scenario(controller=Alternating, replications=2, duration="3s")
    one, two = sj.run(twice, jobs=1), sj.run(twice, jobs=2)
    assert_same(one, two)
    assert one.link_changes.equals(two.link_changes)
    by_run = one.link_changes.partition_by("replication")
    assert not by_run[0]["rate_mbit_per_s"].equals(by_run[1]["rate_mbit_per_s"])


@pytest.mark.parametrize("interval", ["100ms", "30ms", "250ms"])
def test_measurements_add_up_to_the_series(interval: str) -> None:
    class Of(Recorder):
        pass

    Of.interval = interval
    _SEEN.clear()
    result = sj.run(scenario(controller=Of))
    length = _core.parse_time_s(interval)
    times = [now for now, _ in _SEEN]
    assert times == pytest.approx([length * (n + 1) for n in range(len(times))])
    assert 6 - length - 1e-9 <= times[-1] < 6
    plain = sj.run(scenario())
    assert_same(result, plain)
    end = times[-1] + 1e-9
    whole = round(times[-1] * 10) == pytest.approx(times[-1] * 10)
    for name in ("down", "up"):
        series = plain.link_series.filter(pl.col("link") == name, pl.col("t_s") <= end)
        links = [measured.links[name] for _, measured in _SEEN]
        sent = sum(link.sent_bytes for link in links)
        if whole:
            assert sent == series["sent_bytes"].sum()
            drops = series["drops_overlimit"].sum() + series["drops_aqm"].sum()
            assert sum(link.drops for link in links) == drops
            longest = max(link.sojourn_ms_max or 0 for link in links)
            assert longest == pytest.approx(series["sojourn_ms_max"].max())
            if interval == "100ms":
                assert [link.backlog_packets for link in links] == series[
                    "backlog_packets"
                ].to_list()
                assert [link.sojourn_ms_mean for link in links] == pytest.approx(
                    series["sojourn_ms_mean"].to_list()
                )
        assert all(link.bits_per_s == 8 * link.sent_bytes / length for link in links)
    # The overhead counts: 20 B per packet on the uplink, whose queue sends at half of its rate.
    used = [measured.links["down"].utilisation or 0 for now, measured in _SEEN if now > 2]
    assert sum(used) / len(used) == pytest.approx(plain.links["utilisation"][0], abs=0.02)


def test_replies_are_those_of_the_pings_with_their_one_way_delays() -> None:
    _SEEN.clear()
    result = sj.run(scenario(controller=Recorder, warmup="0s"))
    replies = [reply for _, measured in _SEEN for reply in measured.replies]
    pings = result.pings.filter(pl.col("rtt_ms").is_not_null())
    assert 280 < len(replies) <= len(pings)
    known = dict(zip(pings["t_s"], pings["rtt_ms"], strict=True))
    for reply in replies:
        assert reply.flow == "ping"
        assert reply.rtt_ms == pytest.approx(known[reply.sent_s])
        assert reply.rtt_ms == pytest.approx(reply.request_ms + reply.reply_ms)
    # The uplink takes 1 ms per ping and more; the delay of the downlink is 5 ms.
    assert min(reply.request_ms for reply in replies) >= 15
    assert min(reply.reply_ms for reply in replies) >= 20


def test_a_link_with_a_trace_has_no_rate() -> None:
    _SEEN.clear()
    trace = ROOT / "examples/traces/lte.rate.csv"
    links = {"down": sj.Link(rate_trace=f"{trace}", qdisc="pfifo"), "up": "unlimited"}
    traffic = [sj.Tcp(direction="down")]
    sj.run(scenario(links=links, traffic=traffic, controller=Recorder))
    seen = [measured.links["down"] for now, measured in _SEEN if now > 2]
    assert {link.rate_bits_per_s for link in seen} == {None}
    used = [link.utilisation or 0 for link in seen]
    assert 0.9 < sum(used) / len(used) <= 1.01


class Raises(sj.Controller):
    def control(self, now: float, measured: sj.Measured) -> Changes:
        if now > 0.45:
            message = "broken"
            raise RuntimeError(message)
        return None


def test_an_exception_names_class_time_and_run() -> None:
    message = (
        r"^Raises\.control failed at 0\.500000 s of simulated time "
        r'\(arm "default", replication 0\): RuntimeError: broken$'
    )
    with pytest.raises(sj.QueueError, match=message) as caught:
        sj.run(scenario(controller=Raises))
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(sj.QueueError, match=r"^Raises\.control failed at 0\.500000 s"):
        sj.run(scenario(controller=Raises, replications=2), jobs=2)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"dwn": {"rate": "1mbit"}}, r'links: unknown link "dwn"; expected one of down, up'),
        ({"down": {"rtae": "1mbit"}}, r'links\.down\.rtae: unknown key; did you mean "rate"'),
        ({"down": {"rate": "fast"}}, r"links\.down\.rate: "),
        ({"down": {}}, r"links\.down: no change; expected rate"),
        ({"down": {"at": "1s", "rate": "1mbit"}}, r'links\.down\.at: "1s" cannot be set'),
        ({"down": {"delay": "1ms"}}, r"links\.down: .*set changes_wires = True in the class"),
        ({"down": {"qdisc": "fq_codel flows 7"}}, r"links\.down\.qdisc: .*flows"),
        ({"down": {"qdisc": "fq_codle"}}, r'links\.down\.qdisc: .*did you mean "fq_codel"'),
        ({"down": 3}, r"links\.down: expected keys of a change, not a value of type int"),
        (["down"], r"expected changes by link or None, not "),
    ],
)
def test_a_change_that_is_not_valid_is_one_line(asked: Any, problem: str) -> None:
    class Asks(sj.Controller):
        wanted = asked

        def control(self, now: float, measured: sj.Measured) -> Changes:
            return self.wanted

    message = rf"^Asks\.control failed at 0\.100000 s of simulated time .*: {problem}[^\n]*$"
    with pytest.raises(sj.QueueError, match=message):
        sj.run(scenario(controller=Asks))


def test_the_rate_of_a_trace_and_a_queue_that_the_scenario_changes_are_refused() -> None:
    trace = ROOT / "examples/traces/lte.rate.csv"
    down = sj.Link(rate_trace=f"{trace}", qdisc="pfifo")
    controlled = scenario(
        links={**scenario().links, "down": down}, controller=once({"rate": "1mbit"})
    )
    with pytest.raises(sj.QueueError, match=r"links\.down\.rate: the rate of a link with a trace"):
        sj.run(controlled)
    changes = [sj.Change(at="3s", qdisc="codel target 10ms")]
    down = sj.Link(rate="10mbit", qdisc="codel", changes=changes)
    controlled = scenario(
        links={**scenario().links, "down": down}, controller=once({"qdisc": "codel target 2ms"})
    )
    with pytest.raises(sj.QueueError, match=r"links\.down\.qdisc: changes of the scenario change"):
        sj.run(controlled)


class Locked(Silent):
    lock: ClassVar[Any] = threading.Lock()


def test_where_a_controller_cannot_be_used_it_is_refused_by_name() -> None:
    with pytest.raises(sj.QueueError, match=r"^Locked\.lock: cannot be sent to a worker process"):
        sj.run(scenario(controller=Locked, replications=2), jobs=2)
    with pytest.raises(sj.ScenarioError, match="controller: a controller of links"):
        _core.check_backend(scenario(controller=Silent).checked, "live")
    name = f"{Silent.spec[:-12]}0123456789ab"
    with pytest.raises(sj.ScenarioError, match=rf"^{name}: the class is not loaded; define"):
        sj.run(scenario(controller=name))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "^Bad: missing method control; a controller must define control$"),
        ({"control": print, "interval": "0s"}, r"^Bad\.interval: .*must be > 0"),
        (
            {"control": print, "interval": 3},
            r'^Bad\.interval: expected "100ms", not a value of type int$',
        ),
        ({"control": print, "interval": "3 parsecs"}, r"^Bad\.interval: "),
        ({"control": print, "changes_wires": 1}, r"^Bad\.changes_wires: expected True or False"),
    ],
)
def test_a_class_is_checked_when_it_is_passed(fields: dict[str, Any], problem: str) -> None:
    bad = type(sj.Controller)("Bad", (sj.Controller,), fields)
    with pytest.raises(sj.ScenarioError, match=problem):
        scenario(controller=bad)


@pytest.mark.parametrize("text", ["Autorate", "codel", "python:a b"])
def test_a_text_that_names_no_controller_is_refused(text: str) -> None:
    with pytest.raises(sj.ScenarioError, match=r"^controller: .*expected none, or the file and"):
        scenario(controller=text)
    assert scenario(controller="none") == scenario()


def test_arms_compare_controllers_and_a_saved_result_has_their_source(tmp_path: Path) -> None:
    arms = [
        sj.Arm(name="alone", set={}),
        sj.Arm(name="controlled", set={"controller": Alternating}),
    ]
    result = sj.run(scenario(arms=arms, duration="3s"), jobs=1)
    assert result.link_changes["arm"].unique().to_list() == ["controlled"]
    result.save(tmp_path / "result")
    loaded = sj.Result.load(tmp_path / "result")
    assert loaded.link_changes.equals(result.link_changes)
    (kept,) = loaded.provenance["external_queues"]
    assert kept["name"] == Alternating.spec
    assert "self.random.randint(300, 1900)" in kept["source"]
    # The capacity is that of the rates that the controller set.
    used = result.links.filter(arm="controlled", link="down")["utilisation"][0]
    assert 0.7 < used <= 1.001


def test_a_scenario_file_names_a_controller_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import sojourn as sj\n"
        "class Halves(sj.Controller):\n"
        "    def control(self, now, measured):\n"
        '        return {"down": {"rate": "5mbit"}} if now > 1 else None\n'
        "class Queue(sj.PythonQueue):\n"
        "    pass\n",
        encoding="utf-8",
    )
    file = tmp_path / "file.toml"
    text = scenario(arms=[sj.Arm(name="a", set={})]).to_toml()
    file.write_text(f'controller = "./mine.py:Halves"\n{text}'.replace('controller = "none"\n', ""))
    read = sj.Scenario.from_file(file)
    assert f"{read.controller}".startswith("python:Halves:")
    (row,) = sj.run(read).link_changes.to_dicts()
    assert row["t_s"] == pytest.approx(1.1)
    assert row["rate_mbit_per_s"] == 5
    file.write_text(text, encoding="utf-8")
    for name, problem in [
        ("./mine.py:Queue", "not a subclass of sojourn.Controller: Queue"),
        ("./mine.py", "no class; expected ./mine.py:Halves"),
    ]:
        ran = subprocess.run(
            [sys.executable, "-m", "sojourn", "run", file.name, "-s", f"controller={name}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert problem in " ".join(ran.stderr.split()), ran.stderr
    command = [sys.executable, "-m", "sojourn", "run", file.name, "--json"]
    changed = [*command, "-s", "controller=./mine.py:Halves"]
    ran = subprocess.run(changed, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Halves" in ran.stdout


def test_autorate_keeps_the_delay_low_where_a_fixed_rate_does_not() -> None:
    example = sj.Scenario.from_file(ROOT / "examples/autorate.sojourn.toml")
    result = sj.run(example.replace(replications=1), jobs=1)
    line = result.links.filter(link="lte_down")
    mean, p95, sent = (
        dict(line.select("arm", column).iter_rows())
        for column in ("sojourn_ms_mean", "sojourn_ms_p95", "sent_bytes")
    )
    assert mean["autorate"] < mean["fixed 30 mbit"] / 3 < mean["unshaped"] / 10, mean
    assert p95["autorate"] < 100, p95
    assert p95["fixed 30 mbit"] > 200, p95
    # A fixed rate that keeps the delay as short costs a third of the capacity.
    assert p95["fixed 20 mbit"] < 100, p95
    assert sent["fixed 20 mbit"] < 0.7 * sent["unshaped"], sent
    assert sent["autorate"] > 0.9 * sent["unshaped"], sent
    assert sent["autorate"] > sent["fixed 30 mbit"], sent
    rates = result.link_changes.filter(link="router_down")["change"]
    kbit = [float(text.split("bandwidth ")[1].split("bit")[0]) / 1e3 for text in rates]
    assert 5_000 <= min(kbit) < 15_000
    assert 30_000 < max(kbit) <= 60_000
