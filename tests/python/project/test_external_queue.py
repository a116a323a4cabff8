"""Plug-ins: the queue of ``examples/external-queue``, wherever a queue is named."""

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core
from sojourn.cli.new_queue import CRATE
from sojourn.execute import processes
from sojourn.queues import plugin
from support.refusals import VALID, refused
from support.shell import ROOT, Command

EXAMPLE = ROOT / "examples/external-queue"
QUEUE = "./libramp.so low 2ms high 20ms"
OBJECTIVE = ("--objective", "min ping_ms_p99")
PYTHON = """
from collections import deque
import sojourn as sj
class Tail(sj.PythonQueue):
    def __init__(self):
        self.packets = deque()
    def enqueue(self, now, packet):
        self.packets.append(packet)
    def dequeue(self, now):
        return self.packets.popleft()
"""


@pytest.fixture(scope="module")
def library() -> Path:
    """Build the example."""
    # With its test, as `cargo test --workspace` builds it: nothing is compiled twice.
    command = ["cargo", "test", "--quiet", "--workspace", "--no-run", "--test", "library"]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / "target/debug/deps/libramp.so"


@pytest.fixture
def folder(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the library, a scenario and a file that is no library."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(library, "libramp.so")
    text = (EXAMPLE / "scenario.toml").read_text(encoding="utf-8")
    text = text.replace("../../target/release/libramp.so", "./libramp.so")
    (tmp_path / "ramp.toml").write_text(text, encoding="utf-8")
    (tmp_path / "s.toml").write_text(VALID.replace('"codel"', f'"{QUEUE}"'), encoding="utf-8")
    (tmp_path / "text.so").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "tail.py").write_text(PYTHON, encoding="utf-8")
    return tmp_path


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("folder")
def test_a_scenario_runs_with_the_queue(sojourn: Command) -> None:
    done = sojourn("run", "ramp.toml", "--json", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    latency = {
        row["arm"]: row["mean"]
        for row in json.loads(done.stdout)["summary"]
        if row["metric"] == "induced_latency_ms"
    }
    assert latency["ramp"] < latency["pfifo"] / 10
    assert "notice: ramp: queue from outside Sojourn" in done.stderr


@pytest.mark.usefixtures("folder")
def test_the_queue_is_shown_with_its_parameters(sojourn: Command) -> None:
    done = sojourn("qdiscs", "./libramp.so")
    assert done.returncode == 0, done.stderr
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert (
        rows[0] == "ramp: A FIFO that signals with a probability that rises with the sojourn time"
    )
    digest = hashlib.sha256(Path("libramp.so").read_bytes()).hexdigest()
    assert f"version 0.1.0, SHA-256 {digest}" in done.stdout
    assert "low time 5ms Sojourn time at which signals begin 1ns to 1000000s" in rows
    assert "low Sojourn default" in rows
    entry = json.loads(sojourn("qdiscs", "./libramp.so", "--json").stdout)
    assert entry["name"] == f"plugin:ramp:{digest[:12]}"
    assert entry["parameters"][0] == {
        "key": "limit",
        "unit": "packets",
        "default": "1000",
        "derived": False,
        "min": 1,
        "max": 100_000_000,
        "range": "1 to 100000000",
        "choices": None,
        "meaning": "Maximum number of packets in the buffer",
        "provenance": "Sojourn default",
    }
    # Loaded queues are not among those of Sojourn.
    assert "ramp" not in sojourn("qdiscs").stdout


REFUSED = [
    ("./libramp.so target 5ms", 'ramp: unknown parameter "target"; expected one of limit, low'),
    ("./libramp.so limit 0", "ramp: limit 0 is out of range; expected 1 to 100000000"),
    ("./libramp.so low 1s", "ramp: low 1s must be below high 50ms"),
    ("./absent.so", "cannot read absent.so: No such file or directory"),
    ("./libramp.so:Ramp", "a plug-in has one queue; expected ./libramp.so"),
    ("./folder.so", "not a regular file; expected a shared library"),
    ("./text.so", "not a shared library: "),
    ("./other.so", "no function sojourn_plugin: not a Sojourn plug-in"),
    ("drr leaf ./text.so", "not a shared library: "),
]


@pytest.mark.parametrize(("queue", "problem"), REFUSED)
def test_what_is_no_queue_is_refused_in_one_line(
    folder: Path, sojourn: Command, queue: str, problem: str
) -> None:
    (folder / "folder.so").mkdir()
    shutil.copy(_core.__file__, folder / "other.so")
    refused(sojourn("compare", "pie", queue), 2, problem)
    change = f"links.up.qdisc={queue}"
    refused(sojourn("run", "s.toml", "-s", change), 2, "links.up.qdisc", problem)
    with pytest.raises(sj.ScenarioError, match=problem.split(":", maxsplit=1)[0]):
        sj.qdisc(queue)


@pytest.mark.usefixtures("folder")
def test_commands_take_a_plug_in(sojourn: Command) -> None:
    for words in (
        ("run", "s.toml", "-s", f"links.down.qdisc={QUEUE}", "--dry-run"),
        ("sweep", "tcp_1up", "-p", "links.*.qdisc=pie,./libramp.so", "--dry-run"),
        ("sweep", "tcp_1up", "--qdisc", QUEUE, "-p", "links.*.qdisc.low=1ms,2ms", "--dry-run"),
        ("tune", "s.toml", "-p", "links.up.qdisc.low=uniform(1ms,9ms)", "--dry-run", *OBJECTIVE),
        ("adversary", "--loser", QUEUE, "--against", "pie", "--dry-run"),
        ("advise", "./libramp.so", "--preset", "vdsl", "--dry-run"),
        ("compare", f"prio leaf {QUEUE} / pfifo", "pie", "--generate"),
    ):
        done = sojourn(*words)
        assert done.returncode == 0, (words, done.stderr)
        assert "plugin:" not in done.stdout, words
    done = sojourn("rfc7928", QUEUE, "--section", "12", "--out", "o")
    assert done.returncode == 0, done.stderr


def test_results_name_the_plug_in_and_its_file(folder: Path) -> None:
    def compared(jobs: int) -> sj.Result:
        return sj.compare(
            ["pfifo", QUEUE, "./tail.py:Tail"],
            link="10mbit",
            traffic="tcp_1up",
            duration="7s",
            warmup="5s",
            replications=2,
            jobs=jobs,
        )

    found = compared(1)
    # The class of Python needs processes, which load the library, too.
    assert found.table().equals(compared(2).table())
    assert found.arms == ["pfifo", "ramp low 2ms high 20ms", "Tail"]
    found.save("result")
    kept = sj.Result.load("result").provenance["external_queues"]
    digest = hashlib.sha256((folder / "libramp.so").read_bytes()).hexdigest()
    assert {"name": f"plugin:ramp:{digest[:12]}", "version": "0.1.0", "sha256": digest} in kept


def test_a_library_that_was_built_again_is_another_queue(folder: Path) -> None:
    def stored() -> tuple[str, int]:
        scenario = sj.Scenario.from_file("s.toml")
        sj.run(scenario, store="runs", jobs=1)
        link = scenario.links["up"]
        assert isinstance(link, sj.Link)
        return str(link.qdisc), sum(1 for _ in (folder / "runs").rglob("*"))

    first = stored()
    assert stored() == first
    with (folder / "libramp.so").open("ab") as stream:
        stream.write(b"\0")
    name, files = stored()
    assert name != first[0]
    assert files > first[1]


def test_a_saved_result_needs_no_library(folder: Path) -> None:
    text = "import sojourn as sj; sj.run(sj.Scenario.from_file('s.toml'), jobs=1).save('saved')"
    subprocess.run([sys.executable, "-c", text], cwd=folder, check=True)
    (folder / "libramp.so").unlink()
    code = (
        "import sojourn as sj\n"
        "found = sj.Result.load('saved')\n"
        "print(found.scenario.links['up'].qdisc)\n"
        "sj.run(found.scenario)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=False, capture_output=True, text=True
    )
    assert done.stdout.startswith("plugin:ramp:")
    assert done.stdout.rstrip().endswith("limit 1000 low 2ms high 20ms")
    assert "the plug-in is not loaded; pass its file" in done.stderr


def test_a_worker_refuses_another_file(folder: Path) -> None:
    scenario = sj.Scenario.from_file("s.toml").checked
    (loaded,) = plugin.loaded(scenario.external_queues)
    assert loaded.file == str(folder / "libramp.so")
    plugin.load_same(loaded)
    payload = processes.payload_of(scenario, [])
    assert processes.prepared(payload) == scenario
    other = loaded._replace(name="plugin:ramp:000000000000", sha256="0" * 64)
    with pytest.raises(
        sj.QueueError, match=r"differs from the loaded file: its SHA-256 is .*; expected 0000"
    ):
        plugin.load_same(other)
    absent = other._replace(file=str(folder / "absent.so"))
    with pytest.raises(sj.QueueError, match=r"cannot read .*absent.so: No such file"):
        plugin.load_same(absent)


def test_the_queue_is_that_of_the_tutorial() -> None:
    tutorial = (ROOT / "crates/qdisc/src/testing/tutorial.rs").read_text(encoding="utf-8")
    example = (EXAMPLE / "src/lib.rs").read_text(encoding="utf-8")
    ours, its = (text.split("\nparameters! {")[1] for text in (tutorial, example))
    ours, its = (text.split("\nmod tests {")[0] for text in (ours, its))
    its = its.removesuffix("\n#[cfg(test)]")
    assert its.strip() == ours.replace('class: Some("Ramp")', "class: None").strip()


def test_a_new_crate_is_written_once(tmp_path: Path, sojourn: Command) -> None:
    done = sojourn("new-queue", "my_ramp", "--rust")
    assert done.returncode == 0, done.stderr
    lines = [line.split("  ")[1] for line in done.stdout.splitlines()[1:]]
    assert lines[0] == "cd my_ramp && cargo build --release"
    assert lines[1].startswith("sojourn compare fq_codel ./target/release/")
    crate = tmp_path / "my_ramp"
    files = sorted(str(file.relative_to(crate)) for file in crate.rglob("*") if file.is_file())
    assert files == sorted(CRATE)
    manifest = tomllib.loads((crate / "Cargo.toml").read_text(encoding="utf-8"))
    assert manifest["dependencies"]["sojourn-plugin"]["path"] == str(ROOT / "crates/plugin")
    refused(sojourn("new-queue", "my_ramp", "--rust"), 2, "NAME my_ramp: my_ramp exists")
    refused(sojourn("new-queue", "crate", "--rust"), 2, "a reserved word")
    refused(sojourn("new-queue", "a", "--sojourn", "x"), 2, "--sojourn", "with --rust only")
    refused(sojourn("new-queue", "a", "--rust", "--sojourn", "x"), 2, "no sources of Sojourn")
    url = "https://example.org/sojourn"
    assert sojourn("new-queue", "b", "--rust", "--sojourn", url).returncode == 0
    assert f'{{ git = "{url}" }}' in (tmp_path / "b/Cargo.toml").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_new_crate_builds_and_runs(tmp_path: Path, sojourn: Command) -> None:
    assert sojourn("new-queue", "my_ramp", "--rust").returncode == 0
    for command in (["cargo", "build", "--offline"], ["cargo", "test", "--offline"]):
        subprocess.run(command, cwd=tmp_path / "my_ramp", check=True, capture_output=True)
    result = sj.compare(
        ["pfifo", f"{tmp_path}/my_ramp/target/debug/libmy_ramp.so limit 20"],
        link="10mbit",
        traffic="tcp_4up",
        duration="7s",
        warmup="5s",
        replications=1,
        jobs=1,
    )
    drops = result.table().group_by("arm").agg(pl.col("drops").sum())
    assert drops["drops"].n_unique() == 2
