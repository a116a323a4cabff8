"""The properties of the flows of a table that follow from the type of their traffic."""

import polars as pl

from sojourn import _core

_TYPES = _core.traffic_types()


def _is_any(kinds: list[str]) -> pl.Expr:
    return pl.col("kind").is_in(kinds)


# Flows that are a connection, with a congestion window.
HAS_CONNECTION = _is_any([name for name, of in _TYPES.items() if of["has_connection"]])
# Flows whose goodput counts, those of unknown types included.
CARRIES_DATA = ~_is_any([name for name, of in _TYPES.items() if not of["carries_data"]])
# Flows whose rate the scenario sets, whatever the network does.
HAS_CONSTANT_RATE = _is_any([name for name, of in _TYPES.items() if of["constant_rate"]])
# Flows that groups of flows have metrics of.
IS_MEASURED_AS_FLOW = _is_any([name for name, of in _TYPES.items() if of["measured"] == "group"])


def transactions(kind: str) -> str | None:
    """Return what the transactions of a type of traffic are called, such as ``"pages"``."""
    return _TYPES[kind]["transactions"]
