"""``sojourn demo``: the answer within a screen, a report, and commands that exist."""

import shlex
from pathlib import Path

from sojourn.cli.demo import NEXT, PLAN
from support.shell import Command


def test_the_demo_prints_the_answer_and_writes_a_report(sojourn: Command, tmp_path: Path) -> None:
    done = sojourn("demo")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    rows = [line.split()[0] for line in lines if line.startswith(tuple(PLAN.queues))]
    assert rows == list(PLAN.queues)
    answer = next(number for number, line in enumerate(lines) if line.startswith("With "))
    assert answer < 12
    assert ", against 1.0 s with pfifo; uploads lose " in lines[answer]
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert lines[answer] in page
    assert done.stderr == "wrote report to demo.html\n"


def test_the_next_commands_are_accepted(sojourn: Command) -> None:
    for line in NEXT:
        name, *words = shlex.split(line)[1:]
        # `advise` takes long, `live` needs a machine that permits it.
        words = {"compare": [*words, "--dry-run"], "qdiscs": words}.get(name, ["--help"])
        done = sojourn(name, *words)
        assert done.returncode == 0, done.stderr
