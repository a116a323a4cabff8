"""The main results of a comparison in sentences."""

from sojourn.report.view import ResultView
from sojourn.result import formatting
from sojourn.result.catalogue import Metric


def findings(shown: ResultView) -> list[str]:
    """Describe the main results in sentences."""
    extremes = (_extremes(shown, metric) for metric in shown.whole.metrics)
    sentences = [sentence for sentence in extremes if sentence is not None]
    return sentences + [_against(shown, arm) for arm in shown.others]


def _extremes(shown: ResultView, metric: Metric) -> str | None:
    estimates = shown.whole.estimates
    rows = [estimates.get((arm, metric.column)) for arm in shown.arms]
    known = [row for row in rows if row is not None and row["mean"] is not None]
    known.sort(key=lambda row: row["mean"])
    if metric.role != "headline" or len(known) < 2:  # noqa: PLR2004 - extremes take two
        return None
    ends = [known[0], known[-1]]
    least, most = (
        f"{formatting.estimate(row['mean'], row['low'], row['high'], metric)} {metric.unit} "
        f"({row['arm']})"
        for row in ends
    )
    name = metric.label[0].upper() + metric.label[1:]
    if least.split(" (")[0] == most.split(" (")[0]:
        return f"{name} is {least.split(' (')[0]} in all arms."
    return f"{name} ranges from {least} to {most}."


def _against(shown: ResultView, arm: str) -> str:
    clear, unclear = [], []
    for section in shown.sections:
        group = "" if section.name is None else f"{section.name}: "
        for metric in section.metrics:
            row = section.differences.get((arm, metric.column))
            if metric.role not in {"headline", "compared"} or row is None:
                continue
            text = formatting.change(row, metric)
            if "*" in text:
                clear.append(f"{group}{metric.label} {text.replace('*', '')} {metric.unit}".strip())
            elif row["mean"] is not None:
                unclear.append(f"{group}{metric.label}")
    sentence = f"{arm} compared with {shown.baseline}: " + (
        ", ".join(clear) if clear else "no clear difference"
    )
    if clear and unclear:
        sentence += f"; no clear difference in {', '.join(unclear)}"
    return sentence + "."
