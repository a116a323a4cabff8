"""Sweeps on workers of Dask Distributed: a real scheduler, workers as processes, a bucket."""

import gc
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from dask import config as dask_config
from distributed import LocalCluster, Security

import sojourn as sj
from sojourn import _core
from sojourn.cli.app import app
from sojourn.execute import dask, shared, targets, worker
from sojourn.storage import batch
from sojourn.storage import store as shared_stores
from sojourn.storage.store import Store
from support import buckets, clusters, intruder
from support.buckets import Server
from support.clusters import Workers

TEXT = """
name = "swept"
duration = "{duration}"
warmup = "1s"
rtt = "20ms"
replications = 6
links.up = {{ rate = "20mbit", qdisc = "codel" }}
links.down = {{ rate = "5mbit", qdisc = "pfifo" }}
traffic = [
    {{ name = "bulk", type = "tcp", direction = "up" }},
    {{ name = "ping", type = "ping", direction = "up", interval = "50ms" }},
]
"""
# Runs of a batch have the same duration.
GIVEN = {"links.up.rate": ["4mbit", "8mbit", "16mbit"], "duration": ["4s", "8s", "12s"]}
RUNS = 54


class Last(sj.PythonQueue):
    """Serves the packet that came last."""

    def __init__(self) -> None:
        self.packets: deque[_core.Packet] = deque()

    def enqueue(self, _now: float, packet: _core.Packet) -> None:
        if len(self.packets) >= 50:
            packet.drop("overlimit")
            return
        self.packets.append(packet)

    def dequeue(self, _now: float) -> _core.Packet | None:
        return self.packets.pop() if self.packets else None


class Failing(Last):
    """Raises after some packets."""

    def dequeue(self, now: float) -> _core.Packet | None:
        if now > 0.5:
            message = "no packet today"
            raise RuntimeError(message)
        return super().dequeue(now)


@pytest.fixture(scope="module")
def _server() -> Iterator[Server]:
    with buckets.server() as started:
        yield started


@pytest.fixture
def server(_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name, value in _server.environment.items():
        monkeypatch.setenv(name, value)
    yield _server
    _server.fault = None


@pytest.fixture(scope="module")
def workers(_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder = tmp_path_factory.mktemp("cluster")
    with clusters.workers(folder, 3, _server.environment) as started:
        yield started


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of some hundredths of a second, so that short sweeps have several per worker."""
    monkeypatch.setattr(dask, "TASK_S", 0.04)
    monkeypatch.setattr(dask, "LEAST_TASK_S", 0.02)


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT.format(duration="4s"))


@pytest.fixture(scope="module")
def local(base: sj.Scenario) -> sj.SweepResult:
    """What a sweep without a cluster gives."""
    return sj.sweep(base, GIVEN)


def saved(result: sj.SweepResult, folder: Path) -> dict[str, bytes]:
    """The files of a result."""
    result.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.usefixtures("_short")
def test_a_killed_worker_costs_only_its_tasks(
    base: sj.Scenario, local: sj.SweepResult, server: Server, workers: Workers, tmp_path: Path
) -> None:
    store = f"s3://{buckets.BUCKET}/{tmp_path.name}"
    killed: list[int] = []

    def kill(finished: int, total: int) -> None:
        if finished >= total // 4 and not killed:
            killed.append(finished)
            workers.workers[0].send_signal(signal.SIGKILL)

    found = sj.sweep(base, GIVEN, on=workers.address, shared=store, progress=kill)
    assert 0 < killed[0] < RUNS
    assert saved(found, tmp_path / "cluster") == saved(local, tmp_path / "local")
    # Every run was stored once.
    assert Store.at(store).verify() == (RUNS, [])
    assert server.written < RUNS
    # Threads of another process find them, as does a cluster.
    for on in (None, workers.address):
        calls: list[int] = []
        again = sj.sweep(
            base, GIVEN, on=on, shared=store, progress=lambda done, _, c=calls: c.append(done)
        )
        assert again.runs.equals(local.runs)
        assert calls[0] == 0
    assert Store.at(store).verify() == (RUNS, [])


@pytest.mark.usefixtures("_short")
def test_damaged_batches_are_named_and_repeated(
    base: sj.Scenario, local: sj.SweepResult, workers: Workers, tmp_path: Path
) -> None:
    store = tmp_path / "shared"
    sj.sweep(base, GIVEN, on=workers.address, shared=store)
    batches = sorted(store.rglob("*.parquet"))
    assert len(batches) > 3
    batches[0].write_bytes(batches[0].read_bytes()[:-50])
    batches[1].write_bytes(batches[2].read_bytes())
    with pytest.warns(UserWarning, match="runs that no other batch has were repeated") as warned:
        found = sj.sweep(base, GIVEN, on=workers.address, shared=store)
    named = " ".join(f"{one.message}" for one in warned)
    assert all(path.name in named for path in batches[:2])
    # A batch that was replaced does not stay.
    stays = sum("it stays until `sojourn store gc`" in f"{one.message}" for one in warned)
    assert stays == len(Store.at(f"{store}").verify()[1])
    assert found.runs.equals(local.runs)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("fault", [buckets.FULL, buckets.DENIED])
def test_a_store_that_cannot_be_written_loses_nothing(
    local: sj.SweepResult,
    server: Server,
    workers: Workers,
    tmp_path: Path,
    fault: tuple[str, str, str],
) -> None:
    base = sj.Scenario.from_toml(TEXT.format(duration="4s"))
    store = f"s3://{buckets.BUCKET}/{fault[1]}"
    server.fault = fault
    given = {"links.up.rate": GIVEN["links.up.rate"]}
    with pytest.warns(UserWarning, match=f"not all finished runs could be stored: .*{fault[1]}"):
        found = sj.sweep(base, given, on=workers.address, shared=store, store=tmp_path)
    assert found.runs.height == 18
    # The store of the user has them, and shares them when the bucket has space again.
    server.fault = None
    counts: list[int] = []
    sj.sweep(
        base, given, on=workers.address, shared=store, store=tmp_path,
        progress=lambda done, _: counts.append(done),
    )  # fmt: skip
    assert set(counts) == {0, 18}
    assert Store.at(store).verify() == (18, [])
    assert found.runs.drop("point").equals(
        local.runs.filter(local.runs["duration"] == "4s").drop("point", "duration")
    )


def test_queues_in_python_are_sent_to_the_workers(
    base: sj.Scenario, workers: Workers, tmp_path: Path
) -> None:
    scenario = base.replace(
        links={**base.links, "up": sj.Link(rate="1mbit", qdisc=Last)}, replications=1
    )
    given = {"links.down.rate": ["2mbit", "3mbit"]}
    found = sj.sweep(scenario, given, on=workers.address, shared=tmp_path)
    assert found.runs.equals(sj.sweep(scenario, given, jobs=1).runs)
    failing = scenario.replace(links={**base.links, "up": sj.Link(rate="1mbit", qdisc=Failing)})
    with pytest.raises(sj.QueueError, match="no packet today") as raised:
        sj.sweep(failing, given, on=workers.address, shared=tmp_path)
    assert "in dequeue" in "".join(raised.value.__cause__.__notes__)


def test_equal_samples_are_executed_once(
    base: sj.Scenario, workers: Workers, tmp_path: Path
) -> None:
    # Two whole numbers for six samples.
    given = {"traffic.bulk.count": "integers(1,2)"}
    found = sj.sweep(
        base, given, sampling="lhs:6", replications=1, on=workers.address, shared=tmp_path
    )
    assert found.runs.height == 6
    assert found.runs.equals(sj.sweep(base, given, sampling="lhs:6", replications=1).runs)
    assert Store.at(f"{tmp_path}").verify() == (2, [])


@pytest.mark.parametrize("writable", [True, False])
def test_a_failing_queue_loses_no_finished_run_of_its_task(
    base: sj.Scenario, tmp_path: Path, *, writable: bool
) -> None:
    scenario = base.replace(
        links={**base.links, "up": sj.Link(rate="1mbit", qdisc=Failing)},
        replications=1,
        arms=[sj.Arm(name="works", set={"links.up.qdisc": "codel"}), sj.Arm(name="fails", set={})],
    ).checked
    place = tmp_path / "store"
    if not writable:
        place.write_text("no directory", encoding="utf-8")
    names = shared.keys(scenario, None)
    task = worker.Task(
        parts=(worker.Part(worker.scenario_of(scenario), (0, 1)),),
        store=f"{place}",
        batch=batch.name_of(names),
        backend=None,
        build=worker.build(),
        fresh=False,
    )
    done = worker.run(task)
    assert done.executed == 1
    assert done.failed is not None
    assert "no packet today" in done.failed.message
    assert done.batch == batch.name_of(names[:1])
    if writable:
        assert done.data is None
        assert Store.at(f"{place}").verify() == (1, [])
    else:
        assert set(batch.decode(done.batch, done.data or b"")[0]) == set(names[:1])


def test_finished_runs_of_a_failing_queue_are_stored(
    base: sj.Scenario, workers: Workers, tmp_path: Path
) -> None:
    scenario = base.replace(
        links={**base.links, "up": sj.Link(rate="1mbit", qdisc=Failing)}, replications=1
    )
    both = scenario.replace(
        arms=[sj.Arm(name="works", set={"links.up.qdisc": "codel"}), sj.Arm(name="fails", set={})]
    )
    counts: list[int] = []
    with pytest.raises(sj.QueueError, match="no packet today"):
        sj.sweep(
            both, {"links.up.rate": ["1mbit"]}, on=workers.address, shared=tmp_path,
            progress=lambda done, _: counts.append(done),
        )  # fmt: skip
    assert counts[-1] == 1
    assert Store.at(f"{tmp_path}").verify() == (1, [])


def test_another_build_on_a_worker_is_named(base: sj.Scenario, tmp_path: Path) -> None:
    task = worker.Task(
        parts=(worker.Part(worker.scenario_of(base.checked), (1, 2)),),
        store=f"{tmp_path}",
        batch=batch.name_of(["another"]),
        backend=None,
        build="0.0.1 (0123)",
        fresh=False,
    )
    with pytest.raises(_core.UnavailableError, match=r"expected 0\.0\.1 \(0123\), as this process"):
        worker.run(task)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--on", "dusk"),
            r"^--on dusk: unknown; expected sim, live, (linux-\S+, )*dask or dask://",
        ),
        (("--on", "dask://head"), "^--on dask://head: expected dask or dask://HOST:PORT"),
        (("--on", "dask://head:99999"), "expected dask or dask://HOST:PORT"),
        (("--on", "dask://head:8786"), "requires --shared; expected s3"),
        (("--shared", "gs://bucket"), "^--shared gs://bucket: expected s3://bucket/prefix or a"),
    ],
)
def test_a_wrong_place_is_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TEXT.format(duration="4s"), encoding="utf-8")
    with pytest.raises(_core.ScenarioError, match=said):
        app(["sweep", f"{file}", "-p", "rtt=10ms", *options], standalone_mode=False)


class Ending(Last):
    """Ends its process on the slower link."""

    def dequeue(self, now: float) -> _core.Packet | None:
        if now > 0.5 and self.rate == 1_000_000:
            os._exit(1)
        return super().dequeue(now)


def test_a_run_that_ends_its_workers_is_named(
    base: sj.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "WORKERS_PER_TASK", 1)
    scenario = base.replace(
        links={**base.links, "up": sj.Link(rate="2mbit", qdisc=Ending)}, replications=1
    )
    with pytest.raises(
        sj.QueueError, match=r"links.up.rate=1mbit.*1 worker ended during"
    ) as raised:
        sj.sweep(
            scenario, {"links.up.rate": ["2mbit", "1mbit"]}, on="dask", jobs=1, shared=tmp_path
        )
    assert "2mbit" not in f"{raised.value}"
    # The other run was stored.
    assert Store.at(f"{tmp_path}").verify() == (1, [])


def test_a_scheduler_that_does_not_answer_is_named(
    base: sj.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "_CONNECT_S", 0.5)
    with pytest.raises(_core.UnavailableError, match=r"^dask://127.0.0.1:1: no scheduler answers"):
        sj.sweep(base, GIVEN, on="dask://127.0.0.1:1", shared=tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(_core.UnavailableError, match=r"pip install distributed cryptography"):
        sj.sweep(base, GIVEN, on="dask", shared=tmp_path)


def test_runs_of_real_packets_are_not_shared(base: sj.Scenario) -> None:
    on = targets.target("live")
    assert on == targets.Target(backend="live", text="live")
    with pytest.raises(_core.ScenarioError, match="runs of the backend live differ each time"):
        shared.keys(base.checked, "live")


@pytest.mark.usefixtures("_short")
def test_a_store_that_workers_have_elsewhere_is_named(
    base: sj.Scenario, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "url", property(lambda _: f"{tmp_path / 'elsewhere'}"))
    monkeypatch.setattr(shared_stores, "_DELAYS_S", ())
    with pytest.raises(_core.ResultError, match="does not exist, also after 3 repetitions"):
        sj.sweep(base, GIVEN, on=workers.address, shared=tmp_path / "here")
    assert Store.at(f"{tmp_path / 'here'}").verify() == (0, [])


class Unreadable:
    """A store that cannot be read a number of times after the sweep has begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.times = times
        load = shared_stores.Rows.load

        def fails(rows: shared_stores.Rows, name: str) -> bool:
            if self.times > 0:
                self.times -= 1
                message = "store s3://team: connection reset"
                raise _core.ResultError(message)
            return load(rows, name)

        monkeypatch.setattr(shared_stores.Rows, "load", fails)


@pytest.mark.usefixtures("_short")
def test_a_store_that_cannot_be_read_for_a_moment_is_read_later(
    base: sj.Scenario,
    local: sj.SweepResult,
    workers: Workers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dask, "STORE_RETRY_S", 0.05)
    store = Unreadable(monkeypatch, 7)
    found = sj.sweep(base, GIVEN, on=workers.address, shared=tmp_path)
    assert store.times == 0
    assert found.runs.equals(local.runs)
    # No run was repeated.
    assert Store.at(f"{tmp_path}").verify() == (RUNS, [])


@pytest.mark.usefixtures("_short")
def test_a_store_that_stays_unreadable_ends_the_sweep(
    base: sj.Scenario, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "STORE_RETRY_S", 0.05)
    monkeypatch.setattr(dask, "STORE_PATIENCE_S", 0.3)
    store = Unreadable(monkeypatch, 1_000_000)
    with pytest.raises(_core.ResultError, match="store s3://team: connection reset"):
        sj.sweep(base, GIVEN, on=workers.address, shared=tmp_path)
    assert store.times < 1_000_000 - 3


@pytest.mark.usefixtures("_short")
def test_scenarios_are_released_when_their_runs_have_finished(
    base: sj.Scenario, workers: Workers, tmp_path: Path
) -> None:
    kept: list[int] = []

    def jobs() -> set[_core.Scenario]:
        gc.collect()
        return {one.run.scenario for one in gc.get_objects() if isinstance(one, dask._Job)}  # noqa: SLF001

    sj.tune(
        base,
        {"links.up.qdisc.target": "uniform(1ms,20ms)"},
        "min drops",
        trials=4,
        final_replications=2,
        on=workers.address,
        shared=tmp_path,
        progress=lambda _done, _total: kept.append(len(jobs())),
    )
    # A search has one scenario per step.
    assert 0 < max(kept) <= 2
    assert not jobs()


@pytest.mark.usefixtures("_short")
def test_a_scheduler_that_is_lost_is_named(
    base: sj.Scenario, workers: Workers, tmp_path: Path
) -> None:
    # The last test: its scheduler is that of all.
    def kill(finished: int, _total: int) -> None:
        if finished:
            workers.scheduler.kill()

    # Many more than are with the scheduler at once.
    many = base.replace(replications=30)
    with pytest.raises(_core.UnavailableError, match="the connection to the scheduler was lost"):
        sj.sweep(many, GIVEN, on=workers.address, shared=tmp_path, progress=kill)
    # Their last tasks must not be stored while the sweep is repeated.
    for worker_process in workers.workers:
        worker_process.kill()
        worker_process.wait()
    assert 0 < Store.at(f"{tmp_path}").verify()[0] < 5 * RUNS
    assert sj.sweep(many, GIVEN, shared=tmp_path).runs.height == 5 * RUNS
    assert Store.at(f"{tmp_path}").verify() == (5 * RUNS, [])


def _listening() -> list[str]:
    """List the ports on which this process and its children listen."""
    own = psutil.Process()
    open_ = [
        one
        for process in (own, *own.children(recursive=True))
        for one in process.net_connections(kind="tcp")
    ]
    return sorted({f"{one.laddr.port}" for one in open_ if one.status == psutil.CONN_LISTEN})


def _attacked(ports: list[str], user: int) -> list[str]:
    """Attack ports without their key, as this or another user."""
    done = subprocess.run(
        [sys.executable, intruder.__file__, f"{user}", *ports],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    first, *found = done.stdout.splitlines()
    assert first == f"user {user}"
    return found


@pytest.mark.parametrize("user", [os.getuid(), 65_534])
def test_nobody_else_can_use_the_workers_of_this_machine(user: int, tmp_path: Path) -> None:
    if user != os.getuid() != 0:
        pytest.skip("only root can attack as another user")
    store = shared.SharedRowStore(store=Store.at(f"{tmp_path}"), backend=None, local=None)
    executor = dask.DaskExecutor(name="dask", scheduler=None, store=store, jobs=1)
    before = _listening()
    try:
        client = executor._connected()  # noqa: SLF001
        assert client.submit(pow, 2, 3).result(timeout=30) == 8
        ports = [port for port in _listening() if port not in before]
        # The scheduler, the worker and its nanny; neither has a page.
        assert len(ports) == 3
        found = _attacked(ports, user)
    finally:
        executor.close()
    assert len(found) == 9
    assert all(" refused: " in line for line in found), found


def test_the_attack_succeeds_on_workers_without_a_key() -> None:
    # Else the test above proves nothing.
    before = _listening()
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
        assert cluster.scheduler_address.startswith("tcp")
        found = _attacked([port for port in _listening() if port not in before], os.getuid())
    assert [line for line in found if line.startswith("tcp") and " answered: " in line]
    assert [line for line in found if line.startswith("http") and " answered: " in line]


def test_tls_of_the_configuration_of_dask_is_used(tmp_path: Path) -> None:
    key = Security.temporary()
    for name, text in (("ca", key.tls_ca_file), ("key", key.tls_client_key)):
        (tmp_path / name).write_text(text)
    given = {
        "distributed.comm.tls.ca-file": f"{tmp_path}/ca",
        "distributed.comm.tls.client.cert": f"{tmp_path}/ca",
        "distributed.comm.tls.client.key": f"{tmp_path}/key",
    }
    store = shared.SharedRowStore(store=Store.at(f"{tmp_path}/s"), backend=None, local=None)
    with LocalCluster(n_workers=1, processes=False, security=key, dashboard_address=":0") as found:
        address = found.scheduler_address.replace("tls", "tcp")
        for config, works in ((given, True), ({}, False)):
            executor = dask.DaskExecutor(name="dask://x", scheduler=address, store=store, jobs=1)
            with dask_config.set(config):
                try:
                    if works:
                        assert executor._connected().submit(pow, 2, 3).result(timeout=30) == 8  # noqa: SLF001
                        continue
                    with pytest.raises(_core.UnavailableError, match="no scheduler answers"):
                        executor._connected()  # noqa: SLF001
                finally:
                    executor.close()


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [1.0, 2.0, 3.0, 5.0])
def test_a_signal_while_the_workers_start_is_no_traceback(delay_s: float, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(TEXT.format(duration="8000s"), encoding="utf-8")
    words = ["sweep", "scenario.toml", "-p", "links.up.rate=4mbit,8mbit", "--on", "dask"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sojourn", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(delay_s)
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, output
    assert "Traceback" not in output
