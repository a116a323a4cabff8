"""Increase of the ping time under load, by two definitions.

*Induced latency* is ``mean_span`` of flent (https://flent.org), the metric of its plot
``box_combine`` and of "The Good, the Bad and the WiFi". The series of pings are interpolated to a
grid of 0.2 s and averaged; induced latency is the mean of the points under load minus the
smallest. flent's load begins when it starts netperf, which sends data only round trips later, so
that the first point shows an idle link. Here the load begins one step before its first packet, and
the mean covers the time after the warm-up.

*Latency above base* uses the smallest time of the whole run instead of the smallest under load. It
includes the delay of a queue that is never empty under load.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

# flent's STEP_SIZE, in seconds.
STEP = 0.2
# Steps within which the next value must follow, or there is a gap; for the first value, half one.
LONGEST_GAP = 5
FIRST_GAP = 0.5
# Distance in steps, rounded up, within which a reply determines the value of a grid point.
REACH = LONGEST_GAP + 1
KEYS = ("arm", "replication")

Floats = NDArray[np.float64]


def latencies(flows: pl.DataFrame, pings: pl.DataFrame, *, warmup_s: float) -> pl.DataFrame | None:
    """Compute both latencies of every run.

    Parameters
    ----------
    flows, pings
        Tables of an outcome.
    warmup_s
        End of the warm-up, in seconds.

    Returns
    -------
    polars.DataFrame
        One row per run: ``arm``, ``replication``, ``induced_latency_ms`` and
        ``latency_above_base_ms``; None if there are no pings.
    """
    if pings.is_empty():
        return None
    loads = flows.filter(pl.col("kind") != "ping").group_by(KEYS).agg(pl.col("started_s").min())
    begun = {(arm, replication): at for arm, replication, at in loads.iter_rows()}
    rows = []
    for run, of_run in pings.group_by(KEYS, maintain_order=True):
        begin = begun.get(run)
        load_s = warmup_s if begin is None else min(warmup_s, begin - STEP)
        rows.append((*run, _mean_span(of_run, warmup_s=warmup_s, load_s=load_s)))
    schema = pl.Schema({**pings.select(KEYS).schema, "induced_latency_ms": pl.Float64()})
    return pl.DataFrame(rows, schema=schema, orient="row").join(
        _above_base(pings, warmup_s), on=KEYS, how="left", maintain_order="left"
    )


def _above_base(pings: pl.DataFrame, warmup_s: float) -> pl.DataFrame:
    # Mean of differences, not difference of means: exact for equal times.
    above = pl.col("rtt_ms") - pl.col("rtt_ms").min()
    by_flow = pings.group_by(*KEYS, "flow", maintain_order=True).agg(
        latency_above_base_ms=above.filter(pl.col("t_s") >= warmup_s).mean()
    )
    return by_flow.group_by(KEYS, maintain_order=True).agg(pl.col("latency_above_base_ms").mean())


def averaged(pings: pl.DataFrame) -> pl.DataFrame:
    """Average the pings of every run as flent does for its series *Ping (ms) avg*.

    Parameters
    ----------
    pings
        Table of an outcome, or some of its flows.

    Returns
    -------
    polars.DataFrame
        ``arm``, ``replication``, ``t_s`` and ``value``, in ms: the points of the grid at which a
        series has a value.
    """
    schema = pl.Schema({**pings.select(KEYS).schema, "t_s": pl.Float64(), "value": pl.Float64()})
    parts = [pl.DataFrame(schema=schema)]
    for (arm, replication), of_run in pings.group_by(KEYS, maintain_order=True):
        times, average = _averaged(of_run)
        columns = {"arm": arm, "replication": replication, "t_s": times, "value": average}
        parts.append(pl.DataFrame(columns, schema=schema))
    return pl.concat(parts)


def _averaged(pings: pl.DataFrame) -> tuple[Floats, Floats]:
    """Points of the grid at which a series of one run has a value, and the mean of the series."""
    series = [
        _replies(of_flow)
        for _, of_flow in pings.drop_nulls("rtt_ms").group_by("flow", maintain_order=True)
    ]
    if not series:
        return np.array([]), np.array([])
    begin = min(times[0] for times, _ in series)
    end = max(times[-1] for times, _ in series)
    grid = _grid(begin, end, series)
    values = np.array([_on_grid(times, rtts, grid) for times, rtts in series])
    there = np.isfinite(values)
    points = there.any(axis=0)
    average = np.where(there, values, 0.0).sum(axis=0)[points] / there.sum(axis=0)[points]
    return grid[points], average


def _mean_span(pings: pl.DataFrame, *, warmup_s: float, load_s: float) -> float | None:
    """Mean of the averaged series after the warm-up, less its minimum within the load."""
    times, average = _averaged(pings)
    counted = average[times >= warmup_s]
    if not counted.size:
        return None
    # Mean of differences, not difference of means: exact for equal times.
    return float((counted - average[times >= load_s].min()).mean())


def _grid(begin: float, end: float, series: list[tuple[Floats, Floats]]) -> Floats:
    """List the points of the grid at which any series has a value, at least one.

    A point has a value only if a reply is near. In a long run with rare pings, the complete grid
    would have millions of points per reply.
    """
    size = max(int(np.ceil((end - begin) / STEP)), 1)
    replies = sum(times.size for times, _ in series)
    if size <= 2 * REACH * replies:
        return begin + STEP * np.arange(size, dtype=np.float64)
    steps = np.concatenate([(times - begin) / STEP for times, _ in series])
    around = np.arange(-REACH, REACH + 1)
    near = np.unique(steps.astype(np.int64)[:, np.newaxis] + around)
    return begin + STEP * near[(near >= 0) & (near < size)]


def _replies(pings: pl.DataFrame) -> tuple[Floats, Floats]:
    """Arrival times of the replies, in order, and round-trip times, as flent records them."""
    came = pings.select(
        at=pl.col("t_s") + pl.col("rtt_ms") / 1e3, rtt=pl.col("rtt_ms").cast(pl.Float64)
    ).sort("at", maintain_order=True)
    return came["at"].to_numpy(), came["rtt"].to_numpy()


def _on_grid(times: Floats, values: Floats, grid: Floats) -> Floats:
    """Interpolate to the grid as flent does; NaN where there is a gap."""
    after = np.searchsorted(times, grid, side="right")
    following = np.minimum(after, times.size - 1)
    allowed = np.where(after == 0, FIRST_GAP, LONGEST_GAP) * STEP
    near = np.abs(times[following] - grid) <= allowed
    on_grid = np.where(near, np.interp(grid, times, values), np.nan)
    # Past its end a series has its last value once.
    past = np.flatnonzero(after == times.size)
    on_grid[past[1:]] = np.nan
    return on_grid
