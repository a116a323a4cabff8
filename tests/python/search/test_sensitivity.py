"""Sensitivity: Sobol indices, Morris screening, noise, files, and the command."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

import sojourn as sj
from sojourn import cli
from sojourn.cli import process
from sojourn.search import sensitivity
from support.searched import TARGET, TEXT, XYZ, Known


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


@pytest.fixture
def searched_file(tmp_path: Path) -> Path:
    path = tmp_path / "searched.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def ishigami(x: Sequence[float], n: int) -> dict[str, float]:
    """Compute the function of Ishigami and Homma (1990), for which the Sobol indices are known."""
    a, b, c = (math.pi * (2 * share - 1) for share in x)
    value = math.sin(a) + 7 * math.sin(b) ** 2 + 0.1 * c**4 * math.sin(a)
    # The second seed adds 5 at all points, and noise of ±0.1, whose sign differs between points.
    noise = 0.1 if round(1e3 * sum(x)) % 2 == n else -0.1
    return {"ping_ms_p99": value + 5 * n + noise}


def test_sobol_indices_of_a_known_function(base: sj.Scenario) -> None:
    planned = sensitivity.prepared(
        sensitivity.SensitivityPlan(base, XYZ, ["ping_ms_p99"], samples=256)
    )
    assert planned.points == 256 * 5
    assert planned.runs == 2 * planned.points
    result = sensitivity.execute(planned, Known(ishigami))
    found = {row["parameter"]: row for row in result.indices.iter_rows(named=True)}
    known = {
        "links.up.rate": (0.3139, 0.5576),
        "links.down.rate": (0.4424, 0.4424),
        "rtt": (0.0, 0.2437),
    }
    for name, (first, total) in known.items():
        assert found[name]["first"] == pytest.approx(first, abs=0.12)
        assert found[name]["total"] == pytest.approx(total, abs=0.12)
        assert found[name]["total_low"] < total < found[name]["total_high"]
    # The variance of ±0.1 is 0.02 per run, that of the mean of two 0.01; the function has 13.8.
    assert result.noise["noise"][0] == pytest.approx(0.01 / 13.84, rel=0.1)
    again = sensitivity.execute(planned, Known(ishigami))
    assert again.indices.equals(result.indices)


def test_morris_finds_the_parameters_without_effect(base: sj.Scenario, tmp_path: Path) -> None:
    def linear(x: Sequence[float], n: int) -> dict[str, float]:
        return {"drops": 5 * x[0] - 2 * x[1] + 0 * n}

    planned = sensitivity.prepared(
        sensitivity.SensitivityPlan(base, XYZ, ["drops"], method="morris", samples=8)
    )
    result = sensitivity.execute(planned, Known(linear))
    found = {row["parameter"]: row for row in result.indices.iter_rows(named=True)}
    assert list(found) == ["links.up.rate", "links.down.rate", "rtt"]
    assert found["links.up.rate"]["mu"] == pytest.approx(5.0, abs=0.02)
    assert found["links.down.rate"]["mu"] == pytest.approx(-2.0, abs=0.02)
    assert found["links.down.rate"]["mu_star"] == pytest.approx(2.0, abs=0.02)
    assert found["rtt"]["mu_star"] == 0.0
    assert result.noise["noise"][0] == 0.0
    result.save(tmp_path / "out")
    loaded = sj.SensitivityResult.load(tmp_path / "out")
    assert loaded.indices.equals(result.indices)
    assert loaded.bars().axes


def test_sensitivity_measures_runs(base: sj.Scenario) -> None:
    result = sj.sensitivity(base, TARGET, "ping_ms_p99", method="morris", samples=2, replications=1)
    assert result.indices["mu_star"][0] > 1.0
    assert result.noise["noise"][0] is None


def test_the_command_prints_indices_and_noise(
    searched_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "install", lambda: None)
    target = "links.up.qdisc.target=loguniform(1ms,100ms)"
    words = ["sensitivity", f"{searched_file}", "-p", target, "--metric", "ping_ms_p99"]
    monkeypatch.setattr("sys.argv", ["sojourn", *words, "--method", "morris", "--samples", "2"])
    assert cli.main() == 0
    out, err = capsys.readouterr()
    assert "sensitivity: 4 points: at most 8 runs of 3 s" in err
    assert "of their variance is noise" in out
