"""Results: running a scenario, its tables and the metrics computed from them."""

from sojourn.result.result import Result, run

__all__ = [
    "Result",
    "run",
]
