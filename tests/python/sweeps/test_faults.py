"""Sweeps whose stores have faults: full, read-only, damaged, of another time, with two writers."""

import contextlib
import os
import subprocess
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.execute import runs
from sojourn.execute.local import LocalExecutor
from sojourn.execute.runs import LocalRowStore, Row, Run
from sojourn.storage.store import Store
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.run import SweepPlan, execute, prepared
from support import buckets
from support.buckets import Server
from support.shell import environment
from support.stored import COMMAND, segments

TEXT = """
name = "swept"
duration = "2s"
warmup = "1s"
rtt = "20ms"
replications = 4
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo" }
traffic = [{ type = "tcp", direction = "up" }, { type = "ping", direction = "up" }]
"""
GIVEN = {"links.up.rate": ["2mbit", "4mbit", "6mbit"]}
RUNS = 12
YEAR_S = 365 * 86_400


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


@pytest.fixture(scope="module")
def wanted(base: sj.Scenario) -> sj.SweepResult:
    """The result without a store."""
    return sj.sweep(base, GIVEN)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with buckets.server() as started:
        for name, value in started.environment.items():
            monkeypatch.setenv(name, value)
        yield started


def stored(store: Path) -> int:
    """Number of stored runs, without the notes that begin the segments."""
    return _core.RunStore.verify(store)[0] - len(segments(store))


class _Executor(LocalExecutor):
    """Receives the work before the first run, as a cluster does."""

    opened = 0

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        before = len(list(Path("/proc/self/fd").iterdir()))
        every = list(parts)
        type(self).opened = len(list(Path("/proc/self/fd").iterdir())) - before
        yield from LocalExecutor.execute(self, every)


def test_a_sweep_with_many_groups_keeps_few_files_open(base: sj.Scenario, tmp_path: Path) -> None:
    values = {"duration": [f"{1.5 + n / 100:g}s" for n in range(12)]}
    planned = prepared(SweepPlan(base, values, replications=1))
    for reused in (0, 12):
        store = LocalRowStore(store=_core.RunStore(tmp_path))
        execution = Execution(replications=1, executor=_Executor(jobs=1), store=store)
        found = execute(planned, execution)
        assert (found.runs.height, execution.reused) == (12, reused)
        assert execution.failure is None
        # Those of some groups.
        assert _Executor.opened <= 4 * runs.OPEN
        assert (_Executor.opened > 0) == (reused == 0)


def all_again(base: sj.Scenario, wanted: sj.SweepResult, **stores: object) -> int:
    """Repeat the sweep, and return how many runs were stored before it asked for the first one."""
    counts: list[int] = []
    found = sj.sweep(base, GIVEN, progress=lambda done, _: counts.append(done), **stores)  # type: ignore[arg-type]
    assert found.runs.equals(wanted.runs)
    return next(count for count in counts if count)


@pytest.mark.parametrize("kind", ["store", "shared"])
def test_a_full_disk_loses_nothing(
    base: sj.Scenario, wanted: sj.SweepResult, mounted: Callable[..., Path], kind: str
) -> None:
    place = mounted("small", "-t", "tmpfs", "-o", "size=64k", "none")
    filler = place / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as stream:
        # Ends when the disk is full.
        while stream.write(bytes(4096)):
            pass
    with pytest.warns(UserWarning, match="No space left on device") as warned:
        found = sj.sweep(base, GIVEN, **{kind: place})
    assert len(warned) == 1
    assert found.runs.equals(wanted.runs)
    filler.unlink()
    # What was stored is whole, and the rest is stored now.
    sj.sweep(base, GIVEN, **{kind: place})
    assert all_again(base, wanted, **{kind: place}) > 0
    assert (stored(place) if kind == "store" else Store.at(f"{place}").verify()[0]) == RUNS


def test_a_read_only_store_is_read(
    base: sj.Scenario, wanted: sj.SweepResult, mounted: Callable[..., Path]
) -> None:
    place = mounted("fixed", "-t", "tmpfs", "none")
    fewer = {"links.up.rate": GIVEN["links.up.rate"][:2]}
    sj.sweep(base, fewer, shared=place)
    subprocess.run(["mount", "-o", "remount,ro", f"{place}"], check=True)  # noqa: S607
    counts: list[int] = []
    with pytest.warns(UserWarning, match="could be stored: store .*Read-only file system"):
        found = sj.sweep(base, GIVEN, shared=place, progress=lambda done, _: counts.append(done))
    assert found.runs.equals(wanted.runs)
    assert 8 in counts
    assert Store.at(f"{place}").verify() == (8, [])


def test_a_bucket_that_is_full_for_some_time_has_all_runs_at_the_end(
    base: sj.Scenario, wanted: sj.SweepResult, server: Server, tmp_path: Path
) -> None:
    shared = f"s3://{buckets.BUCKET}/runs"
    server.fault = buckets.FULL
    local = tmp_path / "local"
    with pytest.warns(UserWarning, match="XMinioStorageFull: Storage backend has reached"):
        found = sj.sweep(base, GIVEN, shared=shared, store=local)
    assert found.runs.equals(wanted.runs)
    server.fault = None
    assert Store.at(shared).verify() == (0, [])
    # The store of the user has them, and shares them now.
    assert all_again(base, wanted, shared=shared, store=local) == RUNS
    assert stored(local) == RUNS
    assert Store.at(shared).verify() == (RUNS, [])
    # Another machine finds them.
    assert all_again(base, wanted, shared=shared, store=tmp_path / "other") == RUNS


def test_a_damaged_record_is_repeated(
    base: sj.Scenario, wanted: sj.SweepResult, tmp_path: Path
) -> None:
    sj.sweep(base, GIVEN, store=tmp_path)
    segment = max(segments(tmp_path), key=lambda path: path.stat().st_size)
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0x10
    segment.write_bytes(content)
    assert [count for _, count in _core.RunStore.verify(tmp_path)[1]] == [1]
    assert all_again(base, wanted, store=tmp_path) == RUNS - 1


@pytest.mark.parametrize("shift_s", [YEAR_S, -20 * 86_400])
def test_a_clock_that_jumps_has_no_effect(
    base: sj.Scenario, wanted: sj.SweepResult, tmp_path: Path, shift_s: int
) -> None:
    stores = {"store": tmp_path / "local", "shared": tmp_path / "shared"}
    for kind, place in stores.items():
        sj.sweep(base, GIVEN, **{kind: place})
        for path in place.rglob("*"):
            # As seen after the clock was set back by a year, or forward by 20 days.
            os.utime(path, (time.time() + shift_s,) * 2)
        assert all_again(base, wanted, **{kind: place}) == RUNS
    assert Store.at(f"{stores['shared']}").collect(3_600.0) == 0 or shift_s < 0


@pytest.mark.parametrize("options", [(), ("--shared", "shared")])
def test_two_writers_lose_nothing(
    base: sj.Scenario, tmp_path: Path, store: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "s.toml").write_text(TEXT.replace("= 4", "= 40"), encoding="utf-8")
    words = ["sweep", "s.toml", "-p", "links.up.rate=2mbit,4mbit,6mbit", *options]
    running = [
        subprocess.Popen(
            [*COMMAND, *words, "--out", name],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "other")
    ]
    for process in running:
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0
        assert "warning" not in said
    one, other = (tmp_path / name / "runs.parquet" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    many = base.replace(replications=40)
    calls: list[int] = []
    kind, place = ("shared", tmp_path / "shared") if options else ("store", store)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sj.sweep(many, GIVEN, progress=lambda done, _: calls.append(done), **{kind: place})
    assert set(calls) <= {0, 40, 80, 120}, "every run was stored"
