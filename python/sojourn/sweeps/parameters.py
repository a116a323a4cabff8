"""Parameters of a sweep: paths into the scenario, and the values that they take.

Values are a list such as ``1ms,5ms,20ms``. Each item is a value of a scenario file or one of
``linspace(low,high,count)``, ``logspace(low,high,count)`` and ``range(low,high,step)``.
``uniform(low,high)``, ``loguniform(low,high)`` and ``integers(low,high)`` are ranges, from which
samples are drawn. Parameters with a comma between their paths change together:
``links.down.rate,links.up.rate=10mbit/1mbit,100mbit/10mbit``.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sojourn.arguments import ArgumentError
from sojourn.document import plain
from sojourn.scenario.paths import Value, value_of
from sojourn.scenario.quantities import Quantity, quantity

Distribution = Literal["uniform", "loguniform", "integers"]
DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)
# A generator of more values is a mistake; so is a sweep of more points.
MAX_VALUES = 100_000
EXPECTED = (
    "expected values such as 1ms,5ms,20ms, linspace(low,high,count), logspace(low,high,count), "
    "range(low,high,step), or with {sampling} uniform(low,high), loguniform(low,high) or "
    "integers(low,high)"
)
_CALL = re.compile(r"(?P<name>[a-z]+)\((?P<arguments>[^()]*)\)")
_GENERATORS = ("linspace", "logspace", "range")
_OPEN = re.compile(rf"(?:{'|'.join((*_GENERATORS, *DISTRIBUTIONS))})\(")
# The same in all points: runs of equal replications are compared as pairs.
_SHARED = {
    "seed": "all points have the same seeds, so that they can be compared; set it by {seed}",
    "replications": "set it by {replications}",
    "name": "a name is no parameter",
    "arms": "arms are compared in each point as they are",
}


def _error(place: str, rule: str, **texts: object) -> ArgumentError:
    return ArgumentError("parameters", rule=rule, key=place, **texts)


@dataclass(frozen=True, slots=True)
class Range:
    """A range from which samples are drawn."""

    low: Quantity
    high: Quantity
    distribution: Distribution

    def at(self, share: float) -> Value:
        """Return the value below which this share of the distribution lies."""
        low, high = self.low.number, self.high.number
        if self.distribution == "integers":
            number = low + math.floor(share * (high - low + 1))
        elif self.distribution == "loguniform":
            number = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        else:
            number = low + share * (high - low)
        return Quantity(min(number, high), self.low.kind).written()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, or several that change together."""

    paths: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...] = ()
    ranges: tuple[Range, ...] = ()


def _parsed(place: str, paths: tuple[str, ...], text: str) -> Parameter:
    """Read the values of a parameter from a text."""
    items = [item.strip() for item in split(text, ",")]
    if not all(items):
        raise _error(place, f"empty value; {EXPECTED}")
    return _parameter(place, paths, [_parts(place, paths, item) for item in items])


def parameters(mapping: Mapping[Any, Any]) -> list[Parameter]:
    """Read the parameters of a Python mapping or of a table ``[sweep]``.

    Examples
    --------
    >>> parameters({"links.up.qdisc.target": ["1ms", "5ms"]})[0].values
    (('1ms',), ('5ms',))
    >>> parameters({"links.up.rate": "logspace(1mbit,100mbit,3)"})[0].values
    (('1mbit',), ('10mbit',), ('100mbit',))
    >>> parameters({"links.down.rate,links.up.rate": "10mbit/1mbit,100mbit/10mbit"})[0].values
    (('10mbit', '1mbit'), ('100mbit', '10mbit'))
    """
    found = []
    for key, given in mapping.items():
        keys = key.split(",") if isinstance(key, str) else key
        if not isinstance(keys, list | tuple) or not all(isinstance(path, str) for path in keys):
            rule = "expected a path, or a tuple of paths that change together"
            raise _error(str(key), rule)
        paths = tuple(path.strip() for path in keys)
        _check_paths(paths)
        place = ",".join(paths)
        if isinstance(given, str):
            found.append(_parsed(place, paths, given))
            continue
        if isinstance(given, Mapping | bytes) or not hasattr(given, "__iter__"):
            raise _error(place, f"expected a list of values; {EXPECTED}")
        items = [_python_item(place, paths, item) for item in given]
        if not items:
            raise _error(place, f"no values; {EXPECTED}")
        found.append(_parameter(place, paths, items))
    return found


def _python_item(place: str, paths: tuple[str, ...], item: Any) -> list[list[Value] | Range]:
    """Read one value of a list in Python; texts of single parameters may be generators."""
    if len(paths) == 1:
        parts = [item]
    elif isinstance(item, str):
        parts = split(item, "/")
    else:
        parts = list(item) if isinstance(item, list | tuple) else [item]
    if len(parts) != len(paths):
        rule = "{item}: expected {count} values, one per path"
        raise _error(place, rule, item=item, count=len(paths))
    return [
        _values(place, part) if isinstance(part, str) else [plain(place, _number(part))]
        for part in parts
    ]


def _number(value: Any) -> Any:
    """Convert a number of numpy to one of Python."""
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def _check_paths(paths: tuple[str, ...]) -> None:
    for path in paths:
        if not path:
            raise _error(",".join(paths), "empty path; expected one such as links.up.rate")
        if path in _SHARED:
            raise _error(path, f"not a parameter of a sweep: {_SHARED[path]}")
    if len(set(paths)) < len(paths):
        raise _error(",".join(paths), "the same path twice; expected different paths")


def _parts(place: str, paths: tuple[str, ...], item: str) -> list[list[Value] | Range]:
    """Read one item of the list: one part per path, each one or several values."""
    _check_closed(place, item)
    texts = split(item, "/") if len(paths) > 1 else [item]
    if len(texts) != len(paths):
        rule = (
            "{item}: expected {count} values with / between them, one per path, such as "
            "10mbit/1mbit"
        )
        raise _error(place, rule, item=item, count=len(paths))
    return [_values(place, text.strip()) for text in texts]


def _parameter(
    place: str, paths: tuple[str, ...], items: Sequence[Sequence[list[Value] | Range]]
) -> Parameter:
    ranges = [part for parts in items for part in parts if isinstance(part, Range)]
    if ranges:
        if len(ranges) != len(paths) or len(items) > 1:
            raise _error(place, "a range stands alone; expected one range per path, or values")
        return Parameter(paths, ranges=tuple(ranges))
    values: list[tuple[Value, ...]] = []
    for parts in items:
        lists = [part for part in parts if isinstance(part, list)]
        count = max(len(part) for part in lists)
        if any(len(part) not in {1, count} for part in lists):
            lengths = ", ".join(f"{len(part)}" for part in lists)
            rule = f"lists of different lengths ({lengths}); expected equal lengths"
            raise _error(place, rule)
        values += zip(*(part * (count if len(part) == 1 else 1) for part in lists), strict=True)
    if any(path.endswith("qdisc") for path in paths):
        values = [tuple(map(plain, paths, one)) for one in values]
    counts = Counter(map(repr, values))
    twice = next((one for one in values if counts[repr(one)] > 1), None)
    if twice is not None:
        rule = "{twice}: given twice; expected each value once"
        raise _error(place, rule, twice="/".join(map(str, twice)))
    return Parameter(paths, values=tuple(values))


def _values(place: str, text: str) -> list[Value] | Range:
    """Read one value, generator or range."""
    _check_closed(place, text)
    call = _CALL.fullmatch(text)
    if call is None:
        return [value_of(place, text)]
    name = call["name"]
    if name not in {*_GENERATORS, *DISTRIBUTIONS}:
        raise _error(place, f"unknown function {name}; {EXPECTED}")
    arguments = [argument.strip() for argument in call["arguments"].split(",")]
    count = 2 if name in DISTRIBUTIONS else 3
    quantities = [found for text in arguments if (found := quantity(text)) is not None]
    if len(arguments) != count or len(quantities) != count:
        raise _error(place, f"{{text}}: expected {count} numbers; {EXPECTED}", text=text)
    low, high, *rest = quantities
    steps = rest[0] if rest else None
    _check_ends(place, text, low, high, steps if name == "range" else None)
    positive = name in {"logspace", "loguniform"}
    if positive and min(low.number, high.number) <= 0:
        raise _error(place, "{text}: expected ends greater than 0", text=text)
    for distribution in DISTRIBUTIONS:
        if name == distribution:
            return _range(place, text, Range(low, high, distribution))
    if steps is None:  # Not after the count was checked.
        return [text]
    return _GENERATED[name](place, text, low, high, steps)


def _check_closed(place: str, text: str) -> None:
    if _OPEN.match(text.strip()) and text.count("(") > text.count(")"):
        raise _error(place, "{text}: the closing ) is missing", text=text.strip())


def _check_ends(
    place: str, text: str, low: Quantity, high: Quantity, step: Quantity | None
) -> None:
    kinds = {one.kind for one in (low, high, step) if one is not None}
    if len(kinds) > 1:
        raise _error(
            place,
            "{text}: units of different kinds; expected the same, such as ms and s",
            text=text,
        )


def _range(place: str, text: str, found: Range) -> Range:
    if found.low.number >= found.high.number:
        raise _error(place, "{text}: expected low < high", text=text)
    whole = found.low.number.is_integer() and found.high.number.is_integer()
    if found.distribution == "integers" and not whole:
        raise _error(place, "{text}: expected whole numbers", text=text)
    return found


def _count(place: str, text: str, count: Quantity) -> int:
    if count.kind or not count.number.is_integer() or not 2 <= count.number <= MAX_VALUES:  # noqa: PLR2004
        rule = f"{{text}}: expected a count from 2 to {MAX_VALUES}"
        raise _error(place, rule, text=text)
    return int(count.number)


def _linspace(place: str, text: str, low: Quantity, high: Quantity, count: Quantity) -> list[Value]:
    steps = _count(place, text, count) - 1
    rise = (high.number - low.number) / steps
    return [Quantity(low.number + rise * n, low.kind).written() for n in range(steps + 1)]


def _logspace(place: str, text: str, low: Quantity, high: Quantity, count: Quantity) -> list[Value]:
    steps = _count(place, text, count) - 1
    ratio = high.number / low.number
    return [
        Quantity(low.number * ratio ** (n / steps), low.kind).written() for n in range(steps + 1)
    ]


def _stepped(place: str, text: str, low: Quantity, high: Quantity, step: Quantity) -> list[Value]:
    """List the values from low to high, high included if a step reaches it."""
    if step.number == 0 or (high.number - low.number) / step.number < 0:
        raise _error(place, "{text}: expected a step that leads from low to high", text=text)
    # A step of 0.1 must reach 1 in spite of rounding.
    steps = math.floor((high.number - low.number) / step.number * (1 + 1e-9))
    if steps >= MAX_VALUES:
        rule = f"{{text}}: too many values; expected at most {MAX_VALUES}"
        raise _error(place, rule, text=text)
    return [Quantity(low.number + step.number * n, low.kind).written() for n in range(steps + 1)]


_GENERATED: dict[str, Callable[[str, str, Quantity, Quantity, Quantity], list[Value]]] = {
    "linspace": _linspace,
    "logspace": _logspace,
    "range": _stepped,
}


def split(text: str, separator: str) -> list[str]:
    """Split a text at a separator that is neither in quotes nor in brackets.

    Examples
    --------
    >>> split('a, linspace(1,2,3), {x = [1, 2]}', ",")
    ['a', ' linspace(1,2,3)', ' {x = [1, 2]}']
    """
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if letter == separator and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
