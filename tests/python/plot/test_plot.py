"""``Result.plot`` and ``sojourn plot``: words, runs, marks, colours and files."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import sojourn as sj
from sojourn.plot import curves
from sojourn.presentation import style
from sojourn.report import page
from support.shell import Command


def drawn(axes: Axes) -> list[tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Colour, x and y of each line with data."""
    return [
        (to_hex(line.get_color()), np.asarray(line.get_xdata()), np.asarray(line.get_ydata()))
        for line in axes.lines
        if len(np.asarray(line.get_xdata())) > 2
    ]


def samples(frame: pl.DataFrame, column: str, **where: Any) -> pl.Series:
    return frame.filter(**where).sort("t_s")[column].cast(pl.Float64)


COLUMNS = {
    "cwnd": "cwnd_packets",
    "ssthresh": "ssthresh_packets",
    "in_flight": "in_flight_packets",
    "rwnd": "receive_window_bytes",
    "rtt": "srtt_ms",
}


@pytest.mark.parametrize("word", COLUMNS)
def test_what_connections_measure_is_drawn_of_one_run_and_each_flow(
    word: str, result: sj.Result
) -> None:
    figure = result.plot(word, group="tcp up")
    assert [axes.get_title("left") for axes in figure.axes] == [
        "fifo, replication 0, one of 3",
        "fq",
    ]
    for arm, axes in zip(("fifo", "fq"), figure.axes, strict=True):
        lines = drawn(axes)
        assert len(lines) == 2
        for flow, (_, x, y) in zip(("tcp up/1", "tcp up/2"), lines, strict=True):
            run = {"arm": arm, "replication": 0, "flow": flow}
            expected = samples(result.flow_series, COLUMNS[word], **run)
            assert np.array_equal(x, samples(result.flow_series, "t_s", **run))
            assert np.array_equal(y, expected.fill_null(np.nan), equal_nan=True)
    # Panels of one quantity have one scale.
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert figure.axes[0].get_ylim()[1] >= max(y[~np.isnan(y)].max() for _, _, y in lines)


def test_flows_of_each_group_have_panels_that_name_it(result: sj.Result) -> None:
    titles = [axes.get_title("left") for axes in result.plot("cwnd", arms=["fq"]).axes]
    assert titles == ["tcp up, replication 0, one of 3", "tcp down"]
    wide = result.plot("cwnd", "backlog_up", replication=2)
    assert [axes.get_title("left") for axes in wide.axes] == [
        "tcp up, fifo, replication 2, one of 3",
        "tcp up, fq",
        "tcp down, fifo",
        "tcp down, fq",
        "",
    ]
    # Too low for a panel per arm.
    assert len(result.plot("cwnd", size=(5, 2.4)).axes) == 2


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_windows_of_applications_are_sums_over_their_connections(transport: str) -> None:
    incast = sj.Incast(
        direction="down", servers=4, bytes="2mb", think="10s", transport=transport, name="app"
    )
    scenario = sj.Scenario(
        links={
            "down": sj.Link(rate="20mbit", qdisc="pfifo limit 60"),
            "up": sj.Link(rate="20mbit", qdisc="pfifo"),
        },
        traffic=[incast, sj.Tcp(direction="down", name="bulk")],
        rtt="40ms",
        duration="3s",
        warmup="0s",
    )
    found = sj.run(scenario)
    series = found.flow_series.filter(group="app").sort("t_s")
    busy = series.filter(pl.col("in_flight_packets") > 0)
    assert busy.height >= 5
    # Each of four connections began with ten packets, and lost some of them.
    assert busy["cwnd_packets"].min() >= 4
    assert busy["cwnd_packets"].max() > 20
    assert busy["ssthresh_packets"].drop_nulls().len() > 0
    assert (busy["srtt_ms"] >= 40.0).all()
    assert (busy["in_flight_packets"] <= 2 * busy["cwnd_packets"]).all()
    of_tcp = transport == "tcp"
    assert (busy["receive_window_bytes"].null_count() == 0) is of_tcp
    # Before the first handshake is over there is no window.
    if (first := series.filter(pl.col("t_s") <= 0.0)).height:
        assert first["cwnd_packets"].null_count() == first.height
    words = ["cwnd", "ssthresh", "in_flight", "rtt", *(["rwnd"] if of_tcp else [])]
    for word in words:
        assert any(drawn(axes) for axes in found.plot(word, group="app").axes), word


LINKS = {
    "backlog_up": lambda frame: frame["backlog_packets"],
    "sojourn_up": lambda frame: frame["sojourn_ms_mean"],
    "rate_up": lambda frame: frame["sent_bytes"] * 8e-6 / 0.1,
}


@pytest.mark.parametrize("word", LINKS)
def test_a_replication_is_drawn_as_it_was_sampled(word: str, result: sj.Result) -> None:
    (axes,) = result.plot(word, replication=1).axes
    for arm, (_, _, y) in zip(result.arms, drawn(axes), strict=True):
        of_run = result.link_series.filter(arm=arm, link="up", replication=1).sort("t_s")
        expected = LINKS[word](of_run).cast(pl.Float64).fill_null(np.nan)
        assert np.allclose(y, expected, equal_nan=True)


def test_series_are_means_with_the_band_of_the_runs_unless_one_of_flows_is_shown(
    result: sj.Result,
) -> None:
    (axes,) = result.plot("backlog_up").axes
    mean = curves.over_time(result, curves.at_link("up", pl.col("backlog_packets"), result))[0]
    assert np.array_equal(drawn(axes)[0][2], mean.y)
    assert mean.band is not None
    low, high = map(np.array, mean.band)
    assert (low <= np.array(mean.y) + 1e-9).all()
    assert (high >= np.array(mean.y) - 1e-9).all()
    assert (high - low).max() > 5
    (band, _) = axes.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(high.max())  # type: ignore[call-overload, index]
    both = result.plot("backlog_up", "cwnd")
    assert not both.axes[0].collections
    first = samples(result.link_series, "backlog_packets", arm="fifo", link="up", replication=0)
    assert np.array_equal(drawn(both.axes[0])[0][2], first)


def test_a_series_is_the_mean_of_the_means_of_the_runs(result: sj.Result) -> None:
    # Two runs have samples of 0 and 6; the second has five samples more in the same bin.
    samples = pl.DataFrame({"replication": [0, *[1] * 6], "t_s": 0.0, "value": [0.0, *[6.0] * 6]})
    (mean,) = curves.over_time(result, samples.with_columns(arm=pl.lit("fifo")))
    assert mean.y == [3]
    assert mean.band == (pytest.approx([0.3]), pytest.approx([5.7]))


def level(axes: Axes) -> dict[float, str]:
    """Height and text of each horizontal line."""
    heights = [line.get_ydata()[0] for line in axes.lines if len(line.get_ydata()) == 2]  # type: ignore[arg-type, index]
    return dict(zip(heights, (text.get_text() for text in axes.texts), strict=True))


def test_the_warmup_is_grey_and_limits_and_targets_are_lines(result: sj.Result) -> None:
    backlog, sojourn, ping = result.plot("backlog_up", "sojourn_up", "ping").axes
    for axes in (backlog, sojourn, ping):
        (shade,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
        assert (shade.get_x(), shade.get_width()) == (0, 2)
    # The limit of fq_codel, 10240 packets, is far above its backlog; pfifo has no target.
    assert level(backlog) == {127: "limit 127 packets"}
    assert level(sojourn) == {5: "target 5 ms"}
    assert level(ping) == {}


def test_a_queue_has_one_colour_in_figures_and_reports(scenario: sj.Scenario) -> None:
    names = ["mine", "codel target 5ms", "codel", "pfifo"]
    assert style.numbers(names) == {"mine": 10, "codel target 5ms": 11, "codel": 1, "pfifo": 0}
    assert style.numbers(["codel target 13ms", "codel"])["codel"] == 1
    assert style.numbers(["codel target 13ms", "mine"]) == {"codel target 13ms": 1, "mine": 10}
    # The colours of absent queues come after the others, that of pfifo after those of the rest.
    own = style.numbers(["codel", *(f"mine {number}" for number in range(14))])
    assert list(own.values()) == [1, 10, 11, 12, 9, 8, 7, 6, 5, 4, 3, 2, 0, 13, 14]
    assert len(style.COLOURS) == len(style.COLOURS_ON_DARK) == len(set(style.COLOURS))
    many = style.numbers(f"{number}" for number in range(20))
    assert style.colour(many["14"]) == style.colour(many["0"])
    assert style.dash(many["14"]) != style.dash(many["0"])
    arms = [sj.Arm(name=name, set={"links.up.qdisc": name}) for name in ("codel", "pfifo")]
    result = sj.run(scenario.replace(arms=arms, duration="4s", replications=1), seed=1)
    (axes,) = result.plot("backlog_up").axes
    expected = [style.COLOURS[1].lower(), style.COLOURS[0].lower()]
    assert [colour for colour, _, _ in drawn(axes)] == expected
    (bars,) = result.plot("drops").axes
    faces = [to_hex(patch.get_facecolor()) for patch in bars.patches]
    assert faces == expected
    rules = page.html(result)
    assert f"--c0: {style.COLOURS[1]};--c1: {style.COLOURS[0]};" in rules
    assert f"--c0: {style.COLOURS_ON_DARK[1]};" in rules


@pytest.fixture(scope="module")
def several(scenario: sj.Scenario) -> sj.Result:
    """Six runs per arm."""
    return sj.run(scenario.replace(duration="4s", replications=6), seed=1)


def test_bars_show_few_runs_as_dots_and_more_as_intervals(
    result: sj.Result, several: sj.Result
) -> None:
    for of, count in ((result, 3), (several, 6)):
        (axes,) = of.plot("ping_ms_p95").axes
        runs = of.table().filter(arm="fifo")["ping_ms_p95"]
        assert runs.len() == count
        assert axes.patches[0].get_height() == pytest.approx(runs.mean())  # type: ignore[attr-defined]
        if count < 6:
            assert axes.collections[0].get_offsets()[:, 1].tolist() == runs.to_list()  # type: ignore[call-overload, index]
        else:
            summary = of.summary().row(
                by_predicate=(pl.col("metric") == "ping_ms_p95") & (pl.col("arm") == "fifo"),
                named=True,
            )
            (ends,) = axes.collections[0].get_segments()  # type: ignore[attr-defined]
            assert ends[:, 1].tolist() == pytest.approx([summary["low"], summary["high"]])
    (axes,) = result.plot("ping_ms_p95", kind="box").axes
    assert len(axes.collections) == 2
    assert not axes.patches
    (axes,) = several.plot("ping_ms_p95", kind="box").axes
    assert len(axes.patches) == 2


@pytest.mark.parametrize("kind", ["ecdf", "box", "violin", "bars"])
def test_axes_end_at_zero(kind: Any, result: sj.Result) -> None:
    # Some samples are 0; matplotlib would leave a margin below.
    assert result.link_series.filter(arm="fifo", link="down")["backlog_packets"].min() == 0
    (axes,) = result.plot("backlog_down", kind=kind, arms=["fifo"]).axes
    low = axes.get_xlim()[0] if kind == "ecdf" else axes.get_ylim()[0]
    assert low == 0


def texts(figure: Figure) -> list[Text]:
    figure.draw_without_rendering()
    found = figure.findobj(Text)
    return [
        text for text in found if isinstance(text, Text) and text.get_text() and text.get_visible()
    ]


@pytest.mark.parametrize("kind", ["series", "ecdf", "box", "violin", "bars", "ellipse"])
def test_texts_lie_inside_a_figure_of_one_column(kind: Any, result: sj.Result) -> None:
    words = ["goodput_up"] if kind == "ellipse" else ["sojourn_up", "goodput_up"]
    for word in words:
        figure = result.plot(word, kind=kind, size=(3.4, 2.4))
        shown = [*texts(figure)]
        assert len(shown) > 8
        for text in shown:
            box = text.get_window_extent()
            if text.axes is not None and box.width:
                assert figure.bbox.x0 - 1 <= box.x0 < box.x1 <= figure.bbox.x1 + 1, text
                assert figure.bbox.y0 - 1 <= box.y0 < box.y1 <= figure.bbox.y1 + 1, text


def test_a_long_label_is_wrapped_to_fit(result: sj.Result) -> None:
    figure = result.plot("goodput_up", kind="ellipse", size=(2.0, 2.4))
    label = figure.axes[0].xaxis.label
    assert label.get_text().split() == ["induced", "latency", "[ms],", "reversed", "log", "scale"]
    box = label.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    pair = result.plot(kind="ellipse", size=(3.4, 2.4))
    pair.draw_without_rendering()
    left, right = (axes.xaxis.label.get_window_extent() for axes in pair.axes)
    assert left.x1 < right.x0


REFUSED = [
    (("pong",), {}, "metric='pong': unknown metric; expected one of ping, goodput_down, .*cwnd, "),
    (("cwnd",), {"replication": 3}, "replication=3: no finished run; expected 0 to 2"),
    (("cwnd",), {"replication": -1}, "replication=-1: no finished run; expected 0 to 2"),
    (("cwnd",), {"kind": "pie"}, "kind='pie': unknown; expected series, ecdf, box"),
    (("drops",), {"kind": "series"}, "kind='series': the metric drops is one number per run"),
    (("cwnd",), {"kind": "ellipse"}, "metric='cwnd': an ellipse cannot show this metric"),
    (("cwnd",), {"group": "ping"}, "metric='cwnd': not measured per group"),
]


@pytest.mark.parametrize(("words", "given", "message"), REFUSED)
def test_a_word_that_does_not_fit_is_refused(
    words: tuple[str, ...], given: dict[str, Any], message: str, result: sj.Result
) -> None:
    with pytest.raises(sj.SojournError, match=message):
        result.plot(*words, **given)


MARKS = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG"}


def test_the_command_writes_each_format_and_replaces_only_figures(
    sojourn: Command, result: sj.Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "kept")
    done = sojourn("plot", "kept", "cwnd", "--arm", "fq")
    assert (done.returncode, done.stderr) == (0, "wrote figure to kept/cwnd.svg\n")
    assert b"replication 0, one of 3" in (tmp_path / "kept/cwnd.svg").read_bytes()
    for ending, mark in MARKS.items():
        for _ in range(2):
            file = f"figures/fig.{ending}"
            done = sojourn("plot", "kept", "ping_ms_p95", "drops", "--kind", "bars", "-o", file)
            assert done.returncode == 0, done.stderr
            content = (tmp_path / file).read_bytes()
            assert mark in content[:1000]
            assert result.scenario.hash[:12].encode() in content or ending == "pdf"
    (tmp_path / "own.svg").write_text("<svg/>")
    refused = [
        (
            ["cwnd", "-o", "own.svg"],
            3,
            "cannot write own.svg: it exists and is not a Sojourn figure",
        ),
        (
            ["cwnd", "-o", "own.bmp"],
            3,
            "cannot write own.bmp: unknown figure format; expected .png",
        ),
        (["pong"], 2, "METRIC pong: unknown metric; expected one of ping, "),
        (["--kind", "heatmap"], 2, "--kind heatmap: unknown; expected ecdf, box"),
        (["--arm", "x"], 2, "--arm x: no finished run of this arm; expected one of fifo, fq"),
        (["cwnd", "--replication", "5"], 2, "--replication 5: no finished run; expected 0 to 2"),
    ]
    for words, code, message in refused:
        done = sojourn("plot", "kept", *words)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith(f"sojourn: {message}"), done.stderr
        assert done.stderr.count("\n") == 1


def test_the_command_lists_the_words_of_a_result(
    sojourn: Command, result: sj.Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "kept")
    done = sojourn("plot", "kept", "--list")
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()[2:] if line}
    assert rows["cwnd"][1:4] == ["packets", "congestion", "window"]
    assert rows["backlog_up"][1] == rows["in_flight"][1] == "packets"
    assert rows["rtt"][1] == "ms"
    assert {"ping", "goodput_up", "sojourn_down", "rate_up", "drops", "ping_ms_p95"} < rows.keys()
    for word in rows:
        result.plot(word, arms=["fq"])


def test_the_command_draws_a_metric_of_a_sweep(sojourn: Command, tmp_path: Path) -> None:
    links = {side: sj.Link(rate="2mbit", qdisc="pfifo") for side in ("up", "down")}
    ping = sj.Ping(direction="up", interval="100ms")
    scenario = sj.Scenario(links=links, traffic=[ping], rtt="20ms", duration="2s", warmup="1s")
    rates = {"links.up.rate": "1mbit,2mbit", "links.down.rate": "1mbit,2mbit"}
    sj.sweep(scenario, rates, replications=2).save(tmp_path / "swept")
    for kind in ([], ["--kind", "box"], ["--kind", "heatmap"]):
        done = sojourn("plot", "swept", "ping_ms_p95", *kind)
        assert done.returncode == 0, done.stderr
        name = "-".join(["ping_ms_p95", *kind[1:]])
        assert b"4 points" in (tmp_path / f"swept/{name}.svg").read_bytes()
    assert "ping_ms_p95" in sojourn("plot", "swept", "--list").stdout
    refused = {
        ("drops", "--kind", "series"): "--kind series: a sweep keeps no series; expected "
        "lines, box or heatmap\n",
        ("drops", "marks"): "METRIC: more than one; expected one metric, such as ",
        (): "METRIC: missing; expected one metric, such as ",
        ("drops", "--arm", "a", "--arm", "b"): "--arm: more than one; expected one arm, such as ",
        ("drops", "--replication", "0"): "--replication 0: a sweep has none; expected a saved",
        ("pong",): "METRIC pong: ",
    }
    for words, message in refused.items():
        done = sojourn("plot", "swept", *words)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith(f"sojourn: {message}"), done.stderr


def test_the_state_of_a_queue_is_a_word_if_it_was_sampled(result: sj.Result) -> None:
    assert result.queue_series.is_empty()
    with pytest.raises(sj.SojournError, match=r"unknown metric; expected one of "):
        result.plot("up.prob")
    links = {
        "up": sj.Link(rate="2mbit", qdisc="dualpi2"),
        "down": sj.Link(rate="2mbit", qdisc="codel target 1ms"),
    }
    traffic = [sj.Tcp(direction=side, count=4) for side in ("up", "down")]
    sampled = sj.run(
        sj.Scenario(links=links, traffic=traffic, rtt="50ms", duration="5s", sample_state=True)
    )
    # One panel, though prob_c and prob_l begin with the same letters.
    (axes,) = sampled.plot("up.prob").axes
    assert axes.get_ylabel() == "prob up"
    ((_, _, y),) = drawn(axes)
    of = {"link": "up", "name": "prob"}
    assert np.array_equal(y, samples(sampled.queue_series, "value", **of))
    assert sampled.plot("up.delay_c").axes[0].get_ylabel().split() == ["delay_c", "up", "[µs]"]
    # Defined only while CoDel signals.
    (axes,) = sampled.plot("down.drop_next").axes
    ((_, _, y),) = drawn(axes)
    of = {"link": "down", "name": "drop_next"}
    assert 0 < np.isfinite(y).sum() == sampled.queue_series.filter(**of).height < len(y)
    with pytest.raises(sj.SojournError, match=r"expected one of up\.prob, .*, up\.prob_l$"):
        sampled.plot("up.nothing")
