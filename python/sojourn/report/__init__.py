"""Reports: one self-contained HTML file.

A report needs no network and no server, and is complete without scripts. Figures are inline SVG, so
that they follow the reader's dark mode and the width of the screen; style rules alone show and hide
arms.
"""

from typing import TYPE_CHECKING

from sojourn.deferred import Deferred

if TYPE_CHECKING:
    from sojourn.report.page import html, write

__all__ = ["html", "write"]

# Most commands write no report, but use the tables of one.
__getattr__ = Deferred("sojourn.report.page", names=__all__).__getattr__
