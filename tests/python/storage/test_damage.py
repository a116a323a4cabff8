"""Damaged and forged results of every kind are refused in one line, or load unchanged."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.sweeps.page import write_report
from support import saved_kinds
from support.saved_kinds import CLASSES, MANIFESTS, content, refusal, sign, swept


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    saved_kinds.save_all(folder)
    return folder


@pytest.fixture
def copy(originals: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copy the saved thing of a kind, so that a test can damage it."""

    def copied(kind: str) -> Path:
        return Path(shutil.copytree(originals / kind, tmp_path / kind, dirs_exist_ok=True))

    return copied


def flips(file: Path, bits: Iterator[int]) -> Iterator[int]:
    """Flip each of some bits of a file, one at a time."""
    data = file.read_bytes()
    for bit in bits:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(flipped)
        yield bit
    file.write_bytes(data)


def check_flips(kind: str, folder: Path, *, manifest_step: int, table_step: int) -> int:
    """Check that flipped bits are refused or change nothing; return the number of refusals."""
    whole, refused = content(kind, folder), 0
    for file in sorted(folder.iterdir()):
        step = manifest_step if file.name == MANIFESTS[kind] else table_step
        for bit in flips(file, iter(range(0, 8 * file.stat().st_size, step))):
            found = loaded_or_refused(kind, folder)
            assert found in (None, whole), f"{file.name}: bit {bit}"
            refused += found is None
    return refused


def loaded_or_refused(kind: str, folder: Path) -> object:
    """Return the content; None if it is refused."""
    found: list[object] = []
    refusal(lambda: found.append(content(kind, folder)))
    return found[0] if found else None


@pytest.mark.parametrize("kind", MANIFESTS)
def test_no_flipped_bit_is_silent(kind: str, copy: Callable[[str], Path]) -> None:
    # Steps that are not multiples of 8 reach every bit of a byte.
    assert check_flips(kind, copy(kind), manifest_step=101, table_step=8 * 512 + 1) > 100


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("kind", MANIFESTS)
def test_no_flipped_bit_of_a_manifest_is_silent(kind: str, copy: Callable[[str], Path]) -> None:
    assert check_flips(kind, copy(kind), manifest_step=1, table_step=8 * 64 + 1) > 10_000


def test_a_sweep_with_a_damaged_run_store_is_the_same(
    copy: Callable[[str], Path], tmp_path: Path
) -> None:
    """The damaged run is repeated."""
    folder, tried = copy("store"), 0
    expected = swept(folder).runs
    for file in sorted(folder.glob("*.runs")):
        for bit in flips(file, iter(range(0, 8 * file.stat().st_size, 8 * 64 + 1))):
            # Opening a store repairs it.
            damaged = Path(shutil.copytree(folder, tmp_path / "damaged"))
            assert swept(damaged).runs.equals(expected), f"{file.name}: bit {bit}"
            shutil.rmtree(damaged)
            tried += 1
    assert tried > 5


ODD: list[Any] = [
    *(None, True, False, 0, -1, 2**63, 2**70, 1e308, float("inf"), float("nan"), "", "x" * 5000),
    *("<script>", "\x1b[2J", "../../etc/passwd", [], {}, [[]], {"a": 1}, [None], ["a"], "0"),
]


def mutate(tree: Any, rng: random.Random) -> None:
    """Change, remove or add one value somewhere in a tree of JSON."""
    while True:
        key: Any
        if isinstance(tree, dict) and tree:
            key = rng.choice(list(tree))
        elif isinstance(tree, list) and tree:
            key = rng.randrange(len(tree))
        else:
            return
        if isinstance(tree[key], dict | list) and tree[key] and rng.random() < 0.8:
            tree = tree[key]
            continue
        if rng.random() < 0.2:
            del tree[key]
        else:
            tree[key] = rng.choice(ODD)
        return


def use(kind: str, folder: Path) -> None:
    """Load a saved thing and show all of it."""
    result = CLASSES[kind].load(folder)
    repr(result)
    if kind == "sweep":
        write_report(result, folder / "report.html")
        result.summary(), result.best(result.metrics[0])
    elif kind == "tune":
        result.settings(), result.tuned()
    elif kind == "adversary":
        result.worst.to_toml()
    else:
        result.bars()


@pytest.mark.parametrize("kind", CLASSES)
def test_a_forged_manifest_is_refused_in_one_line_or_used(
    kind: str, copy: Callable[[str], Path]
) -> None:
    """As a hostile sender would do, the digests are computed again."""
    folder, rng, refused = copy(kind), random.Random(kind), 0  # noqa: S311 - not for secrets
    manifest = (folder / MANIFESTS[kind]).read_bytes()
    for _ in range(150):
        (folder / MANIFESTS[kind]).write_bytes(manifest)

        def change(tree: dict[str, Any]) -> None:
            for _ in range(rng.choice([1, 1, 2])):
                mutate(tree, rng)

        sign(folder, kind, change)
        refused += refusal(lambda: use(kind, folder)) is not None
    assert refused > 50


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("sweep", {"scenario_sha256": "0" * 64}, "SHA-256 of its scenario is not scenario_sha256"),
        ("sweep", {"sojourn": {"version": "1"}}, "damaged: sojourn is not that of a sweep"),
        ("sweep", {"until": 3}, "damaged: until is not that of a sweep"),
        ("sweep", {"paths": ["other"]}, "damaged: its content is not that of a sweep"),
        ("tune", {"best": 77}, "damaged: its content is not that of a result of tune"),
        ("tune", {"scenario": {}}, "tune.json: damaged: not a valid scenario: "),
        ("sensitivity", {"method": "guess"}, "its content is not that of a result of sensitivity"),
        ("adversary", {"keep": "0.9"}, "damaged: keep is not that of a result of adversary"),
    ],
)
def test_a_forged_value_is_named(
    kind: str, change: dict[str, Any], said: str, copy: Callable[[str], Path]
) -> None:
    folder = copy(kind)
    sign(folder, kind, lambda manifest: manifest.update(change))
    with pytest.raises(sj.DamagedResultError) as error:
        CLASSES[kind].load(folder)
    assert said in f"{error.value}"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda runs: runs.drop("arm"), "has other columns; expected point, rtt, arm, replication"),
        (lambda runs: runs.with_columns(arm=pl.lit(1)), "another type: arm is Int"),
        (lambda runs: runs.with_columns(drops=pl.lit("a")), "another type: drops is String"),
        (lambda runs: runs.with_columns(arm=pl.lit(None, pl.String)), "without some values: arm"),
        (lambda runs: runs.with_columns(drops=pl.lit([1])), "cannot read: drops"),
    ],
)
def test_a_forged_table_is_refused(
    change: Callable[[pl.DataFrame], pl.DataFrame], said: str, copy: Callable[[str], Path]
) -> None:
    folder = copy("sweep")
    change(pl.read_parquet(folder / "runs.parquet")).write_parquet(folder / "runs.parquet")
    sign(folder, "sweep", lambda _: None)
    with pytest.raises(sj.DamagedResultError) as error:
        sj.SweepResult.load(folder)
    assert said in f"{error.value}"
    assert "\n" not in f"{error.value}"


def test_a_scenario_does_not_name_files_to_read(copy: Callable[[str], Path]) -> None:
    folder = copy("sweep")
    secret = folder / "secret"
    secret.write_text("1\n2\n", encoding="utf-8")

    def change(manifest: dict[str, Any]) -> None:
        del manifest["scenario_sha256"]
        up = manifest["scenario"]["links"]["up"]
        del up["rate"]
        up["trace"] = f"{secret}"

    sign(folder, "sweep", change)
    with pytest.raises(sj.DamagedResultError):
        sj.SweepResult.load(folder)


def test_a_sweep_of_format_1_is_loaded(copy: Callable[[str], Path]) -> None:
    folder = copy("sweep")
    whole = content("sweep", folder)
    path = folder / "sweep.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    # With the digest, only its format was altered.
    path.write_text(json.dumps({**manifest, "format": 1}), encoding="utf-8")
    with pytest.raises(sj.DamagedResultError, match="unknown format"):
        sj.SweepResult.load(folder)
    del manifest["manifest_sha256"]
    path.write_text(json.dumps({**manifest, "format": 1}), encoding="utf-8")
    assert content("sweep", folder) == whole
    sj.SweepResult.load(folder).save(folder)
    assert json.loads(path.read_text(encoding="utf-8"))["format"] == 2
    assert content("sweep", folder) == whole
