"""Where the runs of sweeps and searches are executed and stored."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sojourn import _core
from sojourn.cli import session
from sojourn.execute.executor import jobs_at_once
from sojourn.execute.places import Place
from sojourn.execute.runs import default_folder
from sojourn.execute.stores import LocalRowStore
from sojourn.result.formatting import counted


def row_store(backend: str | None) -> LocalRowStore | None:
    """Open the run store; if it is not usable, print a warning and return None."""
    try:
        return LocalRowStore(store=_core.RunStore(default_folder()), backend=backend)
    except (_core.ResultError, RuntimeError) as error:
        session.say(f"warning: {error}; runs are not stored")
        return None


def processors(on: object, at: Place, jobs: int | None) -> tuple[int | None, str]:
    """Return the number of processors that execute runs, None if unknown, and their description."""
    if at.scheduler is not None:
        return None, f"on {on}"
    count = jobs_at_once(jobs, at.backend)
    return count, f"on {counted(count, 'processor')}"


@contextmanager
def announced(store: str | Path | None) -> Iterator[None]:
    """Say afterwards if the runs have created the shared store, whose name may be a mistake."""
    folder = None if store is None or "://" in f"{store}" else Path(store)
    is_new = folder is not None and not folder.exists()
    yield
    if folder is not None and is_new and folder.exists():
        session.say(f"created store {folder.absolute()}")
