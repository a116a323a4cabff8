"""The tools that write parts of documents."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import count
import measured
import performance
import pytest
import skipped
from generators.modules import _sentence

from support.shell import ROOT

TARGET = "parity-update"
BEGIN = measured.BEGIN.format(name="delays", target=TARGET)
END = measured.END.format(name="delays")
TABLE = "| queue | ms |\n|---|---|\n| fifo | 100.0 |"
SEVEN_LINES = '''"""Module."""

import os  # why
# A comment
def f(
    a: int,
) -> str:
    """One line.

    More.
    """
    text = """two
lines"""
    return text
'''


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


def test_lines_of_code_are_counted_without_docstrings_comments_and_tests() -> None:
    assert count.code_lines(SEVEN_LINES) == 7
    rust = "//! A crate.\n\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n"
    assert count.rust_lines(rust) == 4
    assert count.rust_lines(rust.replace("#[cfg(test)]", "")) == 8


def test_sizes_are_those_of_a_tree_and_compared_with_their_limits(tmp_path: Path) -> None:
    package, source = tmp_path / "python/sojourn", tmp_path / "crates/net/src"
    for folder in (package, source / "tests"):
        folder.mkdir(parents=True)
    (package / "a.py").write_text("import os\n\n")
    (package / "b.py").write_text(f'"""Names.\n\n{count.GENERATED}generate.py.\n"""\nimport os\n')
    for name, lines in {"lib": 10, "tests": 100, "tests/units": 100, "time": 20}.items():
        (source / f"{name}.rs").write_text("//! A file.\n" * lines)
    size = count.measure(tmp_path)
    assert size == count.Size(
        python_files=2,
        python_lines=7,
        python_code=1,
        rust_files=2,
        rust_lines=30,
        rust_median=15,
    )
    written: list[str] = []
    assert not count.report(size, written.append)
    assert [line.endswith("missed") for line in written] == [False] * 5 + [True]


def test_the_last_line_of_make_test_says_what_was_skipped(tmp_path: Path) -> None:
    assert skipped.summary("make test", []) == "make test: every check and every test passed"
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_a(n): pytest.skip('ping is not installed')\n"
        "@pytest.mark.skipif(True, reason='no\\nroot')\n"
        "def test_b(): pass\n"
        "def test_c(): pass\n"
    )
    hook = (ROOT / "tests/python/conftest.py").read_text(encoding="utf-8")
    begin = hook.index("def pytest_terminal_summary")
    (tmp_path / "conftest.py").write_text(
        "import os\nfrom pathlib import Path\nfrom typing import Any\n"
        + hook[begin : hook.index("\n\n\n", begin)]
    )
    list_ = tmp_path / "skipped.txt"
    list_.write_text("tshark is not installed\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1", str(tmp_path)],
        env=os.environ | {"SOJOURN_SKIPPED": str(list_)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert skipped.summary("make test", list_.read_text().splitlines()) == (
        "make test: passed, but 4 skipped: ping is not installed (2), "
        "tshark is not installed (1), no root (1)"
    )
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^test: compile ##.*\n((?:\t.*\n)+)", make, flags=re.MULTILINE)
    assert recipe is not None
    assert recipe[1].splitlines()[-1] == (
        "\t@$(PYTHON) tools/skipped.py 'make test' $(SOJOURN_SKIPPED)"
    )
