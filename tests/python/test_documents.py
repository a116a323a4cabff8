"""What documents show is true."""

import re
import shlex

import pytest

import sojourn as sj
from shell import ROOT, Command
from sojourn.result import app_metrics, flow_groups
from sojourn.result.metrics import per_run_metrics
from sojourn.studies import study

SNIPPETS = re.findall(
    r"^```python\n(.*?)^```",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)


def test_the_readme_shows_python() -> None:
    assert SNIPPETS


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_of_the_readme_runs(
    snippet: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    exec(compile(snippet, "README.md", "exec"), {})  # noqa: S102 - our own README


def test_the_readme_shows_commands_that_exist(sojourn: Command) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [
        shlex.split(line, comments=True)
        for line in re.findall(r"^sojourn (compare.*)", text, re.MULTILINE)
    ]
    assert len(commands) > 3
    for words in commands:
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


def test_the_scenario_of_the_reference_is_valid() -> None:
    text = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    # The first is whole; what follows is one key's.
    assert sj.Scenario.from_toml(blocks[0]).runs == 20


def test_every_metric_of_a_run_is_defined(result: sj.Result) -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    per_run = per_run_metrics(
        result.flows, result.links, result.pings, warmup_s=2.0, measured_s=3.0
    )
    for column in (*per_run.columns[2:], "driver_up_ms_p95"):
        general = re.sub(r"^(goodput|jain)_(up|down)", r"\1_<direction>", column)
        general = re.sub(r"^(sojourn|driver)_(up|down)", r"\1_<link>", general)
        assert f"`{general}`" in text


def test_every_metric_of_groups_and_applications_is_defined() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    glance, below = text.split("\n## Per run\n")
    # `duration_s_p95` is written `_p95`, beside the mean.
    named = below.replace("`_p50`", "").replace("`_p95`", "`duration_s_p95` `fct_s_p95`")
    columns = {metric.column for metric in (*flow_groups.METRICS, *app_metrics.METRICS)}
    assert {column for column in columns if f"`{column}`" not in named} == set()
    rows = [line for line in glance.splitlines() if line.startswith("| ") and "`" in line]
    at_a_glance = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[4])}
    assert len(at_a_glance) > 10
    assert at_a_glance <= columns | {"induced_latency_ms", "latency_above_base_ms"}


@pytest.mark.parametrize(
    "document",
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/README.md"],
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
