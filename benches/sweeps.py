"""What a sweep of many short runs costs beside the simulation itself.

10,000 runs of 5 s at 10 Mbit/s: CPU time of the simulator alone for the same runs, and of the whole
command; memory, size of the store, time to list and load, and the speed-up on two processors.
Then the memory of ``sojourn run`` with 10,000 runs of 70 s, saved.
Exits with status 1 if a bound is missed.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, run

import sojourn as sj
from sojourn.sweeps.run import SweepPlan, prepared

TEXT = """
name = "sweep"
duration = "5s"
warmup = "1s"
rtt = "20ms"
replications = 10
links.up = { rate = "10mbit", qdisc = "fq_codel" }
links.down = { rate = "10mbit", qdisc = "fq_codel" }
traffic = [
    { name = "bulk", type = "tcp", direction = "up" },
    { name = "ping", type = "ping", direction = "up", interval = "100ms" },
]
"""
# Runs of which all series are kept.
LONG = """
duration = "70s"
rtt = "100ms"
links.up = "unlimited"
links.down = { rate = "1mbit", qdisc = "fq_codel" }
traffic = [{ type = "tcp", direction = "down" }, { type = "ping", direction = "down" }]
"""
# 100 values of the target and 10 replications, for each value of the RTT.
RUNS_PER_RTT = 1000
COMMAND = [sys.executable, "-m", "sojourn"]
# Bounds: CPU time per run outside the simulation, memory, loading, speed-up on two processors.
MAX_OUTSIDE_MS = 0.3
MAX_MEMORY_BYTES = 1 << 30
MAX_LONG_BYTES = 200_000_000
MAX_LOAD_S = 2.0
MIN_SPEEDUP = 1.9


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process used, in seconds and bytes."""

    wall_s: float
    cpu_s: float
    memory_bytes: int


def used(words: list[str], *, environment: dict[str, str]) -> Usage:
    """Run a command to its end, without output."""
    start = time.perf_counter()
    with Path(os.devnull).open("wb") as nothing:
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), descriptor) for descriptor in (1, 2)]
        process = os.posix_spawn(words[0], words, environment, file_actions=actions)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        message = f"{' '.join(words)}: status {status}"
        raise RuntimeError(message)
    wall_s = time.perf_counter() - start
    return Usage(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def engine(changes: dict[str, str], folder: Path, program: str) -> tuple[int, float]:
    """Return the number of runs and the CPU seconds of the simulator alone for all of them."""
    planned = prepared(SweepPlan(sj.Scenario.from_toml(TEXT), changes))
    files = []
    for number, group in enumerate(planned.groups):
        file = folder / f"{number}.json"
        file.write_text(group.scenario.to_json(), encoding="utf-8")
        files.append(f"{file}")
    printed = run([program, *files], check=True, stdout=PIPE, text=True).stdout.split()
    return int(printed[0]), float(printed[1])


def main() -> int:
    """Print the figures; fail beyond a bound."""
    parser = argparse.ArgumentParser(description="Measure a sweep of many short runs.")
    parser.add_argument("--engine", default="target/release/engine", help="its program")
    parser.add_argument("--runs", type=int, default=10_000, help="about how many runs")
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    rtts = max(chosen.runs // RUNS_PER_RTT, 1)
    changes = {
        "links.*.qdisc.target": "linspace(1ms,20ms,100)",
        "rtt": ",".join(f"{10 * number + 10}ms" for number in range(rtts)),
    }
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as name:
        folder = Path(name)
        runs, engine_s = engine(changes, folder, chosen.engine)
        (folder / "sweep.toml").write_text(TEXT, encoding="utf-8")
        words = ["sweep", f"{folder}/sweep.toml"]
        for path, values in changes.items():
            words += ["-p", f"{path}={values}"]
        places = {jobs: os.environ | {"SOJOURN_STORE": f"{folder}/store-{jobs}"} for jobs in (1, 2)}
        found = {
            jobs: used(
                [*COMMAND, *words, "--jobs", f"{jobs}", "--out", f"{folder}/out-{jobs}"],
                environment=environment,
            )
            for jobs, environment in places.items()
        }
        stored = sum(file.stat().st_size for file in (folder / "store-1").rglob("*"))
        program = f"import sojourn as sj; sj.SweepResult.load({f'{folder}/out-1'!r}).points"
        loaded = used([sys.executable, "-c", program], environment=places[1])
        listed = used([*COMMAND, "store", "ls"], environment=places[1])
        again = used([*COMMAND, *words], environment=places[1])
        (folder / "long.toml").write_text(f"replications = {runs}\n{LONG}", encoding="utf-8")
        words = ["run", f"{folder}/long.toml", "--out", f"{folder}/long"]
        long = used([*COMMAND, *words], environment=places[1])
    outside_ms = 1e3 * (found[1].cpu_s - engine_s) / runs
    speedup = found[1].wall_s / found[2].wall_s
    memory = max(usage.memory_bytes for usage in found.values())
    print(f"runs: {runs}; load of the machine before: {load:.1f}")
    print(f"CPU time of the simulator alone: {1e3 * engine_s / runs:.3f} ms per run")
    print(f"CPU time of the command: {1e3 * found[1].cpu_s / runs:.3f} ms per run")
    print(f"CPU time outside the simulator: {outside_ms:.3f} ms per run")
    print(f"wall-clock time: {found[1].wall_s:.1f} s with 1 job, {found[2].wall_s:.1f} s with 2")
    print(f"speed-up on two processors: {speedup:.2f}")
    print(f"peak memory: {memory / 1e6:.0f} MB")
    print(f"run store: {stored / runs:.0f} B per run")
    print(f"list the store: {listed.wall_s:.2f} s; load the saved sweep: {loaded.wall_s:.2f} s")
    print(f"the same command again: {again.wall_s:.2f} s")
    print(f"peak memory of as many saved runs of 70 s: {long.memory_bytes / 1e6:.0f} MB")
    missed = {
        f"outside the simulator: more than {MAX_OUTSIDE_MS} ms per run": outside_ms
        > MAX_OUTSIDE_MS,
        "memory: more than 1 GiB": memory > MAX_MEMORY_BYTES,
        "runs of 70 s: more than 200 MB": long.memory_bytes > MAX_LONG_BYTES,
        f"list and load: more than {MAX_LOAD_S} s": listed.wall_s + loaded.wall_s > MAX_LOAD_S,
        f"speed-up: less than {MIN_SPEEDUP}": speedup < MIN_SPEEDUP,
    }
    for text in (text for text, is_missed in missed.items() if is_missed):
        print(f"missed: {text}")
    return 1 if any(missed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
