"""Figures in pages: colours as classes, values on hover, the same bytes twice."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from sojourn.presentation.figure import (
    Area,
    Axis,
    Bars,
    Figure,
    HeatMap,
    Intervals,
    Level,
    Line,
    Mark,
    Panel,
    Points,
    Span,
    boxes,
    dots,
    named_axis,
)
from sojourn.presentation.html import inner
from sojourn.presentation.model import Figures
from sojourn.presentation.svg import svg

ARMS = ["pfifo", "<codel>"]
COLOURS = {"pfifo": 0, "<codel>": 1}
MARKS: list[Mark] = [
    Span(ink=True, low=0.0, high=1.0),
    Line(name="pfifo", x=[0, 1, 2, 3], y=[1, 5, 9, 4], band=([0, 4, 8, 3], [2, 6, 10, 5])),
    Line(name="<codel>", x=[0, 3], y=[2, 2], dash=1),
    Points(name="<codel>", x=[1, 2], y=[2, 3], hover=["a & b", "second"]),
    Intervals(name="pfifo", x=[1], low=[4], high=[6]),
    Bars(name="pfifo", x=[2.5], top=[3], width=0.2),
    Area(name="<codel>", x=[0, 1, 1], y=[6, 6, 8]),
    Level(name="pfifo", value=7, text="target 7 ms"),
    Line(name="unknown", x=[0, 3], y=[1, 1]),
    *boxes("pfifo", 0.5, [1, 2, 3, 4, 5], 0.1),
    dots("<codel>", 2.0, [1.0, 2.0]),
]


def figure(*marks: Mark, x: Axis | None = None, y: Axis | None = None) -> Figure:
    panel = Panel(x=x or Axis(label="time [s]"), y=y or Axis(label="delay [ms]"), marks=marks)
    return Figure(
        title="A < B", panels=[panel], colours=COLOURS, head=["t", "v"], rows=[["1", "2"]]
    )


def groups(text: str, arm: int) -> list[str]:
    """Return the marks of an arm."""
    return re.findall(rf'<g class="a{arm}">.*?</g>', text)


def test_a_figure_has_title_drawing_and_data_and_the_same_bytes_twice() -> None:
    text = inner([Figures([figure(*MARKS)], ARMS)])
    assert text == inner([Figures([figure(*MARKS)], ARMS)])
    assert '<figure><figcaption>A &lt; B</figcaption><svg viewBox="0 0 460 300" ' in text
    assert 'role="img" aria-label="A &lt; B"' in text
    assert "<details><summary>Data</summary>" in text
    ET.fromstring(re.search("<svg.*</svg>", text)[0])  # type: ignore[index]  # noqa: S314 - ours


def test_colours_are_classes_and_nothing_needs_a_unique_name() -> None:
    text = svg(figure(*MARKS), ARMS)
    assert not re.search(r'style=|\bid=|url\(|href|fill="#|stroke="#', text)
    classes = {one for names in re.findall('class="(.*?)"', text) for one in names.split()}
    assert {"s0", "d0", "s1", "d1", "a0", "a1", "s-grid", "s-page", "d-text", "d-quiet"} < classes
    # Lines, areas and points of an arm are in the groups that its check box hides.
    for arm, number in ((0, 8), (1, 4)):
        assert len(groups(text, arm)) >= number
        outside = re.sub(rf'<g class="a{arm}">.*?</g>', "", text)
        assert not re.search(rf'class="[sd]{arm}\b', outside)
    assert re.search('class="s1"[^>]*stroke-dasharray', text)
    assert re.search('class="d0"[^>]*fill-opacity="0.15"', text)


def test_tints_are_shares_of_the_colour_of_the_arm() -> None:
    text = svg(figure(Line(name="pfifo", tint=0.6, x=[0, 1], y=[0, 1])), ARMS)
    assert re.search('class="s0"[^>]*stroke-opacity="0.4"', text)
    grey = svg(figure(Bars(tint=0.5, x=[0], top=[1], alpha=1.0)), ARMS)
    assert re.search('class="d-quiet s-quiet" fill-opacity="0.5"', grey)


def test_shapes_have_their_values_on_hover() -> None:
    text = svg(figure(*MARKS), ARMS)
    assert re.findall("<circle[^>]*><title>(.*?)</title></circle>", text) == ["a &amp; b", "second"]
    assert '<g class="a0"><title>pfifo</title>' in text


def test_text_is_text_at_a_place_for_any_font() -> None:
    text = svg(figure(*MARKS), ARMS)
    assert ">delay [ms]</text>" in text
    assert re.search('rotate\\(-90 [^>]*text-anchor="middle">delay', text)
    assert re.search('class="[^"]*halo" text-anchor="end">target 7 ms', text)
    names = named_axis([r"$\alpha$ <b>", "codel"], "$x")
    turned = svg(figure(Bars(name="pfifo", x=[0, 1], top=[1, 2]), x=names), ARMS)
    assert r">$\alpha$ &lt;b&gt;</text>" in turned
    assert ">$x</text>" in turned


def test_a_name_without_room_is_cut_and_complete_on_hover() -> None:
    names = [f"a queue with a long name {number}" for number in range(4)]
    bars = Bars(name="pfifo", x=list(range(4)), top=[1] * 4)
    text = svg(figure(bars, x=named_axis(names)), ARMS)
    for name in names:
        assert f">{name}</text>" not in text
        assert f"<title>{name}</title>" in text


def places(text: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the corners of the lines of the first arm."""
    (path,) = re.findall('<path d="M([^"Z]*)"[^>]*class="s0"', text)
    return corners(path)


def corners(path: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the corners of a path: one place, then distances."""
    numbers = re.findall(r"-?[\d.]+", path)
    return np.array(numbers, dtype=float).reshape(-1, 2).cumsum(axis=0)


def test_lines_end_at_the_axes() -> None:
    line = Line(name="pfifo", x=[0, 1, 2], y=[1, 100, 1])
    shown = places(svg(figure(line, y=Axis(low=0, high=10)), ARMS))
    assert shown[:, 1].min() == pytest.approx(10, abs=0.2)
    polygon = Area(name="pfifo", x=[0, 1, 2], y=[1, 100, 1], width=0)
    text = svg(figure(polygon, y=Axis(low=0, high=10)), ARMS)
    (path,) = re.findall('<path d="M([^"]*)Z?"[^>]*class="d0"', text)
    assert corners(path)[:, 1].min() >= 9.8


def test_a_line_has_no_more_points_than_can_be_seen() -> None:
    x = np.linspace(0, 60, 20_000)
    text = svg(figure(Line(name="pfifo", x=x, y=np.sin(x / 5))), ARMS)
    assert len(text) < 8_000
    assert len(places(text)) < 500


def test_gaps_of_lines_stay_gaps() -> None:
    line = Line(name="pfifo", x=[0, 1, 2, 3, 4], y=[1, 2, np.nan, 2, 1])
    assert len(re.findall('<path d="M[^"]*M[^"]*"[^>]*class="s0"', svg(figure(line), ARMS))) == 1


def test_a_heat_map_has_fixed_colours_and_marks_what_is_missing() -> None:
    cells = HeatMap(
        values=[[1.0, None], [2.0, 100.0]],
        texts=[["1.0", ""], ["2.0", "100"]],
        hover=[["a", "b"], ["c", "d"]],
        low=1.0,
        high=100.0,
        log=True,
    )
    axes = [named_axis(["1", "2"], half=0.5), named_axis(["x", "y"], "rows", half=0.5)]
    text = svg(figure(cells, x=axes[0], y=axes[1]), ARMS)
    assert re.findall("<path[^>]*><title>(.)</title>", text) == ["a", "b", "c", "d"]
    assert re.search('class="missing"><title>b', text)
    assert 'fill="#440154"' in text
    assert re.search('class="on-page"[^>]*>1.0<', text)
    assert re.search('class="on-text"[^>]*>100<', text)


@pytest.mark.parametrize("letters", [20, 60, 90])
def test_labels_stay_inside_the_drawing(letters: int) -> None:
    label = ("word " * (letters // 5)).strip()
    text = svg(figure(MARKS[1], x=Axis(label=label), y=Axis(label=label)), ARMS)
    lines = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"( transform)?[^>]*>(word[^<]*)<', text)
    assert " ".join(line for *_, turned, line in lines if turned) == label
    for x, y, turned, line in lines:
        middle, size = (float(y), 300) if turned else (float(x), 460)
        half = 14 * 0.58 * len(line) / 2
        assert -2 <= middle - half <= middle + half <= size + 2, line
        assert float(x) >= 11
        assert float(y) <= 300
