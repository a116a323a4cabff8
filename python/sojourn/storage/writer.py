"""Write rows to a shared store in batches, concurrently with the runs."""

import itertools
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from sojourn import _core

# Rows that finish within this time become one batch: a crash loses at most these, and 100,000 short
# runs become some thousand objects.
INTERVAL_S = 2.0
# Most rows per batch.
MOST_ROWS = 4_096
# Time until the next attempt to write after an error.
RETRY_S = 10.0


class Batches(Protocol):
    """The destination of batches: the rows of a scenario in a store."""

    def add(self, rows: Mapping[str, bytes]) -> object:
        """Write rows; raises ``ResultError`` if that fails."""


class Writer:
    """A thread that writes rows in batches, to any number of destinations.

    Rows that could not be written stay in memory and are tried again. The thread starts with the
    first row.
    """

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._changed = threading.Condition()
        # Destinations without waiting rows or failure are released.
        self._pending: dict[Batches, dict[str, bytes]] = {}
        self._failures: dict[Batches, str] = {}
        # When the next attempt is due, in seconds of the monotonic clock.
        self._retry_at: dict[Batches, float] = {}
        self._closing = False
        self._written = 0
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def failure(self) -> str | None:
        """Why rows are not in the store; None if all rows so far are."""
        with self._changed:
            return next(iter(self._failures.values()), None)

    @property
    def written(self) -> int:
        """Number of rows in the store."""
        with self._changed:
            return self._written

    def append(self, to: Batches, key: str, row: bytes) -> None:
        """Queue a row for the next batch of a destination."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._write, name="shared store", daemon=True
                )
                self._thread.start()
            self._pending.setdefault(to, {})[key] = row
            self._changed.notify_all()

    def close(self) -> int:
        """Write the waiting rows, with one more attempt after a failure, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        return self._waiting()

    def _waiting(self) -> int:
        return sum(map(len, self._pending.values()))

    def _ready(self) -> int:
        """Count the rows whose destination has not failed."""
        rows = self._pending.items()
        return sum(len(waiting) for to, waiting in rows if to not in self._failures)

    def _write(self) -> None:
        closing = False
        # Ends when the writer is closed.
        while not closing:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                self._changed.wait_for(
                    lambda: self._closing or self._ready() >= MOST_ROWS, timeout=self._interval_s
                )
                closing = self._closing
                waiting = list(self._pending)
            for to in waiting:
                if not closing and time.monotonic() < self._retry_at.get(to, 0.0):
                    continue
                # One batch per destination, because more rows may arrive for the next one; all when
                # closing.
                while self._write_batch(to) and closing:
                    pass

    def _write_batch(self, to: Batches) -> bool:
        """Write a batch; return whether it succeeded and more rows wait."""
        with self._changed:
            rows = dict(itertools.islice(self._pending[to].items(), MOST_ROWS))
        try:
            to.add(rows)
        except Exception as error:  # noqa: BLE001 - the thread must not end with rows left
            known = isinstance(error, _core.ResultError)
            with self._changed:
                self._failures[to] = f"{error}" if known else f"{type(error).__name__}: {error}"
                self._retry_at[to] = time.monotonic() + RETRY_S
            return False
        with self._changed:
            self._failures.pop(to, None)
            self._retry_at.pop(to, None)
            self._written += len(rows)
            for key in rows:
                del self._pending[to][key]
            if self._pending[to]:
                return True
            del self._pending[to]
            return False
