"""Axes of charts."""

import re
from dataclasses import replace

import pytest

from sojourn.report.chart import Axis, Chart, linear_axis, log_axis


def test_a_descending_axis_puts_the_large_first() -> None:
    axis = Axis(label="delay", low=1.0, high=100.0, logarithmic=True, descending=True)
    assert (axis.place(100.0), axis.place(10.0), axis.place(1.0)) == pytest.approx((0.0, 0.5, 1.0))


def test_values_below_a_logarithmic_axis_stand_at_its_end() -> None:
    axis = Axis(label="delay", low=1.0, high=100.0, logarithmic=True)
    assert axis.place(0.0) == 0.0


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.0, 10.0, [0, 2, 4, 6, 8, 10]), (9.21, 9.34, [9.225, 9.25, 9.275, 9.3, 9.325])],
)
def test_linear_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert Axis(label="", low=low, high=high).ticks() == pytest.approx(ticks)


def test_logarithmic_ticks_are_decades_or_finer() -> None:
    narrow = Axis(label="", low=3.0, high=60.0, logarithmic=True).ticks()
    assert narrow == pytest.approx([5.0, 10.0, 20.0, 50.0])
    wide = Axis(label="", low=0.05, high=500.0, logarithmic=True).ticks()
    assert wide == pytest.approx([0.1, 1.0, 10.0, 100.0])


@pytest.mark.parametrize("low", [1.0, 1.1, 2.1, 6.0, 9.9])
def test_every_logarithmic_axis_has_three_ticks(low: float) -> None:
    for factor in (2.0, 4.0, 5.3, 30.0, 300.0, 399.0, 450.0, 5_000.0):
        ticks = Axis(label="", low=low, high=low * factor, logarithmic=True).ticks()
        assert 3 <= len(ticks) <= 9, (low, factor, ticks)
        assert all(low <= tick <= low * factor for tick in ticks)


def test_logarithmic_axes_name_their_scale() -> None:
    assert log_axis("delay [ms]", [1.0, 9.0]).label == "delay [ms], log scale"
    descending = log_axis("delay [ms]", [1.0, 9.0], descending=True)
    assert descending.label == "delay [ms], reversed log scale"


def test_a_long_label_is_squeezed_into_the_length_of_its_axis() -> None:
    ends = linear_axis("", [0.0, 1.0], from_zero=True)
    for letters, fitted in ((20, 0), (200, 2)):
        label = "x" * letters
        axes = [replace(axis, label=label) for axis in (ends, ends)]
        lengths = re.findall(r'textLength="(\d+)"', Chart("", *axes).svg())
        assert len(lengths) == fitted
        assert all(int(length) < 400 for length in lengths)


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
def test_a_constant_has_an_axis(value: float) -> None:
    axis = linear_axis("", [value, value], from_zero=False)
    assert axis.low < value < axis.high


def test_one_delay_has_a_logarithmic_axis() -> None:
    axis = log_axis("", [7.0])
    assert axis.high / axis.low == pytest.approx(2.0)


@pytest.mark.parametrize(("low", "high"), [(0.0, 8.0), (47.7, 47.9), (9.21, 9.34), (0.0, 5e6)])
def test_ticks_do_not_reach_the_title_of_their_axis(low: float, high: float) -> None:
    svg = Chart(
        "", linear_axis("x", [0.0, 1.0], from_zero=True), Axis(label="y", low=low, high=high)
    )
    ticks = re.findall(r'<text x="(\d+)" y="[\d.]+" text-anchor="end">([^<]+)<', svg.svg())
    assert len(ticks) > 3
    for right, text in ticks:
        # Text of 14 px on a phone, in which digits are 0.64 em wide and a point half of that.
        left = int(right) - 14 * (0.64 * len(text) - 0.32 * text.count("."))
        assert left >= 19.9, text
    assert f"M{int(ticks[0][0]) + 6} " in svg.svg()
