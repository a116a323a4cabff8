"""The words of advice, for terminals, pages and notebooks."""

from sojourn.advice.access import Access
from sojourn.advice.advice import Advice
from sojourn.advice.candidates import Candidate
from sojourn.advice.measures import DOWN_MBIT, PING, PING_MS, RPM, SCALES, UP_MBIT, Scale
from sojourn.presentation.model import Columns, Table, text_table
from sojourn.report.view import heading
from sojourn.result.catalogue import Metric
from sojourn.scenario.presets import MARK

CHOSEN = "→ "
TITLE = "under load"
# What is shown of a candidate, with its grades.
MEASURES: tuple[tuple[Metric, Scale | None], ...] = (
    *((PING_MS if scale is PING else scale.metric, scale) for scale in SCALES),
    (DOWN_MBIT, None),
    (UP_MBIT, None),
)
# The measures that everyone knows.
MAIN = tuple(one for one in MEASURES if one[1] is not RPM)
LABELS = {
    "layer": "link layer",
    "down": "download rate",
    "up": "upload rate",
    "rtt": "idle round-trip time",
    "down_buffer": "buffer of the provider",
    "up_buffer": "buffer of the modem",
    "dip": "dips of the rate",
    "period": "time between changes",
    "subscribers": "households",
}


def before_and_after(advice: Advice) -> list[Candidate]:
    """List what the recommendation is compared with first, then the recommendation."""
    chosen, kinds = advice.recommended, {"none", "present"}
    return [
        *(one for one in advice.compared if one.kind in kinds and one.name != chosen.name),
        chosen,
    ]


def marked(advice: Advice, one: Candidate) -> str:
    """Write the name of a candidate; an arrow marks the recommendation."""
    return f"{CHOSEN if one.name == advice.recommended.name else ''}{one.name}"


def table(advice: Advice) -> Table:
    """Make a table of all configurations."""
    columns: Columns = ["configuration", *(heading(one) for one, _ in MEASURES)]
    rows = [
        [marked(advice, one), *(cell(advice, one, *measure) for measure in MEASURES)]
        for one in advice.compared
    ]
    return Table(columns, rows, TITLE)


def cell(advice: Advice, one: Candidate, metric: Metric, scale: Scale | None) -> str:
    """Write a measure with its grade, or the change of a speed."""
    text = estimate(advice, one, metric)
    if scale is not None:
        doubt = "?" if advice.is_uncertain(one.name, scale) else ""
        return f"{text} {advice.grade(one.name, scale) + doubt:2}"
    change = advice.change_percent(one.name, up=metric is UP_MBIT)
    if change is None or one.kind == "none":
        return text
    return f"{text} ({change:+z.0f} %)".replace("-", "−")


def estimate(advice: Advice, one: Candidate, metric: Metric) -> str:
    """Write a mean with half the width of its interval, in few digits."""
    mean, low, high = advice.estimates[one.name][metric.column]
    if mean is None:
        return "–"
    digits = metric.digits + (abs(mean) < 1.0)
    half = "" if low is None or high is None else f" ±{(high - low) / 2.0:.{digits}f}"
    return f"{mean:.{digits}f}{half}"


def link_table(access: Access) -> Table:
    """Make a table of the values of a link that matter, with their sources."""
    rows = [
        [LABELS[key], f"{item.value}{item.mark}", item.source]
        for key, item in access.sourced.items()
        if _matters(access, key)
    ]
    title = f"{access.title} ({MARK}: reconstructed or assumed)"
    return text_table(["value", "", "source"], rows, title)


def _matters(access: Access, key: str) -> bool:
    """Whether a value has an effect."""
    if key in {"dip", "period"}:
        return access.dip > 0
    return key != "subscribers" or access.subscribers > 1
