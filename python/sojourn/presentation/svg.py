"""Figures in pages: what matplotlib draws, as SVG that the style sheet of the page colours.

The SVG of matplotlib itself states colours as inline styles, which a style sheet cannot change, and
has identifiers, which must be unique in a page. This one has classes and no identifiers: ``s0`` and
``d0`` are the stroke and the filling of arm 0, ``a0`` is what its check box hides.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib import colors
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Bbox, Transform

from sojourn.presentation import draw
from sojourn.presentation.figure import Figure

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties
    from matplotlib.text import Text

# The classes of colours that are those of the page.
_NEUTRAL = {draw.INK: "text", draw.GREY: "quiet", draw.GRID: "grid", draw.WHITE: "page"}
# A point of a line that is nearer to its neighbours, in pixels, is left out.
_VISIBLE = 0.3
# What most shapes have, said once for the whole figure: no filling, and the width of a grid line.
_INHERITED = {"fill": "none", "stroke-width": "0.6"}
# A circle has this many vertices in matplotlib.
_CIRCLE = 26


def svg(figure: Figure, arms: Sequence[str]) -> str:
    """Write the drawing of a figure."""
    plot = draw.for_page(figure)
    renderer = _Renderer(plot, arms)
    plot.draw(renderer)
    return renderer.svg(figure.title)


class _Renderer(RendererBase):
    """Writes what matplotlib draws."""

    def __init__(self, plot: draw.Plot, arms: Sequence[str]) -> None:
        super().__init__()
        self._width, self._height = plot.bbox.width, plot.bbox.height
        self._scale = plot.dpi / 72
        self._flip = Affine2D().scale(1, -1).translate(0, self._height)
        self._tags = plot.tags
        self._arms = {name: at for at, name in enumerate(arms)}
        self._parts: list[str] = []
        # The mark that is being drawn, and the texts on hover of those of its shapes to come.
        self._tag: draw.Tag | None = None
        self._hover: list[str] = []
        self._is_map = False

    def svg(self, title: str) -> str:
        """Return the drawing."""
        size = f"0 0 {self._width:.0f} {self._height:.0f}"
        name, inherited = escape(title), _attributes(_INHERITED)
        start = f'<svg viewBox="{size}" role="img" aria-label="{name}"{inherited}>'
        return f"{start}{''.join(self._parts)}</svg>"

    def get_canvas_width_height(self) -> tuple[float, float]:
        """Return the size in pixels."""
        return self._width, self._height

    def points_to_pixels(self, points: Any) -> Any:
        """Convert a length."""
        return points * self._scale

    def open_group(self, s: str, gid: str | None = None) -> None:
        """Begin a mark, if it is one."""
        tag = self._tags.get(gid) if gid is not None else None
        if tag is None:
            return
        self._tag, self._is_map = tag, s == "QuadMesh"
        arm = self._arms.get(tag.name)
        self._parts.append("<g>" if arm is None else f'<g class="a{arm}">')
        several = len(tag.hover) > 1
        self._hover = list(tag.hover) if several else []
        if not several and tag.hover[0]:
            self._parts.append(_title(tag.hover[0]))

    def close_group(self, s: str) -> None:
        """End a mark; groups in it have no identifiers."""
        if self._tag is not None and s in _MARKS:
            self._parts.append("</g>")
            self._tag, self._is_map, self._hover = None, False, []

    def draw_path(
        self,
        gc: GraphicsContextBase,
        path: Path,
        transform: Transform,
        rgbFace: Any = None,  # noqa: N803 - of matplotlib
    ) -> None:
        """Write a path."""
        # A cell of a heat map without a value.
        is_missing = self._is_map and rgbFace is None
        looks = ' class="missing"' if is_missing else self._looks(gc, rgbFace)
        if not looks:
            return
        place = transform + self._flip
        moved = path.transformed(place)
        box = gc.get_clip_rectangle()
        shown = None if box is None else box.transformed(self._flip)
        bounds = None if shown is None else (shown.xmin, shown.ymin, shown.xmax, shown.ymax)
        if rgbFace is not None and bounds is not None and _exceeds(moved, bounds):
            moved = moved.clip_to_bbox(Bbox.from_extents(*bounds))
        shape = _outline(moved, bounds if rgbFace is None else None)
        if shape:
            self._write("path", f'd="{shape}"', looks)

    def draw_markers(  # noqa: PLR0917 - of matplotlib
        self,
        gc: GraphicsContextBase,
        marker_path: Path,
        marker_trans: Transform,
        path: Path,
        trans: Transform,
        rgbFace: Any = None,  # noqa: N803 - of matplotlib
    ) -> None:
        """Write circles as such; other markers are paths."""
        if len(_corners(marker_path)) != _CIRCLE:
            super().draw_markers(gc, marker_path, marker_trans, path, trans, rgbFace)
            return
        radius = np.ptp(marker_trans.transform(_corners(marker_path))[:, 0]) / 2
        looks = self._looks(gc, rgbFace)
        for x, y in (trans + self._flip).transform(_corners(path)):
            if np.isfinite(x) and np.isfinite(y):
                place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
                self._write("circle", place, looks)

    def draw_text(  # noqa: PLR0917 - of matplotlib
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: "FontProperties",
        angle: float,
        ismath: Any = False,  # noqa: FBT002 - of matplotlib
        mtext: "Text | None" = None,
    ) -> None:
        """Write a text as such, anchored where it stays in place in another font."""
        # Matplotlib does not tell whose a line of several is; most are labels of axes.
        anchor = "center" if mtext is None else mtext.get_horizontalalignment()
        width, _, _ = self.get_text_width_height_descent(s, prop, ismath)
        share, name = _ANCHORS[anchor]
        turn = np.deg2rad(angle)
        x, y = x + share * width * np.cos(turn), y - share * width * np.sin(turn)
        turned = f' transform="rotate({-angle:g} {_number(x)} {_number(y)})"' if angle else ""
        place = f'x="{_number(x)}" y="{_number(y)}"{turned}'
        looks = f' text-anchor="{name}"' if name else ""
        # Text on a heat map is dark or light.
        hue = colors.to_hex(gc.get_rgb())
        is_mark = self._tag is not None
        kind = f"on-{_NEUTRAL[hue]}" if is_mark and hue in (draw.INK, draw.WHITE) else None
        paint = kind or self._paint("d", gc.get_rgb(), 1.0)[0]
        halo = " halo" if is_mark and kind is None else ""
        text = escape(s.replace(r"\$", "$"), quote=False)
        self._write("text", place, f' class="{paint}{halo}"{looks}', text)

    def _write(self, element: str, place: str, looks: str, text: str = "") -> None:
        if self._hover and not text:
            text = _title(self._hover.pop(0))
        end = f">{text}</{element}>" if text else "/>"
        self._parts.append(f"<{element} {place}{looks}{end}")

    def _looks(self, gc: GraphicsContextBase, face: Any) -> str:
        """Return the attributes of a shape; empty if it is invisible."""
        found: dict[str, str] = {}
        classes = []
        width = self.points_to_pixels(gc.get_linewidth())
        alpha = 1.0 if face is None or len(face) < 4 else face[3]  # noqa: PLR2004 - RGBA
        if gc.get_forced_alpha():
            alpha = gc.get_alpha()
        visible = gc.get_rgb()[3] if len(gc.get_rgb()) > 3 else 1.0  # noqa: PLR2004 - RGBA
        has_face, has_line = face is not None and alpha > 0, width > 0 and visible > 0
        if not has_face and not has_line:
            return ""
        if not has_face:
            found["fill"] = "none"
        for drawn, kind, name, rgb, share in (
            (has_face, "d", "fill", face, alpha),
            (has_line, "s", "stroke", gc.get_rgb(), visible),
        ):
            if drawn:
                paint, opacity = self._paint(kind, rgb, share)
                if paint.startswith("#"):
                    found[name] = paint
                else:
                    classes.append(paint)
                if opacity < 1:
                    found[f"{name}-opacity"] = f"{opacity:.2g}"
        if has_line:
            found["stroke-width"] = _number(width)
            if dashes := gc.get_dashes()[1]:
                found["stroke-dasharray"] = " ".join(map(_number, cast("Any", dashes)))
        named = f' class="{" ".join(classes)}"' if classes else ""
        return named + _attributes(
            {name: value for name, value in found.items() if _INHERITED.get(name) != value}
        )

    def _paint(self, kind: str, rgb: Any, alpha: float) -> tuple[str, float]:
        """Return the class of a colour, or else the colour, and the opacity."""
        hue = colors.to_hex(rgb[:3])
        shades = {} if self._tag is None else self._tag.shades
        if self._tag is not None and hue in shades:
            alpha *= shades[hue]
            hue = next(iter(shades))
            if self._tag.name in self._arms:
                return f"{kind}{self._arms[self._tag.name]}", alpha
        name = _NEUTRAL.get(hue)
        return (hue if name is None else f"{kind}-{name}"), alpha


# Groups of matplotlib that are marks, and how much of a text is before its anchor.
_MARKS = {"line2d", "patch", "text", "PathCollection", "LineCollection", "QuadMesh"} | {
    "FillBetweenPolyCollection",
    "PolyCollection",
}
_ANCHORS = {"left": (0.0, ""), "center": (0.5, "middle"), "right": (1.0, "end")}


def _attributes(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{value}"' for name, value in attributes.items())


def _title(text: str) -> str:
    return f"<title>{escape(text, quote=False)}</title>"


def _corners(path: Path) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    return np.asarray(path.vertices, dtype=np.float64)


def _number(value: float) -> str:
    """Write a length with at most one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _exceeds(path: Path, box: tuple[float, float, float, float]) -> bool:
    shape = path.get_extents()
    return bool(shape.x0 < box[0] or shape.y0 < box[1] or shape.x1 > box[2] or shape.y1 > box[3])


def _outline(path: Path, clip: tuple[float, float, float, float] | None) -> str:
    """Write a path, its curves as lines, without the points that make no visible difference."""
    if clip is not None:
        # Matplotlib adds a pixel on each side.
        clip = (clip[0] + 1, clip[1] + 1, clip[2] - 1, clip[3] - 1)
    path.simplify_threshold = _VISIBLE
    cleaned = path.cleaned(remove_nans=True, clip=clip, simplify=path.should_simplify)
    parts: list[str] = []
    # Lines state the distance from the point before, which is shorter; sums of tenths are exact.
    at = start = (0, 0)
    last = ""
    for (x, y), code in zip(_corners(cleaned), cast("Any", cleaned.codes), strict=True):
        if code == Path.CLOSEPOLY:
            parts.append("Z")
            at, last = start, ""
        elif code == Path.MOVETO:
            at = start = (round(10 * x), round(10 * y))
            last = "M"
            parts.append(f"M{_tenths(at[0])} {_tenths(at[1])}")
        elif code != Path.STOP:
            to = (round(10 * x), round(10 * y))
            if to == at and last:
                continue
            step = f"{_tenths(to[0] - at[0])} {_tenths(to[1] - at[1])}"
            parts.append(f"{' ' if last == 'l' else 'l'}{step}")
            at, last = to, "l"
    return "".join(parts)


def _tenths(value: int) -> str:
    return f"{value / 10:g}"
