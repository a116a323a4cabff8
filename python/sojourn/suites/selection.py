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
            accepted = f"expected one of {', '.join(known)}{_above(known)}"
            raise ArgumentError(argument, number, f"unknown; {accepted}")
        wanted |= set(found)
    return [number for number in known if number in wanted]


def _above(known: Sequence[str]) -> str:
    """Name the first parts of numbers, which select all numbers below them.

    Examples
    --------
    >>> _above(["5.1", "5.2", "6", "7.1"]), _above(["6", "7"])
    (', or 5 or 7 for all below', '')
    """
    firsts = dict.fromkeys(number.partition(".")[0] for number in known)
    above = [first for first in firsts if first not in known]
    if not above:
        return ""
    *before, last = above
    listed = f"{', '.join(before)} or {last}" if before else last
    return f", or {listed} for all below"
