"""No finding on a random scenario contradicts a recomputation from the tables, and none is missing.

The environment variable ``SOJOURN_SOAK_SEED`` chooses other scenarios.
"""

import json
import os
import random
from collections import Counter
from typing import Any

import pytest

import sojourn as sj
from support import random_scenarios, recomputed

# Random texts repeat words.
pytestmark = pytest.mark.filterwarnings("ignore::sojourn.QueueWarning")

FIRST = int(os.environ.get("SOJOURN_SOAK_SEED", "0")) * 10_000
GROUPS, EACH = 200, 50
# The groups that `make test` runs.
QUICK = 2

Tree = dict[str, Any]


def _change(rng: random.Random, tree: Tree) -> tuple[str, Any]:
    """Return the path and the value of a change of a random scenario."""
    name = rng.choice(list(tree["links"]))
    block = rng.choice(tree["traffic"])
    link = tree["links"][name]
    kind = rng.randrange(8)
    if kind == 0 and "rate" in link and not {"medium", "changes"} & link.keys():
        return f"links.{name}.rate", rng.choice(random_scenarios.RATES)
    if kind == 1:
        return f"links.{name}.delay", rng.choice(["2ms", "30ms"])
    if kind == 2 and "cc" in block:
        return f"traffic.{block['name']}.cc", rng.choice(random_scenarios.CONTROLS)
    if kind == 3:
        return f"traffic.{block['name']}.rtt", rng.choice(["2ms", "50ms"])
    return f"links.{name}.qdisc", random_scenarios.queue(rng)


def experiment(seed: int) -> Tree:
    """Return a random scenario, often with arms; a tenth of them last for more than 10 s."""
    rng = random.Random(seed)  # noqa: S311 (nothing is secret)
    tree = random_scenarios.scenario(seed)
    tree |= {"keep_events": False, "rtt": "0s", "replications": rng.choice([1, 2, 2, 3])}
    if rng.randrange(10) == 0:
        tree["duration"] = "11s"
    for number, block in enumerate(tree["traffic"]):
        block["name"] = f"t{number}"
        if block["type"] in {"web", "request", "incast"} and rng.randrange(3) == 0:
            block["visits" if block["type"] == "web" else "rounds"] = rng.choice([1, 3])
    arms = [
        {"name": name, "set": dict(_change(rng, tree) for _ in range(rng.randrange(1, 3)))}
        for name in "abc"[: rng.randrange(4)]
    ]
    return tree | ({"arms": [{"name": "base", "set": {}}, *arms]} if arms else {})


def of_arms(scenario: sj.Scenario, arms: list[Tree]) -> dict[str, Tree]:
    """Return the keys of each arm, defaults included."""
    plain = scenario.replace(arms=())
    trees: dict[str, Tree] = {}
    for arm in arms:
        tree = json.loads(plain.checked.to_json())
        for path, value in arm["set"].items():
            table, name, key = path.split(".")
            named = (
                tree["links"]
                if table == "links"
                else {block["name"]: block for block in tree["traffic"]}
            )
            named[name][key] = value
        # Equal values may be written differently.
        trees[arm["name"]] = json.loads(sj.Scenario.from_json(json.dumps(tree)).checked.to_json())
    return trees


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=[pytest.mark.slow] if group >= QUICK else [])
        for group in range(GROUPS)
    ],
)
def test_findings_are_those_that_the_tables_imply(group: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(FIRST + group * EACH, FIRST + (group + 1) * EACH):
        tree = experiment(seed)
        try:
            scenario = sj.Scenario.from_json(json.dumps(tree))
        except sj.ScenarioError:
            continue
        result = sj.run(scenario, jobs=1)
        try:
            trees = of_arms(scenario, tree.get("arms", [{"name": "default", "set": {}}]))
            kinds.update(recomputed.compare(result, trees))
        except Exception as e:
            e.add_note(f"seed {seed}: {json.dumps(tree)}")
            raise
    # The scenarios have findings of most kinds.
    assert len(kinds) >= 15, kinds
