"""What notebooks display of results, scenarios and verdicts."""

import importlib
import re
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

import sojourn as sj
from sojourn.result import formatting, naming
from sojourn.result.catalogue import shown


class Tags(HTMLParser):
    """The tags and the text of a piece of HTML; raises on what is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert {name for name, _ in attrs} <= {
            "class",
            "scope",
            "title",
            "tabindex",
            "role",
            "aria-label",
        }
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


@pytest.fixture(scope="module")
def hostile() -> sj.Result:
    """A result whose names are markup."""
    name = "<script>alert(1)</script>"
    return sj.run(
        sj.Scenario(
            name=name,
            links={side: sj.Link(rate="2mbit", qdisc="pfifo") for side in ("up", "down")},
            traffic=[sj.Tcp(name=f"{name} & bulk", direction="up")],
            arms=[sj.Arm(name=f"{name} arm", set={"links.up.qdisc": "codel"})],
            rtt="20ms",
            duration="2s",
            warmup="1s",
        )
    )


def test_names_in_html_are_escaped(hostile: sj.Result) -> None:
    for page in (hostile, hostile.scenario, hostile.validity):
        tags = Tags(page._repr_html_())
        table = {"div", "table", "thead", "tbody", "tr", "th", "td"}
        assert tags.seen <= {"p", "strong", "h4", "h5", *table}
    assert "<script>alert(1)</script> arm" in Tags(hostile._repr_html_()).text


def test_a_result_shows_its_verdict_and_its_summary(result: sj.Result) -> None:
    text = Tags(result._repr_html_()).text
    assert "6 of 6 runs" in text
    assert result.validity.verdict in text
    assert all(finding.text in text for finding in result.validity.findings)
    # Labels, units and digits are those of the other tables.
    assert "goodput up [Mbit/s]" in text
    assert "goodput_up_mbit_per_s" not in text
    row = result.summary().filter(arm="fq", metric="goodput_up_mbit_per_s").row(0, named=True)
    (metric,) = naming.described(["goodput_up_mbit_per_s"])
    shown = str(formatting.estimate(row, metric))
    assert re.fullmatch(r"\d\.\d+ ±0\.\d+", shown)
    assert shown in text


@pytest.fixture(scope="module")
def l4s() -> sj.Result:
    """CUBIC, Prague and a call through a queue with two classes."""
    return sj.run(
        sj.Scenario(
            links={"up": sj.Link(rate="20mbit", qdisc="dualpi2"), "down": "unlimited"},
            traffic=[
                sj.Tcp(direction="up", name="cubic"),
                sj.Tcp(direction="up", name="prague", cc="prague", start="2s", stop="3s"),
                sj.Voip(direction="up", name="call"),
            ],
            arms=[
                sj.Arm(name="dualpi2", set={}),
                sj.Arm(name="pie", set={"links.up.qdisc": "pie"}),
            ],
            rtt="20ms",
            duration="6s",
            warmup="1s",
            replications=2,
        )
    )


def test_a_result_shows_groups_classes_and_applications(l4s: sj.Result) -> None:
    text = Tags(l4s._repr_html_()).text
    assert text.index("Traffic groups") < text.index("Classes") < text.index("Applications")
    for name, arm in (("cubic", "dualpi2"), ("prague", "pie"), ("up: L", "dualpi2")):
        assert f" {name} {arm} 2 " in text
    assert "up: L pie" not in text
    assert "MOS" in text
    of_group = l4s.summary("group").filter(group="cubic", arm="pie")
    row = of_group.filter(metric="goodput_mbit_per_s_mean").row(0, named=True)
    metric = next(one for one in shown("group") if one.column == row["metric"])
    assert f" cubic pie 2 {formatting.estimate(row, metric)}" in text


def test_a_class_without_traffic_is_not_shown(l4s: sj.Result) -> None:
    quiet = l4s.scenario.replace(traffic=[sj.Tcp(direction="up", name="cubic")])
    assert "up: C" in Tags(sj.run(quiet)._repr_html_()).text
    # Prague sends only during the warm-up.
    brief = [*quiet.traffic, sj.Tcp(direction="up", name="prague", cc="prague", stop="100ms")]
    ended = sj.run(quiet.replace(traffic=brief))
    assert "up: L" in set(ended.table("class")["group"])
    assert "up: L" not in Tags(ended._repr_html_()).text


@pytest.mark.parametrize(
    ("traffic", "shown"),
    [
        (sj.Tcp(direction="up", cc="prague g 1/8"), "ecn = accurate"),
        (sj.Tcp(direction="up", cc="dctcp"), "ecn = true"),
        (sj.Tcp(direction="up", cc="dctcp", ecn="accurate"), "ecn = accurate"),
        (sj.Quic(direction="up", cc="prague"), "ecn = true"),
        (sj.Request(direction="up", cc="prague", transport="quic", bytes="1kb"), "ecn = true"),
        (sj.Tcp(direction="up"), "ecn = false"),
        (sj.Tcp(direction="up", ecn=True), "ecn = true"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.kind} {value.cc}",
)
def test_a_scenario_shows_the_ecn_that_a_control_needs(
    scenario: sj.Scenario, traffic: sj.Tcp | sj.Quic, shown: str
) -> None:
    assert f"{shown}," in Tags(scenario.replace(traffic=[traffic])._repr_html_()).text


def test_a_scenario_shows_links_traffic_and_arms(scenario: sj.Scenario) -> None:
    text = Tags(scenario._repr_html_()).text
    assert "14 s, warm-up 2 s; replications: 3, seed: 1" in text
    assert "rate = 10mbit" in text
    assert "tcp down" in text
    assert "links.up.qdisc = pfifo limit 127" in text


def test_a_missing_pandas_is_named(result: sj.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(sj.ResultError, match=r"requires pandas; .* pip install pandas"):
        result.to_pandas()
    with pytest.raises(sj.ArgumentError, match="table='pongs': unknown table; expected one of"):
        result.to_pandas("pongs")


def test_pandas_gets_columns_without_pyarrow(
    result: sj.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns are numpy arrays: polars needs pyarrow only for its own conversion."""
    monkeypatch.setattr(importlib, "import_module", lambda _: SimpleNamespace(DataFrame=dict))
    columns = result.to_pandas("flows")
    assert list(columns) == result.flows.columns
    for name in ("arm", "goodput_mbit_per_s", "fct_s"):
        assert columns[name].tolist()[:2] == pytest.approx(
            result.flows[name].fill_null(float("nan")).to_list()[:2]
            if result.flows.schema[name].is_numeric()
            else result.flows[name].to_list()[:2],
            nan_ok=True,
        )
