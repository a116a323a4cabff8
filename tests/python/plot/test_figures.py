"""Figures for papers, and the curves that figures draw."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

import sojourn as sj
from sojourn.plot import curves, figures, quantities
from sojourn.report import page
from support.shell import environment

PLOTS = [sj.plot_ellipse, sj.plot_series, sj.plot_cdf]


@pytest.mark.parametrize("plot", PLOTS)
def test_a_plot_returns_a_figure_that_names_every_arm(
    plot: Callable[[sj.Result], Figure], result: sj.Result
) -> None:
    figure = plot(result)
    assert isinstance(figure, Figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fifo", "fq"]


@pytest.mark.parametrize("traffic", [["up"], pytest.param(["up", "down"], marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "names",
    [
        ["pfifo", "ared", "codel", "pie", "fq_codel", "sfq", "fq_nocodel"],
        [f"fq_codel with a long name, and number {index}" for index in range(4)],
        ["x" * 200, "fq_codel"],
    ],
)
def test_the_legend_lies_inside_the_figure(traffic: list[str], names: list[str]) -> None:
    tcp = [sj.Tcp(name=side, direction=side, start_jitter="9ms") for side in traffic]  # type: ignore[arg-type]
    scenario = sj.Scenario(
        name="x" * 200,
        links={side: sj.Link(rate="5mbit", qdisc="pfifo") for side in ("up", "down")},
        traffic=[*tcp, sj.Ping(name="ping", direction="up", interval="100ms")],
        arms=[sj.Arm(name=name, set={}) for name in names],
        rtt="20ms",
        duration="2s",
        warmup="1s",
        replications=2,
    )
    result = sj.run(scenario, seed=1)
    for plot in PLOTS:
        figure = plot(result)
        figure.draw_without_rendering()
        (legend,) = figure.legends
        boxes = [legend.get_window_extent(), *(axes.get_window_extent() for axes in figure.axes)]
        boxes += [text.get_window_extent() for text in [*legend.get_texts(), *figure.texts]]
        for box in boxes:
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert all(axes.get_window_extent().height > figure.dpi for axes in figure.axes)


@pytest.mark.parametrize("plot", PLOTS)
def test_a_plot_of_something_else_is_refused(plot: Callable[[Any], Figure]) -> None:
    with pytest.raises(sj.SojournError, match=r"^result: expected a Result, not a value of type"):
        plot("my_first")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_file_says_where_its_numbers_come_from(
    ending: str, result: sj.Result, tmp_path: Path
) -> None:
    path = tmp_path / f"figure.{ending}"
    figures.save(sj.plot_cdf(result), path, result)
    if ending == "png":
        with Image.open(path) as image:
            assert result.scenario.hash[:12] in image.info["Title"]
    else:
        assert result.scenario.hash[:12].encode() in path.read_bytes()


def test_an_unknown_ending_is_refused(result: sj.Result, tmp_path: Path) -> None:
    with pytest.raises(sj.ResultError, match=r"\.png, \.svg, \.pdf or \.pgf"):
        figures.save(sj.plot_cdf(result), tmp_path / "figure.bmp", result)


def test_an_ellipse_surrounds_its_median_at_one_sigma(result: sj.Result) -> None:
    for ellipse in curves.ellipses(result, "up"):
        outline = np.array(ellipse.outline)
        middle = (np.log10(outline[:-1, 0]).mean(), outline[:-1, 1].mean())
        assert middle == pytest.approx((np.log10(ellipse.centre[0]), ellipse.centre[1]))
        half_height = (outline[:, 1].max() - outline[:, 1].min()) / 2
        assert half_height == pytest.approx(np.std(ellipse.goodput_mbit_per_s, ddof=1), rel=0.01)


def test_distributions_rise_from_nothing_to_one(result: sj.Result) -> None:
    for curve in [*curves.ping_cdfs(result), *curves.sojourn_cdfs(result, "up")]:
        assert list(curve.y) == sorted(curve.y)
        assert list(curve.x) == sorted(curve.x)
        assert curve.y[-1] == pytest.approx(1.0)


def test_lines_are_thinned_and_keep_their_level(result: sj.Result) -> None:
    for curve in curves.over_time(result, curves.goodput(result, "down")):
        assert len(curve.x) <= curves.POINTS
        late = [y for x, y in zip(curve.x, curve.y, strict=True) if x > 2.0]
        runs = result.table().filter(arm=curve.arm)["goodput_down_mbit_per_s"]
        assert np.mean(late) == pytest.approx(runs.mean(), rel=0.05)


@pytest.mark.parametrize("plot", PLOTS)
def test_a_notebook_displays_a_figure_without_a_magic_command(
    plot: Callable[[sj.Result], Figure], result: sj.Result
) -> None:
    figure = plot(result)
    try:
        from IPython.core.formatters import DisplayFormatter  # noqa: PLC0415 - may be missing
    except ModuleNotFoundError:
        image = figure._repr_png_()  # type: ignore[attr-defined]
    else:
        shown, _ = DisplayFormatter().format(figure)  # type: ignore[no-untyped-call]
        image = shown["image/png"]
    assert image.startswith(b"\x89PNG")


def test_completion_lists_the_figures() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "import sojourn; print(*dir(sojourn))"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"plot_cdf", "plot_ellipse", "plot_series", "run"} < set(listed.stdout.split())


def labels(figure: Figure) -> list[tuple[str, str]]:
    return [(axes.get_xlabel(), axes.get_ylabel().replace("\n", " ")) for axes in figure.axes]


def test_axes_name_the_scale_and_what_is_counted(result: sj.Result) -> None:
    assert labels(sj.plot_cdf(result)) == [
        ("ping [ms], log scale", "share of pings"),
        ("sojourn time down [ms], log scale", "share of packets"),
        ("sojourn time up [ms], log scale", "share of packets"),
    ]
    series = [label for _, label in labels(sj.plot_series(result))]
    assert series[:3] == ["ping [ms], log scale", "goodput down [Mbit/s]", "goodput up [Mbit/s]"]
    assert sj.plot_ellipse(result).axes[0].get_xlabel().endswith("reversed log scale")


def test_a_link_at_which_nothing_waits_has_no_panel_unless_it_is_named() -> None:
    scenario = sj.Scenario(
        links={
            "up": sj.Link(rate="2mbit", qdisc="pfifo"),
            "down": sj.Link(rate="100mbit", qdisc="pfifo"),
        },
        traffic=[sj.Tcp(direction="up"), sj.Ping(direction="up", interval="50ms")],
        rtt="20ms",
        duration="4s",
        warmup="1s",
    )
    result = sj.run(scenario)
    assert curves.waiting_links(result) == ["up"]
    for figure in (sj.plot_cdf(result), sj.plot_series(result)):
        assert not [label for pair in labels(figure) for label in pair if "down" in label]
    assert "sojourn times, down" not in page.html(result)
    assert "sojourn times, up" in page.html(result)
    assert labels(sj.plot_cdf(result, "sojourn_down")) == [
        ("sojourn time down [ms], log scale", "share of packets")
    ]


@pytest.mark.parametrize("kind", ["ecdf", "box", "violin", "series"])
def test_a_metric_is_drawn_on_axes_of_the_caller(kind: Any, result: sj.Result) -> None:
    own, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    try:
        assert sj.plot_cdf(result, "ping", kind=kind, ax=left, arms=["fq"]) is own
        assert left.lines or left.patches or left.collections
        assert not right.lines
        texts = (
            [text.get_text() for text in left.get_legend().get_texts()]
            if kind
            in {
                "ecdf",
                "series",
            }
            else [tick.get_text() for tick in left.get_xticklabels()]
        )
        assert texts == ["fq"]
    finally:
        plt.close(own)


def test_boxes_are_quartiles_of_what_was_measured(result: sj.Result) -> None:
    found = {one.name: one for one in quantities.chosen(result, [], None, ["ping", "sojourn"])}
    for arm, samples in found["ping"].samples(result, None).items():
        pings = curves.measured(result, curves.ping_times(result)).filter(arm=arm)["value"]
        assert samples.quantile(0.5) == pytest.approx(pings.median(), rel=0.02)
        assert samples.counts.sum() == pings.len()
    for arm, samples in found["sojourn_up"].samples(result, None).items():
        p95 = result.links.filter(arm=arm, link="up")["sojourn_ms_p95"]
        assert p95.min() * 0.95 <= samples.quantile(0.95) <= p95.max() * 1.05  # type: ignore[operator]


def test_a_group_restricts_pings_and_goodput(result: sj.Result) -> None:
    figure = sj.plot_series(result, group="tcp up", size=(5, 4))
    assert [label for _, label in labels(figure)] == ["tcp up: goodput up [Mbit/s]"]
    assert figure.get_size_inches().tolist()[0] == 5
    whole = curves.goodput(result, "up")["value"].sum()
    assert curves.goodput(result, "up", "tcp up")["value"].sum() == pytest.approx(whole)
    per_run = sj.plot_cdf(result, "goodput_mbit_per_s_mean", group="tcp up", kind="violin")
    assert labels(per_run) == [("", "tcp up: goodput [Mbit/s]")]


def test_labels_name_the_group(result: sj.Result) -> None:
    assert labels(sj.plot_ellipse(result, group="tcp up")) == [
        ("induced latency [ms], reversed log scale", "tcp up: goodput up [Mbit/s]")
    ]
    assert labels(sj.plot_cdf(result, group="ping")) == [
        ("ping: ping [ms], log scale", "share of pings")
    ]
    assert labels(sj.plot_series(result, "goodput_down", group="tcp down")) == [
        ("time [s]", "tcp down: goodput down [Mbit/s]")
    ]


@pytest.mark.parametrize("name", ["x" * 120, "long " * 30 + "name", r"$\nothing$"])
def test_the_label_of_any_group_lies_inside_the_figure(name: str, scenario: sj.Scenario) -> None:
    traffic = [sj.Tcp(name=name, direction="up"), sj.Ping(name="ping", direction="up")]
    result = sj.run(scenario.replace(traffic=traffic, duration="4s", warmup="1s"))
    for figure in (
        sj.plot_ellipse(result, group=name),
        sj.plot_series(result, group=name),
        sj.plot_cdf(result, "goodput_up", group=name),
        sj.plot_cdf(result, "goodput_up", group=name, kind="box"),
    ):
        figure.draw_without_rendering()
        for axes in figure.axes:
            for label in (axes.xaxis.label, axes.yaxis.label):
                box = label.get_window_extent()
                assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
                assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1


@pytest.mark.parametrize("factor", [2.0, 5.3, 30.0, 450.0, 5_000.0])
def test_every_logarithmic_axis_has_three_ticks(factor: float, result: sj.Result) -> None:
    axes = sj.plot_cdf(result, "ping").axes[0]
    for low in (1.1, 2.1, 15.0):
        axes.set_xlim(low, low * factor)
        shown = [tick for tick in axes.get_xticks() if low <= tick <= low * factor]
        assert len(shown) >= 3, (low, shown)


def test_the_axes_of_a_report_name_a_logarithmic_scale(result: sj.Result) -> None:
    text = page.html(result)
    for label in ("ping [ms]", "sojourn time up [ms]"):
        assert f">{label}, log scale</text>" in text
    assert ">induced latency [ms], reversed log scale</text>" in text
    assert ">goodput up [Mbit/s]</text>" in text


REFUSED = [
    ({"metric": "pong"}, "metric='pong': unknown metric; expected one of ping, goodput_down,"),
    ({"group": "x"}, "group='x': unknown group; expected one of tcp up, tcp down, ping"),
    ({"metric": "sojourn", "group": "ping"}, "metric='sojourn': not measured per group;"),
    ({"arms": ["x"]}, "arms='x': no finished run of this arm; expected one of fifo, fq"),
    ({"arms": "fq"}, "arms: expected a list of texts, not a value of type str"),
    ({"kind": "pie"}, "kind='pie': unknown; expected ecdf, box, violin, series"),
    ({"size": (7, 0)}, r"size=\(7, 0\): invalid size; expected width and height in inches"),
    ({"ax": "left"}, "ax: expected matplotlib axes, not a value of type str"),
    ({"metric": "induced_latency_ms", "kind": "series"}, "is one number per run; expected ecdf"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_an_argument_that_does_not_fit_is_refused(
    given: dict[str, Any], message: str, result: sj.Result
) -> None:
    with pytest.raises(sj.SojournError, match=message):
        sj.plot_cdf(result, **given)


def test_axes_take_one_panel_of_their_own_size(result: sj.Result) -> None:
    axes = Figure().add_subplot()
    with pytest.raises(sj.ArgumentError, match="ax: one axes cannot show 3 panels"):
        sj.plot_cdf(result, ax=axes)
    with pytest.raises(sj.ArgumentError, match="size: cannot be combined with ax"):
        sj.plot_cdf(result, "ping", ax=axes, size=(3, 3))
    with pytest.raises(sj.ArgumentError, match="metric='ping': an ellipse cannot show this"):
        sj.plot_ellipse(result, "ping")
    assert sj.plot_ellipse(result, "goodput_up", arms=["fq"], ax=axes) is axes.figure
