"""The command as users run it, with a run store that the test can look into."""

import subprocess
import sys
from pathlib import Path

from shell import environment

COMMAND = [sys.executable, "-m", "sojourn"]
SCENARIO = """
name = "many"
duration = "{duration}"
warmup = "1s"
replications = {replications}
rtt = "20ms"
links.up = {{ rate = "20mbit", qdisc = "pfifo" }}
links.down = "unlimited"
traffic = [{{ type = "tcp", direction = "up" }}, {{ type = "ping", direction = "up" }}]
arms = [{{ name = "fifo" }}, {{ name = "codel", set = {{ "links.up.qdisc" = "codel" }} }}]
"""


def segments(store: Path) -> list[Path]:
    return sorted(store.glob("*.runs"))


def scenario_file(folder: Path, *, duration: str = "10s", replications: int = 60) -> Path:
    path = folder / "many.toml"
    path.write_text(SCENARIO.format(duration=duration, replications=replications))
    return path


def command(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
