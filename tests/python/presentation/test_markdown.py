"""Markdown of documents."""

import pytest

from sojourn.presentation import markdown
from sojourn.presentation.model import (
    Code,
    Image,
    Items,
    Legend,
    Paragraph,
    Section,
    Styled,
    Table,
    Verdict,
)


def test_folded_sections_are_details_with_lines_between_that_markdown_needs() -> None:
    table = Table(["a", "b"], [["x\ny", Verdict("not met", "bad", "3")], ["p|q", "<b>"]])
    text = markdown.written([Section("Claims", [Section("A < B", [table], folded=True)])])
    assert text == (
        "## Claims\n\n<details>\n<summary>A &lt; B</summary>\n\n"
        "| a | b |\n|---|---|\n| x<br>y | **3: not met** |\n| p\\|q | &lt;b> |\n\n</details>"
    )


def test_text_is_wrapped_and_styled() -> None:
    words = Paragraph([Styled("So:"), " run ", Styled("sojourn demo", "code"), " " + "word " * 40])
    text = markdown.written(
        [words, Items(["one", "two"]), Code("a  # b"), Image("T", "f.png"), Section("empty", [])]
    )
    paragraph, items, code, image = text.split("\n\n")
    assert paragraph.startswith("**So:** run `sojourn demo` word")
    assert max(map(len, paragraph.splitlines())) <= markdown.WIDTH
    assert (items, code, image) == ("* one\n* two", "```sh\na  # b\n```", "![T](f.png)")


def test_what_markdown_cannot_show_is_an_error() -> None:
    with pytest.raises(TypeError, match="no Markdown for Legend"):
        markdown.written([Legend(["a"])])
