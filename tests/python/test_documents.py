"""What documents show is true."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sojourn as sj
from shell import ROOT, Command
from sojourn.result import catalogue
from sojourn.studies import study

DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts),
]


def snippets(language: str) -> list[tuple[str, str]]:
    """Every fenced block of a language in README.md and docs, with the name of its file."""
    return [
        (str(path.relative_to(ROOT)), block)
        for path in DOCUMENTS
        for block in re.findall(
            rf"^```{language}\n(.*?)^```",
            path.read_text(encoding="utf-8"),
            re.DOTALL | re.MULTILINE,
        )
    ]


def commands(text: str) -> list[list[str]]:
    """The arguments of each ``sojourn`` command in a shell block."""
    lines = re.findall(r"^sojourn +(.*)", text.replace("\\\n", " "), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def test_there_are_snippets_of_every_language() -> None:
    assert {file for file, _ in snippets("python")} >= {"README.md", "docs/howto/overhead.md"}
    assert len(snippets("toml")) >= 8
    assert len(snippets("sh")) > 5


@pytest.mark.parametrize(("file", "snippet"), snippets("python"))
def test_python_in_documents_runs(
    file: str, snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, file, "exec"), {})  # noqa: S102 - our own documents


@pytest.mark.parametrize(("file", "snippet"), snippets("toml"))
def test_toml_in_documents_is_valid(file: str, snippet: str) -> None:
    keys = tomllib.loads(snippet)
    if "duration" in keys:
        assert sj.Scenario.from_toml(snippet).runs > 0, file


def test_commands_in_documents_exist(sojourn: Command) -> None:
    lines = [words for _, block in snippets("sh") for words in commands(block)]
    assert len(lines) > 10
    known = sojourn("--help").stdout
    for words in lines:
        assert re.search(rf"\b{words[0]}\b", known), words
        if words[0] == "compare":
            plain = words[: words.index(">")] if ">" in words else words
            done = sojourn(*plain, *([] if "--generate" in plain else ["--dry-run"]))
            assert done.returncode == 0, done.stderr


def test_the_glossary_has_every_abbreviation_of_the_metrics_in_order() -> None:
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| \*\*(.+?)\*\*", text, re.MULTILINE)
    assert words == sorted(words, key=str.lower)
    glance = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8").split("\n## Per run\n")[0]
    short = set(re.findall(r"^\| [^|]*?\b([A-Z]{3})\b", glance, re.MULTILINE))
    assert {"PLT", "MOS", "RPM"} <= short
    assert short <= set(words)


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
    assert kinds == ["run", "study", "group", "application"]


def test_every_column_of_a_run_is_in_the_catalogue(result: sj.Result) -> None:
    columns = [*result.per_run.columns[2:], "driver_up_ms_p95", *study.per_run(result).columns[2:]]
    metrics = catalogue.described(columns)
    assert [metric.column for metric in metrics] == columns
    assert all(metric.description for metric in metrics)
    assert {column: metric.unit for column, metric in zip(columns, metrics, strict=True)}[
        "sojourn_up_ms_p95"
    ] == "ms"
    with pytest.raises(sj.ResultError, match="unknown metric"):
        catalogue.described(["speed"])


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


@pytest.mark.parametrize(
    "document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md"]
)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    file = ROOT / document
    for target in re.findall(r"\]\(([^)#:]+)\)", file.read_text(encoding="utf-8")):
        assert (file.parent / target).exists(), target


def test_every_study_has_its_verdict() -> None:
    for table in (ROOT / "papers").glob("*/published.csv"):
        loaded = study.load(table.parent)
        verdict = (table.parent / "README.md").read_text(encoding="utf-8")
        assert f"verdict on {loaded.name}:" in verdict


def test_the_readme_shows_what_the_command_prints(sojourn: Command) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^```console\n\$ sojourn (.*?)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert shown is not None
    printed = sojourn(*shlex.split(shown[1])).stdout.splitlines()
    # Columns on the right are cut.
    lines = shown[2].splitlines()
    assert len(lines) == 5
    assert [line[: len(left)] for line, left in zip(printed, lines, strict=False)] == lines


def test_the_readme_counts_the_queues(sojourn: Command) -> None:
    queues = json.loads(sojourn("qdiscs", "--json").stdout)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"[{len(queues)} queue disciplines]" in text
    assert f"| {len(queues)}, with kernel and RFC profiles |" in text
