"""Replay the test vectors of the kernel on queue discs of ns-3 and print the table of the page.

``python tests/ns3/replay.py`` installs Debian's packages of ns-3 where they are missing, as root.
"""

import subprocess
from pathlib import Path

from record import build

VECTORS = Path(__file__).parents[1] / "vectors"
MODULES = ["traffic-control", "network", "core"]
CODEL = "ns3::CoDelQueueDisc MaxSize=1000p"
FQ_CODEL = "ns3::FqCoDelQueueDisc MaxSize=10240p UseEcn=true quantum=1514"

#: Case, and the queue disc with its attributes.
CASES = {
    "pfifo": "ns3::FifoQueueDisc MaxSize=40p",
    "bfifo": "ns3::FifoQueueDisc MaxSize=40000B",
    "codel": CODEL,
    "codel_ecn": f"{CODEL} UseEcn=true",
    "codel_limit": "ns3::CoDelQueueDisc MaxSize=50p Target=3ms Interval=30ms",
    "codel_slow": f"{CODEL} Target=13ms",
    "codel_ticks": f"{CODEL} Target=6ms Interval=30280us",
    "codel_ce_threshold": f"{CODEL} UseEcn=true CeThreshold=2ms",
    "fq_codel": FQ_CODEL,
    "fq_codel_ecn": FQ_CODEL,
    "fq_codel_sparse": FQ_CODEL,
    "fq_codel_limit": "ns3::FqCoDelQueueDisc MaxSize=60p UseEcn=true quantum=300",
}


def difference(program: Path, case: str) -> str:
    """Return the first difference between the kernel and a queue disc; empty: there is none."""
    with (VECTORS / f"{case}.json").open(encoding="utf-8") as file:
        command = [f"{program}", *CASES[case].split()]
        done = subprocess.run(
            command, check=True, stdin=file, capture_output=True, text=True, timeout=60
        )
    return done.stdout.strip()


def main() -> None:
    """Print the table of docs/validation/vectors.md."""
    program = build("replay", MODULES)
    print("# vectors\n| case | queue disc | first difference |\n|---|---|---|")
    for case, disc in CASES.items():
        found = difference(program, case) or "none: passes"
        print(f"| `{case}` | `{disc}` | {found} |")


if __name__ == "__main__":
    main()
