"""Figures for papers, and the curves that figures draw."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import sojourn as sj
from sojourn.plot import curves, figures

PLOTS = [sj.plot_ellipse, sj.plot_series, sj.plot_cdf]


@pytest.mark.parametrize("plot", PLOTS)
def test_a_plot_returns_a_figure_that_names_every_arm(
    plot: Callable[[sj.Result], Figure], result: sj.Result
) -> None:
    figure = plot(result)
    assert isinstance(figure, Figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fifo", "fq"]


@pytest.mark.parametrize("traffic", [["up"], ["up", "down"]])
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
    with pytest.raises(sj.ResultError, match=r"\.png, \.svg or \.pdf"):
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
    for curve in curves.goodput_curves(result, "down"):
        assert len(curve.x) <= curves.POINTS
        late = [y for x, y in zip(curve.x, curve.y, strict=True) if x > 2.0]
        runs = result.per_run.filter(arm=curve.arm)["goodput_down_mbit_per_s"]
        assert np.mean(late) == pytest.approx(runs.mean(), rel=0.05)
