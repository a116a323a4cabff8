"""``sojourn schema``: print the JSON Schema of scenario files."""

import json
from typing import Any

from sojourn import _core
from sojourn.arguments import table_schema
from sojourn.search.tune import TunePlan
from sojourn.sweeps.run import SweepPlan

Schema = dict[str, Any]


def schema() -> int:
    """Print the JSON Schema of scenario files."""
    print(document(), end="")
    return 0


def document() -> str:
    """Return the schema: that of the core, with the tables that the core does not read."""
    found = json.loads(_core.scenario_schema())
    found["properties"] |= _tables()
    return json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _tables() -> dict[str, Schema]:
    """Return the schemas of the tables ``[sweep]``, ``[tune]`` and ``[[expect]]``."""
    return {
        "sweep": table_schema(SweepPlan, "Points for `sojourn sweep`; not part of the scenario."),
        "tune": table_schema(TunePlan, "Search of `sojourn tune`; not part of the scenario."),
        "expect": {
            "type": "array",
            "description": "Expectations, which `sojourn test` judges; not part of the scenario.",
            "items": _table(
                "Expectation.",
                {
                    "that": _text("A comparison, such as ping_ms_p99 < 40."),
                    "name": _text("Its name in reports."),
                    "arm": _texts("Arms that it is about; by default all.", least=1),
                },
                required=("that",),
            ),
        },
    }


def _table(description: str, keys: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    found: Schema = {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": keys,
    }
    return {**found, "required": list(required)} if required else found


def _text(description: str, **more: str) -> Schema:
    return {"type": "string", "description": description, **more}


def _texts(description: str, *, least: int = 0, **more: str) -> Schema:
    """Return the schema of a list of texts, which may be a single text."""
    text = {"type": "string", **more}
    items = {"type": "array", "items": text, "minItems": least}
    return {"anyOf": [text, items], "description": description}
