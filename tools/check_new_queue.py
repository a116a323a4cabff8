"""Check ``make new-queue`` in a copy of the repository: the skeleton compiles and passes its tests.

It also checks the cost of a new queue: three files written by hand, all others generated.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generators import queues
from generators.files import File

ROOT = Path(__file__).resolve().parent.parent
NAME = "skeleton_queue"
BY_HAND = {
    f"crates/qdisc/src/aqm/{NAME}.rs",
    f"docs/qdiscs/{NAME}.md",
    "crates/qdisc/src/registry.rs",
}
TESTS = ["--lib", "--test", "contract", "--test", "fuzz_seeds", "--test", "docs", "--test", "spec"]


def main() -> int:
    """Create a queue in a copy and test it.

    Returns
    -------
    int
        The exit status: 1 if more files change than expected.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        before = tracked_files()
        for path in before:
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)
        (copy / "target").symlink_to(ROOT / "target")
        run(copy, sys.executable, "tools/new_queue.py", NAME)
        changed = {path for path in files(copy) if differs(path, copy)}
        generated = {file.path for file in generated_files(copy)}
        if changed - generated != BY_HAND - generated:
            print(f"expected three files by hand, found {sorted(changed - generated)}")
            return 1
        run(copy, sys.executable, "tools/generate.py", "--check")
        run(copy, "cargo", "fmt", "--package", "sojourn-qdisc", "--check")
        run(copy, "cargo", "test", "--quiet", "--package", "sojourn-qdisc", *TESTS)
    print("new-queue: three files by hand, and all tests of the queue pass")
    return 0


def tracked_files() -> list[str]:
    """Return the files of the repository that Git knows and that exist."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return [path for path in done.stdout.splitlines() if (ROOT / path).is_file()]


def files(copy: Path) -> list[str]:
    """Return all files of the copy apart from what Cargo built."""
    folders = [path for path in copy.iterdir() if path.name != "target"]
    found = [path for folder in folders for path in [folder, *folder.rglob("*")]]
    return [str(path.relative_to(copy)) for path in found if path.is_file()]


def differs(path: str, copy: Path) -> bool:
    """Whether the copy of a file differs from its original; byte code of Python does not count."""
    original = ROOT / path
    if path.endswith(".pyc"):
        return False
    return not original.is_file() or original.read_bytes() != (copy / path).read_bytes()


def generated_files(copy: Path) -> list[File]:
    """Return the files of which the generators write all, so not the pages of documentation."""
    generators = (
        queues.rust_modules,
        queues.python_classes,
        queues.python_exports,
        queues.fuzz_seeds,
    )
    pages = [file for file in queues.documentation(copy) if file.path.endswith("README.md")]
    return [file for generator in generators for file in generator(copy)] + pages


def run(copy: Path, *command: str) -> None:
    """Run a command in the copy."""
    subprocess.run(command, cwd=copy, check=True)


if __name__ == "__main__":
    sys.exit(main())
