"""The answer of a comparison in one sentence, from the intervals of its differences."""

from sojourn.report.view import ResultView, Row
from sojourn.result import formatting

LATENCY = "induced_latency_ms"
UPLOADS = "goodput_up_mbit_per_s"
GOODPUT = {"downloads": "goodput_down_mbit_per_s", "uploads": UPLOADS}
# Bootstrap intervals of fewer runs are too narrow to judge by.
FEWEST = 5
# Smaller changes of goodput do not matter; an interval within this shows that there is none.
SAME_PERCENT = 1.0
# A direction with less of the data than this carries calls and no transfers.
LEAST_SHARE = 0.05


def answer(shown: ResultView) -> str | None:
    """Say what the best queue changes; None if one arm or no latency under load was measured.

    The best arm is that with the lowest latency under load among those that differ from the first.
    """
    base = shown.whole.estimates.get((shown.baseline, LATENCY))
    changes = {arm: shown.whole.differences.get((arm, LATENCY)) for arm in shown.others}
    compared = {arm: row for arm, row in changes.items() if row is not None}
    if base is None or not compared:
        return None
    if any(row["n"] < FEWEST for row in compared.values()):
        fewest = min(row["n"] for row in compared.values())
        runs = formatting.counted(fewest, "run")
        return f"Too few runs to judge: {runs} per arm; expected at least {FEWEST}."
    lower = {arm: row for arm, row in compared.items() if row["significant"] and row["mean"] < 0}
    if not lower:
        return (
            f"No arm has clearly less latency under load than {shown.baseline}, with which a ping "
            f"takes {_ms(base['mean'])} more than on an idle line."
        )
    best = min(lower, key=lambda arm: lower[arm]["mean"])
    remaining = shown.whole.estimates[best, LATENCY]["mean"]
    return (
        f"With {best}, a ping under load takes {_ms(remaining)} more than on an idle line instead "
        f"of {_ms(base['mean'])} with {shown.baseline}{_goodputs(shown, best)}."
    )


def _goodputs(shown: ResultView, arm: str) -> str:
    """Say what the arm changes in the goodput of each direction."""
    rows = {
        name: row
        for name, column in GOODPUT.items()
        if (row := shown.whole.estimates.get((shown.baseline, column))) is not None
    }
    most = max((row["mean"] for row in rows.values()), default=0.0)
    clauses = [
        f"{name} {_change(change, row['mean'])}"
        for name, row in rows.items()
        if row["mean"] > LEAST_SHARE * most
        and (change := shown.whole.differences.get((arm, GOODPUT[name]))) is not None
    ]
    return f"; {', '.join(clauses)}" if clauses else ""


def _change(change: Row, base: float) -> str:
    low, mean, high = (100.0 * change[name] / base for name in ("low", "mean", "high"))
    if low > -SAME_PERCENT and high < SAME_PERCENT:
        return "keep their goodput"
    if not change["significant"]:
        return "do not differ clearly"
    verb = "gain" if mean > 0 else "lose"
    return f"{verb} {formatting.significant(float(f'{abs(mean):.2g}'))} %"


def _ms(value: float) -> str:
    """Write a time with two significant digits, from 1000 ms in seconds."""
    second = 1000.0
    unit, scaled = ("s", value / second) if abs(value) >= second else ("ms", value)
    places = 2 if abs(scaled) < 1.0 else 1 if abs(scaled) < 10.0 else 0  # noqa: PLR2004 - digits
    return f"{scaled:.{places}f} {unit}".replace("-", "−")
