"""Definition of a scenario of the suite: parameters of the RFC, of ns-3's suite, and our own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from sojourn.suites.quotations import Quotation
from sojourn.suites.setups import Case, Form, QueueUnderTest

Signal = Literal["signals", "marks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A direction that the RFC states, and the comparison that checks it.

    Parameters
    ----------
    quotation
        The statement in the RFC.
    expectation
        The comparison that checks it; ``{queue}`` and ``{tail}`` stand for the names of the arms,
        ``{without}`` and ``{marked}`` for the arms without and with ECN.
    signal
        What the queue must do in the runs so that the statement applies: drop or mark as an AQM,
        or mark.
    """

    quotation: Quotation
    expectation: str
    signal: Signal = "signals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A scenario of RFC 7928.

    Parameters
    ----------
    number
        Number of its section, with a further number for each experiment of the section.
    title
        Its title.
    weight
        The requirement in figure 4 of section 13 of the RFC; empty if the figure does not name the
        scenario.
    quotation
        The request of the RFC.
    rfc, suite, ours
        Parameters that the RFC states, those of ns-3's AQM evaluation suite, and our own choices
        where neither states a value.
    build
        Builds its cases.
    directions
        The directions that the RFC states.
    """

    number: str
    title: str
    weight: str = ""
    quotation: Quotation
    rfc: str
    suite: str
    ours: str
    build: Callable[[QueueUnderTest, Form], Sequence[Case]]
    directions: tuple[Direction, ...] = ()
