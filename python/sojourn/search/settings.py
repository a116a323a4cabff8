"""Settings of a point of a search: lines for ``tc``, options of the command, a scenario."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.queues.queue_file import toml_with_files, with_files
from sojourn.scenario import Scenario
from sojourn.scenario.model import check_arm
from sojourn.scenario.paths import Value, overridden
from sojourn.search.dimensions import Values, listed


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a point."""

    values: Mapping[str, Value]
    changes: Mapping[str, Value]
    queues: Mapping[str, str]
    # What follows `root` in a line for `tc`, by link, and why other queues have none.
    lines: Mapping[str, str]
    not_in_tc: list[str]

    @property
    def options(self) -> str:
        """The options of ``sojourn run`` that set the values."""
        return self.written("-s")

    def written(self, option: str) -> str:
        """Write the values as options: ``-s`` of ``sojourn run``, or ``-p`` of sweeps."""
        return shlex.join(
            word
            for path, value in self.changes.items()
            for word in (option, f"{path}={_text(value)}")
        )

    @property
    def tc(self) -> list[str]:
        """One line for ``tc`` per queue that it has; ``$UP`` stands for the device of ``up``."""
        return [
            f"tc qdisc replace dev ${_variable(link)} root {line}"
            for link, line in self.lines.items()
        ]

    def document(self) -> dict[str, Any]:
        """Describe the settings as JSON."""
        return {
            "values": dict(self.values),
            "queues": dict(self.queues),
            "tc": self.tc,
            "options": self.options,
        }


def settings(scenario: Scenario, values: Values) -> Settings:
    """Return the settings of a point of a scenario without arms."""
    (point,) = listed(scenario, [values])
    document = json.loads(overridden(scenario, point.changes).checked.to_json())
    links = [path.split(".")[1] for path in point.changes if _is_of_queue(path)]
    queues = {link: document["links"][link]["qdisc"] for link in dict.fromkeys(links)}
    lines, without = {}, []
    for link, queue in queues.items():
        rate = document["links"][link].get("rate")
        try:
            lines[link] = _core.tc_line(queue, rate and _core.parse_rate_bits_per_s(rate))
        except _core.ScenarioError as error:
            without.append(f"{error}")
    return Settings(dict(values), dict(point.changes), queues, lines, without)


def changed(scenario: Scenario, values: Values) -> Scenario:
    """Return a scenario without arms with the values of a point."""
    (point,) = listed(scenario, [values])
    return overridden(scenario, point.changes)


def of_arm(scenario: Scenario, arm: str | None) -> Scenario:
    """Return a scenario without arms: apply the changes of one arm."""
    names = scenario.checked.arms
    if arm is None and len(names) > 1:
        rule = "required, because the scenario has several arms; expected one of {names}"
        raise ArgumentError("arm", rule=rule, names=", ".join(names))
    if arm is not None:
        check_arm(scenario, arm)
    found = next((one for one in scenario.arms if arm in {None, one.name}), None)
    if found is None:
        return scenario
    return overridden(scenario.replace(arms=[]), dict(found.set))  # type: ignore[arg-type]


def _is_of_queue(path: str) -> bool:
    parts = path.split(".")
    return len(parts) > 2 and parts[0] == "links" and parts[2] == "qdisc"  # noqa: PLR2004


def _text(value: Value) -> str:
    return with_files(value) if isinstance(value, str) else toml_with_files(_toml(value))


def _toml(value: Any) -> str:
    """Write a value on one line as TOML, which options are read as."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _variable(link: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in link).upper()
