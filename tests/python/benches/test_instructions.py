"""How ``benches/instructions.py`` reads callgrind and judges counts, without a run."""

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from support.shell import ROOT

PROFILE = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
positions: line
events: Ir
summary: 1138

ob=(1) /somewhere/target/release/sojourn-bench
fl=(1) /somewhere/crates/sim/src/world/links.rs
fn=(1) sojourn_sim::world::links::forward
12 100
+3 20
fi=(2) /rustc/library/core/src/mem.rs
40 8
fe=(1)
13 2
cob=(2) /usr/lib/libc.so.6
cfi=(3) ./string/memcpy.S
cfn=(2) memcpy
calls=7 0
* 1000
-1 5

ob=(2)
fl=(3)
fn=(2)
0 1000

ob=(1)
fl=(4) /somewhere/crates/transport/src/sender/ack.rs
fn=(3) on_ack
7 3
"""


@pytest.fixture
def bench() -> Iterator[ModuleType]:
    """The module, which is a script."""
    name = "bench_instructions"
    spec = importlib.util.spec_from_file_location(name, ROOT / "benches/instructions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


def test_lines_of_the_program_are_counted_by_component(bench: ModuleType) -> None:
    assert bench.counts_of(PROFILE.splitlines(), "sojourn-bench") == {
        "sim::world": 127,
        "standard library and dependencies": 8,
        "transport::sender": 3,
    }


def test_growth_above_the_tolerance_is_reported_with_the_components(bench: ModuleType) -> None:
    before = {"S1": {"sim::world": 600, "transport::sender": 400}}
    within = {"S1": {"sim::world": 620, "transport::sender": 400}}
    beyond = {"S1": {"sim::world": 590, "transport::sender": 431}}
    assert bench.regressions(before, before) == []
    assert bench.regressions(before, within) == []
    assert bench.regressions(before, beyond) == [
        "S1: +2.1% instructions (1,000 before, 1,021 now): transport::sender +3.1%"
    ]
    assert bench.regressions({}, before) == ["S1: not recorded: make instructions-update"]
