"""``make test-quick`` runs the tests of what has changed."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import quick

from support.shell import ROOT


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A module, its test, a test that imports it, and another test of the package."""
    files = {
        "python/sojourn/a/b.py": '"""B."""\n',
        "python/sojourn/a/c.py": '"""C."""\n',
        "python/sojourn/public.py": '"""Names."""\n',
        "tests/python/a/test_b.py": "",
        "tests/python/a/test_other.py": "",
        "tests/python/d/test_use.py": "from sojourn.a.b import thing\n",
        "tests/python/project/test_names.py": "",
        "tests/python/project/covered_by.toml": '"public.py" = ["project/test_names.py"]\n',
        "crates/net/Cargo.toml": '[package]\nname = "sojourn-net"\n',
        "crates/net/src/lib.rs": "",
        "README.md": "# A\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def git(root: Path, *words: str) -> None:
    """Run Git with a name, which a commit needs."""
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words]
    subprocess.run(command, cwd=root, check=True)


def test_changed_are_committed_modified_deleted_and_new_files(repository: Path) -> None:
    git(repository, "switch", "--quiet", "--create", "branch")
    (repository / "README.md").write_text("# B\n")
    git(repository, "commit", "--quiet", "--all", "--message", "second")
    (repository / "python/sojourn/a/b.py").write_text("X = 1\n")
    (repository / "tests/python/a/test_b.py").unlink()
    (repository / "new.py").write_text("")
    changed = quick.changed_files(repository, quick.branch_point(repository))
    assert [str(path) for path in changed] == [
        *("README.md", "new.py", "python/sojourn/a/b.py", "tests/python/a/test_b.py"),
    ]


def test_a_module_is_tested_by_what_names_it_and_then_by_its_package(repository: Path) -> None:
    named, near = quick.tests_of(repository, [Path("python/sojourn/a/b.py")])
    assert [str(path) for path in named] == [
        *("python/sojourn/a/b.py", "tests/python/a/test_b.py", "tests/python/d/test_use.py"),
    ]
    assert [str(path) for path in near] == ["tests/python/a/test_other.py"]
    named, _ = quick.tests_of(repository, [Path("python/sojourn/public.py")])
    assert Path("tests/python/project/test_names.py") in named


def test_a_crate_is_tested_linted_and_formatted_and_its_catalogue_read(repository: Path) -> None:
    changed = [Path("crates/net/src/lib.rs")]
    commands = [" ".join(words) for words in quick.commands(repository, changed)]
    assert [words.split(" -")[0] for words in commands[:3]] == [
        "cargo test",
        "cargo clippy",
        "cargo fmt",
    ]
    assert all("--package sojourn-net" in words for words in commands[:3])
    assert any("generate.py --check" in words for words in commands)
    assert not any("mypy" in words or "pytest" in words for words in commands)


def test_only_tests_that_name_nothing_are_skipped_when_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("test_named.py", "test_near.py"):
        (tmp_path / name).write_text("def test_it() -> None:\n    pass\n")
    near = str(tmp_path / "test_near.py")
    monkeypatch.setenv("SOJOURN_QUICK_UNTIL", "0")
    monkeypatch.setenv("SOJOURN_QUICK_NEAR", near)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tools"))
    command = [sys.executable, "-m", "pytest", "-p", "quick", "-q", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "1 passed, 1 skipped" in done.stdout


def test_every_module_is_named_by_a_test() -> None:
    package = ROOT / quick.PACKAGE
    modules = [path for path in package.rglob("*.py") if not path.stem.startswith("__")]
    unnamed = [
        path.relative_to(package).as_posix()
        for path in modules
        if not quick.tests_that_name(ROOT, path.relative_to(ROOT))
    ]
    assert sorted(unnamed) == [], "add a test of that name, or a line to covered_by.toml"
    assert len(modules) > 100
    covered = tomllib.loads((ROOT / quick.COVERED).read_text(encoding="utf-8"))
    tests = {test for listed in covered.values() for test in listed}
    absent = [test for test in tests if not (ROOT / quick.TESTS / test).is_file()]
    assert absent == []
    assert [module for module in covered if not (package / module).is_file()] == []


def test_no_test_imports_another() -> None:
    found = [
        f"{test} imports {module}"
        for test, modules in quick.imported_by_tests(ROOT).items()
        for module in modules
        if any(part.startswith("test_") for part in module.split("."))
    ]
    assert found == [], "what tests share is in tests/python/support"
