"""The list of texts for reviewers: what is in it and what is not."""

import importlib.util
import json
from types import ModuleType
from typing import Any

from sojourn import _core
from support.shell import ROOT


def tool() -> ModuleType:
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location(
        "user_strings", ROOT / "tools" / "user_strings.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys  # noqa: PLC0415 - dataclasses look their module up

    sys.modules["user_strings"] = module
    spec.loader.exec_module(module)
    return module


def test_texts_of_python() -> None:
    source = '''
"""A module docstring is not shown."""
KEY = "name"
def run(x):
    """Run a scenario file."""
    message = f"cannot read {x}: no such file"
    print("two words")
'''
    user_strings = tool()
    plain = [text.text for text in user_strings.python_texts(source, "a.py", docstrings=False)]
    assert plain == ["cannot read {…}: no such file", "two words"]
    documented = user_strings.python_texts(source, "a.py", docstrings=True)
    assert "Run a scenario file." in [text.text for text in documented]


def test_texts_of_rust() -> None:
    source = r"""
// A "comment in quotes" is none.
const RIGHT: &str = "0% to 100% are allowed";
#[expect(clippy::x, reason = "not shown to users")]
fn f(c: char) -> String {
    let quote = '"';
    v.first().expect("not shown either");
    format!("{given} is out of \
             range: {right:?}")
}
#[cfg(test)]
mod tests { const T: &str = "in a test"; }
"""
    found = [(text.line, text.text) for text in tool().rust_texts(source, "a.rs")]
    assert found == [(3, "0% to 100% are allowed"), (8, "{…} is out of range: {…}")]


def test_headings_labels_and_docstrings_of_commands() -> None:
    source = '''
def stats(x):
    """Print the queue statistics."""
    head = ["arm", "n"]
    show(text_table(["queue", "source"], [], title="queues"))
    refuse("needs a value")
'''
    found = [text.text for text in tool().python_texts(source, "cli/stats.py", docstrings=False)]
    expected = ["Print the queue statistics.", "arm | n", "needs a value", "queue | source"]
    assert sorted(found) == sorted([*expected, "queues"])


def test_meanings_of_parameters() -> None:
    source = """
parameters! {
    /// Parameters of a queue, which nobody is shown.
    pub struct Params {
        /// Maximum number of packets
        /// in the buffer.
        pub limit: usize = 1_000 => packets(1, 100),
            "ours";
    }
}
"""
    found = [(text.line, text.text) for text in tool().rust_texts(source, "a.rs")]
    assert found == [(5, "Maximum number of packets in the buffer.")]


def test_the_repository_has_texts_of_both_languages() -> None:
    directories = [ROOT / "python" / "sojourn" / "cli", ROOT / "crates" / "net"]
    files = {text.file for text in tool().texts(directories, docstrings=False)}
    assert any(file.endswith(".py") for file in files)
    assert any(file.endswith(".rs") for file in files)


def test_markup_is_dropped_and_labels_are_kept() -> None:
    source = """
svg = f'<svg viewBox="0 0 {x} {y}" role="img"><path class="grid" d="M{x} {y}V{z}"/></svg>'
row = 'class="d{x}" cx="{y}" cy="1" r="2"'
nav = '<nav class="legend" aria-label="Arms shown in figures"><h2>Two words</h2></nav>'
"""
    found = [text.text for text in tool().python_texts(source, "a.py", docstrings=False)]
    assert found == ["Two words", "Arms shown in figures"]


def test_names_of_random_streams_are_dropped() -> None:
    source = 'let seeds = rng.fork("congestion control");'
    assert list(tool().rust_texts(source, "a.rs")) == []


def test_the_whole_list_has_what_users_read() -> None:
    listed = tool().everything()
    found = {text.text.removesuffix(".") for text in listed}
    catalogues: list[list[dict[str, Any]]] = [
        json.loads(_core.qdisc_catalogue()),
        json.loads(_core.cc_catalogue()),
    ]
    for entry in [entry for catalogue in catalogues for entry in catalogue]:
        assert {entry["summary"], *(each["meaning"] for each in entry["parameters"])} <= found
    columns = [each for table in json.loads(_core.column_catalogue()) for each in table["columns"]]
    assert {column["description"].removesuffix(".") for column in columns} <= found
    schema = json.loads(_core.scenario_schema())
    for key in schema["$defs"]["link"]["properties"].values():
        assert key["description"].removesuffix(".") in found
    for command in ("Run a scenario file", "Reproduce a published work and judge its claims"):
        assert any(text.startswith(command) for text in found), command
    assert any(text.file.endswith("_core.pyi") for text in listed)
    assert not any("<svg" in text.text or "<th " in text.text for text in listed)


def test_messages_name_no_file_that_the_installed_package_lacks() -> None:
    user_strings = tool()
    package = ROOT / "python" / "sojourn"
    # The answers of a maintainer to the questions of RFC 7928 name the source of the numbers.
    files = [path for path in sorted(package.rglob("*.py")) if path.name != "discussion.py"]
    found = [
        (path.name, text.line, text.text)
        for path in files
        for text in user_strings.python_texts(
            path.read_text(encoding="utf-8"), f"{path.relative_to(package)}", docstrings=False
        )
    ]
    assert len(found) > 1000
    assert [one for one in found if "docs/" in one[2]] == []
