# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compiles the kernel modules of Sojourn as programs: those of ``kernel/test/user``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

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
