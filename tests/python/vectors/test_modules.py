"""The kernel modules, compiled as programs with sanitizers, do what was recorded."""

import json
import shutil
import subprocess
from pathlib import Path

import programs
import pytest

VECTORS = Path(__file__).parents[3] / "tests" / "vectors"
PATHS = sorted((VECTORS / "modules").glob("*.json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("no C compiler or make")
    folder = tmp_path_factory.mktemp("modules")
    programs.compile_programs(folder)
    return folder


def test_there_are_vectors_of_all_modules() -> None:
    kinds = {json.loads(path.read_text())["qdisc"].split()[0] for path in PATHS}
    assert kinds == {"cocoa", "afcd", "afq", "floq", "predict"}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_module_does_as_a_program_what_was_recorded(path: Path, folder: Path) -> None:
    vector = json.loads(path.read_text())
    kinds = iter(vector.get("kinds", ()))
    lines, departures = [], []
    number = 0
    for time, *rest in vector["events"]:
        if len(rest) == 1:
            lines.append(f"- {time}")
            departures += rest
        else:
            flow, size, tos = rest
            lines.append(f"+ {time} {number} {flow} {size} {tos} {next(kinds, 0)}")
            number += 1
    printed = subprocess.run(
        programs.command(folder, vector["qdisc"]),
        input="\n".join(lines),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.splitlines()
    left = [line.split()[1:] for line in printed if line.startswith("- ")]
    assert [int(number) for number, _ in left] == departures
    dropped = sorted(int(line[2:]) for line in printed if line.startswith("d "))
    assert dropped == vector["drops"]
    came = [row[3] for row in vector["events"] if len(row) == 4]
    marked = [int(n) for n, tos in left if int(tos) & 3 == 3 and came[int(n)] & 3 != 3]
    assert sorted(marked) == vector["marks"]
    assert printed[-1] == "0 queued, 0 bytes"
