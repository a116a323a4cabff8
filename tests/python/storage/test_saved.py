"""Directories with a manifest, tables and texts."""

import json
from pathlib import Path

import polars as pl
import pytest

from sojourn import _core
from sojourn.storage.saved import Layout

LAYOUT = Layout(
    kind="result of guess",
    manifest="guess.json",
    format=1,
    identity=("seed",),
    tables=("trials",),
    texts=("best.toml",),
)
FRAME = pl.DataFrame({"trial": [1, 2]})


def save(place: Path, seed: int, text: str | None, *, force: bool = False) -> str:
    manifest = {"format": 1, "seed": seed}
    return LAYOUT.save(place, manifest, {"trials": FRAME}, {"best.toml": text}, force=force)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    digest = save(place, 1, "best")
    saved = LAYOUT.load(place)
    assert (saved.manifest, saved.digest) == ({"format": 1, "seed": 1}, digest)
    assert saved.tables["trials"].equals(FRAME)
    assert saved.texts == {"best.toml": "best"}


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
        ({"format": 2}, "unknown format; expected a result of guess of format 1"),
        ({"files": []}, "damaged: its parameters are not those of a result of guess"),
        ({"files": {}}, "damaged: its digest is not that in guess.json"),
    ],
)
def test_a_damaged_result_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    save(tmp_path, 1, "best")
    file = tmp_path / "guess.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**manifest, **change}), encoding="utf-8")
    with pytest.raises(_core.DamagedResultError, match=said):
        LAYOUT.load(tmp_path)
    del manifest["seed"]
    file.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(_core.DamagedResultError, match="damaged: no seed"):
        LAYOUT.load(tmp_path)


def test_an_altered_text_is_refused(tmp_path: Path) -> None:
    save(tmp_path, 1, "best")
    (tmp_path / "best.toml").write_bytes(b"\xff")
    with pytest.raises(_core.DamagedResultError, match=r"best\.toml: damaged: its digest"):
        LAYOUT.load(tmp_path)
    with pytest.raises(_core.ResultError, match="no result of guess; expected a directory with"):
        LAYOUT.load(tmp_path / "none")
