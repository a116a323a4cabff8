"""What documents show is true."""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import _core, gym
from sojourn.cli import app, process
from sojourn.cli.reference import document
from sojourn.result import catalogue, naming, validity
from sojourn.scenario.files import NAMES
from sojourn.studies.quantities import Quantities
from support.shell import DOCUMENTS, ROOT


def test_the_glossary_has_every_abbreviation_of_the_metrics_in_order() -> None:
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| \*\*(.+?)\*\*", text, re.MULTILINE)
    assert words == sorted(words, key=str.lower)
    glance = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8").split("\n## Per run\n")[0]
    short = set(re.findall(r"^\| [^|]*?\b([A-Z]{3})\b", glance, re.MULTILINE))
    assert {"PLT", "MOS", "RPM"} <= short
    assert short <= set(words)


def sections(path: str) -> dict[str, str]:
    """The text under each heading of a document."""
    text = (ROOT / path).read_text(encoding="utf-8")
    parts = re.split(r"^#+ (.+)\n", text, flags=re.MULTILINE)
    titles = [title.replace("`", "") for title in parts[1::2]]
    assert len(set(titles)) == len(titles)
    return dict(zip(titles, parts[2::2], strict=True))


def rows(section: str) -> dict[str, list[str]]:
    """The cells of each row of a table of keys, by key."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()]
    return {row[0].strip("`"): row[1:] for row in cells if len(row) == 5 and row[0][0] == "`"}


def tables(name: str, value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables that a value of the schema may be or hold, by the key that holds them."""
    for form in [value, *value.get("anyOf", []), value.get("items", {})]:
        if "properties" in form:
            yield name, form
        for key, inner in form.get("properties", {}).items():
            yield from tables(key, inner)


def test_the_reference_has_every_key_of_a_scenario() -> None:
    page = sections("docs/reference/scenario.md")
    # A type of traffic refers to the keys that it shares with others.
    shared = {f"[k{title[1:]}]": rows(text) for title, text in page.items() if "Keys of" in title}
    assert len(shared) == 4
    schema = json.loads(document())
    definitions = {name.removeprefix("traffic_"): each for name, each in schema["$defs"].items()}
    (_, _), (_, page_object) = tables("Pages", definitions["page"])
    named = {
        "scenario": ("General keys", schema),
        "link": ("Links", definitions["link"]),
        "page object": ("objects", page_object),
    }
    for name, keys in _core.scenario_keys().items():
        title, table = named.get(name) or (name, definitions[name])
        parts = [rows(page[title]), *(part for link, part in shared.items() if link in page[title])]
        # The core does not read the tables on what is done with a scenario.
        all_keys = [*keys, *(NAMES if name == "scenario" else ())]
        # Each key stands in one place.
        assert sorted(key for part in parts for key in part) == sorted(all_keys), name
        for part in parts:
            check_rows(part, table)


def test_the_reference_has_every_key_of_the_tables_in_a_scenario() -> None:
    page = sections("docs/reference/scenario.md")
    schema = json.loads(_core.scenario_schema())
    definitions = schema["$defs"]
    found = [
        *tables("Links", definitions["link"]),
        *tables("Pages", definitions["page"]),
        *tables("Random sizes", definitions["amount"]),
        *tables("Random times", definitions["wait"]),
        *tables("Arms", schema["properties"]["arms"]),
    ]
    assert {title for title, _ in found} >= {"trace", "loss", "jitter", "changes", "stations"}
    for title, table in found:
        present = {key for key, value in table["properties"].items() if "deprecated" not in value}
        # Distributions are several tables in one section.
        for part in page[title].split("\n\n"):
            if rows(part).keys() == present:
                check_rows(rows(part), table)
                break
        else:
            pytest.fail(f"the reference lacks {title}: {', '.join(present)}")


def check_rows(documented: dict[str, list[str]], table: dict[str, Any]) -> None:
    """Check default, choices and description of each row."""
    alternatives = [key for form in table.get("oneOf", []) for key in form["required"]]
    for key, (_, default, allowed, description) in documented.items():
        value = table["properties"][key]
        required, one_of = key in table.get("required", []), key in alternatives
        assert (default == "*required*", default.startswith("*this or*")) == (required, one_of), key
        assert ("default" not in value) or default == f"`{json.dumps(value['default'])}`", key
        assert all(f"`{json.dumps(choice)}`" in allowed for choice in value.get("enum", [])), key
        assert description == value["description"], key


def test_the_tables_of_metrics_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "metrics_doc.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    kinds = re.findall(r"<!-- metrics: (\w+) -->", text)
    assert kinds == ["run", "study", "study_group", "group", "class", "link", "application"]


def test_every_column_of_a_run_is_in_the_catalogue(result: sj.Result) -> None:
    quantities = Quantities(result)
    columns = [*quantities.of_runs.columns[2:], "driver_up_ms_p95"]
    metrics = naming.described(columns)
    assert [metric.column for metric in metrics] == columns
    assert all(metric.description for metric in metrics)
    assert {column: metric.unit for column, metric in zip(columns, metrics, strict=True)}[
        "sojourn_up_ms_p95"
    ] == "ms"
    with pytest.raises(
        sj.ResultError, match=r'^unknown metric "ping_ms_p98"; did you mean "ping_ms_p99"'
    ):
        naming.described(["ping_ms_p98"])


def test_the_glance_names_metrics_of_the_catalogue() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    glance = text.split("\n## Per run\n")[0]
    rows = [line for line in glance.splitlines() if line.startswith("| ") and "`" in line]
    at_a_glance = {
        name
        for row in rows
        if len(row.split("|")) > 6
        for name in re.findall(r"`(\w+)`", row.split("|")[4])
    }
    assert len(at_a_glance) > 10
    assert at_a_glance <= {metric.column for metric in catalogue.METRICS}


def test_the_coverage_of_intervals_is_that_of_the_validity_rules() -> None:
    section = sections("docs/metrics.md")["How far to trust an interval"]
    sizes, shares = (
        re.findall(r"\d+", line)
        for line in re.findall(r"^\| (?:n|share) .*", section, re.MULTILINE)
    )
    documented = {int(n): int(share) for n, share in zip(sizes, shares, strict=True)}
    assert documented == validity.COVERAGE_PERCENT
    assert f"fewer than {validity.FEW_RUNS} runs" in section


@pytest.mark.parametrize(
    "document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md"]
)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    file = ROOT / document
    for target in re.findall(r"\]\(([^)#:]+)\)", file.read_text(encoding="utf-8")):
        assert (file.parent / target).exists(), target


def test_links_between_pages_of_the_site_lead_to_pages() -> None:
    matching = pytest.importorskip("sphinx.util.matching")
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    site = {*matching.get_matching_files(ROOT, conf["include_patterns"], conf["exclude_patterns"])}
    assert {"README.md", "docs/index.md", "tests/vectors/README.md"} <= site
    missing = [
        f"{page}: {target}"
        for page in sorted(site)
        for target in re.findall(r"\]\(([^)#:]+\.md)", (ROOT / page).read_text(encoding="utf-8"))
        # The build of the documentation writes these.
        if "generated/" not in target
        if os.path.normpath(Path(page).parent / target) not in site
    ]
    assert missing == []


def pages() -> list[Path]:
    """Every page of Markdown in the repository that is written by hand, at least in part."""
    folders = ("docs", "papers", "examples", "benches", "tests", "crates")
    found = [file for part in folders for file in (ROOT / part).rglob("*.md")]
    return [*ROOT.glob("*.md"), *(file for file in found if "generated" not in file.parts)]


def test_every_target_of_make_in_a_document_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):(?!=)", makefile, re.MULTILINE))
    assert {"test", "reference", "new-queue"} <= targets
    named = {
        (file.relative_to(ROOT).as_posix(), target)
        for file in pages()
        for target in makes(file.read_text(encoding="utf-8"))
    }
    assert {target for _, target in named} >= {"setup", "test", "mutants", "new-cc"}
    assert sorted(each for each in named if each[1] not in targets) == []


def makes(text: str) -> list[str]:
    """The targets of make that a document names, in code spans and at the start of a command."""
    blocks = re.findall(r"^ *```(?:sh|console)?\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    target = "([a-z0-9-]+)"
    commands = [
        name
        for block in blocks
        for name in re.findall(rf"^ *(?:\$ )?make {target}", block, re.MULTILINE)
    ]
    return [*re.findall(rf"`make\s+{target}", text), *commands]


def test_targets_of_make_are_found_in_spans_and_shell_blocks() -> None:
    text = (
        "A `make\ncheck`.\n\n```sh\nmake test   # all\n$ make docs\nsojourn make x\n```\nmake y\n"
    )
    assert makes(text) == ["check", "test", "docs"]


def test_lines_of_prose_have_at_most_120_characters() -> None:
    long, count = [], 0
    for file in pages():
        code = False
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            code ^= line.startswith("```")
            count += 1
            # A row of a table and the address of a link cannot be broken.
            if not code and not re.match(r" *\||\[[^\]]+\]:", line) and len(line) > 120:
                long.append(f"{file}:{number}")
    assert count > 3000
    assert not long


def test_the_readme_says_when_to_use_each_command() -> None:
    table = sections("README.md")["Which command when"]
    named = re.findall(r"`sojourn (live ctl|[a-z0-9-]+)", table)
    commands = [name for panel in app.COMMANDS.values() for name, _, _ in panel]
    assert set(named) == set(commands)


def test_the_reference_of_the_command_line_has_whole_summaries(tmp_path: Path) -> None:
    write = "import sys, pathlib; import sojourn_reference as r; r._write_cli(pathlib.Path.cwd())"
    path = {**os.environ, "PYTHONPATH": str(ROOT / "docs" / "_ext")}
    subprocess.run([sys.executable, "-c", write], cwd=tmp_path, env=path, check=True)
    text = (tmp_path / "cli.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\* `([a-z0-9-]+)`: (.*)", text, re.MULTILINE)
    assert len(listed) > 20
    assert [line for line in listed if not line[1].endswith(".") or "..." in line[1]] == []


def test_the_reference_of_python_begins_with_what_is_used_first(tmp_path: Path) -> None:
    write = (
        "import sys, pathlib; import sojourn_reference as r; r._write_python(pathlib.Path.cwd())"
    )
    # A copy of the checkout may be in the path before the package that is installed.
    places = [str(ROOT / "docs" / "_ext"), os.environ.get("PYTHONPATH", "")]
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    subprocess.run([sys.executable, "-c", write], cwd=tmp_path, env=path, check=True)
    pages = re.findall(
        r"^\* \[.+?\]\((\w+)\.md\)", (tmp_path / "python.md").read_text(), re.MULTILINE
    )
    assert pages[:4] == ["result", "sweep", "search", "live"]
    listed = {
        page: re.findall(
            r"^\.\. auto\w+:: (\S+)", (tmp_path / f"{page}.md").read_text(), re.MULTILINE
        )
        for page in pages
    }
    assert listed["result"][:3] == ["run", "compare", "Result"]
    assert listed["scenario"][:3] == ["Scenario", "Link", "Arm"]
    documented = [name.removeprefix("sojourn.") for names in listed.values() for name in names]
    assert sorted(documented) == sorted([*sj.__all__, *gym.__all__])


def test_the_own_queue_of_the_readme_keeps_the_contract(tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Your own queue")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    (tmp_path / "ramp.py").write_text(code[1], encoding="utf-8")
    sj.testing.check_qdisc(f"{tmp_path}/ramp.py:Ramp")


def numbers(file: str, pattern: str) -> list[int]:
    """The numbers of the only place of a document that has the pattern, whatever its lines."""
    (found,) = re.finditer(pattern, " ".join((ROOT / file).read_text(encoding="utf-8").split()))
    return [int(number) for number in found.groups()]


def test_the_paper_has_the_figures_of_the_repository() -> None:
    paper = "joss/paper.md"
    agree = numbers(paper, r"(\d+) of (\d+) values, such as")
    assert agree == numbers("README.md", r"(\d+) of (\d+) values are within their tolerance")
    scores = r"\| \*\*Sojourn and Linux\*\* \| (\d+) \| (\d+) \|"
    assert agree == numbers("docs/validation/parity.md", scores)[::-1]

    verdicts = (
        r"(\d+) are reproduced, (\d+) in a weaker form, (\d+) are not, and (\d+) are undecided"
    )
    total = r"\| total (?:\| [^|]+){2}" + 5 * r"\| (\d+) "
    for file in ("README.md", "papers/README.md"):
        claims, reproduced, direction, undecided, missed = numbers(file, total)
        assert numbers(paper, r"their (\d+) claims") == [claims]
        assert numbers(paper, verdicts) == [reproduced, direction, missed, undecided]

    times = r"\(Sojourn is (\d+) times as fast\) \| "
    row = r"\| ns-3 [\d.]+ \(Debian\) \| [^|]+ \| " + 4 * (r"[\d.]+ " + times)
    speeds = numbers("docs/validation/performance.md", row)
    assert numbers(paper, r"takes (\d+) to (\d+) times") == [min(speeds), max(speeds)]


def test_no_document_counts_the_queues() -> None:
    queues = len(json.loads(_core.qdisc_catalogue()))
    # A new queue would be one more file to edit.
    noun = r"[^.|\n]{0,40}\b(queue|discipline|profile)"
    unit = r"(?! (%|[nµm]?s|\w?bit|packets)(?!\w))"
    counted = re.compile(rf"\b{queues}\b{unit}{noun}", re.IGNORECASE)
    assert counted.search(f"[{queues} queue disciplines](docs/qdiscs/README.md)")
    for path in [*DOCUMENTS, *ROOT.glob("*.md")]:
        assert not counted.search(path.read_text(encoding="utf-8")), path


def test_readme_and_the_first_tutorial_install_in_the_same_way() -> None:
    blocks = [
        re.search(r"## Install\n.*?```sh\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
        for name in ("README.md", "docs/tutorials/first_comparison.md")
    ]
    readme, tutorial = (block[1] for block in blocks if block is not None)
    assert readme == tutorial
    assert "venv" in readme


def test_the_exit_codes_are_those_of_the_command() -> None:
    text = (ROOT / "docs" / "policy.md").read_text("utf-8")
    section = text.partition("## Exit codes")[2].partition("## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert documented == {
        *(0, 1, app.USAGE, app.ENVIRONMENT, app.INVALID),
        *(process.SIGNALLED + number for number in process.NUMBERS),
    }


def test_the_units_of_scenarios_are_accepted() -> None:
    text = (ROOT / "docs" / "scenario.md").read_text("utf-8")
    times = re.findall("`(.+?)`", re.findall(r"^\| times \|(.*)$", text, re.MULTILINE)[0])
    assert len(times) == 13
    for unit in times:
        assert _core.parse_time_s(f"5{unit}") > 0.0
    for power, prefix in enumerate(("", "k", "m", "g", "t")):
        for rate in (f"8{prefix}bit", f"8{prefix}bit/s", f"1{prefix}bps", f"1{prefix.upper()}Bps"):
            assert _core.parse_rate_bits_per_s(rate) == 8 * 1000**power
        for size in (f"3{prefix}b", f"3{prefix}", f"24{prefix}bit"):
            assert _core.parse_size_bytes(size) == 3 * 1024**power
        if prefix:
            assert _core.parse_rate_bits_per_s(f"3{prefix}ibit") == 3 * 1024**power
            assert _core.parse_size_bytes(f"3{prefix}ib") == 3 * 1024**power
            assert _core.parse_size_bytes(f"3{prefix}i") == 3 * 1024**power
