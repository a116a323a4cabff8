"""The full-screen view: its lines, its keys, and the terminal before and after it; no live run."""

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import sojourn as sj
from sojourn.live.screen import PLAIN_BARS, Screen, sparkline
from sojourn.live.terminal import Output
from support.shell import environment
from support.views import busy_second

FIRST = "codel limit 1000p target 5ms interval 100ms noecn"


@dataclass
class FakeLinks:
    """Remembers what keys ask for."""

    asked: list[tuple[str, Any]] = field(default_factory=list)
    rate: str = "10mbit"
    problem: str = ""

    def now(self) -> tuple[float, dict[str, dict[str, Any]]]:
        return 1.0, {name: {"rate": self.rate, "qdisc": FIRST} for name in ("down", "up")}

    def change(
        self, assignments: Sequence[tuple[str, Any]]
    ) -> tuple[float, dict[str, dict[str, Any]]]:
        if self.problem:
            raise sj.ScenarioError(self.problem)
        self.asked += assignments
        return self.now()


@pytest.fixture
def links() -> FakeLinks:
    return FakeLinks()


def screen(links: FakeLinks, **options: Any) -> Screen:
    shown = Screen("a \x1b[31mname", links, leave=lambda: None, **options)
    for second in range(1, 5):
        shown.show([busy_second(name, second, qdisc=FIRST) for name in ("down", "up")])
    return shown


def text(shown: Screen, width: int = 120, height: int = 40, output: Sequence[str] = ()) -> str:
    lines = [line.plain for line in shown.lines(width, height, output)]
    assert len(lines) == height
    assert all(len(line) <= width for line in lines)
    return "\n".join(lines)


def test_it_shows_links_flows_reasons_and_keys(links: FakeLinks) -> None:
    found = text(screen(links))
    assert "\x1b" not in found
    for part in (
        "10mbit  codel limit 1000p",
        "drops 10 (8 overlimit, 2 aqm)  marks 3 (3 aqm)  lost 1",
        "tcp 5201 > 43918",
        "icmp id 77",
        " q  end the run",
    ):
        assert part in found, found
    assert found.count("backlog") == 2
    assert "▇" in found
    assert "▇" not in text(screen(links, bars=PLAIN_BARS))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (20, 4), (300, 100)])
def test_it_fits_any_terminal_and_always_has_its_keys(
    links: FakeLinks, width: int, height: int
) -> None:
    found = text(screen(links), width, height, ["line"] * 500)
    assert "queue A" in found.splitlines()[-1]


def test_the_output_of_the_program_fills_the_rest(links: FakeLinks) -> None:
    found = text(screen(links), output=[f"line {n}" for n in range(100)])
    assert "line 99" in found
    assert "line 50" not in found


def test_keys_set_both_queues_of_the_chosen_link_with_all_parameters(links: FakeLinks) -> None:
    shown = screen(links, second="codel target 50ms ecn")
    shown.press("b")
    assert [path for path, _ in links.asked] == ["links.down.qdisc", "links.up.qdisc"]
    assert links.asked[0][1] | {"kind": "codel", "target": "50ms", "ecn": "on"} == links.asked[0][1]
    links.asked.clear()
    shown.press("\t")
    shown.press("a")
    ((path, queue),) = links.asked
    assert path == "links.down.qdisc"
    # The flag that the other one sets is named.
    assert queue | {"kind": "codel", "target": "5ms", "ecn": "off"} == queue
    assert "links.down.qdisc=codel" in text(shown)


def test_the_second_queue_is_the_last_other_one(links: FakeLinks) -> None:
    shown = screen(links)
    shown.press("b")
    assert links.asked == []
    assert "no second queue yet" in text(shown)
    shown.show([busy_second("down", 5, qdisc="pie"), busy_second("up", 5, qdisc=FIRST)])
    shown.show([busy_second("down", 6, qdisc=FIRST), busy_second("up", 6, qdisc=FIRST)])
    shown.press("b")
    ((path, queue),) = links.asked
    assert (path, queue) == ("links.down.qdisc", "pie")


def test_keys_change_the_rate_by_a_tenth(links: FakeLinks) -> None:
    shown = screen(links)
    shown.press("+")
    assert links.asked == [("links.down.rate", "11000000bit"), ("links.up.rate", "11000000bit")]
    links.asked.clear()
    links.rate = "11mbit"
    shown.press("-")
    assert links.asked[0] == ("links.down.rate", "10000000bit")
    links.problem = "links.down.rate: too fast"
    shown.press("+")
    assert "links.down.rate: too fast" in text(shown)


def test_a_pause_keeps_the_display_and_loses_nothing(links: FakeLinks) -> None:
    shown = screen(links)
    shown.press("p")
    shown.show([busy_second("down", 77)])
    assert "PAUSED" in text(shown)
    assert "  77 s" not in text(shown)
    shown.press(" ")
    assert "  77 s" in text(shown)


def test_a_sparkline_is_as_wide_as_asked_and_scaled() -> None:
    assert sparkline([], 4) == "    "
    assert sparkline([0, 0], 4) == "  ▁▁"
    assert sparkline([1, 2, 4, 8], 3) == "▃▅█"
    assert sparkline([1], 0) == ""


def test_output_is_shown_without_control_characters_and_kept() -> None:
    output = Output()
    output.add(b"\x1b[31mred\x1b[0m\r\n10 %\r20 %\r\nop")
    output.add(b"en")
    assert output.lines() == ["red", "20 %", "open"]
    assert output.whole() == b"\x1b[31mred\x1b[0m\r\n10 %\r20 %\r\nopen"
    output.add(b"x" * (2 << 20))
    assert output.lost > 0


_PROGRAM = """
import os, sys, time
from sojourn.live.screen import Screen
from sojourn.live.terminal import Terminal
from support.views import busy_second
left = []
screen = Screen("run", None, leave=lambda: left.append(1))
with Terminal(screen) as terminal:
    os.system("echo from a program")
    print("standard input:", sys.stdin.read())
    second = 0
    while not left:
        second += 1
        terminal.show([busy_second("down", second)])
        time.sleep(0.05)
print("after")
"""


def test_the_terminal_is_as_before_and_has_the_output() -> None:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    variables = environment() | {"TERM": "xterm-256color", "PYTHONPATH": "tests/python"}
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdin=slave, stdout=slave, stderr=slave, env=variables
    )
    seen = b""
    sent = False
    deadline = time.monotonic() + 30
    try:
        while process.poll() is None or select.select([master], [], [], 0.2)[0]:
            assert time.monotonic() < deadline, seen
            if select.select([master], [], [], 0.2)[0]:
                seen += os.read(master, 65_536)
            if b"end the run" in seen and not sent:
                sent = True
                os.write(master, b"q")
        assert process.returncode == 0, seen
        assert termios.tcgetattr(slave) == before
    finally:
        process.kill()
        process.wait()
    enter, leave = b"\x1b[?1049h", b"\x1b[?1049l"
    assert seen.count(enter) == seen.count(leave) == 1
    after = seen.partition(leave)[2]
    assert b"from a program\r\n" in after
    assert b"standard input: \r\n" in after
    assert after.rstrip().endswith(b"after")
