"""Print the verdicts of a study."""

from collections.abc import Mapping, Sequence
from typing import Any

from sojourn import _core
from sojourn.cli.tables import print_table
from sojourn.studies import wording
from sojourn.studies.verdicts import IN_DIRECTION, NOT_REPRODUCED, VERDICTS

_NOTE = (
    "published: the condition of the claim; measured: mean ± half the width of its 95 % interval; "
    "×: ratio of two means; above, below, differs: significant difference (t test, 5 %)"
)


def show(verdicts: Mapping[str, Any]) -> None:
    """Print the claims that are not fully reproduced, and the totals."""
    rows = [
        [
            claim["id"] if first else "",
            wording.subject(line),
            wording.stated(line),
            wording.measured(line),
            claim["verdict"] if first else "",
        ]
        for claim in verdicts["claims"]
        if claim["verdict"] in (IN_DIRECTION, NOT_REPRODUCED)
        for first, line in _marked(wording.unmet(claim))
    ]
    if rows:
        head = ["claim", "quantity", "published", "measured", "verdict"]
        print_table(head, rows, title=f"{verdicts['title']}: claims not fully reproduced", words=5)
        print(_NOTE)
    if note := wording.of_single_runs(verdicts):
        print(note)
    if verdicts["reconstruction"]:
        print(f"reconstruction: {verdicts['reconstruction']}")
    print(f"verdict on {verdicts['study']} ({wording.scale(verdicts)}): ", end="")
    print(wording.counted(verdicts["totals"]))
    for preset in verdicts["presets"]:
        print(f"  with {preset['label']}: {wording.counted(preset['totals'])}")
    print(_core.printable(f"to reproduce these numbers: {verdicts['command']}"))


def _marked(lines: Sequence[Mapping[str, Any]]) -> list[tuple[bool, Mapping[str, Any]]]:
    return [(at == 0, line) for at, line in enumerate(lines)]


def show_all(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the totals of several studies, one line each, and their sum."""
    names = list(VERDICTS)
    rows = [[one["study"], *(str(one["totals"][name]) for name in names)] for one in records]
    sums = [sum(one["totals"][name] for one in records) for name in names]
    rows.append(["total", *map(str, sums)])
    print_table(["study", *names], rows, title="claims by verdict", words=1)
