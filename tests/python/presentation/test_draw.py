"""Axes of figures: their ends, ticks and labels."""

import re
from dataclasses import replace

import pytest
from matplotlib.axes import Axes

from sojourn.presentation import draw, style
from sojourn.presentation.figure import (
    Axis,
    Bars,
    Figure,
    HeatMap,
    Line,
    Mark,
    Panel,
    Points,
    named_axis,
)

COLOURS = {"codel": 1, "pie": 3}


def figure(x: Axis, y: Axis, *marks: Mark) -> Figure:
    return Figure(title="", panels=[Panel(x=x, y=y, marks=marks)], colours=COLOURS)


def axes(y: Axis, *values: float) -> Axes:
    line = Line(name="codel", x=list(range(len(values))), y=values)
    (found,) = draw.draw(figure(Axis(), y, line)).axes
    return found


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
def test_a_constant_has_an_axis_around_it(value: float) -> None:
    low, high = axes(Axis(), value, value).get_ylim()
    assert low < value < high or (value == 0.0 and (low, high) == (0.0, 1.0))


def test_axes_end_at_zero_unless_something_is_negative() -> None:
    assert axes(Axis(), 0.1, 10.0).get_ylim()[0] == 0.0
    assert 0.0 < axes(Axis(), 9.0, 10.0).get_ylim()[0] < 9.0
    assert axes(Axis(zero=True), 9.0, 10.0).get_ylim()[0] == 0.0
    assert axes(Axis(zero=True), -9.0, 10.0).get_ylim()[0] < -9.0


def test_a_logarithmic_axis_covers_a_factor_of_two_and_leaves_out_zero() -> None:
    low, high = axes(Axis(log=True), 7.0, 7.0).get_ylim()
    assert high / low == pytest.approx(2.0)
    assert axes(Axis(log=True), 0.0, 1.0, 10.0).get_ylim()[0] == pytest.approx(1 / 1.122, rel=1e-3)
    assert axes(Axis(log=True, least=2.0), 0.0, 1.0, 10.0).get_ylim()[0] == 2.0


def test_a_reversed_axis_puts_the_large_first_and_names_its_scale() -> None:
    found = axes(Axis(label="delay [ms]", log=True, reversed=True), 1.0, 100.0)
    assert found.yaxis_inverted()
    assert found.get_ylabel() == "delay [ms], reversed log scale"
    assert axes(Axis(label="delay [ms]", log=True), 1.0).get_ylabel() == "delay [ms], log scale"


@pytest.mark.parametrize("low", [1.0, 1.1, 2.1, 6.0, 9.9])
def test_every_logarithmic_axis_has_three_ticks(low: float) -> None:
    for factor in (2.0, 4.0, 5.3, 30.0, 300.0, 399.0, 450.0, 5_000.0):
        ticks = style.logarithmic(low, low * factor)
        assert 3 <= len(ticks) <= 9, (low, factor, ticks)
        assert all(low <= tick <= low * factor for tick in ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.0, 10.0, [0, 2, 4, 6, 8, 10]), (9.21, 9.34, [9.225, 9.25, 9.275, 9.3, 9.325])],
)
def test_linear_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert style.linear(low, high) == pytest.approx(ticks)


def test_names_that_do_not_fit_side_by_side_are_turned() -> None:
    for names, turned in ((["codel", "pie"], 0), (["codel target 5ms interval 100ms"] * 4, 45)):
        bars = Bars(name="codel", x=list(range(len(names))), top=[1.0] * len(names))
        (found,) = draw.draw(figure(named_axis(names), Axis(), bars)).axes
        assert {label.get_rotation() for label in found.get_xticklabels()} == {turned}


def test_ticks_at_values_that_are_too_near_are_left_out() -> None:
    for places, shown in (((1.0, 50.0, 100.0), True), ((1.0, 2.0, 100.0), False)):
        x = Axis("rate", names=[f"{place:g}.00" for place in places], places=places)
        line = Line("codel", places, [1.0, 2.0, 3.0])
        (found,) = draw.draw(figure(x, Axis(), line)).axes
        assert ([*found.get_xticks()] == [*places]) == shown


def test_dollar_signs_are_no_formulas() -> None:
    names = named_axis([r"$\nothing$"], "$x")
    plot = draw.draw(figure(names, Axis(label="$y$"), Bars(name="codel", x=[0], top=[1])))
    plot.draw_without_rendering()
    assert plot.axes[0].get_xlabel() == r"\$x"


def test_a_legend_has_the_marks_that_it_names() -> None:
    lines = [Line(name=name, x=[0, 1], y=[0, 1]) for name in COLOURS]
    samples = [Line(name="codel"), Points(name="pie", label="other", marker="D")]
    value = replace(figure(Axis(), Axis(), *lines), legend=samples, legend_title="t", note="n")
    plot = draw.draw(value, origin="o")
    (legend,) = plot.legends
    assert [text.get_text() for text in legend.get_texts()] == ["codel", "other"]
    colours = [handle.get_color() for handle in legend.legend_handles]  # type: ignore[union-attr]
    assert colours == [draw.tinted(style.COLOURS[number], 0.0) for number in COLOURS.values()]
    assert legend.get_title().get_text() == "t"
    assert [text.get_text() for text in plot.texts] == ["n o"]


def test_panels_of_one_scale_have_the_same_ends() -> None:
    panels = [
        Panel(x=Axis(), y=Axis(), marks=[Line(name="pie", x=[0, 1], y=[0, top])], scale="s")
        for top in (1, 5)
    ]
    one, other = draw.draw(Figure(title="", panels=panels, colours=COLOURS)).axes
    assert one.get_ylim() == other.get_ylim() == (0.0, 5.25)


def test_a_heat_map_has_numbers_where_they_fit_and_gaps_without_values() -> None:
    def plot(columns: int) -> list[str]:
        values = [[1.0] * (columns - 1) + [None], [100.0] * columns]
        texts = [["1.00" if one else "" for one in row] for row in values]
        cells = HeatMap(values=values, texts=texts, low=1.0, high=100.0, log=True, scale="ms")
        names = [named_axis([""] * number, half=0.5) for number in (columns, 2)]
        shown, bar = draw.draw(figure(*names, cells)).axes
        assert bar.get_ylabel() == "ms"
        return [text.get_text() for text in shown.texts]

    assert plot(3) == ["1.00"] * 5
    assert plot(60) == []


@pytest.mark.parametrize(("low", "high"), [(0.0, 8.0), (47.7, 47.9), (9.21, 9.34), (0.0, 5e6)])
def test_ticks_of_a_page_do_not_reach_the_label_of_their_axis(low: float, high: float) -> None:
    from sojourn.presentation.svg import svg  # noqa: PLC0415 - as pages do

    line = Line(name="codel", x=[0, 1], y=[low, high])
    drawn = svg(figure(Axis(), Axis(label="delay", low=low, high=high), line), ["codel"])
    ticks = re.findall(r'<text x="([\d.]+)" y="[\d.]+"[^>]*anchor="end">([^<]+)<', drawn)
    (label,) = re.findall(r'<text x="([\d.]+)"[^>]*>delay<', drawn)
    assert len(ticks) > 3
    for right, text in ticks:
        # Text of 14 px on a phone, in which digits are 0.64 em wide and a point half of that.
        left = float(right) - 14 * (0.64 * len(text) - 0.32 * text.count("."))
        assert left >= float(label) + 2, text
        assert float(label) >= 11


def test_the_title_of_a_single_panel_is_inside_the_drawing_of_a_page() -> None:
    from sojourn.presentation.svg import svg  # noqa: PLC0415 - as pages do

    line = Line(name="codel", x=[0, 1], y=[1, 2])
    shown = figure(Axis(), Axis(), line)
    title = "5 Mbit/s, RTT 310 ms, " + "with a page of many objects " * 3
    (panel,) = shown.panels
    shown = replace(shown, panels=[replace(panel, title=title)])
    lines = re.findall(r'<text x="([\d.]+)" y="(-?[\d.]+)"[^>]*>([^<]*)<', svg(shown, ["codel"]))
    own = [(float(x), float(y), text) for x, y, text in lines if text and text in title]
    assert " ".join(text for _, _, text in own) == title.strip()
    assert len(own) > 1
    for x, y, text in own:
        assert y > 14 * 0.8
        # Lines of several are anchored in their middle.
        assert x + 14 * 0.55 * len(text) / 2 < draw.PAGE_WIDTH
