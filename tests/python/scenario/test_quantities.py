"""Quantities with their units: numbers that get one, and what is refused."""

import math

import pytest

import sojourn as sj


def test_a_number_gets_its_unit_as_a_scenario_reads_it() -> None:
    assert (sj.s(2.5), sj.ms(40), sj.us(7)) == ("2.5s", "40ms", "7us")
    assert (sj.kbit(64), sj.mbit(0.5), sj.gbit(1)) == ("64kbit", "0.5mbit", "1gbit")
    link = sj.Link(rate=sj.mbit(10), delay=sj.ms(0.5), qdisc="pfifo")
    assert (link.rate, link.delay) == ("10mbit", "0.5ms")


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_number_that_is_negative_or_not_finite_is_refused(value: float) -> None:
    with pytest.raises(sj.ScenarioError, match="expected a finite number >= 0"):
        sj.ms(value)
