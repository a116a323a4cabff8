"""Claims: what claims.csv may contain, and every rule by which claims are judged."""

from pathlib import Path

import pytest

import sojourn as sj
from sojourn.studies import claims as module
from sojourn.studies import verdicts
from sojourn.studies.claims import Subject
from sojourn.studies.verdicts import (
    DEFINITIONAL,
    IN_DIRECTION,
    NOT_CHECKABLE,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    UNDECIDED,
    Estimate,
)
from support.stored import COLUMNS
from support.studied import claims, estimate, subject


def test_a_claim_is_read_with_its_conditions(tmp_path: Path) -> None:
    text = (
        "# a comment\n"
        'A,"Fig. 1, left",figure,"fast, and ""fair""",s,pie,web,m,equals,codel,2,5%,reading\n'
        "A,,,,s,pie,,m,direction:at_least,t/codel@web:n,0.5,,no number in the text\n"
        "B,text,text,x,,,,,not_checkable,,,,no access\n"
    )
    first, second = claims(tmp_path, text)
    assert (first.name, first.source, first.evidence) == ("A", "Fig. 1, left", "figure")
    assert first.statement == 'fast, and "fair"'
    full, weaker = first.lines
    assert full.subject == Subject("s", "pie", "web", "m")
    # The group of a reference is that of the line unless it is given.
    assert full.reference == Subject("s", "codel", "web", "m")
    assert (full.value, full.tolerance, full.weaker) == (2.0, 0.1, False)
    assert weaker.reference == Subject("t", "codel", "web", "n")
    assert (weaker.relation, weaker.weaker, weaker.value) == ("at_least", True, 0.5)
    assert weaker.tolerance is None
    assert first.uncounted is None
    assert first.subjects == [one for line in first.lines for one in (line.subject, line.reference)]
    assert (second.uncounted, second.subjects) == (NOT_CHECKABLE, [])


def test_the_value_of_a_ratio_is_1_unless_it_is_given(tmp_path: Path) -> None:
    (claim,) = claims(tmp_path, "A,x,text,x,s,pie,,m,equals,codel,,0.1,reading\n")
    assert (claim.lines[0].value, claim.lines[0].tolerance) == (1.0, 0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (",x,text,x,s,a,,m,above,b,,,", "a line has no id; expected the name of its claim"),
        (
            "A,x,rumour,x,s,a,,m,above,b,,,",
            'claim A: unknown evidence "rumour"; expected printed, figure, data, text, derived',
        ),
        ("A,,text,x,s,a,,m,above,b,,,", "claim A: its first line has no source"),
        ("A,x,text,,s,a,,m,above,b,,,", "claim A: its first line has no statement"),
        (
            "A,x,text,x,s,a,,m,beneath,b,,,",
            'claim A: unknown relation "beneath"; expected one of ' + ", ".join(module.RELATIONS),
        ),
        ("A,x,text,x,,,,,definitional,,,,", "claim A: definitional needs a reason"),
        ("A,x,text,x,,a,,m,above,b,,,", "claim A: no scenario; expected its name"),
        ("A,x,text,x,s,,,m,above,b,,,", "claim A: no arm; expected its name"),
        ("A,x,text,x,s,a,,,above,b,,,", "claim A: no metric; expected its name"),
        ("A,x,text,x,s,a,,m,above,,,,", "claim A: above needs a reference"),
        ("A,x,text,x,s,a,,m,differs,,,,", "claim A: differs needs a reference"),
        ("A,x,text,x,s,a,,m,at_most,,,,", "claim A: at_most needs a value or a reference"),
        (
            "A,x,text,x,s,a,,m,equals,,1,3%%,",
            'claim A: invalid tolerance "3%%"; expected a number or a percentage such as 3%',
        ),
        (
            "A,x,text,x,s,a,,m,equals,,1,,",
            'claim A: invalid tolerance ""; expected a number or a percentage such as 3%',
        ),
        (
            "A,x,text,x,s,a,,m,at_most,,1,3%,",
            "claim A: tolerance with at_most; expected it only with equals",
        ),
        (
            "A,x,text,x,s,a,,m,at_most,,1,,,3",
            "claim A: 3 published runs with at_most; expected 1 or more with equals",
        ),
        (
            "A,x,text,x,s,a,,m,above,b,,,\nB,x,text,x,s,a,,m,above,b,,,\nA,x,text,x,s,a,,m,above,b,,,",
            "claim A: its lines are not consecutive",
        ),
    ],
)
def test_a_line_that_is_not_valid_is_reported(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(sj.ResultError) as raised:
        claims(tmp_path, f"{text}\n")
    assert str(raised.value) == f"{tmp_path / 'claims.csv'}: {expected}"


def test_a_file_with_other_columns_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "claims.csv"
    with pytest.raises(sj.ResultError, match=r"claims\.csv: cannot read claims: .*No such file"):
        module.load(file)
    file.write_text("id,value\nA,x\n", encoding="utf-8")
    with pytest.raises(sj.ResultError, match=f"expected the columns {COLUMNS.split(',')[0]}, "):
        module.load(file)


def verdict(tmp_path: Path, text: str, **measured: Estimate) -> str:
    """Judge the first of the claims in `text`; arms that are not given were not measured."""
    found = {subject(arm): one for arm, one in measured.items()}
    return verdicts.judged(claims(tmp_path, text), found)[0].verdict


def lines(*conditions: str) -> str:
    """Write a claim; each condition is its arm, relation, reference, value and tolerance."""
    heads = ["A,x,text,x", *["A,,,"] * (len(conditions) - 1)]
    return "".join(
        f"{head},s,{arm},,m,{rest}\n"
        for head, condition in zip(heads, conditions, strict=True)
        for arm, _, rest in [condition.partition(",")]
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        # a is 3.0 ±0.1, b 6.0 ±0.2, wide 3.0 ±1.2; paired differences of a and b are narrow.
        ("a,equals,,3.0,0.05,", REPRODUCED),
        ("a,equals,,3.2,0.15,", REPRODUCED),
        # 6 % off, and 25 % off: no other arm has a published value, so there is no order to keep.
        ("a,equals,,3.2,0.05,", IN_DIRECTION),
        ("a,equals,,3.75,0.05,", NOT_REPRODUCED),
        # The interval contains the limit of 10 %.
        ("a,equals,,3.3,0.05,", UNDECIDED),
        # It meets the value, but is 40 % wide on each side.
        ("wide,equals,,3.0,0.05,", UNDECIDED),
        # The same within 25 %; but far off it is decided, however wide.
        ("within,equals,,3.0,0.05,", UNDECIDED),
        ("far,equals,,3.0,0.05,", NOT_REPRODUCED),
        ("far,equals,,3.0,0.05,,1", NOT_REPRODUCED),
        ("far,equals,a,1.0,0.05,", NOT_REPRODUCED),
        # The reading error is as wide.
        ("wide,equals,,3.0,1.5,", REPRODUCED),
        # Fewer runs than the work; one run of the work.
        ("a,equals,,3.0,0.05,,5", UNDECIDED),
        ("a,equals,,3.0,0.05,,3", REPRODUCED),
        ("a,equals,,3.18,0.02,,1", REPRODUCED),
        ("a,equals,,3.18,0.02,,", IN_DIRECTION),
        # One more run falls within ±0.199 or, if late, within the same of a larger number.
        ("a,equals,,3.18,0.019,,1", UNDECIDED),
        ("late,equals,,103.18,0.02,,1", REPRODUCED),
        ("late,equals,,103.18,0.019,,1", UNDECIDED),
        ("wide,equals,,3.0,0.05,,1", UNDECIDED),
        ("a,equals,b,0.5,1%,", REPRODUCED),
        ("a,equals,b,0.6,1%,", IN_DIRECTION),
        ("a,equals,b,0.7,1%,", NOT_REPRODUCED),
        # The ratio is on the other side of 1 than the work's, though near.
        ("near,equals,a,0.95,1%,", NOT_REPRODUCED),
        ("near,equals,a,1.05,1%,", IN_DIRECTION),
        # At least as much as another: there is no weaker form below it.
        ("a,at_least,near,,,", NOT_REPRODUCED),
        # The tolerance includes 1: no side.
        ("near,equals,a,0.97,0.05,", REPRODUCED),
        ("a,at_least,,2.8,,", REPRODUCED),
        ("a,at_least,,3.05,,", UNDECIDED),
        ("a,at_least,,3.2,,", IN_DIRECTION),
        ("a,at_least,,3.5,,", NOT_REPRODUCED),
        ("a,at_most,,3.2,,", REPRODUCED),
        ("a,at_most,,2.95,,", UNDECIDED),
        ("a,at_most,,2.82,,", IN_DIRECTION),
        ("a,at_most,,2.5,,", NOT_REPRODUCED),
        ("a,at_least,b,0.4,,", REPRODUCED),
        ("a,at_least,b,0.6,,", NOT_REPRODUCED),
        ("b,at_most,a,2.1,,", REPRODUCED),
        # Below a by less than counts.
        ("tie,at_least,a,,,", REPRODUCED),
        ("tie,below,a,,,", NOT_REPRODUCED),
        ("b,above,a,,,", REPRODUCED),
        ("a,below,b,,,", REPRODUCED),
        ("a,above,b,,,", NOT_REPRODUCED),
        ("wide,above,a,,,", UNDECIDED),
        ("wide,differs,a,,,", UNDECIDED),
        # Another number of runs, so no pairs.
        ("b,above,two,,,", REPRODUCED),
        # Medians of six runs or more have intervals; these differ by less than they are wide, ...
        ("middle,above,shifted,,,", REPRODUCED),
        ("middle,equals,shifted,1.1,1%,", REPRODUCED),
        ("middle,at_least,shifted,1.05,,", REPRODUCED),
        # ... which only pairs show.
        ("middle,above,mixed,,,", UNDECIDED),
        ("middle,above,t/shifted,,,", UNDECIDED),
        # Estimates of older records have no values.
        ("few,above,lower,,,", UNDECIDED),
        ("median,above,lower,,,", REPRODUCED),
        ("lower,above,median,,,", NOT_REPRODUCED),
        ("median,above,long,,,", UNDECIDED),
        ("median,equals,lower,2,5%,", UNDECIDED),
        # d has one run.
        ("d,above,a,,,", UNDECIDED),
        ("d,equals,,4,1%,", UNDECIDED),
        ("d,at_most,,5,,", UNDECIDED),
        ("a,at_most,d,1,,", UNDECIDED),
        ("a,differs,b,,,", REPRODUCED),
        ("e,differs,a,,,", NOT_RUN),
        ("a,below,e,,,", NOT_RUN),
        # More than 0 by any factor.
        ("a,at_most,zero,2,,", NOT_REPRODUCED),
        ("a,at_least,zero,2,,", REPRODUCED),
        ("a,equals,zero,1,1%,", NOT_REPRODUCED),
        ("some,at_most,zero,2,,", UNDECIDED),
        ("some,at_least,zero,2,,", UNDECIDED),
        ("some,equals,zero,1,1%,", UNDECIDED),
        ("a,at_least,around,2,,", UNDECIDED),
        # Two that are 0 are equal.
        ("zero,equals,none,1,1%,", REPRODUCED),
        ("zero,equals,none,1.5,1%,", NOT_REPRODUCED),
        ("zero,at_least,none,,,", REPRODUCED),
        ("zero,at_most,none,,,", REPRODUCED),
        ("zero,at_most,none,0.5,,", NOT_REPRODUCED),
        ("zero,below,none,,,", NOT_REPRODUCED),
        ("zero,differs,none,,,", NOT_REPRODUCED),
        ("once,equals,none,1,1%,", UNDECIDED),
        # 0 of another number is a ratio as any other.
        ("zero,at_most,a,0.5,,", REPRODUCED),
        ("a,definitional,,,,reason", DEFINITIONAL),
        ("a,not_checkable,,,,reason", NOT_CHECKABLE),
    ],
)
def test_every_relation(tmp_path: Path, condition: str, expected: str) -> None:
    measured = {
        "a": estimate(2.96, 3.0, 3.04),
        "b": estimate(5.92, 6.0, 6.08),
        "wide": estimate(2.5, 3.0, 3.5),
        "late": estimate(102.96, 103.0, 103.04),
        "within": estimate(2.8, 3.0, 3.2),
        "far": estimate(23.0, 25.0, 27.0),
        "d": estimate(4.0),
        "near": estimate(2.97, 3.01, 3.05),
        "tie": estimate(2.9585, 2.9985, 3.0385),
        "two": estimate(2.9, 3.1),
        "middle": Estimate.of_median([1.1 * value for value in range(10, 22)]),
        "shifted": Estimate.of_median([float(value) for value in range(10, 22)]),
        "mixed": Estimate.of_median([float(value) for value in reversed(range(10, 22))]),
        "t/shifted": Estimate.of_median([float(value) for value in range(10, 22)]),
        "median": Estimate(10, 6.0, 5.0, 7.0),
        "few": Estimate(3, 6.0, None, None),
        "lower": Estimate(10, 3.0, 2.0, 4.0),
        "long": Estimate(10, 3.0, 2.0, 5.5),
        "zero": estimate(0.0, 0.0, 0.0),
        "none": estimate(0.0, 0.0, 0.0),
        "once": estimate(0.0),
        "some": estimate(0.0, 0.0, 0.3),
        "around": estimate(-1.0, 0.0, 1.0),
    }
    assert verdict(tmp_path, lines(condition), **measured) == expected


@pytest.mark.parametrize(
    ("condition", "runs"),
    [
        # ±0.0994 of three runs; the limit of 10 % is 2.97, at 0.03 of the mean.
        ("a,equals,,3.3,0.05,", 10),
        # To be 10 % wide instead of 41 %.
        ("wide,equals,,3.0,0.05,", 14),
        ("a,equals,,3.0,0.05,,5", 5),
        ("a,at_least,,3.05,,", 6),
        ("wide,above,a,,,", None),
        ("d,at_most,,5,,", None),
        ("a,at_most,,3.2,,", None),
    ],
)
def test_an_undecided_condition_says_how_many_runs_decide_it(
    tmp_path: Path, condition: str, runs: int | None
) -> None:
    measured = {
        subject("a"): estimate(2.96, 3.0, 3.04),
        subject("wide"): estimate(2.5, 3.0, 3.5),
        subject("d"): estimate(4.0),
    }
    (found,) = verdicts.judged(claims(tmp_path, lines(condition)), measured)
    assert found.lines[0].runs == runs


def test_a_claim_holds_if_all_its_conditions_hold(tmp_path: Path) -> None:
    low, high = estimate(0.9, 1.0, 1.1), estimate(5.9, 6.0, 6.1)
    middle = estimate(0.6, 1.1, 4.0)
    text = lines("a,below,b,,,", "a,below,c,,,")
    assert verdict(tmp_path, text, a=low, b=high, c=high) == REPRODUCED
    assert verdict(tmp_path, text, a=low, b=high, c=middle) == UNDECIDED
    assert verdict(tmp_path, text, a=high, b=low, c=middle) == NOT_REPRODUCED
    assert verdict(tmp_path, text, a=low, b=high) == NOT_RUN


def test_a_weaker_form_replaces_the_general_rules_of_direction(tmp_path: Path) -> None:
    text = lines("a,at_most,,1,,", "a,direction:below,b,,,")
    low, middle, high = estimate(0.5, 0.6, 0.7), estimate(1.8, 2.0, 2.2), estimate(5.9, 6.0, 6.1)
    # A claim that holds fully needs no weaker form.
    assert verdict(tmp_path, text, a=low, b=low) == REPRODUCED
    assert verdict(tmp_path, text, a=middle, b=high) == IN_DIRECTION
    assert verdict(tmp_path, text, a=high, b=middle) == NOT_REPRODUCED
    # The weaker form is undecided, or the full form.
    assert verdict(tmp_path, text, a=middle, b=estimate(1.0, 2.5, 4.0)) == UNDECIDED
    assert verdict(tmp_path, text, a=estimate(0.5, 0.9, 1.2), b=high) == UNDECIDED
    assert verdict(tmp_path, text, a=middle) == NOT_RUN
    # One condition fails: more runs cannot make the full form hold.
    two = lines("a,at_most,,1,,", "c,at_most,,1,,", "a,direction:below,b,,,")
    unclear = estimate(0.5, 0.9, 1.2)
    assert verdict(tmp_path, two, a=middle, c=unclear, b=high) == IN_DIRECTION
    # A weaker form holds or not: it has no weaker form of its own.
    short = lines("a,at_most,,1,,", "a,direction:at_most,,1.9,,")
    assert verdict(tmp_path, short, a=estimate(2.0, 2.05, 2.1)) == NOT_REPRODUCED
    near = lines("a,at_most,,1,,", "a,direction:at_most,,1.9,,")
    assert verdict(tmp_path, near, a=estimate(1.99, 2.0, 2.01)) == NOT_REPRODUCED
    # The interval contains the limit of 10 %, but not the value: the claim itself fails.
    off = lines("a,equals,,3,0.05,", "a,direction:at_least,,2,,")
    assert verdict(tmp_path, off, a=estimate(3.2, 3.3, 3.4)) == IN_DIRECTION
    equal = lines("a,at_most,,1,,", "a,direction:equals,,3,0.05,")
    assert verdict(tmp_path, equal, a=estimate(3.2, 3.3, 3.4)) == NOT_REPRODUCED


RANKS = (
    "A,x,text,x,s,a,,m,equals,,10,1,\nB,x,text,x,s,b,,m,equals,,20,1,\n"
    "C,x,text,x,s,c,,m,equals,,21,1,\n"
)


def ranked(tmp_path: Path, **means: float) -> list[str]:
    measured = {subject(arm): estimate(mean * 0.9999, mean * 1.0001) for arm, mean in means.items()}
    return [one.verdict for one in verdicts.judged(claims(tmp_path, RANKS), measured)]


def test_a_value_that_is_far_off_holds_in_direction_if_the_order_is_kept(tmp_path: Path) -> None:
    # b and c differ by less than their tolerances: their order does not count.
    assert ranked(tmp_path, a=12, b=24, c=24) == [IN_DIRECTION] * 3
    # The order alone is not enough.
    assert ranked(tmp_path, a=5, b=31, c=30) == [NOT_REPRODUCED] * 3
    # Nor is being within 25 % without it.
    assert ranked(tmp_path, a=12.4, b=20, c=12.3) == [NOT_REPRODUCED, REPRODUCED, NOT_REPRODUCED]
    # The order beside an arm that was not measured is not known.
    assert ranked(tmp_path, b=24, c=24) == [NOT_RUN, UNDECIDED, UNDECIDED]


def test_orders_are_those_within_a_scenario_a_group_and_a_metric(tmp_path: Path) -> None:
    text = (
        "A,x,text,x,s,a,,m,equals,,10,1,\nB,x,text,x,t,b,,m,equals,,20,1,\n"
        "C,x,text,x,s,b,web,m,equals,,20,1,\nD,x,text,x,s,b,,n,equals,,20,1,\n"
    )
    measured = {
        subject("a"): estimate(12.39, 12.4),
        subject("t/b"): estimate(24.0, 24.1),
        subject("b@web"): estimate(24.0, 24.1),
        subject("b", "n"): estimate(24.0, 24.1),
    }
    found = verdicts.judged(claims(tmp_path, text), measured)
    assert [one.verdict for one in found] == [NOT_REPRODUCED] * 4


def test_claims_used_for_calibration_do_not_count(tmp_path: Path) -> None:
    text = "A,x,text,x,s,a,,m,equals,,3,5%,reading,,calibration\n"
    assert verdict(tmp_path, text, a=estimate(2.9, 3.1)) == "calibration"
    assert verdict(tmp_path, text) == NOT_RUN
    with pytest.raises(sj.ResultError, match='claim A: unknown use "tuning"; expected calibration'):
        claims(tmp_path, text.replace("calibration", "tuning"))


def test_the_number_that_is_compared_is_the_mean_or_the_ratio(tmp_path: Path) -> None:
    text = lines("a,equals,b,0.5,1%,", "a,at_least,,1,,", "a,at_most,c,1,,", "c,at_most,c,1,,")
    measured = {subject("a"): estimate(3.0), subject("b"): estimate(6.0)}
    (found,) = verdicts.judged(claims(tmp_path, text), measured | {subject("c"): estimate(0.0)})
    assert [one.compared for one in found.lines] == [0.5, 3.0, None, 1.0]


def test_presets_put_other_arms_into_the_claims_that_name_them(tmp_path: Path) -> None:
    text = lines("a,below,b,,,") + "B,x,text,x,s,c,,m,at_least,,1,,\n"
    found, other = verdicts.substituted(claims(tmp_path, text), {"a": "a2"})
    (line,) = found.lines
    assert other.subjects == [subject("c")]
    assert (found.name, line.subject, line.reference) == ("A", subject("a2"), subject("b"))


def test_presets_keep_the_other_arms_for_the_comparison_of_orders(tmp_path: Path) -> None:
    text = lines("a,equals,,10,0.5,") + "B,x,text,x,s,b,,m,equals,,20,0.5,\n"
    measured = {subject("a2"): estimate(12.0, 12.02), subject("b"): estimate(20.0, 20.02)}
    (found, _) = verdicts.judged(
        verdicts.substituted(claims(tmp_path, text), {"a": "a2"}), measured
    )
    assert found.verdict == IN_DIRECTION


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "A,x,text,x,s,a,,m,direction:above,b,,,\n",
            "claim A: only lines with direction:; expected one without",
        ),
        (
            "A,x,text,x,s,a,,m,above,b,,,\nA,,,,,,,,definitional,,,,so\n",
            "claim A: a claim that is not counted has one line",
        ),
    ],
)
def test_claims_that_could_hold_by_mistake_are_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(sj.ResultError, match=message):
        claims(tmp_path, text)


def test_totals_count_every_verdict() -> None:
    counts = verdicts.totals([REPRODUCED, NOT_RUN, REPRODUCED])
    assert counts == {
        REPRODUCED: 2,
        IN_DIRECTION: 0,
        UNDECIDED: 0,
        NOT_REPRODUCED: 0,
        NOT_CHECKABLE: 0,
        DEFINITIONAL: 0,
        "calibration": 0,
        NOT_RUN: 1,
    }
