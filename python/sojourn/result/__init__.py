"""Results: their tables and the metrics computed from them."""

from sojourn.result.result import Result

__all__ = [
    "Result",
]
