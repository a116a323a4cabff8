"""Execute runs on this machine."""

import itertools
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

from sojourn.execute import processes
from sojourn.execute.processes import ProcessExecutor
from sojourn.execute.runs import Row, Run
from sojourn.execute.threads import ThreadExecutor


@dataclass(slots=True, kw_only=True)
class LocalExecutor:
    """Executes runs on threads, or on processes if queues are written in Python."""

    jobs: int | None = None
    backend: str | None = None

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        """Execute runs; see :meth:`Executor.execute`."""
        for on_processes, group in itertools.groupby(parts, self._needs_processes):
            kind = ProcessExecutor if on_processes else ThreadExecutor
            yield from kind(jobs=self.jobs, backend=self.backend).execute(group)

    def _needs_processes(self, part: Sequence[Run]) -> bool:
        several = self.jobs != 1 and len(part) > 1
        return several and bool(processes.checked_queues(part[0].scenario))
