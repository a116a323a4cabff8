"""The curves of a result: series over time, distributions and ellipses, as data.

The figures of papers and of reports draw the same curves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sojourn.result import Result, metrics
from sojourn.result.rows import KEYS

# A line of a figure cannot show more points.
POINTS = 240
# Smaller delays are drawn as this, since a logarithmic axis has no zero.
SMALLEST_MS = 0.01
# A link at which 95 % of packets wait less than this, in every run, has no panels.
IDLE_MS = 0.1
# Points of the outline of an ellipse.
OUTLINE = 73


# Percentiles of the runs between which a band lies.
BAND = (0.05, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line of a figure, of a flow if the quantity is one of flows, with the band of the runs."""

    arm: str
    x: Sequence[float]
    y: Sequence[float]
    flow: str = ""
    band: tuple[Sequence[float], Sequence[float]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ellipse:
    """Variation of delay and goodput of an arm from run to run."""

    arm: str
    delay_ms: Sequence[float]
    goodput_mbit_per_s: Sequence[float]
    centre: tuple[float, float]
    outline: Sequence[tuple[float, float]]


def directions(result: Result) -> list[str]:
    """List the directions of data, download first."""
    return metrics.directions(result.flows)


def link_names(result: Result) -> list[str]:
    """List the links, download first."""
    names = result.links["link"].unique(maintain_order=True).to_list()
    return sorted(names, key=lambda name: (name != "down", name))


def waiting_links(result: Result) -> list[str]:
    """List the links at which packets wait in any run, download first."""
    longest = result.links.group_by("link").agg(pl.col("sojourn_ms_p95").max())
    waiting = set(longest.filter(pl.col("sojourn_ms_p95") >= IDLE_MS)["link"])
    return [name for name in link_names(result) if name in waiting]


def ellipses(result: Result, direction: str, group: str | None = None) -> list[Ellipse]:
    """Compute the ellipse of each arm for one direction of data, or for one group in it."""
    column = f"goodput_{direction}_mbit_per_s"
    if "induced_latency_ms" not in result.table().columns:
        return []
    per_run = result.table().select(*KEYS, "induced_latency_ms", column)
    if group is not None:
        of_group = flows_of(result, direction, group)
        per_flow = of_group.group_by(KEYS).agg(pl.col("goodput_mbit_per_s").sum().alias(column))
        per_run = per_run.drop(column).join(per_flow, on=KEYS, how="inner", maintain_order="left")
    found = []
    for arm in result.arms:
        runs = per_run.filter(pl.col("arm") == arm).drop_nulls(["induced_latency_ms", column])
        if runs.is_empty():
            continue
        delays = runs["induced_latency_ms"].to_numpy()
        found.append(ellipse(arm, delays, runs[column].to_numpy()))
    return found


def ellipse(
    arm: str,
    delay_ms: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    goodput_mbit_per_s: "np.ndarray[tuple[int], np.dtype[np.float64]]",
) -> Ellipse:
    """Compute the ellipse of an arm from the mean delay and the mean goodput of each run."""
    delay = np.maximum(delay_ms, SMALLEST_MS)
    centre = (float(np.median(delay)), float(np.median(goodput_mbit_per_s)))
    return Ellipse(
        arm=arm,
        delay_ms=delay.tolist(),
        goodput_mbit_per_s=goodput_mbit_per_s.tolist(),
        centre=centre,
        outline=_outline(delay, goodput_mbit_per_s, centre),
    )


def _outline(
    delay: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    goodput: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    centre: tuple[float, float],
) -> list[tuple[float, float]]:
    if delay.size < 2:  # noqa: PLR2004 - a spread takes two
        return []
    values, vectors = np.linalg.eigh(np.cov(np.log10(delay), goodput))
    angles = np.linspace(0.0, 2.0 * np.pi, OUTLINE)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    shape = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * circle)
    xs = 10.0 ** (np.log10(centre[0]) + shape[0])
    ys = centre[1] + shape[1]
    return list(zip(xs.tolist(), ys.tolist(), strict=True))


def flows_of(result: Result, direction: str, group: str | None = None) -> pl.DataFrame:
    """Return the flows of one direction of data, or of one group in it."""
    sides = pl.col("direction").fill_null("total")
    of_side = result.flows.filter(sides == direction)
    return of_side if group is None else of_side.filter(pl.col("group") == group)


def pings(result: Result, group: str | None = None) -> pl.DataFrame:
    """Return the table of pings, or of one group of them."""
    if group is None:
        return result.pings
    of_group = result.flows.filter(pl.col("group") == group).select(*KEYS, "flow")
    return result.pings.join(of_group, on=[*KEYS, "flow"], how="semi")


def ping_times(result: Result, group: str | None = None) -> pl.DataFrame:
    """Return the round-trip times of pings, or of one group of them, in ms, as ``value``."""
    return pings(result, group).select(*KEYS, "flow", "t_s", value="rtt_ms")


def goodput(result: Result, direction: str, group: str | None = None) -> pl.DataFrame:
    """Return the goodput of one direction in each sample interval, in Mbit/s, as ``value``."""
    of = flows_of(result, direction, group).select(*KEYS, "flow")
    return (
        result.flow_series.join(of, on=[*KEYS, "flow"], how="semi")
        .group_by(*KEYS, "t_s", maintain_order=True)
        .agg(value=pl.col("goodput_mbit_per_s").sum())
    )


def at_link(link: str, value: pl.Expr, result: Result) -> pl.DataFrame:
    """Return what is measured at a link in each sample interval, as ``value``."""
    return result.link_series.filter(link=link).select(*KEYS, "t_s", value=value.cast(pl.Float64))


def state(result: Result, statistic: Mapping[str, object]) -> pl.DataFrame:
    """Return a statistic of a queue in each sample, as ``value``; null where it was not defined."""
    of_link = result.link_series.filter(link=statistic["link"]).select(*KEYS, "t_s")
    same = [pl.col(column).eq_missing(value) for column, value in statistic.items()]
    found = result.queue_series.filter(same).select(*KEYS, "t_s", "value")
    return of_link.join(found, on=[*KEYS, "t_s"], how="left", maintain_order="left")


def of_flows(result: Result, column: str, group: str) -> pl.DataFrame:
    """Return a column of the samples of the flows of a group, as ``value``."""
    of_group = result.flow_series.filter(pl.col("group") == group)
    return of_group.select(*KEYS, "flow", "t_s", value=pl.col(column).cast(pl.Float64))


def over_time(result: Result, samples: pl.DataFrame) -> list[Curve]:
    """Average samples over bins of time in each run, then over the runs of each arm."""
    width = result.scenario.checked.duration_s / POINTS
    binned = samples.drop_nulls("value").with_columns(bin=(pl.col("t_s") / width).floor())
    runs = binned.group_by(*KEYS, "bin", maintain_order=True).agg(pl.col("value").mean())
    low, high = (pl.col("value").quantile(share, "linear") for share in BAND)
    means = runs.group_by("arm", "bin").agg(pl.col("value").mean(), low=low, high=high)
    curves = []
    for arm in result.arms:
        of_arm = means.filter(pl.col("arm") == arm).sort("bin")
        if not of_arm.is_empty():
            at = ((of_arm["bin"] + 0.5) * width).to_list()
            band = (of_arm["low"].to_list(), of_arm["high"].to_list())
            several = runs.filter(pl.col("arm") == arm)["replication"].n_unique() > 1
            mean = of_arm["value"].to_list()
            curves.append(Curve(arm=arm, x=at, y=mean, band=band if several else None))
    return curves


def of_run(result: Result, samples: pl.DataFrame) -> list[Curve]:
    """Return the samples of one run of each arm as they are, a curve per flow if flows have names.

    Where a sample has no value, the curve has a gap.
    """
    by = [name for name in ("arm", "flow") if name in samples.columns]
    runs = samples.sort("t_s").partition_by(by, as_dict=True, maintain_order=True)
    known = ((key, of) for key, of in runs.items() if of["value"].count())
    found = [
        Curve(
            arm=key[0],
            flow=key[1] if len(key) > 1 else "",
            x=of["t_s"].to_list(),
            y=of["value"].fill_null(float("nan")).to_list(),
        )
        for key, of in known
    ]
    return sorted(found, key=lambda curve: (result.arms.index(curve.arm), curve.flow))


def ping_cdfs(result: Result, group: str | None = None) -> list[Curve]:
    """Compute the distribution of round-trip times after the warm-up, over all runs."""
    return cdfs(result, measured(result, ping_times(result, group)))


def measured(result: Result, samples: pl.DataFrame) -> pl.DataFrame:
    """Keep the samples from the end of the warm-up on that have a value."""
    return samples.filter(
        pl.col("t_s") >= result.scenario.checked.warmup_s, pl.col("value").is_not_null()
    )


def cdfs(result: Result, samples: pl.DataFrame) -> list[Curve]:
    """Compute the distribution of ``value`` of each arm, finest in its upper tail."""
    shares = np.concatenate([np.linspace(0.0, 0.95, 96), np.linspace(0.952, 1.0, 25)])
    curves = []
    for arm in result.arms:
        values = samples.filter(pl.col("arm") == arm)["value"].to_numpy()
        if values.size:
            curves.append(Curve(arm=arm, x=np.quantile(values, shares).tolist(), y=shares.tolist()))
    return curves


def sojourn_counts(result: Result, link: str, replication: int | None = None) -> pl.DataFrame:
    """Return the number of packets of each arm by the upper edge of their bucket."""
    return (
        of_replication(result.sojourn.filter(pl.col("link") == link), replication)
        .group_by("arm", "high_ms")
        .agg(pl.col("count").sum())
        .sort("high_ms")
    )


def of_replication(samples: pl.DataFrame, replication: int | None) -> pl.DataFrame:
    """Return the samples of one replication, or of all for None."""
    return samples if replication is None else samples.filter(replication=replication)


def sojourn_cdfs(result: Result, link: str, replication: int | None = None) -> list[Curve]:
    """Compute the distribution of sojourn times at a link after the warm-up, over all runs."""
    buckets = sojourn_counts(result, link, replication)
    curves = []
    for arm in result.arms:
        of_arm = buckets.filter(pl.col("arm") == arm)
        if of_arm.is_empty():
            continue
        shares = of_arm["count"].cum_sum() / of_arm["count"].sum()
        highs = of_arm["high_ms"].clip(lower_bound=SMALLEST_MS)
        x, y = _thinned(highs.to_list(), shares.to_list())
        curves.append(Curve(arm=arm, x=x, y=y))
    return curves


def _thinned(x: list[float], y: list[float]) -> tuple[list[float], list[float]]:
    """Keep the points where a distribution moves by a visible step, and its ends."""
    keep = [0]
    for index in range(1, len(x)):
        if y[index] - y[keep[-1]] >= 1.0 / POINTS or index == len(x) - 1:
            keep.append(index)
    return [x[index] for index in keep], [y[index] for index in keep]
