"""Conditions on the points of a sweep, such as ``links.down.rate >= links.up.rate``."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from sojourn.arguments import ArgumentError, in_argument
from sojourn.expressions import Expression, ExpressionError, Reference, syntax_tree
from sojourn.scenario.paths import Value, find
from sojourn.scenario.quantities import in_base_units, quantity

# The kinds of quantities that are never comparable with another kind or a plain number.
_KINDS = {"rate": "a rate", "time": "a time", "size": "a size", "": "a plain number"}
# Their usual units.
_UNITS = {"rate": "mbit", "time": "ms", "size": "kb"}
# Prefix of the names that stand for numbers with a unit while kinds are checked.
_UNIT = "_unit_"


def check(condition: Expression, changes: Mapping[str, Value], document: dict[str, Any]) -> None:
    """Check that a condition is true or false, and compares only values of the same kind."""

    def value_of(name: str) -> object:
        if name.startswith(_UNIT):
            return None
        reference = next((one for one in condition.references if one.name == name), None)
        # An arm in brackets is refused by `_found`.
        return _found(condition, reference or Reference(name, ""), changes, document)

    def kind_of(name: str) -> str | None:
        if name.startswith(_UNIT):
            return name.removeprefix(_UNIT)
        return _kind_of(value_of(name))

    # A number with a unit becomes a name with its kind.
    tree = syntax_tree(condition.text, lambda number: f"{_UNIT}{_kind_of(number)}")
    if not _is_truth(tree, value_of):
        rule = "not true or false; expected a comparison, such as links.down.rate >= 10mbit"
        raise ArgumentError("where", condition.text, rule)
    _kind(tree, kind_of, condition.text)


def holds(condition: Expression, changes: Mapping[str, Value], document: dict[str, Any]) -> bool:
    """Whether a point meets a condition; parameters and errors as for :func:`check`."""
    words: list[str] = []

    def lookup(reference: Reference) -> float | str | bool:
        value = _found(condition, reference, changes, document)
        is_number = not isinstance(value, bool) and quantity(value) is not None
        if isinstance(value, str) and not is_number:
            words.append(f'{reference.name}, which is "{value}" at a point')
        return in_base_units(value) if is_number else value

    with in_argument("where", condition.text):
        try:
            return bool(condition.value(lookup))
        except ExpressionError as error:
            if words and isinstance(error.__cause__, TypeError):
                rule = (
                    "compares a number with {word}; expected numbers with units of the same kind "
                    "at all points"
                )
                raise ArgumentError("where", condition.text, rule, word=words[0]) from None
            raise


def _found(
    condition: Expression,
    reference: Reference,
    changes: Mapping[str, Value],
    document: dict[str, Any],
) -> Any:
    """Return the value of a name, from the point or the scenario."""
    value = changes.get(reference.name)
    whole = next((path for path in changes if reference.name.startswith(f"{path}.")), None)
    if value is None and whole is not None:
        rule = "{name} is a part of the parameter {whole}; expected a parameter of its own"
        raise ArgumentError("where", condition.text, rule, name=reference.name, whole=whole)
    if value is None:
        value = find(document, reference.name)
    if value is None or isinstance(value, dict | list) or reference.arm is not None:
        raise ArgumentError(
            "where",
            condition.text,
            "unknown name {name}; expected a parameter or another value of the scenario, such as "
            "links.up.rate",
            name=reference.name,
        )
    return value


def _kind_of(value: Any) -> str | None:
    """Return the kind of a value: a key of `_KINDS`, or None for texts and truth values."""
    found = None if isinstance(value, bool) else quantity(value)
    if found is None:
        return None
    return found.kind if found.kind in _KINDS else ""


def _is_truth(tree: ast.expr, value_of: Callable[[str], object]) -> bool:
    match tree:
        case ast.Compare():
            return True
        case ast.BoolOp(_, parts):
            return all(_is_truth(part, value_of) for part in parts)
        case ast.UnaryOp(ast.Not(), operand):
            return _is_truth(operand, value_of)
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return isinstance(value_of(ast.unparse(tree)), bool)
    return False


def _kind(  # noqa: C901, PLR0911 - one case per kind of node
    tree: ast.expr, kind_of: Callable[[str], str | None], text: str
) -> str | None:
    """Return the kind of a part of a condition; None if it fits any other kind or is not known."""

    def same(*parts: ast.expr) -> str | None:
        kinds = dict.fromkeys(_kind(part, kind_of, text) for part in parts)
        known = [kind for kind in kinds if kind is not None]
        literals = [part for part in parts if isinstance(part, ast.Constant)]
        if known and (texts := [one.value for one in literals if isinstance(one.value, str)]):
            rule = 'compares {kind} with the text "{text}"; expected a number or a name'
            raise ArgumentError("where", text, rule, kind=_KINDS[known[0]], text=texts[0])
        if len(known) > 1:
            # Plain numbers are the second.
            one, other = sorted(known[:2], key=lambda kind: kind == "")
            plain = [part for part in parts if _kind(part, kind_of, text) == ""]
            expected = f"two {one}s or two {other or 'plain number'}s"
            if plain and not any(isinstance(node, ast.Name) for node in ast.walk(plain[0])):
                expected = f"a number with a unit, such as 1{_UNITS[one]}"
            rule = f"compares {_KINDS[one]} with {_KINDS[other]}; expected {expected}"
            raise ArgumentError("where", text, rule)
        return known[0] if known else None

    match tree:
        case ast.Constant(value):
            # Zero is the same in all units.
            return "" if value and not isinstance(value, str) else None
        case ast.UnaryOp(_, operand):
            return _kind(operand, kind_of, text)
        case ast.BoolOp(_, parts):
            for part in parts:
                _kind(part, kind_of, text)
            return None
        case ast.Compare(left, _, others):
            same(left, *others)
            return None
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return same(left, right)
        case ast.BinOp(left, op, right):
            one, other = (_kind(side, kind_of, text) for side in (left, right))
            if other == "" and not isinstance(op, ast.Pow):
                return one
            # Products of quantities have other kinds.
            return other if one == "" and isinstance(op, ast.Mult) else None
    return kind_of(ast.unparse(tree))
