"""The command as users run it, with a run store that the test can look into."""

import subprocess
import sys
from pathlib import Path

from support import preloaded
from support.shell import environment

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
# The columns of claims, and a description of a study without anything that is optional.
COLUMNS = (
    "id,source,evidence,statement,scenario,arm,group,metric,relation,reference,value,tolerance,"
    "reason,runs,use"
)
DESCRIPTION = 'title = "Small"\ncitation = { key = "me2026", type = "misc", year = 2026 }\n'


def segments(store: Path) -> list[Path]:
    return sorted(store.glob("*.runs"))


def scenario_file(folder: Path, *, duration: str = "10s", replications: int = 60) -> Path:
    path = folder / "many.toml"
    path.write_text(SCENARIO.format(duration=duration, replications=replications))
    return path


def study(folder: Path, *, replications: int = 2) -> None:
    """Write the study `small` with the scenario and a claim, for ``--papers papers``."""
    place = folder / "papers" / "small"
    place.mkdir(parents=True)
    scenario_file(place, replications=replications)
    (place / "study.toml").write_text(DESCRIPTION, encoding="utf-8")
    line = "A,Fig. 1,text,delay,many,fifo,,sojourn_ms_mean,at_least,,0,,\n"
    (place / "claims.csv").write_text(f"{COLUMNS}\n{line}", encoding="utf-8")


def command(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in arguments]
    return preloaded.run(words, folder=folder, environment=environment(), timeout=120)
