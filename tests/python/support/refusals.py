"""A valid scenario, and the check of an error in one line."""

import re

VALID = """
duration = "5s"
warmup = "1s"
rtt = "50ms"
[links.up]
rate = "10mbit"
qdisc = "codel"
[links.down]
rate = "10mbit"
qdisc = "codel"
[[traffic]]
type = "tcp"
direction = "up"
"""


def refused(done: object, code: int, *parts: str) -> None:
    """Check that `done` failed in one clear line."""
    assert done.returncode == code, done.stderr  # type: ignore[attr-defined]
    said = done.stderr  # type: ignore[attr-defined]
    assert said.startswith("sojourn: ")
    assert said.count("\n") == 1, said
    for part in parts:
        assert re.search(part, said), said
    assert done.stdout == ""  # type: ignore[attr-defined]
