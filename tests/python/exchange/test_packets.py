"""Exports of packets: the run is repeated, and only a run with the same records is written."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core
from support.live_runs import need_live_runs
from support.refusals import refused
from support.saved import names
from support.shell import Command

SCENARIO = """
name = "packets"
duration = "4s"
warmup = "1s"
rtt = "20ms"
seed = 3
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "fq_codel" }
traffic = [{ type = "tcp", direction = "up" }, { type = "ping", direction = "up" }]
"""
ARMS = """
[[arms]]
name = "a b"
set = { "links.up.qdisc" = "pie" }

[[arms]]
name = "a_b"
set = { "links.up.qdisc" = "pfifo" }
"""


def written(folder: Path, text: str = SCENARIO) -> None:
    """Write the scenario."""
    (folder / "s.toml").write_text(text, encoding="utf-8")


def test_an_export_has_the_packets_of_the_run(sojourn: Command, tmp_path: Path) -> None:
    written(tmp_path)
    ran = sojourn("run", "s.toml", "--pcap", "s.pcapng", "--out", "r")
    assert ran.returncode == 0, ran.stderr
    done = sojourn("export", "r", "--format", "pcapng")
    assert (done.returncode, done.stderr) == (0, "wrote 1 file to r-pcapng\n")
    assert names(tmp_path / "r-pcapng") == ["default.pcapng"]
    exported = tmp_path / "r-pcapng" / "default.pcapng"
    assert exported.read_bytes() == (tmp_path / "s.pcapng").read_bytes()
    refused(sojourn("export", "r", "--format", "pcapng"), 3, "it exists; --force replaces it")
    exported.write_bytes(b"changed")
    assert sojourn("export", "r", "--format", "pcapng", "--force").returncode == 0
    assert exported.read_bytes() == (tmp_path / "s.pcapng").read_bytes()


def test_each_run_has_its_packets(sojourn: Command, tmp_path: Path) -> None:
    written(tmp_path, SCENARIO + ARMS)
    ran = sojourn("run", "s.toml", "--replications", "2", "--out", "r")
    assert ran.returncode == 0, ran.stderr
    done = sojourn("export", "r", "--format", "pcapng", "--out", "all")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "all") == [
        *("a_b-0.pcapng", "a_b-0_2.pcapng", "a_b-1.pcapng", "a_b-1_2.pcapng")
    ]
    done = sojourn("export", "r", "--format", "pcapng", "--replication", "1", "--out", "second")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "second") == ["a_b.pcapng", "a_b_2.pcapng"]
    all_of_them = {(tmp_path / "all" / name).read_bytes() for name in names(tmp_path / "all")}
    assert len(all_of_them) == 4
    assert (tmp_path / "second" / "a_b_2.pcapng").read_bytes() in all_of_them
    done = sojourn("export", "r", "--format", "pcapng", "--replication", "0")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "r-pcapng") == ["a_b.pcapng", "a_b_2.pcapng"]
    alone = sojourn("run", "s.toml", "--arm", "a_b", "--replications", "1", "--pcap", "a.pcapng")
    assert alone.returncode == 0, alone.stderr
    of_arm = (tmp_path / "r-pcapng" / "a_b_2.pcapng").read_bytes()
    assert of_arm == (tmp_path / "a.pcapng").read_bytes()
    assert of_arm != (tmp_path / "r-pcapng" / "a_b.pcapng").read_bytes()


def small() -> sj.Result:
    """A short run."""
    return sj.run(sj.Scenario.from_toml(SCENARIO).replace(duration="2s"))


def test_a_repeated_run_with_other_records_is_not_written(tmp_path: Path) -> None:
    result = small()
    changed = result.links.with_columns(pl.col("sent_packets") + 1)
    result.__dict__["links"] = changed
    with pytest.raises(sj.ResultError, match=r'"default": the repeated run differs .* table links'):
        sj.export(result, tmp_path, "pcapng")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("version", "0.0.9", r"the result is of Sojourn 0\.0\.9 .*record packets .* pcap"),
        ("commit", "0123", r"\(commit 0123"),
    ],
)
def test_a_result_of_another_build_is_refused(
    key: str, value: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = small()
    manifest = result.provenance
    manifest["sojourn"][key] = value
    monkeypatch.setattr(type(result), "provenance", manifest)
    with pytest.raises(sj.ResultError, match=said):
        sj.export(result, tmp_path, "pcapng")
    assert names(tmp_path) == []


def test_a_live_result_is_refused(sojourn: Command, tmp_path: Path) -> None:
    need_live_runs()
    written(tmp_path)
    ran = sojourn("run", "s.toml", "-s", "duration=2s", "--on", "live", "--out", "r")
    assert ran.returncode == 0, ran.stderr
    done = sojourn("export", "r", "--format", "pcapng")
    refused(done, 3, "the packets of a live run cannot be repeated; record packets .* --pcap")
    assert names(tmp_path) == ["r", "s.toml"]


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = small()

    class Failing:
        """A capture whose file has no room."""

        failure = "No space left on device"

        def __init__(self, path: Path, *, state: bool) -> None:
            self.real = real(path, state=state)

    real, run = _core.Capture, _core.run
    monkeypatch.setattr(_core, "Capture", Failing)
    monkeypatch.setattr(
        _core, "run", lambda *words, capture, **more: run(*words, capture=capture.real, **more)
    )
    with pytest.raises(sj.ResultError, match=r"default\.pcapng: No space left on device"):
        sj.export(result, tmp_path, "pcapng")
    assert names(tmp_path) == []
