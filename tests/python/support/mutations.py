"""Mutated scenarios: 10,000 of them, each derived from its number alone.

As a program it checks those with the numbers from the first to the second argument; with a third,
every scenario that is small enough and whose number it divides is run as well. It writes the number
of the scenario at work to stdout before it starts on it, so that whoever started the program knows
which one ended it.
"""

import json
import random
import re
import sys
import tomllib
from collections.abc import Callable
from typing import Any

import sojourn as sj
from sojourn import _core
from sojourn.result import budget
from support.shell import ROOT

COUNT = 10_000
SHIPPED = sorted(
    [
        *ROOT.glob("papers/*/*.toml"),
        *ROOT.glob("examples/*/scenario.toml"),
        *ROOT.glob("tests/golden/scenarios/*.toml"),
        ROOT / "crates/scenario/tests/full.toml",
    ]
)
TEXTS = [
    text
    for text in (file.read_text(encoding="utf-8") for file in SHIPPED)
    if "traffic" in tomllib.loads(text)
]
NUMBERS = ["0", "-1", "1", "3", "255", "65536", "4294967296", "9223372036854775807", "1e308", "nan"]
UNITS = ["s", "ms", "us", "ns", "b", "kb", "gb", "mbit", "gbit", "tbit", "%", "p", "", "x"]
QDISCS = [entry["name"] for entry in json.loads(_core.qdisc_catalogue()) if entry["page"]]
PARAMETERS = {
    entry["name"]: [item["key"] for item in entry["parameters"]]
    for entry in json.loads(_core.qdisc_catalogue())
}
# A run of a mutated scenario takes at most this: processor time, and memory.
CPU_S = 0.2
MEMORY = "1gb"


def _value(rng: random.Random) -> Any:
    """A value that a key may or may not accept."""
    return rng.choice(
        [
            lambda: rng.choice(NUMBERS) + rng.choice(UNITS),
            lambda: rng.choice([0, -1, 1, 7, 2**31, 2**63 - 1, -(2**63)]),
            lambda: rng.choice([0.0, -1.5, 1e-300, 1e300]),
            lambda: rng.choice([True, False, None, [], {}, "", "up", "unlimited", "\x1b[2J"]),
            lambda: _queue(rng, 2),
            lambda: "x" * rng.choice([1, 300, 100_000]),
            lambda: [_value(rng) for _ in range(rng.randrange(3))],
            lambda: {"kind": rng.choice(QDISCS), "limit": rng.choice(NUMBERS)},
            lambda: {"distribution": rng.choice(["exponential", "lognormal", "pareto"])},
        ]
    )()


def _queue(rng: random.Random, depth: int) -> str:
    """A queue in the syntax of tc, mostly of parameters that it has."""
    name = rng.choice(QDISCS)
    words = [name]
    for _ in range(rng.randrange(3)):
        words.append(rng.choice(PARAMETERS[name] or ["limit"]))
        if rng.random() < 0.8:
            words.append(rng.choice([*NUMBERS, "5", "20", "100"]) + rng.choice(["", *UNITS]))
    if depth and rng.random() < 0.3:
        leaves = [_queue(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
        words += ["leaf", " / ".join(f"({leaf})" for leaf in leaves)]
    return " ".join(words)


def _by_text(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    for _ in range(rng.randrange(1, 3)):
        at = rng.randrange(len(lines))
        kind = rng.randrange(5)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            lines[at] = re.sub(r"\d+", lambda _: rng.choice(NUMBERS), lines[at])
        elif kind == 3:
            lines[at] = re.sub(r"(?<=\d)[a-z%]+", lambda _: rng.choice(UNITS), lines[at])
        else:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        lines = lines or ["x"]
    return "\n".join(lines)


def _by_bytes(text: str, rng: random.Random) -> str:
    content = bytearray(text.encode())
    for _ in range(rng.randrange(1, 4)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return content.decode(errors="replace")


def _by_tree(text: str, rng: random.Random) -> str:
    tree = tomllib.loads(text)
    for _ in range(rng.randrange(1, 3)):
        places = list(_places(tree))
        holder, key = rng.choice(places)
        if rng.random() < 0.15:
            del holder[key]
        else:
            holder[key] = _value(rng)
        tree = tree or {"x": 1}
    return json.dumps(tree)


def _by_queue(text: str, rng: random.Random) -> str:
    tree = tomllib.loads(text)
    links = [link for link in tree["links"].values() if isinstance(link, dict)]
    rng.choice(links)["qdisc"] = _queue(rng, 3)
    return json.dumps(tree)


def _places(node: Any) -> list[tuple[Any, Any]]:
    """List the values of a tree, each by what holds it and its key."""
    if isinstance(node, dict):
        items = list(node.items())
    elif isinstance(node, list):
        items = list(enumerate(node))
    else:
        return []
    return [(node, key) for key, _ in items] + [
        place for _, value in items for place in _places(value)
    ]


WAYS: list[Callable[[str, random.Random], str]] = [_by_text, _by_bytes, _by_tree, _by_queue]


def mutant(number: int) -> str:
    """Return mutated scenario number `number`, as TOML or JSON."""
    rng = random.Random(number)  # noqa: S311 - not a secret
    return WAYS[number % len(WAYS)](rng.choice(TEXTS), rng)


def check(number: int, every: int | None) -> str:
    """Check mutated scenario number `number`; say what became of it."""
    text = mutant(number)
    read = sj.Scenario.from_json if text.startswith("{") else sj.Scenario.from_toml
    try:
        scenario = read(text)
        estimate = budget.estimate(scenario.checked, jobs=1, max_memory=MEMORY)
    except sj.ScenarioError as error:
        message = f"{error}"
        if len(message) > 1_001 or any(ord(c) < 32 or 127 <= ord(c) < 160 for c in message):
            raise AssertionError(message) from None
        return "refused"
    if estimate["refused"] is not None:
        return "too large"
    if every is None or number % every or estimate["cpu_s"] > CPU_S:
        return "valid"
    sj.run(scenario, jobs=1, max_memory=MEMORY).summary()
    return "run"


def main(first: int, last: int, every: int | None) -> None:
    """Check the mutated scenarios `first` to `last` and count what became of them."""
    counts: dict[str, int] = {}
    for number in range(first, last):
        print(number, flush=True)
        outcome = check(number, every)
        counts[outcome] = counts.get(outcome, 0) + 1
    print(json.dumps(counts))


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(given[0], given[1], given[2] if len(given) > 2 else None)
