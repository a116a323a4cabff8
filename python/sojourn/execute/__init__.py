"""Execute runs: on threads, on processes, or on the workers of a cluster.

:class:`Executor` is what executes runs; ``docs/howto/executor.md`` shows how to write one.
"""

from sojourn.execute.executor import Executor
from sojourn.execute.runs import Row, Run

__all__ = ["Executor", "Row", "Run"]
