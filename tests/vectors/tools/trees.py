# SPDX-License-Identifier: MIT OR Apache-2.0
"""Trees of classes: the commands that make them, what Sojourn calls them, and the arrival traces."""
# ruff: noqa: E501 - commands of tc

from __future__ import annotations

from dataclasses import replace

from cases import MIXED, MS, Case, Phase, mixture

# Type-of-service bytes of the classes: EF, AF41, default, CS1.
EF, AF41, BE, CS1 = 0xB8, 0x88, 0, 0x20
DSCP = {EF: "EF", AF41: "AF41", BE: "CS0", CS1: "CS1"}
RATE_MBIT = 4


def tree(default: str, classes: list[str], filters: dict[int, str]) -> tuple[str, tuple[str, ...]]:
    """Return a tree as Sojourn reads it and the commands of tc; a class is ``NAME parent X rate …``."""
    commands = [f"tc qdisc add dev r1 root handle 10: htb default {default.removeprefix('10:')}"]
    entries = []
    for place, text in enumerate(classes):
        own, _, leaf = text.partition(" leaf ")
        name, *words = own.split()
        options = dict(zip(words[::2], words[1::2], strict=True))
        parent = options.pop("parent", "10:")
        shaping = " ".join(f"{key} {value}" for key, value in options.items())
        commands.append(f"tc class add dev r1 parent {parent} classid {name} htb {shaping}")
        if leaf:
            commands.append(f"tc qdisc add dev r1 parent {name} handle {100 + place}: {leaf}")
        sized = " ".join(f"{key} {value}" for key, value in options.items())
        above = "" if parent == "10:" else f" parent {parent}"
        entries.append(f"(name {name}{above} {sized}" + (f" leaf {leaf})" if leaf else ")"))
    matches = []
    for prio, (tos, name) in enumerate(filters.items(), 1):
        commands.append(
            f"tc filter add dev r1 parent 10: protocol ip prio {prio} "
            f"u32 match ip dsfield {tos:#04x} 0xfc flowid {name}"
        )
        matches.append(f"(to {name} dscp {DSCP[tos]})")
    # The kernel sends packets past the tree if the default is no class.
    known = any(text.split()[0] == default for text in classes)
    given = f" default {default}" if known else ""
    text = f"htb{given} classes {' '.join(entries)} filters {' '.join(matches)}"
    return text, tuple(commands)


def stream(flow: int, tos: int, loads: list[tuple[int, float]], **how: object) -> list[Phase]:
    """Return one flow with its load in Mbit/s over time."""
    phase = Phase(0, 0.0, flows=(flow,), tos=(tos,))
    return [
        replace(phase, ms=ms, load=mbit / RATE_MBIT, **how)  # type: ignore[arg-type]
        for ms, mbit in loads
    ]


def case(
    name: str,
    about: str,
    shape: tuple[str, tuple[str, ...]],
    seed: int,
    flows: list[list[Phase]],
) -> Case:
    """Return a case without a link behind the queue: the tree paces."""
    spec, commands = shape
    packets = mixture(seed, RATE_MBIT, flows)
    return Case(name, about, spec, packets, rate_mbit=None, commands=commands, drain_ns=20_000 * MS)


BURSTS = "burst 1600 cburst 1600"
ROOT = f"10:1 rate 4mbit ceil 4mbit {BURSTS}"
CELLS = f"{BURSTS} overhead 18 linklayer atm"
TREES = [
    case(
        "htb_borrow",
        "HTB: two classes that share a root by their rates and borrow while the other is idle.",
        tree(
            "10:20",
            [
                ROOT,
                f"10:10 parent 10:1 rate 1mbit ceil 4mbit {BURSTS} leaf pfifo limit 50",
                f"10:20 parent 10:1 rate 3mbit ceil 4mbit {BURSTS} leaf pfifo limit 50",
            ],
            {EF: "10:10"},
        ),
        50,
        [
            stream(0, EF, [(500, 3), (500, 0.5), (600, 4), (400, 0)], burst=3),
            stream(1, BE, [(300, 0), (900, 5), (300, 2), (300, 6)], burst=2),
        ],
    ),
    case(
        "htb_prio",
        "HTB: three classes of three priorities, of which the middle one has a ceil.",
        tree(
            "10:30",
            [
                ROOT,
                "10:10 parent 10:1 rate 500kbit ceil 4mbit prio 0 burst 3000 cburst 6000 leaf pfifo limit 30",
                f"10:20 parent 10:1 rate 1mbit ceil 2mbit prio 1 {BURSTS} leaf pfifo limit 30",
                f"10:30 parent 10:1 rate 500kbit ceil 4mbit prio 2 {BURSTS} leaf pfifo limit 30",
            ],
            {EF: "10:10", AF41: "10:20"},
        ),
        51,
        [
            stream(0, EF, [(400, 1), (400, 0), (700, 3)], burst=2, sizes=MIXED),
            stream(1, AF41, [(200, 0), (900, 3), (400, 1)], burst=4),
            stream(2, BE, [(1500, 4)], sizes=MIXED, burst=3),
        ],
    ),
    case(
        "htb_tree",
        "HTB: classes within classes, quanta of their own, CoDel in one leaf.",
        tree(
            "10:22",
            [
                ROOT,
                f"10:2 parent 10:1 rate 2mbit ceil 3mbit {BURSTS}",
                f"10:3 parent 10:1 rate 2mbit ceil 4mbit {BURSTS}",
                f"10:11 parent 10:2 rate 1mbit ceil 3mbit quantum 3000 {BURSTS} leaf pfifo limit 40",
                f"10:12 parent 10:2 rate 1mbit ceil 2mbit quantum 1514 {BURSTS} leaf codel",
                f"10:21 parent 10:3 rate 200kbit ceil 4mbit quantum 1514 {BURSTS} leaf pfifo limit 9",
                f"10:22 parent 10:3 rate 1800kbit ceil 4mbit quantum 6000 {BURSTS} leaf pfifo limit 60",
            ],
            {EF: "10:11", AF41: "10:12", CS1: "10:21"},
        ),
        52,
        [
            stream(0, EF, [(300, 2), (500, 0.2), (600, 3), (200, 0)], burst=3),
            stream(1, AF41, [(200, 0), (1100, 2.5), (300, 0)], burst=2, sizes=MIXED),
            stream(2, CS1, [(900, 1.5), (700, 0.1)], burst=2),
            stream(3, BE, [(600, 1), (600, 4), (400, 0)], sizes=MIXED, burst=4),
        ],
    ),
    case(
        "htb_cells",
        "HTB: classes that count ATM cells and an overhead, packets in no class beside them.",
        tree(
            "10:99",
            [
                f"10:1 rate 3mbit ceil 3mbit {CELLS}",
                f"10:10 parent 10:1 rate 1mbit ceil 3mbit {BURSTS} overhead 18 mpu 106 linklayer atm leaf pfifo limit 40",
                f"10:20 parent 10:1 rate 2mbit ceil 3mbit {CELLS} leaf pfifo limit 40",
            ],
            {EF: "10:10", AF41: "10:20"},
        ),
        53,
        [
            stream(0, EF, [(900, 2), (300, 0.3)], burst=2, sizes=(64, 300, 1000)),
            stream(1, AF41, [(300, 0), (900, 3)], burst=3),
            stream(2, BE, [(1200, 0.2)], sizes=(64, 200)),
        ],
    ),
]
