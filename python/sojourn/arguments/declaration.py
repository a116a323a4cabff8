"""Declarations of arguments in plans, and what follows from them."""

import difflib
import functools
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from dataclasses import field as dataclass_field
from numbers import Real
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from sojourn import _core
from sojourn.arguments.errors import (
    NOT_GIVEN,
    PLACEHOLDER,
    ArgumentError,
    FileSpelling,
    Source,
    in_argument,
    spelled,
)
from sojourn.document import described, hint, queue_text
from sojourn.errors import NOT_UTF_8, alternatives, undecoded

P = ParamSpec("P")
PlanT = TypeVar("PlanT", bound="Plan")
R = TypeVar("R")

# Width of the lines of docstrings.
_WIDTH = 96
# What reads each kind of text.
_READERS: dict[str, Callable[[str], object]] = {
    "time": _core.parse_time_s,
    "rate": _core.parse_rate_bits_per_s,
    "size": _core.parse_size_bytes,
    "queue": _core.parse_qdisc,
    "queues": str,
    "control": _core.parse_cc,
}
# What the items of a list and the values of a mapping are in messages, by their type.
_ITEMS = {str: "texts", Path: "paths", float: "numbers", int: "numbers", Sequence: "lists"}
# Similarity from which a key is suggested.
_NEAR = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """The declaration of an argument, in the annotation of a field of a plan.

    `help` is one sentence for all three ways of writing it. `more` are further sentences for the
    docstring of the Python function. Placeholders ``{name}`` in both stand for other arguments.
    """

    help: str
    more: str = ""
    # Range of a number; `above` excludes its end.
    least: float | None = None
    above: float | None = None
    most: float | None = None
    # A value to suggest.
    example: object = None
    # The pattern of a text in the JSON Schema; the code that reads it has better messages.
    pattern: str | None = None
    # What a text is: the core reads it when the plan is created. Queues in other forms become
    # texts; those of the kind "queues" are checked by the code that uses them.
    kind: Literal["time", "rate", "size", "queue", "queues", "control"] | None = None
    # The texts that are accepted, if they are not those of a Literal.
    known: tuple[str, ...] = ()
    # Least number of items of a list.
    least_items: int = 0
    # The type in messages, such as "a list of objectives".
    expected: str | None = None
    # The name on the command line, by default that of the field; it becomes an option if it begins
    # with dashes. Empty: only in Python.
    option: str | None = None
    short: str | None = None
    # Whether the text has options of its own, with which it is one quoted word.
    has_options: bool = False
    metavar: str | None = None
    # Whether tables of scenario files have it.
    in_files: bool = False
    # The heading of the options in the help, and whether only `--help-all` lists it.
    heading: str = "Options"
    rare: bool = False
    # What the default None stands for, such as "one per processor"; if the function has no default,
    # what the command uses.
    unset: str | None = None
    # Suggestions for the completion of the shell, by name in :mod:`sojourn.cli.completion`.
    completion: str | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """An argument of a plan: its declaration and what its field says."""

    name: str
    hint: Any
    argument: Argument
    field: "Field[Any]"

    @property
    def option(self) -> str:
        """Its name on the command line; empty if it has none."""
        if self.argument.option is not None:
            return self.argument.option
        return f"--{self.name.replace('_', '-')}"

    @property
    def members(self) -> tuple[Any, ...]:
        """The types that it accepts."""
        is_union = get_origin(self.hint) in {Union, UnionType}
        found = get_args(self.hint) if is_union else (self.hint,)
        if not self.is_queue:
            return found
        # Others have become texts.
        return tuple(one for one in found if one in {str, NoneType} or get_origin(one) is Sequence)

    @property
    def is_queue(self) -> bool:
        """Whether it is a queue or a list of queues."""
        return self.argument.kind in {"queue", "queues"}

    @property
    def table(self) -> "type[Plan] | None":
        """The plan of the tables that its items or values are, if they are tables."""
        kind = self.items or self.values
        return kind if isinstance(kind, type) and issubclass(kind, Plan) else None

    @property
    def is_list(self) -> bool:
        """Whether it is a list of texts or paths, or one text."""
        return self.items in {str, Path}

    @property
    def is_word(self) -> bool:
        """Whether it, or each of its items, is a word of the command line that is no option."""
        is_text = (self.items or self.members[0]) in {str, Path}
        return is_text and bool(self.option) and not self.option.startswith("-")

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return any(get_origin(member) is Mapping for member in self.members)

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that it accepts, if it accepts only some."""
        found = [get_args(one) for one in self.members if get_origin(one) is Literal]
        return tuple(found[0]) if found else self.argument.known

    @property
    def number(self) -> type[int] | type[float] | None:
        """Its type if it can only be a number."""
        if str in self.members:
            return None
        if float in self.members:
            return float
        return int if int in self.members else None

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.field.default is self.field.default_factory is MISSING

    @property
    def default(self) -> Any:
        """Its default; None if it has none."""
        return None if self.field.default is MISSING else self.field.default

    @property
    def items(self) -> type[Any] | None:
        """The type of its items if it is a list."""
        found = [get_args(one) for one in self.members if get_origin(one) is Sequence]
        if found and self.is_queue:
            return str
        return found[0][0] if found else None

    @property
    def values(self) -> Any:
        """The type of its values if it is a mapping."""
        found = [get_args(one) for one in self.members if get_origin(one) is Mapping]
        return found[0][1] if found else None

    def check(self, value: Any) -> Any:
        """Check the type of a value, its range and its choices; return it as a Python number."""
        if value is None and NoneType in self.members:
            return value
        if self.number is not None:
            value = _plain(value, self.number)
        if self.is_queue:
            value = self._queues(value)
        self._check_type(value)
        self._check_encoding(value)
        self._check_kind(value)
        argument = self.argument
        if self.number is not None:
            low = argument.least is None or value >= argument.least
            above = argument.above is None or value > argument.above
            high = argument.most is None or value <= argument.most
            if not (low and above and high):
                raise ArgumentError(self.name, value, "{range}", range=self._range())
        if self.choices and value not in self.choices:
            near = difflib.get_close_matches(f"{value}", self.choices, n=1)
            instead = f'; did you mean "{near[0]}"?' if near else ""
            known = alternatives(self.choices)
            raise ArgumentError(
                self.name, value, "unknown; expected {known}{instead}", known=known, instead=instead
            )
        return value

    def _queues(self, value: Any) -> Any:
        """Write queues as texts; the check of the type refuses what is none."""
        if isinstance(value, list | tuple):
            return [self._queues(one) for one in value]
        with in_argument(self.name, value if isinstance(value, str) else NOT_GIVEN):
            return queue_text("", value)

    @property
    def limits(self) -> str | None:
        """The range of a number in words; None if it has none."""
        argument = self.argument
        if argument.above is not None:
            return f"more than {argument.above:g} and at most {argument.most:g}"
        if argument.least is None:
            return None
        if argument.most is None:
            return f"at least {argument.least}"
        return f"{argument.least} to {argument.most}"

    @property
    def help(self) -> str:
        """Its help with the range of a number."""
        text = self.argument.help
        return text if self.limits is None else f"{text} Range: {self.limits}."

    def _range(self) -> str:
        example = self.argument.example
        text = f"expected {self.limits}"
        return text if example is None else f"{text}, such as {example}"

    def _check_type(self, value: Any) -> None:
        accepted = [_class(member) for member in self.members]
        is_number = isinstance(value, int) and not isinstance(value, bool) and float in accepted
        # Python counts truth values as whole numbers, and texts as sequences.
        wrong = isinstance(value, bool) and bool not in accepted
        wrong |= isinstance(value, str | bytes) and str not in accepted and not self.choices
        if wrong or not (is_number or any(isinstance(value, one) for one in accepted)):
            self._refuse(value)
        if self.items is not None and not isinstance(value, str):
            self._check_items(value, _class(self.items))
            if len(value) < self.argument.least_items:
                rule = f"none given; expected at least one, such as {self.argument.example}"
                raise ArgumentError(self.name, rule=rule)
        elif self.values not in {None, Any}:
            self._check_items(value.values(), _class(self.values))

    def _check_items(self, items: Iterable[object], of: type[Any]) -> None:
        """Check the types of the items of a list or of the values of a mapping."""
        kind = Real if of in {int, float} else of
        for item in items:
            is_text = isinstance(item, str) and of is Sequence
            if not isinstance(item, kind) or isinstance(item, bool) or is_text:
                raise ArgumentError(
                    self.name,
                    rule="expected {named}, not {found}",
                    named=("queues" if self.is_queue else _ITEMS.get(of))
                    or ("tables" if issubclass(of, Plan) else f"values of type {of.__name__}"),
                    found=described(item) + hint(item),
                )

    def _check_encoding(self, value: Any) -> None:
        """Refuse bytes of the operating system that are not UTF-8."""
        for text in (value,) if isinstance(value, str) else value if self.is_list else ():
            shown = undecoded(f"{text}")
            if shown is not None:
                raise ArgumentError(self.name, shown, NOT_UTF_8)

    def _check_kind(self, value: Any) -> None:
        """Refuse a text that is not of the kind of the argument."""
        if self.argument.kind is None:
            return
        read = _READERS[self.argument.kind]
        for text in (value,) if isinstance(value, str) else value:
            with in_argument(self.name, text):
                read(text)

    def _refuse(self, value: object) -> None:
        raise ArgumentError(
            self.name,
            rule="expected {expected}, not {found}",
            expected=self.expected,
            found=described(value) + hint(value),
        )

    @property
    def expected(self) -> str:
        """What it accepts, in words."""
        if self.argument.expected is not None:
            return self.argument.expected
        if self.items is not None:
            return f"a list of {_ITEMS.get(self.items, 'tables')}"
        if self.number is not None:
            return "a whole number" if self.number is int else "a number"
        names = {
            str: "a text",
            bool: "True or False",
            Callable: "a function",
            Mapping: "a table",
        }
        own = [_class(one) for one in self.members if one is not NoneType]
        return alternatives(
            dict.fromkeys(names.get(one, f"a {getattr(one, '__name__', one)}") for one in own)
        )


def _class(member: Any) -> Any:
    """Return the class that objects of a type have."""
    origin = get_origin(member)
    if origin is Literal:
        return str
    return member if origin is None else origin


def _plain(value: Any, number: type[int] | type[float]) -> Any:
    """Convert a number of another library, such as NumPy, to one of Python."""
    if isinstance(value, bool | int | float):
        # NumPy's float64 is a subclass of float.
        return float(value) if isinstance(value, float) else value
    try:
        return operator.index(value)
    except TypeError:
        return float(value) if number is float and isinstance(value, Real) else value


@dataclass(frozen=True)
class Plan:
    """Base of plans: frozen dataclasses whose fields are arguments, checked when created."""

    def __post_init__(self) -> None:
        """Check each argument; a list that is given as one text becomes a tuple."""
        for one in declared(type(self)):
            value = one.check(getattr(self, one.name))
            if one.is_list and value is not None:
                value = (value,) if isinstance(value, str) else tuple(value)
            object.__setattr__(self, one.name, value)


# The arguments of the plans that were used.
_DECLARED: dict[type[Any], tuple[Declared, ...]] = {}


def declared(plan: type[Any]) -> tuple[Declared, ...]:
    """Return the arguments of a plan: its own, then those of its bases."""
    if plan not in _DECLARED:
        _DECLARED[plan] = tuple(_declared(plan))
    return _DECLARED[plan]


def _declared(plan: type[Any]) -> Iterator[Declared]:
    hints = get_type_hints(plan, include_extras=True)
    own = inspect.get_annotations(plan)
    for field in sorted(fields(plan), key=lambda one: one.name not in own):
        annotated = hints[field.name]
        if get_origin(annotated) is not Annotated:
            message = f"{plan.__name__}.{field.name}: not annotated with an Argument"
            raise TypeError(message)
        kind, argument = get_args(annotated)[:2]
        yield Declared(field.name, kind, argument, field)


def takes(plan: Callable[P, PlanT]) -> Callable[[Callable[[PlanT], R]], Callable[P, R]]:
    """Let a function take the arguments of a plan: its signature and docstring follow from it."""

    def decorate(function: Callable[[PlanT], R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            _check_call(function.__name__, signature, args, kwargs)
            return function(plan(*args, **kwargs))

        arguments = declared(plan)  # type: ignore[arg-type]
        signature = _signature(function, arguments)
        wrapped.__doc__ = _with_parameters(inspect.getdoc(function) or "", arguments)
        wrapped.__signature__ = signature  # type: ignore[attr-defined]
        wrapped.__annotations__ = {
            **{one.name: one.hint for one in arguments},
            "return": get_type_hints(function)["return"],
        }
        return wrapped

    return decorate


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Let a public function without a plan check the types of its arguments: errors name them.

    The annotation of a parameter may have an :class:`Argument`, such as for a range. One that is a
    text names a type of a library that is slow to import: the function that uses it checks it.
    """
    signature = inspect.signature(function)
    several = inspect.Parameter.VAR_POSITIONAL
    arguments = []
    for one in signature.parameters.values():
        is_declared = get_origin(one.annotation) is Annotated
        kind, argument = (
            get_args(one.annotation) if is_declared else (one.annotation, Argument(help=""))
        )
        if one.kind is several:
            kind = GenericAlias(Sequence, (kind,))
        if kind is not inspect.Parameter.empty and not isinstance(kind, str):
            arguments.append(Declared(one.name, kind, argument, dataclass_field()))
    kinds = {
        one.name: one.hint
        for one in arguments
        if signature.parameters[one.name].kind is not several
    }
    plain = [
        one.replace(annotation=kinds.get(one.name, one.annotation))
        for one in signature.parameters.values()
    ]

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        _check_call(function.__name__, signature, args, kwargs)
        given = signature.bind(*args, **kwargs)
        for one in arguments:
            if one.name in given.arguments:
                given.arguments[one.name] = one.check(given.arguments[one.name])
        return function(*given.args, **given.kwargs)

    wrapped.__signature__ = signature.replace(parameters=plain)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {**function.__annotations__, **kinds}
    wrapped.arguments = tuple(arguments)  # type: ignore[attr-defined]
    return wrapped


def _check_call(
    function: str, signature: inspect.Signature, args: Sequence[object], given: Mapping[str, object]
) -> None:
    """Raise TypeError, which names the function, if a call does not fit its signature."""
    for name in given:
        if name not in signature.parameters:
            near = difflib.get_close_matches(name, signature.parameters, n=1, cutoff=_NEAR)
            instead = f"; did you mean '{near[0]}'?" if near else ""
            message = f"{function}() got an unexpected keyword argument '{name}'{instead}"
            raise TypeError(message)
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        message = f"{function}() {error}"
        raise TypeError(message) from None


def _signature(function: Callable[..., Any], arguments: Sequence[Declared]) -> inspect.Signature:
    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY
            if one.field.kw_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if one.is_required else one.default,
            annotation=one.hint,
        )
        for one in arguments
    ]
    parameters.sort(key=lambda one: one.kind)
    returned = get_type_hints(function)["return"]
    return inspect.Signature(parameters, return_annotation=returned)


def _with_parameters(doc: str, arguments: Sequence[Declared]) -> str:
    """Insert the section on parameters before that on returned values."""
    lines = ["Parameters", "----------"]
    for one in sorted(arguments, key=lambda one: bool(one.field.kw_only)):
        is_given = one.is_required or one.argument.unset is None
        default = "" if is_given else f"By default, {one.argument.unset}."
        words = " ".join(filter(None, [one.help, one.argument.more, default]))
        text = PLACEHOLDER.sub(r"`\1`", words)
        lines.append(one.name)
        lines += textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    section = "\n".join(lines)
    head, sep, tail = doc.partition("\nReturns\n-------\n")
    return f"{head}\n{section}\n{sep}{tail}" if sep else f"{doc}\n\n{section}\n"


def read_table(
    plan: type[Plan], name: str, table: object, source: Source | None = None
) -> dict[str, Any]:
    """Read the arguments that a table of a scenario file has, and check each of them.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Example(Plan):
    ...     trials: Annotated[int, Argument(help="Trials.", least=1, most=9, in_files=True)] = 3
    >>> read_table(Example, "tune", {"trials": 0})
    Traceback (most recent call last):
    sojourn.arguments.errors.ArgumentError: tune.trials 0: expected 1 to 9
    """
    if not isinstance(table, Mapping):
        message = f"{name}: expected a table [{name}], not {described(table)}"
        raise _core.ScenarioError(message)
    known = {one.name: one for one in declared(plan) if one.argument.in_files}
    found = {}
    with spelled(FileSpelling(name, source)):
        for key, value in table.items():
            if key not in known:
                near = difflib.get_close_matches(f"{key}", known, n=1, cutoff=_NEAR)
                instead = f"expected one of {', '.join(known)}"
                if near:
                    instead = f'did you mean "{near[0]}"?'
                raise ArgumentError(str(key), rule=f"unknown key; {instead}")
            found[key] = _with_plans(known[key], value, f"{name}.{key}" if name else key, source)
            known[key].check(found[key])
    return found


def _with_plans(one: Declared, value: Any, name: str, source: Source | None) -> Any:
    """Build the plans of the tables in a value; the check of the argument refuses other values."""
    plan = one.table
    if plan is None:
        return value

    def built(item: object, place: str) -> object:
        return build(plan, place, item, source) if isinstance(item, Mapping) else item

    if one.items is not None and isinstance(value, list):
        return [built(item, f"{name}[{at}]") for at, item in enumerate(value)]
    if one.is_mapping and isinstance(value, Mapping):
        return {key: built(item, f"{name}.{key}") for key, item in value.items()}
    return value


def build(
    plan: type[PlanT], name: str, table: Mapping[str, object], source: Source | None = None
) -> PlanT:
    """Build a plan from a table of a file that has all its arguments, and those of its tables."""
    values = read_table(plan, name, table, source)
    with spelled(FileSpelling(name, source)):
        for one in declared(plan):
            if one.is_required and one.name not in values:
                raise ArgumentError(one.name, rule="missing")
        return plan(**values)


def table_schema(plan: type[Plan], description: str, *, is_whole: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of the table of a plan in scenario files.

    A whole table has all required arguments; the others of another table may be options.
    """
    keys = [one for one in declared(plan) if one.argument.in_files]
    found = {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": {one.name: _schema(one) for one in keys},
    }
    required = [one.name for one in keys if one.is_required]
    return {**found, "required": required} if is_whole else found


def _schema(one: Declared) -> dict[str, Any]:
    argument = one.argument
    found: dict[str, Any] = {"description": PLACEHOLDER.sub(r"\1", argument.help)}
    if argument.unset is not None:
        found["x-default"] = PLACEHOLDER.sub(r"\1", argument.unset)
    elif one.default not in {None, ()}:
        found["default"] = one.default
    text: dict[str, Any] = {"type": "string"}
    if argument.pattern is not None:
        text["pattern"] = argument.pattern
    if one.is_mapping:
        values = [{"type": "string"}, {"type": "array", "minItems": 1}]
        return {**found, "type": "object", "additionalProperties": {"anyOf": values}}
    if one.is_list:
        items = {"type": "array", "items": text, "minItems": argument.least_items}
        return {**found, "anyOf": [text, items]}
    if one.number is not None:
        ends = (
            ("minimum", argument.least),
            ("exclusiveMinimum", argument.above),
            ("maximum", argument.most),
        )
        kind = "integer" if one.number is int else "number"
        return {**found, "type": kind, **{key: end for key, end in ends if end is not None}}
    if one.choices:
        text["enum"] = list(one.choices)
    return {**found, **text}
