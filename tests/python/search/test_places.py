"""Searches on workers of Dask Distributed and with a shared store give the same results."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.cli.app import app
from sojourn.execute.local import LocalExecutor
from sojourn.execute.runs import Row, Run
from sojourn.storage.store import Rows, Store
from support import buckets, clusters
from support.clusters import Workers
from support.searched import ARMS, TARGET, TEXT

Search = Callable[..., sj.TuneResult | sj.SensitivityResult | sj.AdversaryResult]

BASE = sj.Scenario.from_toml(TEXT)
# Each measures scenarios with several seeds, or with several numbers of flows.
SEARCHES: dict[str, Search] = {
    "tune": partial(
        sj.tune, BASE, TARGET, "min ping_ms_p99", trials=10, replications=2, final_replications=2
    ),
    "sensitivity": partial(
        sj.sensitivity, BASE, TARGET, "ping_ms_p99", method="morris", samples=3, replications=2
    ),
    "adversary": partial(
        sj.adversary,
        sj.Scenario.from_toml(TEXT + ARMS),
        {"traffic.bulk.count": "integers(1,3)", "rtt": "uniform(10ms,40ms)"},
        loser="b",
        against="a",
        score="min ping_ms_p99",
        trials=4,
        final_replications=2,
    ),
}
OPTIONS = {
    "sweep": ["FILE"],
    "tune": ["FILE", "--objective", "min drops"],
    "sensitivity": ["FILE", "--metric", "drops"],
    "adversary": ["FILE", "--loser", "a", "--against", "b"],
}


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with clusters.workers(tmp_path_factory.mktemp("cluster"), 2, {}) as started:
        yield started


def saved(
    result: sj.TuneResult | sj.SensitivityResult | sj.AdversaryResult, folder: Path
) -> dict[str, bytes]:
    """The files of a result."""
    result.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_on_a_cluster_gives_the_same_files_and_fills_the_store(
    name: str, workers: Workers, tmp_path: Path
) -> None:
    search, store = SEARCHES[name], tmp_path / "store"
    local = saved(search(), tmp_path / "local")
    distributed = search(on=workers.address, shared=store)
    assert saved(distributed, tmp_path / "distributed") == local
    runs, damaged = Store.at(f"{store}").verify()
    assert runs >= 8
    assert not damaged
    # Threads of this machine execute nothing again, and neither do the workers.
    for on in (None, workers.address):
        again = search(on=on, shared=store)
        assert saved(again, tmp_path / f"again {on is None}") == local
        assert Store.at(f"{store}").verify() == (runs, [])


def test_a_search_shares_its_runs_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(
        _: LocalExecutor, parts: Iterable[Sequence[Run]]
    ) -> Generator[Sequence[Row], None, None]:
        assert not list(parts)
        yield from ()

    store = f"s3://{buckets.BUCKET}/search"
    with buckets.server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        first = SEARCHES["sensitivity"](shared=store)
        monkeypatch.setattr(LocalExecutor, "execute", nothing)
        again = SEARCHES["sensitivity"](shared=store)
    assert isinstance(first, sj.SensitivityResult)
    assert isinstance(again, sj.SensitivityResult)
    assert again.points.equals(first.points)


def test_a_search_starts_and_stops_workers_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOJOURN_STORE", f"{tmp_path}")
    found = sj.tune(BASE, TARGET, "min drops", trials=2, final_replications=2, on="dask", jobs=1)
    assert found.trials.equals(
        sj.tune(BASE, TARGET, "min drops", trials=2, final_replications=2).trials
    )
    # Both trials, and the front and the original scenario with other seeds.
    assert Store.at(f"{tmp_path / 'cluster'}").verify() == (2 * 3 + 2 * 2, [])


def test_a_search_warns_if_the_shared_store_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        message = "the disk is full"
        raise _core.ResultError(message)

    monkeypatch.setattr(Rows, "add", full)
    with pytest.warns(UserWarning, match="not all finished runs could be stored: the disk is full"):
        found = SEARCHES["sensitivity"](shared=tmp_path)
    assert found.manifest == SEARCHES["sensitivity"]().manifest


@pytest.mark.parametrize("command", OPTIONS)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--on", "dusk"),
            r"^--on dusk: unknown; expected sim, live, (linux-\S+, )*dask or dask://",
        ),
        (("--on", "dask://head:8786"), "requires --shared; expected s3"),
        (("--shared", "s3://"), "^--shared s3://: expected s3://bucket/prefix or a directory$"),
        (("--shared", "s3:/x"), "^--shared s3:/x: expected s3://bucket/prefix or a directory$"),
        (("--on", "live", "--shared", "s3://b/p"), "^--shared: runs of the backend live differ"),
    ],
)
def test_a_wrong_place_is_refused_before_a_dry_run(
    command: str, options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TEXT + (ARMS if command == "adversary" else ""), encoding="utf-8")
    words = [f"{file}" if word == "FILE" else word for word in OPTIONS[command]]
    values = "1ms,9ms" if command == "sweep" else "uniform(1ms,9ms)"
    with pytest.raises(_core.ScenarioError, match=said):
        app(
            [command, *words, "-p", f"rtt={values}", "--dry-run", *options],
            standalone_mode=False,
        )
