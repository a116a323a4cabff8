"""The shape of a scenario of the suite: what the RFC states, what ns-3's suite uses, our choice."""

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
        Where the RFC states it.
    expectation
        The comparison; ``{queue}`` and ``{tail}`` stand for the names of the arms, ``{without}``
        and ``{marked}`` for the arms without and with ECN.
    signal
        What the queue must do in the runs for the statement to apply to it: drop or mark as an
        AQM, or mark.
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
        Its number: that of the section, and a further one for each experiment of the section.
    title
        Its title.
    weight
        The requirement of figure 4 in section 13 of the RFC; empty if the figure does not name it.
    quotation
        What the RFC asks for.
    rfc, suite, ours
        Parameters that the RFC states, those of ns-3's AQM evaluation suite, and those that neither
        states and we chose.
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
