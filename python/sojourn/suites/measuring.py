"""The metrics of suites, those of RFC 7928 section 2, per run: all traffic, classes, phases."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn import _core
from sojourn.result import Result
from sojourn.result.metrics import DROPS
from sojourn.result.rows import KEYS
from sojourn.suites.case import PROBE, Case
from sojourn.suites.definitions import METRICS

WHOLE = "all"
_SCHEMA: dict[str, type[pl.DataType]] = {
    "arm": pl.String,
    "replication": pl.Int64,
    "group": pl.String,
    **dict.fromkeys((metric.column for metric in METRICS), pl.Float64),
}


def measure(result: Result, case: Case) -> pl.DataFrame:
    """Compute the metrics of a case."""
    classes = _classes(result, case)
    frames = [_whole(result, case, classes), classes, *_phases(result, case)]
    # Missing columns are null; the order is that of METRICS.
    found = pl.concat([pl.DataFrame(schema=_SCHEMA), *frames], how="diagonal_relaxed")
    return found.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def acted(result: Result, case: Case, arm: str, *, marks: bool) -> bool:
    """Whether the AQM of an arm dropped or marked a packet (or only: marked one) in any run."""
    links = result.links.filter(pl.col("arm") == arm, pl.col("link") == case.bottleneck)
    names = ["marks_aqm", "marks_ce_threshold", *([] if marks else ["drops_aqm"])]
    return bool(links.select(pl.sum_horizontal(names).sum()).item())


def _measured_s(result: Result) -> float:
    checked = result.scenario.checked
    return checked.duration_s - checked.warmup_s


def _data(result: Result, case: Case) -> pl.DataFrame:
    """Return the flows of the classes, with their class as ``group``."""
    return result.flows.filter(pl.col("group") != PROBE).with_columns(
        group=pl.col("group").replace_strict(dict(case.classes))
    )


def _events(result: Result) -> pl.DataFrame:
    return result.events.filter(pl.col("t_s") >= result.scenario.checked.warmup_s)


def _whole(result: Result, case: Case, classes: pl.DataFrame) -> pl.DataFrame:
    marks = pl.col("marks_aqm") + pl.col("marks_ce_threshold")
    link = result.links.filter(pl.col("link") == case.bottleneck).select(
        *KEYS,
        group=pl.lit(WHOLE),
        queueing_ms="sojourn_ms_mean",
        queueing_ms_p95="sojourn_ms_p95",
        loss_percent=DROPS / (DROPS + pl.col("sent_packets")) * 100,
        mark_percent=marks / pl.col("sent_packets") * 100,
        utilisation_percent=pl.col("utilisation") * 100,
    )
    flows = _data(result, case)
    delivered = flows.group_by(KEYS).agg(
        goodput_mbit_per_s=pl.col("delivered_bytes").sum() * 8e-6 / _measured_s(result),
        retransmit_percent=_retransmissions(),
    )
    pings = result.flows.filter(pl.col("group") == PROBE).select(
        *KEYS, pdv_ms_p95=pl.col("ping_ms_p95") - pl.col("ping_ms_min")
    )
    whole = link
    for frame in (delivered, pings, _synchronisation(result, case), _ratio(case, classes)):
        if frame is not None:
            whole = whole.join(frame, on=KEYS, how="left", maintain_order="left")
    return whole


def _retransmissions() -> pl.Expr:
    """Return the share of retransmitted segments, in percent."""
    has = pl.col("retransmits").is_not_null()
    sent = pl.col("sent_packets").filter(has).sum()
    return (pl.col("retransmits").sum() / sent * 100).fill_nan(None)


def _classes(result: Result, case: Case) -> pl.DataFrame:
    keys = [*KEYS, "group"]
    finite = pl.col("bytes").is_not_null()
    # The delay in excess of what an empty network has.
    excess = pl.coalesce(
        pl.col("ack_rtt_ms_mean") - pl.col("base_rtt_ms"),
        pl.col("owd_ms_mean") - pl.col("base_rtt_ms") / 2,
    )
    flows = _data(result, case)
    delivered = pl.col("delivered_bytes").sum() * 8e-6 / _measured_s(result)
    found = flows.group_by(keys, maintain_order=True).agg(
        goodput_mbit_per_s=pl.when(finite.all())
        .then(pl.col("goodput_mbit_per_s").mean())
        .otherwise(delivered),
        queueing_ms=excess.mean(),
        pdv_ms_p95=(pl.col("owd_ms_p95") - pl.col("base_rtt_ms") / 2).mean(),
        retransmit_percent=_retransmissions(),
        completion_s=pl.col("fct_s").filter(finite).mean(),
        startup_s=(pl.col("connected_s") - pl.col("started_s")).filter(finite).mean(),
        sent=pl.col("sent_packets").sum(),
        shaken=pl.col("handshake_losses").sum(),
    )
    losses = _losses(result, flows)
    found = found.join(losses, on=keys, how="left", maintain_order="left").with_columns(
        loss_percent=(pl.col("forward").fill_null(0) / pl.col("sent") * 100).fill_nan(None),
        control_drops=pl.col("backward").fill_null(0) + pl.col("shaken"),
    )
    return _with_applications(result, case, found)


def _losses(result: Result, flows: pl.DataFrame) -> pl.DataFrame:
    """Count the packets of each class that were lost on the way of data, and on the way back."""
    paths = flows.select(*KEYS, "flow", "group", "direction")
    lost = _events(result).filter(pl.col("action").is_in(["drop", "loss"]))
    joined = lost.join(paths, on=[*KEYS, "flow"], how="inner")
    # Links have the names of directions; flows with a path have their own return link.
    forward = pl.when(pl.col("direction").is_null())
    is_forward = forward.then(pl.col("link") != "back").otherwise(
        pl.col("link") == pl.col("direction")
    )
    return (
        joined.with_columns(is_forward=is_forward)
        .group_by(*KEYS, "group")
        .agg(
            forward=pl.col("is_forward").sum(),
            backward=(~pl.col("is_forward")).sum(),
        )
    )


def _with_applications(result: Result, case: Case, found: pl.DataFrame) -> pl.DataFrame:
    applications = result.table("application")
    if applications.is_empty():
        return found.with_columns(mos=pl.lit(None, dtype=pl.Float64))
    chosen = applications.select(
        *KEYS,
        group=pl.col("group").replace_strict(dict(case.classes)),
        application_s="duration_s_mean",
        mos="mos_mean",
    )
    joined = found.join(chosen, on=[*KEYS, "group"], how="left", maintain_order="left")
    return joined.with_columns(completion_s=pl.coalesce("completion_s", "application_s"))


def _ratio(case: Case, classes: pl.DataFrame) -> pl.DataFrame | None:
    if case.categories is None:
        return None
    first, second = case.categories
    goodput = pl.col("goodput_mbit_per_s")
    ratio = (
        goodput.filter(pl.col("group") == second).first()
        / goodput.filter(pl.col("group") == first).first()
    )
    # Infinite if category I delivers nothing.
    finite = pl.when(ratio.is_finite()).then(ratio)
    return classes.group_by(KEYS, maintain_order=True).agg(ratio=finite)


def _synchronisation(result: Result, case: Case) -> pl.DataFrame | None:
    """Compute the global synchronisation ratio; None if the number of long flows varies."""
    connected = [name for name, kind in _core.traffic_types().items() if kind["has_connection"]]
    endless = _data(result, case).filter(pl.col("kind").is_in(connected), pl.col("bytes").is_null())
    names = endless["flow"].unique().to_list()
    if len(names) < 2 or case.phases is not None:  # noqa: PLR2004 - one flow has no other
        return None
    window_s = float(endless["base_rtt_ms"].min()) / 1e3  # type: ignore[arg-type]
    signals = _events(result).filter(
        pl.col("link") == case.bottleneck,
        pl.col("action").is_in(["drop", "mark"]),
        pl.col("flow").is_in(names),
    )
    rows = [
        (arm, replication, share)
        for (arm, replication), events in signals.group_by(*KEYS, maintain_order=True)
        for share in [_mean_share(events.sort("t_s"), window_s, len(names))]
    ]
    numbers = result.links["replication"].dtype
    schema: dict[str, Any] = {
        "arm": pl.String,
        "replication": numbers,
        "synchronisation": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _mean_share(events: pl.DataFrame, window_s: float, flows: int) -> float:
    """Average the share of the flows in each loss event."""
    times: npt.NDArray[np.float64] = events["t_s"].to_numpy()
    codes = events["flow"].cast(pl.Categorical).to_physical().to_numpy()
    shares, first = [], 0
    while first < len(times):
        after = max(int(np.searchsorted(times, times[first] + window_s)), first + 1)
        shares.append(len(np.unique(codes[first:after])) / flows)
        first = after
    return float(np.mean(shares))


def _phases(result: Result, case: Case) -> Iterator[pl.DataFrame]:
    """Compute goodput, delay and loss of each phase, over all of its repetitions."""
    if case.phases is None:
        return
    names, length_s = case.phases.names, case.phases.length_s
    checked = result.scenario.checked
    # The middle of a sample interval lies within a phase.
    sample_s = _core.parse_time_s(result.scenario.sample or "100ms")
    middle = pl.col("t_s") - sample_s / 2 - checked.warmup_s
    phase = (middle / length_s).floor().cast(pl.Int64) % len(names)
    named = phase.replace_strict(dict(enumerate(f"phase {name}" for name in names)))
    flows = result.flow_series.filter(
        pl.col("t_s") > checked.warmup_s, pl.col("group") != PROBE
    ).with_columns(group=named)
    links = result.link_series.filter(
        pl.col("t_s") > checked.warmup_s, pl.col("link") == case.bottleneck
    ).with_columns(group=named)
    keys = [*KEYS, "group"]
    sums = flows.group_by(*keys, "t_s", maintain_order=True).agg(pl.col("goodput_mbit_per_s").sum())
    goodput = sums.group_by(keys, maintain_order=True).agg(pl.col("goodput_mbit_per_s").mean())
    sent, drops = (
        pl.col("sent_packets").sum(),
        DROPS.sum(),
    )
    waited = pl.col("sojourn_ms_mean") * pl.col("sent_packets")
    of_link = links.group_by(keys).agg(
        queueing_ms=(waited.sum() / sent).fill_nan(None),
        loss_percent=(drops / (drops + sent) * 100).fill_nan(None),
    )
    yield goodput.join(of_link, on=keys, how="left", maintain_order="left")
