"""Axes of charts."""

import pytest

from sojourn.report.chart import Axis, linear_axis, log_axis


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


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
def test_a_constant_has_an_axis(value: float) -> None:
    axis = linear_axis("", [value, value], from_zero=False)
    assert axis.low < value < axis.high


def test_one_delay_has_a_logarithmic_axis() -> None:
    axis = log_axis("", [7.0])
    assert axis.high / axis.low == pytest.approx(2.0)
