"""Targets that execute the runs of a sweep, and their stores: the arguments `on` and `shared`."""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.execute.executor import Executor, jobs_at_once
from sojourn.execute.local import LocalExecutor
from sojourn.execute.runs import CLUSTER, RowStore, default_folder

SCHEME = "dask"
_MAX_PORT = 65_535
_ADDRESS = re.compile(r"dask://([^/\s:]+|\[[0-9a-fA-F:]+\]):(\d{1,5})/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where runs are executed: on a backend of this machine, on a cluster, or by an executor."""

    backend: str | None = None
    clustered: bool = False
    scheduler: str | None = None
    executor: Executor | None = None
    # As the user wrote it.
    text: str | None = None


def target(on: str | Executor | None) -> Target:
    """Read where runs are executed: a backend on this machine, a cluster, or an executor.

    Examples
    --------
    >>> target("dask://head:8786").scheduler
    'tcp://head:8786'
    >>> target("sim").backend
    'sim'
    """
    if isinstance(on, Executor):
        return Target(executor=on)
    if on is not None and on.partition(":")[0] == SCHEME:
        return Target(clustered=True, scheduler=_address(on), text=on)
    if on is not None and on not in _core.backend_names():
        known = ", ".join(_core.backend_names())
        rule = "unknown; expected {known}, dask or dask://HOST:PORT"
        raise ArgumentError("on", on, rule, known=known)
    return Target(backend=on, text=on)


def _address(text: str) -> str | None:
    """Read the address of a scheduler; None if it is to be started."""
    if text == SCHEME:
        return None
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= _MAX_PORT:
        rule = "expected dask or dask://HOST:PORT, such as dask://head:8786"
        raise ArgumentError("on", text, rule)
    return f"tcp://{found[1]}:{found[2]}"


def store_of(on: Target, shared: str | Path | None) -> str | None:
    """Return the shared store of a sweep; None if there is none."""
    if shared is not None:
        from sojourn.storage.store import STORES, is_store  # noqa: PLC0415 - slow, seldom needed

        if not is_store(f"{shared}"):
            raise ArgumentError("shared", f"{shared}", f"expected {STORES}")
        return f"{shared}"
    if not on.clustered:
        return None
    if on.scheduler is not None:
        raise ArgumentError(
            "on",
            on.text,
            "requires {shared}; expected s3://bucket/prefix or a directory that all workers can "
            "access",
        )
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
    on: Target,
    *,
    store: str | None,
    local: RowStore | None,
    jobs: int | None,
    fresh: bool,
) -> Iterator[Opened]:
    """Open the executor and the store of a sweep, and close them afterwards."""
    executor = on.executor or LocalExecutor(jobs=jobs, backend=on.backend)
    if store is None:
        yield Opened(executor=executor, store=local)
        return
    from sojourn.execute.shared import SharedRowStore  # noqa: PLC0415 - as above
    from sojourn.storage.store import Store  # noqa: PLC0415

    shared = SharedRowStore(store=Store.at(store), backend=on.backend, local=local, fresh=fresh)
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
