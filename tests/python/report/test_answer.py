"""The sentence says what the intervals show, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from sojourn.report.answer import GOODPUT, LATENCY, OF_GROUP, answer
from sojourn.report.view import Part, ResultView
from sojourn.result.catalogue import of_scope

DOWN, UP, TOTAL = GOODPUT.values()
Numbers = dict[str, tuple[float, ...]]


def compared(base: dict[str, float], n: int = 10, **arms: Numbers) -> ResultView:
    """A comparison with `fifo`: low end, mean and high end of each difference of an arm."""
    estimates: dict[tuple[str, str], dict[str, Any]] = {
        ("fifo", column): {"mean": mean} for column, mean in base.items()
    }
    differences = {}
    for arm, changes in arms.items():
        for column, (low, mean, high) in changes.items():
            estimates[arm, column] = {"mean": base[column] + mean}
            significant = low > 0 or high < 0
            row = {"n": n, "low": low, "mean": mean, "high": high, "significant": significant}
            differences[arm, column] = row
    whole = Part(name=None, metrics=[], estimates=estimates, differences=differences)
    return ResultView(
        title="x", arms=["fifo", *arms], whole=whole, groups=[], classes=[], applications=[]
    )


BASE = {LATENCY: 1061.0, DOWN: 50.0, UP: 10.0}


def test_the_arm_with_the_least_latency_is_named_with_what_it_costs() -> None:
    shown = compared(
        BASE,
        codel={LATENCY: (-1057.0, -1056.0, -1055.0)},
        fq={
            LATENCY: (-1060.5, -1060.28, -1060.0),
            DOWN: (30.0, 40.0, 50.0),
            UP: (-0.4, -0.34, -0.3),
        },
    )
    assert answer(shown) == (
        "With fq, a ping under load takes 0.72 ms more than on an idle line, against 1.1 s with "
        "fifo; downloads gain 80 % goodput, uploads lose 3.4 % goodput."
    )


def test_the_goodput_of_traffic_with_a_path_is_that_of_all_transfers() -> None:
    shown = compared(
        {LATENCY: 480.0, TOTAL: 26.8},
        fixed={LATENCY: (-460, -459, -458), TOTAL: (-9.8, -9.7, -9.6)},
    )
    assert answer(shown) == (
        "With fixed, a ping under load takes 21 ms more than on an idle line, against 480 ms "
        "with fifo; transfers lose 36 % goodput."
    )
    assert answer(compared({LATENCY: 480.0, TOTAL: 26.8})) == (
        "A ping under load takes 480 ms more than on an idle line; transfers carry 27 Mbit/s."
    )


def test_goodput_that_does_not_change_differs_from_one_that_is_not_known() -> None:
    latency = (-1001.0, -1000.0, -999.0)
    shown = compared(BASE, fq={LATENCY: latency, DOWN: (-0.4, -0.1, 0.2), UP: (-1.0, -0.3, 0.4)})
    assert answer(shown) == (
        "With fq, a ping under load takes 61 ms more than on an idle line, against 1.1 s with "
        "fifo; downloads keep their goodput, uploads show no clear change in goodput."
    )


@pytest.mark.parametrize(
    ("interval", "more"),
    [
        ((-3.0, -1.0, 1.0), ""),
        # Clear, but nobody notices it.
        ((-0.06, -0.05, -0.04), ""),
        ((400.0, 500.0, 600.0), "; with fq it takes 1.6 s more"),
    ],
)
def test_no_arm_is_praised_without_an_interval_below_0(
    interval: tuple[float, ...], more: str
) -> None:
    assert answer(compared(BASE, fq={LATENCY: interval})) == (
        "No arm has clearly less latency under load than fifo, with which a ping takes 1.1 s more "
        f"than on an idle line{more}."
    )


def test_an_invalid_result_has_no_conclusion() -> None:
    shown = compared(BASE, fq={LATENCY: (-9.0, -8.0, -7.0)})
    assert answer(shown, "fq: no link.") == "No conclusion: fq: no link."


def test_few_runs_are_not_judged() -> None:
    shown = compared(BASE, n=4, fq={LATENCY: (-9.0, -8.0, -7.0)})
    assert answer(shown) == "Too few runs to judge: 4 runs per arm; expected at least 5."


def test_of_arms_with_the_same_latency_the_one_with_more_goodput_is_named() -> None:
    shown = compared(
        BASE,
        cake={LATENCY: (-1060.4, -1060.37, -1060.3), UP: (-0.6, -0.58, -0.5)},
        fq={LATENCY: (-1060.4, -1060.32, -1060.2), UP: (-0.2, -0.15, -0.1)},
    )
    assert answer(shown) == (
        "With fq, a ping under load takes 0.68 ms more than on an idle line, against 1.1 s with "
        "fifo; uploads lose 1.5 % goodput."
    )


def test_directions_count_by_what_they_carry_in_any_arm() -> None:
    latency = (-1001.0, -1000.0, -999.0)
    starved = {LATENCY: 1061.0, DOWN: 100.0, UP: 0.2}
    shown = compared(starved, fq={LATENCY: latency, UP: (1.6, 1.8, 2.0)})
    assert str(answer(shown)).endswith("; uploads have 10 times the goodput.")
    call = compared({**starved, UP: 0.07}, fq={LATENCY: latency, UP: (0.0, 0.0, 0.0)})
    assert str(answer(call)).endswith("with fifo.")


def test_metrics_that_an_arm_lacks_are_left_out() -> None:
    shown = compared(BASE, fq={LATENCY: (-1001.0, -1000.0, -999.0), UP: (1.0, 2.0, 3.0)})
    nothing = {"n": 0, "mean": None, "low": None, "high": None, "significant": None}
    differences = {**shown.whole.differences, ("other", LATENCY): nothing, ("fq", UP): nothing}
    whole = replace(shown.whole, differences=differences)
    found = answer(replace(shown, arms=[*shown.arms, "other"], whole=whole))
    assert found is not None
    assert found.endswith("61 ms more than on an idle line, against 1.1 s with fifo.")


@pytest.mark.parametrize(
    ("ms", "text"),
    [(-0.1, "no longer"), (0.063, "0.06 ms more"), (9.96, "10 ms more"), (999.6, "1.0 s more")],
)
def test_times_have_two_digits(ms: float, text: str) -> None:
    shown = compared({LATENCY: ms}, fq={LATENCY: (-1.0, 0.0, 1.0)})
    assert f"a ping takes {text} than on an idle line" in str(answer(shown))


def test_one_arm_is_described() -> None:
    assert answer(compared(BASE)) == (
        "A ping under load takes 1.1 s more than on an idle line; downloads carry 50 Mbit/s, "
        "uploads carry 10 Mbit/s."
    )
    assert answer(compared({UP: 10.0})) == "Uploads carry 10 Mbit/s."
    assert answer(compared({})) is None


def test_without_pings_the_main_difference_is_named() -> None:
    up = next(metric for metric in of_scope("run") if metric.named(UP))

    def shown(n: int = 10, **arms: Numbers) -> ResultView:
        plain = compared({UP: 10.0}, **arms)
        rows = {
            key: {"n": n, "low": None, "high": None, **row}
            for key, row in plain.whole.estimates.items()
        }
        metrics = [replace(up, column=UP)]
        return replace(plain, whole=replace(plain.whole, metrics=metrics, estimates=rows))

    text = answer(shown(pie={UP: (0.1, 0.2, 0.3)}, fq={UP: (1.0, 2.0, 3.0)}))
    assert text == f"{up.label}: 12.00 Mbit/s with fq instead of 10.00 Mbit/s with fifo."
    assert answer(shown(fq={UP: (-1.0, 0.5, 2.0)})) == "No arm differs clearly from fifo."
    few = answer(shown(n=4, fq={UP: (1.0, 2.0, 3.0)}))
    assert few == "Too few runs to judge: 4 runs per arm; expected at least 5."


def test_the_main_metric_of_an_application_is_named_if_it_differs_clearly() -> None:
    latency = (-1001.0, -1000.0, -999.0)
    plain = compared(BASE, fq={LATENCY: latency})
    mos = next(metric for metric in of_scope("application") if metric.column == "mos_mean")

    def answered(*, significant: bool, runs: int = 10, base: float = 1.0) -> str | None:
        numbers = {"n": 10, "low": None, "high": None}
        rows = {("fifo", "mos_mean"): {"mean": base, **numbers}}
        rows["fq", "mos_mean"] = {"mean": 4.38, **numbers}
        change = {"mean": 3.38, "significant": significant, "n": runs}
        call = Part(
            name="voip up",
            metrics=[mos],
            estimates=rows,
            differences={("fq", "mos_mean"): change},
        )
        return answer(replace(plain, applications=[call]))

    assert str(answered(significant=True)).endswith("; voip up: MOS 4.38 instead of 1.00.")
    assert "voip" not in str(answered(significant=False))
    assert "voip" not in str(answered(significant=True, runs=4))
    # A difference that the digits do not show.
    assert "voip" not in str(answered(significant=True, base=4.381))


def test_the_loss_of_an_arm_without_less_latency_is_named() -> None:
    same = (-0.05, 0.0, 0.05)
    shown = compared(
        {LATENCY: 1.5, DOWN: 50.0, UP: 10.0},
        pie={LATENCY: (11.0, 12.0, 13.0), UP: (0.3, 0.34, 0.4)},
        cake={LATENCY: same, UP: (-1.95, -1.9, -1.85), DOWN: (-9.6, -9.5, -9.4)},
        fq={LATENCY: same, UP: (-0.3, -0.2, -0.1)},
    )
    assert answer(shown) == (
        "No arm has clearly less latency under load than fifo, with which a ping takes 1.5 ms more "
        "than on an idle line; with pie it takes 14 ms more, uploads gain 3.4 % goodput; with "
        "cake, downloads lose 19 % goodput, uploads lose 19 % goodput."
    )


def group(name: str, base: float, change: tuple[float, float, float], n: int = 10) -> Part:
    """The goodput of a group of flows with `fifo`, and its change with `fq`."""
    low, mean, high = change
    row = {"n": n, "low": low, "mean": mean, "high": high, "significant": low > 0 or high < 0}
    return Part(
        name=name,
        metrics=[],
        estimates={("fifo", OF_GROUP): {"mean": base}, ("fq", OF_GROUP): {"mean": base + mean}},
        differences={("fq", OF_GROUP): row},
    )


def test_a_group_that_loses_much_more_than_its_direction_is_named() -> None:
    plain = compared(BASE, fq={LATENCY: (-1001.0, -1000.0, -999.0), UP: (-0.4, -0.3, -0.2)})
    bulk, backup = group("bulk", 5.0, (1.0, 1.6, 2.0)), group("backup", 5.0, (-2.2, -1.9, -1.5))
    said = "; uploads lose 3 % goodput"
    for groups, more in (
        ([bulk, backup], "; group backup loses 38 % goodput"),
        # A loss of 27.8 % is not 25 more than 3; an unclear change and one of 4 runs are none.
        ([bulk, group("backup", 5.0, (-1.5, -1.39, -1.2))], ""),
        ([group("backup", 5.0, (-3.0, -1.9, 0.5))], ""),
        ([group("backup", 5.0, (-2.2, -1.9, -1.5), n=4)], ""),
    ):
        assert str(answer(replace(plain, groups=groups))).endswith(f"fifo{said}{more}.")


def test_applications_that_lose_are_named_first() -> None:
    plain = compared(BASE, fq={LATENCY: (-1001.0, -1000.0, -999.0)})
    known = {metric.column: metric for metric in of_scope("application")}

    def application(name: str, column: str, base: float, mean: float) -> Part:
        numbers = {"n": 10, "low": None, "high": None}
        return Part(
            name=name,
            metrics=[known[column]],
            estimates={
                ("fifo", column): {"mean": base, **numbers},
                ("fq", column): {"mean": base + mean, **numbers},
            },
            differences={("fq", column): {"mean": mean, "significant": True, "n": 10}},
        )

    applications = [
        application("voip up", "mos_mean", 1.0, 3.38),
        application("voip down", "mos_mean", 1.0, 3.38),
        application("web", "duration_s_mean", 2.0, 1.5),
        application("dash", "bitrate_mbit_per_s_mean", 4.0, -1.0),
    ]
    said = str(answer(replace(plain, applications=applications)))
    assert [clause.split(":")[0] for clause in said.split("; ")[1:]] == ["web", "dash"]
    less = str(answer(replace(plain, applications=applications[:3])))
    assert [clause.split(":")[0] for clause in less.split("; ")[1:]] == ["web", "voip up"]


def test_without_pings_a_direction_that_loses_is_named_beside_the_main_difference() -> None:
    metrics = [
        replace(metric, column=column, role="headline")
        for column in (DOWN, UP)
        for metric in of_scope("run")
        if metric.named(column)
    ][:2]
    plain = compared({DOWN: 50.0, UP: 10.0}, fq={DOWN: (30.0, 40.0, 50.0), UP: (-2.1, -2.0, -1.9)})
    rows = {
        key: {"n": 10, "low": None, "high": None, **row}
        for key, row in plain.whole.estimates.items()
    }
    shown = replace(plain, whole=replace(plain.whole, metrics=metrics, estimates=rows))
    assert str(answer(shown)).endswith(
        "with fq instead of 50.00 Mbit/s with fifo; uploads lose 20 % goodput."
    )
