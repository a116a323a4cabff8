"""Check ``make new-queue`` and ``make new-cc``: what they create compiles and passes its tests.

Each works on a copy of the repository. The check also counts the cost: three files written by
hand, all others generated. For a queue, the tests of the documents run with an extension that has
it: no document may need a line by hand. The same extension has one more metric of runs, which is
written in one file.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generators import controls, exports, queues
from generators.files import File

ROOT = Path(__file__).resolve().parent.parent
QUEUE, CONTROL = "skeleton_queue", "skeleton_control"
#: What CONTRIBUTING states.
BY_HAND = 3
QUEUE_TESTS = [
    *("--lib", "--test", "contract", "--test", "fuzz_seeds", "--test", "docs", "--test", "spec"),
]
CONTROL_TESTS = ["--lib", "--test", "survival"]
#: Tests of Python that compare documents and lists with the catalogue, without long simulations.
#: The table that the README shows has no column of the new metric.
DOCUMENT_TESTS = [
    *("tests/python/project/test_documents.py", "tests/python/queues/test_queues.py"),
    *("tests/python/controls/test_controls.py", "tests/python/scenario/test_schema.py"),
    *("tests/python/project/test_packages.py", "tests/python/project/test_user_strings.py"),
    *("-k", "not python_in_documents_runs and not readme_shows"),
]

#: The file of the metrics of runs, and what is written there for one that reads a new column.
METRICS = "crates/lab/src/metrics/runs.rs"
NEW_METRIC = {
    "numbers: sojourn_ms_p95 driver_ms_p95": "numbers: sojourn_ms_p50 sojourn_ms_p95 driver_ms_p95",
    "pub(super) const METRICS: &[RunMetric] = &[": """pub(super) const METRICS: &[RunMetric] = &[
    RunMetric::new(
        "skeleton_{link}_ms",
        "skeleton {link}",
        (1, "ms"),
        "Median of the sojourn times of the link.",
        Of::Links,
        |run, name| {
            let link = run.links.iter().find(|link| link.link == Some(name));
            link.map_or(Cell::Absent, |link| Cell::of(link.sojourn_ms_p50))
        },
    ),""",
}
#: A run of the extension of the copy has the metric, and its declaration.
USES_METRIC = """
import sojourn as sj
links = {side: sj.Link(rate="4mbit", qdisc="codel") for side in ("up", "down")}
traffic = [sj.Tcp(direction="up")]
result = sj.run(sj.Scenario(links=links, traffic=traffic, rtt="20ms", duration="2s"))
row = result.summary().filter(metric="skeleton_up_ms").row(0, named=True)
assert row["unit"] == "ms" and row["mean"] == result.links.filter(link="up")["sojourn_ms_p50"][0]
"""


def main() -> int:
    """Create a queue and a control in a copy each, and test them.

    Returns
    -------
    int
        The exit status: 1 if more files change than expected.
    """
    queue = check("queue", QUEUE, "sojourn-qdisc", QUEUE_TESTS)
    control = check("control", CONTROL, "sojourn-transport", CONTROL_TESTS)
    return 0 if queue and control else 1


def check(kind: str, name: str, package: str, tests: list[str]) -> bool:
    """Test a skeleton in a copy of the repository; return whether three files are by hand."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for path in tracked_files():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)
        (copy / "target").symlink_to(ROOT / "target")
        run(copy, sys.executable, "tools/new.py", kind, name)
        run(copy, sys.executable, "tools/generate.py")
        changed = {path for path in files(copy) if differs(path, copy)}
        by_hand = changed - {file.path for file in generated_files(copy)}
        if len(by_hand) > BY_HAND:
            print(f"expected {BY_HAND} files by hand, found {sorted(by_hand)}")
            return False
        run(copy, sys.executable, "tools/generate.py", "--check")
        run(copy, "cargo", "fmt", "--package", package, "--check")
        run(copy, "cargo", "test", "--quiet", "--package", package, *tests)
        add_metric(copy)
        check_documents(copy)
    print(f"{kind}: {len(by_hand)} files by hand, and all tests of {name} pass")
    return True


def add_metric(copy: Path) -> None:
    """Add a metric of runs to the copy."""
    text = (copy / METRICS).read_text(encoding="utf-8")
    for place, new in NEW_METRIC.items():
        if place not in text:
            message = f"{METRICS} has no line {place!r}"
            raise SystemExit(message)
        text = text.replace(place, new)
    (copy / METRICS).write_text(text, encoding="utf-8")


def check_documents(copy: Path) -> None:
    """Build the extension of the copy, generate what it generates and test the documents."""
    # The profile and the features of `cargo test --workspace`: dependencies are not built again.
    run(copy, "cargo", "build", "--quiet", "--workspace", "--lib", "--profile", "test")
    library = ROOT / "target/debug/libsojourn_extension.so"
    shutil.copy(library, copy / "python/sojourn/_core.abi3.so")
    python = os.path.abspath(ROOT / ".venv/bin/python")  # noqa: PTH100 - keeps the link
    found = run(copy, python, "-m", "sojourn", "schema", stdout=subprocess.PIPE).stdout
    (copy / "docs/schema/scenario.schema.json").write_bytes(found)
    run(copy, python, "-c", USES_METRIC)
    run(copy, python, "tools/metrics_doc.py")
    run(copy, python, "-m", "pytest", "--quiet", *DOCUMENT_TESTS)


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
    """Return the files that the generators write, apart from the pages of queues and controls."""
    generators = (
        queues.rust_modules,
        queues.python_classes,
        queues.fuzz_seeds,
        controls.python_classes,
        exports.python_module,
        exports.public_names,
    )
    pages = [
        file
        for generator in (queues.documentation, controls.documentation)
        for file in generator(copy)
        if file.path.endswith(("README.md", "index.md"))
    ]
    found = [file for generator in generators for file in generator(copy)]
    return [*found, *pages]


def run(copy: Path, *command: str, stdout: int | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command in the copy, with the Python package of the copy."""
    environment = os.environ | {"PYTHONPATH": str(copy / "python")}
    return subprocess.run(command, cwd=copy, check=True, env=environment, stdout=stdout)


if __name__ == "__main__":
    sys.exit(main())
