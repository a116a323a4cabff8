"""``make new-queue`` and ``make new-cc`` write three files each; CONTRIBUTING states that cost.

``tools/check_skeletons.py`` also compiles them; it is part of ``make test-full``.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import new
import pytest

from support.shell import ROOT

Create = Callable[[Path, str], list[str]]
TOOLS: list[Create] = [kind.create for kind in new.KINDS.values()]
PARTS = ("crates/qdisc/src", "crates/transport/src", "docs/qdiscs", "docs/controls")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part)
    return tmp_path


@pytest.mark.parametrize("create", TOOLS)
def test_three_files_are_written(repository: Path, create: Create) -> None:
    written = create(repository, "my_thing")
    changed = {
        str(path.relative_to(repository))
        for path in repository.rglob("*")
        if path.is_file() and not is_copy(path, repository)
    }
    assert changed == set(written)
    assert len(changed) == 3
    for name in written:
        text = (repository / name).read_text(encoding="utf-8")
        assert "my_thing" in text
        assert "${" not in text


@pytest.mark.parametrize("create", TOOLS)
@pytest.mark.parametrize(
    "name", ["type", "Foo", "a-b", "", "cubic", "codel", "ared", "self", "index"]
)
def test_a_name_that_cannot_be_is_refused(repository: Path, create: Create, name: str) -> None:
    with pytest.raises(ValueError, match=r"^(invalid name|the name) "):
        create(repository, name)
    assert all(is_copy(path, repository) for path in repository.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["a_first", "my_control", "zz_last"])
def test_a_control_is_formatted_wherever_its_name_sorts(repository: Path, name: str) -> None:
    for file in new.KINDS["control"].create(repository, name):
        if file.endswith(".rs"):
            # From standard input, rustfmt does not look for the modules that a file names.
            text = (repository / file).read_text(encoding="utf-8")
            command = ["rustfmt", "--edition", "2024"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
            assert done.stdout == text, file


@pytest.mark.parametrize("create", TOOLS)
def test_a_registry_that_has_changed_is_named(repository: Path, create: Create) -> None:
    for kind in new.KINDS.values():
        (repository / kind.registry).write_text("// empty\n", encoding="utf-8")
    with pytest.raises(LookupError, match="in the registry; correct this tool"):
        create(repository, "my_thing")


def is_copy(path: Path, repository: Path) -> bool:
    """Whether a file is what it is in the repository."""
    original = ROOT / path.relative_to(repository)
    return original.is_file() and original.read_bytes() == path.read_bytes()
