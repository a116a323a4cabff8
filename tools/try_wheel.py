"""Try an installed wheel where nothing else is: ``python try_wheel.py`` in an empty folder.

It needs Python and the packages of the wheel alone, and runs on all systems. It runs the commands
of the first minutes, and expects that the same runs give the same numbers twice.
"""

import subprocess
import sys
from collections.abc import Sequence


def sojourn(*words: str) -> str:
    """Run the command and return what it prints."""
    command = [sys.executable, "-m", "sojourn", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        print(f"sojourn {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
        sys.exit(1)
    return done.stdout


def main(words: Sequence[str] = ("compare", "pfifo", "fq_codel")) -> None:
    """Run the commands."""
    print(sojourn("--version").strip())
    sojourn("qdiscs", "fq_codel")
    first, second = (sojourn(*words, "--fresh") for _ in range(2))
    if first != second:
        print(f"the same runs differ:\n{first}\n{second}")
        sys.exit(1)
    print(first)
    sojourn("compare", "--generate")
    # What needs Linux says so in one line.
    if not sys.platform.startswith("linux"):
        command = [sys.executable, "-m", "sojourn", "live", "--", sys.executable, "-c", ""]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 3 or "Linux" not in done.stderr:  # noqa: PLR2004 - of docs/policy.md
            print(f"sojourn live: exit code {done.returncode}\n{done.stderr}")
            sys.exit(1)


if __name__ == "__main__":
    main()
