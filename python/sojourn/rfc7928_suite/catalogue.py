"""All scenarios and discussions of the suite, by number."""

from collections.abc import Sequence

from sojourn import _core
from sojourn.rfc7928_suite import fairness, stability, traffic, transports
from sojourn.rfc7928_suite.definitions import Definition

DISCUSSIONS = {
    "4.6": "Interaction with scheduling",
    "8.3": "Parameter sensitivity and stability",
    "11": "Implementation cost",
    "12": "Operator control and auto-tuning",
}


def _order(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


DEFINITIONS: dict[str, Definition] = {
    one.number: one
    for one in sorted(
        (
            *transports.DEFINITIONS,
            *fairness.DEFINITIONS,
            *stability.DEFINITIONS,
            *traffic.DEFINITIONS,
        ),
        key=lambda one: _order(one.number),
    )
}
NUMBERS = tuple(sorted([*DEFINITIONS, *DISCUSSIONS], key=_order))


def selected(numbers: Sequence[str] | None) -> list[str]:
    """Select scenarios and discussions; a section stands for all numbers below it.

    Examples
    --------
    >>> selected(["8.2.6", "12"])
    ['8.2.6.1', '8.2.6.2', '12']
    """
    if not numbers:
        return list(NUMBERS)
    wanted = set()
    for number in numbers:
        found = [one for one in NUMBERS if f"{one}.".startswith(f"{number}.")]
        if not found:
            expected = ", ".join(NUMBERS)
            message = f'--number: unknown scenario "{number}"; expected one of {expected}'
            raise _core.ScenarioError(message)
        wanted |= set(found)
    return [number for number in NUMBERS if number in wanted]
