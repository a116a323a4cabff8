"""Reports: one HTML file that holds everything it shows.

A report needs no network, no script and no server. Figures are SVG drawn here, so that they
follow the reader's dark mode and the width of the screen; arms are switched on and off by
style rules alone.
"""

from sojourn.report.page import html, write

__all__ = ["html", "write"]
