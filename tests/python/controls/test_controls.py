"""Congestion controls: the typed classes, the catalogue and the command."""

import dataclasses
import json
import re

import pytest

import sojourn as sj
from sojourn import _core, controls
from support.shell import Command

CATALOGUE = json.loads(_core.cc_catalogue())


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry["name"])
def test_the_classes_are_those_of_the_catalogue(entry: dict[str, object]) -> None:
    cls = getattr(controls, str(entry["class"]))
    assert getattr(sj, str(entry["class"])) is cls
    assert cls.__module__ == "sojourn.controls.classes"
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
    assert "slow_start: hystart, standard, hystart++, search, careful-resume, rapid-start (" in page
    assert "the first is the default over TCP" in page
    assert "default over TCP, hystart++ over QUIC)" in page
    assert "717/1024" in page
    assert all(item["provenance"] in page for item in CATALOGUE[1]["parameters"])
    assert re.search(r"bic_scale +count +41", page)
    assert "ecn: optional\n" in page
    assert "ecn: required: negotiated" in sojourn("ccs", "dctcp").stdout
    assert "ecn: required: Accurate ECN (RFC 9768)" in sojourn("ccs", "prague").stdout


@pytest.mark.parametrize(
    ("command", "given", "meant"),
    [
        ("ccs", "cubci", 'congestion control "cubci"; did you mean "cubic"?'),
        ("qdiscs", "kodel", 'queue "kodel"; did you mean "codel"?'),
    ],
)
def test_an_unknown_name_has_the_same_error_in_both_catalogues(
    sojourn: Command, command: str, given: str, meant: str
) -> None:
    for extra in ([], ["--json"]):
        unknown = sojourn(command, given, *extra)
        assert unknown.returncode == 2
        assert unknown.stderr == f"sojourn: unknown {meant}\n"


def test_parameters_of_controls_and_queues_have_the_same_form() -> None:
    queues = json.loads(_core.qdisc_catalogue())
    of_a_queue = {key for entry in queues for item in entry["parameters"] for key in item}
    for entry in CATALOGUE:
        for item in entry["parameters"]:
            # Entries of a list have parameters of their own.
            assert item.keys() == of_a_queue - {"parameters"} | {"of"}
            assert item["min"] < item["max"]
    beta = CATALOGUE[1]["parameters"][0]
    assert (beta["key"], beta["min"], beta["max"]) == ("beta", 1 / 1024, 1023 / 1024)
    ledbat = next(entry for entry in CATALOGUE if entry["name"] == "ledbat")
    target = next(item for item in ledbat["parameters"] if item["key"] == "target")
    assert target["unit"] == "time"
    assert target["max"] % 1_000_000 == 0
