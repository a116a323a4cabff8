"""Definition of a scenario of the suite: parameters of the RFC, of ns-3's suite, and our own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from sojourn.rfc7928_suite.rfc_text import Quotation
from sojourn.rfc7928_suite.topology import Case, Form, QueueUnderTest

Signal = Literal["signals", "marks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A direction that the RFC states, and the comparison that checks it."""

    quotation: Quotation
    expectation: str
    signal: Signal = "signals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A scenario of RFC 7928."""

    number: str
    title: str
    weight: str = ""
    quotation: Quotation
    rfc: str
    suite: str
    ours: str
    build: Callable[[QueueUnderTest, Form], Sequence[Case]]
    directions: tuple[Direction, ...] = ()
