"""Numbers in words."""

import pytest

from sojourn.result import formatting
from sojourn.result.catalogue import Metric

GOODPUT = Metric(column="goodput_up_mbit_per_s", label="goodput up", unit="Mbit/s", digits=2)


@pytest.mark.parametrize(
    ("mean", "low", "high", "text"),
    [
        (9.1234, 9.09, 9.15, "9.12 ±0.03"),
        (9.1234, 9.11, 9.136, "9.123 ±0.013"),
        (103.4, 98.0, 107.0, "103 ±4"),
        (5.0, 5.0, 5.0, "5.00 ±0.00"),
        (5.0, None, None, "5.00"),
        (None, None, None, "–"),
        (-0.001, None, None, "0.00"),
    ],
)
def test_an_estimate_has_the_digits_it_deserves(
    mean: float | None, low: float | None, high: float | None, text: str
) -> None:
    row = {"mean": mean, "low": low, "high": high}
    assert str(formatting.estimate(row, GOODPUT)) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ((-68.0, -72.0, -64.0, True), "−68* [−72, −64]"),
        ((0.5, -0.1, 1.1, False), "+0.5 [−0.1, +1.1]"),
        ((0.00001, 0.00001, 0.00001, True), "0.00 [0.00, 0.00]"),
        ((0.5, None, None, None), "+0.50"),
        ((None, None, None, None), "–"),
    ],
)
def test_a_change_has_its_sign_its_interval_and_its_star(
    row: tuple[float | None, float | None, float | None, bool | None], text: str
) -> None:
    columns = ("mean", "low", "high", "significant")
    assert str(formatting.change(dict(zip(columns, row, strict=True)), GOODPUT)) == text
