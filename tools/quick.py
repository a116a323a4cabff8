"""Check what has changed: ``make test-quick``.

Changed are the files that differ from where the branch left ``main``, and those that Git does not
know. Ruff, mypy, codespell and the tests of the changed modules run for Python: first the tests
that name a module, then the others of its package until the time is up. For Rust, rustfmt, clippy
and the tests of each changed crate run. ``make test`` checks everything.
"""

import argparse
import ast
import functools
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, TESTS = Path("python/sojourn"), Path("tests/python")
#: Modules that no test imports, and the test that covers each.
COVERED = TESTS / "project/covered_by.toml"
#: What the generators read.
CATALOGUES = ("crates/", "tools/generators/", "python/sojourn/traffic/", "docs/qdiscs/")
#: Which tests run for the documents, the Makefile and the generated lists.
DOCUMENTS = TESTS / "project/test_documents.py"
#: When tests that only share the package of a changed module stop, in seconds after the start.
#: Those that name the module always run.
SECONDS = 35
_UNTIL, _NEAR = "SOJOURN_QUICK_UNTIL", "SOJOURN_QUICK_NEAR"


def main() -> int:
    """Run the checks of what has changed.

    Returns
    -------
    int
        The exit status: 1 if a check fails.
    """
    parser = argparse.ArgumentParser(description="Check what has changed.")
    parser.add_argument("--base", help="a commit; by default where the branch left main")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="time of the Python tests")
    arguments = parser.parse_args()
    begun = time.monotonic()
    changed = changed_files(ROOT, arguments.base or branch_point(ROOT))
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "tools"),
        _UNTIL: str(time.time() + arguments.seconds),
        _NEAR: os.pathsep.join(str(ROOT / path) for path in tests_of(ROOT, changed)[1]),
    }
    failed = False
    # Cargo and mypy use less than two cores most of the time.
    with ThreadPoolExecutor(max_workers=2) as threads:
        running = {
            threads.submit(finished, command, environment): " ".join(command[:6])
            for command in commands(ROOT, changed)
        }
        for done in as_completed(running):
            code, printed, seconds = done.result()
            failed |= code != 0
            print(f"{'FAILED' if code else 'passed'} in {seconds:3.0f} s: {running[done]}")
            if code or "SKIPPED" in printed:
                print(printed)
    print(f"{len(changed)} changed files checked in {time.monotonic() - begun:.0f} s")
    return int(failed)


def finished(command: list[str], environment: dict[str, str]) -> tuple[int, str, float]:
    """Run a command and return its exit status, its output and its duration in seconds."""
    begun = time.monotonic()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout, time.monotonic() - begun


def git(root: Path, *words: str) -> list[str]:
    """Return the lines that Git prints; none if it fails."""
    command = ["git", *words]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    return done.stdout.splitlines()


def branch_point(root: Path) -> str:
    """Return the commit at which this branch left main."""
    points = (git(root, "merge-base", "HEAD", name) for name in ("main", "origin/main"))
    return next((point[0] for point in points if point), "HEAD")


def changed_files(root: Path, base: str) -> list[Path]:
    """List the files that differ from a commit or that Git does not know; deleted ones too."""
    known = git(root, "diff", "--name-only", base)
    return sorted(map(Path, {*known, *git(root, "ls-files", "--others", "--exclude-standard")}))


def commands(root: Path, changed: list[Path]) -> Iterator[list[str]]:
    """Yield the commands that check the changed files, the longest first."""
    tools = f"{Path(sys.executable).parent}"
    present = [path for path in changed if (root / path).is_file()]
    named, near = tests_of(root, changed)
    for crate in sorted({path.parts[1] for path in changed if path.parts[0] == "crates"}):
        manifest = root / "crates" / crate / "Cargo.toml"
        if manifest.is_file():
            name = tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]["name"]
            yield ["cargo", "test", "--quiet", "--package", name]
            lints = ["--all-targets", "--quiet", "--", "-D", "warnings"]
            yield ["cargo", "clippy", "--package", name, *lints]
            yield ["cargo", "fmt", "--package", name, "--check"]
    if any(path.is_relative_to(PACKAGE) and path.suffix == ".py" for path in changed):
        yield [f"{tools}/mypy"]
    if named or near:
        words = ["-p", "quick", "-m", "not slow", "-rs", "--quiet", "--no-loadscope-reorder"]
        words += ["--numprocesses", "2", "--dist", "loadfile"]
        yield [sys.executable, "-m", "pytest", *words, *map(str, [*named, *near])]
    if any(str(path).startswith(CATALOGUES) for path in changed):
        yield [sys.executable, "tools/generate.py", "--check"]
    python = [f"{path}" for path in present if path.suffix in {".py", ".pyi"}]
    if python:
        yield [f"{tools}/ruff", "check", "--quiet", *python]
        yield [f"{tools}/ruff", "format", "--check", "--quiet", *python]
    written = [f"{path}" for path in present if path.suffix in {".md", ".py", ".rs"}]
    if written:
        yield [f"{tools}/codespell", *written]
        yield [sys.executable, "tools/banned_phrases.py", *written]


def tests_of(root: Path, changed: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the tests that name the changed files, and the other tests of their packages."""
    named: dict[Path, None] = {}
    near: dict[Path, None] = {}
    for path in changed:
        if path.suffix == ".md" or path.name == "Makefile":
            near[DOCUMENTS] = None
        elif path.suffix == ".py" and path.is_relative_to(TESTS) and path.stem[:5] == "test_":
            named[path] = None
        elif path.suffix == ".py":
            # Its doctests, and the tests that name it.
            named |= dict.fromkeys([path] if path.is_relative_to(PACKAGE) else [])
            named |= dict.fromkeys(tests_that_name(root, path))
            if path.is_relative_to(PACKAGE):
                folder = root / TESTS / path.relative_to(PACKAGE).parent
                near |= dict.fromkeys(
                    test.relative_to(root) for test in sorted(folder.glob("test_*.py"))
                )
    present = [path for path in named if (root / path).is_file()]
    return present, [path for path in near if path not in named]


def tests_that_name(root: Path, path: Path) -> list[Path]:
    """List the tests of a file of Python: its own, those that import it, those of a list."""
    found = []
    if path.is_relative_to(PACKAGE):
        inner = path.relative_to(PACKAGE)
        found.append(TESTS / inner.parent / f"test_{inner.stem}.py")
        covered = tomllib.loads((root / COVERED).read_text(encoding="utf-8"))
        found += [TESTS / test for test in covered.get(inner.as_posix(), [])]
    name = module_of(path)
    found += [test for test, modules in imported_by_tests(root).items() if name in modules]
    return [test for test in dict.fromkeys(found) if (root / test).is_file()]


def module_of(path: Path) -> str:
    """Return the name by which tests import a file."""
    for folder in ("python", "tests/python", "tools", "tests/golden"):
        if path.is_relative_to(folder):
            parts = path.relative_to(folder).with_suffix("").parts
            return ".".join(part for part in parts if part != "__init__")
    return path.stem


@functools.cache
def imported_by_tests(root: Path) -> dict[Path, set[str]]:
    """Return the modules that each test imports."""
    return {
        file.relative_to(root): set(imports(ast.parse(file.read_text(encoding="utf-8"))))
        for file in sorted((root / TESTS).rglob("test_*.py"))
    }


def imports(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a module may import; names of functions are among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"{node.module}"
            yield from (f"{node.module}.{item.name}" for item in node.names)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test when the time is up: this module is also a plug-in of pytest."""
    may_skip = str(item.path) in os.environ[_NEAR].split(os.pathsep)
    if may_skip and time.time() > float(os.environ[_UNTIL]):
        pytest.skip("the time is up; pytest tests/python/PACKAGE runs all tests of a package")


if __name__ == "__main__":
    sys.exit(main())
