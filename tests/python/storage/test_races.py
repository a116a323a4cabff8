"""`store gc` on a shared store while sweeps write to it."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import obstore
import pytest

import sojourn as sj
from sojourn.storage.objects import Bucket, Item, Objects
from sojourn.storage.store import Store
from sojourn.storage.writer import Writer
from support import buckets
from support.saved import ONE
from support.stores import damage, rows_of

# The clock of a bucket has no fractions of seconds.
TICK_S = 1.1


class Listed:
    """Objects, and what another process does after they were listed for the first time."""

    def __init__(self, objects: Objects, then: Callable[[], object]) -> None:
        self._objects = objects
        self._then: Callable[[], object] | None = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def list(self, prefix: str) -> Sequence[Item]:
        found = self._objects.list(prefix)
        then, self._then = self._then, None
        if then is not None:
            time.sleep(TICK_S)
            then()
        return found


def raced(store: Store, then: Callable[[], object]) -> Store:
    return Store(Listed(store._objects, then))  # type: ignore[arg-type] # noqa: SLF001


def test_a_batch_that_a_writer_has_just_found_stays(store: Store) -> None:
    content = {"a": b"1", "b": b"2"}
    rows_of(store).add(content)
    gc = raced(store, lambda: rows_of(store).add(content))
    assert gc.collect(0.0) == 0
    assert store.verify() == (2, [])
    # Others are removed.
    rows_of(store).add({"c": b"3"})
    time.sleep(TICK_S)
    assert raced(store, lambda: rows_of(store).add(content)).collect(0.0) > 1_000
    assert store.verify() == (2, [])


def test_a_batch_that_has_just_replaced_a_damaged_one_stays(store: Store) -> None:
    rows = rows_of(store)
    damage(store, rows, rows.add({"a": b"1"}))
    gc = raced(store, lambda: rows_of(store).add({"a": b"1"}))
    assert gc.collect(0.0) == 0
    assert store.verify() == (1, [])


def test_a_found_batch_is_as_old_as_the_last_attempt_to_write_it(store: Store) -> None:
    rows_of(store).add({"a": b"1"})
    time.sleep(TICK_S)
    before_s = store._objects.now_s()  # noqa: SLF001
    time.sleep(TICK_S)
    rows_of(store).add({"a": b"1"})
    (item,) = store._objects.list("runs/")  # noqa: SLF001
    assert item.modified_s > before_s


def test_a_file_is_renewed_without_touching_it(tmp_path: Path) -> None:
    # Only the owner of a file may touch it.
    store = Store.at(f"{tmp_path}")
    rows = rows_of(store)
    file = tmp_path / rows.prefix / rows.add({"a": b"1"})
    content = file.read_bytes()
    first = file.stat().st_ino
    rows_of(store).add({"a": b"1"})
    assert file.stat().st_ino != first
    assert file.read_bytes() == content


def test_a_sweep_restores_what_it_wrote_and_nothing_else(store: Store) -> None:
    rows_of(store).add({"old": b"0"})
    sweep = rows_of(store)
    sweep.refresh()
    assert sweep.restore() == 0
    worker = rows_of(store).add({"a": b"1", "b": b"2"})
    assert sweep.load(worker)
    sweep.add({"c": b"3"})
    assert sweep.restore() == 0
    assert store.collect(0.0) > 1_000
    assert store.verify() == (0, [])
    assert sweep.restore() == 2
    assert store.verify() == (3, [])
    again = rows_of(store)
    again.refresh()
    assert [again.find(key) for key in ("old", "a", "b", "c")] == [None, b"1", b"2", b"3"]


def test_all_runs_of_a_sweep_are_stored_when_it_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = Writer.close
    removed = []

    def close_and_collect(writing: Writer) -> int:
        missing = close(writing)
        removed.append(store.collect(0.0))
        return missing

    monkeypatch.setattr(Writer, "close", close_and_collect)
    scenario = sj.Scenario.from_toml(ONE)
    sj.sweep(scenario, {"links.up.qdisc.target": ["1ms", "2ms", "3ms"]}, shared=store.url)
    assert sum(removed) > 1_000
    assert store.verify() == (3, [])


def test_a_store_that_cannot_be_read_at_the_end_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = Writer.close
    folder = tmp_path / "shared"

    def close_and_break(writing: Writer) -> int:
        missing = close(writing)
        folder.rename(tmp_path / "moved")
        folder.write_text("no folder", encoding="utf-8")
        return missing

    monkeypatch.setattr(Writer, "close", close_and_break)
    with pytest.warns(UserWarning, match=f"not all finished runs could be stored: store {folder}"):
        sj.sweep(sj.Scenario.from_toml(ONE), {"rtt": ["5ms"]}, shared=f"{folder}")


@pytest.mark.parametrize("step", ["get", "put"])
def test_a_batch_that_is_removed_while_a_bucket_is_written_is_created(
    server: buckets.Server, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = Store.at(f"s3://{buckets.BUCKET}/{step}")
    rows_of(store).add({"a": b"1"})
    original = getattr(obstore, step)
    removed = []

    def removed_before(at: Any, name: str, *rest: Any, **named: Any) -> Any:
        # Not before the request that finds the batch.
        if not removed and named.get("mode") != "create":
            removed.append(name)
            obstore.delete(at, [name])
        return original(at, name, *rest, **named)

    monkeypatch.setattr(obstore, step, removed_before)
    rows_of(store).add({"a": b"1"})
    assert len(removed) == 1
    assert store.verify() == (1, [])
    assert server.fault is None


def test_a_batch_that_is_always_removed_is_an_error(
    server: buckets.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(Store.at(f"s3://{buckets.BUCKET}/always"))
    rows.add({"a": b"1"})

    def missing(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(Bucket, "_renew", missing)
    with pytest.raises(sj.ResultError, match="parquet: removed 3 times while it was written"):
        rows.add({"a": b"1"})
    assert server.fault is None
