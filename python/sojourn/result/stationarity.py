"""Check stationarity: compare the first half of the measured time with the second.

If goodput or latency differs between the halves by more than chance explains, the load had not
settled when the measurement began, and the means depend on the length of the run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from sojourn.result.metrics import HAS_CONNECTION, HAS_CONSTANT_RATE, IS_MEASURED_AS_FLOW, KEYS
from sojourn.result.student import p_value

# Probability of at least one false alarm in a stationary result, divided among its tests.
FALSE_ALARM = 0.01
# Smaller differences do not cause a warning, even if they are significant.
LEAST_SHARE = 0.10
# Flows that start within this time of the first one start together.
TOGETHER_S = 2.0
# With fewer runs, the test takes parts of the measured time instead of runs.
LEAST_RUNS = 3
# Parts of each half.
PARTS = 5
# Of a shorter measured time, parts are too short to be tested.
LEAST_PAIRS = 4
# Rows of the series of a result that are examined at once.
ROWS = 200_000
# A link is a source of latency if packets wait for it for this share of the time.
BUSY_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A quantity that changes during the measured time."""

    arm: str
    quantity: str
    unit: str
    first: float
    second: float
    middle_s: float
    runs: int


def drifts(
    flows: pl.DataFrame,
    flow_series: pl.DataFrame,
    links: pl.DataFrame,
    link_series: pl.DataFrame,
    pings: pl.DataFrame,
    *,
    warmup_s: float,
    duration_s: float,
) -> list[Drift]:
    """Find the quantities that differ between the halves of the measured time.

    Goodput of each direction; and the RTT of pings or, without pings, the sojourn times of the
    links for which packets wait. The difference between the halves is taken in each run, and a
    t test decides whether its mean is 0. Of fewer than ``LEAST_RUNS`` runs, the mean of the runs
    is cut into parts instead: each part of the first half is compared with that of the second.

    The load is the endless connections and the UDP flows. An arm is tested only if it has a load
    that lasts for the whole measured time, and none that starts or ends within it: then the change
    is part of the experiment. Latency is compared only where nothing but such load, calls and
    pings is sent: other traffic begins and ends by itself.
    """
    endless = HAS_CONNECTION & pl.col("bytes").is_null()
    foreign = ~(endless | HAS_CONSTANT_RATE)
    alone = flows.group_by("arm").agg(alone=~foreign.any()).filter("alone")
    span = {"warmup_s": warmup_s, "duration_s": duration_s}
    spans, rates = [], []
    # In pieces: the series are long, and each step copies its piece.
    for piece in _pieces(flow_series):
        load = _load(flows, piece)
        spans.append(_spans(load))
        rates.append(_parts(_goodput(load), **span))
    steady = _steady(pl.concat(spans), warmup_s=warmup_s, duration_s=duration_s)
    waiting = steady.join(alone, on="arm", how="semi")
    goodput = _of_arms(rates, steady)
    ping = _of_arms([_parts(_ping_rtt(piece), **span) for piece in _pieces(pings)], waiting)
    busy = _busy(links, pings)
    sojourn = _of_arms(
        [_parts(_sojourn(busy, piece), **span) for piece in _pieces(link_series)], waiting
    )
    parts = pl.concat(
        part.with_columns(quantity=pl.format(name, "of"), unit=pl.lit(unit))
        for part, name, unit in (
            (goodput, "goodput {}", "Mbit/s"),
            (ping, "ping RTT{}", "ms"),
            (sojourn, "sojourn time of link {}", "ms"),
        )
    )
    tests = list(_tests(parts, middle_s=(warmup_s + duration_s) / 2))
    of_arms = {arm: at for at, arm in enumerate(flows["arm"].unique(maintain_order=True))}
    found = [drift for drift, p in tests if _is_large(drift) and p < FALSE_ALARM / len(tests)]
    return sorted(found, key=lambda drift: of_arms[drift.arm])


def _is_large(drift: Drift) -> bool:
    return abs(drift.second - drift.first) > LEAST_SHARE * (drift.first + drift.second) / 2


def _pieces(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Cut a table into pieces of whole runs with about `ROWS` rows."""
    changes = pl.any_horizontal(pl.col(key) != pl.col(key).shift(1) for key in KEYS)
    starts = [0, *table.select(changes.arg_true()).to_series().to_list()]
    # The rows of a run follow each other, unless another program wrote the table.
    if table.height <= ROWS or table[starts].select(KEYS).is_duplicated().any():
        yield table
        return
    begin = 0
    for end in [*starts[1:], table.height]:
        if end - begin >= ROWS or end == table.height:
            yield table[begin:end]
            begin = end


def _load(flows: pl.DataFrame, flow_series: pl.DataFrame) -> pl.DataFrame:
    """Return the series of the flows that send without end, with the length of each interval."""
    keys = [*KEYS, "flow"]
    endless = HAS_CONNECTION & pl.col("bytes").is_null()
    of_load = flows.filter(endless | (HAS_CONSTANT_RATE & IS_MEASURED_AS_FLOW))
    of_load = of_load.select(*keys, pl.col("direction").fill_null("total"))
    # Of long series, only what is needed.
    rates = flow_series.select(*keys, "t_s", "goodput_mbit_per_s")
    series = of_load.join(rates, on=keys, how="inner", maintain_order="left_right")
    step = pl.col("t_s") - pl.col("t_s").shift(1).over(keys)
    series = series.with_columns(step=step)
    # The series of a flow begins with the interval in which it starts; all are of equal length.
    first = pl.coalesce(pl.col("step").min().over(keys), "t_s")
    return series.with_columns(step=pl.col("step").fill_null(first))


def _spans(load: pl.DataFrame) -> pl.DataFrame:
    """Return the start and the end of each flow, and the length of the intervals of its series."""
    return load.group_by(*KEYS, "flow", maintain_order=True).agg(
        start=pl.col("t_s").first() - pl.col("step").min(),
        end=pl.col("t_s").last(),
        interval=pl.col("step").min(),
    )


def _steady(spans: pl.DataFrame, *, warmup_s: float, duration_s: float) -> pl.DataFrame:
    """Return the arms whose load neither starts nor ends within the measured time."""
    together = pl.max_horizontal(warmup_s, pl.col("start").min().over(KEYS) + TOGETHER_S)
    late = (pl.col("start") > together) & (pl.col("start") < duration_s)
    early = (pl.col("end") > warmup_s) & (pl.col("end") < duration_s - pl.col("interval"))
    return spans.group_by("arm").agg(steady=~(late | early).any()).filter("steady").select("arm")


def _goodput(load: pl.DataFrame) -> pl.DataFrame:
    """Sum the goodput of each direction over its flows."""
    rate = pl.col("goodput_mbit_per_s")
    return (
        load.drop_nulls("t_s")
        .group_by(*KEYS, of="direction", t_s="t_s", maintain_order=True)
        .agg(value=rate.sum(), weight=pl.col("step").min())
    )


def _ping_rtt(pings: pl.DataFrame) -> pl.DataFrame:
    return pings.drop_nulls("rtt_ms").select(
        *KEYS, "t_s", of=pl.lit(""), value="rtt_ms", weight=pl.lit(1.0)
    )


def _busy(links: pl.DataFrame, pings: pl.DataFrame) -> pl.DataFrame:
    """Return the links for which packets wait, in arms without pings."""
    busy = links.group_by("arm", "link").agg(pl.col("busy_share").mean())
    return busy.filter(pl.col("busy_share") >= BUSY_SHARE).join(pings, on="arm", how="anti")


def _sojourn(busy: pl.DataFrame, link_series: pl.DataFrame) -> pl.DataFrame:
    """Return the sojourn times of links."""
    return (
        link_series.lazy()
        .filter(pl.col("sojourn_ms_mean").is_not_null())
        .join(busy.lazy(), on=["arm", "link"], how="semi", maintain_order="left")
        .select(
            *KEYS,
            "t_s",
            of="link",
            value="sojourn_ms_mean",
            weight=pl.col("sent_packets").cast(pl.Float64),
        )
        .collect()
    )


def _parts(values: pl.DataFrame, *, warmup_s: float, duration_s: float) -> pl.DataFrame:
    """Average the values of each run in each part of the measured time, in lists."""
    length = (duration_s - warmup_s) / (2 * PARTS)
    # An interval that ends with a part belongs to it.
    part = (((pl.col("t_s") - warmup_s) / length).ceil() - 1).cast(pl.Int64)
    mean = (pl.col("value") * pl.col("weight")).sum() / pl.col("weight").sum()
    keys = [*KEYS, "of"]
    is_measured = pl.col("t_s").is_between(warmup_s, duration_s, closed="right")
    return (
        values.filter(is_measured)
        .group_by(*keys, part=part, maintain_order=True)
        .agg(mean=mean)
        .sort(*keys, "part")
        .group_by(*keys, maintain_order=True)
        .agg("part", "mean")
    )


def _of_arms(parts: Sequence[pl.DataFrame], arms: pl.DataFrame) -> pl.DataFrame:
    """Put the parts of all runs of some arms in order."""
    found = pl.concat(parts).join(arms, on="arm", how="semi", maintain_order="left")
    return found.sort(*KEYS, "of")


def _tests(parts: pl.DataFrame, *, middle_s: float) -> Iterator[tuple[Drift, float]]:
    """Compare the halves of each quantity of each arm, with the p value of their difference."""
    of = ["arm", "quantity", "unit"]
    for (arm, quantity, unit), runs in parts.group_by(of, maintain_order=True):
        rows = [dict(zip(*row, strict=True)) for row in runs.select("part", "mean").iter_rows()]
        # Parts without a sample are left out on both sides.
        pairs = [(n, n + PARTS) for n in range(PARTS)]
        pairs = [pair for pair in pairs if all(pair[0] in row and pair[1] in row for row in rows)]
        if len(pairs) < LEAST_PAIRS:
            continue
        per_run = [[(row[before], row[after]) for before, after in pairs] for row in rows]
        changes = [[after - before for before, after in run] for run in per_run]
        halves = [tuple(map(fmean, zip(*run, strict=True))) for run in per_run]
        over_runs = [fmean(run) for run in changes]
        over_parts = [fmean(of_part) for of_part in zip(*changes, strict=True)]
        drift = Drift(
            arm=arm,
            quantity=quantity,
            unit=unit,
            first=fmean(first for first, _ in halves),
            second=fmean(second for _, second in halves),
            middle_s=middle_s,
            runs=len(rows),
        )
        yield drift, p_value(over_runs if len(rows) >= LEAST_RUNS else over_parts)
