"""The structure of an HTML page."""

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "link", "img"}


class Outline(HTMLParser):
    """Checks that tags close in order; collects attributes that load something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [f"{tag} {key}={value}" for key, value in attrs if key in {"src", "href"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
