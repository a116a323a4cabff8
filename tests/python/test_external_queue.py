"""The queue of ``examples/external-queue``, in the ``sojourn`` that its crate builds."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from shell import ROOT, environment

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
    assert "low (5ms) to high (50ms); limit (1000) packets" in done.stdout


def test_a_wrong_parameter_is_refused_with_its_place(package: Path) -> None:
    queue = "ramp target 5ms"
    done = sojourn(package, "run", str(EXAMPLE / "scenario.toml"), "-s", f"links.up.qdisc={queue}")
    assert done.returncode == 2
    expected = 'links.up.qdisc: ramp: unknown parameter "target"; expected limit, low or high'
    assert expected in done.stderr


def test_the_example_needs_the_same_packages() -> None:
    ours, its = (
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        for folder in (ROOT, EXAMPLE)
    )
    assert its["dependencies"] == ours["dependencies"]
    assert its["requires-python"] == ours["requires-python"]


def test_the_schema_has_the_queue(package: Path) -> None:
    done = sojourn(package, "schema")
    assert done.returncode == 0, done.stderr
    validator = Draft202012Validator(json.loads(done.stdout))
    scenario = tomllib.loads((EXAMPLE / "scenario.toml").read_text(encoding="utf-8"))
    assert list(validator.iter_errors(scenario)) == []
    scenario["links"]["up"]["qdisc"] = {"kind": "ramp", "low": "2ms", "high": "20ms"}
    assert list(validator.iter_errors(scenario)) == []
    scenario["links"]["up"]["qdisc"] = {"kind": "rampe"}
    assert list(validator.iter_errors(scenario)) != []
