"""What other places publish about Sojourn agrees with the project."""

import json
import re
import tomllib

import yaml
from packaging.requirements import Requirement

from support.shell import ROOT


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def workspace() -> dict:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return manifest["workspace"]["package"]


def test_the_recipe_for_conda_needs_what_the_wheel_needs() -> None:
    text = (ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(text)
    # conda-forge has matplotlib without Qt under another name.
    names = {"matplotlib-base": "matplotlib"}
    needed = {}
    for line in recipe["requirements"]["run"]:
        name, _, versions = line.partition(" ")
        needed[names.get(name, name)] = set(versions.split(","))
    wanted = {one.name: one.specifier for one in map(Requirement, project()["dependencies"])}
    python = project()["requires-python"]
    assert needed.pop("python") == {python}
    assert needed == {name: {str(part) for part in of} for name, of in wanted.items()}
    assert recipe["context"]["version"] == workspace()["version"]


def test_the_image_is_built_with_a_compiler_that_is_new_enough() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    found = re.search(r"^FROM rust:([\d.]+)", text, re.MULTILINE)
    assert found is not None
    assert found[1] == workspace()["rust-version"]


def test_the_schema_store_knows_the_names_of_scenarios() -> None:
    text = (ROOT / "packaging/schemastore/catalog-entry.json").read_text(encoding="utf-8")
    entry = json.loads(text)
    assert entry.keys() == {"name", "description", "fileMatch", "url"}
    assert entry["fileMatch"] == ["*.sojourn.toml"]
    assert "*.sojourn.toml" in (ROOT / "docs/howto/editor.md").read_text(encoding="utf-8")


def test_citations_name_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == workspace()["version"]
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert zenodo["creators"][0]["name"] == citation["authors"][0]["name"]


def test_actions_of_workflows_are_pinned() -> None:
    for file in (ROOT / ".github/workflows").glob("*.yml"):
        workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        used = [step["uses"] for step in steps if "uses" in step]
        assert used
        assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) for name in used), file
