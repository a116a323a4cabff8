"""Metrics of groups of flows in each run.

:mod:`sojourn.result.catalogue` defines each metric.
"""

import polars as pl

from sojourn.result.catalogue import of_kind
from sojourn.result.metrics import CONNECTIONS, KEYS


def per_group(
    flows: pl.DataFrame, links: pl.DataFrame, *, warmup_s: float, measured_s: float
) -> pl.DataFrame:
    """Compute the metrics of each group of TCP, QUIC and UDP flows in each run."""
    tcp = pl.col("kind").is_in(CONNECTIONS)
    finite = pl.col("bytes").is_not_null()
    # Connections that started after the warm-up; of endless ones, all.
    measured = (pl.col("started_s") >= warmup_s) | ~finite
    data = flows.filter(pl.col("kind").is_in([*CONNECTIONS, "udp"]) & (measured | ~tcp))
    rate = pl.col("goodput_mbit_per_s").filter(~finite | ~tcp)
    begun = pl.col("initial_losses").filter(tcp & pl.col("started_s").is_not_null())
    shaken = pl.col("handshake_losses").filter(tcp & pl.col("started_s").is_not_null())
    fct = pl.col("fct_s")
    hit = fct.filter(pl.col("initial_losses") > 0)
    sent = pl.col("sent_packets").filter(~tcp).sum()
    # Under metric definitions 2, `received_packets` excludes packets sent before the warm-up ended,
    # and datagrams in flight at the end count as lost.
    before = pl.col("sent_packets") - pl.col("received_packets")
    missing = pl.coalesce("missing_packets", before).filter(~tcp).sum()
    lost = pl.coalesce("lost_packets", "missing_packets", before).filter(~tcp).sum()
    known = sent - missing + lost
    endless = pl.col("goodput_mbit_per_s").filter(tcp & ~finite)
    jain = endless.sum().pow(2) / (endless.count() * endless.pow(2).sum())
    resent = pl.col("retransmits").filter(tcp).sum() / pl.col("sent_packets").filter(tcp).sum()
    inflation = (pl.col("ack_rtt_ms_mean") - pl.col("base_rtt_ms")).filter(tcp & ~finite)
    groups = data.group_by(*KEYS, "group", maintain_order=True).agg(
        flows=pl.len(),
        goodput_mbit_per_s_mean=rate.mean(),
        jain=pl.when(endless.count() > 1).then(jain.fill_nan(None)),
        rtt_inflation_ms_mean=inflation.mean(),
        retransmit_percent=(resent * 100).fill_nan(None),
        loss_percent=(lost / known * 100).fill_nan(None),
        initial_loss_percent=(begun > 0).mean() * 100,
        handshake_loss_percent=(shaken > 0).mean() * 100,
        handshake_s_mean=(pl.col("connected_s") - pl.col("started_s")).mean(),
        fct_s_mean=fct.mean(),
        fct_s_p95=fct.quantile(0.95, "linear"),
        fct_hit_s_mean=hit.mean(),
    )
    keys = [*KEYS, "group"]
    shares = (_data_shares(flows), _capacity_shares(flows, links, measured_s=measured_s))
    joined = groups
    for share in shares:
        joined = joined.join(share, on=keys, how="left", maintain_order="left")
    columns = [metric.column for metric in of_kind("group")]
    return joined.select(*keys, *columns)


def _data_shares(flows: pl.DataFrame) -> pl.DataFrame:
    """Compute the share of each group in the payload that its direction delivered."""
    data = flows.filter(pl.col("kind") != "ping").with_columns(
        pl.col("direction").fill_null("total")
    )
    groups = data.group_by(*KEYS, "direction", "group", maintain_order=True).agg(
        pl.col("delivered_bytes").sum()
    )
    whole = pl.col("delivered_bytes").sum().over(*KEYS, "direction")
    share = (pl.col("delivered_bytes") / whole * 100).fill_nan(None)
    return groups.select(*KEYS, "group", data_share_percent=share)


def _capacity_shares(
    flows: pl.DataFrame, links: pl.DataFrame, *, measured_s: float
) -> pl.DataFrame:
    """Compute the payload of each group relative to what its bottleneck could carry.

    Null for a group of several paths whose bottlenecks differ.
    """
    capacity = links.select(*KEYS, pl.col("link").alias("bottleneck"), "capacity_mbit_per_s")
    groups = flows.group_by(*KEYS, "group", maintain_order=True).agg(
        pl.col("bottleneck").first(),
        pl.col("delivered_bytes").sum(),
        bottlenecks=pl.col("bottleneck").n_unique(),
    )
    groups = groups.filter(pl.col("bottlenecks") == 1)
    of_link = [*KEYS, "bottleneck"]
    groups = groups.join(capacity, on=of_link, how="left", maintain_order="left")
    rate = pl.col("delivered_bytes") * 8e-6 / measured_s
    share = rate / pl.col("capacity_mbit_per_s") * 100
    return groups.select(*KEYS, "group", capacity_share_percent=share)
