"""Arithmetic and comparisons of users, such as ``ping_ms_p99 < 40``, without ``eval``.

The text is parsed by :mod:`ast`, and only names, numbers, strings, arithmetic, comparisons and
calls of listed functions are accepted. Numbers may have a unit: ``5ms`` is 0.005 (seconds),
``10mbit`` is 10000000 (bit per second), ``64kb`` is 65536 (bytes) and ``5%`` is 0.05. In
expressions of metrics, a number with a unit is converted to the unit of the metrics that it is
compared with, added to or subtracted from.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from string import ascii_letters
from typing import Any

from sojourn import _core
from sojourn.scenario.quantities import in_base_units, quantity

# Longer than any condition that a person writes; it bounds the depth of nested parentheses.
MAX_LETTERS = 1000
# Letters of a longer one that its error shows.
_SHOWN = 40
# A string, or a number with a unit.
_WITH_UNIT = re.compile(
    r"""(?P<text>"[^"]*"|'[^']*')|(?<![\w.])(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"""
    r"(?P<unit>%|(?![eE][+-]?\d)[a-zA-Z]+)"
)
_CONDITION, _METRICS = "links.down.rate >= 2 * 10mbit", "ping_ms_p99 / 2"
# Of the units of metrics: the kind of quantities, and the number of base units in one.
_METRIC_UNITS = {
    "Mbit/s": ("rate", 10**6),
    "ms": ("time", 10**6),
    "s": ("time", 10**9),
    "%": ("%", 1),
    "": ("%", 100),
}
# Of an expression whose metrics have several units.
_SEVERAL = "several units"
# Functions whose value has another unit than their argument.
_WITHOUT_UNIT = {"exp", "log", "log10", "sqrt"}
# Operators of Python, which may follow a number at once.
_WORDS = {"and", "or", "in", "is", "if", "else", "not"}

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class ExpressionError(_core.ScenarioError):
    """An expression is not valid: its text, and the problem with it."""

    def __init__(self, text: str, problem: str) -> None:
        shown = text if len(text) <= MAX_LETTERS else f"{text[:_SHOWN]}…"
        super().__init__(f'"{shown}": {problem}')
        self.value = text
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in an expression."""

    name: str
    arm: str | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression."""

    text: str
    tree: ast.expr
    references: tuple[Reference, ...]

    def value(
        self,
        lookup: Callable[[Reference], Any],
        functions: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> Any:
        """Compute the expression."""
        return self.part(self.tree, lookup, functions)

    def part(
        self,
        tree: ast.expr,
        lookup: Callable[[Reference], Any],
        functions: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> Any:
        """Compute one part of the expression, such as one side of a comparison."""
        try:
            return _value(tree, lookup, functions or {})
        except TypeError as error:
            problem = "combines a text with a number; expected values of the same kind"
            raise ExpressionError(self.text, problem) from error
        except (ArithmeticError, ValueError) as error:
            raise ExpressionError(self.text, f"{error}") from None

    @property
    def comparison(self) -> ast.Compare | None:
        """The comparison, if the expression is one with two sides."""
        tree = self.tree
        return tree if isinstance(tree, ast.Compare) and len(tree.ops) == 1 else None


def parse(
    text: str,
    *,
    functions: frozenset[str] = frozenset(),
    unit_of: Callable[[Reference], str] | None = None,
    example: str | None = None,
) -> Expression:
    """Parse an expression, of metrics if `unit_of` returns the unit of each of them.

    Examples
    --------
    >>> condition = parse("links.down.rate >= 2 * 10mbit")
    >>> [reference.name for reference in condition.references]
    ['links.down.rate']
    >>> condition.value(lambda reference: 15e6)
    False
    >>> parse("loss < 1e-3").value(lambda reference: 0.002)
    False
    >>> parse("ping < 0.04s", unit_of=lambda reference: "ms").value(lambda reference: 39.5)
    True
    """
    if len(text) > MAX_LETTERS:
        problem = f"too long; expected at most {MAX_LETTERS} characters"
        raise ExpressionError(text, problem)
    try:
        if unit_of is None:
            tree = syntax_tree(text, lambda number: repr(in_base_units(number)))
        else:
            # Only the prefix distinguishes these constants from texts.
            tree = syntax_tree(text, lambda number: f"u{number!r}")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        such = example or (_CONDITION if unit_of is None else _METRICS)
        problem = f"invalid expression; expected one such as {such}"
        raise ExpressionError(text, problem) from None
    references: dict[Reference, None] = {}
    try:
        if unit_of is not None and any(getattr(one, "kind", None) for one in ast.walk(tree)):
            _convert(tree, None, text, unit_of)
        _check(tree, text, functions, references)
    except RecursionError:
        problem = "too deeply nested; expected a shorter expression"
        raise ExpressionError(text, problem) from None
    return Expression(text, tree, tuple(references))


def syntax_tree(text: str, replaced: Callable[[str], str]) -> ast.expr:
    """Parse an expression of Python in which numbers may have units.

    Examples
    --------
    >>> ast.unparse(syntax_tree("rtt > 5ms and drops < 3", lambda number: f"unit_{number}"))
    'rtt > unit_5ms and drops < 3'
    """

    def one(found: re.Match[str]) -> str:
        is_number = found["text"] is None and found["unit"] not in _WORDS
        return replaced(found["number"] + found["unit"]) if is_number else found[0]

    with warnings.catch_warnings():
        # Python warns of a word that follows a number at once.
        warnings.simplefilter("ignore")
        return ast.parse(_WITH_UNIT.sub(one, text.strip()), mode="eval").body


def _convert(  # noqa: C901 - one case per kind of node
    tree: ast.AST, unit: str | None, text: str, unit_of: Callable[[Reference], str]
) -> None:
    """Convert numbers with a unit to the unit that this part of an expression must have."""

    def convert(part: ast.AST, expected: str | None) -> None:
        _convert(part, expected, text, unit_of)

    match tree:
        case ast.Constant(value=str(number), kind="u"):
            tree.value = _in_unit(number, unit, text)
        case ast.Compare(left, _, sides):
            own = unit or _common(_unit(side, unit_of) for side in (left, *sides))
            for side in (left, *sides):
                convert(side, own)
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            own = unit or _common(_unit(side, unit_of) for side in (left, right))
            convert(left, own)
            convert(right, own)
        case ast.BinOp(left, ast.Mult(), right):
            for side, other in ((left, right), (right, left)):
                convert(side, _of_factor(side, _unit(other, unit_of), unit))
        case ast.BinOp(left, ast.Div(), right):
            over, under = _unit(left, unit_of), _unit(right, unit_of)
            convert(left, unit if under is None else under)
            convert(right, _of_factor(right, over, None) if over is None else over)
        case ast.Call(ast.Name(name), [argument]):
            convert(argument, None if name in _WITHOUT_UNIT else unit)
        case ast.UnaryOp(_, operand):
            convert(operand, unit)
        case _:
            if _reference(tree) is None:
                for part in ast.iter_child_nodes(tree):
                    convert(part, None)


def _of_factor(factor: ast.AST, other: str | None, unit: str | None) -> str | None:
    """Return the unit that a factor must have; percentages are shares."""
    value = factor.value if isinstance(factor, ast.Constant) else None
    return "" if isinstance(value, str) and value.endswith("%") else unit if other is None else None


def _unit(  # noqa: PLR0911 - one case per kind of node
    tree: ast.AST, unit_of: Callable[[Reference], str]
) -> str | None:
    """Return the unit of a part of an expression of metrics; None if it is a plain number."""
    match tree:
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return _common(_unit(side, unit_of) for side in (left, right))
        case ast.BinOp(left, ast.Mult(), right):
            both = [_unit(side, unit_of) for side in (left, right)]
            return _SEVERAL if None not in both else both[0] or both[1]
        case ast.BinOp(left, ast.Div(), right):
            over, under = (_unit(side, unit_of) for side in (left, right))
            if under is None:
                return over
            return None if over == under else _SEVERAL
        case ast.BinOp(left, ast.Pow(), _):
            return None if _unit(left, unit_of) is None else _SEVERAL
        case ast.Call(ast.Name(name), [argument]):
            return None if name in _WITHOUT_UNIT else _unit(argument, unit_of)
        case ast.UnaryOp(_, operand):
            return _unit(operand, unit_of)
    reference = _reference(tree)
    return None if reference is None else unit_of(reference)


def _common(units: Iterable[str | None]) -> str | None:
    """Return the unit that all parts have; None if they are plain numbers."""
    found = {unit for unit in units if unit is not None}
    return _SEVERAL if len(found) > 1 else next(iter(found), None)


def _in_unit(number: str, unit: str | None, text: str) -> float:
    """Return a number with a unit in the unit of a metric."""
    read = quantity(number)
    kind, factor = _METRIC_UNITS.get(f"{unit}", (None, 1))
    if read is None or read.kind != kind:
        problem = "does not fit a metric " + (f"in {unit}" if unit else "without a unit")
        if unit in {None, _SEVERAL}:
            problem = "is not compared with metrics of one unit, or added to them"
        expected = f"a number alone, such as {number.rstrip(ascii_letters + '%')}"
        raise ExpressionError(text, f"{number} {problem}; expected {expected}")
    return float(f"{read.number / factor:.15g}")


def _check(  # noqa: C901 - one case per kind of node
    tree: ast.expr, text: str, functions: frozenset[str], references: dict[Reference, None]
) -> None:
    """Refuse everything but the listed kinds of nodes; collect the names."""
    parts: list[ast.expr] = []
    accepted = False
    match tree:
        case ast.Constant(value=bool() | None):
            pass
        case ast.Constant(value=int() | float() | str()):
            accepted = True
        case ast.BinOp(left, op, right):
            accepted, parts = type(op) in _BINARY, [left, right]
        case ast.UnaryOp(ast.USub() | ast.UAdd() | ast.Not(), operand):
            accepted, parts = True, [operand]
        case ast.BoolOp(_, values):
            accepted, parts = True, values
        case ast.Compare(left, ops, comparators):
            accepted = all(type(op) in _COMPARED for op in ops)
            parts = [left, *comparators]
        case ast.Call(ast.Name(name), [argument], []):
            if name not in functions:
                known = ", ".join(sorted(functions)) or "none"
                problem = f"unknown function {name}; accepted functions: {known}"
                raise ExpressionError(text, problem)
            accepted, parts = True, [argument]
        case _:
            reference = _reference(tree)
            if reference is not None:
                references[reference] = None
                accepted = True
    if not accepted:
        problem = (
            f'"{ast.unparse(tree)}" is not accepted; expected names, numbers, + - * / **, and '
            "comparisons by < <= > >="
        )
        raise ExpressionError(text, problem)
    for part in parts:
        _check(part, text, functions, references)


def _reference(tree: ast.AST) -> Reference | None:
    """Return the name that this node is, with its dots and brackets."""
    match tree:
        case ast.Name(name):
            return Reference(name)
        case ast.Attribute(owner, key):
            of = _reference(owner)
            return None if of is None or of.arm is not None else Reference(f"{of.name}.{key}")
        case ast.Subscript(owner, ast.Constant(value=str(arm))):
            of = _reference(owner)
            return None if of is None or of.arm is not None else Reference(of.name, arm)
        case ast.Subscript(owner, ast.Constant(value=int(index))) if not isinstance(index, bool):
            of = _reference(owner)
            return None if of is None or of.arm is not None else Reference(f"{of.name}[{index}]")
    return None


def _value(  # noqa: PLR0911 - one case per kind of node
    tree: ast.expr,
    lookup: Callable[[Reference], Any],
    functions: Mapping[str, Callable[[Any], Any]],
) -> Any:
    match tree:
        case ast.Constant(value=value):
            # No integers: powers of them take unbounded time.
            return value if isinstance(value, str) else float(value)  # type: ignore[arg-type]
        case ast.BinOp(left, op, right):
            one, other = (_value(side, lookup, functions) for side in (left, right))
            return _BINARY[type(op)](one, other)
        case ast.UnaryOp(op, operand):
            value = _value(operand, lookup, functions)
            if isinstance(op, ast.Not):
                return not value
            return -value if isinstance(op, ast.USub) else value
        case ast.BoolOp(op, values):
            results = (bool(_value(part, lookup, functions)) for part in values)
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.Compare(left, ops, comparators):
            sides = [_value(side, lookup, functions) for side in (left, *comparators)]
            pairs = zip(ops, sides, sides[1:], strict=False)
            return all(_COMPARED[type(op)](one, other) for op, one, other in pairs)
        case ast.Call(ast.Name(name), [argument]):
            return functions[name](_value(argument, lookup, functions))
    reference = _reference(tree)
    if reference is None:  # Not after `_check`.
        message = f"{ast.unparse(tree)} is not accepted"
        raise TypeError(message)
    return lookup(reference)
