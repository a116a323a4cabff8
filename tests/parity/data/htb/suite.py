"""Suite H: trees of HTB on a Linux kernel, as scenarios with the values of every run.

usage: suite.py run      measure what is missing, one file per run
       suite.py pack     write ../stacks-htb.json

It drives `truth.py`, the harness that measured the other suites, which takes its kernel, its
traffic generator and its folders from the environment (TRUTH_KERNEL, TRUTH_TG, TRUTH_RAW,
TRUTH_RES); TRUTH names its folder. Packets are classified by port in the kernel and by the block of
traffic in Sojourn, which is the same.
"""

import json
import os
import re
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ["TRUTH"])
import truth

RTT_MS, DURATION, WARM, SAMPLE = 40, 30, 8, 2
REPETITIONS = (1, 2, 3)
HERE = Path(__file__).parent
RUNS = Path(truth.RES)
ROOT = "10:1 rate 10mbit ceil 10mbit burst 15k cburst 15k"


def leaf(name: str, rates: str, queue: str, parent: str = "10:1") -> str:
    """Return a class with the buckets of this suite."""
    return f"{name} parent {parent} {rates} burst 15k cburst 15k leaf {queue}"


# The classes, the class of each block, and the blocks: TCP flows of a control, or UDP in Mbit/s.
Scenario = tuple[list[str], dict[str, str], dict[str, tuple[str, int] | float]]


def scenarios() -> dict[str, Scenario]:
    """Return the suite."""
    found: dict[str, Scenario] = {}
    for queue, text in (("fq", "fq_codel"), ("fifo", "pfifo limit 100")):
        found[f"H_borrow_{queue}"] = (
            [
                ROOT,
                leaf("10:10", "rate 2mbit ceil 10mbit", text),
                leaf("10:20", "rate 8mbit ceil 10mbit", text),
            ],
            {"a": "10:10", "b": "10:20", "ping": "10:10"},
            {"a": ("cubic", 1), "b": ("cubic", 1)},
        )
        found[f"H_prio_{queue}"] = (
            [
                ROOT,
                leaf("10:10", "rate 1mbit ceil 10mbit prio 0", text),
                leaf("10:20", "rate 1mbit ceil 10mbit prio 1", text),
                leaf("10:30", "rate 2mbit ceil 10mbit prio 2", text),
            ],
            {"u": "10:10", "a": "10:20", "b": "10:30", "ping": "10:10"},
            {"u": 2.0, "a": ("cubic", 1), "b": ("cubic", 2)},
        )
        found[f"H_ceil_{queue}"] = (
            [
                ROOT,
                leaf("10:10", "rate 2mbit ceil 4mbit", text),
                leaf("10:20", "rate 2mbit ceil 5mbit", text),
            ],
            {"a": "10:10", "b": "10:20", "ping": "10:20"},
            {"a": ("cubic", 2), "b": ("reno", 1)},
        )
        found[f"H_over_{queue}"] = (
            [
                ROOT,
                leaf("10:10", "rate 3mbit ceil 10mbit", text),
                leaf("10:20", "rate 7mbit ceil 10mbit", text),
            ],
            {"u": "10:10", "a": "10:20", "ping": "10:20"},
            {"u": 8.0, "a": ("cubic", 2)},
        )
        found[f"H_tree_{queue}"] = (
            [
                ROOT,
                "10:2 parent 10:1 rate 5mbit ceil 8mbit burst 15k cburst 15k",
                leaf("10:11", "rate 1mbit ceil 8mbit", text, "10:2"),
                leaf("10:12", "rate 4mbit ceil 8mbit", text, "10:2"),
                leaf("10:21", "rate 5mbit ceil 10mbit", text),
            ],
            {"a": "10:11", "b": "10:12", "c": "10:21", "ping": "10:11"},
            {"a": ("cubic", 1), "b": ("cubic", 1), "c": ("cubic", 2)},
        )
        found[f"H_sqm_{queue}"] = (
            [
                ROOT,
                leaf("10:11", "rate 128kbit ceil 3333kbit prio 1", text),
                leaf("10:12", "rate 1667kbit ceil 9984kbit prio 2", text),
                leaf("10:13", "rate 1667kbit ceil 9984kbit prio 3", text),
            ],
            {"u": "10:11", "a": "10:12", "b": "10:13", "ping": "10:11"},
            {"u": 0.1, "a": ("cubic", 4), "b": ("cubic", 1)},
        )
    return found


def words(text: str) -> tuple[str, str, str, str]:
    """Return name, parent, rates and queue of a class."""
    own, _, queue = text.partition(" leaf ")
    name, *rest = own.split()
    pairs = dict(zip(rest[::2], rest[1::2], strict=True))
    parent = pairs.pop("parent", "")
    return name, parent, " ".join(f"{key} {value}" for key, value in pairs.items()), queue


def commands(scenario: Scenario, flows: list[dict[str, Any]], datagrams: list[str]) -> list[str]:
    """Return what makes the tree, for ``tc -batch``."""
    classes, targets, _ = scenario
    lines = ["qdisc add dev r1 root handle 10: htb"]
    for place, text in enumerate(classes):
        name, parent, rates, queue = words(text)
        lines.append(f"class add dev r1 parent {parent or '10:'} classid {name} htb {rates}")
        if queue:
            lines.append(f"qdisc add dev r1 parent {name} handle {100 + place}: {queue}")
    ports = [(flow["block"], 5001 + n) for n, flow in enumerate(flows)]
    ports += [(block, 7001 + n) for n, block in enumerate(datagrams)]
    matches = [(block, f"match ip dport {port} 0xffff") for block, port in ports]
    matches.append(("ping", "match ip protocol 1 0xff"))
    for prio, (block, match) in enumerate(matches, 1):
        lines.append(
            f"filter add dev r1 parent 10: protocol ip prio {prio} "
            f"u32 {match} flowid {targets[block]}"
        )
    return lines


def measure(name: str, scenario: Scenario, repetition: int) -> dict[str, Any]:
    """Run a scenario on the kernel."""
    _, _, blocks = scenario
    flows, datagrams, rates = [], [], []
    for block, what in blocks.items():
        if isinstance(what, tuple):
            control, count = what
            flows += [
                truth.flow(cc=control, stop=DURATION) | {"block": block} for _ in range(count)
            ]
        else:
            datagrams.append(block)
            rates.append({"start": 0.5, "stop": DURATION, "rate": what, "size": 1000})
    lines = commands(scenario, flows, datagrams)
    tree = "\n".join(lines)
    script = truth.init_script

    def with_tree(case: dict[str, Any], folder: str) -> str:
        text = script(case, folder)
        first = text.index("qdisc add dev r1 root handle 1: htb")
        end = text.index("EOB", first)
        # This kernel does not keep the upper halves of vector registers; printf relies on them.
        plain = "export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX2_Usable\n"
        text = text[:first] + tree + "\n" + text[end:]
        return text.replace("mount -t proc", plain + "mount -t proc", 1)

    truth.init_script = with_tree
    try:
        run = truth.run(
            {
                "name": name,
                "suite": "H",
                "rep": repetition,
                "rtt": RTT_MS,
                "flows": flows,
                "udp": rates,
                "duration": DURATION,
                "warm": WARM,
                "sample": SAMPLE,
                "keep": True,
            }
        )
    finally:
        truth.init_script = script
    if "error" in run:
        sys.exit(f"{name}: {run}")
    folder = max(
        Path(truth.RAW).glob(f"{name}_{repetition}_*"), key=lambda path: path.stat().st_mtime
    )
    run["leaf_drops"] = leaf_drops((folder / "tc_series").read_text())
    run["blocks"] = [flow["block"] for flow in flows]
    run["datagrams"] = datagrams
    return run


def leaf_drops(series: str) -> dict[str, int]:
    """Return the drops of the queue of each class from the warm-up to the end."""
    readings = []
    for block in re.split(r"(?m)^@ ", series)[1:]:
        found = re.findall(
            r"qdisc \S+ \S+ dev r1 parent (10:\S+) [^\n]*\n"
            r"\s*Sent \d+ bytes \d+ pkt \(dropped (\d+)",
            block,
        )
        readings.append({name: int(drops) for name, drops in found})
    first = readings[WARM // SAMPLE]
    return {name: drops - first[name] for name, drops in readings[-1].items()}


def entry(name: str, scenario: Scenario, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a scenario of Sojourn with the values of the kernel's runs."""
    classes, targets, blocks = scenario
    texts = []
    for text in classes:
        own, parent, rates, queue = words(text)
        above = f" parent {parent}" if parent else ""
        texts.append(f"(name {own}{above} {rates}" + (f" leaf {queue})" if queue else ")"))
    filters = " ".join(f"(to {target} traffic {block})" for block, target in targets.items())
    traffic: list[dict[str, Any]] = []
    for block, what in blocks.items():
        common = {"direction": "up", "name": block}
        if isinstance(what, tuple):
            control, count = what
            traffic.append(
                {"type": "tcp", "cc": control, "count": count, "start_jitter": "50ms", **common}
            )
        else:
            rate = f"{what * 1e6:.0f}bit"
            traffic.append(
                {
                    "type": "udp",
                    "rate": rate,
                    "payload": "1000b",
                    "start": "500ms",
                    "phase": "0s",
                    **common,
                }
            )
    ping = {"type": "ping", "phase": "0s", "start_jitter": "100ms", "interval": "100ms"}
    traffic.append({**ping, "direction": "up", "name": "ping"})
    qdisc = f"htb classes {' '.join(texts)} filters {filters}"
    document = {
        "name": name,
        "duration": f"{DURATION}s",
        "warmup": f"{WARM}s",
        "rtt": f"{RTT_MS}ms",
        "replications": 10,
        "links": {"up": {"qdisc": qdisc, "rate": "100gbit"}, "down": "unlimited"},
        "traffic": traffic,
    }
    values: dict[str, list[float]] = {}

    def add(metric: str, value: float) -> None:
        values.setdefault(metric, []).append(round(value, 4))

    for run in runs:
        tcp = list(zip(run["blocks"], run["flows"], strict=True))
        for block in dict.fromkeys(run["blocks"]):
            own = [flow for of, flow in tcp if of == block]
            add(f"rate {block}", sum(flow["goodput_mbps"] for flow in own))
            add(f"srtt {block}", statistics.mean(flow["srtt_mean_ms"] for flow in own))
        for block, stream in zip(run["datagrams"], run.get("udp", []), strict=True):
            add(f"rate {block}", stream["goodput_mbps"])
        add("ping", run["ping_rtt_ms"]["mean"])
        add("ping95", run["ping_rtt_ms"]["p95"])
        for target, drops in run["leaf_drops"].items():
            add(f"leaf_drops {target}", drops)
    return {"scenario": document, "linux": values}


def main() -> None:
    """Measure or pack."""
    if sys.argv[1:] == ["run"]:
        RUNS.mkdir(parents=True, exist_ok=True)
        for repetition in REPETITIONS:
            for name, scenario in scenarios().items():
                path = RUNS / f"{name}_rep{repetition}.json"
                if not path.exists():
                    run = measure(name, scenario, repetition)
                    path.write_text(json.dumps(run))
                    print(name, repetition, run["leaf_drops"], run["ping_rtt_ms"], flush=True)
    elif sys.argv[1:] == ["pack"]:
        entries, kernel = [], ""
        for name, scenario in scenarios().items():
            paths = sorted(RUNS.glob(f"{name}_rep*.json"))
            runs = [json.loads(path.read_text()) for path in paths]
            if runs:
                kernel = runs[0]["kernel"]
                entries.append(json.dumps(entry(name, scenario, runs), separators=(",", ":")))
        head = json.dumps({"kernel": kernel, "stack": "HTB"}, separators=(",", ":"))
        body = ",\n".join(entries)
        (HERE.parent / "stacks-htb.json").write_text(f'{head[:-1]},"scenarios":[\n{body}\n]}}\n')
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
