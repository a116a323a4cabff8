"""Metrics of the classes of queues: L4S and classic traffic through one bottleneck."""

import pytest

import sojourn as sj
from sojourn import report
from sojourn.cli import printed

TINS = ["tin 0", "tin 1", "tin 2", "tin 3"]


@pytest.fixture(scope="module")
def l4s() -> sj.Result:
    """CUBIC and Prague through a queue with two classes and through one without."""
    return sj.run(
        sj.Scenario(
            links={"up": sj.Link(rate="20mbit", qdisc="pie"), "down": "unlimited"},
            traffic=[
                sj.Tcp(direction="up", name="cubic", start_jitter="50ms"),
                sj.Tcp(direction="up", name="prague", cc="prague", start_jitter="50ms"),
            ],
            arms=[
                sj.Arm(name="dualpi2", set={"links.up.qdisc": "dualpi2"}),
                sj.Arm(name="pie", set={}),
                sj.Arm(name="dualpi2 rfc", set={"links.up.qdisc": "dualpi2 profile rfc"}),
            ],
            rtt="20ms",
            duration="14s",
            warmup="3s",
            replications=2,
        )
    )


def test_the_classes_add_up_to_the_link(l4s: sj.Result) -> None:
    classes = l4s.classes.filter(arm="dualpi2", replication=0)
    link = l4s.links.filter(arm="dualpi2", replication=0).row(0, named=True)
    assert classes["class"].to_list() == ["L", "C"]
    for column in ("sent_packets", "sent_bytes", "drops_aqm", "marks_aqm", "marks_ce_threshold"):
        assert classes[column].sum() == link[column], column
    assert classes["sojourn_ms_max"].max() == link["sojourn_ms_max"]


def test_a_class_has_its_own_delay_rate_and_signals(l4s: sj.Result) -> None:
    rows = {row["group"]: row for row in l4s.table("class").filter(arm="dualpi2").to_dicts()}
    low, classic = rows["up: L"], rows["up: C"]
    assert low["sojourn_ms_p99"] < 3 < classic["sojourn_ms_mean"]
    assert low["drops"] == 0 < low["marks"]
    assert 15 < low["sent_mbit_per_s"] + classic["sent_mbit_per_s"] < 20.1
    assert set(l4s.table("class")["arm"]) == {"dualpi2", "dualpi2 rfc"}
    summary = l4s.summary("class").filter(arm="dualpi2", group="up: L", metric="sojourn_ms_mean")
    assert summary["n"].item() == 2
    compared = l4s.difference("dualpi2", "dualpi2 rfc", "class")
    assert set(compared["group"]) == {"up: L", "up: C"}
    assert l4s.difference("dualpi2", "pie", "class").is_empty()


def test_the_classes_are_in_the_report_the_table_and_the_json(
    l4s: sj.Result, capsys: pytest.CaptureFixture[str]
) -> None:
    page = report.html(l4s)
    section = page[page.index("<h2>Classes of queues") :]
    assert section.count('<th scope="row">up: L</th>') == 3
    document = printed.document(l4s)
    assert {row["group"] for row in document["classes"]} == {"up: L", "up: C"}
    assert {row["arm"] for row in document["class_differences"]} == {"dualpi2 rfc"}
    printed.show(l4s, everything=True)
    text = capsys.readouterr().out
    assert "up: L" in text
    # The groups of traffic show who got what.
    assert [line.split()[1] for line in text.splitlines() if line.startswith("prague")][:2] == [
        "dualpi2",
        "pie",
    ]


@pytest.fixture(scope="module")
def hashed() -> sj.Result:
    """Three flows through four classes, which each run hashes to others of them."""
    return sj.run(
        sj.Scenario(
            links={"up": sj.Link(rate="10mbit", qdisc="drr classes 4"), "down": "unlimited"},
            traffic=[sj.Tcp(direction="up", count=3, start_jitter="50ms")],
            arms=[
                sj.Arm(name="drr", set={}),
                sj.Arm(name="cake", set={"links.up.qdisc": "cake diffserv4"}),
            ],
            rtt="20ms",
            duration="14s",
            warmup="3s",
            replications=4,
        )
    )


def test_means_count_the_runs_in_which_a_class_had_no_packet(hashed: sj.Result) -> None:
    seen = hashed.classes.filter(arm="drr").group_by("class").len()["len"]
    assert seen.min() < 4 < len(seen) + 1, "hashed to the same classes in every run"  # type: ignore[operator]
    for arm in hashed.arms:
        rows = hashed.summary("class").filter(arm=arm, metric="sent_mbit_per_s")
        assert rows["n"].to_list() == [4] * rows.height
        link = hashed.links.filter(arm=arm)["sent_bytes"].sum() * 8e-6 / 11 / 4
        assert rows["mean"].sum() == pytest.approx(link)
    idle = hashed.table("class").filter(arm="drr", sent_mbit_per_s=0.0)
    assert idle.height > 0
    assert idle["drops"].sum() == 0
    assert idle["sojourn_ms_mean"].null_count() == idle.height


def test_classes_have_a_fixed_order(hashed: sj.Result) -> None:
    for arm, classes in (("drr", ["class 0", "class 1", "class 2", "class 3"]), ("cake", TINS)):
        rows = hashed.table("class").filter(arm=arm)
        assert rows["group"].to_list() == [f"up: {name}" for name in classes] * 4
    changed = hashed.difference("drr", "cake", "class")
    assert changed.is_empty()


def test_the_tables_leave_out_classes_that_never_had_a_packet(hashed: sj.Result) -> None:
    page = report.html(hashed)
    assert '<th scope="row">up: tin 1</th>' in page
    assert '<th scope="row">up: tin 3</th>' not in page
    assert any(row["group"] == "up: tin 3" for row in printed.document(hashed)["classes"])
