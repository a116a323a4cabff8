"""Check that `examples/external-queue` builds a wheel with its queue: `make test-full` runs it.

pip builds the wheel as for a user, apart from the profile of Cargo and the isolation of the build,
for which it would download maturin. The command runs from the unpacked wheel.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/external-queue"
#: Without optimisation, and without the check of the libraries that a published wheel may need.
BUILD = "--profile dev --skip-auditwheel"


def main() -> int:
    """Build the wheel and ask its command for the queue.

    Returns
    -------
    int
        The exit status: 1 if the command does not list the queue and its parameters.
    """
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "package"
        with zipfile.ZipFile(build(Path(folder))) as wheel:
            wheel.extractall(package)
        command = [sys.executable, "-m", "sojourn", "qdiscs", "ramp"]
        environment = os.environ | {"PYTHONPATH": str(package)}
        done = subprocess.run(
            command, cwd=package, env=environment, check=False, stdout=subprocess.PIPE, text=True
        )
    missing = [key for key in ("limit", "low", "high") if key not in done.stdout.split()]
    if done.returncode or missing:
        print(f"{' '.join(command[1:])}: status {done.returncode}, without {missing}")
        return 1
    print("examples/external-queue: the wheel has the queue ramp")
    return 0


def build(folder: Path) -> Path:
    """Build the wheel of the example in a folder and return its path."""
    command = [
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--config-settings", f"build-args={BUILD}", "--wheel-dir", str(folder), str(EXAMPLE)),
    ]
    # Without isolation, the build calls the maturin that stands beside this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    subprocess.run(command, check=True, env=os.environ | {"PATH": path})
    (wheel,) = folder.glob("*.whl")
    return wheel


if __name__ == "__main__":
    sys.exit(main())
