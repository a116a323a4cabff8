"""Saved sweeps: all files or none, and nothing is lost silently."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn.scenario.paths import expanded
from support.saved import scenario
from support.saved_kinds import sign
from support.shell import Command, environment

TEXT = """
name = "swept"
duration = "2s"
warmup = "1s"
rtt = "20ms"
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo", loss = "1%" }
links.lan = "unlimited"
traffic = [
    { name = "bulk", type = "tcp", direction = "up" },
    { name = "ping", type = "ping", direction = "up", interval = "50ms" },
]

[sweep.parameters]
"links.down.rate,links.up.rate" = [["4mbit", "1mbit"], ["8mbit", "2mbit"]]
rtt = "10ms,20ms"
"""


def swept(runs: int = 2, *, complete: bool = True, replications: int = 2) -> sj.SweepResult:
    """A sweep of one point, without running it."""
    frame = pl.DataFrame(
        {
            "point": [0] * runs,
            "rtt": ["10ms"] * runs,
            "arm": ["default"] * runs,
            "replication": range(runs),
            "drops": [float(n) for n in range(runs)],
        }
    )
    manifest = {
        "sojourn": {"version": "1", "commit": "c"},
        "scenario": json.loads(scenario().checked.to_json()),
        "scenario_sha256": scenario().hash,
        "space": {"parameters": {"rtt": [["10ms"]]}, "where": [], "sample": None},
        "paths": ["rtt"],
        "points": 1,
        "until": None,
        "replications": replications,
        "most": replications,
        "complete": complete,
    }
    return sj.SweepResult(manifest, frame)


def test_a_sweep_with_fewer_runs_never_replaces_one_with_more(tmp_path: Path) -> None:
    place = tmp_path / "out"
    swept(3, complete=False).save(place)
    with pytest.raises(sj.ResultError, match="contains 3 runs of the sweep, which one with 2 runs"):
        swept(2, complete=False).save(place)
    with pytest.raises(sj.ResultError, match="contains another sweep"):
        swept(9, replications=9).save(place)
    swept(2, complete=True).save(place)
    assert sj.SweepResult.load(place).runs.height == 2


# For each directory, a process that saves a sweep and is killed: each one a little later, and the
# last one not at all. Prints the exit codes.
KILLED = """
import os, signal, sys, time
from sweeps.test_storage import swept
places = sys.argv[1:]
for number, place in enumerate(places):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        result = swept(5)
        os.write(writer, b"x")
        result.save(place, force=True)
        os._exit(0)
    os.read(reader, 1)
    if place != places[-1]:
        time.sleep(number * 2e-4)
        os.kill(child, signal.SIGKILL)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_save_that_is_killed_leaves_the_old_sweep_or_the_new_one(tmp_path: Path) -> None:
    """A fault of each operation of the protocol is a test of ``sojourn-store``."""
    places = [tmp_path / f"{number}" for number in range(60)]
    for place in places:
        swept(3).save(place)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, places)],
        env={**environment(), "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    heights = [sj.SweepResult.load(place).runs.height for place in places]
    found = set(zip(map(int, done.stdout.split()), heights, strict=True))
    assert {(-9, 3), (0, 5)} <= found <= {(-9, 3), (-9, 5), (0, 5)}
    for place in places:
        # The next save finishes or removes what is left.
        swept(4).save(place, force=True)
        assert sj.SweepResult.load(place).runs.height == 4
        names = {"sweep.json", "runs.parquet", "points.parquet"}
        assert {path.name for path in place.iterdir()} == names


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_a_commit_of_an_earlier_version_is_completed(tmp_path: Path, moved: int) -> None:
    """Earlier versions moved the files in the order of their names, in a protocol of their own."""
    new, place = tmp_path / "new", tmp_path / "place"
    swept(5).save(new)
    swept(3).save(place)
    commit = place / ".sojourn-commit"
    new.rename(commit)
    for path in sorted(commit.iterdir())[:moved]:
        path.rename(place / path.name)
    assert sj.SweepResult.load(place).runs.height == 5
    with pytest.raises(sj.ResultError, match="contains the complete sweep"):
        swept(4, complete=False).save(place)
    assert not commit.exists()
    assert sj.SweepResult.load(place).runs.height == 5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("paths", "rtt"),
        ("paths", ["rtt", "evil"]),
        ("space", {}),
        ("space", {"parameters": {"rtt": "10ms"}, "where": [], "sample": None}),
        ("space", {"parameters": {"rtt": []}, "where": [1], "sample": None}),
        ("files", None),
        ("points", "many"),
    ],
)
def test_a_manifest_from_elsewhere_is_refused_in_one_line(
    tmp_path: Path, key: str, value: object
) -> None:
    swept().save(tmp_path)
    sign(tmp_path, "sweep", lambda manifest: manifest.update({key: value}))
    with pytest.raises(sj.DamagedResultError) as error:
        sj.SweepResult.load(tmp_path)
    assert "\n" not in f"{error.value}"


def test_files_that_no_sweep_has_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "runs.parquet").write_bytes(b"mine")
    with pytest.raises(sj.ResultError, match="contains other files"):
        swept().save(tmp_path, force=True)
    assert (tmp_path / "runs.parquet").read_bytes() == b"mine"
    linked = tmp_path / "linked"
    linked.mkdir()
    (tmp_path / "sweep.json").write_text("{}", encoding="utf-8")
    (linked / ".sojourn-commit").symlink_to(tmp_path)
    with pytest.raises(sj.ResultError, match="no sweep"):
        sj.SweepResult.load(linked)


def test_a_directory_that_cannot_be_written_is_refused_before_the_runs(
    sojourn: Command, tmp_path: Path
) -> None:
    file = tmp_path / "zipped.toml"
    file.write_text(TEXT, encoding="utf-8")
    # Nobody can create files there, not even root.
    refused = sojourn("sweep", f"{file}", "--out", "/proc/sweep/out")
    assert refused.returncode == 3
    assert refused.stderr.startswith("sojourn: cannot write /proc/sweep/out: ")
    assert refused.stderr.count("\n") == 1


def test_a_star_does_not_skip_what_leaves_a_key_at_its_default() -> None:
    scenario = sj.Scenario.from_toml(TEXT[: TEXT.index("[sweep")])
    document = scenario.checked.to_json()
    found = json.loads(document)
    # Only the link `down` sets a loss, and no traffic sets a DSCP.
    assert set(expanded(found, "links.*.loss")) == {"links.up.loss", "links.down.loss"}
    assert expanded(found, "traffic[*].dscp") == ["traffic[0].dscp", "traffic[1].dscp"]
    assert expanded(found, "traffic[*].mss") == ["traffic[0].mss"]
    with pytest.raises(sj.ScenarioError, match="nothing in the scenario matches"):
        expanded(found, "links.*.lost")


def test_no_parameter_of_a_zip_is_dropped(sojourn: Command, tmp_path: Path) -> None:
    file = tmp_path / "zipped.toml"
    file.write_text(TEXT, encoding="utf-8")
    dry = ("sweep", f"{file}", "--dry-run")
    assert "4 points" in sojourn(*dry).stdout
    one = sojourn(*dry, "-p", "links.up.rate=3mbit")
    assert one.returncode == 2
    assert "links.up.rate: [sweep.parameters] changes it together with links.down.rate" in (
        one.stderr
    )
    assert one.stderr.count("\n") == 1
    both = sojourn(*dry, "-p", "links.up.rate=3mbit", "-p", "links.down.rate=3mbit,9mbit")
    assert "4 points" in both.stdout, both.stderr
    assert "1mbit" not in both.stdout


def test_a_sweep_is_read_while_it_is_replaced(tmp_path: Path) -> None:
    results = [swept(3), swept(5)]
    results[0].save(tmp_path)
    with ThreadPoolExecutor(1) as executor:
        saving = executor.submit(
            lambda: [results[n % 2].save(tmp_path, force=True) for n in range(60)]
        )
        reads = 0
        while not saving.done():
            assert sj.SweepResult.load(tmp_path).runs.height in {3, 5}
            reads += 1
        saving.result()
    assert reads > 10
