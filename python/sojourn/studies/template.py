"""A study to start from: it passes, and shows each kind of file."""

import re
from pathlib import Path

from sojourn import files
from sojourn.arguments import ArgumentError
from sojourn.studies import claims, readme, study

_SCENARIO = "uploads"
FILES = {
    study.FILE: """\
# The documentation of Sojourn has a guide, Reproducing a paper, and a list of all keys.
title = "Title of the Work"
# reconstruction = "Which part of the study is a reconstruction."

[citation]
key = "author2024title"
type = "misc"
author = "A. Author"
title = "Title of the Work"
year = 2024

[quick]                      # what quick runs change
replications = 3
duration = "20s"

[[figure]]
name = "1"
title = "Mean queuing delay"
kind = "bars"
[[figure.panel]]
scenario = "uploads"
metric = "sojourn_up_ms_mean"
""",
    claims.FILE: f"""\
# What the work states. Commit this file before you run the scenarios that it judges.
{",".join(claims.COLUMNS)}
C1,abstract,text,CoDel has less delay,uploads,codel,,sojourn_up_ms_mean,below,pfifo,,,
C2,section 4,printed,CoDel: 9.5 Mbit/s,uploads,codel,,goodput_mbit_per_s,equals,,9.5,3%,headers
C3,section 2,text,The link has 10 Mbit/s,,,,,definitional,,,,a parameter of the scenario
""",
    f"{_SCENARIO}.toml": """\
# Two endless uploads over a link of 10 Mbit/s. At full scale, as published.
name = "two uploads"
duration = "60s"
warmup = "5s"
replications = 10
seed = 1
rtt = "40ms"

[links]
down = "unlimited"

[links.up]
rate = "10mbit"
qdisc = "pfifo limit 200"

[[traffic]]
name = "uploads"
type = "tcp"
direction = "up"
count = 2
start_jitter = "1s"

[[arms]]                     # one per queue of the work
name = "pfifo"

[[arms]]
name = "codel"
set."links.up.qdisc" = "codel limit 200"
""",
    readme.ABOUT: """\
# Title of the work

A. Author, "Title of the Work", 2024: what the work did and found, in two or three sentences.

## Setup

What the scenarios take from the work, and what the work does not state.

## What the author would object to

| objection | answer |
|---|---|
| | |

## Findings

For every claim that is not reproduced: the cause, or what was tried.
""",
}


def write(name: str, folder: Path) -> Path:
    """Write a study to start from into a new directory; return the directory."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name) or name == "all":
        rule = (
            "not a name for a study; expected lower-case letters, digits, - and _, such as "
            "smith2024, and not all"
        )
        raise ArgumentError("new", name, rule)
    place = folder / name
    files.write_new(place, FILES, "new")
    return place
