"""The tools that write parts of documents."""

import json
import shutil
import sys
from pathlib import Path

import measured
import performance
import pytest
from generators.architecture import _sentence

from support.shell import ROOT

TARGET = "parity-update"
BEGIN = measured.BEGIN.format(name="delays", target=TARGET)
END = measured.END.format(name="delays")
TABLE = "| queue | ms |\n|---|---|\n| fifo | 100.0 |"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: Path | str) -> int:
    """Call the tool as the Makefile does."""
    monkeypatch.setattr(sys, "argv", ["measured.py", "--target", TARGET, *map(str, arguments)])
    return measured.main()


def test_measured_tables_are_compared_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, tables = tmp_path / "page.md", tmp_path / "tables.md"
    page.write_text(f"Before.\n\n{BEGIN}\n{END}\n\nAfter.\n")
    tables.write_text(f"test a ... \n# delays\n\n{TABLE}\nok\n\n")
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


def update(monkeypatch: pytest.MonkeyPatch, *arguments: Path | str) -> int:
    """Call the tool for the page on performance as the Makefile does."""
    monkeypatch.setattr(sys, "argv", ["performance.py", *map(str, arguments)])
    return performance.main()


def test_measurements_of_performance_are_stored_and_their_tables_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, stored, bench = (tmp_path / name for name in ("page.md", "stored.json", "bench.json"))
    shutil.copy(ROOT / performance.PAGE, page)
    shutil.copy(performance.STORED, stored)
    monkeypatch.setattr(performance, "PAGE", page)
    monkeypatch.setattr(performance, "STORED", stored)
    assert update(monkeypatch) == 0
    before = stored.read_text()
    run = {"delivered_per_cpu_s": 4e6, "peak_rss_bytes": None, "events": 30, "delivered": 10}
    bench.write_text(
        json.dumps(
            {
                # One of five scenarios is not a measurement of all.
                "S1": run | {"instructions_per_packet": 1.0},
                "idle_flow": {"waiting_bytes": 70, "done_bytes": 401},
            }
        )
    )
    assert update(monkeypatch, "--update", bench) == 0
    changed = json.loads(stored.read_text())
    kept = json.loads(before)
    assert {name for name in kept if kept[name] != changed[name]} == {"idle_flow"}
    assert "| idle flow after its end | 401 B | 400 B | missed |" in page.read_text()
    everything = {name: run | {"instructions_per_packet": None} for name in performance.RUNS}
    bench.write_text(json.dumps(everything))
    assert update(monkeypatch, "--update", bench) == 0
    instructions = f"{kept['instructions']['values']['S5']:,}"
    row = f"| S5 | 4,000 | 5,500: missed | 7,000: missed | {instructions} | 3.0 | not measured |"
    assert row in page.read_text()
    stored.write_text(before)
    assert update(monkeypatch) == 1
