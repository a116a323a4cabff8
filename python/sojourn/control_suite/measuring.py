"""The metrics of a case of a congestion control, per run."""

import polars as pl

from sojourn.control_suite.definitions import OWN_METRICS
from sojourn.control_suite.topology import ControlCase
from sojourn.result import Result
from sojourn.result.metrics import HAS_CONNECTION, jain
from sojourn.result.rows import KEYS
from sojourn.suites.case import PROBE
from sojourn.suites.measuring import WHOLE, measure

_GROUPED = [*KEYS, "group"]


def measured(result: Result, case: ControlCase) -> pl.DataFrame:
    """Compute the metrics of all suites, and those of congestion controls."""
    found = measure(result, case)
    for frame in (_of_path(result, case), _of_flows(result, case)):
        found = _joined(found, frame)
    if case.measures is not None:
        own = case.measures(result, case).with_columns(group=pl.lit(WHOLE))
        found = _joined(found, own)
    missing = [one.column for one in OWN_METRICS if one.column not in found.columns]
    found = found.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in missing)
    # Shares of nothing: a path that is dead delivers no goodput to divide by.
    numbers = [name for name, kind in found.schema.items() if kind == pl.Float64]
    return found.with_columns(
        pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in numbers
    )


def _joined(found: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """Add columns; a column that is there already is kept where it has a value."""
    frame = frame.with_columns(pl.col("replication").cast(found.schema["replication"]))
    both = found.join(frame, on=_GROUPED, how="left", maintain_order="left", suffix="_new")
    again = [name for name in frame.columns if f"{name}_new" in both.columns]
    return both.with_columns(pl.coalesce(name, f"{name}_new") for name in again).drop(
        f"{name}_new" for name in again
    )


def _seconds(result: Result) -> float:
    checked = result.scenario.checked
    return checked.duration_s - checked.warmup_s


def _of_path(result: Result, case: ControlCase) -> pl.DataFrame:
    """Compute what concerns the whole path: used capacity, delay in RTTs, recovery."""
    data = result.flows.filter(pl.col("group") != PROBE, HAS_CONNECTION)
    delivered = data.group_by(KEYS, maintain_order=True).agg(
        mbit=pl.col("delivered_bytes").sum() * 8e-6 / _seconds(result),
        rtt_ms=pl.col("base_rtt_ms").min(),
    )
    links = result.links.filter(pl.col("link") == case.bottleneck)
    whole = links.join(delivered, on=KEYS, how="left", maintain_order="left").select(
        *KEYS,
        group=pl.lit(WHOLE),
        used_percent=pl.col("mbit") / pl.col("capacity_mbit_per_s") * 100,
        queueing_rtts=pl.col("sojourn_ms_mean") / pl.col("rtt_ms"),
    )
    return whole.join(_recovery(result), on=KEYS, how="left", maintain_order="left")


def _recovery(result: Result) -> pl.DataFrame:
    """Compare the goodput of the last third of the measured time with that of the first."""
    checked = result.scenario.checked
    third = _seconds(result) / 3
    series = result.flow_series.filter(
        pl.col("group") != PROBE, pl.col("t_s") > checked.warmup_s
    ).with_columns(part=((pl.col("t_s") - checked.warmup_s - 1e-9) / third).floor())
    goodput = pl.col("goodput_mbit_per_s")
    first, last = (goodput.filter(pl.col("part") == part).sum() for part in (0, 2))
    ratio = last / first * 100
    return series.group_by(KEYS, maintain_order=True).agg(
        recovered_percent=pl.when(ratio.is_finite()).then(ratio)
    )


def _of_flows(result: Result, case: ControlCase) -> pl.DataFrame:
    """Compute the shares of endless connections, in each class and in all of them."""
    endless = result.flows.filter(
        pl.col("kind").is_in(["tcp", "quic"]), pl.col("bytes").is_null()
    ).with_columns(group=pl.col("group").replace_strict(dict(case.classes)))
    goodput = pl.col("goodput_mbit_per_s")
    endless = endless.with_columns(share=goodput / goodput.mean().over(KEYS))
    rtts = _seconds(result) * 1e3 / pl.col("base_rtt_ms")
    columns = {
        "jain": pl.when(pl.len() > 1).then(jain(goodput)),
        "fair_share": pl.col("share").mean().fill_nan(None),
        "smallest_share": pl.when(pl.len() > 1).then(pl.col("share").min().fill_nan(0.0)),
        "packets_per_rtt": (pl.col("sent_packets") / rtts).mean(),
    }
    classes = endless.group_by(_GROUPED, maintain_order=True).agg(**columns)
    whole = endless.group_by(KEYS, maintain_order=True).agg(**columns)
    names = [*_GROUPED, *columns]
    return pl.concat([whole.with_columns(group=pl.lit(WHOLE)).select(names), classes.select(names)])
