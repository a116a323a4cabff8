"""The recorded verdicts of published works: `make studies` measures all of them again."""

import json
from pathlib import Path

import pytest

from sojourn.studies import record
from sojourn.studies import study as studies
from sojourn.studies.verdicts import NOT_RUN
from support.shell import ROOT
from support.stored import command

# A study, and a figure of it whose scenarios take about 3 s.
STUDY, FIGURE = "predict", "6"
QUICK = ROOT / "papers" / STUDY / record.QUICK


def test_a_quick_run_gives_the_recorded_values(tmp_path: Path) -> None:
    arguments = ("reproduce", STUDY, "--figure", FIGURE, "--papers", ROOT / "papers", "--json")
    done = command(*arguments, "--out", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    after = json.loads(done.stdout)
    measured = [
        claim for claim in after["claims"] if claim["verdict"] != NOT_RUN and claim["lines"]
    ]
    assert measured, "the figure measures no claim"
    before = record.load(QUICK)
    assert before is not None
    assert record.differences(before, after, partial=True) == []


@pytest.mark.parametrize("name", studies.names(ROOT / "papers"))
def test_recorded_verdicts_belong_to_the_claims(name: str) -> None:
    study = studies.load(ROOT / "papers" / name)
    for file in record.FILES:
        found = record.load(study.folder / file)
        assert found is not None, f"{name}: no {file}: make studies-update, make studies-full"
        assert record.disagreements(study, found) == []
