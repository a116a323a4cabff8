"""Ping times averaged as flent does; `crates/lab/src/metrics/latency.rs` computes them."""

from collections.abc import Mapping

import polars as pl

from sojourn import _core

# Columns of pings, beside the keys of a run.
PINGS = {"t_s": pl.Float64(), "flow": pl.String(), "rtt_ms": pl.Float64()}
_KEYS = {"arm": pl.String(), "replication": pl.UInt32()}


def averaged(pings: pl.DataFrame) -> pl.DataFrame:
    """Average the pings of every run as flent does for its series *Ping (ms) avg*."""
    return in_polars(_core.averaged_pings(stream(pings, PINGS)), like=pings)


def stream(frame: pl.DataFrame, columns: Mapping[str, pl.DataType]) -> bytes:
    """Write columns of a table of runs as an Arrow IPC stream."""
    chosen = frame.select(pl.col(name).cast(kind) for name, kind in {**_KEYS, **columns}.items())
    return chosen.write_ipc_stream(None).getvalue()


def in_polars(table: _core.Table, *, like: pl.DataFrame) -> pl.DataFrame:
    """Convert a table of runs to polars, with replications of the type that `like` has."""
    frame = pl.DataFrame(table)
    return frame.with_columns(pl.col("replication").cast(like.schema["replication"]))
