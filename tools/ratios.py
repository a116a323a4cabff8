"""Compare the speed of the simulator with that of a commit: ``make bench-ratios BASE=COMMIT``.

Both are built with profiles (``tools/pgo.py``) and run in turn, on one processor, so that what else
the machine does slows both alike. Each case is repeated inside a process, so that the start of the
process hardly counts. The table has the median of the ratios of neighbouring runs, below 1 if this
checkout is faster. ``python tools/ratios.py COMMIT S1 series`` compares some cases only.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target/ratios"
# Each case of the benchmark, with how often a process repeats it: about half a second.
CASES = {
    "S1": 8,
    "S2": 30,
    "S3": 3,
    "S4": 1,
    "S5": 4,
    "tcp": 20,
    "quic": 12,
    "bbr": 12,
    "prague": 12,
    "wifi": 12,
    "series": 3,
    "thousand": 3,
    "many_codel": 1,
    "many_fq_codel": 1,
}


def built(checkout: Path) -> Path:
    """Build the benchmark of a checkout with a profile, and return where it is."""
    words = [sys.executable, "tools/pgo.py", "bench"]
    done = subprocess.run(words, cwd=checkout, check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip().splitlines()[-1])


def checkout(commit: str) -> Path:
    """Check a commit out into ``target/ratios``."""
    words = ["git", "rev-parse", "--verify", "--short=12", f"{commit}^{{commit}}"]
    found = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    folder = FOLDER / found.stdout.strip()
    if not folder.exists():
        words = ["git", "worktree", "add", "--quiet", "--detach", str(folder), commit]
        subprocess.run(words, cwd=ROOT, check=True)
    return folder


def cpu_seconds(program: Path, case: str, repeat: int) -> float | None:
    """Return the CPU time of a process that runs a case; ``None``: it does not know the case."""
    words = [f"{program}", "--profile", case, "--repeat", f"{repeat}"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime if process.returncode == 0 else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, run and print the table.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(description="Compare the speed with that of another commit.")
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=9, help="runs of each, in turn [9]")
    given = parser.parse_args(arguments)
    names: list[str] = given.cases or list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"no case {unknown[0]!r}; expected {', '.join(CASES)}")
    base, ours = built(checkout(given.commit)), built(ROOT)
    # The processes inherit it.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"| case | ratio to {given.commit} | lowest to highest | CPU s |\n|---|---|---|---|")
    for name in names:
        pairs = [
            [cpu_seconds(program, name, CASES[name]) for program in (base, ours)]
            for _ in range(given.rounds)
        ]
        times = [(before, after) for before, after in pairs if before and after]
        if len(times) < len(pairs):
            print(f"| {name} | not in both | | |")
            continue
        ratios = sorted(after / before for before, after in times)
        seconds = statistics.median(after for _, after in times)
        middle = statistics.median(ratios)
        print(f"| {name} | {middle:.3f} | {ratios[0]:.2f} to {ratios[-1]:.2f} | {seconds:.2f} |")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
