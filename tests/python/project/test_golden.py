"""The records of the golden corpus, and that the check of them can fail."""

import json
from copy import deepcopy

import polars as pl
import pytest

from corpus import Document, corpus, quick
from golden import EXPECTED, Expected, column_digests, digests, new_columns, run_all
from sojourn import _core

NAME = "probes/plain"


@pytest.fixture(scope="module")
def scenarios() -> dict[str, Document]:
    return corpus()


@pytest.fixture(scope="module")
def expected() -> Expected:
    return Expected.read(EXPECTED.read_text(encoding="utf-8"))


@pytest.mark.timeout(600)
def test_records_are_those_recorded(scenarios: dict[str, Document], expected: Expected) -> None:
    found = run_all(quick(scenarios), jobs=2)
    differences = [d for name, tables in found.items() for d in expected.differences(name, tables)]
    assert not differences, "\n".join(differences)
    assert len(found) > 200
    assert expected.values.keys() == scenarios.keys()


def test_the_number_of_threads_does_not_matter(scenarios: dict[str, Document]) -> None:
    assert digests(scenarios[NAME], jobs=1) == digests(scenarios[NAME], jobs=2)


def test_a_changed_parameter_is_reported_by_scenario_table_and_column(
    scenarios: dict[str, Document], expected: Expected
) -> None:
    document = deepcopy(scenarios[NAME])
    document["links"]["up"]["rate"] = "2001kbit"
    differences = "\n".join(expected.differences(NAME, digests(document)))
    assert "probes/plain: links: changed rate_mbit_per_s:Float64" in differences
    assert "probes/plain: flows: changed " in differences
    assert "transactions" not in differences


def test_a_new_column_is_reported_and_a_missing_one_fails(
    scenarios: dict[str, Document], expected: Expected
) -> None:
    found = digests(scenarios[NAME])
    # Columns that are newer than the recorded corpus.
    newer = new_columns(expected, {NAME: found})
    found["flows"]["colour:String"] = "00"
    assert list(expected.differences(NAME, found)) == []
    assert sorted(new_columns(expected, {NAME: found})) == sorted([*newer, "flows.colour:String"])
    del found["flows"]["cc:String"]
    assert list(expected.differences(NAME, found)) == [f"{NAME}: flows: missing columns cc:String"]


def test_a_table_that_is_new_or_missing_fails(
    scenarios: dict[str, Document], expected: Expected
) -> None:
    found = digests(scenarios[NAME])
    assert list(found) == [table["name"] for table in json.loads(_core.column_catalogue())]
    found["weather"] = {"arm:String": "00"}
    del found["events"]
    assert sorted(expected.differences(NAME, found)) == [
        f"{NAME}: events: missing",
        f"{NAME}: weather: not recorded",
    ]


def test_a_scenario_that_was_not_recorded_fails(expected: Expected) -> None:
    assert list(expected.differences("mine", {})) == ["mine: not recorded"]


def test_what_is_written_reads_back(expected: Expected) -> None:
    assert expected.text() == EXPECTED.read_text(encoding="utf-8")


def test_digests_depend_on_values_alone() -> None:
    frame = pl.DataFrame({"arm": ["a", "b"], "x": [1.0, None]})
    parts = pl.concat([frame[:1], frame[1:]], rechunk=False)
    encoded = parts.with_columns(pl.col("arm").cast(pl.Categorical))
    assert column_digests(encoded) == column_digests(frame)
    assert column_digests(frame.with_columns(x=pl.lit(1.0))) != column_digests(frame)
    assert column_digests(frame.reverse()) != column_digests(frame)
