"""Many comparisons: intervals and verdicts account for their number."""

import numpy as np
import polars as pl
import pytest

from sojourn.cli.expecting import by_chance
from sojourn.expectations.expectation import expectation
from sojourn.expectations.judging import Judgement
from sojourn.result import student
from sojourn.sweeps import comparisons, estimates
from sojourn.sweeps.execution import LEAST_RUNS, until

RUNS = 6


def experiments(count: int, points: int) -> np.ndarray:
    """Runs of points without any difference, with a common part per replication."""
    random = np.random.default_rng(7)
    return random.normal(size=(count, points, RUNS)) + random.normal(size=(count, 1, RUNS))


def test_quantiles_of_any_level_are_those_of_scipy() -> None:
    scipy = pytest.importorskip("scipy.stats")
    for degrees in (1, 2, 5, 40):
        for level in (0.5, 0.95, 0.999, 1 - 1e-7):
            expected = scipy.t.ppf((1 + level) / 2, degrees)
            assert student.quantile(degrees, level) == pytest.approx(expected, rel=1e-6)


def test_all_intervals_of_a_ranking_are_correct_with_95_percent() -> None:
    trials, points = 300, 12
    correct = own = 0
    for rows in experiments(trials, points):
        # The first point is not chosen by the data, as the intervals assume.
        found = [comparisons.against_first(rows, place) for place in range(1, points)]
        correct += not any(one.significant for one in found)
        pairs = [(rows[place] - rows[0]).tolist() for place in range(1, points)]
        own += all(student.p_value(values) > comparisons.ERRORS for values in pairs)
    assert correct / trials >= 0.94
    assert own / trials < 0.85, "intervals that ignore the number of points are not"


@pytest.mark.parametrize("points", [5, 50])
def test_intervals_hold_although_the_first_point_is_chosen_by_the_data(points: int) -> None:
    trials, wrong = 200, 0
    for rows in experiments(trials, points):
        # As the command ranks points: the best mean first.
        ranked = rows[np.argsort(rows.mean(axis=1))]
        wrong += any(
            comparisons.against_first(ranked, place).significant for place in range(1, points)
        )
    assert wrong / trials <= comparisons.ERRORS


def test_the_best_point_is_among_those_that_may_be_best() -> None:
    trials, points = 200, 10
    kept = narrowed = 0
    for rows in experiments(trials, points):
        # The first is the best, the last four are much worse.
        shifted = rows + np.array([0.0, *[0.3] * 5, *[30.0] * 4])[:, None]
        may = [comparisons.may_be_best(shifted, place, largest=False) for place in range(points)]
        kept += bool(may[0])
        narrowed += not any(may[6:])
    assert kept / trials >= 0.95
    assert narrowed / trials > 0.9


def test_selected_differences_have_intervals_without_0_and_few_are_wrong() -> None:
    # Sixty differences without an effect and twenty with one, in each of 60 tables.
    random = np.random.default_rng(3)
    wrong = []
    for _ in range(60):
        effects = np.array([0.0] * 60 + [4.0] * 20)
        samples = random.normal(size=(80, RUNS)) + effects[:, None]
        found = comparisons.selected(samples.tolist())
        for one in found:
            assert one.low is not None
            assert one.high is not None
            assert one.significant == (one.low > 0 or one.high < 0)
        chosen = [n for n, one in enumerate(found) if one.significant]
        assert len(chosen) >= 15
        wrong.append(sum(n < 60 for n in chosen) / len(chosen))
    assert np.mean(wrong) < 0.06
    assert np.mean(wrong) > 0.01, "with one false positive, not none"


def test_single_runs_and_missing_ones_decide_nothing() -> None:
    one, none, clear = comparisons.selected([[1.0], [], [1.0, 1.0]])
    assert (one.mean, one.significant) == (1.0, None)
    assert none.mean is None
    assert clear.significant
    rows = np.array([[1.0, np.nan], [2.0, np.nan]])
    assert comparisons.may_be_best(rows, 1, largest=False) is None
    assert comparisons.against_first(rows, 1).low is None


def test_a_ranking_says_which_points_may_be_best() -> None:
    values = {"good": [1.0, 1.1, 0.9, 1.0], "equal": [1.1, 1.0, 1.0, 1.1], "bad": [9.0, 9.1, 8, 9]}
    runs = pl.DataFrame(
        [
            {"point": n, "queue": queue, "arm": "default", "replication": k, "delay_ms": float(v)}
            for n, (queue, of_queue) in enumerate(values.items())
            for k, v in enumerate(of_queue)
        ]
    )
    points = estimates.by_point(runs, ["queue"], ["delay_ms"])
    table = estimates.ranked(points, runs, "delay_ms", largest=False, count=3)
    assert table["queue"].to_list() == ["good", "equal", "bad"]
    assert table["may_be_best"].to_list() == [True, True, False]
    assert table["difference_low"][2] > 0
    two = (frame.filter(pl.col("point") != 1) for frame in (points, runs))
    narrow = estimates.ranked(*two, "delay_ms", largest=False, count=2)
    width = table["difference_high"] - table["difference_low"]
    assert width[2] > (narrow["difference_high"] - narrow["difference_low"])[1]


def test_intervals_after_stopping_early_are_nearly_those_of_95_percent() -> None:
    # With this spread, the sweep stops early most often by chance (docs/howto/sweeps.md).
    random = np.random.default_rng(2)
    precision, trials, correct = until("delay ±5 %"), 400, 0
    for _ in range(trials):
        values = (1.0 + 0.08 * random.normal(size=10 * LEAST_RUNS)).tolist()
        count = LEAST_RUNS
        while count < len(values) and not precision.met(values[:count]):
            count = min(count + LEAST_RUNS // 2, len(values))
        _, low, high = student.mean_and_interval(values[:count])
        correct += low <= 1.0 <= high
    assert correct / trials >= 0.91


def test_many_verdicts_come_with_the_number_that_may_be_wrong() -> None:
    one = Judgement(expectation=expectation("drops < 1"), verdict="pass", arm="default")
    assert by_chance([one] * 39) == ""
    assert by_chance([one] * 80) == (
        "of 80 verdicts by 95% intervals, up to 2 are expected to be wrong by chance"
    )
