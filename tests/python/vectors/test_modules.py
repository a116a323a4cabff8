"""The kernel modules, compiled as programs with sanitizers, do what was recorded.

A program has no GSO packets, locks, timers and netlink messages, and its parent only counts:
``make modules`` tests these in a kernel.
"""

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
    number, age = 0, -vector.get("made_ns", 0)
    for at, *rest in vector["events"]:
        time = age + at
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


def run(folder: Path, qdisc: str, *events: str) -> list[str]:
    """Send events to a program, which fails if a parent counts otherwise."""
    return subprocess.run(
        programs.command(folder, qdisc),
        input="\n".join(events),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    ).stdout.splitlines()


KINDS = ("cocoa", "afcd", "afq", "floq", "predict")


@pytest.mark.parametrize("kind", KINDS)
def test_a_lower_limit_drops_what_a_busy_device_gave_back(kind: str, folder: Path) -> None:
    arrivals = [f"+ {n} {n} 0 1500 0 3" for n in range(1, 4)]
    printed = run(folder, kind, *arrivals, "r 4", "r 5", "r 6", "c 7 0 1", "- 8", "- 9")
    assert [line for line in printed if line != "."] == ["d 1", "d 2", "- 3 0", "0 queued, 0 bytes"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_device_without_an_mtu_sends(kind: str, folder: Path) -> None:
    events = [f"{sign} {n * 100_000_000} {n} 0 1500 0 3" for n, sign in enumerate("+" * 9)]
    printed = run(folder, f"{kind} mtu 0", *events, *("- 900000000",) * 9)
    assert [line.split()[1] for line in printed if line.startswith("-")] == [*"012345678"]


@pytest.mark.parametrize("name", ["predict_drop", "predict_fallback", "afcd"])
def test_a_parent_that_peeks_counts_the_packets(name: str, folder: Path) -> None:
    vector = json.loads((VECTORS / f"modules/{name}.json").read_text())
    events = []
    for number, (time, *rest) in enumerate(vector["events"]):
        if len(rest) == 1:
            events += [f"p {time}", f"- {time}"]
        else:
            flow, size, tos = rest
            events.append(f"+ {time} {number} {flow} {size} {tos} 3")
    last = vector["events"][-1][0]
    printed = run(folder, vector["qdisc"], *events, *(f"- {last}",) * 1_000)
    assert printed[-1] == "0 queued, 0 bytes"
