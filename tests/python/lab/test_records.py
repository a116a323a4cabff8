"""The records of the simulator as WebAssembly are those of the golden corpus, to the byte."""

import json

import pytest

from corpus import Document, corpus
from golden import EXPECTED, Expected
from support import wasm

# Scenarios of each kind; the first tenth is in the quick check.
STEP = 11
MOST = 60
QUICK = 10


def chosen() -> dict[str, Document]:
    """Choose scenarios that read no file, spread over the corpus."""
    everything = corpus()
    own = {name: one for name, one in everything.items() if "_trace" not in json.dumps(one)}
    return dict(list(own.items())[::STEP][:MOST])


def differences(scenarios: dict[str, Document]) -> list[str]:
    """Run scenarios in Node, and compare the digests of all columns."""
    expected = Expected.read(EXPECTED.read_text(encoding="utf-8"))
    module = str(wasm.module())
    found = json.loads(wasm.node("digests.mjs", module, text=json.dumps(scenarios)))
    assert found.keys() == scenarios.keys()
    return [d for name, tables in found.items() for d in expected.differences(name, tables)]


def test_records_of_some_scenarios_are_the_native_ones() -> None:
    scenarios = chosen()
    assert differences(dict(list(scenarios.items())[:: len(scenarios) // QUICK])) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_records_of_fifty_scenarios_are_the_native_ones() -> None:
    scenarios = chosen()
    assert len(scenarios) >= 50
    assert differences(scenarios) == []


def test_a_changed_parameter_changes_the_digests() -> None:
    name, document = next(iter(chosen().items()))
    assert differences({name: document | {"seed": 12345}}) != []
