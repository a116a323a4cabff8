"""The files of a reproduced study: what they say, what they replace, and what is reused."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.presentation.model import Verdict
from sojourn.studies import document, outputs, wording
from sojourn.studies.verdicts import IN_DIRECTION, NOT_REPRODUCED, NOT_RUN, REPRODUCED
from support.saved import refused
from support.shell import Command
from support.stored import command
from support.studied import DESCRIPTION, SCENARIO, write
from support.typesetting import tex, typeset

FIGURE = ("--figure", "2", "--replications", "1")
WRITTEN = ["verdicts.json", "claims.parquet", "claims.md", "claims.tex", "runtime.json"]
DRAWN = ["index.html", "figures/2.svg", "figures/2.png", "figures/2.pdf"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A directory with a study, its output in `out` of one run per arm, and what was printed."""
    folder = tmp_path_factory.mktemp("study")
    author = r'author = "A. M{\\o}ller and B. Author"'
    text = DESCRIPTION.replace('author = "A. Author and B. Author"', author)
    write(folder / "papers" / "small", description=text)
    done = small(folder)(*FIGURE)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture
def again(made: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of the study and its output."""
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


def small(folder: Path) -> Run:
    """The command that reproduces the small study into `out`."""

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        arguments = ("reproduce", "small", "--papers", "papers", "--out", "out", *options)
        return command(*arguments, folder=folder)

    return run


def verdicts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / "verdicts.json").read_text("utf-8"))
    return found


def test_every_output_names_the_command_and_the_number_of_runs(made: tuple[Path, str]) -> None:
    folder, printed = made
    stated = "sojourn reproduce small --figure 2 --replications 1 --papers papers"
    assert verdicts(folder)["command"] == stated
    assert f"to reproduce these numbers: {stated}\n" in printed
    assert "Quick check, too few runs to judge: small (quick scale, 1 run per arm): " in printed
    text = (folder / "out" / "claims.md").read_text("utf-8")
    assert f"To reproduce these numbers: `{stated}`\n" in text
    assert "(quick scale, 1 run per arm)." in text
    page = (folder / "out" / "index.html").read_text("utf-8")
    assert f"<code>{stated}</code>" in page
    assert "A. Møller, B. Author, 2026. Quick scale, 1 run per arm." in page
    assert f": {stated}\n" in (folder / "out" / "claims.tex").read_text("utf-8")


def test_figures_come_first_and_claims_that_were_not_run_are_left_out(
    made: tuple[Path, str],
) -> None:
    folder, _ = made
    found = verdicts(folder)
    assert {one["id"] for one in found["claims"] if one["verdict"] == NOT_RUN} == {"C"}
    page = (folder / "out" / "index.html").read_text("utf-8")
    assert page.index("<h2>Figures") < page.index("<h2>Claims")
    left_out = "Not listed: 1 claim that needs scenarios other than those of figure 2."
    assert left_out in page
    assert "half the delay" not in page
    assert "Lines show one run. White dots show published values." in page
    assert "Diamonds" not in page
    text = (folder / "out" / "claims.md").read_text("utf-8")
    assert left_out in text
    assert "half the delay" not in text


def test_values_that_were_not_measured_are_not_marked_as_failing() -> None:
    line = {
        "scenario": "two",
        "arm": "pie",
        "group": None,
        "metric": "a_b",
        "relation": "above",
        "reference": "two/codel:a_b",
        "weaker": False,
        "n": 1,
    }
    sides = ("mean", "low", "high", "reference_mean", "reference_low", "reference_high")
    missing = line | dict.fromkeys(sides) | {"verdict": NOT_RUN}
    failed = missing | {"mean": 1.0, "reference_mean": 2.0, "verdict": NOT_REPRODUCED}
    found = document.conditions({"lines": [missing, failed]})
    fails = Verdict("1 and 2", "bad")
    assert [measured for _, measured in found] == ["– and –", fails]


def test_only_conditions_that_fail_in_the_weaker_form_are_listed() -> None:
    lines = [
        {"verdict": verdict, "weaker": False}
        for verdict in (REPRODUCED, IN_DIRECTION, NOT_REPRODUCED)
    ]
    found = wording.unmet({"verdict": NOT_REPRODUCED, "lines": lines})
    assert [line["verdict"] for line in found] == [NOT_REPRODUCED]
    found = wording.unmet({"verdict": IN_DIRECTION, "lines": lines[:2]})
    assert [line["verdict"] for line in found] == [IN_DIRECTION]
    assert wording.of_single_runs({"replications": {"two": 3}}) == ""


def test_the_claims_are_a_table_in_latex(made: tuple[Path, str]) -> None:
    text = (made[0] / "out" / "claims.tex").read_text("utf-8")
    assert text.startswith("% Table by Sojourn\n")
    assert r"20 $\pm$ 1" in text
    assert r"sojourn\_\allowbreak{}down" in text


def test_tex_accepts_the_claims(made: tuple[Path, str], tmp_path: Path) -> None:
    text = (made[0] / "out" / "claims.tex").read_text("utf-8")
    typeset(tex("booktabs", "longtable"), tmp_path, "booktabs,longtable", text)


def test_a_result_that_is_the_same_is_reused(again: Path) -> None:
    run = small(again)
    place = again / "out" / "scenarios" / "two"
    before = (place / "manifest.json").stat().st_mtime_ns
    times = json.loads((again / "out" / "runtime.json").read_text("utf-8"))
    (place / "report.html").unlink()
    for more in ((), ("--force",)):
        done = run(*FIGURE, *more)
        assert done.returncode == 0, done.stderr
        assert "small: using 1 result that is already in out\n" in done.stderr
        assert "runs" not in done.stderr
        assert "continuing" not in done.stderr
        assert json.loads((again / "out" / "runtime.json").read_text("utf-8")) == times
    assert (place / "report.html").is_file()
    done = run("--figure", "4", *FIGURE)
    assert done.returncode == 0, done.stderr
    assert "using 1 result" in done.stderr
    assert "small (quick): 4 runs" in done.stderr
    assert (place / "manifest.json").stat().st_mtime_ns == before
    done = run("--figure", "2", "--replications", "2")
    assert done.returncode == 3
    assert "two: contains a result" in done.stderr.splitlines()[-1]
    done = run(*FIGURE, "--fresh", "--force")
    assert "using" not in done.stderr
    assert (place / "manifest.json").stat().st_mtime_ns > before


def test_a_study_that_was_not_interrupted_continues_nothing(again: Path) -> None:
    done = small(again)("--figure", "4", "--replications", "1")
    assert done.returncode == 0, done.stderr
    assert "continuing" not in done.stderr


@pytest.mark.parametrize("name", WRITTEN + DRAWN)
def test_a_file_of_the_user_is_not_replaced(
    name: str, made: tuple[Path, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    outputs.check(made[0] / "out", "small", DRAWN, force=False)
    outputs.check(out, "small", DRAWN, force=False)
    file = out / name
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    outputs.check(out, "small", DRAWN, force=False)
    table = BytesIO()
    pl.DataFrame({"id": [1]}).write_parquet(table)
    for content in (b"mine", b'{"mine": 1}', b"[" * 100_000, table.getvalue()):
        file.write_bytes(content)
        for force in (False, True):
            expected = f"{re.escape(name)}: it exists and is not a file of a study"
            with pytest.raises(sj.ResultError, match=expected):
                outputs.check(out, "small", DRAWN, force=force)
        assert file.read_bytes() == content
    file.unlink()
    if name != "index.html":
        file.symlink_to(made[0] / "out" / name)
        with pytest.raises(sj.ResultError, match="not a regular file"):
            outputs.check(out, "small", DRAWN, force=True)


def test_outputs_are_checked_before_the_first_run(again: Path) -> None:
    run = small(again)
    (again / "out" / "figures" / "2.png").write_bytes(b"mine")
    refused(run(*FIGURE), "cannot write out/figures/2.png: it exists and is not a file of a study")
    assert (again / "out" / "figures" / "2.png").read_bytes() == b"mine"
    shutil.rmtree(again / "out")
    (again / "out").write_bytes(b"mine")
    refused(run(*FIGURE), "cannot write to out: out is not a directory")


def test_the_output_of_another_study_is_replaced_only_on_request(again: Path) -> None:
    with pytest.raises(sj.ResultError, match='contains the output of the study "small"'):
        outputs.check(again / "out", "other", DRAWN, force=False)
    outputs.check(again / "out", "other", DRAWN, force=True)
    (again / "figures").write_bytes(b"mine")
    with pytest.raises(sj.ResultError, match="figures is not a directory"):
        outputs.check(again, "small", DRAWN, force=False)


def test_validity_errors_are_in_the_outputs(tmp_path: Path) -> None:
    begin, end = SCENARIO.index("[[traffic]]"), SCENARIO.index("[[arms]]")
    idle = SCENARIO[:begin] + SCENARIO[end:]
    idle += '\n[[traffic]]\nname = "ping"\ntype = "ping"\ndirection = "down"\n'
    about = DESCRIPTION[: DESCRIPTION.index("[sweep")]
    line = "A,Fig. 1,text,x,two,pfifo,,sojourn_down_ms_mean,at_least,,0,,\n"
    write(tmp_path / "papers" / "small", description=about, claims=line, scenario=idle)
    done = small(tmp_path)()
    assert done.returncode == 0, done.stderr
    found = verdicts(tmp_path)["validity"]
    assert [(one["scenario"], one["arm"]) for one in found] == [("two", "pfifo"), ("two", "codel")]
    assert all(one["text"].startswith("no link was a bottleneck") for one in found)
    assert "error: two, codel: no link was a bottleneck" in done.stderr
    text = (tmp_path / "out" / "claims.md").read_text("utf-8")
    assert "\n## Validity\n\n* two, pfifo: no link was a bottleneck" in text
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "<h2>Validity</h2>" in page
    assert "<li>two, codel: no link was a bottleneck" in page


def test_a_command_has_only_what_changes_numbers(sojourn: Command) -> None:
    made = outputs.Request(study="all", scale="full", papers=Path("my papers"))
    assert made.command == "sojourn reproduce all --full --papers 'my papers'"
    assert outputs.Request(study="floq", scale="quick").command == "sojourn reproduce floq"
    assert sojourn("reproduce").returncode == 0
