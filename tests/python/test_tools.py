"""The tools that write parts of documents."""

import sys
from pathlib import Path

import measured
import pytest
from generators.architecture import _sentence

BEGIN, END = measured.BEGIN.format(name="delays"), measured.END.format(name="delays")
TABLE = "| queue | ms |\n|---|---|\n| fifo | 100.0 |"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: Path | str) -> int:
    """Call the tool as the Makefile does."""
    monkeypatch.setattr(sys, "argv", ["measured.py", *map(str, arguments)])
    return measured.main()


def test_measured_tables_are_compared_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, tables = tmp_path / "page.md", tmp_path / "tables.md"
    page.write_text(f"Before.\n\n{BEGIN}\n{END}\n\nAfter.\n")
    tables.write_text(f"# delays\n\n{TABLE}\n\n")
    assert run(monkeypatch, page, tables) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "delays; `make parity-update`" in said
    assert run(monkeypatch, page, tables, "--write") == 0
    assert page.read_text() == f"Before.\n\n{BEGIN}\n\n{TABLE}\n\n{END}\n\nAfter.\n"
    assert run(monkeypatch, page, tables) == 0
    tables.write_text(tables.read_text().replace("100.0", "100.1"))
    assert run(monkeypatch, page, tables) == 1


def test_a_section_that_is_not_measured_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, tables = tmp_path / "page.md", tmp_path / "tables.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    tables.write_text("")
    assert run(monkeypatch, page, tables) == 1


def test_the_sentence_of_a_module_keeps_its_code_spans() -> None:
    text = "Reads `[[traffic]]`, [`Foo`](x), [bar] and `a | b`. More."
    assert _sentence(text) == "Reads `[[traffic]]`, `Foo`, bar and `a \\| b`."
