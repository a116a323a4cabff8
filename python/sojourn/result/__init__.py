"""Results: running a scenario, its tables and the metrics computed from them."""

from sojourn.result.result import Result
from sojourn.result.running import Interrupted, run

__all__ = [
    "Interrupted",
    "Result",
    "run",
]
