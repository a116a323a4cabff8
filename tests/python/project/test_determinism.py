"""The same scenario and seed give the same bytes, in any process, on any number of threads."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import sojourn as sj
from support.shell import ROOT

# Functions of the C library, whose last digit differs between platforms; libm has them too.
OF_THE_PLATFORM = re.compile(
    r"(\.|\bf(32|64)::)(powf|exp2?|exp_m1|ln|ln_1p|log|log2|log10|cbrt|hypot"
    r"|a?(sin|cos|tan)h?|atan2|sin_cos)\("
)
PROGRAM = """
import sys, sojourn as sj
text, folder, jobs = sys.argv[1:]
sj.run(sj.Scenario.from_toml(text), jobs=int(jobs)).save(folder)
"""


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_two_processes_with_one_and_two_threads_write_the_same_files(
    scenario: sj.Scenario, tmp_path: Path
) -> None:
    for jobs in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", PROGRAM, scenario.to_toml(), str(tmp_path / jobs), jobs],
            check=True,
            timeout=100,
        )
    first, second = digests(tmp_path / "1"), digests(tmp_path / "2")
    assert first == second
    assert "flows.parquet" in first


def test_no_function_of_the_library_of_the_platform_is_called() -> None:
    found = []
    for file in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        if file.stem == "tests":
            continue
        text = file.read_text(encoding="utf-8").partition("\nmod tests {")[0]
        calls = (line for line in text.splitlines() if OF_THE_PLATFORM.search(line))
        found += [f"{file.name}: {line.strip()}" for line in calls if "//" not in line]
    assert found == []
