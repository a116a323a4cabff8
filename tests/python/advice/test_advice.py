"""``sojourn advise``: links, candidates, configurations that are read and written, and the rule."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import sojourn as sj
from sojourn.advice import lines as writing
from sojourn.advice.access import access
from sojourn.advice.advice import ROUTERS, Advice, AdvicePlan, Question, question
from sojourn.advice.candidates import Candidate, candidates
from sojourn.advice.measures import CALL, METRICS, PAGE, PING, RPM, SCALES
from sojourn.advice.router_config import present
from sojourn.scenario.link import layer
from sojourn.scenario.presets import link_presets
from support.router_files import SQM
from support.shell import Command

ATM = {"link": "16/1mbit", "rtt": "40ms", "layer": "pppoe-atm"}


@pytest.fixture(scope="module")
def advice() -> Advice:
    """The ATM example, in short."""
    return sj.advise(**ATM, queues=["cake"], shares=[90], replications=2, present=SQM)  # type: ignore[arg-type]


def test_without_overhead_the_atm_line_loses_calls_and_with_it_they_are_good(
    advice: Advice,
) -> None:
    def mean(name: str, column: str) -> float:
        value = advice.mean(name, column)
        assert value is not None
        return value

    right, wrong, alone = "cake 90 %", "cake 90 % without overhead", "no shaper"
    assert mean(alone, "mos") < 2.0
    assert mean(wrong, "mos") < 2.0
    assert mean(right, "mos") > 3.8
    assert mean(wrong, "ping_ms_p99") > 400.0
    assert mean(right, "ping_ms_p99") < 150.0
    assert advice.recommended.name == right
    # The configuration that was read has the overhead too.
    assert mean("present configuration", "mos") > 3.5


def test_candidates_may_differ_in_more_than_the_queue() -> None:
    line = {"preset": "vdsl", "queues": ["cake", "fq_codel"], "shares": [95]}
    advice = sj.advise(**line, replications=2)  # type: ignore[arg-type]
    assert any(one.of_arms for one in advice.result.validity.findings)
    assert not any(one.of_arms for one in advice.validity.findings)


def test_the_table_has_a_row_per_candidate_with_intervals_and_grades(advice: Advice) -> None:
    table = advice.table()
    assert table["configuration"].to_list() == [
        "no shaper",
        "present configuration",
        "cake 90 %",
        "cake 90 % without overhead",
    ]
    assert table.filter("recommended")["configuration"].to_list() == ["cake 90 %"]
    for row in table.to_dicts():
        for metric in METRICS:
            low, high = row[f"{metric.column}_low"], row[f"{metric.column}_high"]
            # Without a shaper, a run may complete no page.
            assert low is None or low <= row[metric.column] <= high
            assert low is not None or metric is PAGE.metric
        for scale in SCALES:
            assert row[f"{scale.metric.column}_grade"] in scale.letters
    assert table["download_change_percent"][0] == 0.0
    assert advice.change_percent("cake 90 %", up=False) < 0.0  # type: ignore[operator]


def test_every_value_of_a_preset_has_a_source_and_every_preset_composes_a_scenario() -> None:
    keys = {"layer", "down", "up", "rtt", "down_buffer", "up_buffer"}
    for name, preset in link_presets().items():
        assert keys <= set(preset.values), name
        assert all(len(item.source) > 5 for item in preset.values.values()), name
        asked = question(AdvicePlan(preset=name, replications=1))
        assert asked.scenario.checked.arms == [one.name for one in asked.compared]
    assert {"adsl", "vdsl", "docsis", "pon", "lte", "starlink", "isp"} == set(link_presets())


def test_a_line_of_a_provider_has_many_hosts_and_no_address_translation() -> None:
    asked = question(AdvicePlan(preset="isp", queues=["cake"], shares=[95], replications=1))
    assert len({block.host for block in asked.scenario.traffic}) == 40
    assert not any("nat" in one.up.queue.split() for one in asked.compared)
    found = writing.lines(asked.access, asked.compared[1])
    assert [item.title for item in found] == ["tc, on any Linux router"]


def test_a_line_that_varies_is_tried_at_lower_rates_and_changes_in_the_run() -> None:
    varying, constant = access(preset="lte"), access(preset="adsl")
    lowest = [min(one.percent or 100.0 for one in candidates(link)) for link in (varying, constant)]
    assert lowest == [40.0, 80.0]
    links = question(AdvicePlan(preset="lte", replications=1)).scenario.links
    modem = links["modem"]
    assert isinstance(modem, sj.Link)
    assert modem.changes
    assert [change.rate for change in modem.changes[:3]] == ["5mbit", "7500kbit", "10mbit"]  # type: ignore[union-attr]


def test_wifi_adds_a_medium_that_both_directions_share() -> None:
    scenario = question(AdvicePlan(preset="adsl", wifi=True, replications=1)).scenario
    assert {"wifi_up", "wifi_down"} <= set(scenario.links)


@pytest.mark.parametrize(
    ("name", "overhead", "mpu", "framing"),
    [
        ("docsis", 18, 64, "noatm"),
        ("pppoe-atm", 40, 0, "atm"),
        ("pppoe-ptm ether-vlan", 34, 0, "ptm"),
        ("overhead 44 mpu 84", 44, 84, "noatm"),
        ("ip", 0, 0, "noatm"),
    ],
)
def test_link_layers(name: str, overhead: int, mpu: int, framing: str) -> None:
    found = layer(name)
    assert (found.overhead, found.mpu, found.framing) == (overhead, mpu, framing)
    assert found.of_link["overhead"] == f"{overhead - 14}b"
    # What the shaper and the line are given agrees.
    again = layer(found.keywords)
    assert (again.overhead, again.mpu, again.framing) == (overhead, mpu, framing)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({}, ["link: missing", "100/20mbit and layer, such as docsis, or preset", "adsl"]),
        ({"layer": "docsis"}, ["link: missing; expected rates such as 100/20mbit, or preset"]),
        ({"link": "100/20mbit"}, ["layer: missing", "docsis"]),
        ({"preset": "isdn"}, ["'isdn'", "adsl, vdsl"]),
        ({"preset": "adsl", "link": "fast"}, ["link='fast'", "10/1mbit"]),
        ({"preset": "adsl", "rtt": "25"}, ["rtt", "25"]),
        ({"preset": "adsl", "rtt": "0ms"}, ["rtt", "> 0"]),
        ({"preset": "adsl", "layer": "dialup"}, ["layer='dialup'", "docsis"]),
        ({"preset": "adsl", "buffer": "100/x"}, ["buffer"]),
        ({"preset": "adsl", "shares": [120.0]}, ["shares=120.0: ", "1 to 100"]),
        (
            {"link": "1000gbit", "layer": "docsis"},
            ["link='1000gbit': out of range; expected 10kbit to 100gbit"],
        ),
        ({"link": "10mbit/1bit", "layer": "docsis"}, ["link='10mbit/1bit': out of range"]),
        (
            {"link": "100gbit", "layer": "docsis", "buffer": "1s"},
            ["buffer='1s': at 100", "12500000000 bytes; expected at most 4294967296 bytes"],
        ),
        ({"preset": "adsl", "shares": [95.0, 95.0]}, ["shares=95.0: given twice"]),
        (
            {"link": "10kbit", "layer": "docsis", "shares": [1.0]},
            ["shares=1.0: this share of the rate is too low; expected at least 1kbit"],
        ),
        (
            {"preset": "adsl", "queues": ["cake nat overhead 44"]},
            ["queues='cake nat overhead 44': the link layer", "expected layer"],
        ),
        ({"preset": "adsl", "queues": ["cake docsis"]}, ["docsis", "expected layer"]),
        ({"preset": "adsl", "shares": []}, ["shares: empty"]),
        ({"preset": "adsl", "queues": []}, ["queues: empty"]),
        ({"preset": "adsl", "queues": ["cake", " cake"]}, ["given twice"]),
        ({"preset": "adsl", "queues": ["choker"]}, ["choker", "choke"]),
        ({"preset": "adsl", "queues": ["cake bandwidth 1mbit"]}, ["bandwidth"]),
        ({"preset": "adsl", "queues": ["pie"] * 7}, ["at most 6"]),
    ],
)
def test_a_wrong_question_is_refused_with_its_place(
    given: dict[str, object], parts: list[str]
) -> None:
    with pytest.raises(sj.ScenarioError) as caught:
        question(AdvicePlan(**given))  # type: ignore[arg-type]
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("queue", ["cake", "fq_codel", "codel", "pie", "sfq", "bfifo"])
@pytest.mark.parametrize("name", ["pppoe-atm", "docsis", "pppoe-ptm"])
def test_the_lines_are_read_back_as_what_was_simulated(queue: str, name: str) -> None:
    link = access(link="50/10mbit", layer_name=name)
    chosen = candidates(link, queues=[queue], shares=[90])[1]
    tc, sqm, *rest = writing.lines(link, chosen, "eth1")
    found = present(sqm.text, "F")
    read = (found.up, found.down)
    framing = layer(name).framing
    for direction, wanted in zip(read, (chosen.up, chosen.down), strict=True):
        share = 64 / 65 if framing == "ptm" else 1.0
        assert direction.bits_per_s == pytest.approx(wanted.bits_per_s * share, abs=1000)  # type: ignore[operator]
        if queue != "cake":
            assert direction.queue == sj.qdisc(wanted.queue).spec
            assert direction.layer is not None
            assert direction.layer.overhead == layer(name).overhead
        else:
            assert f"overhead {layer(name).overhead}b mpu {layer(name).mpu}b" in direction.queue
    assert not rest
    for device, wanted in (("eth1", chosen.up), ("ifb4eth1", chosen.down)):
        place = "root" if queue == "cake" else "parent 1:1 handle 11:"
        begin = f"tc qdisc replace dev {device} {place} "
        (text,) = [
            line.removeprefix(begin) for line in tc.text.splitlines() if line.startswith(begin)
        ]
        assert sj.qdisc(text).spec == sj.qdisc(wanted.queue).spec
        if queue == "cake":
            assert text.startswith(f"cake bandwidth {wanted.bits_per_s // 1000_000}mbit")  # type: ignore[operator]
        else:
            assert f"overhead {layer(name).overhead - 14} linklayer" in tc.text


def test_a_device_name_that_a_shell_would_interpret_is_refused() -> None:
    link = access(preset="adsl")
    chosen = candidates(link)[1]
    for name in ("wan; reboot", "", "x" * 16, "$(id)", "-h"):
        with pytest.raises(sj.ScenarioError, match="interface"):
            writing.lines(link, chosen, name)


def judged(values: dict[str, tuple[float, float, float, float]]) -> Advice:
    """Advice of made-up means: increase of the ping, MOS, page load time and RPM."""
    asked = question(AdvicePlan(preset="docsis", queues=["cake", "fq_codel"], shares=[100, 90, 80]))
    scales = (PING, CALL, PAGE, RPM)
    means = {
        name: {
            **{metric.column: (1.0, 1.0, 1.0) for metric in METRICS},
            **{
                scale.metric.column: (one, one, one)
                for scale, one in zip(scales, numbers, strict=True)
            },
        }
        for name, numbers in values.items()
    }
    made = Advice(Question(asked.access, asked.compared, asked.scenario), None)  # type: ignore[arg-type]
    made.__dict__["estimates"] = means
    return made


BAD, GOOD = (300.0, 2.0, 9.0, 100.0), (20.0, 4.4, 1.0, 1500.0)


def test_the_rule_prefers_grades_then_the_rate_then_the_order_of_the_queues() -> None:
    names = {"no shaper": BAD, "cake 100 %": BAD, "cake 90 %": GOOD, "cake 80 %": GOOD}
    assert judged(names).recommended.name == "cake 90 %"
    both = judged({**names, "fq_codel 90 %": GOOD, "fq_codel 100 %": BAD})
    assert both.recommended.name == "cake 90 %"
    assert judged({**names, "fq_codel 100 %": GOOD}).recommended.name == "fq_codel 100 %"


def test_an_a_plus_does_not_cost_rate() -> None:
    best = (2.0, 4.4, 1.0, 7000.0)
    names = {"no shaper": BAD, "cake 90 %": GOOD, "cake 80 %": best}
    assert judged(names).recommended.name == "cake 90 %"


def test_no_shaper_is_recommended_if_none_improves_a_grade() -> None:
    found = judged({"no shaper": GOOD, "cake 100 %": GOOD, "cake 90 %": GOOD})
    assert found.recommended.name == "no shaper"
    assert found.reason == "no shaper improves a grade"
    assert found.lines() == {}


def test_a_shaper_without_overhead_is_never_recommended() -> None:
    names = {"no shaper": BAD, "cake 90 %": BAD, "cake 90 % without overhead": GOOD}
    assert judged(names).recommended.kind != "uncompensated"


def test_what_was_not_measured_has_the_worst_grade() -> None:
    for scale in SCALES:
        assert scale.grade(None) == scale.worst
    assert [CALL.grade(value) for value in (4.34, 4.33, 3.6, 3.0)] == ["A", "B", "C", "F"]
    assert [RPM.grade(value) for value in (6000.0, 999.0, 299.0)] == ["A+", "C", "F"]
    assert [PAGE.grade(value) for value in (2.4, 2.6, 4.1)] == ["A", "C", "F"]
    assert [PING.grade(value) for value in (4.9, 5.0, 199.0, 401.0)] == ["A+", "A", "C", "F"]


def test_a_fast_shaper_warns_of_slow_routers_with_their_sources() -> None:
    found = judged({"no shaper": BAD, "cake 90 %": GOOD}).warnings
    assert any(ROUTERS[0].name in text and ROUTERS[0].source in text for text in found)
    assert not any(ROUTERS[-1].name in text for text in found)


def test_the_command_prints_advice_as_json_and_saves_the_result(
    sojourn: Command, tmp_path: Path
) -> None:
    (tmp_path / "sqm").write_text(SQM, encoding="utf-8")
    options = ["--link", "16/1mbit", "--rtt", "40ms", "--layer", "pppoe-atm", "cake"]
    few = ["--shares", "90", "--replications", "1", "--present", "sqm"]
    done = sojourn("advise", *options, *few, "--interface", "eth1", "--out", "saved", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["recommended"] == "cake 90 %"
    assert document["link"]["up_buffer"]["assumed"] is True
    assert document["link"]["up"] == {"value": "1mbit", "source": "given", "assumed": False}
    assert any("dev eth1 root cake" in text for text in document["lines"].values())
    assert "read from sqm: up cake 900 kbit/s, down cake 14400 kbit/s\n" in done.stderr
    present = document["present"]
    assert present["up"]["queue"].startswith("cake bandwidth 900kbit besteffort dual-srchost nat")
    assert f"up {present['up']['queue']}; down {present['down']['queue']}\n" in done.stderr
    assert present["down"]["bits_per_s"] == 14_400_000
    assert re.search(r"(?m)^4 configurations, 4 runs of 38 s; about", done.stderr)
    saved = sj.Result.load(tmp_path / "saved")
    assert saved.complete
    assert saved.arms[1] == "present configuration"


def test_the_command_prints_the_table_grades_sources_and_lines(sojourn: Command) -> None:
    options = ["cake", "--preset", "adsl", "--shares", "95,90"]
    done, whole = sojourn("advise", *options), sojourn("advise", *options, "--all")
    assert done.returncode == whole.returncode == 0, done.stderr
    short = (
        r"\ASet SQM to cake: download 1\d+ kbit/s, upload 9\d0 kbit/s, overhead 40\. A game ping",
        r" under load takes \d+ ms instead of \d+ ms; downloads [+−]\d+ %, uploads [+−]\d+ %\.$",
        r"^under load +no shaper +→ cake 9[05] %$",
        r"^tc qdisc replace dev wan root cake bandwidth 9\d0kbit .* overhead 40 atm mpu 0 egress$",
        r"^uci set sqm\.advice\.linklayer='atm'$",
    )
    of_all = (r"^→ cake 9[05] % ", r"^recommended: cake 9[05] %: ", r"ITU-T G\.107", r"1mbit \[R\]")
    for part in (*short, *of_all):
        assert re.search(part, whole.stdout, re.MULTILINE), part
        assert bool(re.search(part, done.stdout, re.MULTILINE)) == (part in short), part
    # The answer and the table of before and after are in the first lines.
    assert done.stdout.splitlines()[7].startswith("upload [Mbit/s]")


def test_cake_autorate_is_configured_only_where_the_rate_varies() -> None:
    titles = [
        [one.title.split(",")[0] for one in writing.lines(link, chosen)]
        for link in (access(preset="lte"), access(preset="vdsl"))
        for chosen in [candidates(link, queues=["cake"], shares=[90])[1]]
    ]
    assert ["cake-autorate" in of_link for of_link in titles] == [True, False]


def test_a_dry_run_prints_the_link_and_the_estimate(sojourn: Command) -> None:
    done = sojourn("advise", "--preset", "starlink", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "every 15 s" in done.stdout
    assert "cake 50 %: up cake bandwidth 6750kbit" in done.stdout
    assert "estimate: " in done.stdout


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ([], ["--link: missing; expected rates such as 100/20mbit and --layer, such as docsis"]),
        (["--preset", "adsl", "--present", "absent"], ["cannot read absent"]),
        (["--preset", "adsl", "--shares", "90,x"], ["--shares 90,x: ", "percent"]),
        (["--preset", "adsl", "--interface", "a b"], ["interface", "a b"]),
        (["--preset", "adsl", "--replications", "0"], ["--replications 0: expected 1 to 100000"]),
        (["--preset", "adsl", "--jobs", "0"], ["--jobs 0: expected 1 to 4096"]),
    ],
)
def test_a_wrong_command_line(sojourn: Command, options: list[str], parts: list[str]) -> None:
    done = sojourn("advise", *options)
    assert done.returncode == 2
    assert done.stderr.startswith("sojourn: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    for part in parts:
        assert part in done.stderr


def test_compare_takes_the_rates_and_the_link_layer_of_a_preset(sojourn: Command) -> None:
    done = sojourn("compare", "--preset", "adsl", "--generate")
    links = sj.Scenario.from_toml(done.stdout).links
    up = links["up"]
    assert isinstance(up, sj.Link)
    assert (up.rate, up.framing) == ("1mbit", "atm")


def test_every_candidate_is_named_once() -> None:
    compared: list[Candidate] = candidates(access(preset="docsis"))
    assert len({one.name for one in compared}) == len(compared) == 21


def test_the_report_is_the_advice(sojourn: Command, tmp_path: Path) -> None:
    options = ["cake", "--preset", "vdsl", "--shares", "95"]
    done = sojourn("advise", *options, "--report", "advice.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "advice.html").read_text("utf-8")
    assert f"<strong>{done.stdout.splitlines()[0]}</strong>" in page
    # What to set, before and after, the assumptions, and everything else folded.
    assert page.index("Before and after") < page.index("Settings") < page.index("<details>")
    assert page.count('<table class="bars">') == 5
    bars = re.findall(r"width:([\d.]+)%.*?<td>([\d.]+)", page)
    first, second = ((float(width), float(mean)) for width, mean in bars[:2])
    assert first[0] == 100.0
    assert second[0] == pytest.approx(100 * second[1] / first[1], abs=0.5)
    for text in ("46769", "tc qdisc replace dev wan root cake", "uci commit sqm", "[R]"):
        assert text in page
    fields = dict(re.findall(r'<th scope="row">([^<]*)</th><td class="text">([^<]*)</td>', page))
    assert fields["Link Layer Adaptation: Per Packet Overhead (byte)"] == "34"
    assert len(page) < 1_000_000


def test_advice_is_shown_by_its_answer() -> None:
    advice = sj.advise(preset="adsl", queues=["cake"], shares=[90], replications=1)
    assert repr(advice) == f"<Advice: {advice.answer}>"
    shown = advice._repr_html_()
    assert shown.startswith(f"<p><strong>{advice.answer}</strong>")
    assert "tc qdisc replace dev wan root cake" in shown


def test_advice_of_few_or_of_interrupted_runs_is_not_final(
    tmp_path: Path, sojourn: Command
) -> None:
    options = ["cake", "--preset", "vdsl", "--shares", "95", "--replications", "2"]
    done = sojourn("advise", *options, "--out", "saved")
    assert done.stdout.startswith(
        "Too few runs to judge: 2 runs per arm; expected at least 5. Provisionally: Set SQM to cake"
    )
    asked = question(AdvicePlan(preset="vdsl", queues=["cake"], shares=[95], replications=2))
    whole = sj.Result.load(tmp_path / "saved")
    unfinished = SimpleNamespace(complete=False, finished=1, total=6, scenario=whole.scenario)
    part = Advice(asked, unfinished)  # type: ignore[arg-type]
    assert part.answer == "Interrupted after 1 of 6 runs: no recommendation."
    assert repr(part) == f"<Advice: {part.answer}>"
    assert part._repr_html_() == f"<p><strong>{part.answer}</strong></p>"
