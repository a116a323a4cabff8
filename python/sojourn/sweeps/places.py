"""Places where runs of a sweep are executed and stored: ``--on`` and ``--store``."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sojourn import _core
from sojourn.result.runs import CLUSTER, default_folder
from sojourn.sweeps.caches import RowCache
from sojourn.sweeps.carriers import Carrier
from sojourn.sweeps.executors import Executor, LocalExecutor, jobs_at_once
from sojourn.sweeps.schedulers import SCHEME, address


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where runs are executed."""

    backend: str | None = None
    clustered: bool = False
    scheduler: str | None = None


def place(text: str | None) -> Place:
    """Read where runs are executed: a backend on this machine, or a cluster.

    Examples
    --------
    >>> place("dask://head:8786").scheduler
    'tcp://head:8786'
    >>> place("sim").backend
    'sim'
    """
    if text is not None and text.partition(":")[0] == SCHEME:
        return Place(clustered=True, scheduler=address(text))
    if text is not None and text not in _core.backend_names():
        known = ", ".join(_core.backend_names())
        message = f"--on: unknown place {text!r}; expected {known}, dask or dask://HOST:PORT"
        raise _core.ScenarioError(message)
    return Place(backend=text)


def place_of(on: str | None, backend: str | None) -> Place:
    """Read where runs are executed from the arguments `on` and `backend` of a function."""
    if on is not None and backend is not None:
        message = f"on: {on}: given with backend {backend}; expected only one of them"
        raise _core.ScenarioError(message)
    return place(on or backend)


def store_of(on: Place, shared: str | Path | None) -> str | None:
    """Return the shared store of a sweep; None if there is none."""
    if shared is not None:
        from sojourn.storage.store import check_place  # noqa: PLC0415 - slow, and seldom needed

        check_place(f"{shared}")
        return f"{shared}"
    if not on.clustered:
        return None
    if on.scheduler is not None:
        message = (
            "--on dask://HOST:PORT: requires --store; expected s3://bucket/prefix or a directory "
            "that all workers can access"
        )
        raise _core.ScenarioError(message)
    return f"{default_folder() / CLUSTER}"


@dataclass(slots=True, kw_only=True)
class Opened:
    """The executor and the store of a sweep."""

    executor: Executor
    cache: RowCache | None
    warnings: list[str] = field(default_factory=list)

    def all_warnings(self, failure: str | None) -> list[str]:
        """Return the warnings about the stores; `failure` is the first error of the execution."""
        own = [] if failure is None else [f"not all finished runs could be stored: {failure}"]
        return [*self.warnings, *own]


@contextmanager
def placed(
    carriers: Sequence[Carrier],
    on: Place,
    *,
    store: str | None,
    local: RowCache | None,
    jobs: int | None,
) -> Iterator[Opened]:
    """Open the executor and the store of a sweep, and close them afterwards."""
    if store is None:
        yield Opened(executor=LocalExecutor(jobs=jobs, backend=on.backend), cache=local)
        return
    from sojourn.storage.store import opened  # noqa: PLC0415 - as above
    from sojourn.sweeps.distributing import ClusterExecutor  # noqa: PLC0415
    from sojourn.sweeps.sharing import SharedCache  # noqa: PLC0415

    shared = SharedCache(store=opened(store), backend=on.backend, local=local)
    shared.open(carriers)
    executor: LocalExecutor | ClusterExecutor = LocalExecutor(jobs=jobs, backend=on.backend)
    if on.clustered:
        executor = ClusterExecutor(
            scheduler=on.scheduler, cache=shared, jobs=jobs_at_once(jobs, on.backend)
        )
    found = Opened(executor=executor, cache=shared)
    try:
        yield found
    finally:
        if isinstance(executor, ClusterExecutor):
            executor.close()
        failure = shared.end()
        found.warnings += shared.damaged()
        if failure is not None:
            found.warnings.append(f"not all finished runs could be stored: {failure}")
