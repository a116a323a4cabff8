"""Directories with a manifest, tables and texts."""

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from sojourn import _core
from sojourn.storage import saved
from sojourn.storage.saved import Layout
from support.saved import scenario

LAYOUT = Layout(
    kind="result of guess",
    manifest="guess.json",
    identity=("seed",),
    fields={"seed": int},
    columns=lambda _: {"trials": {"trial": saved.WHOLE}},
    tables=("trials",),
    texts=("best.toml",),
)
SOJOURN = {"version": "1", "commit": "c"}
SCENARIO = json.loads(scenario().checked.to_json())
FRAME = pl.DataFrame({"trial": [1, 2]})


def save(place: Path, seed: int, text: str | None, *, force: bool = False) -> str:
    manifest = {"sojourn": SOJOURN, "scenario": SCENARIO, "seed": seed}
    return LAYOUT.save(place, manifest, {"trials": FRAME}, {"best.toml": text}, force=force)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    digest = save(place, 1, "best")
    found = LAYOUT.load(place)
    assert found.manifest == {"sojourn": SOJOURN, "scenario": SCENARIO, "seed": 1}
    written = json.loads((place / "guess.json").read_text(encoding="utf-8"))
    assert found.digest == written["manifest_sha256"] == digest
    assert found.tables["trials"].equals(FRAME)
    assert found.texts == {"best.toml": "best"}


def test_another_result_is_replaced_by_force_with_all_of_its_files(tmp_path: Path) -> None:
    save(tmp_path, 1, "best")
    with pytest.raises(_core.ResultError, match="contains another result of guess"):
        save(tmp_path, 2, None)
    assert LAYOUT.load(tmp_path).texts == {"best.toml": "best"}
    save(tmp_path, 2, None, force=True)
    assert LAYOUT.load(tmp_path).texts == {}
    assert {path.name for path in tmp_path.iterdir()} == {"guess.json", "trials.parquet"}


def test_a_check_leaves_nothing(tmp_path: Path) -> None:
    LAYOUT.check(tmp_path / "a" / "b", {"seed": 1}, force=False)
    assert list(tmp_path.iterdir()) == []
    save(tmp_path, 1, None)
    before = sorted(path.name for path in tmp_path.iterdir())
    LAYOUT.check(tmp_path, {"seed": 1}, force=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    with pytest.raises(_core.ResultError, match="contains another result of guess"):
        LAYOUT.check(tmp_path, {"seed": 2}, force=False)


def test_links_are_not_replaced(tmp_path: Path) -> None:
    victim, place = tmp_path / "victim", tmp_path / "place"
    victim.write_text("mine", encoding="utf-8")
    place.mkdir()
    (place / "guess.json").write_text("{}", encoding="utf-8")
    (place / "trials.parquet").symlink_to(victim)
    expected = "trials.parquet is a symbolic link; expected a regular file or none"
    with pytest.raises(_core.ResultError, match=f"^cannot write {place}: {expected}$"):
        LAYOUT.check(place, {"seed": 1}, force=True)
    with pytest.raises(_core.ResultError, match=expected):
        save(place, 1, None, force=True)
    assert victim.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 3}, "unknown format; expected a result of guess of format 1 or 2"),
        ({"seed": 2}, "damaged: the SHA-256 of its content is not manifest_sha256"),
        ({"manifest_sha256": None}, "damaged: the SHA-256 of its content is not manifest_sha256"),
    ],
)
def test_an_altered_manifest_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    save(tmp_path, 1, "best")
    file = tmp_path / "guess.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**manifest, **change}), encoding="utf-8")
    with pytest.raises(_core.DamagedResultError, match=said):
        LAYOUT.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"files": []}, "damaged: files is not that of a result of guess"),
        ({"files": {}}, r"trials\.parquet: damaged: its digest is not that in guess\.json"),
        ({"seed": True}, "damaged: seed is not that of a result of guess"),
        ({"seed": ...}, "damaged: no seed"),
    ],
)
def test_a_forged_manifest_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    save(tmp_path, 1, "best")
    file = tmp_path / "guess.json"
    manifest = json.loads(file.read_text(encoding="utf-8")) | change
    manifest = {key: value for key, value in manifest.items() if value is not ...}
    manifest["manifest_sha256"] = saved.digest_of(manifest)
    file.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(_core.DamagedResultError, match=said):
        LAYOUT.load(tmp_path)


def test_tables_are_limited_together(tmp_path: Path) -> None:
    """A table of equal rows has a small file and needs gigabytes."""
    save(tmp_path, 1, None)
    rows = 2_000_000
    pl.DataFrame({"trial": pl.repeat(1, rows, dtype=pl.Int64, eager=True)}).write_parquet(
        tmp_path / "trials.parquet"
    )
    content = (tmp_path / "trials.parquet").read_bytes()
    assert len(content) < 100_000
    file = tmp_path / "guess.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["files"]["trials.parquet"] = hashlib.sha256(content).hexdigest()
    manifest["manifest_sha256"] = saved.digest_of(manifest)
    file.write_text(json.dumps(manifest), encoding="utf-8")
    assert LAYOUT.load(tmp_path).tables["trials"].height == rows
    with pytest.raises(_core.DamagedResultError, match="has 2000000 rows; expected at most 125000"):
        LAYOUT.load(tmp_path, max_bytes=1_000_000)


def test_a_manifest_of_very_many_values_is_refused(tmp_path: Path) -> None:
    save(tmp_path, 1, None)
    file = tmp_path / "guess.json"
    more = "[" + "{}," * 2_000_000 + "0]"
    file.write_text(f'{{"more": {more}, {file.read_text(encoding="utf-8")[1:]}', encoding="utf-8")
    with pytest.raises(_core.DamagedResultError, match="damaged: has too many values"):
        LAYOUT.load(tmp_path)


def test_an_altered_text_is_refused(tmp_path: Path) -> None:
    save(tmp_path, 1, "best")
    (tmp_path / "best.toml").write_bytes(b"\xff")
    with pytest.raises(_core.DamagedResultError, match=r"best\.toml: damaged: its digest"):
        LAYOUT.load(tmp_path)
    with pytest.raises(_core.ResultError, match="no result of guess; expected a directory with"):
        LAYOUT.load(tmp_path / "none")
