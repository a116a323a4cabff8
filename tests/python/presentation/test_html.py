"""HTML of documents: whatever a text contains, it cannot become an element."""

import re
from dataclasses import fields
from typing import get_args

import pytest

from sojourn.presentation import html
from sojourn.presentation.model import (
    Bar,
    Block,
    Code,
    Column,
    Document,
    Estimate,
    Figures,
    Image,
    Inline,
    Items,
    Keyed,
    Legend,
    Markup,
    Named,
    Note,
    Paragraph,
    Quote,
    Section,
    Styled,
    Table,
    Verdict,
)
from support.outline import Outline

EVIL = "<script>alert('1')</script>\" onload=\"x&"
INLINE: list[Inline] = [
    EVIL,
    Estimate(1.0, 0.5, 1.5, 2),
    Verdict(EVIL, "bad", EVIL),
    Styled(EVIL, "link", EVIL),
    Styled(EVIL, "code"),
    Named(EVIL, 1),
    Keyed(EVIL, 3.0),
    Bar(0.5),
]
TABLE = Table([EVIL, Column(EVIL, EVIL)], [[EVIL, one] for one in INLINE], EVIL)
BLOCKS: list[Block] = [
    Paragraph(INLINE),
    Items([EVIL, INLINE]),
    TABLE,
    Code(EVIL),
    Quote(EVIL, EVIL),
    Figures([html.tag("figure", EVIL)]),
    Image(EVIL, EVIL),
    Legend([EVIL], EVIL),
    Legend([EVIL], boxes=False),
    Note(EVIL, [Paragraph(EVIL)], "invalid"),
    Section(EVIL, [Section(EVIL, [TABLE], folded=True)], folded=True),
]


def test_every_kind_of_block_and_text_is_escaped() -> None:
    assert {type(block) for block in BLOCKS} == set(get_args(Block)) - {Markup}
    assert {type(part) for part in INLINE} == set(get_args(Inline))
    document = Document(title=EVIL, head=BLOCKS, content=BLOCKS, meta={"x": EVIL})
    for text in (html.page(document), html.fragment(BLOCKS), html.inner(BLOCKS)):
        assert "<script" not in text
        assert not re.search(r'" onload="', text)
        outline = Outline()
        outline.feed(text)
        assert outline.open == []
    assert "alert(" in html.page(document)
    assert len(fields(document)) == 6


def test_a_page_has_a_policy_and_only_its_own_script() -> None:
    page = html.page(Document(title="t"))
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert "<script" not in page
    sortable = html.page(Document(title="t", is_sortable=True))
    (script,) = re.findall(r"<script>(.*?)</script>", sortable, flags=re.DOTALL)
    assert html.security(script) in sortable


def test_sections_without_content_are_left_out() -> None:
    empty: list[Block] = [Section("a", [Section("b", [Items([]), Figures([])])]), Items([])]
    assert html.inner(empty) == ""
    page = html.page(Document(title="t", content=[Section("whole", [Paragraph("x")]), *empty]))
    assert page.count("<section>") == 1


@pytest.mark.parametrize(
    ("estimate", "below", "line"),
    [
        (Estimate(9.123, 9.09, 9.15, 2), "9.12<small>9.09 to 9.15</small>", "9.12 ±0.03"),
        (
            Estimate(-68.0, -72.0, -64.0, 0, signed=True, clear=True),
            "−68*<small>[−72, −64]</small>",
            "−68* [−72, −64]",
        ),
        (Estimate(5.0, decimals=1), "5.0", "5.0"),
        (Estimate(0.001, -1.0, 1.0, 1, signed=True, clear=True), "0.0<small>[", "0.0 [−1.0, +1.0]"),
        (Estimate(None), "–", "–"),
    ],
)
def test_pages_have_intervals_below_values_and_notebooks_beside_them(
    estimate: Estimate, below: str, line: str
) -> None:
    table = Table(["arm", "x"], [["a", estimate]])
    assert f"<td>{below}" in html.inner([table])
    assert f"<td>{line}</td>" in html.fragment([table])


def test_cells_are_sorted_by_numbers_and_missing_ones_have_none() -> None:
    rows = [["a", Keyed("10 ms", 0.01), Estimate(2.5, decimals=0)], ["b", "–", Estimate(None)]]
    text = html.inner([Table(["x", "y", "z"], rows, "t", kind="sortable")])
    assert '<td data-value="0.01">10 ms</td><td data-value="2.5">2</td>' in text
    assert text.count('<td data-value="">–</td>') == 2
    assert "data-value" not in html.inner([Table(["x", "y", "z"], rows)])
