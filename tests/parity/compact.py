"""Packs the raw results of one kernel into its file in data/.

usage: compact.py DIR      (DIR holds <run>_rep<n>.json, one file per repetition)

One line per scenario, so that a changed measurement is a changed line. Scenarios that the file has
and DIR lacks are kept. Metrics that can be derived from the series of the same run are recomputed
and must agree, so that no metric is misread.
"""

import json
import math
import random
import re
import statistics
import sys
from pathlib import Path
from typing import Any

SUITES = ("C1", "L1", "L4", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "S", "V", "W")
SERIES = ("cwnd", "srtt_ms")
"""Diagnostic series, which are kept of the first repetition: nothing reads the others."""
DCTCP = "net.ipv4.tcp_congestion_control=dctcp"
"""What the listener runs, which DCTCP needs at both ends."""
NO_OFFSET = "net.ipv4.tcp_timestamps=2"
"""Timestamps without an offset per connection, with which TCP-LP computes delays."""
STEP = 0.5
"""Spacing of the diagnostic series, in seconds."""


def decimated(flow: dict[str, Any], key: str) -> dict[str, Any]:
    """Every STEP seconds of a series, from its first sample on."""
    start, step = flow["cwnd_t0_dt"]
    every = round(STEP / step)
    return {
        "from": start,
        "values": [round(value) if key == "cwnd" else value for value in flow[key][::every]],
    }


def sent_from(stream: dict[str, Any], stop: float) -> float:
    """Return when a stream of datagrams starts: the results have its length but not its start."""
    lasted: float = stream["sent"] * stream["size"] * 8 / (stream["rate_mbps"] * 1e6)
    return round(stop - lasted, 1)


def agrees(got: float, want: float, slack: float, what: str) -> None:
    """Raise an error if a recomputed metric is not the recorded one."""
    if not math.isclose(got, want, abs_tol=slack):
        msg = f"{what}: recomputed {got}, recorded {want}"
        raise ValueError(msg)


def check(run: dict[str, Any]) -> None:
    """Recomputes what the file's own series allow."""
    params, name = run["params"], f"{run['name']} rep {run['rep']}"
    warm, end = params["warm"], params["duration"]
    series = run["ping_series"]
    sent = [series["t0"] + i * series["dt"] for i in range(len(series["rtt_ms"]))]
    window = [r for t, r in zip(sent, series["rtt_ms"], strict=True) if warm <= t < end]
    # A series cut to a window of interest cannot give the mean of the whole.
    if len(window) == run["ping_rtt_ms"]["n"]:
        replies = [r for r in window if r is not None]
        # The first send time is kept to 1 ms, so that one ping at an edge may be misplaced.
        recorded = run["ping_rtt_ms"]["mean"]
        agrees(statistics.mean(replies), recorded, 0.06 + 0.002 * recorded, f"{name}: ping mean")
        agrees(
            1 - len(replies) / len(window), run["ping_rtt_ms"]["loss"], 1e-3, f"{name}: ping loss"
        )
    for n, flow in enumerate(run["flows"]):
        first, last = max(warm, round(flow["start"], 1)), min(end, flow["stop"])
        if "goodput_mbps" in flow and float(first).is_integer() and float(last).is_integer():
            mean = statistics.mean(flow["thr_1s"][int(first) : int(last)])
            agrees(mean, flow["goodput_mbps"], 0.002, f"{name}: goodput of flow {n}")
    for direction in ("up", "down"):
        goodput = [
            f["goodput_mbps"] for f in run["flows"] if f["dir"] == direction and "goodput_mbps" in f
        ]
        if goodput:
            agrees(
                sum(goodput), run[f"total_{direction}_mbps"], 0.001, f"{name}: total {direction}"
            )
    for direction, queue in run["qdisc_stats"].items():
        first, last = counted(run)
        step, cumulative = queue["sample_dt"], queue["dropped_cum"]
        steady = cumulative[round(last / step)] - cumulative[round(first / step)]
        agrees(steady, queue["dropped_steady"], 0, f"{name}: drops {direction}")


def counted(run: dict[str, Any]) -> tuple[float, float]:
    """When the counter readings behind `dropped_steady` were taken."""
    queue = run["qdisc_stats"]["up"]
    step = queue["sample_dt"]
    return math.ceil(run["params"]["warm"] / step) * step, (len(queue["dropped_cum"]) - 1) * step


def marks(statistics: str) -> int:
    """Packets marked, for whatever reason, in what `tc -s` said at the end."""
    return sum(map(int, re.findall(r"(?:ecn_mark|ce_mark|marked) (\d+)", statistics)))


def ping_start(run: dict[str, Any]) -> float:
    """Return when the first ping was sent.

    The results have it to 1 ms. The harness drew it after the starts of the flows, from a generator
    that the name and number of the run seed; `red_asis` ran under the name of `ared`.
    """
    name, interval = run["name"], run["params"]["ping"]
    seeded = random.Random(f"{name.replace('red_asis', 'ared')}/{run['rep']}")  # noqa: S311
    for n, flow in enumerate(run["flows"]):
        start = math.floor(flow["start"]) + seeded.uniform(0, 0.05)
        agrees(start, flow["start"], 1e-4, f"{name} rep {run['rep']}: start of flow {n}")
    first = round(seeded.uniform(0, interval), 4)
    # A series cut to a window of interest begins whole intervals later.
    apart = math.remainder(run["ping_series"]["t0"] - first, interval)
    agrees(apart, 0, 1e-3, f"{name} rep {run['rep']}: first ping")
    return first


def repetition(run: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of one run."""
    out = {
        "rep": run["rep"],
        "starts": [f["start"] for f in run["flows"]],
        "ping_start": ping_start(run),
    }
    long_flows = [f for f in run["flows"] if "bytes" not in f]
    if long_flows:
        out["goodput"] = [f["goodput_mbps"] for f in long_flows]
        for key in ("total_up_mbps", "total_down_mbps", "jain_up", "jain_down"):
            if key in run:
                out[key] = run[key]
        out["srtt_mean_ms"] = [f["srtt_mean_ms"] for f in long_flows]
        out["srtt_p95_ms"] = [f["srtt_p95_ms"] for f in long_flows]
        out["cwnd_mean"] = [f["cwnd_mean"] for f in long_flows]
        if run["rep"] == 1:
            for key in SERIES:
                out[key] = [decimated(f, key) for f in run["flows"]]
    if len(long_flows) < len(run["flows"]):
        out["fct_s"] = [f["fct_s"] for f in run["flows"] if "bytes" in f]
    ping = run["ping_rtt_ms"]
    out["ping"] = {key: ping[key] for key in ("n", "loss", "mean", "median", "p95", "max")}
    if "ping_windows" in run:
        out["windows"] = {key: value["mean"] for key, value in run["ping_windows"].items()}
    out["drops"] = {
        direction: queue["dropped_steady"] for direction, queue in run["qdisc_stats"].items()
    }
    # A tc older than the queue prints no counters of it.
    counters = {
        direction: queue["raw_end"]
        for direction, queue in run["qdisc_stats"].items()
        if "[Unknown qdisc" not in queue["raw_end"]
    }
    if run["params"]["ecn"] and counters:
        out["marks"] = {direction: marks(text) for direction, text in counters.items()}
    out["udp"] = [
        {
            "goodput_mbps": u["goodput_mbps"],
            "loss": u["loss"],
            "owd_mean_ms": u["owd_ms"]["mean"],
            "owd_p95_ms": u["owd_ms"]["p95"],
        }
        for u in run.get("udp", [])
    ]
    return out


def scenario(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is kept of a scenario: its parameters and its repetitions."""
    first = runs[0]
    kept_apart = ("ecn", "sysctl", "loss")
    params = {key: value for key, value in first["params"].items() if key not in kept_apart}
    if any(run["params"] != first["params"] for run in runs):
        msg = f"{first['name']}: parameters differ between repetitions"
        raise ValueError(msg)
    ecn = bool(first["params"]["ecn"])
    loss = first["params"].get("loss", 0.0)
    if first["params"]["sysctl"] not in ([], [DCTCP], [NO_OFFSET]):
        msg = f"{first['name']}: settings this file has no place for"
        raise ValueError(msg)
    bounds = {
        name: [float(bound) for bound in re.findall(r"_(\d+)", name)]
        for name in first.get("ping_windows", {})
    }
    drops_from, drops_to = counted(first)
    return {
        "name": first["name"],
        "suite": first["suite"],
        "label": first["label"],
        **params,
        **({"ecn": True} if ecn else {}),
        **({"loss": loss} if loss else {}),
        "ping_stop": 16 if first["suite"] == "R6" else params["duration"],
        "drops_from": drops_from,
        "drops_to": drops_to,
        "windows": bounds,
        "flows": [
            {
                "dir": f["dir"],
                "cc": f["cc"],
                "rtt": f["rtt"],
                "stop": f["stop"],
                "bytes": f.get("bytes"),
            }
            for f in first["flows"]
        ],
        "udp": [
            {
                "rate_mbps": u["rate_mbps"],
                "size": u["size"],
                "start": sent_from(u, params["duration"]),
                "stop": params["duration"],
            }
            for u in first.get("udp", [])
        ],
        "reps": [repetition(run) for run in runs],
    }


def version(runs: list[dict[str, Any]]) -> str:
    """Return the one kernel that all runs were measured on, without the patches it carries."""
    versions: set[str] = {run["kernel"].split()[0] for run in runs}
    if len(versions) != 1:
        msg = f"expected the runs of one kernel, not of {sorted(versions)}"
        raise ValueError(msg)
    return versions.pop()


def kept(target: Path) -> dict[str, dict[str, Any]]:
    """Return the scenarios of the file that exists, by name."""
    if not target.exists():
        return {}
    return {s["name"]: s for s in json.loads(target.read_text())["scenarios"]}


def main(folder: Path) -> None:
    """Pack all files of a folder."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in folder.glob("*.json"):
        run = json.loads(path.read_text())
        if run["suite"] in SUITES:
            check(run)
            found.setdefault(run["name"], []).append(run)
    kernel = version([run for runs in found.values() for run in runs])
    short = ".".join(kernel.split(".")[:2])
    target = Path(__file__).parent / "data" / f"linux-{short}.json"
    scenarios = kept(target)
    for name, runs in found.items():
        scenarios[name] = scenario(sorted(runs, key=lambda run: int(run["rep"])))
    lines = [json.dumps(s, separators=(",", ":")) for _, s in sorted(scenarios.items())]
    target.write_text(
        '{{"kernel":"{}","series_step_s":{},"scenarios":[\n{}\n]}}\n'.format(
            kernel, STEP, ",\n".join(lines)
        )
    )
    print(
        f"{target.name}: {len(scenarios)} scenarios, "
        f"{sum(len(s['reps']) for s in scenarios.values())} runs, "
        f"{target.stat().st_size / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
