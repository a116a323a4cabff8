"""``sojourn schema``: print the JSON Schema of scenario files."""

from sojourn import _core


def schema() -> int:
    """Print the JSON Schema of scenario files."""
    print(_core.scenario_schema(), end="")
    return 0
