"""Colours that colour-blind readers can distinguish, and dashes for monochrome print."""

# Okabe and Ito, "Color Universal Design" (2008), ordered so that the first few differ most in
# lightness too; yellow, hard to see on white, comes last.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#E69F00",
    "#CC79A7",
    "#56B4E9",
    "#000000",
    "#F0E442",
)
# Lighter variants of colours that are too dark on a dark background.
COLOURS_ON_DARK = (
    "#3D9BD9",
    "#F07F35",
    "#21B98F",
    "#E69F00",
    "#D995BB",
    "#8CCBF2",
    "#E8E8E8",
    "#F0E442",
)
DASHES = ("", "6 3", "2 2", "8 3 2 3", "10 4", "4 2", "1 3", "12 3 3 3")


def slot(index: int) -> int:
    """Return the colour index of arm number `index`; colours repeat with other dash patterns."""
    return index % len(COLOURS)


def colour(index: int) -> str:
    """Return the colour of arm number `index` on a white page."""
    return COLOURS[slot(index)]


def dash(index: int) -> str:
    """Return the dash pattern of arm number `index`: solid for the first eight arms."""
    return DASHES[(index // len(COLOURS)) % len(DASHES)]
