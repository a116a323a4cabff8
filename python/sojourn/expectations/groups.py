"""Groups of traffic of a scenario and their metrics, for expectations."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sojourn.result.catalogue import of_kind
from sojourn.result.metric import Kind
from sojourn.scenario import Scenario

# The kind of the metrics of each type of traffic; that of others is "application".
_KINDS: dict[str, Kind | None] = {
    **dict.fromkeys(("tcp", "quic", "udp"), "group"),
    **dict.fromkeys(("ping", "program")),
}


def groups(scenario: Scenario) -> dict[str, list[str]]:
    """List the groups of traffic of a scenario that have metrics, in any of its arms."""
    document = json.loads(scenario.checked.to_json())
    blocks = list(document["traffic"])
    for arm in document.get("arms", []):
        for path, value in arm["set"].items():
            blocks += _blocks(path, value)
    found: dict[str, list[str]] = {}
    for block in blocks:
        # The type of a block that an arm renames is not looked up: all metrics are accepted.
        kinds: tuple[Kind | None, ...] = ("group", "application")
        if "type" in block:
            kinds = (_KINDS.get(block["type"], "application"),)
        columns = [metric.column for kind in kinds if kind is not None for metric in of_kind(kind)]
        if columns and "name" in block:
            known = found.setdefault(block["name"], [])
            known += [column for column in columns if column not in known]
    return found


def _blocks(path: str, value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the traffic blocks that a change of an arm adds or renames."""
    if not path.startswith("traffic"):
        return
    if isinstance(value, list):
        yield from (block for block in value if isinstance(block, Mapping))
    elif isinstance(value, Mapping):
        yield value
    elif path.endswith(".name"):
        yield {"name": value}
