"""Packets of a bridge in scenarios: objects and files agree, and only bridges pass them."""

from pathlib import Path

import pytest

import sojourn as sj
from support.shell import Command

TOML = """
duration = "5s"
rtt = "50ms"
links.up = { rate = "10mbit", qdisc = "codel" }
links.down = { rate = "10mbit", qdisc = "codel" }
traffic = [{ type = "bridged", direction = "up" }, { type = "bridged", direction = "down" }]
"""


def test_objects_and_files_give_the_same_scenario() -> None:
    read = sj.Scenario.from_toml(TOML)
    link = sj.Link(rate="10mbit", qdisc="codel")
    built = sj.Scenario(
        duration="5s",
        rtt="50ms",
        links={"up": link, "down": link},
        traffic=[sj.Bridged(direction="up"), sj.Bridged(direction="down")],
    )
    assert built == read
    assert sj.Scenario.from_toml(read.to_toml()) == read


def test_all_packets_of_a_direction_are_one_group() -> None:
    with pytest.raises(sj.ScenarioError, match=r"^traffic\[0\]\.count: too many: 2; expected 1"):
        sj.Scenario.from_toml(TOML.replace('"bridged"', '"bridged", count = 2', 1))


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_only_a_bridge_passes_packets_of_other_machines(
    backend: str, tmp_path: Path, sojourn: Command
) -> None:
    (tmp_path / "bridged.toml").write_text(TOML, encoding="utf-8")
    done = sojourn("run", "bridged.toml", "--on", backend, "--out", "out")
    assert done.returncode == 2
    said = (
        f'sojourn: backend "{backend}" does not support traffic[0].type: packets of other machines'
    )
    assert done.stderr.startswith(said)
    assert not (tmp_path / "out").exists()
