"""Stores that several machines share: folders and buckets."""

import hashlib
import io
import json
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core
from sojourn.cli.app import app
from sojourn.storage import batch, writer
from sojourn.storage.store import Store
from sojourn.storage.writer import Writer
from support import buckets
from support.buckets import Server
from support.saved import ONE
from support.stores import damage, rows_of


def test_rows_are_found_by_all_that_open_the_store(store: Store) -> None:
    one, other = rows_of(store), rows_of(store)
    one.refresh()
    name = one.add({"a": b"1", "b": b"\0\xff"})
    assert batch.count(name) == 2
    assert other.find("a") is None
    other.refresh()
    assert (other.find("a"), other.find("b"), other.find("c")) == (b"1", b"\0\xff", None)
    # Again, as after an answer that was lost.
    assert one.add({"a": b"1", "b": b"\0\xff"}) == name
    assert other.load(name)
    # The arms of a scenario, its replications and its name do not matter; its seed does.
    third = rows_of(store, ONE.replace("replications = 1", "replications = 9"))
    assert third.prefix == one.prefix
    assert rows_of(store, f"seed = 9\n{ONE}").prefix != one.prefix
    (listed,) = store.scenarios()
    assert (listed["runs"], listed["active"], listed["commit"]) == (2, False, _core.commit())
    assert listed["age_s"] < 60
    assert store.verify() == (2, [])


def test_a_damaged_batch_is_named_ignored_and_written_again(store: Store) -> None:
    rows = rows_of(store)
    name = rows.add({"a": b"1"})
    rows.add({"b": b"2"})
    damage(store, rows, name)
    read = rows_of(store)
    read.refresh()
    assert (read.find("a"), read.find("b")) == (None, b"2")
    (fault,) = read.damaged
    assert fault == (
        f"{store.url}/{rows.prefix}{name}: its content does not have the digest that it contains"
    )
    other = rows_of(store)
    assert not other.load(name)
    place, reason = fault.split(": ")
    assert store.verify() == (2, [(place, 1, reason)])
    # It was read only.
    assert store.verify()[1]
    assert store.scenarios()[0]["commit"] == _core.commit()
    assert read.remains(fault)
    assert read.add({"a": b"1"}) == name
    assert not read.remains(fault)
    assert store.verify() == (2, [])
    assert other.load(name)
    assert other.find("a") == b"1"


def test_a_batch_that_another_version_wrote_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(store)
    objects = store._objects  # noqa: SLF001
    content = {f"{n}": bytes([n]) * 50 for n in range(9)}
    name = rows.add(content)
    first = objects.get(rows.prefix + name)
    # Another version of polars may compress the same rows in another way.
    write = pl.DataFrame.write_parquet
    monkeypatch.setattr(
        pl.DataFrame,
        "write_parquet",
        lambda frame, stream, *, compression, metadata: write(
            frame, stream, compression={"zstd": "uncompressed"}[compression], metadata=metadata
        ),
    )
    assert batch.encode(content, rows.about)[1] != first
    assert rows_of(store).add(content) == name
    assert objects.get(rows.prefix + name) == first
    damage(store, rows, name)
    rows_of(store).add(content)
    assert store.verify() == (9, [])


def test_every_flipped_byte_of_a_batch_is_found() -> None:
    about = batch.About(scenario="s", scenario_sha256="0", version="1", commit="c")
    name, data = batch.encode({f"{n}": secrets.token_bytes(40) for n in range(20)}, about)
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :]
        with pytest.raises(batch.DamagedError):
            batch.decode(name, flipped)
    for length in range(0, len(data), 7):
        with pytest.raises(batch.DamagedError):
            batch.decode(name, data[:length])
    with pytest.raises(batch.DamagedError, match="its name is not that of a batch"):
        batch.decode("x.parquet", data)
    with pytest.raises(batch.DamagedError, match="it contains other runs than its name says"):
        batch.decode(batch.name_of(["a"]), data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.drop("commit"), "it has other columns; expected key, row, scenario, "),
        (lambda frame: frame.with_columns(key=pl.lit(1)), "of another type: key is Int32"),
        (lambda frame: frame.with_columns(row=pl.lit(7)), "of another type: row is Int32"),
        (lambda frame: frame.with_columns(key=pl.lit(None, pl.String)), "some values: key"),
        (lambda frame: frame.with_columns(row=pl.lit(None, pl.Binary)), "some values: row"),
        (lambda frame: frame.with_columns(row=pl.lit([b""])), "it has a column that .* row"),
        (lambda frame: frame.clear(), "it contains other runs than its name says"),
    ],
)
def test_a_forged_batch_is_ignored(
    store: Store, change: Callable[[pl.DataFrame], pl.DataFrame], said: str
) -> None:
    """Its digest was computed again, as a hostile writer of the store would do."""
    about = rows_of(store).about
    content = {"a": b"1", "b": b"2"}
    stream = io.BytesIO()
    frame = change(pl.read_parquet(batch.encode(content, about)[1]))
    frame.write_parquet(stream, compression="zstd", metadata={"sojourn.sha256": "0" * 64})
    blank, name = stream.getvalue(), batch.name_of(content)
    assert blank.count(b"0" * 64) == 1
    forged = blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode())
    with pytest.raises(batch.DamagedError, match=said):
        batch.decode(name, forged)
    rows = rows_of(store)
    store._objects.put(rows.prefix + name, forged)  # noqa: SLF001
    rows.refresh()
    assert rows.find("a") is None
    ((_, runs, fault),) = store.verify()[1]
    assert runs == 2
    assert fault in rows.damaged[0]
    # The batch of the same runs replaces it.
    rows.add(content)
    assert store.verify() == (2, [])


def test_two_writers_lose_nothing(store: Store) -> None:
    def write(part: int) -> None:
        rows = rows_of(store)
        for number in range(8):
            # Half of the batches are those of the other writer.
            rows.add({f"{number}": b"row"} if number % 2 else {f"{part} {number}": b"row"})

    threads = [threading.Thread(target=write, args=(part,)) for part in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.verify() == (12, [])


def test_runs_that_are_old_by_the_clock_of_the_store_are_removed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of(store).add({"a": b"1"})
    # The clock of this machine has jumped by a year.
    later = time.time() + 365 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    assert store.collect(3_600.0) == 0
    assert store.verify() == (1, [])
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert store.scenarios()[0]["age_s"] == 0.0
    assert store.collect(0.0) > 1_000
    assert store.verify() == (0, [])
    assert store.scenarios() == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (buckets.FULL, "XMinioStorageFull: Storage backend has reached its minimum"),
        (buckets.DENIED, "AccessDenied: Access Denied"),
    ],
)
def test_rows_wait_until_a_bucket_can_be_written(
    server: Server, monkeypatch: pytest.MonkeyPatch, fault: tuple[str, str, str], said: str
) -> None:
    monkeypatch.setattr(writer, "RETRY_S", 0.1)
    rows = rows_of(Store.at(f"s3://{buckets.BUCKET}/{fault[1]}"))
    server.fault = fault
    writing = Writer(0.05)
    writing.append(rows, "a", b"1")
    deadline = time.monotonic() + 30
    while writing.failure is None and time.monotonic() < deadline:
        time.sleep(0.05)
    failure = writing.failure or ""
    assert failure.startswith(f"store s3://{buckets.BUCKET}/{fault[1]}/{rows.prefix}")
    assert failure.endswith(said)
    writing.append(rows, "b", b"2")
    server.fault = None
    writing.close()
    assert (writing.failure, writing.written) == (None, 2)
    rows.refresh()
    assert (rows.find("a"), rows.find("b")) == (b"1", b"2")


def test_a_writer_that_ends_says_why_rows_are_missing(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("no folder")
    with Writer(0.01) as writing:
        writing.append(rows_of(Store.at(f"{place}")), "a", b"1")
    assert (writing.failure or "").startswith(f"store {place}/runs")
    assert (writing.failure or "").endswith("Not a directory")


def test_a_writer_survives_any_error_and_counts_lost_rows() -> None:
    class Broken:
        def add(self, _rows: Mapping[str, bytes]) -> None:
            message = "no such codec"
            raise ValueError(message)

    writing, broken = Writer(0.01), Broken()
    writing.append(broken, "a", b"1")
    writing.append(broken, "b", b"2")
    assert writing.close() == 2
    assert writing.failure == "ValueError: no such codec"
    assert writing.written == 0


def test_a_writer_has_one_thread_and_keeps_the_rows_of_each_destination(tmp_path: Path) -> None:
    class Broken:
        def add(self, _rows: Mapping[str, bytes]) -> None:
            message = "no space"
            raise _core.ResultError(message)

    store = Store.at(f"{tmp_path}")
    scenario = sj.Scenario.from_toml(ONE)
    places = [store.rows_of(scenario.replace(rtt=f"{n}ms").checked) for n in range(20, 40)]
    assert len({place.prefix for place in places}) == len(places)
    before = threading.active_count()
    writing = Writer(0.01)
    assert threading.active_count() == before
    writing.append(Broken(), "lost", b"0")
    for number, place in enumerate(places):
        writing.append(place, f"{number:032x}", b"%d" % number)
        assert threading.active_count() == before + 1
    # A destination that fails does not keep the others from being written.
    assert (writing.close(), writing.failure, writing.written) == (1, "no space", len(places))
    assert threading.active_count() == before
    for number, place in enumerate(places):
        assert place.find(f"{number:032x}") == b"%d" % number


def test_a_full_folder_has_no_part_of_a_batch(mounted: Callable[..., Path]) -> None:
    place = mounted("small", "-t", "tmpfs", "-o", "size=64k", "none")
    rows = rows_of(Store.at(f"{place}"))
    with pytest.raises(_core.ResultError, match=r"\.parquet: No space left on device"):
        rows.add({"a": secrets.token_bytes(100_000)})
    assert [path for path in place.rglob("*") if path.is_file()] == []
    rows.add({"b": b"2"})
    assert Store.at(f"{place}").verify() == (1, [])


def test_what_a_dead_writer_left_is_no_batch(tmp_path: Path) -> None:
    store = Store.at(f"{tmp_path}")
    rows = rows_of(store)
    rows.add({"a": b"1"})
    left = tmp_path / rows.prefix / ".writing-0123"
    left.write_bytes(b"half of a b")
    assert store.verify() == (1, [])
    assert store.scenarios()[0]["runs"] == 1
    store.collect(86_400.0)
    assert left.exists(), "its writer may be alive"
    os.utime(left, (0, 0))
    store.collect(86_400.0)
    assert not left.exists()
    assert store.verify() == (1, [])


@pytest.mark.parametrize(
    "place",
    ["", "s3://", "s3:///prefix", "s3:/x", "s3:x", "gs://bucket/prefix", "http://localhost/x"],
)
def test_a_place_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(_core.ScenarioError, match="expected s3://bucket/prefix or a directory"):
        Store.at(place)


@pytest.mark.usefixtures("server")
def test_a_bucket_that_does_not_exist_is_named() -> None:
    with pytest.raises(_core.ResultError, match=r"^store s3://none/x: NoSuchBucket: "):
        rows_of(Store.at("s3://none/x")).refresh()


def test_a_server_that_does_not_answer_is_named(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(_core.ResultError, match=r"error sending request \(http://127.0.0.1:1/"):
        rows_of(Store.at("s3://team/x")).refresh()
    assert server.fault is None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(_core.UnavailableError, match=r"pip install obstore"):
        Store.at("s3://team/x")


def test_the_store_commands_take_a_shared_store(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        code = app(["store", *words], standalone_mode=False)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    rows = rows_of(store)
    name = rows.add({"a": b"1", "b": b"2"})
    code, out, _ = run("ls", store.url, "--json")
    (listed,) = json.loads(out)
    assert (code, listed["store"], listed["runs"]) == (0, store.url, 2)
    assert "2 runs of 1 scenario  " in run("du", store.url)[1]
    assert run("verify", store.url)[:2] == (0, "2 records, 0 damaged\n")
    damage(store, rows, name)
    code, out, err = run("verify", store.url)
    assert (code, out) == (4, "2 records, 2 damaged\n")
    assert f"error: {store.url}/{rows.prefix}{name}: 2 damaged rows: its content" in err
    assert "the file stays until `sojourn store gc` removes it" in err
    assert run("gc", store.url)[1] == "removed 0 B\n"
    # The size depends on the name of the commit.
    assert re.fullmatch(r"removed 2\.\d kB\n", run("gc", store.url, "--older-than", "0s")[1])
    assert "no runs" in run("ls", store.url)[1]
    assert run("verify", store.url)[:2] == (0, "0 records, 0 damaged\n")


@pytest.mark.parametrize("command", ["ls", "du", "verify", "gc"])
def test_a_place_without_a_store_is_named(tmp_path: Path, command: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("text", encoding="utf-8")
    for name, said in (("none", "does not exist"), ("other", "is not a store")):
        place = tmp_path / name
        expected = f"^store {place}: {said}; expected one that a sweep has created$"
        with pytest.raises(_core.ResultError, match=expected):
            app(["store", command, f"{place}"], standalone_mode=False)
    assert not (tmp_path / "none").exists()
    assert len(list((tmp_path / "other").iterdir())) == 1
