"""Congestion controls as typed objects.

Each class is one control; each field one of its parameters, named as its module or draft names it.
A field that is ``None`` takes the default of the control (``sojourn ccs NAME`` lists them). The
parameters are checked when the object is built.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from sojourn import _core
from sojourn.document import Brief, needs, word

#: A ratio, such as ``0.7`` or ``"717/1024"``.
Ratio = str | float


@dataclass(frozen=True, slots=True, kw_only=True)
class CongestionControl(Brief):
    """A congestion control and its parameters.

    Base class of the typed controls; use a subclass.
    """

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Have the core check the parameters."""
        _core.parse_cc(self.spec)

    @property
    def spec(self) -> str:
        """The control as a string in the syntax of scenario files.

        Examples
        --------
        >>> from sojourn import Cubic
        >>> Cubic(beta="717/1024", fast_convergence=False).spec
        'cubic beta 717/1024 fast_convergence off'
        """
        words = [self.kind]
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                words += [field.name, _text(field.name, value)]
        return " ".join(words)

    def __str__(self) -> str:
        """Return the control as a string."""
        return self.spec


_Value = bool | str | float | Sequence[Ratio]


def _text(name: str, value: _Value) -> str:
    """Write a value: a flag as on or off, a list with commas."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str | int | float):
        return word(name, value)
    needs(name, value, Sequence, "a string, a number or a list")
    return ",".join(word(name, part) for part in value)
