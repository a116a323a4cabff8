"""Searches of what a work does not state, on its baselines; and a study to start from."""

import json
import math
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.studies import calibration
from sojourn.studies import study as studies
from sojourn.studies.claims import Line
from sojourn.studies.verdicts import Estimate, Judged
from support.shell import Command
from support.studied import DESCRIPTION, SCENARIO, write

# The limit with which a full FIFO at 10 Mbit/s holds a packet for 24 ms is 20.
CLAIMS = """A,Fig. 1,figure,x,two,pfifo,,sojourn_down_ms_p95,equals,,24,5%,reading,,calibration
B,Fig. 1,figure,x,two,pfifo,,loss_down_percent,at_most,,50,,reading,,calibration
B,,,,two,pfifo,,loss_down_percent,direction:above,codel,,,weaker,,
C,Fig. 1,figure,x,two,codel,,jain,equals,,1,5%,reading,,
D,Fig. 1,figure,x,two,codel,,jain,above,pfifo,,,,,calibration
"""
SEARCH = """
[calibration.buffer]
claims = ["A", "B"]
set = { duration = "6s", warmup = "1s" }
[calibration.buffer.space]
"links.down.qdisc.limit" = [80, 20]
"traffic.tcp.count,traffic.udp.rate" = ["2/3mbit"]
"""
# The tables of a description come after its keys.
STUDY = DESCRIPTION + SEARCH


def searching(folder: Path, search: str = SEARCH) -> studies.Study:
    return studies.load(write(folder, description=DESCRIPTION + search, claims=CLAIMS))


def test_a_search_finds_the_values_that_are_nearest_to_the_baselines(
    sojourn: Command, tmp_path: Path
) -> None:
    study = searching(tmp_path / "papers" / "small")
    given = ("reproduce", "small", "--papers", "papers", "--calibrate", "--out", "out")
    done = sojourn(*given)
    assert done.returncode == 0, done.stderr
    assert "small, calibration buffer (quick): 2 combinations, 2 runs" in done.stderr
    assert done.stdout.splitlines()[0] == "buffer: nearest to the published values"
    file = tmp_path / "out" / calibration.FILE
    found = calibration.load(file)
    assert found is not None
    one = found["searches"]["buffer"]
    limits = [point["values"]["links.down.qdisc.limit"] for point in one["points"]]
    assert limits == [20, 80]
    near, far = one["points"]
    assert near["distance"] < 0.2 < far["distance"]
    # The mean of the logarithm of the ratio and of a bound that is met.
    assert near["distance"] == pytest.approx(abs(math.log(near["compared"][0] / 24)) / 2, abs=1e-4)
    # Without the weaker form of B.
    assert one["conditions"][1:] == ["two/pfifo:loss_down_percent at_most 50"]
    assert calibration.disagreements(study, found) == []
    # The own file may be replaced, another one may not.
    assert sojourn(*given).returncode == 0
    file.write_text("{}\n", encoding="utf-8")
    done = sojourn(*given)
    assert (done.returncode, "it exists and is not a file of a study" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"A", "B"', '"A", "C"', "calibration.buffer: C is no claim of claims.csv whose use is"),
        ('"A", "B"', '"Z"', "calibration.buffer: Z is no claim of claims.csv whose use is"),
        ('"A", "B"', '"D"', "claim D has no value; expected equals, at_least, at_most"),
        ("[80, 20]", "[]", "links.down.qdisc.limit"),
        ("[calibration.buffer]\n", "[calibration.buffer]\nreplications = 0\n", "replications 0"),
    ],
)
def test_an_invalid_search_is_reported(
    tmp_path: Path, before: str, after: str, expected: str
) -> None:
    with pytest.raises(sj.SojournError, match=expected):
        calibration.prepared(searching(tmp_path / "small", SEARCH.replace(before, after)), "quick")


def test_the_own_queue_of_a_work_is_no_baseline(tmp_path: Path) -> None:
    # A preset of FLOQ, beside which the claims have baselines.
    scenario = SCENARIO.replace('qdisc" = "codel"', 'qdisc" = "floq_share"')
    about = DESCRIPTION.replace("\n[citation]", 'own = ["floq"]\n\n[citation]')
    line = "A,x,figure,x,two,{},,jain,{},,,{}\nA,,,,two,pfifo,,jain,direction:below,codel,,,,,\n"
    place = f"{tmp_path}/{{}}/claims.csv: claim A: arm codel of two has floq, a queue of the work"
    for name, arm, relation, use, refused in [
        ("own", "codel", "equals,,1,5%", "calibration", True),
        ("beside", "pfifo", "at_most,codel,1,", "calibration", True),
        ("baseline", "pfifo", "equals,,1,5%", "calibration", False),
        ("counts", "codel", "equals,,1,5%", "", False),
    ]:
        text = line.format(arm, relation, use)
        folder = write(tmp_path / name, description=about, claims=text, scenario=scenario)
        study = studies.load(folder)
        built = study.scenarios(["two"], "quick")
        if not refused:
            study.check_arms(built)
            continue
        with pytest.raises(sj.ResultError) as raised:
            study.check_arms(built)
        assert str(raised.value).startswith(place.format(name))


def test_a_recorded_search_belongs_to_its_claims_and_its_space(tmp_path: Path) -> None:
    study = searching(tmp_path / "one")
    (search,) = calibration.prepared(study, "quick")
    about = calibration.identity(search)
    found = {"scale": "quick", "searches": {"buffer": about}}
    assert calibration.disagreements(study, found) == []
    claimed = studies.load(
        write(tmp_path / "two", description=STUDY, claims=CLAIMS.replace(",24,", ",25,"))
    )
    changed = "calibration buffer: {} changed since it was run"
    assert calibration.disagreements(claimed, found) == [changed.format("claims.csv has")]
    for name, before, after, part in [
        ("three", "80, 20", "80, 40, 20", "its space has"),
        (
            "four",
            "[calibration.buffer]\n",
            "[calibration.buffer]\nreplications = 2\n",
            "its replications have",
        ),
    ]:
        other = searching(tmp_path / name, SEARCH.replace(before, after))
        assert calibration.disagreements(other, found) == [changed.format(part)]
    scenario = study.folder / "two.toml"
    text = scenario.read_text(encoding="utf-8")
    scenario.write_text(text.replace("duration", "seed = 9\nduration", 1), encoding="utf-8")
    assert calibration.disagreements(study, found) == [changed.format("the scenarios have")]
    scenario.write_text(text, encoding="utf-8")
    assert calibration.disagreements(study, {"searches": {"rate": about}}) == [
        "calibration buffer has not been run",
        "calibration rate is no longer in study.toml",
    ]


@pytest.mark.parametrize(
    ("relation", "mean", "expected"),
    [
        ("equals", 4.0, math.log(2)),
        ("equals", 1.0, math.log(2)),
        ("equals", 0.0, math.inf),
        ("at_least", 4.0, 0.0),
        ("at_least", 1.0, math.log(2)),
        ("at_most", 4.0, math.log(2)),
        ("at_most", 1.0, 0.0),
    ],
)
def test_the_distance_of_a_condition(relation: str, mean: float, expected: float) -> None:
    line = Judged(Line(relation=relation, value=2.0, reason=""), Estimate.of([mean]), None, "")
    assert calibration.distance(line) == pytest.approx(expected)


def test_a_study_to_start_from_passes(sojourn: Command, tmp_path: Path) -> None:
    done = sojourn("reproduce", "--new", "mine")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Next: sojourn reproduce mine --papers .\n"
    done = sojourn("reproduce", "mine", "--papers", ".", "--json")
    assert done.returncode == 0, done.stderr
    totals = json.loads(done.stdout)["totals"]
    assert (totals["reproduced"], totals["definitional"], sum(totals.values())) == (2, 1, 3)
    before = (tmp_path / "mine" / "claims.csv").read_bytes()
    for name, expected in (("mine", "mine exists"), ("../x", "not a name"), ("all", "not a name")):
        done = sojourn("reproduce", "--new", name)
        assert (done.returncode, expected in done.stderr) == (2, True), done.stderr
    assert (tmp_path / "mine" / "claims.csv").read_bytes() == before


def test_a_search_does_not_set_the_own_queue_of_a_work(tmp_path: Path) -> None:
    about = DESCRIPTION.replace("\n[citation]", 'own = ["floq"]\n\n[citation]')
    search = SEARCH.replace("set = {", 'set = { "links.down.qdisc" = "floq_share",').replace(
        '"links.down.qdisc.limit" = [80, 20]\n', ""
    )
    folder = write(tmp_path / "set", description=about + search, claims=CLAIMS)
    with pytest.raises(sj.ResultError, match=r"calibration\.buffer: it sets floq, a queue of the"):
        calibration.prepared(studies.load(folder), "quick")
