"""What Dask costs: the same sweep on threads and on the workers of a cluster.

Runs of 30 s at 100 Mbit/s with CoDel, on four threads and on four workers of one thread. Both take
turns, each with its own seed, so that no run is stored before. Exits with status 1 if the cluster
takes too much longer.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from subprocess import DEVNULL, run

import distributed

TEXT = """
name = "cluster"
duration = "{duration}"
warmup = "{warmup}"
rtt = "20ms"
replications = 10
links.up = {{ rate = "100mbit", qdisc = "codel" }}
links.down = {{ rate = "100mbit", qdisc = "codel" }}
traffic = [
    {{ name = "bulk", type = "tcp", direction = "up" }},
    {{ name = "ping", type = "ping", direction = "up", interval = "100ms" }},
]
"""
REPLICATIONS = 10
COMMAND = [sys.executable, "-m", "sojourn"]
WORKERS = 4
# Bound of the elapsed time on the cluster, relative to that on threads.
MAX_RATIO = 1.1


def elapsed_s(words: list[str], store: Path) -> float:
    """Run a command to its end, and return the elapsed time in seconds."""
    start = time.perf_counter()
    environment = os.environ | {"SOJOURN_STORE": f"{store}"}
    run(words, check=True, env=environment, stdout=DEVNULL, stderr=DEVNULL)
    return time.perf_counter() - start


def main() -> int:
    """Print the ratio; fail beyond the bound."""
    parser = argparse.ArgumentParser(description="Measure a sweep on a cluster of this machine.")
    parser.add_argument("--runs", type=int, default=2_000, help="how many runs, at least 20")
    parser.add_argument("--pairs", type=int, default=2, help="how often both are measured")
    parser.add_argument("--duration", type=float, default=30.0, help="simulated seconds of a run")
    chosen = parser.parse_args()
    points = max(chosen.runs // REPLICATIONS, 2)
    load = os.getloadavg()[0]
    threads_s: list[float] = []
    cluster_s: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="sojourn-bench-") as name,
        distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
        ) as cluster,
    ):
        folder = Path(name)
        file = folder / "sweep.toml"
        duration = chosen.duration
        file.write_text(
            TEXT.format(duration=f"{duration:g}s", warmup=f"{duration / 6:g}s"), encoding="utf-8"
        )
        address = cluster.scheduler_address.replace("tcp", "dask")
        on_cluster = ["--on", address, "--shared", f"{folder}/shared"]
        words = [*COMMAND, "sweep", f"{file}", "-p"]
        words.append(f"links.*.qdisc.target=linspace(1ms,20ms,{points})")
        for pair in range(chosen.pairs):
            # The first pair begins with the threads, the second one with the cluster.
            kinds = [(threads_s, ["--jobs", f"{WORKERS}"]), (cluster_s, on_cluster)]
            for turn, (times, options) in enumerate(kinds[:: -1 if pair % 2 else 1]):
                seed = ["--seed", f"{2 * pair + turn + 1}"]
                times.append(elapsed_s([*words, *options, *seed], folder / "runs"))
    ratio = sum(cluster_s) / sum(threads_s)
    print(
        f"runs: {points * REPLICATIONS} of {duration:g} s; load of the machine before: {load:.1f}"
    )
    print(f"{WORKERS} threads: {', '.join(f'{one:.1f}' for one in threads_s)} s")
    print(f"Dask, {WORKERS} workers: {', '.join(f'{one:.1f}' for one in cluster_s)} s")
    print(f"ratio: {ratio:.2f}")
    if ratio > MAX_RATIO:
        print(f"missed: ratio above {MAX_RATIO}")
    return 1 if ratio > MAX_RATIO else 0


if __name__ == "__main__":
    sys.exit(main())
