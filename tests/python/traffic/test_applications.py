"""Applications: pages, sessions, video and voices, from scenario to metrics."""

from collections.abc import Callable
from typing import Any

import pytest

import sojourn as sj

PAGE = sj.Page(
    objects=[
        sj.PageObject(name="document", bytes="10kb"),
        sj.PageObject(name="picture", bytes="20kb", count=4, after=["document"]),
    ]
)


def _scenario(*traffic: sj.Traffic, pages: dict[str, sj.Page] | None = None) -> sj.Scenario:
    return sj.Scenario(
        links={
            "up": sj.Link(rate="50mbit", qdisc="fq_codel"),
            "down": sj.Link(rate="50mbit", qdisc="fq_codel"),
        },
        traffic=traffic,
        pages=pages,
        rtt="40ms",
        duration="20s",
        warmup="2s",
        replications=2,
    )


def test_a_scenario_with_pages_reads_back_as_itself() -> None:
    built = _scenario(
        sj.Web(direction="down", page="shop", http="1.1", think="500ms"), pages={"shop": PAGE}
    )
    read = sj.Scenario.from_toml(built.to_toml())
    assert read.hash == built.hash
    assert read.pages is not None
    assert [item.count for item in read.pages["shop"].objects] == [1, 4]


def test_page_load_times_are_reported_by_run_and_group() -> None:
    built = _scenario(
        sj.Web(direction="down", name="users", page="shop", count=3, think="500ms"),
        sj.Voip(direction="up", name="voice", dscp="EF"),
        sj.Dash(direction="down", name="video"),
        pages={"shop": PAGE},
    )
    result = sj.run(built)
    rows = {row["group"]: row for row in result.table("application").iter_rows(named=True)}
    users, voice, video = rows["users"], rows["voice"], rows["video"]
    # Handshake, TLS, document and pictures: at least four round trips of 40 ms.
    assert 0.16 < users["duration_s_p50"] < 0.4
    assert users["transactions"] > 60
    assert users["connections"] >= users["transactions"]
    assert users["mos_mean"] is None
    assert 4.2 < voice["mos_mean"] < 4.41
    assert video["stalls_mean"] == 0
    assert video["startup_s_mean"] < 2
    assert set(result.transactions["kind"]) == {"web", "dash"}


def test_waiting_times_are_estimated_over_runs() -> None:
    built = _scenario(
        sj.Web(direction="down", name="users", page="shop", count=3, think="500ms"),
        sj.Voip(direction="up", name="voice", dscp="EF"),
        pages={"shop": PAGE},
    )
    result = sj.run(built.replace(replications=3))
    estimates = {
        (row["group"], row["metric"]): row
        for row in result.summary("application").iter_rows(named=True)
    }
    loads = result.table("application").filter(group="users")["duration_s_mean"]
    load = estimates["users", "duration_s_mean"]
    assert load["n"] == 3
    assert load["mean"] == pytest.approx(loads.mean())
    # Equal values have an interval without width, up to rounding.
    assert loads.min() <= load["low"] + 1e-9 <= load["mean"] + 2e-9
    assert load["mean"] <= load["high"] + 1e-9 <= loads.max() + 2e-9
    assert ("users", "mos_mean") not in estimates
    assert estimates["voice", "mos_mean"]["mean"] > 4


@pytest.mark.parametrize(
    ("duration", "expected", "words"),
    [
        ("5s", "note", "2 of 2 tests of test did not reach stability"),
        ("2.01s", "warning", "too few probes"),
    ],
)
def test_a_test_of_responsiveness_that_did_not_settle_is_reported(
    duration: str, expected: str, words: str
) -> None:
    built = _scenario(sj.Responsiveness(direction="down", name="test")).replace(duration=duration)
    found = sj.run(built).validity.findings
    findings = [
        (finding.severity, finding.text) for finding in found if "tests of test" in finding.text
    ]
    assert [severity for severity, _ in findings] == [expected]
    assert words in findings[0][1]


def test_a_visit_that_lasts_from_the_warm_up_to_the_end_is_reported() -> None:
    built = _scenario(
        sj.Web(direction="down", name="users", page="large", visits=1),
        sj.Request(direction="down", name="others", bytes="1kb", think="1s"),
    ).replace(links={name: sj.Link(rate="500kbit", qdisc="pfifo") for name in ("up", "down")})
    result = sj.run(built)
    rows = {row["group"]: row for row in result.table("application").iter_rows(named=True)}
    # 2.6 MB take 42 s and more.
    assert (rows["users"]["transactions"], rows["users"]["begun_before"]) == (0, 1.0)
    assert rows["others"]["begun_before"] is None or rows["others"]["transactions"] > 0
    findings = [finding.text for finding in result.validity.findings]
    assert any("no transaction of users began after the warm-up" in text for text in findings)
    assert not any("no transaction of others" in text for text in findings)


def test_pages_of_which_most_are_not_completed_are_reported() -> None:
    # Of 2.6 MB, 500 kbit/s bring 1 MB in the 17 s that are left; a response of 1 kB comes at once.
    built = _scenario(
        sj.Web(direction="down", name="users", page="large", visits=1, start="3s"),
        sj.Request(direction="down", name="others", bytes="1kb", think="1s"),
    ).replace(links={name: sj.Link(rate="500kbit", qdisc="fq_codel") for name in ("up", "down")})
    validity = sj.run(built).validity
    findings = [finding.text for finding in validity.findings]
    expected = (
        "default: users: 2 of 2 pages were still in progress at the end of the run: no "
        "durations. Use a longer run."
    )
    assert expected in findings
    assert validity.verdict == "weak"
    assert not any("no transaction of others" in text for text in findings)


def test_a_silent_call_is_rated_worst() -> None:
    built = _scenario(sj.Voip(direction="up", name="mute"))
    lossy = {name: sj.Link(rate="1mbit", qdisc="pfifo", loss="100%") for name in ("up", "down")}
    result = sj.run(built.replace(links=lossy))
    rows = result.table("application")
    assert rows["mos_mean"].to_list() == [1.0, 1.0]
    assert rows["voice_loss_percent_mean"].to_list() == [100.0, 100.0]
    findings = [finding.text for finding in result.validity.findings]
    assert any(
        "default: mute: 2 of 2 calls have the lowest possible MOS, 1;" in text for text in findings
    )
    audible = sj.run(built).validity.findings
    assert not any("MOS" in finding.text for finding in audible)


def test_the_worst_possible_calls_of_one_queue_are_ranked() -> None:
    for queues, severities in (
        (["pfifo", "fq_codel"], [sj.Severity.NOTE]),
        (["pfifo", "pfifo limit 900"], [sj.Severity.WARNING] * 2),
    ):
        result = sj.compare(queues, link="50/10mbit", traffic="tcp_2up+voip", replications=2)
        found = [one for one in result.validity.findings if "lowest possible MOS" in one.text]
        assert [one.severity for one in found] == severities


def test_differences_of_applications_and_transfers_are_paired() -> None:
    built = _scenario(
        sj.Web(direction="down", name="users", page="shop", think="200ms"),
        sj.Tcp(direction="down", name="files", bytes="50kb", count=3, start="3s"),
        sj.Tcp(direction="down", name="bulk"),
        pages={"shop": PAGE},
    ).replace(
        arms=[
            sj.Arm(name="fq", set={"links.down.qdisc": "fq_codel"}),
            sj.Arm(name="fifo", set={"links.down.qdisc": "pfifo limit 500"}),
        ],
        replications=3,
    )
    result = sj.run(built)
    runs = result.table("application")
    means = {
        arm: runs.filter(arm=arm).sort("replication")["duration_s_mean"] for arm in ("fq", "fifo")
    }
    found = {
        (row["group"], row["metric"]): row
        for row in result.difference("fq", "fifo", "application").iter_rows(named=True)
    }
    load = found["users", "duration_s_mean"]
    assert load["n"] == 3
    assert load["mean"] == pytest.approx((means["fifo"] - means["fq"]).mean())
    assert load["mean"] > 0
    assert load["significant"]
    assert ("users", "mos_mean") not in found
    groups = result.difference("fq", "fifo", "group")
    assert groups.filter(group="files", metric="fct_s_mean")["n"].to_list() == [3]
    with pytest.raises(sj.ArgumentError, match="other='red': no finished run of this arm"):
        result.difference("fq", "red", "application")


def test_responsiveness_is_measured_in_round_trips_per_minute() -> None:
    built = _scenario(
        sj.Responsiveness(direction="down", name="idle", load=False),
        sj.Responsiveness(direction="down", name="plain", load=False, tls=False, rtt="10ms"),
    )
    result = sj.run(built)
    rows = {row["group"]: row for row in result.table("application").iter_rows(named=True)}
    # 60 s / 40 ms and 60 s / 10 ms, but for packets of up to 3.5 kB at 50 Mbit/s.
    assert rows["idle"]["rpm_mean"] == pytest.approx(1500.0, rel=0.01)
    assert rows["plain"]["rpm_mean"] == pytest.approx(6000.0, rel=0.03)
    assert rows["idle"]["transactions"] is None
    tests = result.applications.filter(group="plain")
    assert tests["tls_handshake_ms"].null_count() == tests.height
    assert set(result.applications["rpm_confidence"]) == {"high"}
    estimates = result.summary("application")
    assert set(estimates.filter(group="idle")["metric"]) >= {"rpm_mean", "foreign_rpm_mean"}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: sj.Incast(direction="down", servers=1, bytes="1kb"),
            ["servers: ", "2 to"],
        ),
        (lambda: sj.Dash(direction="down", ladder=["2mbit", "1mbit"]), ["ladder[1]: "]),
        (
            lambda: sj.Responsiveness(direction="down", connections=0),
            ["connections: ", "from 1 to 1000"],
        ),
    ],
)
def test_a_mistake_is_refused_when_the_application_is_built(
    build: Callable[[], sj.Traffic], words: list[str]
) -> None:
    with pytest.raises(sj.ScenarioError) as refused:
        build()
    assert str(refused.value).startswith(words[0])
    assert all(word in str(refused.value) for word in words)


def test_a_page_that_the_scenario_does_not_define_is_refused() -> None:
    with pytest.raises(sj.ScenarioError, match=r"traffic\[0\]\.page: .*shopp"):
        _scenario(sj.Web(direction="down", page="shopp"))


def test_a_page_with_a_cycle_is_refused() -> None:
    with pytest.raises(sj.ScenarioError, match="circular dependency"):
        sj.Page(
            objects=[
                sj.PageObject(name="a", bytes="1kb", after=["b"]),
                sj.PageObject(name="b", bytes="1kb", after=["a"]),
            ]
        )


@pytest.mark.parametrize(
    "application",
    [
        sj.Web(direction="down", page="small", slow_start="standard", pacing=True),
        sj.Request(direction="down", bytes="1kb", after_idle="restart"),
        sj.Request(direction="down", bytes="1kb", ecn="accurate"),
        sj.Dash(direction="down", slow_start="hystart++"),
        sj.Web(direction="down", page="small", http="3", zero_rtt=True, max_data="1mb"),
    ],
)
def test_options_of_tcp_are_those_of_applications_too(application: sj.Traffic) -> None:
    built = _scenario(application)
    assert sj.Scenario.from_toml(built.to_toml()).to_toml() == built.to_toml()


def _video(**settings: Any) -> sj.Result:
    """Run a video of at most 4 Mbit/s over a link of 2 Mbit/s."""
    queue = settings.pop("queue", "pfifo")
    scenario = _scenario(
        sj.Media(direction="down", name="video", max_rate="4mbit", phase="0ms", **settings)
    )
    links = {"up": sj.Link(rate="2mbit", qdisc="pfifo"), "down": sj.Link(rate="2mbit", qdisc=queue)}
    return sj.run(scenario.replace(links=links, duration="30s", warmup="10s", replications=1))


def test_media_of_constant_rate_have_the_frames_and_bytes_of_their_rate() -> None:
    result = _video(control="constant", start_rate="1mbit", variation=0)
    row = result.applications.row(0, named=True)
    # 20 s at 30 frames per second, each 4,166 B in 4 packets.
    assert row["frames"] == pytest.approx(600, abs=1)
    assert row["sent_bytes"] == pytest.approx(2_500_000, rel=0.005)
    assert row["target_mbit_per_s_mean"] == 1.0
    assert row["lost_frames_percent"] == 0
    flow = result.flows.row(0, named=True)
    assert flow["cc"] == "constant"
    assert flow["goodput_mbit_per_s"] == pytest.approx(1.0, rel=0.01)
    assert flow["lost_packets"] == 0
    # One report per frame, and a packet of a report is not one of the flow.
    assert row["feedback_packets"] == pytest.approx(600, abs=1)
    assert flow["sent_packets"] == pytest.approx(2400, abs=4)


def test_scream_keeps_the_mean_queue_below_its_target() -> None:
    result = _video()
    row = result.applications.row(0, named=True)
    assert 1.0 < row["target_mbit_per_s_mean"] < 2.0
    assert row["lost_frames_percent"] == 0
    # The RTT is at least 20 ms; QDELAY_TARGET_LO is 60 ms.
    assert result.flows["owd_ms_mean"][0] < 20 + 60


def test_scream_with_l4s_keeps_the_queue_shorter_than_without() -> None:
    l4s = _video(queue="dualpi2", ecn="l4s")
    classic = _video()
    row = l4s.applications.row(0, named=True)
    assert row["marked_packets"] > 0
    assert row["target_mbit_per_s_mean"] > 1.0
    assert l4s.flows["owd_ms_mean"][0] < classic.flows["owd_ms_mean"][0]


def test_lost_reports_are_not_lost_packets() -> None:
    scenario = _scenario(sj.Media(direction="down", name="video", max_rate="1mbit"))
    links = {
        "up": sj.Link(rate="2mbit", qdisc="pfifo", loss="20%"),
        "down": sj.Link(rate="2mbit", qdisc="pfifo"),
    }
    result = sj.run(scenario.replace(links=links, duration="20s", replications=1))
    assert result.flows["lost_packets"][0] == 0
    # Reports overlap, so that the control does not take them for lost packets.
    assert result.applications["target_mbit_per_s_mean"][0] > 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"control": "nada"}, r'control: unknown media congestion control "nada"'),
        ({"min_rate": "2mbit"}, r"min_rate: max_rate must be at least min_rate"),
        ({"max_rate": "100kbit"}, r"max_rate: must be at least min_rate"),
        ({"start_rate": "9mbit"}, r"start_rate: must be between min_rate and max_rate"),
        ({"control": "gcc", "ecn": "l4s"}, r"ecn: must be off unless the control is scream"),
        ({"resume": "2s"}, r"resume: not allowed without pause"),
        ({"pause": "3s", "resume": "2s"}, r"resume: must be after the pause"),
        ({"key_frame_factor": 2.0}, r"key_frame_factor: not allowed without key_frame_interval"),
    ],
)
def test_settings_of_media_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(sj.ScenarioError, match=message):
        sj.Media(direction="up", **settings)
