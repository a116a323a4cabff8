#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Records what the queues of a Linux kernel do with the traces of ``cases.py``.

    record.py --kernel ./linux [--out tests/vectors] [NAME…]
    record.py --kernel ./linux --modules FOLDER [NAME…]
    record.py --kernel ./linux --tc FOLDER NAME…

Cases that the kernel is too old for are left out.
``--tc`` names the folder of a ``tc`` that knows their queues. With ``--modules``, the queues are
the kernel modules of Sojourn and the traces those of ``modules.py``; FOLDER holds the modules and
the plug-ins of ``tc``.

The kernel is a User-Mode Linux with CONFIG_UML_TIME_TRAVEL_SUPPORT (README.md lists the options);
a C compiler, ``ip`` and ``tc`` are taken from the host. Nothing needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases import CASES, CE, MTU, Case, Packet
from modules import MODULES
from trees import TREES

HERE = Path(__file__).resolve().parent
LEAF = "10:"
# Numbers in the row of an arrival; a departure has two.
ARRIVAL = 4
# How long before the trace a queue is made; in each further run 1 ms more.
QUEUE_AGE_NS = 3_000_000_000
ATTEMPTS = 5
# Random numbers and hashes of the modules; sch_predict has none.
SEEDS = dict.fromkeys(("sch_cocoa", "sch_afcd", "sch_floq"), "seed=1")
# What is printed of a run.
PRINTED = ("record", "counters", "text", "classes")
LINE_LENGTH = 110
# The clock of a kernel that travels in time has a grain of 256 ns, and a timer may be 500 ns late.
CLOCK_GRAIN_NS = 1_000


@dataclass(frozen=True)
class Machine:
    """What boots, and what it runs."""

    kernel: Path
    replay: Path
    # The folders of the modules of Sojourn, and of a ``tc`` other than the host's.
    modules: Path | None = None
    tc: Path | None = None

    def version(self) -> tuple[int, ...]:
        """Give the first two numbers of the version of the kernel."""
        words = [self.kernel, "--version"]
        text = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
        return tuple(map(int, text.split(".")[:2]))


def init_script(case: Case, machine: Machine, folder: Path, end_ns: int) -> str:
    """Set up client, router and server in a row; the queue is the router's."""
    load, replay, modules = "", machine.replay, machine.modules
    path = f"{machine.tc}:" if machine.tc else ""
    if case.module:
        load = (
            f"export TC_LIB_DIR={modules}/tc\n"
            f"{replay} load {modules}/{case.module}.ko '{SEEDS.get(case.module, '')}' || exit"
        )
    place = "root" if case.rate_mbit is None else "parent 1:1"
    queue = " && ".join(case.commands or [f"tc qdisc add dev r1 {place} handle {LEAF} {case.tc}"])
    if case.rate_mbit is not None:
        shaper = f"rate {case.rate_mbit}mbit burst 1 cburst 1 quantum {MTU}"
        queue = "\n".join(
            [
                "tc qdisc add dev r1 root handle 1: htb default 1",
                f"tc class add dev r1 parent 1: classid 1:1 htb {shaper}",
                f"{replay} now >made",
                queue,
            ]
        )
    runs = "\n".join(run_script(replay, queue, end_ns, run) for run in range(case.runs))
    return f"""#!/bin/sh
export PATH={path}/usr/sbin:/usr/bin:/sbin:/bin
# This kernel does not keep the upper halves of vector registers, on which printf of glibc relies.
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX2_Usable
mount -t proc proc /proc; mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run; mkdir -p /run/netns
cd {folder}; exec >log 2>&1
for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do test -e $file && echo 1 >$file; done
{load}
ip netns add c; ip netns add s
ip link add c0 netns c address 02:00:00:00:01:02 type veth peer name r0 address 02:00:00:00:01:01
ip link add r1 address 02:00:00:00:02:01 type veth peer name s0 netns s address 02:00:00:00:02:02
ip -n c link set c0 up; ip -n s link set s0 up
ip addr add 10.0.1.1/24 dev r0; ip addr add 10.0.2.1/24 dev r1
ip link set lo up; ip link set r0 up; ip link set r1 up
ip route add 10.0.3.0/24 via 10.0.2.2
ip neigh replace 10.0.2.2 lladdr 02:00:00:00:02:02 dev r1 nud permanent
echo 1 >/proc/sys/net/ipv4/ip_forward
uname -r >kernel
{runs}
echo complete >status
{replay} off
"""


def run_script(replay: Path, queue: str, end_ns: int, run: int) -> str:
    """Send the trace once, through a queue made anew."""
    # A queue with a timer of its own is not to meet the trace in the same phase each time.
    later_ns = run * 1_000_000
    return f"""
ORIGIN=$({replay} origin)
{replay} until $ORIGIN -{QUEUE_AGE_NS}
{queue} || exit
tc -d qdisc show dev r1 >setup
ORIGIN=$((ORIGIN + {later_ns}))
echo $ORIGIN >origin
{replay} capture record.{run} $ORIGIN {end_ns} r0 r1 &
CAPTURE=$!
ip netns exec c {replay} send trace $ORIGIN c0 || exit
wait $CAPTURE || exit
tc -j -s qdisc show dev r1 >counters.{run}
tc -s qdisc show dev r1 >text.{run}
tc -s class show dev r1 >classes.{run}
tc qdisc del dev r1 root
"""


def boot(machine: Machine, case: Case) -> dict[str, str]:
    """Run one case in a machine of its own; give the files that it left."""
    folder = Path(tempfile.mkdtemp(prefix="vectors-"))
    lines = (f"{p.t_ns} {p.flow} {p.size} {p.tos} {p.kind}\n" for p in case.packets)
    (folder / "trace").write_text("".join(lines))
    end_ns = case.packets[-1].t_ns + case.drain_ns
    init = folder / "init.sh"
    init.write_text(init_script(case, machine, folder, end_ns))
    init.chmod(0o755)
    start(machine.kernel, folder, init)
    if not (folder / "status").exists():
        log = (folder / "log").read_text() if (folder / "log").exists() else ""
        sys.exit(f"{case.name}: the machine stopped early, see {folder}\n{log}")
    files = {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}
    shutil.rmtree(folder)
    return files


def start(kernel: Path, folder: Path, init: Path, seconds: int = 600) -> None:
    """Start a machine with the files of the host; the script ``init`` is its first process."""
    command = [
        str(kernel),
        "mem=1G",
        "rootfstype=hostfs",
        "root=/dev/root",
        "rootflags=/",
        "rw",
        "init=/bin/sh",
        "con=null",
        "con0=fd:0,fd:1",
        "quiet",
        f"uml_dir={folder}",
        f"umid={folder.name}",
        "time-travel=inf-cpu",
        # The kernel of Sojourn cannot start scripts by themselves.
        "--",
        str(init),
    ]
    environment = os.environ | {"TMPDIR": "/dev/shm", "HOME": str(folder)}
    with (folder / "console").open("w") as console:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            timeout=seconds,
            check=False,
        )


def is_ce(tos: int) -> bool:
    """Tell whether a type-of-service byte says Congestion Experienced."""
    return tos & CE == CE


@dataclass
class Run:
    """What happened to one trace."""

    events: list[list[int]]
    drops: list[int]
    marks: list[int]
    counters: dict[str, Any]
    # What each packet that left had waited, in order of departure.
    delays_ns: list[int]

    def decisions(self) -> tuple[list[int], ...]:
        """Give which packets left in which order, were dropped and were marked."""
        left = [event[1] for event in self.events if len(event) != ARRIVAL]
        return left, self.drops, self.marks


def collect(case: Case, printed: dict[str, str]) -> Run:
    """Read what happened; refuse what is not complete."""
    events: list[list[int]] = []
    arrivals: list[list[int]] = []
    left: dict[int, int] = {}
    delays_ns: list[int] = []
    for line in printed["record"].splitlines():
        sign, t_ns, number, tos = line.split()
        if sign == "+":
            if int(number) != len(arrivals):
                sys.exit(f"{case.name}: packet {number} came out of order")
            packet: Packet = case.packets[int(number)]
            arrivals.append([int(t_ns), packet.flow, packet.size, packet.tos])
            events.append(arrivals[-1])
        else:
            left[int(number)] = int(tos)
            delays_ns.append(int(t_ns) - arrivals[int(number)][0])
            events.append([int(t_ns), int(number)])
    if len(arrivals) != len(case.packets):
        sys.exit(f"{case.name}: {len(arrivals)} of {len(case.packets)} packets arrived")
    drops = [number for number in range(len(arrivals)) if number not in left]
    marks = [n for n, tos in sorted(left.items()) if is_ce(tos) and not is_ce(arrivals[n][3])]
    if case.tc.startswith("htb"):
        counters = tree_counters(case, printed["text"], printed["classes"])
    else:
        leaf = next(q for q in json.loads(printed["counters"]) if q.get("handle") == LEAF)
        counters = leaf_counters(leaf) | class_counters(case, printed["classes"])
    if counters["drops"] != len(drops) or counters["packets"] != len(left):
        sys.exit(f"{case.name}: the kernel counted otherwise: {counters}, {len(drops)} drops")
    if counters["qlen"]:
        sys.exit(f"{case.name}: {counters['qlen']} packets are still in the queue")
    check_link(case, events, arrivals)
    return Run(events, drops, marks, counters, delays_ns)


def measure(machine: Machine, case: Case) -> tuple[dict[str, str], list[Run]]:
    """Boot the kernel and let the case run; if once, in several kernels until two agree.

    Two kernels hash the flows with other keys: if they agree, no two flows share a queue. Their
    clocks may differ by a grain.
    """
    before: list[Run] = []
    for _ in range(ATTEMPTS):
        files = boot(machine, case)
        runs = [
            collect(case, {name: files[f"{name}.{run}"] for name in PRINTED})
            for run in range(case.runs)
        ]
        if case.runs > 1 or any(run.decisions() == runs[0].decisions() for run in before):
            return files, runs
        before += runs
    sys.exit(f"{case.name}: of {ATTEMPTS} runs no two agree")


def describe(case: Case, runs: list[Run]) -> dict[str, object]:
    """Give the part of a vector that says what happened: event by event, or run by run."""
    if case.runs == 1:
        (run,) = runs
        kinds = [packet.kind for packet in case.packets]
        return {
            **({"kinds": kinds} if any(kinds) else {}),
            "counters": run.counters,
            "drops": run.drops,
            "marks": run.marks,
            "events": run.events,
        }
    return {
        "arrivals": [[p.t_ns, p.flow, p.size, p.tos] for p in case.packets],
        "runs": [
            {"delay_ns": summary(run.delays_ns), "drops": run.drops, "marks": run.marks}
            for run in runs
        ],
    }


def summary(values: list[int]) -> dict[str, int]:
    """Give mean and 95th percentile: of n values in order, number ``n * 95 // 100``, from 0."""
    ranked = sorted(values)
    return {"mean": sum(values) // len(values), "p95": ranked[len(values) * 95 // 100]}


def leaf_counters(leaf: dict[str, int]) -> dict[str, int]:
    """Give the counters of ``tc -j -s``, without what says how the queue was set up."""
    skipped = {"kind", "handle", "parent", "options", "dev", "root", "refcnt"}
    return {key: value for key, value in leaf.items() if key not in skipped}


def setup(case: Case, text: str) -> str:
    """Give the line of ``tc -d qdisc show`` about the queue; of a tree, the last one."""
    lines = [line.strip() for line in text.strip().splitlines()]
    is_tree = case.tc.startswith("htb")
    return [line for line in lines if is_tree or f" {LEAF} " in line][-1]


def class_counters(case: Case, classes: str) -> dict[str, list[dict[str, int]]]:
    """Give the counters of the bands of ``prio`` or the classes of ``drr``, in their order."""
    kind = case.tc.split()[0]
    if kind not in CLASSES:
        return {}
    blocks = classes.split(f"class {kind} {LEAF}")[1:]
    blocks.sort(key=lambda block: int(block.split()[0], 16))
    return {CLASSES[kind]: [numbers(SENT, block, SENT_NAMES) for block in blocks]}


def tree_counters(case: Case, text: str, classes: str) -> dict[str, Any]:
    """Give the counters of a tree and of its classes, in the order in which they were made.

    The JSON that ``tc`` 6.1 prints of ``htb`` is not valid.
    """
    whole = text.partition(f"qdisc htb {LEAF}")[2].partition("\nqdisc ")[0]
    direct = numbers(r"direct_packets_stat (\d+)", whole, ("direct_packets_stat",))
    found = {
        block.split()[0]: numbers(SENT, block, SENT_NAMES)
        | numbers(
            r"lended: (\d+) borrowed: (\d+) giants: (\d+)", block, ("lended", "borrowed", "giants")
        )
        | numbers(r"tokens: (-?\d+) ctokens: (-?\d+)", block, ("tokens", "ctokens"))
        for block in classes.split("class htb ")[1:]
    }
    made = (words.split() for words in case.commands if " class add " in words)
    names = [words[words.index("classid") + 1] for words in made]
    return {**direct, **numbers(SENT, whole, SENT_NAMES), "classes": [found[n] for n in names]}


# What the statistics of Sojourn call the classes of a queue.
CLASSES = {"prio": "bands", "drr": "classes"}

# `tc` 6.1 does not always print the packets of the backlog of a class; a tree is empty at the end.
SENT = r"Sent (\d+) bytes (\d+) pkt \(dropped (\d+), overlimits (\d+) requeues \d+\)\s+backlog (0)b"
SENT_NAMES = ("bytes", "packets", "drops", "overlimits", "qlen")


def numbers(pattern: str, text: str, names: tuple[str, ...]) -> dict[str, int]:
    """Give the numbers of a pattern by name."""
    found = re.search(pattern, text)
    if found is None:
        sys.exit(f"no {', '.join(names)} in: {text}")
    return dict(zip(names, map(int, found.groups()), strict=True))


def check_link(case: Case, events: list[list[int]], arrivals: list[list[int]]) -> None:
    """Check that a packet leaves when it comes or when the one before is out."""
    if case.rate_mbit is None:
        return
    # Since the bucket holds a byte, a packet after an idle time counts as one byte shorter.
    bucket_ns = 8_000 // case.rate_mbit
    free = came = -MTU * bucket_ns
    for event in events:
        if len(event) == ARRIVAL:
            came = event[0]
            continue
        t_ns, number = event
        early_ns = free - t_ns
        late_ns = t_ns - max(free, came)
        if early_ns > bucket_ns + CLOCK_GRAIN_NS or late_ns > CLOCK_GRAIN_NS:
            sys.exit(f"{case.name}: packet {number} left at {t_ns}, the link was free at {free}")
        free = t_ns + arrivals[number][2] * 8_000 // case.rate_mbit


def write(path: Path, vector: dict[str, object]) -> None:
    """Write one key a line, long lists as lines of bounded length."""
    parts = []
    for key, value in vector.items():
        text = json.dumps(value, separators=(",", ":"))
        if isinstance(value, list) and value:
            lines, line = [], ""
            for item in value:
                text = json.dumps(item, separators=(",", ":"))
                if len(line) + len(text) > LINE_LENGTH:
                    lines.append(line)
                    line = ""
                line += text + ","
            lines.append(line.rstrip(","))
            text = "[\n" + "\n".join(lines) + "\n]"
        parts.append(f"{json.dumps(key)}: {text}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main() -> None:
    """Record the cases that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kernel", required=True, type=Path, help="a User-Mode Linux")
    parser.add_argument("--out", type=Path, help="where the vectors go, instead of tests/vectors")
    parser.add_argument("--modules", type=Path, help="where the modules are; record their cases")
    parser.add_argument("--tc", type=Path, help="the folder of a tc, instead of the host's")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all if none is given")
    args = parser.parse_args()
    modules = args.modules and args.modules.resolve()
    cases = MODULES if modules else [*CASES, *TREES]
    out = args.out or (HERE.parent / "modules" if modules else HERE.parent)
    unknown = set(args.names) - {case.name for case in cases}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as build:
        replay = Path(build) / "replay"
        subprocess.run(["cc", "-O2", "-static", "-o", replay, HERE / "replay.c"], check=True)
        tc = args.tc and args.tc.resolve()
        machine = Machine(args.kernel.resolve(), replay, modules, tc)
        version = machine.version()
        for case in cases:
            if args.names and case.name not in args.names:
                continue
            if case.since > version:
                print(f"{case.name}: needs Linux {'.'.join(map(str, case.since))}")
                continue
            files, runs = measure(machine, case)
            vector = {
                "schema": "sojourn-qdisc-vector/1",
                "name": case.name,
                "about": case.about,
                "qdisc": case.tc,
                **({"commands": list(case.commands)} if case.commands else {}),
                "setup": setup(case, files["setup"]),
                "kernel": "Linux " + files["kernel"].strip(),
                "mtu": MTU,
                "rate_bps": case.rate_mbit and case.rate_mbit * 1_000_000,
                **({"made_ns": int(files["made"]) - int(files["origin"])} if case.periodic else {}),
                **describe(case, runs),
            }
            write(out / f"{case.name}.json", vector)
            drops, marks = (len(runs[0].drops), len(runs[0].marks))
            print(
                f"{case.name:20} {len(case.packets)} arrivals, {drops} drops, {marks} marks",
                flush=True,
            )


if __name__ == "__main__":
    main()
