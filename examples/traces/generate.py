"""Generate the example traces beside this file: a satellite link, and the downlink of a phone.

The numbers are made up, and the same seed gives the same files. The form of the first is that of
measurements of Starlink: every 15 s the terminal changes its satellite, and with it the delay and
the rate; packets are lost for a moment. The rate of the second wanders, as that of LTE does.
"""

import random
from pathlib import Path

HERE = Path(__file__).parent
HANDOVER_S, HANDOVERS, STEP_S = 15, 8, 0.5
# Nothing is sent for this long at a handover.
OUTAGE_S = 0.1


LTE_S, LTE_STEP_S = 65, 0.2
LTE_LEAST, LTE_MOST = 6, 60


def main() -> None:
    """Write all files."""
    satellite()
    lte()


def satellite() -> None:
    """Write a file per quantity."""
    draw = random.Random(15)  # noqa: S311 - for numbers that are made up
    rates, delays, losses = [], [], []
    for handover in range(HANDOVERS):
        start = handover * HANDOVER_S
        mean, delay = draw.uniform(80, 200), draw.uniform(18, 35)
        rates.append(f"{start:g},0")
        losses.append(f"{start:g},5\n{start + 1:g},0.1")
        delays.append(f"{start:g},{delay:.1f}")
        for step in range(round(HANDOVER_S / STEP_S)):
            at = start + (step * STEP_S or OUTAGE_S)
            rates.append(f"{at:g},{mean * draw.uniform(0.9, 1.1):.1f}")
            if step:
                delays.append(f"{at:g},{delay + draw.uniform(-1, 1):.1f}")
    for name, unit, lines in [
        ("rate", "mbit", rates),
        ("delay", "ms", delays),
        ("loss", "percent", losses),
    ]:
        text = "\n".join([f"time_s,{unit}", *lines, ""])
        (HERE / f"handover.{name}.csv").write_text(text, encoding="utf-8")


def lte() -> None:
    """Write the rate of a downlink: its logarithm is a random walk between two walls."""
    draw = random.Random(4)  # noqa: S311 - for numbers that are made up
    rate, lines = 20.0, []
    for step in range(round(LTE_S / LTE_STEP_S)):
        lines.append(f"{step * LTE_STEP_S:g},{rate:.1f}")
        rate = min(max(rate * 2 ** draw.gauss(0, 0.25), LTE_LEAST), LTE_MOST)
    text = "\n".join(["time_s,mbit", *lines, ""])
    (HERE / "lte.rate.csv").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
