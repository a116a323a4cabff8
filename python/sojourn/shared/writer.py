"""Write rows to a shared store in batches, concurrently with the runs."""

import threading
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
    """A thread that writes rows in batches.

    Rows that could not be written stay in memory and are tried again.

    Parameters
    ----------
    rows
        The destination of the rows.
    interval_s
        How long rows wait for further rows, in seconds.
    """

    def __init__(self, rows: Batches, interval_s: float = INTERVAL_S) -> None:
        self._rows = rows
        self._interval_s = interval_s
        self._changed = threading.Condition()
        self._pending: dict[str, bytes] = {}
        self._failure: str | None = None
        self._closing = False
        self._written = 0
        self._thread = threading.Thread(target=self._write, name="shared store", daemon=True)
        self._thread.start()

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
            return self._failure

    @property
    def written(self) -> int:
        """Number of rows in the store."""
        with self._changed:
            return self._written

    def append(self, key: str, row: bytes) -> None:
        """Queue a row for the next batch."""
        with self._changed:
            self._pending[key] = row
            self._changed.notify_all()

    def close(self) -> int:
        """Write the waiting rows, with one more attempt after a failure, and end the thread.

        Returns
        -------
        int
            Number of rows that were never written; :attr:`failure` gives the reason.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        return len(self._pending)

    def _write(self) -> None:
        # Ends when the writer is closed.
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                pause = self._interval_s if self._failure is None else RETRY_S
                self._changed.wait_for(
                    lambda: (
                        self._closing or (self._failure is None and len(self._pending) >= MOST_ROWS)
                    ),
                    timeout=pause,
                )
                closing = self._closing
                rows = dict(list(self._pending.items())[:MOST_ROWS])
            if rows:
                try:
                    self._rows.add(rows)
                except Exception as error:  # noqa: BLE001 - the thread must not end with rows left
                    known = isinstance(error, _core.ResultError)
                    with self._changed:
                        self._failure = f"{error}" if known else f"{type(error).__name__}: {error}"
                    if closing:
                        return
                    continue
                with self._changed:
                    self._failure = None
                    self._written += len(rows)
                    for key in rows:
                        del self._pending[key]
            with self._changed:
                if self._closing and not self._pending:
                    return
