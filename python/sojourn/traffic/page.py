"""Web pages: the objects that a web application fetches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PageObject:
    """One object of a web page, or several alike.

    Parameters
    ----------
    name
        What others that wait for it call it.
    bytes
        Size of the response, or a distribution, as of :class:`Tcp`.
    count
        How many there are; what waits for them waits for all.
    after
        The objects that must be whole before it is asked for.
    delay
        How long the client works on those first, with its unit.
    think
        How long the server works on the response, with its unit.
    origin
        The server that has it, where that is not the page's; each has connections of its own.

    Examples
    --------
    >>> PageObject(name="picture", bytes="20kb", count=12, after=["document"]).count
    12
    """

    name: str
    bytes: str | int | Mapping[str, str | float]
    count: int | None = None
    after: Sequence[str] | None = None
    delay: str | None = None
    think: str | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A web page.

    Parameters
    ----------
    objects
        What it consists of; those that wait for none come first.

    Examples
    --------
    >>> Page(objects=[PageObject(name="document", bytes="15kb")]).objects[0].name
    'document'
    """

    objects: Sequence[PageObject]
