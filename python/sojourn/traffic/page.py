"""Web pages: the objects that a web application fetches."""

from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.document import Table, check, check_within, convert, needs
from sojourn.traffic.distributions import SIZES, RandomSize


@dataclass(frozen=True, slots=True, kw_only=True)
class PageObject(Table):
    """One object of a web page, or several of the same kind.

    Parameters
    ----------
    name
        Name of the object, for the `after` of others.
    bytes
        Size of the response, or a distribution such as :class:`Lognormal`.
    count
        Number of objects of this kind. Objects that depend on it wait for all of them.
    after
        Names of the objects that must be complete before this one is requested.
    delay
        Processing time of the client before the request, with its unit.
    work
        Processing time of the server before the response, with its unit.
    origin
        Name of the server, if other than that of the page; each has its own connections.

    Examples
    --------
    >>> PageObject(name="picture", bytes="20kb", count=12, after=["document"]).count
    12
    """

    name: str
    bytes: RandomSize
    count: int | None = None
    after: Sequence[str] | None = None
    delay: str | None = None
    work: str | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        """Have the core check the object, apart from the names in `after`."""
        alone = {key: value for key, value in self.document().items() if key != "after"}
        check_within("page", {"objects": [alone]}, "objects[0]")
        convert(self, "bytes", *SIZES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Table):
    """A web page.

    Parameters
    ----------
    objects
        The objects of the page. Those without `after` are requested first.

    Examples
    --------
    >>> Page(objects=[PageObject(name="document", bytes="15kb")]).objects[0].name
    'document'
    """

    objects: Sequence[PageObject]

    def __post_init__(self) -> None:
        """Have the core check the page."""
        needs("objects", self.objects, list | tuple, "a list of PageObjects")
        for index, item in enumerate(self.objects):
            needs(f"objects[{index}]", item, PageObject, "a PageObject")
        check("page", self.document())
