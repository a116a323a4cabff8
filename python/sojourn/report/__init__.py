"""Reports: one self-contained HTML file.

A report needs no network and no server, and is complete without scripts. Figures are inline SVG, so
that they follow the reader's dark mode and the width of the screen; style rules alone show and hide
arms.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.report.page import html, write

__all__ = ["html", "write"]


def __getattr__(name: str) -> Any:
    """Import the page on first use: most commands write no report, but use the tables of one."""
    if name in __all__:
        from sojourn.report import page  # noqa: PLC0415 - imported on first use

        return getattr(page, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
