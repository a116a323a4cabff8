"""The scenarios that the lab makes of its controls, lessons and changes, and what it exports."""

import io
import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from support import wasm
from support.shell import ROOT

STUDIES = tomllib.loads((ROOT / "docs/_lab/studies.toml").read_text(encoding="utf-8"))


def made(states: list[dict[str, Any]]) -> Any:
    """Return what the page makes of states, and of all lessons and their steps."""
    return json.loads(wasm.node("model.mjs", text=json.dumps(states)))


def read(one: dict[str, Any]) -> sj.Scenario:
    return sj.Scenario.from_json(json.dumps(one["scenario"]))


def test_lines_and_lessons_are_scenarios_of_two_arms() -> None:
    states: list[dict[str, Any]] = [
        {"state": {}},
        {"state": {"a": "codel", "b": "codel", "call": True, "loss": 0.5}},
        {"state": {"modem": True, "call": True, "link": "up"}},
    ]
    found = made(states)
    assert all(one["shared"] for one in found["all"])
    assert len(found["lessons"]) == 6 * 4
    for one in [*found["all"], *found["lessons"]]:
        assert len(read(one).arms) == 2, one.get("name")


def test_figures_of_studies_name_arms_and_links_of_their_scenarios() -> None:
    for name, study in STUDIES.items():
        scenario = sj.Scenario.from_file(ROOT / f"papers/{study['scenario']}.toml")
        described = {
            "scenario": json.loads(scenario.checked.to_json()),
            "arms": [arm.name for arm in scenario.arms],
            "warmup_ms": 0,
        }
        state = {
            "kind": "file",
            "study": name,
            "changes": [{"at": 2001, "key": "rate", "value": 5}],
        }
        found = made([{"state": study | state, "described": described}])["all"][0]
        assert [described["arms"][n] for n in found["arms"]] == [study["a"], study["b"]]
        assert study["link"] in read(found).links, name


def test_a_change_during_the_run_leaves_what_was_before() -> None:
    results = json.loads(wasm.node("changes.mjs", str(wasm.module())))
    assert len(results) == 8
    assert all(one["same"] and one["later"] for one in results), results


# What a link that somebody else made can contain.
HOSTILE = "name = 'a \"quoted\" C:\\temp é'\n# ''' + quit() + '''\nEOF\ntouch owned\nEOF_\n"


@pytest.fixture(scope="module")
def exported() -> Any:
    return json.loads(wasm.node("share.mjs", str(wasm.module()), HOSTILE))


def test_an_exported_file_gives_the_run_of_the_page(exported: Any) -> None:
    scenario = sj.Scenario.from_toml(exported["toml"])
    native = sj.run(scenario).flow_series.filter(arm="fq_codel")
    page = pl.read_csv(io.StringIO(exported["csv"]), infer_schema_length=None)
    assert page.height == native.height > 290
    for column in ("t_s", "goodput_mbit_per_s", "srtt_ms"):
        assert page[column].cast(pl.Float64).to_list() == native[column].to_list()


def test_no_text_leaves_the_file_of_an_export(exported: Any, tmp_path: Path) -> None:
    hostile = exported["hostile"]
    assert HOSTILE in hostile["toml"]
    (source,) = [
        "".join(cell["source"])
        for cell in json.loads(hostile["notebook"])["cells"]
        if "from_toml" in "".join(cell["source"])
    ]
    read: list[str] = []
    call = source.partition("\n\n")[2].removeprefix("scenario = sj.Scenario.from_toml")
    exec(f"read.append{call}", {"read": read})  # noqa: S102 - what this tests
    assert read == [hostile["toml"]]
    writes = hostile["command"].partition("\nsojourn run")[0]
    subprocess.run(["sh", "-c", writes], cwd=tmp_path, check=True)  # noqa: S607
    assert {file.name for file in tmp_path.iterdir()} == {"lab.toml"}
    assert (tmp_path / "lab.toml").read_text(encoding="utf-8") == hostile["toml"]


@pytest.mark.slow
def test_the_command_and_the_notebook_contain_the_file(exported: Any) -> None:
    assert exported["toml"] in exported["command"]
    notebook = json.loads(exported["notebook"])
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for source in sources:
        exec(source, names)  # noqa: S102 - the notebook is ours
    assert names["result"].finished == 2
