"""The verdicts that a study keeps, ``full.json`` and ``quick.json``: read, check, compare."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn import _core, files
from sojourn.studies.claims import Claim, Line
from sojourn.studies.description import Assumption
from sojourn.studies.record import rounded, texts
from sojourn.studies.study import Study
from sojourn.studies.verdicts import NOT_RUN

FULL, QUICK = "full.json", "quick.json"
# The better one first.
FILES = (FULL, QUICK)
_MAX_BYTES = 1 << 25

Record = Mapping[str, Any]


def load(file: Path) -> dict[str, Any] | None:
    """Read recorded verdicts; None if there are none."""
    try:
        found: dict[str, Any] = files.read_json(file, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        message = f"{file}: cannot read verdicts: {error}"
        raise _core.ResultError(message) from None
    return found


def with_texts(study: Study, record: Record) -> dict[str, Any]:
    """Copy the texts of a study into recorded verdicts, which are as old as the runs."""
    about = study.description
    claims = {claim.name: claim for claim in study.claims}
    assumptions = {one.name: one for one in about.assumption}
    return {
        **record,
        "title": about.title,
        "reconstruction": about.reconstruction,
        "claims": [
            {**one, **(texts(claims[one["id"]]) if one["id"] in claims else {})}
            for one in record["claims"]
        ],
        "assumptions": [
            _with_texts(one, assumptions[one["name"]]) if one["name"] in assumptions else one
            for one in record["assumptions"]
        ],
    }


def _with_texts(record: Record, assumption: Assumption) -> dict[str, Any]:
    plausible = {variant.label: variant.plausible for variant in assumption.variant}
    variants = [
        {**one, "plausible": plausible.get(one["label"], one["plausible"])}
        for one in record["variants"]
    ]
    return {**record, "text": assumption.text, "variants": variants}


def disagreements(study: Study, record: Record) -> list[str]:
    """List the claims, scenarios, presets and assumptions that differ from the recorded ones."""
    judged = {claim["id"]: claim for claim in record["claims"]}
    names = [claim.name for claim in study.claims]
    found = [f"claim {name} is no longer in claims.csv" for name in judged if name not in names]
    for claim in study.claims:
        if claim.name not in judged:
            found.append(f"claim {claim.name} was not judged")
        elif list(_conditions(claim)) != [_stated(one) for one in judged[claim.name]["lines"]]:
            found.append(f"claim {claim.name} has changed since it was judged")
    return [*found, *_changed_runs(study, record)]


def _changed_runs(study: Study, record: Record) -> Iterator[str]:
    """Name the declarations of runs that have changed."""
    scale = record["scale"]
    needed = study.needed(study.figures([]), study.claims)
    for name in needed:
        if record.get("scenarios", {}).get(name) != study.digest(name, scale):
            yield f"scenario {name} has changed since the runs"
    about = study.description
    if [(one.label, dict(one.arms)) for one in about.preset] != [
        (one["label"], one["arms"]) for one in record["presets"]
    ]:
        yield "presets have changed since the runs"
    if scale == "full":
        recorded = {one["name"]: one["variants"] for one in record["assumptions"]}
        for assumption in about.assumption:
            stated = [(one.label, dict(one.set)) for one in assumption.variant]
            found = [(one["label"], one.get("set")) for one in recorded.get(assumption.name, [])]
            if stated != found:
                yield f"assumption {assumption.name} has changed since the runs"


_STATED = (
    "scenario",
    "arm",
    "group",
    "metric",
    "relation",
    "weaker",
    "reference",
    "value",
    "tolerance",
)


def _stated(line: Record) -> tuple[Any, ...]:
    return tuple(line[name] for name in _STATED)


def _conditions(claim: Claim) -> Iterator[tuple[Any, ...]]:
    for line in () if claim.uncounted else claim.lines:
        yield (*_subject(line), line.relation, line.weaker, *_bounds(line))


def _subject(line: Line) -> tuple[str | None, ...]:
    one = line.subject
    return (None,) * 4 if one is None else (one.scenario, one.arm, one.group, one.metric)


def _bounds(line: Line) -> tuple[str | float | None, ...]:
    reference = None if line.reference is None else str(line.reference)
    return reference, line.value, rounded(line.tolerance)


def differences(before: Record, after: Record, *, partial: bool = False) -> list[str]:
    """Compare two records of a study; list what differs, one claim per line."""
    known = {claim["id"]: claim for claim in before["claims"]}
    found = []
    for claim in after["claims"]:
        if partial and claim["verdict"] == NOT_RUN:
            continue
        if claim["id"] not in known:
            found.append(f"claim {claim['id']} is new")
        elif claim != known[claim["id"]]:
            found.append(_difference(known[claim["id"]], claim))
    if partial:
        return found
    names = {claim["id"] for claim in after["claims"]}
    found += [f"claim {name} is missing" for name in known if name not in names]
    own = ("claims", "builds")
    others = (key for key in after if key not in own and before.get(key) != after[key])
    return found + [f"{key} differ: {_short(before.get(key), after[key])}" for key in others]


def _difference(before: Record, after: Record) -> str:
    """Write the first difference of a claim."""
    changes = [
        f"{line['scenario']}, {line['arm']}: {key} {old[key]} is now {line[key]}"
        for old, line in zip(before["lines"], after["lines"], strict=False)
        for key in line
        if old.get(key) != line[key]
    ]
    changes += [
        f"{key} {before[key]} is now {after[key]}"
        for key in after
        if key != "lines" and before.get(key) != after[key]
    ]
    more = f", and {len(changes) - 1} other values" if len(changes) > 1 else ""
    return f"claim {after['id']}: {changes[0] if changes else 'its conditions'}{more}"


def _short(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        return _listed([f"{key} {before.get(key)} is now {after.get(key)}" for key in keys])
    plain = not isinstance(before, list) and not isinstance(after, list)
    return f"{before} is now {after}" if plain else "see the files"


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:3]) + (" …" if len(items) > 3 else "")  # noqa: PLR2004
