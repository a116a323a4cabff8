"""Quality of Outcome (QoO): how close a path comes to what an application needs.

draft-ietf-ippm-qoo-11, "Calculating QoO".
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from sojourn.arguments import ArgumentError, checked
from sojourn.result.result import Result
from sojourn.result.rows import KEYS

COLUMNS = ("qoo", "qoo_latency", "qoo_loss", "qoo_throughput")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an application needs from a path in both directions (a two-way requirement).

    The draft defines the form, but no values for applications.

    Parameters
    ----------
    latency
        For each percentile of the round-trip time, such as 99.9, the time in ms up to which the
        outcome is optimal (ROP) and the time from which it is unacceptable (CPUP).
    loss_percent
        Loss in % up to which the outcome is optimal and from which it is unacceptable.
    throughput_mbit_per_s
        Throughput in Mbit/s below which the outcome is unacceptable; None: any is sufficient.

    Examples
    --------
    The example of the draft:

    >>> import sojourn as sj
    >>> needed = sj.Outcome(
    ...     latency={99: (200, 500), 99.9: (300, 600)}, loss_percent=(1, 5), throughput_mbit_per_s=4
    ... )
    >>> needed.scores({99: 350, 99.9: 375}, loss_percent=2, throughput_mbit_per_s=28)
    {'qoo': 50.0, 'qoo_latency': 50.0, 'qoo_loss': 75.0, 'qoo_throughput': 100.0}
    """

    latency: Mapping[float, tuple[float, float]]
    loss_percent: tuple[float, float] | None = None
    throughput_mbit_per_s: float | None = None

    def __post_init__(self) -> None:
        if not self.latency:
            raise ArgumentError("latency", self.latency, "expected at least one percentile")
        for percentile, bounds in self.latency.items():
            if not 0 <= percentile <= 100:  # noqa: PLR2004 - percent
                rule = "expected percentiles from 0 to 100"
                raise ArgumentError("latency", percentile, rule)
            if 0 < percentile < 1:
                rule = f"expected percentiles in %; did you mean {100 * percentile:g}?"
                raise ArgumentError("latency", percentile, rule)
            _check(f"latency[{percentile:g}]", bounds)
        if self.loss_percent is not None:
            _check("loss_percent", self.loss_percent)

    def scores(
        self,
        latency_ms: Mapping[float, float],
        *,
        loss_percent: float | None,
        throughput_mbit_per_s: float | None,
    ) -> dict[str, float | None]:
        """Compute the scores, 0 to 100; None for what was not measured.

        Parameters
        ----------
        latency_ms
            The round-trip time in ms at each percentile of the requirement.
        loss_percent
            Mean loss in %.
        throughput_mbit_per_s
            Throughput in Mbit/s.

        Returns
        -------
        dict
            ``qoo``, the lowest of ``qoo_latency``, ``qoo_loss`` and ``qoo_throughput``.
        """
        latency = min(
            _score(latency_ms[percentile], bounds) for percentile, bounds in self.latency.items()
        )
        loss: float | None = 100.0
        if self.loss_percent is not None:
            loss = None if loss_percent is None else _score(loss_percent, self.loss_percent)
        throughput: float | None = 100.0
        if self.throughput_mbit_per_s is not None:
            enough = self.throughput_mbit_per_s
            measured = throughput_mbit_per_s
            throughput = None if measured is None else 100.0 if measured >= enough else 0.0
        parts = [part for part in (latency, loss, throughput) if part is not None]
        whole = min(parts) if len(parts) == len(COLUMNS) - 1 else None
        return dict(zip(COLUMNS, (whole, latency, loss, throughput), strict=True))


def _check(name: str, bounds: tuple[float, float]) -> None:
    rule = "expected two numbers >= 0: optimal, and unacceptable, which is larger"
    if len(bounds) != 2 or not 0 <= bounds[0] < bounds[1]:  # noqa: PLR2004 - a pair
        raise ArgumentError(name, bounds, rule)


def _score(measured: float, bounds: tuple[float, float]) -> float:
    """Interpolate between optimal (100) and unacceptable (0)."""
    optimal, unacceptable = bounds
    share = 1 - (measured - optimal) / (unacceptable - optimal)
    return 100.0 * min(max(share, 0.0), 1.0)


@checked
def qoo(result: Result, outcome: Outcome, *, direction: str = "down") -> pl.DataFrame:
    """Compute the Quality of Outcome of each run from its pings and its goodput.

    Parameters
    ----------
    result
        A result with pings, simulated or measured.
    outcome
        What the application needs.
    direction
        Direction of the flows whose goodput is the throughput: ``"down"``, ``"up"`` or ``"total"``.

    Returns
    -------
    polars.DataFrame
        One row per run: ``arm``, ``replication``, ``qoo``, the lowest of ``qoo_latency``,
        ``qoo_loss`` and ``qoo_throughput``, all from 0 to 100; null if a part was not measured.

        Latency and loss are those of the pings that were sent after the warm-up. Pings without a
        reply that were sent later than the last answered one do not count as lost.

    Raises
    ------
    ArgumentError
        The direction is unknown.

    Examples
    --------
    >>> import sojourn as sj
    >>> links = {side: sj.Link(rate="10mbit", qdisc="fq_codel") for side in ("up", "down")}
    >>> traffic = [sj.Tcp(direction="down"), sj.Ping(direction="up", interval="50ms")]
    >>> result = sj.run(sj.Scenario(links=links, traffic=traffic, rtt="20ms", duration="6s"))
    >>> call = sj.Outcome(latency={95: (50, 150), 99: (100, 200)}, loss_percent=(0.5, 5))
    >>> sj.qoo(result, call)["qoo"].to_list()
    [100.0]
    """
    goodput = f"goodput_{direction}_mbit_per_s"
    if direction not in {"down", "up", "total"}:
        raise ArgumentError("direction", direction, 'expected "down", "up" or "total"')
    warmup_s = result.scenario.checked.warmup_s
    pings = result.pings.filter(pl.col("t_s") >= warmup_s)
    rows = []
    for run in result.table().iter_rows(named=True):
        of = pings.filter(arm=run["arm"], replication=run["replication"])
        answered = of.filter(pl.col("rtt_ms").is_not_null())
        keys = {key: run[key] for key in KEYS}
        if answered.is_empty():
            rows.append(keys | dict.fromkeys(COLUMNS))
            continue
        sent = of.filter(pl.col("t_s") <= answered["t_s"].max()).height
        times = answered["rtt_ms"].to_numpy()
        latency = {one: float(np.percentile(times, one)) for one in outcome.latency}
        found = outcome.scores(
            latency,
            loss_percent=100.0 * (sent - answered.height) / sent,
            throughput_mbit_per_s=run.get(goodput),
        )
        rows.append(keys | found)
    schema = {"arm": pl.String, "replication": pl.UInt32, **dict.fromkeys(COLUMNS, pl.Float64)}
    return pl.DataFrame(rows, schema=schema)
