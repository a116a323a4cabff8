"""The answer of a result in one sentence, from its intervals and those of its differences."""

from collections.abc import Mapping
from operator import itemgetter

from sojourn.report.view import ResultView, Row
from sojourn.result import formatting

LATENCY = "induced_latency_ms"
UPLOADS = "goodput_up_mbit_per_s"
# Traffic with a path has no direction: all of it together is the total.
GOODPUT = {
    "downloads": "goodput_down_mbit_per_s",
    "uploads": UPLOADS,
    "transfers": "goodput_total_mbit_per_s",
}
# Bootstrap intervals of fewer runs are too narrow to judge by.
FEWEST = 5
# Arms whose latencies differ by less are equally good: the one with the most goodput is named.
SAME_MS = 1.0
# Smaller differences of latency are none that a user notices.
LEAST_MS = 0.1
# Smaller changes of goodput do not matter; an interval within this shows that there is none.
SAME_PERCENT = 1.0
# A direction in which every arm carries less than this in Mbit/s has calls and no transfers.
LEAST_MBIT = 0.3
DOUBLED_PERCENT = 100.0
# A group of flows is named if it loses this much more goodput, in percent, than all flows.
STARVED_PERCENT = 25.0
# What a ping under load is compared with, unless the delay of the path changes.
_IDLE = "on an idle line"
OF_GROUP = "goodput_mbit_per_s_mean"
# Applications that are named, and their metrics: the first one that an application has, and
# whether more of it is better.
APPLICATIONS = 2
FELT = {
    "mos_mean": True,
    "rpm_mean": True,
    "bitrate_mbit_per_s_mean": True,
    "duration_s_mean": False,
}


def answer(shown: ResultView, error: str | None = None) -> str | None:
    """Say what the best arm changes, or what a single arm measured; None if there is nothing.

    An `error` of validity leaves no conclusion.

    The best arm has the lowest latency under load among those that are below the first one; of
    several within their interval or 1 ms, it is the one with the most goodput.
    """
    if error is not None:
        return f"No conclusion: {error}"
    said = _answer(shown)
    if said is None or _IDLE not in said or not shown.delay_changes:
        return said
    said = said.replace(_IDLE, "the fastest one")
    return f"{said} The delay of the path changes during the run; the difference includes that."


def _answer(shown: ResultView) -> str | None:
    """Say what the best arm changes, or what a single arm measured; None if there is nothing."""
    if not shown.others:
        return _alone(shown)
    base = _row(shown.whole.estimates, shown.baseline, LATENCY)
    compared = {
        arm: row
        for arm in shown.others
        if (row := _row(shown.whole.differences, arm, LATENCY)) is not None
    }
    if base is None or not compared:
        return _clearest(shown)
    fewest = min(row["n"] for row in compared.values())
    if fewest < FEWEST:
        return too_few(fewest)
    clear = {arm: row for arm, row in compared.items() if row["significant"]}
    lower = {arm: row for arm, row in clear.items() if row["mean"] <= -LEAST_MS}
    if not lower:
        return _none_better(shown, base["mean"], clear)
    least = min(lower.values(), key=lambda row: row["mean"])
    limit = max(least["high"], least["mean"] + SAME_MS)
    close = [arm for arm, row in lower.items() if row["mean"] <= limit]
    best = max(close, key=lambda arm: sum(_goodput(shown, arm, name) for name in GOODPUT))
    remaining = shown.whole.estimates[best, LATENCY]["mean"]
    return (
        f"With {best}, a ping under load takes {_longer(remaining)} than {_IDLE}, "
        f"against {_ms(base['mean'])} with {shown.baseline}{_goodputs(shown, best)}"
        f"{_starved(shown, best)}{_applications(shown, best)}."
    )


def _none_better(shown: ResultView, base_ms: float, clear: Mapping[str, Row]) -> str:
    """Say that no arm has clearly less latency, which one has the most, and what goodput changes.

    Of the other arms, the one is named whose goodput changes most.
    """
    text = (
        f"No arm has clearly less latency under load than {shown.baseline}, with which a ping "
        f"takes {_longer(base_ms)} than {_IDLE}"
    )
    higher = {arm: row["mean"] for arm, row in clear.items() if row["mean"] >= LEAST_MS}
    worst = max(higher, key=lambda arm: higher[arm]) if higher else None
    if worst is not None:
        longer = _longer(base_ms + higher[worst])
        text += "".join(
            [f"; with {worst} it takes {longer}"]
            + [f", {clause}" for clause in _changed(shown, worst)]
            + [_starved(shown, worst)]
        )
    others = [arm for arm in shown.others if arm != worst]
    most = max(others, key=lambda arm: _largest_change(shown, arm), default=None)
    if most is not None and (clauses := _changed(shown, most)):
        text += f"; with {most}, {', '.join(clauses)}{_starved(shown, most)}"
    return f"{text}."


def too_few(runs: int) -> str:
    """Say that there are too few runs."""
    counted = formatting.counted(runs, "run")
    return f"Too few runs to judge: {counted} per arm; expected at least {FEWEST}."


def _alone(shown: ResultView) -> str | None:
    """Say what a single arm measured."""
    arm = shown.baseline
    latency = _row(shown.whole.estimates, arm, LATENCY)
    carried = [
        f"{name} carry {_two_digits(goodput)} Mbit/s"
        for name in GOODPUT
        if (goodput := _goodput(shown, arm, name)) > LEAST_MBIT
    ]
    clauses = [", ".join(carried)] if carried else []
    if latency is not None:
        longer = _longer(latency["mean"])
        clauses.insert(0, f"a ping under load takes {longer} than {_IDLE}")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}." if text else None


def _clearest(shown: ResultView) -> str | None:
    """Say which of the main metrics differs most, where no latency under load was measured."""
    runs = min(max(section.runs(arm) for section in shown.parts) for arm in shown.arms)
    if runs < FEWEST:
        return too_few(runs)
    effects = (
        (section, metric)
        for section, metric in shown.ranked()
        if section.effect(metric, shown.others) is not None
    )
    section, metric = next(effects, (None, None))
    if section is None or metric is None:
        return f"No arm differs clearly from {shown.baseline}."
    arm = max(
        (arm for arm in shown.others if (arm, metric.column) in section.differences),
        key=lambda arm: abs(section.differences[arm, metric.column]["mean"]),
    )
    here, there = (section.estimate(one, metric) for one in (arm, shown.baseline))
    unit = f" {metric.unit}" if metric.unit else ""
    label = metric.label if section.name is None else f"{section.name}: {metric.label}"
    lost = [
        f"; {name} {_change(change, base)}"
        for name, (change, base) in _clear(shown, arm).items()
        if change["mean"] < 0 and metric.column != GOODPUT[name]
    ]
    return (
        f"{label}: {here}{unit} with {arm} instead of {there}{unit} with {shown.baseline}"
        f"{''.join(lost)}{_starved(shown, arm)}."
    )


def _row(rows: Mapping[tuple[str, str], Row], arm: str, column: str) -> Row | None:
    """Return the row of an arm and a metric; None if nothing was measured."""
    row = rows.get((arm, column))
    return None if row is None or row["mean"] is None else row


def _goodput(shown: ResultView, arm: str, name: str) -> float:
    row = _row(shown.whole.estimates, arm, GOODPUT[name])
    return 0.0 if row is None else float(row["mean"])


def _goodputs(shown: ResultView, arm: str) -> str:
    """Say what the arm changes in the goodput of each direction."""
    clauses = [
        f"{name} {_change(change, base)}"
        for name, (change, base) in _directions(shown, arm).items()
    ]
    return f"; {', '.join(clauses)}" if clauses else ""


def _directions(shown: ResultView, arm: str) -> dict[str, tuple[Row, float]]:
    """Return the change of the goodput of each direction with transfers, and what it is without."""
    found = {}
    for name, column in GOODPUT.items():
        base = _goodput(shown, shown.baseline, name)
        change = _row(shown.whole.differences, arm, column)
        most = max(_goodput(shown, one, name) for one in shown.arms)
        if change is not None and base > 0 and most > LEAST_MBIT:
            found[name] = change, base
    return found


def _clear(shown: ResultView, arm: str) -> dict[str, tuple[Row, float]]:
    """Return the directions whose goodput clearly changes, by more than what does not matter."""
    return {
        name: (change, base)
        for name, (change, base) in _directions(shown, arm).items()
        if change["significant"] and _percent(change, base) >= SAME_PERCENT
    }


def _changed(shown: ResultView, arm: str) -> list[str]:
    """Say what the arm clearly changes in the goodput of each direction."""
    return [
        f"{name} {_change(change, base)}" for name, (change, base) in _clear(shown, arm).items()
    ]


def _largest_change(shown: ResultView, arm: str) -> float:
    return max((_percent(*one) for one in _clear(shown, arm).values()), default=0.0)


def _percent(change: Row, base: float) -> float:
    return abs(100.0 * float(change["mean"]) / base)


def _starved(shown: ResultView, arm: str) -> str:
    """Say which group of flows loses most goodput, if it is much more than all flows lose."""
    every = [
        _percent(change, base) for change, base in _clear(shown, arm).values() if change["mean"] < 0
    ]
    losses: dict[str, float] = {}
    for section in shown.groups:
        base = _row(section.estimates, shown.baseline, OF_GROUP)
        change = _row(section.differences, arm, OF_GROUP)
        if base is None or change is None or not change["significant"] or change["n"] < FEWEST:
            continue
        if change["mean"] < 0 < base["mean"]:
            losses[f"{section.name}"] = _percent(change, base["mean"])
    most = max(losses, key=lambda name: losses[name], default=None)
    if most is None or losses[most] < max(every, default=0.0) + STARVED_PERCENT:
        return ""
    return f"; group {most} loses {_two_digits(losses[most])} % goodput"


def _applications(shown: ResultView, arm: str) -> str:
    """Say what the arm changes in the main metric of each application, losses first."""
    clauses: list[tuple[bool, str]] = []
    for section in shown.applications:
        has = {metric.column: metric for metric in section.metrics}
        metric = next((has[column] for column in FELT if column in has), None)
        change = None if metric is None else _row(section.differences, arm, metric.column)
        if metric is None or change is None or not change["significant"]:
            continue
        if change["n"] < FEWEST:
            continue
        here, there = (section.estimate(one, metric).value for one in (arm, shown.baseline))
        unit = f" {metric.unit}" if metric.unit else ""
        if here != there:
            text = f"{section.name}: {metric.label} {here}{unit} instead of {there}{unit}"
            clauses.append(((change["mean"] > 0) is FELT[metric.column], text))
    clauses.sort(key=itemgetter(0))
    return "".join(f"; {text}" for _, text in clauses[:APPLICATIONS])


def _change(change: Row, base: float) -> str:
    low, mean, high = (100.0 * change[name] / base for name in ("low", "mean", "high"))
    if low > -SAME_PERCENT and high < SAME_PERCENT:
        return "keep their goodput"
    if not change["significant"]:
        return "show no clear change in goodput"
    if mean >= DOUBLED_PERCENT:
        return f"have {_two_digits(1.0 + mean / 100.0)} times the goodput"
    return f"{'gain' if mean > 0 else 'lose'} {_two_digits(abs(mean))} % goodput"


def _two_digits(value: float) -> str:
    return formatting.significant(float(f"{value:.2g}"))


def _longer(ms: float) -> str:
    """Write how much longer a ping takes; a difference of nearly 0 has no number."""
    return f"{_ms(ms)} more" if ms >= 0.01 else "no longer"  # noqa: PLR2004 - the last digit shown


def _ms(ms: float) -> str:
    """Write a time with two significant digits, from 1000 ms in seconds."""
    second = 1000.0
    rounded = float(f"{ms:.2g}")
    unit, scaled = ("s", rounded / second) if rounded >= second else ("ms", rounded)
    places = 2 if scaled < 1.0 else 1 if scaled < 10.0 else 0  # noqa: PLR2004 - digits
    return f"{scaled:.{places}f} {unit}"
