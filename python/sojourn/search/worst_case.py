"""Worst cases as scenario files: a machine-readable comment block, and the scenario."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sojourn import _core, files
from sojourn.scenario import Scenario

TITLE = "# A worst case that `sojourn adversary` found. The seed below was not used by the search."
MAX_FILE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A scenario in which an arm loses against another."""

    scenario: Scenario
    arm: str
    against: str
    score: str
    regret: float
    regret_low: float
    regret_high: float
    found: float
    found_low: float
    found_high: float
    trials: int
    search_seed: int
    version: str
    command: str = ""

    def to_toml(self) -> str:
        """Write the scenario with the comment block."""
        values = {
            item.name: getattr(self, item.name) for item in fields(self) if item.name != "scenario"
        }
        lines = [f"# {key} = {_written(value)}" for key, value in values.items()]
        return "\n".join([TITLE, *lines, "", self.scenario.to_toml()])


def read(path: str | Path) -> Counterexample:
    """Read a worst case."""
    try:
        text = files.head(path, MAX_FILE).decode()
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    except UnicodeDecodeError:
        message = f"{path}: not valid UTF-8; expected a scenario file"
        raise _core.ResultError(message) from None
    return parsed(text, path)


def parsed(text: str, path: str | Path) -> Counterexample:
    """Read a worst case from its text; `path` is its file, for error messages."""
    head, *rest = text.splitlines() or [""]
    block = []
    for line in rest:
        if not line.startswith("# "):
            break
        block.append(line.removeprefix("# "))
    try:
        values: dict[str, Any] = tomllib.loads("\n".join(block))
    except tomllib.TOMLDecodeError:
        values = {}
    wanted = {item.name for item in fields(Counterexample)} - {"scenario"}
    if head != TITLE or values.keys() != wanted:
        message = f"{path}: not a worst case; expected a file written by `sojourn adversary --save`"
        raise _core.ResultError(message)
    return Counterexample(scenario=Scenario.from_toml(text), **values)


def _written(value: str | float) -> str:
    if isinstance(value, str):
        # A basic string of TOML: quotes and line breaks are escaped.
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        return f'"{escaped}"'
    return repr(value)
