"""Messages of ``sojourn live``: errors name what the user typed, and what is accepted there.

All of them come before a namespace is created, so the machine need not permit live runs.
"""

from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.arguments import spelled
from sojourn.cli.live import LivePlan, Metrics, changed, composed, with_named_queues
from sojourn.cli.plans import Given
from support.stored import command

RATES = "expected down/up with a unit, such as 10/1mbit, or one rate"
QUEUES = "expected one of pfifo, "
NOT_A_TIME = "not a time: it must start with a number; write, for example, 5ms"
NO_TIME = f"is {NOT_A_TIME}"
REFUSED = [
    ({"link": "10"}, f"--link 10: {RATES}"),
    ({"link": "10/1"}, f"--link 10/1: {RATES}"),
    ({"link": "1/2/3mbit"}, f"--link 1/2/3mbit: {RATES}"),
    ({"link": ""}, f'--link "": {RATES}'),
    ({"link": "/10mbit"}, f"--link /10mbit: {RATES}"),
    ({"link": "10mbit/"}, f"--link 10mbit/: {RATES}"),
    ({"link": "x/10mbit"}, f"--link x/10mbit: {RATES}"),
    ({"link": "0mbit"}, "--link 0mbit: not a rate: it must be > 0"),
    ({"rtt": "bad"}, f"--rtt bad: {NOT_A_TIME}"),
    ({"duration": "bad"}, f"--duration bad: {NOT_A_TIME}"),
    ({"duration": ""}, f'--duration "": {NOT_A_TIME}'),
    ({"duration": "0s"}, "--duration 0s: must be > 0"),
    ({"qdisc": "nosuch"}, f"--qdisc nosuch: unknown queue; {QUEUES}"),
    (
        {"qdisc": "fq_codel target bad"},
        f'--qdisc "fq_codel target bad": fq_codel: target "bad" {NO_TIME}; expected 1ns to ',
    ),
    ({"qdisc_up": "nosuch"}, f"--qdisc-up nosuch: unknown queue; {QUEUES}"),
    ({"qdisc_up": ""}, f'--qdisc-up "": unknown queue; {QUEUES}'),
    ({"server": ""}, '--server "": the program has no name; expected a program and its arguments'),
    ({"server": "''"}, "--server '': the program has no name; expected a program"),
    ({"server": '"'}, '--server ": no closing quotation; expected a program'),
    ({"words": [""]}, 'COMMAND "": the program has no name; expected a program'),
    ({"words": ["x\udcff"]}, "COMMAND x\ufffd: not UTF-8"),
    ({"rtt": "\udcff"}, "--rtt \ufffd: not UTF-8"),
]


@pytest.mark.parametrize(("typed", "said"), REFUSED)
def test_errors_name_the_option(typed: dict[str, Any], said: str) -> None:
    given = Given(LivePlan, {}, None)
    with pytest.raises(sj.ScenarioError) as error, spelled(given):
        composed(LivePlan(**typed))
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--link", "10"), "--link 10"),
        (("--server", ""), '--server "": the program has no name'),
    ],
)
def test_an_invalid_option_ends_the_command_with_code_2(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = command("live", *words, "--out", "result", "--", "true", folder=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"sojourn: {said}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::sojourn.errors.QueueWarning")
def test_units_that_may_surprise_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    plan = LivePlan(qdisc="codel target 13", link="10mbit")
    changed(composed(plan), plan, ["links.up.rate=10Mbps", "links.up.qdisc=codel target 14"])
    assert capsys.readouterr().err.splitlines() == [
        "warning: 10Mbps is a rate in bytes per second, as in tc: 80 Mbit/s",
        "note: codel: target 13: tc reads 13 as 13us; write 13us",
        "note: codel: target 14: tc reads 14 as 14us; write 14us",
    ]


@pytest.mark.parametrize(
    ("link", "rates"),
    [
        ("10mbit", ["10mbit", "10mbit"]),
        ("10/1mbit", ["10mbit", "1mbit"]),
        ("10mbit/500kbit", ["10mbit", "500kbit"]),
    ],
)
def test_a_link_has_one_rate_or_two(link: str, rates: list[str]) -> None:
    built = composed(LivePlan(link=link, qdisc_up="pfifo"))
    links = [built.links[name] for name in ("down", "up")]
    assert [one.rate for one in links if isinstance(one, sj.Link)] == rates
    assert [str(one.qdisc) for one in links if isinstance(one, sj.Link)] == ["fq_codel", "pfifo"]


@pytest.mark.parametrize(
    ("word", "name"),
    [("/usr/bin/ping", "ping"), ("/", "/"), ("a\nb", "a\\nb"), ("a" * 300, "a" * 200)],
)
def test_the_scenario_has_the_name_of_the_program(word: str, name: str) -> None:
    assert composed(LivePlan(words=[word])).checked.name == name


def test_the_arm_has_the_name_of_the_queues() -> None:
    for plan, name in (
        (LivePlan(qdisc="codel target 13ms"), "codel target 13ms"),
        (LivePlan(qdisc="codel", qdisc_up="pie"), "codel, up pie"),
    ):
        assert with_named_queues(composed(plan)).checked.arms == [name]
    plain = composed(LivePlan())
    open_line = plain.replace(links={**plain.links, "down": "unlimited"})
    assert with_named_queues(open_line).checked.arms == ["unlimited, up fq_codel"]


def test_without_a_command_a_shell_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, name in (("/bin/bash", "bash"), ("", "sh")):
        monkeypatch.setenv("SHELL", value)
        assert composed(LivePlan()).checked.name == name


PORT = "; expected ADDRESS:PORT or :PORT, PORT from 1 to 65535"


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (":80000", "port 80000 is out of range"),
        (":0", "port 0 is out of range"),
        ("nine", "no port"),
        (":nine", "not a port"),
        ("localhost:", "no port"),
        ("192.0.2.1:9100", "cannot listen there: Cannot assign requested address"),
    ],
)
def test_an_address_of_metrics_has_a_port(address: str, problem: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        Metrics(address)
    assert f"{error.value}" == f"prometheus={address!r}: {problem}{PORT}"
