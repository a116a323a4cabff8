"""A controller of CAKE's rate by the delay of pings: the algorithm of cake-autorate.

Written from the documentation of cake-autorate (README and comments of its configuration, version
3.2), with its names and defaults; no code of it is used.

A router cannot know the rate of an LTE, 5G or satellite line. It measures the delay to several
reflectors. While a direction is busy and delays are short, its shaper becomes faster; when most of
the last samples are delayed, it becomes slower; while it is not busy, it returns to its base rate.

Differences: the router calls the algorithm for each reply; here, `control` is called every 50 ms
and processes the replies of that time. One-way delays are exact (tsping estimates them). Replies
never stop, so there is no detection of stalls, no replacement of reflectors, and no sleep.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import sojourn as sj

# Bits of the largest packet, whose transmission time is no sign of a queue.
_PACKET_BITS = 8 * 1514


@dataclass
class Direction:
    """The state of the shaper of one direction.

    Rates are in bits per second, times in seconds and delays in milliseconds.
    """

    rate: float
    achieved: deque[float]
    delayed: deque[bool]
    deltas: deque[float]
    baselines: dict[str, float] = field(default_factory=dict)
    last_bufferbloat: float = float("-inf")
    last_decay: float = float("-inf")


class Autorate(sj.Controller):
    """Controls the CAKE instances of a router; a subclass has the rates of its line."""

    interval = "50ms"

    # The links with CAKE: download and upload, each with minimum, base and maximum rate in kbit/s.
    shapers: Mapping[str, tuple[int, int, int]] = {
        "router_down": (5_000, 20_000, 80_000),
        "router_up": (5_000, 20_000, 35_000),
    }
    # The link whose pings travel as requests; those of the other one travel as replies.
    upload = "router_up"

    # A sample is delayed if it exceeds the baseline by more than this.
    owd_delta_delay_thr_ms = 30.0
    # Mean excess up to which the rate increases by the maximum, and from which it decreases by it.
    avg_owd_delta_max_adjust_up_thr_ms = 10.0
    avg_owd_delta_max_adjust_down_thr_ms = 60.0
    # Bufferbloat: of this number of last samples, the second number or more are delayed.
    bufferbloat_detection_window = 6
    bufferbloat_detection_thr = 3
    # The baseline follows longer delays slowly and shorter ones at once.
    alpha_baseline_increase = 0.001
    alpha_baseline_decrease = 0.9
    # Factors of the rate, per sample.
    min_adjust_down_bufferbloat = 0.99
    max_adjust_down_bufferbloat = 0.75
    min_adjust_up_load_high = 1.0
    max_adjust_up_load_high = 1.04
    adjust_down_load_low = 0.99
    adjust_up_load_low = 1.01
    # Load is high above this share of the rate, measured over this number of intervals (200 ms).
    high_load_thr = 0.75
    load_intervals = 4
    # No change for this long after a decrease, and between two steps to the base rate.
    bufferbloat_refractory_period_s = 0.3
    decay_refractory_period_s = 1.0

    def __init__(self) -> None:
        self.directions = {
            link: Direction(
                rate=1e3 * base,
                achieved=deque(maxlen=self.load_intervals),
                delayed=deque(maxlen=self.bufferbloat_detection_window),
                deltas=deque(maxlen=self.bufferbloat_detection_window),
            )
            for link, (_, base, _) in self.shapers.items()
        }

    def control(self, now: float, measured: sj.Measured) -> dict[str, dict[str, str]]:
        """Process the replies of the interval; change the rates of the shapers."""
        changes = {}
        for link, direction in self.directions.items():
            before = round(direction.rate)
            direction.achieved.append(measured.links[link].bits_per_s)
            for reply in measured.replies:
                owd_ms = reply.request_ms if link == self.upload else reply.reply_ms
                self.sample(direction, reply.flow, owd_ms)
                self.adjust(now, link, direction)
            if round(direction.rate) != before:
                changes[link] = {"qdisc": f"cake bandwidth {direction.rate:.0f}bit"}
        return changes

    def sample(self, direction: Direction, reflector: str, owd_ms: float) -> None:
        """Add a delay: update the baseline of the reflector and the detection window."""
        baseline = direction.baselines.setdefault(reflector, owd_ms)
        rises = owd_ms > baseline
        alpha = self.alpha_baseline_increase if rises else self.alpha_baseline_decrease
        baseline += alpha * (owd_ms - baseline)
        direction.baselines[reflector] = baseline
        delta = owd_ms - baseline
        direction.deltas.append(delta)
        direction.delayed.append(delta > self.threshold_ms(direction))

    def threshold_ms(self, direction: Direction) -> float:
        """Return the excess of a delayed sample: beyond the transmission time of a packet."""
        return self.owd_delta_delay_thr_ms + 1e3 * _PACKET_BITS / direction.rate

    def adjust(self, now: float, link: str, direction: Direction) -> None:
        """Change the rate by what the window and the load show."""
        low, base, high = (1e3 * kbit for kbit in self.shapers[link])
        is_settled = now - direction.last_bufferbloat > self.bufferbloat_refractory_period_s
        achieved = sum(direction.achieved) / len(direction.achieved)
        if sum(direction.delayed) >= self.bufferbloat_detection_thr:
            if is_settled:
                direction.rate *= self.factor_down(direction)
                direction.last_bufferbloat = now
        elif achieved > self.high_load_thr * direction.rate:
            if is_settled:
                direction.rate *= self.factor_up(direction)
        elif now - direction.last_decay > self.decay_refractory_period_s:
            if direction.rate > base:
                direction.rate = max(direction.rate * self.adjust_down_load_low, base)
            else:
                direction.rate = min(direction.rate * self.adjust_up_load_low, base)
            direction.last_decay = now
        direction.rate = min(max(direction.rate, low), high)

    def factor_down(self, direction: Direction) -> float:
        """Return the factor of a decrease: the longer the delays, the smaller."""
        start = self.threshold_ms(direction)
        end = max(self.avg_owd_delta_max_adjust_down_thr_ms, start + 1)
        share = _share(_mean(direction.deltas), start, end)
        least, most = self.min_adjust_down_bufferbloat, self.max_adjust_down_bufferbloat
        return least + share * (most - least)

    def factor_up(self, direction: Direction) -> float:
        """Return the factor of an increase: the longer the delays, the smaller."""
        start, end = self.avg_owd_delta_max_adjust_up_thr_ms, self.threshold_ms(direction)
        share = _share(_mean(direction.deltas), start, end)
        least, most = self.min_adjust_up_load_high, self.max_adjust_up_load_high
        return most + share * (least - most)


def _mean(values: deque[float]) -> float:
    return sum(values) / len(values)


def _share(value: float, start: float, end: float) -> float:
    """Return where a value is between two others, 0 to 1."""
    return min(max((value - start) / (end - start), 0.0), 1.0)


class Lte(Autorate):
    """The line of ``autorate.sojourn.toml``."""

    shapers: Mapping[str, tuple[int, int, int]] = {
        "router_down": (5_000, 20_000, 60_000),
        "router_up": (10_000, 10_000, 10_000),
    }
