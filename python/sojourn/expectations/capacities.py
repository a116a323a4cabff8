"""Rates of the links of a scenario, for expectations."""

import json
from collections.abc import Mapping
from typing import Any

from sojourn import _core
from sojourn.scenario import Scenario


def capacities(
    scenario: Scenario, changes: Mapping[str, Any] | None = None
) -> dict[str, dict[str, float | None]]:
    """Return the rate of each link of each arm."""
    document = json.loads(scenario.checked.to_json())
    arms = document.get("arms") or [{"name": scenario.checked.arms[0], "set": {}}]
    return {
        arm["name"]: {
            link: _rate(link, table, {**arm["set"], **(changes or {})})
            for link, table in document["links"].items()
        }
        for arm in arms
    }


def _rate(link: str, table: Any, changes: Mapping[str, Any]) -> float | None:
    whole = changes.get(f"links.{link}", {})
    if not isinstance(table, Mapping) or not isinstance(whole, Mapping):
        return None  # "unlimited"
    # A change of a table keeps the keys that it does not name.
    keys = {**table, **whole}
    for key in ("rate", "changes", "trace", "medium"):
        if f"links.{link}.{key}" in changes:
            keys[key] = changes[f"links.{link}.{key}"]
    if "rate" not in keys or any(keys.get(key) for key in ("changes", "trace", "medium")):
        return None
    return _core.parse_rate_bits_per_s(keys["rate"]) / 1e6
