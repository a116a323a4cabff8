#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Records what the kernel modules of Sojourn, compiled as programs, do with ``modules.py``.

    programs.py [--out tests/vectors/modules] [NAME…]

The programs are those of ``kernel/test/user``: the modules without a kernel. A packet leaves when
it comes or when the one before is out.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from cases import MTU, Case
from modules import MODULES
from record import Run, describe, is_ce, write

ROOT = Path(__file__).resolve().parents[3]
USER = ROOT / "kernel/test/user"
# Units of tc as numbers of the module; a fraction is in millionths.
UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9, "mbit": 1e6, "p": 1.0, "": 1.0}
FRACTIONS = {
    *("guard_interval", "max_increase", "target_scale", "gain", "threshold", "probability"),
    *("setup_weight", "responsive_weight", "mark"),
}
FLAGS = {"average", "ecn", "fallback", "mark_arrival", "protect", "pushout"}


def compile_programs(folder: Path) -> None:
    """Compile the modules as programs, with sanitizers."""
    subprocess.run(["make", "--silent", "-C", USER, f"OUT={folder}"], check=True)


def command(folder: Path, line: str) -> list[str]:
    """Give the program and its arguments for a queue in the syntax of ``tc``."""
    kind, *words = line.split()
    found = [str(folder / {"afq": "afcd"}.get(kind, kind)), kind]
    while words:
        name = words.pop(0)
        if name in FLAGS:
            found.append(f"{name}=1")
            continue
        value = re.fullmatch(r"([\d.]+)([a-z]*)", words.pop(0))
        assert value is not None, line
        scale = 1e6 if name in FRACTIONS else UNITS[value[2]]
        found.append(f"{name}={round(float(value[1]) * scale)}")
    return found


class Program:
    """A module that runs as a program."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to: IO[str] = self.process.stdin
        self.of: IO[str] = self.process.stdout

    def tell(self, event: str) -> list[list[str]]:
        """Pass an event on; give what happened, as lists of words."""
        self.to.write(event + "\n")
        self.to.flush()
        found = []
        while (line := self.of.readline().strip()) != ".":
            if not line:
                sys.exit(f"the program stopped at: {event}")
            found.append(line.split())
        return found


def run(case: Case, folder: Path) -> Run:
    """Send a trace through a module and a link behind it."""
    program = Program(command(folder, case.tc))
    assert case.rate_mbit is not None
    events: list[list[int]] = []
    drops: list[int] = []
    left: dict[int, int] = {}
    arrivals = list(enumerate(case.packets))
    waiting = free = 0
    while arrivals or waiting:
        if arrivals and (not waiting or arrivals[0][1].t_ns <= free):
            number, p = arrivals.pop(0)
            events.append([p.t_ns, p.flow, p.size, p.tos])
            free = free if waiting else max(free, p.t_ns)
            waiting += 1
            event = f"+ {p.t_ns} {number} {p.flow} {p.size} {p.tos} {p.kind}"
        else:
            event = f"- {free}"
        at = free
        for sign, number_, *tos in program.tell(event):
            waiting -= 1
            number = int(number_)
            if sign == "d":
                drops.append(number)
                continue
            left[number] = int(tos[0])
            events.append([at, number])
            free = at - -case.packets[number].size * 8_000 // case.rate_mbit
    program.to.close()
    last = program.of.read().strip()
    if last != "0 queued, 0 bytes":
        sys.exit(f"{case.name}: {last}")
    marks = [n for n, tos in sorted(left.items()) if is_ce(tos) and not is_ce(case.packets[n].tos)]
    return Run(events, sorted(drops), marks, {}, [])


def main() -> None:
    """Record the cases that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "tests/vectors/modules")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all if none is given")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as build:
        compile_programs(Path(build))
        for case in MODULES:
            if given.names and case.name not in given.names:
                continue
            done = run(case, Path(build))
            vector = {
                "schema": "sojourn-qdisc-vector/1",
                "name": case.name,
                "about": case.about,
                "qdisc": case.tc,
                "setup": f"{case.module}.c as a program, see kernel/test/user",
                "kernel": "none",
                "mtu": MTU,
                "rate_bps": case.rate_mbit and case.rate_mbit * 1_000_000,
                **describe(case, [done]),
            }
            write(given.out / f"{case.name}.json", vector)
            print(f"{case.name:18} {len(done.drops)} drops, {len(done.marks)} marks", flush=True)


if __name__ == "__main__":
    main()
