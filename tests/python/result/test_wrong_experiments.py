"""Experiments that are known to be wrong have their finding; right ones have no warning."""

import json

import pytest

import sojourn as sj
from support.experiments import RIGHT, WRONG, Experiment

# Notes that any small experiment may have.
USUAL = (
    "n = 3: intervals are too narrow",
    "has too few observations",
    "compared with a real implementation",
    "its queue had no effect",
    "were still in progress at the end of the run",
)


def findings(experiment: Experiment) -> list[tuple[str, str]]:
    """Run an experiment and return its findings: pairs of a severity and a text."""
    result = sj.run(sj.Scenario.from_json(json.dumps(experiment.scenario)), jobs=1)
    return [(f"{found.severity}", found.text) for found in result.validity.findings]


@pytest.mark.parametrize("experiment", WRONG, ids=lambda one: one.name)
def test_a_wrong_experiment_has_its_finding(experiment: Experiment) -> None:
    found = findings(experiment)
    having = [severity for severity, text in found if experiment.finding in text]
    assert experiment.severity in having, found
    # A finding is one line.
    assert not any("\n" in text for _, text in found)


@pytest.mark.parametrize("experiment", RIGHT, ids=lambda one: one.name)
def test_a_right_experiment_has_no_warning(experiment: Experiment) -> None:
    found = findings(experiment)
    assert not [text for severity, text in found if severity != "note"]
    unusual = [text for _, text in found if not any(part in text for part in USUAL)]
    having = [note for text in unusual for note in experiment.notes if note in text]
    assert (len(having), set(having)) == (len(unusual), set(experiment.notes)), found


def test_the_corpus_is_large() -> None:
    assert len({one.name for one in WRONG}) == len(WRONG) >= 60
    assert len({one.name for one in RIGHT}) == len(RIGHT) >= 40
    scenarios = {json.dumps(one.scenario, sort_keys=True) for one in (*WRONG, *RIGHT)}
    assert len(scenarios) == len(WRONG) + len(RIGHT)
