"""Ping times averaged as flent does; `crates/lab/src/metrics/latency.rs` computes them."""

import polars as pl

from sojourn import _core


def averaged(pings: pl.DataFrame) -> pl.DataFrame:
    """Average the pings of every run as flent does for its series *Ping (ms) avg*."""
    return in_polars(_core.averaged_pings(stream(pings)), like=pings)


def stream(frame: pl.DataFrame) -> bytes:
    """Write a table of runs as an Arrow IPC stream."""
    return frame.write_ipc_stream(None).getvalue()


def in_polars(table: _core.Table, *, like: pl.DataFrame) -> pl.DataFrame:
    """Convert a table of runs to polars, with replications of the type that `like` has."""
    frame = pl.DataFrame(table)
    return frame.with_columns(pl.col("replication").cast(like.schema["replication"]))
