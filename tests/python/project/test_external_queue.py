"""The queue of ``examples/external-queue``, in the ``sojourn`` that its crate builds."""

import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from jsonschema import Draft202012Validator

from support.shell import ROOT, environment

EXAMPLE = ROOT / "examples/external-queue"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the extension of the example and put it into a copy of the Python package."""
    # The profile and the features of `cargo test --workspace`: nothing is compiled twice.
    command = ["cargo", "build", "--quiet", "--workspace", "--lib", "--profile", "test"]
    subprocess.run(command, cwd=ROOT, check=True)
    folder = tmp_path_factory.mktemp("package")
    skipped = shutil.ignore_patterns("_core*.so", "__pycache__")
    shutil.copytree(ROOT / "python/sojourn", folder / "sojourn", ignore=skipped)
    shutil.copy(ROOT / "target/debug/libexternal_queue.so", folder / "sojourn/_core.abi3.so")
    return folder


def sojourn(package: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = environment() | {"PYTHONPATH": str(package)}
    command = [sys.executable, "-m", "sojourn", *words]
    return subprocess.run(
        command, cwd=package, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(600)
def test_a_scenario_runs_with_the_queue(package: Path) -> None:
    done = sojourn(package, "run", str(EXAMPLE / "scenario.toml"), "--json")
    assert done.returncode == 0, done.stderr
    latency = {
        row["arm"]: row["mean"]
        for row in json.loads(done.stdout)["summary"]
        if row["metric"] == "induced_latency_ms"
    }
    assert latency["ramp"] < latency["pfifo"] / 10


def test_the_queue_is_listed_with_its_parameters(package: Path) -> None:
    done = sojourn(package, "qdiscs", "ramp")
    assert done.returncode == 0, done.stderr
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "parameter unit default meaning range" in rows
    assert "low time 5ms Sojourn time at which signals begin 1ns to 1000000s" in rows
    assert "low Sojourn default" in rows
    entry = json.loads(sojourn(package, "qdiscs", "ramp", "--json").stdout)
    assert (entry["page"], entry["class"]) == (None, None)
    assert [item["key"] for item in entry["parameters"]] == ["limit", "low", "high"]
    assert entry["parameters"][0] == {
        "key": "limit",
        "unit": "packets",
        "default": "1000",
        "derived": False,
        "min": 1,
        "max": 100_000_000,
        "range": "1 to 100000000",
        "choices": None,
        "meaning": "Maximum number of packets in the buffer",
        "provenance": "Sojourn default",
    }


def test_a_wrong_parameter_is_refused_with_its_place(package: Path) -> None:
    for queue, expected in [
        ("ramp target 5ms", 'unknown parameter "target"; expected one of limit, low, high'),
        ("ramp limit 0", "limit 0 is out of range; expected 1 to 100000000"),
    ]:
        change = f"links.up.qdisc={queue}"
        done = sojourn(package, "run", str(EXAMPLE / "scenario.toml"), "-s", change)
        assert done.returncode == 2
        assert f"links.up.qdisc: ramp: {expected}" in done.stderr


def test_the_queue_is_that_of_the_tutorial() -> None:
    tutorial = (ROOT / "crates/qdisc/src/testing/tutorial.rs").read_text(encoding="utf-8")
    example = (EXAMPLE / "src/ramp.rs").read_text(encoding="utf-8")
    ours, its = (text.split("\nparameters! {")[1] for text in (tutorial, example))
    ours = ours.split("\nmod tests {")[0].replace('class: Some("Ramp")', "class: None")
    assert its.strip() == ours.strip()


def test_the_example_needs_the_same_packages() -> None:
    ours, its = (
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        for folder in (ROOT, EXAMPLE)
    )
    assert its["dependencies"] == ours["dependencies"]
    assert its["requires-python"] == ours["requires-python"]


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the build backend of the example, with a project and a checkout in temporary folders."""
    spec = importlib.util.spec_from_file_location("build_package", EXAMPLE / "build_package.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.SOJOURN.resolve() == ROOT
    checkout = tmp_path / "checkout"
    for name in ("__init__.py", "presentation/style.css", "_core.abi3.so", "__pycache__/cli.pyc"):
        file = checkout / "python/sojourn" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.setattr(module, "SOJOURN", checkout)
    monkeypatch.setattr(module, "HERE", tmp_path)
    return module


def test_the_build_copies_what_is_not_compiled_and_removes_the_copy(
    tmp_path: Path, backend: ModuleType
) -> None:
    copy = tmp_path / "python"
    with backend._python_files():  # noqa: SLF001 - what both hooks of the backend do
        copied = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert copied == {"sojourn/__init__.py", "sojourn/presentation/style.css"}
    assert not copy.exists()


def test_a_build_that_fails_leaves_no_copy(
    tmp_path: Path, backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        assert (tmp_path / "python/sojourn/__init__.py").is_file()
        message = "cargo failed"
        raise RuntimeError(message)

    monkeypatch.setattr(backend.maturin, "build_wheel", fail)
    with pytest.raises(RuntimeError, match="cargo failed"):
        backend.build_wheel(str(tmp_path))
    assert not (tmp_path / "python").exists()


def test_the_schema_has_the_queue(package: Path) -> None:
    done = sojourn(package, "schema")
    assert done.returncode == 0, done.stderr
    validator = Draft202012Validator(json.loads(done.stdout))
    scenario = tomllib.loads((EXAMPLE / "scenario.toml").read_text(encoding="utf-8"))
    assert list(validator.iter_errors(scenario)) == []
    scenario["links"]["up"]["qdisc"] = {"kind": "ramp", "low": "2ms", "high": "20ms"}
    assert list(validator.iter_errors(scenario)) == []
    for refused in ({"kind": "rampe"}, {"kind": "ramp", "hihg": "20ms"}):
        scenario["links"]["up"]["qdisc"] = refused
        assert list(validator.iter_errors(scenario)) != []
