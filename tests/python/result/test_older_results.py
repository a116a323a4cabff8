"""Results that earlier versions saved: what they lack is null or empty."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import sojourn as sj
from sojourn import _core
from support.manifests import canonical, edit

# What an earlier build wrote; README.md beside the folder says which.
EARLIER = Path(__file__).parents[1] / "data" / "format_4"
# What each format lacked: whole tables, and columns by their table.
NEWER = ["classes", "queue_series", "link_changes"]
LACKED_TABLES = {
    2: ["transactions", "applications", *NEWER],
    3: NEWER,
    4: NEWER,
    5: NEWER[1:],
    6: NEWER[2:],
}
LACKED_COLUMNS: dict[int, dict[str, list[str]]] = {
    2: {
        "flows": ["aborted", "initial_losses", "missing_packets", "lost_packets"],
        "links": ["duplicated_packets", "driver_ms_mean", "driver_ms_p95", "drops_ack_filter"],
        "link_series": ["lost_packets", "duplicated_packets", "drops_ack_filter"],
    },
    3: {
        "links": ["driver_ms_mean", "driver_ms_p95", "drops_ack_filter"],
        "link_series": ["drops_ack_filter"],
        "applications": ["rpm", "rpm_confidence", "mos"],
    },
    4: {
        "flows": ["aborted", "missing_packets", "lost_packets"],
        "links": ["drops_ack_filter"],
        "link_series": ["drops_ack_filter"],
    },
    5: {},
    6: {},
}
# The first format whose manifest has a digest.
FIRST_DIGESTED = 5
# A key that scenarios did not have then, and that has a default now.
LACKED_KEY = "keep_events"


@pytest.fixture(scope="module")
def result() -> sj.Result:
    return sj.run(
        sj.Scenario(
            links={
                "up": sj.Link(rate="5mbit", qdisc="codel"),
                "down": sj.Link(rate="5mbit", qdisc="fq_codel"),
            },
            traffic=[
                sj.Tcp(direction="up", count=2),
                sj.Request(direction="down", bytes="20kb", think="100ms"),
                sj.Ping(direction="up", interval="100ms"),
            ],
            rtt="20ms",
            duration="3s",
            warmup="1s",
        )
    )


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory, result: sj.Result) -> Path:
    """Save a result in the present format."""
    folder = tmp_path_factory.mktemp("present") / "result"
    result.save(folder)
    return folder


def make_older(folder: Path, version: int) -> None:
    """Take out of a saved result what the format of that version lacked."""
    path = folder / "manifest.json"
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    manifest["format_version"] = version
    del manifest["scenario"][LACKED_KEY]
    del manifest["manifest_sha256"]
    manifest["scenario_sha256"] = hashlib.sha256(canonical(manifest["scenario"])).hexdigest()
    for table in LACKED_TABLES[version]:
        (folder / f"{table}.parquet").unlink()
        del manifest["tables"][table]
    for table, columns in LACKED_COLUMNS[version].items():
        file = folder / f"{table}.parquet"
        pq.write_table(pq.read_table(file).drop_columns(columns), file, compression="zstd")
        manifest["tables"][table]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    path.write_text(json.dumps(manifest), encoding="utf-8")
    if version >= FIRST_DIGESTED:
        edit(folder, {})


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_results_of_earlier_formats_load(tmp_path: Path, result: sj.Result, version: int) -> None:
    folder = tmp_path / "older"
    result.save(folder)
    make_older(folder, version)
    older = sj.Result.load(folder)
    assert older.scenario == result.scenario
    for table in ("flows", "links", "flow_series", "link_series", "pings", "transactions"):
        now, then = getattr(result, table), getattr(older, table)
        assert then.columns == now.columns
        lacked = LACKED_COLUMNS[version].get(table, [])
        assert all(then[column].null_count() == then.height for column in lacked)
        if table not in LACKED_TABLES[version]:
            assert then.drop(lacked).equals(now.drop(lacked))
    for table in LACKED_TABLES[version]:
        assert getattr(older, table).is_empty()
        assert getattr(older, table).columns == getattr(result, table).columns
    metrics = older.summary().filter(pl.col("metric") == "goodput_up_mbit_per_s")
    assert metrics.equals(result.summary().filter(pl.col("metric") == "goodput_up_mbit_per_s"))
    older.save(tmp_path / "again")
    assert sj.Result.load(tmp_path / "again").flows.equals(older.flows)


def test_a_result_of_an_earlier_build_loads_and_runs_again(tmp_path: Path) -> None:
    older = sj.Result.load(EARLIER)
    assert older.finished == 4
    tables = [table["name"] for table in json.loads(_core.column_catalogue())]
    filled = [table for table in tables if not getattr(older, table).is_empty()]
    # These are newer than the build.
    assert set(tables) - set(filled) == {"events", *NEWER}
    for table in set(tables) - set(NEWER):
        loaded, written = getattr(older, table), pl.read_parquet(EARLIER / f"{table}.parquet")
        assert loaded.select(written.columns).equals(written), table
        # Columns that are newer than the build.
        newer = loaded.drop(written.columns)
        assert all(column.null_count() == loaded.height for column in newer), table
    assert sj.run(older.scenario).finished == 4
    older.save(tmp_path / "again")
    assert sj.Result.load(tmp_path / "again").flows.equals(older.flows)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (1, r"has format 1, which is too old; this version reads formats 2 to 7$"),
        (
            9,
            r"which needs Sojourn 7\.0\.0 or later; this version reads formats 2 to 7$",
        ),
    ],
)
def test_other_formats_are_refused(
    tmp_path: Path, present: Path, version: int, expected: str
) -> None:
    folder = shutil.copytree(present, tmp_path / "other")
    edit(folder, {"format_version": version, "sojourn": {"version": "7.0.0"}})
    with pytest.raises(sj.ResultError, match=expected):
        sj.Result.load(folder)


def test_a_table_that_the_format_has_must_be_there(tmp_path: Path, present: Path) -> None:
    folder = shutil.copytree(present, tmp_path / "partial")
    tables = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["tables"]
    del tables["applications"]
    edit(folder, {"tables": tables})
    expected = r"manifest\.json: does not list the table applications, which format 7 requires$"
    with pytest.raises(sj.ResultError, match=expected):
        sj.Result.load(folder)


def test_a_column_that_is_unknown_is_refused(tmp_path: Path, present: Path) -> None:
    folder = shutil.copytree(present, tmp_path / "odd")
    file = folder / "flows.parquet"
    flows = pq.read_table(file)
    odd = flows.append_column("colour", [["red"] * flows.num_rows])
    pq.write_table(odd, file, compression="zstd")
    tables = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["tables"]
    tables["flows"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    edit(folder, {"tables": tables})
    expected = r"flows\.parquet: has a column that this version of Sojourn cannot read: colour$"
    with pytest.raises(sj.ResultError, match=expected):
        sj.Result.load(folder)
