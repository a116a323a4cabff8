"""What the page and the README of a study share: the answer, claims, presets, sensitivity."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sojourn.presentation.model import (
    Block,
    Inline,
    Items,
    Paragraph,
    Section,
    Styled,
    Table,
    Text,
    Tone,
    Verdict,
    quiet,
    text_table,
)
from sojourn.result.formatting import counted
from sojourn.studies import calibration, wording
from sojourn.studies.study import Study
from sojourn.studies.verdicts import (
    IN_DIRECTION,
    JUDGED,
    NOT_REPRODUCED,
    REPRODUCED,
    totals,
)

# Maximum number of claims in a single table, and of sections by source.
_ONE_TABLE = 25
_SECTIONS = 12
_TONES: dict[str, Tone] = {REPRODUCED: "good", IN_DIRECTION: "weak", NOT_REPRODUCED: "bad"}

Record = Mapping[str, Any]


def verdict(text: str, value: str = "") -> Verdict:
    """Return a verdict in its colour."""
    return Verdict(text, _TONES.get(text, ""), value)


def claims(listed: Sequence[Record], *, most: int | None = None) -> list[Section]:
    """Make a folded table of few claims, or one for each source; of many, for each work or figure.

    With `most`, a claim is one row, with at most as many conditions and without its reason.
    """
    if len(listed) <= _ONE_TABLE:
        title = counted(len(listed), "claim")
        table = _claims(listed, itemgetter("source"), most=most)
        return [Section(title, [table], folded=True)] if listed else []
    sources = list(dict.fromkeys(claim["source"] for claim in listed))
    coarse = len(sources) > _SECTIONS

    def section(claim: Record) -> str:
        source: str = claim["source"]
        return source.partition(",")[0] if coarse else source

    def place(claim: Record) -> str:
        return str(claim["source"]).partition(",")[2].strip() if coarse else ""

    parts = []
    for name in dict.fromkeys(map(section, listed)):
        of = [claim for claim in listed if section(claim) == name]
        counts = totals(claim["verdict"] for claim in of)
        judged = sum(counts[one] for one in JUDGED)
        count = f" ({counts[REPRODUCED]} of {judged} reproduced)" if judged else ""
        table = _claims(of, place, most=most)
        parts.append(Section(f"{heading(name)}{count}", [table], folded=True))
    return parts


def heading(text: str) -> str:
    """Write a text on one line, with a capital letter first."""
    joined = " ".join(text.split())
    return f"{joined[:1].upper()}{joined[1:]}"


def _claims(
    listed: Sequence[Record], source: Callable[[Record], str], *, most: int | None
) -> Table:
    """Make a table of claims, with a column for their sources if any is left to state."""
    sources = list(map(source, listed))
    has_sources = any(sources)
    columns = ["claim", *(["source"] if has_sources else [])]
    rows: list[list[Text]] = []
    for claim, place in zip(listed, sources, strict=True):
        statement: list[Inline] = [claim["statement"]]
        if most is None and claim["reason"] and claim["lines"]:
            statement += ["\n", Styled(" ".join(claim["reason"].split()), "small")]
        pairs: Sequence[Sequence[Text]] = conditions(claim, most=most)
        if most is not None:
            # A table in Markdown has no rows that belong together.
            pairs = [[_joined(side) for side in zip(*conditions(claim, most=most), strict=True)]]
        first: list[Text] = [claim["id"], *([place] if has_sources else []), statement]
        for at, (published, measured) in enumerate(pairs):
            about: list[Text] = [""] * len(first) if at else first
            judged = "" if at else verdict(claim["verdict"])
            rows.append([*about, published, measured, judged])
    return text_table([*columns, "statement", "published", "measured", "verdict"], rows)


def _joined(lines: Sequence[Inline]) -> list[Inline]:
    return [part for line in lines for part in (line, "\n")][:-1]


def conditions(claim: Record, *, most: int | None = None) -> list[tuple[Inline, Inline]]:
    """Write the conditions of a claim and what was measured; with `most`, those that fail."""
    full = [line for line in claim["lines"] if not line["weaker"]]
    if not full:
        return [("", claim["reason"])]
    failing = list(wording.failing(claim))
    is_cut = most is not None and len(full) > most
    names = wording.short_subjects(full)
    found: list[tuple[Inline, Inline]] = []
    for line in failing[:most] if is_cut else full:
        name, stated = names[full.index(line)], wording.stated(line)
        fails = len(full) > 1 and line["verdict"] == NOT_REPRODUCED
        text = wording.measured(line)
        found.append(
            (f"{name}: {stated}" if name else stated, Verdict(text, "bad") if fails else text)
        )
    if is_cut:
        found.append((f"{len(full)} conditions", f"{len(full) - len(failing)} hold"))
    return found


def presets(record: Record) -> Section:
    """Compare the totals of each preset with those of the study, over the same claims."""
    base = {claim["id"]: claim["verdict"] for claim in record["claims"]}
    rows = []
    for preset in record["presets"]:
        replaced = {**preset["arms"], **preset.get("scenarios", {})}
        arms = ", ".join(f"{other} for {arm}" for arm, other in replaced.items())
        for label, counts in (
            ("as in the claims", totals(base[name] for name in preset["verdicts"])),
            (f"{preset['label']} ({arms})", preset["totals"]),
        ):
            judged = sum(counts[one] for one in JUDGED)
            rows.append([label, str(judged), *(str(counts[one]) for one in JUDGED)])
    said = (
        "The claims that name a replaced queue or scenario are judged twice: with those that they "
        "name, and with the replacements."
    )
    table = Table(["queues", "claims judged", *JUDGED], rows)
    return Section("Presets", [Paragraph(said), table] if rows else [])


def searches(study: Study) -> Section:
    """Show the searches of what the work does not state."""
    found = calibration.load(study.folder / calibration.FILE)
    content: list[Block] = []
    for name, one in ({} if found is None else found["searches"]).items():
        said = (
            f"{len(one['points'])} combinations, {wording.runs([one['replications']])} per queue "
            f"at {found['scale'] if found else ''} scale. The distance is the mean of |ln(measured "
            f"/ published)| over {len(one['conditions'])} conditions of baselines "
            f"({', '.join(one['claims'])}), which do not count. The nearest combinations:"
        )
        head, rows = calibration.rows(one)
        content.append(Section(heading(name), [Paragraph(said), Table(head, rows)]))
    return Section("Calibration", content)


def sensitivity(study: Study, record: Record) -> Section:
    """Make one table per assumption: the verdicts with the other values."""
    assumed = study.description.assumption
    found = {claim["id"]: claim for claim in record["claims"]}
    content: list[Block] = []
    if record["assumptions"]:
        said = "The work does not state these parameters. Each is varied separately, and the claims"
        content.append(Paragraph(f"{said} are judged again."))
    elif assumed:
        content.append(Paragraph("Full runs vary these parameters, which the work does not state:"))
        content.append(Items([f"{one.name}: {one.text}" for one in assumed]))
    for one in record["assumptions"]:
        text = Paragraph(" ".join(one["text"].split()))
        content.append(Section(heading(one["name"]), [text, _variants(one, found)]))
    covered = {name for one in assumed for name in one.claims}
    failing = [name for name, one in found.items() if one["verdict"] == NOT_REPRODUCED]
    left = ", ".join(name for name in failing if name not in covered)
    said = "Claims that are not reproduced and to which no varied parameter applies"
    return Section("Sensitivity", [*content, *quiet(f"{said}: {left}." if left else "")])


def _variants(assumption: Record, found: Mapping[str, Record]) -> Table:
    variants = assumption["variants"]
    head = ["claim", "in the study", *(variant["label"] for variant in variants)]
    rows: list[list[Text]] = [["plausible", "", *(variant["plausible"] for variant in variants)]]
    for name in assumption["claims"]:
        full = [line["compared"] for line in found[name]["lines"] if not line["weaker"]]
        others = (variant["claims"].get(name) for variant in variants)
        cells = ["–" if one is None else outcome(one["compared"], one["verdict"]) for one in others]
        rows.append([name, outcome(full, found[name]["verdict"]), *cells])
    return text_table(head, rows)


def outcome(compared: Sequence[float | None], text: str) -> Verdict:
    """Return a verdict, with the value of a claim of one condition.

    Examples
    --------
    >>> str(outcome([0.51234], "reproduced")), str(outcome([1.0, 2.0], "not reproduced"))
    ('0.5123: reproduced', 'not reproduced')
    """
    (first, *others) = compared or [None]
    return verdict(text, "" if first is None or others else wording.number(first))
