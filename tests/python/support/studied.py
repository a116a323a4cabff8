"""Small studies for tests: their files, their claims, and estimates to judge them by."""

from pathlib import Path

from sojourn.studies.claims import Claim, Subject, load
from sojourn.studies.verdicts import Estimate
from support.stored import COLUMNS

# Two groups of data, finite transfers, pages and pings through two queues.
SCENARIO = """
name = "two flows"
duration = "12s"
warmup = "4s"
replications = 3
rtt = "20ms"
sample = "200ms"
links.up = "unlimited"

[links.down]
rate = "10mbit"
qdisc = "pfifo limit 100"

[[traffic]]
name = "udp"
type = "udp"
direction = "down"
rate = "3mbit"

[[traffic]]
name = "tcp"
type = "tcp"
direction = "down"
count = 2
start_jitter = "50ms"

[[traffic]]
name = "files"
type = "tcp"
direction = "down"
count = 12
bytes = "100000b"
start = "1s"
start_jitter = "10s"

[[traffic]]
name = "ping"
type = "ping"
direction = "down"
interval = "100ms"

[[traffic]]
name = "web"
type = "web"
direction = "down"
page = "small"

[[arms]]
name = "pfifo"

[[arms]]
name = "codel"
set."links.down.qdisc" = "codel"
"""
DESCRIPTION = """
title = "A small study"
reconstruction = "codel is not the one of the work."

[citation]
key = "small2026"
type = "article"
author = "A. Author and B. Author"
year = 2026

[quick]
replications = 2

[scenario.two]
quick = { duration = "8s" }

[sweep.delay]
scenario = "two"
name = "delay_{rtt}"
axis = "rtt"
set = { rtt = ["10ms", "40ms"], "traffic.tcp.count" = [1, 2] }
quick = { duration = "6s" }

[[preset]]
label = "no AQM"
arms = { codel = "pfifo" }

[[figure]]
name = "1 a"
title = "Delay & goodput"
kind = "bars"
statement = "CoDel has less delay."
[[figure.panel]]
scenario = "two"
metric = "sojourn_down_ms_mean"
[[figure.panel]]
scenario = "two"
metric = "goodput_mbit_per_s"
groups = ["udp", "tcp"]
arms = ["codel", "pfifo"]

[[figure]]
name = "2"
title = "Over time"
kind = "series"
[[figure.panel]]
scenario = "two"
metric = "sojourn_down_ms"
published = "published/two.csv"
[[figure.panel]]
scenario = "two"
metric = "goodput_mbit_per_s"
groups = ["udp", "tcp"]
x_range = [2, 6]

[[figure]]
name = "3"
title = "Distributions"
kind = "cdf"
[[figure.panel]]
scenario = "two"
metric = "sojourn_down_ms"
[[figure.panel]]
scenario = "two"
metric = "ping_ms"
x_log = true
[[figure.panel]]
scenario = "two"
metric = "fct_s"
groups = ["files"]
[[figure.panel]]
scenario = "two"
metric = "duration_s"
groups = ["web"]
title = "pages"

[[figure]]
name = "4"
title = "Sweep"
kind = "sweep"
[[figure.panel]]
sweep = "delay"
metric = "sojourn_down_ms_mean"
y_range = [0, 200]

[[figure]]
name = "5"
title = "Ellipses"
kind = "ellipse"
[[figure.panel]]
scenario = "two"

[[assumption]]
name = "Buffer size"
claims = ["B"]
scenarios = ["two"]
replications = 2
text = "The work states no buffer."
[[assumption.variant]]
label = "20 packets"
set = { "links.down.qdisc.limit" = 20 }
plausible = "no: too small"
"""
CLAIMS = """\
A,"Fig. 1, left",figure,less delay than a FIFO,two,codel,,sojourn_down_ms_mean,below,pfifo,,,
B,"Fig. 1, left",figure,20 ms,two,pfifo,,sojourn_down_ms_mean,equals,,20,5%,reading
C,text,text,half the delay | or less,two,codel,,sojourn_down_ms_mean,at_most,pfifo,0.5,,
C,,,,delay_10ms,codel,,sojourn_down_ms_mean,at_most,pfifo,0.5,,
D,text,text,the sum of shares is < 101 %,,,,,definitional,,,,by construction
"""
PUBLISHED = "# read from Fig. 2\nscenario,arm,x,y\ntwo,codel,5,6\ntwo,codel,6,5.5\ntwo,pfifo,5,90\n"
ABOUT = """\
# A small study

An introduction of
two lines.

## Setup

Text.

## Findings

More text.
"""


def write(
    folder: Path, *, description: str = DESCRIPTION, claims: str = CLAIMS, scenario: str = SCENARIO
) -> Path:
    """Write a study into a directory, which is created, and return the directory."""
    (folder / "published").mkdir(parents=True)
    (folder / "study.toml").write_text(description, encoding="utf-8")
    (folder / "claims.csv").write_text(f"{COLUMNS}\n{claims}", encoding="utf-8")
    (folder / "two.toml").write_text(scenario, encoding="utf-8")
    (folder / "published" / "two.csv").write_text(PUBLISHED, encoding="utf-8")
    (folder / "about.md").write_text(ABOUT, encoding="utf-8")
    return folder


def claims(folder: Path, text: str) -> list[Claim]:
    """Read claims from the lines of a file, without its head."""
    file = folder / "claims.csv"
    file.write_text(f"{COLUMNS}\n{text}", encoding="utf-8")
    return load(file)


def subject(text: str, metric: str = "m") -> Subject:
    """Read ``[scenario/]arm[@group]``; the scenario is s unless it is given."""
    place, _, group = text.partition("@")
    scenario, _, arm = place.rpartition("/")
    return Subject(scenario or "s", arm, group or None, metric)


def estimate(*values: float) -> Estimate:
    """Return the estimate from the values of runs; a single value is that of one run."""
    return Estimate.of(values)
