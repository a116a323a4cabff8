"""``sojourn schema``: print the JSON Schema of scenario files."""

import json
from typing import Any

from sojourn import _core
from sojourn.arguments.common import MAX_REPLICATIONS
from sojourn.search.planned import MAX_RUNS, MAX_TRIALS

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
        "sweep": _table(
            "Points for `sojourn sweep`; not part of the scenario.",
            {
                "parameters": _parameters("Values by path, such as a list or linspace(1ms,9ms,5)."),
                "where": _texts("Conditions that points must meet."),
                "sample": _text(
                    "How samples are drawn from ranges, such as lhs:64.",
                    pattern=r"^\s*(lhs|sobol):[1-9]\d{0,6}\s*$",
                ),
                "replications": _number("Runs per point and arm.", 1, MAX_REPLICATIONS),
                "until": _text("Precision of a metric, such as ping_ms_p99 ±5 %."),
                "most": _number("The most runs per point with `until`.", 1, MAX_REPLICATIONS),
            },
        ),
        "tune": _table(
            "Search of `sojourn tune`; not part of the scenario.",
            {
                "parameters": _parameters("Values by path, such as a list or loguniform(1ms,9ms)."),
                "objectives": _texts(
                    "min or max and a metric or an expression of metrics.",
                    least=1,
                    pattern=r"^\s*(min|max) ",
                ),
                "where": _texts("Conditions that points must meet."),
                "arm": _text("Arm to tune, if the scenario has several."),
                "trials": _number("Number of trials.", 1, MAX_TRIALS),
                "replications": _number("Runs per trial.", 1, MAX_RUNS),
                "intervals": _number("Runs per trial on the front, with new seeds.", 2, MAX_RUNS),
            },
        ),
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


def _parameters(description: str) -> Schema:
    values = [{"type": "string"}, {"type": "array", "minItems": 1}]
    return {
        "type": "object",
        "description": description,
        "additionalProperties": {"anyOf": values},
    }


def _text(description: str, **more: str) -> Schema:
    return {"type": "string", "description": description, **more}


def _texts(description: str, *, least: int = 0, **more: str) -> Schema:
    """Return the schema of a list of texts, which may be a single text."""
    text = {"type": "string", **more}
    items = {"type": "array", "items": text, "minItems": least}
    return {"anyOf": [text, items], "description": description}


def _number(description: str, least: int, most: int) -> Schema:
    return {"type": "integer", "description": description, "minimum": least, "maximum": most}
