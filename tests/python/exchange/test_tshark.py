"""The import finds in captures of iperf3 what tshark finds: bytes, retransmissions and RTT."""

import pytest

from support import captures

FIGURES = captures.figures()


def test_there_are_twenty_captures_with_retransmissions_of_each_kind() -> None:
    assert len(FIGURES) == 20
    totals = [entry["tshark"] for entry in FIGURES.values()]
    for kind in ("retransmissions", "out_of_order"):
        assert sum(total[kind] > 0 for total in totals) >= 4, kind
    assert all((captures.FOLDER / name).stat().st_size < 100_000 for name in FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_the_import_finds_what_tshark_found(name: str) -> None:
    """All figures are equal, to the rounding of the mean."""
    assert captures.by_sojourn(captures.FOLDER / name) == pytest.approx(FIGURES[name]["tshark"])


@pytest.mark.parametrize("name", [name for name in FIGURES if FIGURES[name]["at"] != "server"])
def test_retransmissions_at_the_sender_are_those_of_its_kernel(name: str) -> None:
    """iperf3 prints those of its data connections until it ends; the capture has all."""
    ours = captures.by_sojourn(captures.FOLDER / name, "event")
    theirs = FIGURES[name]["iperf3"]["retransmits"]
    assert ours["retransmissions"] == pytest.approx(theirs, abs=5)
    assert ours["out_of_order"] == 0


@pytest.mark.skipif(captures.TSHARK is None, reason="tshark is not installed")
@pytest.mark.parametrize("name", FIGURES)
def test_tshark_still_finds_the_same(name: str) -> None:
    """Of another version than 4.0 this need not be so; then the rule has changed."""
    assert captures.by_tshark(captures.FOLDER / name) == pytest.approx(FIGURES[name]["tshark"])
