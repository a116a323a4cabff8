"""A small scenario whose result the tests save, and what they check of directories."""

import subprocess
from pathlib import Path

import sojourn as sj

ONE = """
duration = "2s"
[links.up]
rate = "1mbit"
qdisc = "codel"
[links.down]
rate = "1mbit"
qdisc = "codel"
[[traffic]]
type = "ping"
direction = "up"
"""


def scenario(seed: int = 1) -> sj.Scenario:
    return sj.Scenario.from_toml(ONE).replace(seed=seed)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that a command ended with exit code 3 and one line that contains these words."""
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("sojourn: ")
    for word in words:
        assert word in line
    assert "Traceback" not in done.stderr
