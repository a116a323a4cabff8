"""READMEs, tables and pages of studies, and the tool that keeps them current."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import sojourn as sj
import studies as tool
from sojourn.studies import calibration, outputs, readme, record
from sojourn.studies import study as studies
from sojourn.studies.verdicts import JUDGED, VERDICTS
from support.stored import command
from support.studied import CLAIMS, DESCRIPTION, write

MARKS = f"# Title\n\n{tool.BEGIN}\n{tool.END}\n\nMore.\n"


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both scales of the small study: directories `quick` and `full`, with a study each."""
    folder = tmp_path_factory.mktemp("reproduced")
    write(folder / "papers" / "small")
    for scale in ("quick", "full"):
        done = command(
            *("reproduce", "small", "--papers", "papers"),
            *(["--full"] if scale == "full" else []),
            *("--out", f"{scale}/small"),
            folder=folder,
        )
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def root(tmp_path: Path, reproduced: Path) -> Path:
    """A repository with the small study, and pages with the table of all studies."""
    shutil.copytree(reproduced / "papers", tmp_path / "papers")
    for page in tool.TABLES:
        (tmp_path / page).write_text(MARKS, encoding="utf-8")
    return tmp_path


def run(root: Path, *arguments: object) -> int:
    return tool.main([str(one) for one in arguments], root)


def text(root: Path, path: str = "papers/small/README.md") -> str:
    return (root / path).read_text(encoding="utf-8")


def cells(page: str) -> dict[str, list[str]]:
    """The cells of each row of the tables of a page by the first of them."""
    found = re.findall(r"^\| (.*) \|$", page, re.MULTILINE)
    split = [re.split(r"(?<!\\) \| ", row) for row in found]
    # Claims come before the tables of assumptions.
    return {row[0]: row[1:] for row in reversed(split)}


def test_a_study_without_runs_has_a_readme_without_verdicts(root: Path) -> None:
    assert run(root, "--readme") == 0
    page = text(root)
    assert page.startswith(f"# A small study\n\n{readme._MARK}\n\nAn introduction of\ntwo lines.\n")  # noqa: SLF001
    assert "**Reconstruction:** codel is not the one of the work." in page
    assert "sojourn reproduce small --figure '1 a'  # only what one figure needs" in page
    assert "The study has not been run yet." in page
    assert "\n## Setup\n\nText.\n\n## Findings\n\nMore text.\n\n## Verdicts\n" in page
    row = cells(text(root, "README.md"))[
        "[A small study](papers/small/README.md) (2026), with a reconstruction"
    ]
    assert row == ["–", "–", "4", *["–"] * len(JUDGED), "not run"]
    assert run(root, "--check") == 0


def test_the_readme_of_full_runs_has_all_claims_and_figures(root: Path, reproduced: Path) -> None:
    assert run(root, "--write", reproduced / "full", "--scale", "full", "--modified") == 0
    page = text(root)
    record = json.loads((reproduced / "full" / "small" / "verdicts.json").read_text())
    rows = cells(page)
    for claim in record["claims"]:
        assert rows[claim["id"]][-1].strip("*") == claim["verdict"]
        assert rows[claim["id"]][0] == claim["source"]
    first = record["claims"][1]["lines"][0]
    assert rows["B"][2:4] == [
        "20 ± 1",
        f"{first['mean']:.4g} ±{(first['high'] - first['low']) / 2:.2g}",
    ]
    assert rows["C"][1] == "half the delay \\| or less"
    assert rows["C"][2] == "two: ≤ 0.5 × pfifo<br>delay_10ms: ≤ 0.5 × pfifo"
    assert rows["D"][1:4] == ["the sum of shares is &lt; 101 %", "", "by construction"]
    judged = sum(record["totals"][verdict] for verdict in JUDGED)
    assert f"{record['totals']['reproduced']} of {judged} claims reproduced" in page
    assert "(full scale, 3 runs per queue)" in page
    # Presets are compared over the same claims.
    assert rows["as in the claims"][0] == rows["no AQM (pfifo for codel)"][0] == "2"
    assert "### Buffer size\n\nThe work states no buffer.\n" in page
    assert rows["plausible"] == ["", "no: too small"]
    for number, name in (("1 a", "1-a"), ("2", "2")):
        assert f"### Figure {number}: " in page
        with Image.open(root / "papers" / "small" / "figures" / f"{name}.png") as image:
            assert image.mode == "P"
            assert image.width <= tool.WIDEST
    assert "Published: CoDel has less delay." in page
    assert all(path.stat().st_size < 100_000 for path in root.rglob("*.png"))
    order = [
        page.index(f"\n## {name}")
        for name in ("Figures", "Setup", "Verdicts", "Presets", "Sensitivity")
    ]
    assert order == sorted(order)


def test_quick_verdicts_are_shown_only_if_there_are_no_others(root: Path, reproduced: Path) -> None:
    assert run(root, "--write", reproduced / "quick", "--scale", "quick") == 0
    page = text(root)
    assert "(quick scale, 2 runs per queue)" in page
    assert "those of full runs may differ" in page
    assert "## Figures" not in page
    assert "* Buffer size: The work states no buffer." in page
    assert run(root, "--write", reproduced / "full", "--scale", "full", "--modified") == 0
    assert "quick scale" not in text(root)
    assert set(json.loads(text(root, "papers/small/runtime.json"))) == {"quick", "full"}
    assert run(root, "--check") == 0


def test_the_tables_count_all_claims_of_all_studies(root: Path, reproduced: Path) -> None:
    shutil.copytree(root / "papers" / "small", root / "papers" / "other")
    assert run(root, "--write", reproduced / "full", "--scale", "full", "--modified") == 0
    counts = json.loads(text(root, "papers/small/full.json"))["totals"]
    numbers = [str(counts[verdict]) for verdict in JUDGED]
    for page, folder in tool.TABLES.items():
        rows = cells(text(root, page))
        name = f"[A small study]({folder}small/README.md) (2026), with a reconstruction"
        assert rows[name] == ["0 of 1", "1 of 1", "4", *numbers, "full"]
        # The other study was not run.
        assert rows["total"] == ["0 of 1", "1 of 1", "4", *numbers, ""]
        assert text(root, page).endswith("\nMore.\n")


def test_what_is_stale_is_named(
    root: Path, reproduced: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for scale in ("quick", "full"):
        assert run(root, "--write", reproduced / scale, "--scale", scale) == 0
    assert run(root, "--check") == 0
    capsys.readouterr()
    file = root / "papers" / "small" / "claims.csv"
    before = file.read_text(encoding="utf-8")

    file.write_text(before.replace("20,5%", "20,6%"), encoding="utf-8")
    assert run(root, "--check") == 1
    said = capsys.readouterr().err
    changed = "claim B has changed since it was judged: run `make studies-"
    assert f"papers/small/quick.json: {changed}update`" in said
    assert f"papers/small/full.json: {changed}full`" in said

    file.write_text(before.replace("\nD,", "\nE,"), encoding="utf-8")
    assert run(root, "--check") == 1
    said = capsys.readouterr().err
    assert "full.json: claim D is no longer in claims.csv" in said
    assert "full.json: claim E was not judged" in said

    file.write_text(before, encoding="utf-8")
    for path, old, new, said in (
        ("two.toml", "3mbit", "4mbit", "scenario two has changed"),
        ("study.toml", 'codel = "pfifo"', 'pfifo = "codel"', "presets have changed"),
        ("study.toml", 'limit" = 20', 'limit" = 30', "assumption Buffer size has changed"),
    ):
        part = root / "papers" / "small" / path
        whole = part.read_text(encoding="utf-8")
        assert old in whole
        part.write_text(whole.replace(old, new), encoding="utf-8")
        assert run(root, "--check") == 1
        assert (
            f"full.json: {said} since the runs: run `make studies-full`" in capsys.readouterr().err
        )
        # Comments do not need new runs.
        part.write_text(f"# A comment.\n{whole}", encoding="utf-8")
        assert run(root, "--check") == 0

    # Words do not need new runs.
    file.write_text(before.replace("less delay", "a shorter delay"), encoding="utf-8")
    about = root / "papers" / "small" / "study.toml"
    about.write_text(about.read_text("utf-8").replace("too small", "too short"), encoding="utf-8")
    assert run(root, "--check") == 1
    assert "papers/small/README.md is stale" in capsys.readouterr().err
    assert run(root, "--readme") == 0
    assert run(root, "--check") == 0
    assert "a shorter delay" in text(root)
    assert cells(text(root))["plausible"] == ["", "no: too short"]

    (root / "papers" / "small" / "README.md").write_text("# Mine\n", encoding="utf-8")
    assert run(root, "--check") == 1


def test_results_that_changed_are_named_by_claim(
    root: Path, reproduced: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, "--compare", reproduced / "quick") == 1
    assert "small: no quick.json" in capsys.readouterr().err
    assert run(root, "--write", reproduced / "quick", "--scale", "quick") == 0
    assert run(root, "--compare", reproduced / "quick") == 0
    file = root / "papers" / "small" / "quick.json"
    record = json.loads(file.read_text())
    line = record["claims"][1]["lines"][0]
    mean, line["mean"] = line["mean"], 20.5
    record["replications"]["two"] = 5
    file.write_text(outputs.as_json(record))
    capsys.readouterr()
    assert run(root, "--compare", reproduced / "quick") == 1
    said = capsys.readouterr().err
    assert f"small: claim B: two, pfifo: mean 20.5 is now {mean}\n" in said
    assert "small: replications differ: two 5 is now 2\n" in said
    assert "claim A" not in said


def test_part_of_a_record_is_compared_without_what_was_not_run(reproduced: Path) -> None:
    whole = record.load(reproduced / "quick" / "small" / "verdicts.json")
    assert whole is not None
    part: Any = json.loads(json.dumps(whole))
    part["claims"][0]["verdict"] = "not run"
    part["replications"] = {}
    assert record.differences(whole, part, partial=True) == []
    part["claims"][1]["verdict"] = "reproduced"
    part["claims"].append({"id": "Z", "verdict": "reproduced", "lines": []})
    said = record.differences(whole, part, partial=True)
    assert said == ["claim B: verdict not reproduced is now reproduced", "claim Z is new"]


def test_a_record_has_one_line_per_condition(reproduced: Path) -> None:
    whole = (reproduced / "full" / "small" / "verdicts.json").read_text(encoding="utf-8")
    conditions = [line for line in whole.splitlines() if '"relation"' in line]
    assert len(conditions) == 4
    assert all(json.loads(line.rstrip(",")) for line in conditions)
    assert outputs.as_json(json.loads(whole)) == whole


def test_the_scale_of_what_is_copied_is_checked(root: Path, reproduced: Path) -> None:
    with pytest.raises(SystemExit, match="small: not of full scale"):
        run(root, "--write", reproduced / "quick", "--scale", "full", "--modified")
    other = root / "other" / "small"
    shutil.copytree(reproduced / "full" / "small", other)
    file = other / "verdicts.json"
    file.write_text(outputs.as_json({**json.loads(file.read_text()), "builds": ["0.1 (ab-dirty)"]}))
    with pytest.raises(SystemExit, match=r"results of 0\.1 \(ab-dirty\); expected a build"):
        run(root, "--write", root / "other", "--scale", "full")
    with pytest.raises(SystemExit, match=r"no verdicts\.json of a study"):
        run(root, "--write", root, "--scale", "full", "--modified")
    with pytest.raises(SystemExit):
        run(root, "--write", root)
    for page in tool.TABLES:
        (root / page).write_text("# Title\n")
    with pytest.raises(SystemExit, match="expected one pair of these lines"):
        run(root, "--readme")


def test_a_study_needs_its_text(root: Path) -> None:
    file = root / "papers" / "small" / "about.md"
    file.write_text("Text.\n")
    with pytest.raises(sj.ResultError, match=r"about\.md: expected a title such as # NAME"):
        run(root, "--readme")
    file.unlink()
    with pytest.raises(sj.ResultError, match=r"about\.md: cannot read: No such file"):
        run(root, "--readme")


def test_a_recorded_search_is_shown_and_checked(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "papers" / "small"
    claims = (folder / "claims.csv").read_text(encoding="utf-8")
    marked = claims.replace("equals,,20,5%,reading", "equals,,20,5%,reading,,calibration")
    (folder / "claims.csv").write_text(marked, encoding="utf-8")
    with (folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write('[calibration.buffer]\nclaims = ["B"]\nspace = { rtt = ["5ms", "9ms"] }\n')
    study = studies.load(folder)
    (search,) = calibration.prepared(study, "quick")
    point = {"values": {"rtt": "9ms"}, "distance": 0.12, "compared": [20.0]}
    found = {**calibration.identity(search), "conditions": ["x"], "points": [point]}
    document = {"study": "small", "scale": "quick", "searches": {"buffer": found}}
    (folder / calibration.FILE).write_text(json.dumps(document), encoding="utf-8")
    assert run(root, "--readme") == 0
    assert "| distance | rtt |\n|---|---|\n| 0.120 | 9ms |\n" in text(root)
    assert run(root, "--check") == 0
    found["space"] = {"rtt": ["5ms"]}
    (folder / calibration.FILE).write_text(json.dumps(document), encoding="utf-8")
    assert run(root, "--check") == 1
    changed = "small: calibration buffer: its space has changed since it was run"
    assert changed in capsys.readouterr().err


def of_claims(claims: int, source: str) -> dict[str, Any]:
    """A record of claims that cannot be checked, with sources that `source` numbers."""
    about = {"evidence": "text", "statement": "x", "reason": "y", "verdict": "not checkable"}
    return {
        "scale": "full",
        "builds": ["0.1.0 (0123456789ab)"],
        "replications": {"two": 1},
        "totals": dict.fromkeys(VERDICTS, 0) | {"not checkable": claims},
        "claims": [
            {"id": f"C{at}", "source": source.format(at), "lines": [], **about}
            for at in range(claims)
        ],
        "presets": [],
        "assumptions": [],
    }


def test_a_readme_says_how_far_from_the_published_numbers_the_results_are(
    root: Path, reproduced: Path
) -> None:
    assert run(root, "--write", reproduced / "full", "--scale", "full", "--modified") == 0
    assert "Of 1 stated or implied values, 0 are met within 5 %" in " ".join(text(root).split())


def test_a_readme_names_the_builds_of_its_runs_and_what_has_changed(tmp_path: Path) -> None:
    study = studies.load(write(tmp_path / "small"))
    old = of_claims(3, "Fig. {0}") | {
        "outdated": {"other": "Pings were periodic.", "claims": "C2 is new."}
    }
    page = " ".join(readme.write(study, old).split())
    assert "The runs are of Sojourn 0.1.0 (0123456789ab). " in page
    assert "These are the numbers of older runs. Pings were periodic. C2 is new. " in page
    assert "full, outdated |" in readme.overview([(study, old)], "")


def test_long_tables_are_divided_by_source(tmp_path: Path) -> None:
    study = studies.load(write(tmp_path / "small"))
    page = readme.write(study, of_claims(20, "Fig. {0}, left"))
    assert "(full scale, 1 run per queue)" in page
    assert "| C3 | Fig. 3, left | x |" in page
    page = readme.write(study, of_claims(30, "Fig. 2, {0}"))
    assert page.count("\n<summary>Fig. 2</summary>\n") == 1
    assert "| C3 | 3 | x |" in page
    page = readme.write(study, of_claims(30, "Table"))
    assert "\n<summary>Table</summary>\n" in page
    assert "| C3 | x |" in page


class Tags(HTMLParser):
    """The tags of a page, and whether they are balanced."""

    EMPTY = frozenset({"meta", "input", "br", "wbr", "use", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        about = dict(attrs)
        self.ids += [about["id"] or ""] if "id" in about else []
        self.links += [about["href"] or ""] if tag == "a" else []
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


def test_the_page_is_one_document_without_scripts(reproduced: Path) -> None:
    place = reproduced / "full" / "small"
    page = (place / "index.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert not {"script", "img", "link", "iframe"} & set(tags.names)
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert tags.names.count("figure") == 5
    assert len(set(tags.ids)) == len(tags.ids)
    # Parts of drawings refer to parts of the same drawing.
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', page))
    assert used <= set(tags.ids)
    assert tags.links == ["scenarios/two/report.html"]
    assert all((place / link).is_file() for link in tags.links)


def test_the_page_shows_what_was_recorded(reproduced: Path) -> None:
    page = (reproduced / "full" / "small" / "index.html").read_text(encoding="utf-8")
    whole = record.load(reproduced / "full" / "small" / "verdicts.json")
    assert whole is not None
    assert "<h2>Reconstruction</h2><p>codel is not the one of the work.</p>" in page
    assert "A. Author, B. Author, 2026. Full scale, 3 runs per arm." in page
    for claim in whole["claims"]:
        assert re.search(rf'>{claim["id"]}<.*?verdict \w+">{claim["verdict"]}<', page, re.DOTALL)
    assert "the sum of shares is &lt; 101 %" in page
    assert "<h3>Buffer size</h3><p>The work states no buffer.</p>" in page
    assert "no AQM (pfifo for codel)" in page
    assert "Delay &amp; goodput" in page
    assert "<code>sojourn reproduce small --full --papers " in page


def test_the_page_replaces_only_pages_of_sojourn(tmp_path: Path) -> None:
    write(
        tmp_path / "papers" / "small",
        description=DESCRIPTION[: DESCRIPTION.index("[[figure")],
        claims=CLAIMS,
    )
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "index.html").write_text("<p>mine</p>")
    done = command("reproduce", "small", "--papers", "papers", "--out", "out", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "out/index.html: it exists and is not a file of a study" in done.stderr
    assert (tmp_path / "out" / "index.html").read_text() == "<p>mine</p>"
