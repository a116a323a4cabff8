"""Studies: their files, sweeps, changes of scale, presets, assumptions, and the command."""

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.scenario.paths import overridden
from sojourn.studies import manifest, record
from sojourn.studies import study as studies
from sojourn.studies.claims import Subject
from sojourn.studies.verdicts import NOT_REPRODUCED, NOT_RUN, REPRODUCED
from support.shell import ROOT, Command
from support.studied import CLAIMS, DESCRIPTION, SCENARIO, estimate, write


@pytest.fixture
def study(tmp_path: Path) -> studies.Study:
    return studies.load(write(tmp_path / "small"))


def test_the_package_contains_the_studies() -> None:
    inside = Path(studies.__file__).parent / "papers"
    assert studies.studies_folder(None) == inside.resolve() == ROOT / "papers"
    assert studies.studies_folder(ROOT / "docs") == ROOT / "docs"
    with pytest.raises(sj.ResultError, match=r"^nowhere is not a directory; expected"):
        studies.studies_folder(Path("nowhere"))
    # maturin leaves a link out of wheels unless a pattern of files names it.
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]
    packed = [path for entry in build["include"] for path in ROOT.glob(entry["path"])]
    assert inside / "residential" / "study.toml" in packed
    assert len([path for path in packed if path.is_file()]) == len(
        [path for path in (ROOT / "papers").rglob("*") if path.is_file()]
    )


@pytest.mark.parametrize("name", studies.names(ROOT / "papers"))
def test_every_study_names_arms_and_groups_that_exist(name: str) -> None:
    study = studies.load(ROOT / "papers" / name)
    assert study.description.citation["key"]
    figures = study.figures([])
    quick = study.scenarios(study.needed(figures, study.claims), "quick")
    for claim in study.claims:
        for subject in claim.subjects:
            scenario = quick[subject.scenario]
            assert subject.arm in scenario.checked.arms, (claim.name, subject)
            groups = {group.name for group in scenario.traffic}
            assert subject.group is None or subject.group in groups, (claim.name, subject)
    for figure in figures:
        for panel in figure.panel:
            assert not panel.published or (study.folder / panel.published).is_file()
            for key in study.description.scenarios_of(panel):
                assert set(panel.arms) <= set(quick[key].checked.arms), (figure.name, key)
    study.check_arms(quick)
    found = {study.own_queue(one, arm) for one in quick.values() for arm in one.checked.arms}
    assert found - {None} == set(study.description.own)
    for varied in study.variants(study.scenarios(list(quick), "full")):
        assert varied.scenario.arms, varied.key


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("title =", "titlex =", ': titlex: unknown key; did you mean "title"? (line {line})'),
        ("title =", "name =", ": name: unknown key; expected one of title, citation, recons"),
        ('title = "A small study"', "", ": title: missing (line 1)"),
        ('title = "A small study"', "title = 3", ": title: expected a text, not a value of type"),
        (
            'kind = "bars"',
            'kind = "bar"',
            ': figure[0].kind "bar": unknown; expected bars, series, cdf, sweep or ellipse',
        ),
        ("replications = 2", "replications = ", ": cannot read study: Invalid value "),
        (
            'arms = { codel = "pfifo" }',
            "arms = 3",
            ": preset[0].arms: expected a table, not a value of type int (line {line})",
        ),
        (
            'arms = { codel = "pfifo" }',
            "arms = { codel = 3 }",
            ": preset[0].arms: expected texts, not a value of type int (line {line})",
        ),
        ('arms = { codel = "pfifo" }', "", ': preset "no AQM": expected arms or scenarios'),
        (
            'claims = ["B"]',
            'claims = "B"',
            ": assumption[0].claims: expected a list of texts, not a value of type str (line",
        ),
        (
            '"traffic.tcp.count" = [1, 2]',
            '"traffic.tcp.count" = [1]',
            ": sweep delay: set needs a list for rtt and lists of equal length",
        ),
        ('axis = "rtt"', 'axis = "rate"', ": sweep delay: set needs a list for rate and lists of"),
        ('sweep = "delay"', 'sweep = "loss"', ": figure 4: no sweep loss"),
        (
            'sweep = "delay"',
            "x_range = [1]",
            ": figure 4: x_range and y_range need two numbers",
        ),
    ],
)
def test_a_description_that_is_not_valid_is_reported(
    tmp_path: Path, before: str, after: str, expected: str
) -> None:
    assert before in DESCRIPTION
    folder = write(tmp_path / "small", description=DESCRIPTION.replace(before, after, 1))
    with pytest.raises(sj.ResultError) as raised:
        studies.load(folder)
    line = DESCRIPTION[: DESCRIPTION.index(before)].count("\n") + 1
    assert str(raised.value).startswith(f"{folder / 'study.toml'}{expected.format(line=line)}")


def test_a_directory_without_files_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(sj.ResultError, match=r"study\.toml: cannot read study: No such file"):
        studies.load(tmp_path)


def test_unknown_scenarios_figures_and_claims_are_reported(
    tmp_path: Path, study: studies.Study
) -> None:
    with pytest.raises(
        sj.ResultError, match=r"unknown scenario three; expected three\.toml or a point of a sweep"
    ):
        study.scenarios(["three"], "full")
    with pytest.raises(sj.ResultError, match="unknown scenario study; "):
        study.scenarios(["study"], "full")
    for name in ("9", ""):
        expected = f'small has no figure "{name}"; expected one of 1 a, 2, 3'
        with pytest.raises(sj.ScenarioError, match=expected):
            study.figures([name])
    other = DESCRIPTION.replace('claims = ["B"]', 'claims = ["Z"]')
    wrong = studies.load(write(tmp_path / "other", description=other))
    with pytest.raises(sj.ResultError, match="assumption Buffer size: unknown claim Z"):
        list(wrong.variants(wrong.scenarios(["two"], "full")))


def test_what_claims_and_figures_need(study: studies.Study) -> None:
    claims, figures = study.claims, study.figures
    assert study.needed([], claims) == ["two", "delay_10ms"]
    assert study.needed(figures(["4"]), []) == ["delay_10ms", "delay_40ms"]
    assert study.needed(figures([]), claims) == ["two", "delay_10ms", "delay_40ms"]


def test_the_points_of_a_sweep_set_lists_in_parallel(study: studies.Study) -> None:
    found = study.scenarios(["delay_10ms", "delay_40ms"], "full")
    assert [str(one.rtt) for one in found.values()] == ["10ms", "40ms"]
    assert [one.traffic[1].count for one in found.values()] == [1, 2]
    assert {one.duration for one in found.values()} == {"12s"}
    assert {one.replications for one in found.values()} == {3}


def test_quick_changes_are_those_of_all_of_the_scenario_and_of_the_sweep(
    study: studies.Study,
) -> None:
    found = study.scenarios(["two", "delay_40ms"], "quick")
    assert [one.duration for one in found.values()] == ["8s", "6s"]
    assert {one.replications for one in found.values()} == {2}
    assert str(study.scenarios(["two"], "full")["two"].duration) == "12s"


def queues(scenario: sj.Scenario) -> dict[str, Any]:
    """What each arm sets, in canonical form."""
    return {
        arm.name: {path: str(value) for path, value in arm.set.items()} for arm in scenario.arms
    }


ARMS = """
[[arms]]
name = "plain"
[[arms]]
name = "codel"
set."links.down.qdisc" = "codel limit 50"
[[arms]]
name = "fq"
set."links.down.qdisc" = "fq_codel"
set."links.down.qdisc.limit" = 70
"""


@pytest.fixture
def scenario() -> sj.Scenario:
    return sj.Scenario.from_toml(SCENARIO[: SCENARIO.index("[[arms]]")] + ARMS)


def test_a_change_reaches_the_scenario_and_every_arm_that_sets_the_queue(
    scenario: sj.Scenario,
) -> None:
    found = studies.changed(scenario, {"links.down.qdisc.limit": 30, "rtt": "5ms"})
    assert (
        found.links["down"].qdisc
        == overridden(scenario, {"links.down.qdisc.limit": 30}).links["down"].qdisc
    )
    assert found.rtt == "5ms"
    assert found.checked.arms == ["plain", "codel", "fq"]
    for arm in found.arms[1:]:
        assert arm.set["links.down.qdisc.limit"] == 30


def test_a_change_of_the_queue_replaces_what_arms_set_below_it(scenario: sj.Scenario) -> None:
    found = studies.changed(scenario, {"arms.fq.links.down.qdisc": "sfq"})
    assert queues(found)["fq"] == {"links.down.qdisc": "sfq"}
    assert queues(found)["codel"] == queues(scenario)["codel"]


def test_an_arm_whose_queue_has_no_such_parameter_stays(scenario: sj.Scenario) -> None:
    both = scenario.replace(arms=scenario.arms[1:])
    found = studies.changed(both, {"links.down.qdisc.quantum": 300})
    assert found.arms[0] == both.arms[0]
    assert found.arms[1].set["links.down.qdisc.quantum"] == 300


def test_a_change_of_one_arm(scenario: sj.Scenario) -> None:
    found = studies.changed(scenario, {"arms.codel.links.down.qdisc.target": "1ms"})
    assert found.arms[0] == scenario.arms[0]
    assert found.arms[1].set["links.down.qdisc.target"] == "1ms"
    with pytest.raises(sj.ScenarioError, match=r'arms\.pie\.rtt: no arm "pie" in two flows'):
        studies.changed(scenario, {"arms.pie.rtt": "1ms"})


def test_a_change_that_is_valid_nowhere_is_reported(scenario: sj.Scenario) -> None:
    with pytest.raises(sj.ScenarioError, match="speed"):
        studies.changed(scenario, {"links.down.speed": 3})


def test_an_assumption_varies_the_arms_that_its_claims_need(study: studies.Study) -> None:
    (varied,) = study.variants(study.scenarios(["two"], "full"))
    assert (varied.key, varied.base) == ("two--buffer-size-1", "two")
    assert [arm.name for arm in varied.scenario.arms] == ["pfifo"]
    assert varied.scenario.replications == 2
    limits = [str(link.qdisc) for name, link in varied.scenario.links.items() if name == "down"]
    assert limits == ["pfifo limit 20"]


def recorded(study: studies.Study, **means: float) -> dict[str, Any]:
    """The record with these delays of arms, written as in ``two__codel``."""
    metric = "sojourn_down_ms_mean"
    measured = {
        Subject(*name.split("__"), None, metric): estimate(mean, mean)
        for name, mean in means.items()
    }
    scenarios = study.scenarios(["two"], "full")
    varied = list(study.variants(scenarios))
    return record.record(
        study, scale="full", replications={"two": 3}, measured=measured, varied=varied
    )


def test_a_record_has_claims_presets_and_assumptions(study: studies.Study) -> None:
    measured = {"two__codel": 5.0, "two__pfifo": 30.0, "delay_10ms__codel": 1.0}
    found = recorded(study, **measured, **{"two--buffer-size-1__pfifo": 20.5})
    verdicts = {claim["id"]: claim["verdict"] for claim in found["claims"]}
    # B has no other arm to compare ranks with; C needs the FIFO at 10 ms.
    assert verdicts == {
        "A": REPRODUCED,
        "B": NOT_REPRODUCED,
        "C": NOT_RUN,
        "D": "definitional",
    }
    assert found["totals"][REPRODUCED] == 1
    (preset,) = found["presets"]
    assert preset["verdicts"] == {"A": NOT_REPRODUCED, "C": NOT_RUN}
    (assumption,) = found["assumptions"]
    (variant,) = assumption["variants"]
    assert variant["claims"] == {"B": {"verdict": REPRODUCED, "compared": [20.5]}}
    first = found["claims"][1]["lines"][0]
    assert (first["value"], first["tolerance"], first["mean"], first["n"]) == (20.0, 1.0, 30.0, 2)
    assert found["claims"][1]["reason"] == "reading"


def test_a_record_counts_conditions_with_and_without_calibration(tmp_path: Path) -> None:
    measured = {"two__codel": 5.0, "two__pfifo": 20.0}
    study = studies.load(write(tmp_path / "one"))
    (counts,) = recorded(study, **measured)["counts"].values()
    # The claim on two scenarios has one that was measured.
    assert (counts[REPRODUCED], counts[NOT_RUN]) == (3, 1)
    claims = CLAIMS.replace("equals,,20,5%,reading", "equals,,20,5%,reading,,calibration")
    counts = recorded(studies.load(write(tmp_path / "two", claims=claims)), **measured)["counts"]
    assert counts["conditions"][REPRODUCED] == 2
    assert counts["conditions_with_calibration"][REPRODUCED] == 3
    assert counts["claims_with_calibration"][REPRODUCED] == 2
    assert sum(counts["claims_with_calibration"].values()) == 4


def test_an_outdated_record_is_compared_in_the_other_parts(tmp_path: Path) -> None:
    before = studies.load(write(tmp_path / "one"))
    scenarios = {name: before.digest(name, "full") for name in before.needed([], before.claims)}
    found = recorded(before, two__codel=5.0, two__pfifo=20.0, **{"two--buffer-size-1__pfifo": 9.0})
    found |= {"scenarios": scenarios | {"delay_40ms": before.digest("delay_40ms", "full")}}
    assert record.disagreements(before, found) == []
    claims = CLAIMS.replace("equals,,20,", "equals,,21,")
    text = DESCRIPTION.replace('label = "no AQM"', 'label = "none"')
    after = studies.load(write(tmp_path / "two", claims=claims, description=text))
    claim, preset = "claim B has changed since it was judged", "presets have changed since the runs"
    assert record.disagreements(after, found) == [claim, preset]
    assert record.disagreements(after, found | {"outdated": {"claims": "x"}}) == [preset]
    both = {"claims": "x", "presets": "y", "other": "z"}
    assert record.disagreements(after, found | {"outdated": both}) == []
    # The note itself is checked.
    assert record.disagreements(after, found | {"outdated": both | {"scenarios": "s"}}) == [
        "its outdated scenarios have not changed"
    ]
    assert record.disagreements(after, found | {"outdated": both | {"queues": "q"}}) == [
        "unknown part queues in outdated; expected claims, scenarios, presets, assumptions, other"
    ]


def test_a_preset_may_replace_scenarios(tmp_path: Path) -> None:
    text = DESCRIPTION.replace('arms = { codel = "pfifo" }', 'scenarios = { two = "delay_40ms" }')
    study = studies.load(write(tmp_path / "one", description=text))
    # It needs a scenario that no claim names.
    assert "delay_40ms" in study.needed([], study.claims)
    measured = {"two__codel": 5.0, "two__pfifo": 30.0, "delay_40ms__codel": 50.0}
    (preset,) = recorded(study, **measured, delay_40ms__pfifo=40.0)["presets"]
    assert preset["scenarios"] == {"two": "delay_40ms"}
    assert preset["verdicts"]["A"] == NOT_REPRODUCED


def test_a_varied_arm_is_compared_only_with_arms_that_the_change_does_not_concern(
    tmp_path: Path,
) -> None:
    """A change of the scenario concerns every arm, one of an arm only this arm."""
    claims = CLAIMS.replace("equals,,20,5%,reading", "above,codel,,,")
    measured = {"two__codel": 5.0, "two__pfifo": 30.0, "two--buffer-size-1__pfifo": 20.5}
    for path, verdict in (("links.down.qdisc.limit", NOT_RUN), (OWN_LIMIT, REPRODUCED)):
        text = DESCRIPTION.replace('"links.down.qdisc.limit" = 20', f'"{path}" = 20')
        folder = write(tmp_path / path, description=text, claims=claims)
        (assumption,) = recorded(studies.load(folder), **measured)["assumptions"]
        ((judged,),) = [variant["claims"].values() for variant in assumption["variants"]]
        assert judged["verdict"] == verdict


OWN_LIMIT = "arms.pfifo.links.down.qdisc.limit"


def test_a_claim_of_several_scenarios_holds_if_all_hold(study: studies.Study) -> None:
    measured = {"two__codel": 5.0, "two__pfifo": 30.0, "delay_10ms__codel": 4.0}
    for other, verdict in ((9.0, REPRODUCED), (7.0, NOT_REPRODUCED)):
        found = recorded(study, **measured, delay_10ms__pfifo=other)
        assert found["claims"][2]["verdict"] == verdict


def test_the_command_lists_the_studies_with_their_titles(sojourn: Command, tmp_path: Path) -> None:
    lines = sojourn("reproduce").stdout.splitlines()
    assert [line.split()[0] for line in lines] == studies.names(ROOT / "papers")
    titles = {
        name: studies.title(ROOT / "papers" / name) for name in studies.names(ROOT / "papers")
    }
    assert f"cocoa        {titles['cocoa']}" in lines
    for name, title in (
        ("own", 'title = "My \\u001b study"\n'),
        ("bare", None),
        ("binary", b"\xff"),
    ):
        (tmp_path / "papers" / name).mkdir(parents=True)
        (tmp_path / "papers" / name / "claims.csv").touch()
        file = tmp_path / "papers" / name / "study.toml"
        if isinstance(title, str):
            file.write_text(f'{title}citation = {{ key = "a" }}\n')
        elif title:
            file.write_bytes(title)
    listed = sojourn("reproduce", "--papers", "papers").stdout
    assert listed == "bare\nbinary\nown     My \\u001b study\n"


def reproduced(sojourn: Command, folder: Path, *more: str) -> Any:
    """Reproduce the small study with the option --json, and return what it prints."""
    done = sojourn("reproduce", "small", "--papers", str(folder), "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_command_writes_verdicts_tables_and_reports(sojourn: Command, tmp_path: Path) -> None:
    write(tmp_path / "papers" / "small")
    found = reproduced(sojourn, tmp_path / "papers", "--out", "out", "--full")
    out = tmp_path / "out"
    assert json.loads((out / "verdicts.json").read_text()) == found
    assert found["replications"] == {"two": 3, "delay_10ms": 3, "delay_40ms": 3}
    assert {claim["id"]: claim["verdict"] for claim in found["claims"]}["A"] == REPRODUCED
    assert found["claims"][0]["lines"][0]["n"] == 3
    table = pl.read_parquet(out / "claims.parquet")
    assert table["id"].to_list() == ["A", "B", "C", "C", "D"]
    assert table["mean"][0] == found["claims"][0]["lines"][0]["mean"]
    text = (out / "claims.md").read_text()
    assert "half the delay \\| or less" in text
    assert sorted(path.name for path in (out / "scenarios").iterdir()) == [
        "delay_10ms",
        "delay_40ms",
        "two",
        "two--buffer-size-1",
    ]
    # Points of sweeps have no reports.
    assert [path.parent.name for path in out.rglob("report.html")] == ["two"]
    assert sj.Result.load(out / "scenarios" / "two").complete
    times = json.loads((out / "runtime.json").read_text())["full"]
    assert set(times) == {"two", "delay_10ms", "delay_40ms", "two--buffer-size-1"}


def test_a_figure_runs_only_what_it_needs(sojourn: Command, tmp_path: Path) -> None:
    write(tmp_path / "papers" / "small")
    more = ("--figure", "4", "--out", "out", "--replications", "1")
    found = reproduced(sojourn, tmp_path / "papers", *more)
    assert found["replications"] == {"delay_10ms": 1, "delay_40ms": 1}
    verdicts = [claim["verdict"] for claim in found["claims"]]
    assert verdicts == [NOT_RUN, NOT_RUN, NOT_RUN, "definitional"]
    figures = sorted(path.name for path in (tmp_path / "out" / "figures").iterdir())
    assert figures == ["4.pdf", "4.png", "4.svg"]


def test_all_studies_at_once(sojourn: Command, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / "papers" / name, description=DESCRIPTION[: DESCRIPTION.index("[[figure")])
    done = sojourn("reproduce", "all", "--papers", "papers", "--out", "out")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    (first,) = (row for row in rows if row[:1] == ["one"])
    (total,) = (row for row in rows if row[:1] == ["total"])
    assert [int(one) for one in total[1:]] == [2 * int(one) for one in first[1:]]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["one", "two"]


def test_a_claim_on_what_does_not_exist_ends_the_study(sojourn: Command, tmp_path: Path) -> None:
    write(tmp_path / "papers" / "small", claims=CLAIMS.replace("two,pfifo,,", "two,pie,,"))
    done = sojourn("reproduce", "small", "--papers", "papers")
    assert done.returncode == 3, done.stderr
    assert 'claim B: no arm "pie" in two; expected one of pfifo, codel' in done.stderr


def test_figures_are_known(sojourn: Command) -> None:
    for name in ("", "9"):
        done = sojourn("reproduce", "cocoa", "--figure", name)
        expected = f'sojourn: cocoa has no figure "{name}"; expected one of '
        assert (done.returncode, done.stderr.startswith(expected)) == (2, True), done.stderr
    done = sojourn("reproduce", "all", "--figure", "1")
    assert (done.returncode, "--figure requires a single study" in done.stderr) == (2, True)


def test_the_slug_of_an_assumption_is_a_part_of_a_file_name() -> None:
    slugs = [
        assumption.slug
        for name in studies.names(ROOT / "papers")
        for assumption in manifest.load(ROOT / "papers" / name / "study.toml").assumption
    ]
    assert all(slug and slug == slug.lower() for slug in slugs)
