"""Results: running a scenario, its tables and the metrics computed from them."""

from sojourn.result.result import Interrupted, Result, run

__all__ = [
    "Interrupted",
    "Result",
    "run",
]
