"""The same scenario and seed give the same bytes, in any process, on any number of threads."""

import hashlib
import subprocess
import sys
from pathlib import Path

import sojourn as sj

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
