"""Places where runs of a sweep are executed and stored: ``--on`` and ``--store``."""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sojourn import _core
from sojourn.execute.executor import Executor, jobs_at_once
from sojourn.execute.local import LocalExecutor
from sojourn.execute.runs import CLUSTER, default_folder
from sojourn.execute.stores import RowStore

SCHEME = "dask"
_MAX_PORT = 65_535
_ADDRESS = re.compile(r"dask://([^/\s:]+|\[[0-9a-fA-F:]+\]):(\d{1,5})/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where runs are executed: on a backend of this machine, on a cluster, or by an executor."""

    backend: str | None = None
    clustered: bool = False
    scheduler: str | None = None
    executor: Executor | None = None


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
        return Place(clustered=True, scheduler=_address(text))
    if text is not None and text not in _core.backend_names():
        known = ", ".join(_core.backend_names())
        message = f"--on: unknown place {text!r}; expected {known}, dask or dask://HOST:PORT"
        raise _core.ScenarioError(message)
    return Place(backend=text)


def _address(text: str) -> str | None:
    """Read the address of a scheduler; None if it is to be started."""
    if text == SCHEME:
        return None
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= _MAX_PORT:
        message = f"--on: {text}; expected dask or dask://HOST:PORT, such as dask://head:8786"
        raise _core.ScenarioError(message)
    return f"tcp://{found[1]}:{found[2]}"


def place_of(on: str | Executor | None, backend: str | None) -> Place:
    """Read where runs are executed from the arguments `on` and `backend` of a function."""
    if on is not None and backend is not None:
        message = f"on: {on}: given with backend {backend}; expected only one of them"
        raise _core.ScenarioError(message)
    return Place(executor=on) if isinstance(on, Executor) else place(on or backend)


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
    store: RowStore | None
    warnings: list[str] = field(default_factory=list)

    def all_warnings(self, failure: str | None) -> list[str]:
        """Return the warnings about the stores; `failure` is the first error of the execution."""
        own = [] if failure is None else [f"not all finished runs could be stored: {failure}"]
        return [*self.warnings, *own]


@contextmanager
def opened(
    scenarios: Iterable[_core.Scenario],
    on: Place,
    *,
    store: str | None,
    local: RowStore | None,
    jobs: int | None,
) -> Iterator[Opened]:
    """Open the executor and the store of a sweep, and close them afterwards."""
    executor = on.executor or LocalExecutor(jobs=jobs, backend=on.backend)
    if store is None:
        yield Opened(executor=executor, store=local)
        return
    from sojourn.execute.shared import SharedRowStore  # noqa: PLC0415 - as above
    from sojourn.storage.store import Store  # noqa: PLC0415

    shared = SharedRowStore(store=Store.at(store), backend=on.backend, local=local)
    shared.open(scenarios)
    with ExitStack() as stack:
        if on.clustered:
            from sojourn.execute.dask import DaskExecutor  # noqa: PLC0415 - as above

            executor = DaskExecutor(
                name=SCHEME if on.scheduler is None else on.scheduler.replace("tcp", SCHEME, 1),
                scheduler=on.scheduler,
                store=shared,
                jobs=jobs_at_once(jobs, on.backend),
                backend=on.backend,
            )
            stack.callback(executor.close)
        found = Opened(executor=executor, store=shared)
        try:
            yield found
        finally:
            stack.close()
            failure = shared.end()
            found.warnings += shared.damaged()
            if failure is not None:
                found.warnings.append(f"not all finished runs could be stored: {failure}")
