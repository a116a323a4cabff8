"""Congestion controls: the typed classes, the catalogue and the command."""

import dataclasses
import json

import pytest

import sojourn as sj
from shell import Command
from sojourn import _core, cc

CATALOGUE = json.loads(_core.cc_catalogue())


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry["name"])
def test_the_classes_are_those_of_the_catalogue(entry: dict[str, object]) -> None:
    cls = getattr(cc, str(entry["class"]))
    assert getattr(sj, str(entry["class"])) is cls
    parameters = entry["parameters"]
    assert isinstance(parameters, list)
    assert [field.name for field in dataclasses.fields(cls)] == [p["key"] for p in parameters]
    assert cls().spec == entry["name"]
    for parameter in parameters:
        text = f"{entry['name']} {parameter['key']} {parameter['default']}"
        assert _core.parse_cc(text) == entry["name"]


def test_a_control_is_text_with_its_parameters() -> None:
    control = sj.Cubic(beta=0.8, fast_convergence=False)
    assert control.spec == "cubic beta 0.8 fast_convergence off"
    assert _core.parse_cc(control.spec) == "cubic beta 819/1024 fast_convergence off"
    gains = sj.Bbr(pacing_gain=["3/2", "1/2", 1, 1, 1, 1, 1, 1])
    assert _core.parse_cc(gains.spec) == "bbr pacing_gain 3/2,1/2,1,1,1,1,1,1"
    assert _core.parse_cc(sj.HighSpeed(high_p=1e-6).spec) == "highspeed high_p 0.000001"


def test_a_wrong_parameter_is_refused_at_construction() -> None:
    with pytest.raises(sj.ScenarioError) as caught:
        sj.Cubic(beta=2)
    wrong = "cubic: beta 2 is out of range; expected 1/1024 to 1023/1024"
    assert str(caught.value) == wrong
    with pytest.raises(sj.ScenarioError, match="beta 2 is out of range"):
        sj.Tcp(direction="up", cc="cubic beta 2")
    with pytest.raises(sj.ScenarioError, match='unknown congestion control "cubci"'):
        sj.Quic(direction="up", cc="cubci")


@pytest.mark.parametrize("block", [sj.Tcp, sj.Quic])
def test_traffic_takes_a_control_or_its_text(block: type[sj.Tcp | sj.Quic]) -> None:
    typed = block(direction="up", cc=sj.Ledbat(target="25ms"))
    text = block(direction="up", cc="ledbat target 25ms")
    assert typed.document() == text.document()
    assert typed.document()["cc"] == "ledbat target 25ms"


def test_the_command_lists_every_control_and_its_parameters(sojourn: Command) -> None:
    assert json.loads(sojourn("ccs", "--json").stdout) == CATALOGUE
    listed = sojourn("ccs").stdout
    for entry in CATALOGUE:
        assert entry["name"] in listed
    page = sojourn("ccs", "cubic").stdout
    assert "slow_start: hystart, standard, hystart++" in page
    assert "fast_convergence" in page
    assert "717/1024" in page
    unknown = sojourn("ccs", "cubci")
    assert unknown.returncode == 2
    assert 'unknown congestion control "cubci"; did you mean "cubic"?' in unknown.stderr
