"""Validity findings on small scenarios: alarms where they belong, and none elsewhere."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import sojourn as sj
from sojourn import report
from sojourn.queues import qdisc
from sojourn.result import stationarity, validity
from sojourn.result.rows import Records
from sojourn.scenario import presets
from support.manifests import edit


def compared(
    *queues: str,
    link: str,
    rtt: str,
    duration: str,
    warmup: str,
    traffic: str = "rrul_be",
    replications: int = 3,
) -> sj.Result:
    """Run what ``sojourn compare`` would run, by default three times per queue."""
    rates = presets.link_rates(link)
    return sj.run(
        presets.access_link(
            rates=rates,
            groups=presets.traffic(traffic, rates),
            queues={queue: qdisc(queue) for queue in queues},
            rtt=rtt,
            duration=duration,
            warmup=warmup,
            replications=replications,
            seed=1,
            name="test",
        )
    )


def texts(result: sj.Result, *severities: str) -> list[str]:
    """List the findings of some severities."""
    return [found.text for found in result.validity.findings if found.severity in severities]


def test_a_shaper_below_the_rate_of_the_link_is_the_bottleneck() -> None:
    result = compared(
        "cake bandwidth 4mbit",
        "cake bandwidth 4mbit rtt 30ms",
        link="100mbit",
        rtt="30ms",
        duration="20s",
        warmup="8s",
    )
    assert texts(result, "error", "warning") == []
    assert result.links["busy_share"].min() > 0.9  # type: ignore[operator]
    assert result.links["utilisation"].max() < 0.1  # type: ignore[operator]


def test_a_shaper_in_front_of_a_slower_link_is_the_bottleneck() -> None:
    result = sj.run(
        sj.Scenario(
            links={
                "router": sj.Link(rate="100mbit", qdisc="cake bandwidth 950kbit"),
                "modem": sj.Link(rate="1mbit", qdisc="pfifo limit 500"),
            },
            traffic=[sj.Tcp(path=["router", "modem"], reverse=[], count=2)],
            rtt="40ms",
            duration="20s",
            warmup="5s",
            replications=2,
        )
    )
    busy = {row["link"]: row["busy_share"] for row in result.links.iter_rows(named=True)}
    assert busy["router"] > 0.9
    assert busy["modem"] < 0.05
    notes = texts(result, "error", "note")
    assert any(
        re.match(r"packets hardly waited at modem \(at most 9\d % of 1 Mbit/s used\): ", text)
        for text in notes
    )
    assert not any("router" in text for text in notes)


@pytest.mark.parametrize("beside", [False, True], ids=["transfers", "beside UDP"])
def test_the_time_without_load_does_not_count_as_idle(*, beside: bool) -> None:
    result = sj.run(
        sj.Scenario(
            links={
                "up": sj.Link(rate="1gbit", qdisc=sj.Pfifo()),
                "down": sj.Link(rate="10mbit", qdisc=sj.Pfifo(limit=1000)),
            },
            traffic=[
                sj.Tcp(direction="down", bytes="1mb"),
                *([sj.Udp(direction="up", rate="1mbit", payload="100b")] if beside else []),
            ],
            arms=[sj.Arm(name="a", set={}), sj.Arm(name="b", set={"links.down.qdisc": "bfifo"})],
            rtt="50ms",
            duration="60s",
        )
    )
    found = texts(result, "error")
    assert sum("no link was a bottleneck" in text for text in found) == 2 * beside
    assert result.links["busy_share"].max() < 0.05  # type: ignore[operator]


def limits(*traffic: sj.Traffic, arms: Sequence[sj.Arm] = (), loss: str = "0%") -> str:
    """Return the finding on flows that fill no queue."""
    result = sj.run(
        sj.Scenario(
            links={
                "up": sj.Link(rate="10gbit", qdisc="pfifo limit 10000", loss=loss),
                "down": "unlimited",
            },
            traffic=traffic,
            arms=arms,
            rtt="50ms",
            duration="10s",
            warmup="2s",
        )
    )
    found = texts(result, "error", "note")
    return next(text for text in found if "no link was a bottleneck" in text)


def test_without_a_bottleneck_the_finding_says_what_limited_the_flows() -> None:
    lossy = limits(sj.Tcp(direction="up", name="bulk"), loss="5%")
    assert "bulk: the congestion window" in lossy
    assert "and loss recovery" in lossy
    quic = sj.Quic(direction="up", name="bulk", max_data="64kb")
    assert "flows: bulk: the receive window or flow control 100 %." in limits(quic)
    udp = sj.Udp(direction="up", rate="1mbit", name="u")
    assert limits(udp).endswith("Limits of the flows: u: its own rate.")
    dash = sj.Dash(direction="up", ladder=["1mbit"], name="video")
    assert "flows: video: the application 9" in limits(dash)
    # Arms with other limits are listed one by one; where queues are compared, it is an error.
    arms = [
        sj.Arm(name="a", set={}),
        sj.Arm(name="b", set={"links.up.loss": "5%"}),
    ]
    both = limits(quic, arms=arms)
    assert both.startswith("a, b: no link")
    assert "Limits of the flows of a: bulk: the receive window" in both
    assert "; of b: bulk: " in both
    arms = [sj.Arm(name="a", set={}), sj.Arm(name="b", set={"links.up.qdisc": "codel"})]
    assert "Limits of the flows: bulk: the receive window" in limits(quic, arms=arms)


def test_a_shaper_above_the_rate_of_the_link_is_reported() -> None:
    result = compared(
        "cake bandwidth 9mbit", link="10/2mbit", rtt="30ms", duration="20s", warmup="8s"
    )
    (warning,) = texts(result, "warning")
    assert "the queue of link up (9mbit) is faster than the link (2mbit)" in warning


def test_a_start_that_dominates_is_reported() -> None:
    result = compared(
        "pfifo", "fq_codel", link="100/20mbit", rtt="25ms", duration="20s", warmup="5s"
    )
    warnings = texts(result, "warning")
    assert any("still starting up" in text for text in warnings)
    drifts = [text for text in warnings if "not stationary" in text]
    assert drifts[0].startswith("pfifo: goodput down is not stationary: 16")
    assert " 75.7 Mbit/s" in drifts[0]
    assert [drift.split(" is ")[0] for drift in drifts] == ["pfifo: goodput down"]


@pytest.mark.parametrize("replications", [1, 2])
def test_a_start_that_dominates_is_reported_for_few_runs(replications: int) -> None:
    result = compared(
        "pfifo", "fq_codel", link="100/20mbit", rtt="25ms", duration="20s", warmup="7.1s",
        replications=replications,
    )  # fmt: skip
    warnings = texts(result, "warning")
    (settling,) = (text for text in warnings if "still starting up" in text)
    assert settling == (
        "pfifo: still starting up when measuring begins at 7.1 s: buffers fill. Use warmup=16.2s."
    )
    drift = next(text for text in warnings if "goodput down is not stationary" in text)
    # The measured time stays.
    assert drift.endswith("in the second half. Use warmup=13.55s duration=26.45s.")
    assert not any(text.startswith("fq_codel") for text in warnings)


@pytest.mark.parametrize("quantity", ["ping RTT", "sojourn time of link down"])
def test_a_queue_that_is_still_filling_is_reported(quantity: str) -> None:
    stream = sj.Udp(direction="down", rate="20.5mbit")
    pings = [sj.Ping(direction="down")] if quantity == "ping RTT" else []
    result = sj.run(
        sj.Scenario(
            links={
                "down": sj.Link(rate="20mbit", qdisc="pfifo limit 2000"),
                "up": sj.Link(rate="20mbit", qdisc="pfifo"),
            },
            traffic=[stream, *pings],
            rtt="20ms",
            duration="25s",
            warmup="5s",
            replications=3,
        )
    )
    settling, drift = (text for text in texts(result, "warning") if "identical" not in text)
    assert "Use warmup=22.13s." in settling
    assert drift.startswith(f"default: {quantity}")
    assert "Use warmup=15s duration=35s." in drift


@pytest.mark.parametrize("replications", [1, 3])
@pytest.mark.parametrize(
    ("link", "traffic"),
    [
        ("10mbit", "rrul_be"),
        # The first example of the README.
        ("50/10mbit", "tcp_2up"),
        ("20mbit", "udp_flood"),
    ],
)
def test_the_defaults_have_no_warning(link: str, traffic: str, replications: int) -> None:
    result = compared(
        "pfifo", "codel", "fq_codel", "cake", "pie",
        link=link, rtt="50ms", duration="70s", warmup="15s", traffic=traffic,
        replications=replications,
    )  # fmt: skip
    warnings = texts(result, "error", "warning")
    # The flood drops pings as well.
    expected = ("n = 1:", "% of pings had no reply")
    assert [text for text in warnings if not any(part in text for part in expected)] == []


def test_flows_that_join_are_part_of_the_experiment() -> None:
    scenario = sj.Scenario(
        links={"up": sj.Link(rate="10mbit", qdisc="fq_codel"), "down": "unlimited"},
        traffic=[
            sj.Tcp(direction="up", name="first"),
            sj.Tcp(direction="up", name="joins", start="12s"),
        ],
        rtt="20ms",
        duration="20s",
        warmup="4s",
        replications=3,
    )
    joined = sj.run(scenario)
    assert texts(joined, "warning") == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # Quantiles of Student's t: 2.776 at 4 degrees of freedom, 2.262 at 9.
        ([1.0, 2.0, 3.0, 4.0], 0.0305),
        ([0.0, 0.0, 0.0], 1.0),
        ([1.0, 1.0, 1.0], 0.0),
        ([1.0, -1.0, 1.0, -1.0], 1.0),
    ],
)
def test_p_values_are_those_of_students_t(values: Sequence[float], expected: float) -> None:
    assert stationarity.p_value(values) == pytest.approx(expected, abs=1e-4)


def test_percentiles_of_few_observations_are_found() -> None:
    def transactions(runs: Iterable[int], per_run: int) -> Records:
        one = {"arm": "a", "group": "users", "started_s": 9.0, "duration_s": 1.0}
        return [{**one, "replication": run} for run in runs for _ in range(per_run)]

    def sparse(of: Records) -> list[validity.Sparse]:
        return validity.sparse([], [], of, warmup_s=5.0)

    def found(runs: int, per_run: int) -> list[validity.Sparse]:
        return sparse(transactions(range(runs), per_run))

    (few,) = found(8, 2)
    assert (few.name, few.percent, few.arms) == ("users: duration p95", 95, ["a"])
    assert (few.least_per_run, few.least, few.needed_per_run, few.needed) == ("2", 16, 20, 100)
    assert found(4, 20)
    assert found(10, 19)
    assert found(5, 20) == []
    # Means of 5 1/3 and 19 29/30.
    (few,) = sparse([*transactions(range(3), 5), *transactions([0], 1)])
    assert (few.least_per_run, few.least) == ("5.3", 16)
    (few,) = sparse([*transactions(range(29), 20), *transactions([29], 19)])
    assert (few.least_per_run, few.least) == ("19.9", 599)


def test_transactions_that_the_end_cuts_off_are_reported_as_that() -> None:
    scenario = sj.Scenario(
        links={name: sj.Link(rate="2mbit", qdisc="fq_codel") for name in ("up", "down")},
        traffic=[sj.Web(direction="down", name="users", page="large", think="100ms")],
        rtt="30ms",
        duration="25s",
        warmup="1s",
        replications=2,
    )
    result = sj.run(scenario)
    row = result.table("application").row(0, named=True)
    assert row["cut_off"] == 1.0
    assert row["transactions"] == 2
    (finding,) = (text for text in texts(result, "note", "warning") if "still in progress" in text)
    assert finding == (
        "default: users: 2 of 4 pages were still in progress at the end of the run: "
        "durations cover only the shorter ones. Use a longer run."
    )


def test_models_without_a_comparison_are_named_in_the_report() -> None:
    result = sj.run(
        sj.Scenario(
            links={"up": sj.Link(rate="10mbit", qdisc="pfifo"), "down": "unlimited"},
            traffic=[sj.Tcp(direction="up", cc="vegas")],
            rtt="20ms",
            duration="14s",
            warmup="3s",
        )
    )
    text = "not compared with a real implementation: congestion control vegas."
    assert text in texts(result, "note")
    assert text in report.html(result)


def test_a_run_that_lasts_as_long_as_its_program_is_no_experiment(tmp_path: Path) -> None:
    links = {name: sj.Link(rate="10mbit", qdisc="red_ns2") for name in ("up", "down")}
    traffic = [sj.Ping(direction="up", interval="100ms")]
    idle = sj.Scenario(links=links, traffic=traffic, rtt="20ms", duration="3s", warmup="0s")
    result = sj.run(idle)
    found = " ".join(texts(result, "error", "warning", "note"))
    for finding in ("no link was a bottleneck", "n = 1", "only 3 s", "compared with a real"):
        assert finding in found
    result.save(tmp_path / "live")

    def live(*facts: tuple[str, str, bool]) -> sj.Result:
        run = {"arm": "default", "replication": 0}
        named = [dict(zip(("name", "value", "passed"), fact, strict=True)) for fact in facts]
        edit(tmp_path / "live", {"validity": [run | fact for fact in named]})
        return sj.Result.load(tmp_path / "live")

    ended, failed = ("ended_by", "the program", True), ("server", "ended with exit code 1", False)
    assert live(ended).validity.verdict == "valid"
    assert texts(live(ended), "error", "warning") == []
    assert "real" not in " ".join(texts(live(ended), "note"))
    # Its checks remain.
    assert texts(live(ended, failed), "error") == ["failed check server: ended with exit code 1."]
    # Runs of a backend that last for the duration of their scenario are experiments.
    assert "no link was a bottleneck" in " ".join(texts(live(failed), "note"))


@pytest.fixture(scope="module")
def two() -> validity.Evidence:
    """Measure two queues that differ, over 60 s with 10 runs that are one, for speed."""
    arms = [sj.Arm(name=name, set={"links.up.qdisc": name}) for name in ("pfifo limit 50", "codel")]
    scenario = sj.Scenario(
        links={"up": sj.Link(rate="5mbit", qdisc="pfifo"), "down": "unlimited"},
        traffic=[sj.Tcp(direction="up", start_jitter="1s")],
        arms=arms,
        rtt="20ms",
        duration="16s",
        warmup="5s",
        replications=2,
    )
    return replace(sj.run(scenario)._evidence(), replications=10)  # noqa: SLF001


def found(evidence: validity.Evidence) -> list[tuple[str, str]]:
    """Return the findings as pairs of a severity and a text."""
    return [(f"{one.severity}", one.text) for one in validity.assess(evidence).findings]


def quiet(evidence: validity.Evidence, busy: float) -> Records:
    """Return the links without drops and marks, for which packets wait this share of the time."""
    return [
        {key: 0 if key.startswith(("drops_", "marks_")) else row[key] for key in row}
        | {"busy_share": busy}
        for row in evidence.links
    ]


@pytest.mark.parametrize(
    ("busy", "changes", "verdict"),
    [
        (0.9, {}, "valid"),
        (0.01, {}, "invalid"),
        (0.9, {"finished": 3}, "weak"),
        (0.9, {"replications": 1}, "weak"),
        (0.9, {"warmup_s": 13.0}, "weak"),
    ],
)
def test_what_limits_a_result_decides_its_verdict(
    two: validity.Evidence, busy: float, changes: dict[str, float], verdict: str
) -> None:
    links = quiet(two, busy)
    changed = replace(two, links=links, concerns=(), drifts=(), **changes)  # type: ignore[arg-type]
    assert validity.assess(changed).verdict == verdict


def test_errors_come_before_notes(two: validity.Evidence) -> None:
    idle = replace(two, replications=3, links=quiet(two, 0.01))
    severities = [severity for severity, _ in found(idle)]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    first, few = found(idle)[0][1], next(text for _, text in found(idle) if "n = 3" in text)
    assert "1.0 %" in first
    assert few.endswith("(75 % instead of 95 % at n = 3). Use replications=10.")


def test_arms_with_runs_in_common_are_compared_by_these(two: validity.Evidence) -> None:

    def doubled(rows: Records, **configured: str) -> Records:
        first = [row for row in rows if row["arm"] != "codel"]
        twin = {"arm": "codel", **configured}
        return [*first, *({**row, **twin} for row in first if row["replication"] == 1)]

    same = replace(two, flows=doubled(two.flows, cc="bbr"), links=doubled(two.links, qdisc="codel"))
    text = (
        "codel and pfifo limit 50 have identical results in every run: the settings that differ "
        "(links.up.qdisc) had no effect."
    )
    assert ("warning", text) in found(same)
    assert not any("identical results" in text for _, text in found(two))


class Stuck(sj.PythonQueue):
    """Stops sending after 100 packets."""

    def __init__(self) -> None:
        self.packets: deque[sj.Packet] = deque()
        self.sent = 0

    def enqueue(self, now: float, packet: sj.Packet) -> None:  # noqa: ARG002
        self.packets.append(packet)

    def dequeue(self, now: float) -> sj.Packet | None:  # noqa: ARG002
        self.sent += 1
        return self.packets.popleft() if self.packets and self.sent <= 100 else None


def test_a_queue_that_stops_sending_is_an_error() -> None:
    result = sj.run(
        sj.Scenario(
            links={"up": sj.Link(rate="5mbit", qdisc=Stuck), "down": "unlimited"},
            traffic=[sj.Udp(direction="up", rate="1mbit", spacing="poisson")],
            rtt="20ms",
            duration="6s",
            warmup="1s",
        )
    )
    (text,) = texts(result, "error")
    assert text.startswith("default: the queue of link up sent nothing for 4.")
    assert "although packets waited (replication 0, from 1." in text


def test_the_inner_queues_of_prio_are_read_one_by_one() -> None:
    links = {
        "up": sj.Link(rate="5mbit", qdisc="prio leaf codel ecn / (drr leaf codel ecn) / pfifo"),
        "down": "unlimited",
    }
    traffic = [sj.Tcp(direction="up"), sj.Ping(direction="up")]
    scenario = sj.Scenario(links=links, traffic=traffic, rtt="20ms", duration="4s", warmup="1s")
    texts = [finding.text for finding in sj.run(scenario).validity.findings]
    assert any("the queue of link up may mark, but no flow" in text for text in texts)
    plain = {**links, "up": sj.Link(rate="5mbit", qdisc="prio leaf pfifo / pfifo / pfifo")}
    texts = [finding.text for finding in sj.run(scenario.replace(links=plain)).validity.findings]
    assert not any("may mark" in text for text in texts)
