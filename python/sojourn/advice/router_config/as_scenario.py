"""The configuration of a router as a scenario file."""

import re
from collections.abc import Sequence
from pathlib import Path

from sojourn.advice.router_config import from_sqm, present, read
from sojourn.advice.shaping import Shaping
from sojourn.queues.queue_file import toml_string

_LISTING = re.compile(r"^\s*qdisc \w+ \S+ (?:dev|root|parent) ", re.MULTILINE)
_JSON_LISTING = re.compile(r'^\s*\[\s*\{\s*"kind"')
# Much more than the configuration of any router.
_MOST_BYTES = 1_000_000


def as_scenario(paths: Sequence[str | Path]) -> tuple[str, Sequence[str]] | None:
    """Return /etc/config/sqm or output of tc as a scenario file, and notes; None: another file."""
    if len(paths) != 1 or not Path(paths[0]).is_file():
        return None
    with Path(paths[0]).open("rb") as stream:
        text = stream.read(_MOST_BYTES).decode(errors="replace")
    is_listing = _LISTING.search(text) or _JSON_LISTING.match(text)
    if not from_sqm.is_sqm(text) and not is_listing:
        return None
    found = present(*read(Path(paths[0])))
    lines = [
        f"# {found.description}. Replace the traffic by yours.",
        f"name = {toml_string(Path(paths[0]).stem)}",
        'duration = "30s"',
        'warmup = "5s"',
        'rtt = "40ms"',
    ]
    for direction, shaping in (("up", found.up), ("down", found.down)):
        lines += ["", f"[links.{direction}]", *_link(direction, shaping)]
    for direction in ("up", "down"):
        lines += ["", "[[traffic]]", 'type = "tcp"', f'direction = "{direction}"']
    return "\n".join([*lines, "", "[[traffic]]", 'type = "ping"', 'direction = "up"', ""]), [
        *found.notes
    ]


def _link(direction: str, shaping: Shaping) -> list[str]:
    settings = {
        key.removeprefix(f"links.{direction}."): text
        for key, text in shaping.of_link(direction).items()
    }
    settings.setdefault("rate", "1gbit")
    return [f"{key} = {toml_string(text)}" for key, text in sorted(settings.items())]
