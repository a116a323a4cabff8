"""Terminals and pipes: tables that fit, notes whose numbers keep their units."""

import re
import sys

import pytest

from sojourn.presentation import terminal
from sojourn.presentation.model import Code, Estimate, Items, Paragraph, Section, Table

TABLE = Table(
    ["arm", "goodput up [Mbit/s]", "ping under load [ms]", "drops"],
    [["fq\tcodel", Estimate(9.1, 9.0, 9.2, 1), Estimate(12.0), "3"], ["pie", "–", "7", "12"]],
    "a title",
)


def narrow(monkeypatch: pytest.MonkeyPatch, columns: int = 40) -> None:
    """Make the output a terminal of some columns."""
    monkeypatch.setenv("COLUMNS", f"{columns}")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def test_a_pipe_gets_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_table(TABLE)
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "a title"
    assert head.split("  ")[0] == "arm"
    assert rows[0] == r"fq\tcodel             9.1 ±0.1                    12      3"
    assert rows[-1] == ""
    assert {len(line) for line in (head, *rows[:-1])} == {len(head)}


def test_a_wide_table_continues_below_with_its_first_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 30)
    terminal.print_table(TABLE)
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert lines.count("a title") == 2
    assert sum("fq\\tcodel" in line for line in lines) == 2
    assert max(map(len, lines)) <= 30


def test_columns_that_do_not_fit_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for width, shown in (("20", 1), ("38", 2), ("80", 3)):
        monkeypatch.setenv("COLUMNS", width)
        assert terminal.print_fitting(TABLE) == shown
        text = capsys.readouterr().out
        assert ("drops" in text) == (shown == 3)
        assert "goodput up" in text


def test_a_note_is_wrapped_but_a_number_keeps_its_unit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch)
    for filler in range(20, 40):
        terminal.print_note(f"{'x' * filler} takes 12.5 Mbit/s more than −3 % of it")
        text = capsys.readouterr().out
        assert "12.5 Mbit/s" in text
        assert "−3 %" in text
        assert max(map(len, text.splitlines())) <= 40


def test_a_document_is_printed_without_what_explains_its_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    quiet = Paragraph("explained", quiet=True)
    terminal.show([Section("s", [Paragraph("said"), quiet, TABLE, Items(["one"]), Code("tc -s")])])
    text = capsys.readouterr().out
    assert "explained" not in text
    said, title, *_, item, code = text.splitlines()
    assert (said, title, item, code) == ("said", "a title", "  one", "tc -s")


def test_a_table_is_turned() -> None:
    turned = TABLE.turned()
    assert turned.columns == ["metric", "fq\tcodel", "pie"]
    assert turned.rows[2] == ["drops", "3", "12"]
