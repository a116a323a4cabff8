"""What the README shows runs."""

import re

import pytest

from shell import ROOT

BLOCKS = re.findall(
    r"^```python\n(.*?)^```",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)


def test_the_readme_shows_python() -> None:
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS)
def test_a_snippet_runs(block: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own README
