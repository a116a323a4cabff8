"""The sections that a user selects."""

from collections.abc import Sequence

from sojourn.arguments import ArgumentError


def in_order(numbers: Sequence[str]) -> tuple[str, ...]:
    """Sort numbers of sections.

    Examples
    --------
    >>> in_order(["10.2", "8.3", "8.2.6"])
    ('8.2.6', '8.3', '10.2')
    """

    def key(number: str) -> list[tuple[int, str]]:
        return [(int(one), "") if one.isdigit() else (0, one) for one in number.split(".")]

    return tuple(sorted(numbers, key=key))


def selected(
    numbers: str | Sequence[str] | None, known: Sequence[str], argument: str = "section"
) -> list[str]:
    """Select what a document has; a section stands for all numbers below it.

    Examples
    --------
    >>> selected(["8.2.6", "12"], ["8.2.6.1", "8.2.6.2", "8.3", "12"])
    ['8.2.6.1', '8.2.6.2', '12']
    """
    if not numbers:
        return list(known)
    wanted = set()
    for number in [numbers] if isinstance(numbers, str) else numbers:
        found = [one for one in known if f"{one}.".startswith(f"{number}.")]
        if not found:
            raise ArgumentError(argument, number, f"unknown; expected one of {', '.join(known)}")
        wanted |= set(found)
    return [number for number in known if number in wanted]
