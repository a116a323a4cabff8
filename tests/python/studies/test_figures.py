"""Figures of studies: what they draw, from which results, and the files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from PIL import Image

import sojourn as sj
from sojourn.presentation.figure import Intervals, Points
from sojourn.presentation.style import COLOURS
from sojourn.studies import labels, panel_drawing, panels
from sojourn.studies import study as studies
from sojourn.studies.claims import Subject
from sojourn.studies.figures import Drawings, file_name
from sojourn.studies.quantities import Quantities
from sojourn.studies.verdicts import Estimate
from support.studied import DESCRIPTION, PUBLISHED, write

Measured = Mapping[Subject, Estimate]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, sj.Result]:
    study = studies.load(write(tmp_path_factory.mktemp("studies") / "small"))
    needed = study.needed(study.figures([]), [])
    return {key: sj.run(one) for key, one in study.scenarios(needed, "quick").items()}


def drawings(
    study: studies.Study, results: Mapping[str, sj.Result], names: Sequence[str] = ()
) -> tuple[Drawings, Measured]:
    found = Drawings(study, study.figures(names))
    measured = {}
    for key in study.needed(study.figures(names), []):
        result = results[key]
        found.add(key, result)
        quantities = Quantities(result)
        measured |= {one: quantities.estimate(one) for one in found.subjects(key, result.arms)}
    return found, measured


@pytest.fixture
def canvases(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The matplotlib figures that are written."""
    found: list[Figure] = []

    def encoded(figure: Figure, _path: Path, _about: str) -> bytes:
        if figure not in found:
            found.append(figure)
        return b""

    monkeypatch.setattr("sojourn.studies.figures.encoded", encoded)
    return found


@pytest.fixture
def drawn(
    tmp_path: Path, results: Mapping[str, sj.Result], canvases: list[Figure]
) -> dict[str, Figure]:
    """The figures of the small study by name."""
    study = studies.load(write(tmp_path / "small"))
    found, measured = drawings(study, results)
    found.draw(tmp_path / "figures", measured, "quick scale")
    return dict(zip([figure.name for figure in study.figures([])], canvases, strict=True))


def white(axes: Axes) -> list[list[float]]:
    """The places of points that are white inside: published values."""
    collections = [one for one in axes.collections if isinstance(one, PathCollection)]
    found = [one for one in collections if mpl.colors.to_hex(one.get_facecolor()[0]) == "#ffffff"]  # type: ignore[index]
    return [place for one in found for place in one.get_offsets().tolist()]  # type: ignore[union-attr]


def entries(figure: Figure) -> list[str]:
    """The names in the legend."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_bars_have_one_cluster_per_arm_and_one_bar_per_group(drawn: dict[str, Figure]) -> None:
    single, grouped = drawn["1 a"].axes
    assert [text.get_text() for text in single.get_xticklabels()] == ["pfifo", "codel"]
    assert [text.get_text() for text in grouped.get_xticklabels()] == ["codel", "pfifo"]
    assert (len(single.patches), len(grouped.patches)) == (2, 4)
    assert single.get_ylabel() == "sojourn down mean [ms]"
    assert entries(drawn["1 a"]) == ["udp", "tcp", "published, with tolerance"]
    # The claim on the FIFO states 20 ± 1 ms.
    assert [y for _, y in white(single)] == [20.0]
    assert white(grouped) == []


def test_bars_show_values_of_a_file_unless_a_claim_states_them(
    tmp_path: Path, results: Mapping[str, sj.Result], canvases: list[Figure]
) -> None:
    metric = 'metric = "sojourn_down_ms_mean"\n'
    text = DESCRIPTION.replace(metric, f'{metric}published = "published/bars.csv"\n', 1)
    study = studies.load(write(tmp_path / "small", description=text))
    rows = "scenario,arm,x,y\ntwo,pfifo,,18\ntwo,codel,,6.5\nother,codel,,7\n"
    (study.folder / "published" / "bars.csv").write_text(rows, encoding="utf-8")
    found, measured = drawings(study, results, ["1 a"])
    found.draw(tmp_path / "figures", measured, "quick scale")
    assert [y for _, y in white(canvases[0].axes[0])] == [20.0, 6.5]
    assert entries(canvases[0])[-1] == "published, with tolerance"


def test_bars_show_means(drawn: dict[str, Figure], results: Mapping[str, sj.Result]) -> None:
    heights = [bar.get_height() for bar in drawn["1 a"].axes[0].patches]  # type: ignore[attr-defined]
    links = results["two"].links
    means = [
        links.filter(arm=arm, link="down")["sojourn_ms_mean"].mean() for arm in ("pfifo", "codel")
    ]
    assert heights == pytest.approx(means)


def test_few_runs_are_dots_and_intervals_of_more_end_at_zero() -> None:
    for values, low, ends in (
        ((0.0, 3.0), -17.0, []),
        ((0.0, 0.0, 0.0, 0.0, 0.0, 9.0), -2.0, [[0.0, 5.0]]),
        ((-1.0, 0.0, 0.0, 0.0, 0.0, 9.0), -2.0, [[-2.0, 5.0]]),
    ):
        estimate = Estimate(len(values), sum(values) / len(values), low, 5.0, values)
        (mark,) = panel_drawing.spread("codel", 1.0, estimate)
        if ends:
            assert isinstance(mark, Intervals)
            assert [[*mark.low, *mark.high]] == ends
        else:
            assert isinstance(mark, Points)
            assert [*mark.y] == [*values]


def test_series_are_means_over_runs_with_published_points(
    drawn: dict[str, Figure], results: Mapping[str, sj.Result]
) -> None:
    delay, goodput = drawn["2"].axes
    fifo, codel = delay.lines
    series = results["two"].link_series.filter(arm="pfifo", link="down")
    at = series.filter((series["t_s"] - 5.0).abs() < 1e-6)["sojourn_ms_mean"]
    # The sample at 5 s is of the interval before it.
    value = dict(zip(fifo.get_xdata(), fifo.get_ydata(), strict=True))
    (nearest,) = (y for x, y in value.items() if abs(x - 4.9) < 1e-6)
    assert nearest == pytest.approx(at.mean())
    assert [x for x, _ in white(delay)] == [5.0, 5.0, 6.0]
    edges = [mpl.colors.to_hex(one.get_edgecolor()[0]) for one in delay.collections]  # type: ignore[index]
    assert edges == [mpl.colors.to_hex(line.get_color()) for line in (fifo, codel)]
    assert goodput.get_xlim() == (2.0, 6.0)
    # Groups of an arm differ in dashes and shade.
    assert len({mpl.colors.to_hex(line.get_color()) for line in goodput.lines}) == 4
    assert entries(drawn["2"]) == ["pfifo", "codel", "udp", "tcp", "published"]


def test_distributions_rise_to_one(drawn: dict[str, Figure]) -> None:
    titles = [axes.get_xlabel() for axes in drawn["3"].axes]
    assert titles == [
        "sojourn time down [ms]",
        "ping [ms], log scale",
        "files: flow completion time [s]",
        "web: duration [s]",
    ]
    counted = [axes.get_ylabel() for axes in drawn["3"].axes]
    assert counted == [
        f"share of {what}" for what in ("packets", "pings", "transfers", "transactions")
    ]
    assert [axes.get_xscale() for axes in drawn["3"].axes] == ["linear", "log", "linear", "linear"]
    for axes in drawn["3"].axes:
        assert len(axes.lines) == 2
        for line in axes.lines:
            shares = [float(y) for y in line.get_ydata()]
            assert shares == sorted(shares)
            assert shares[-1] == pytest.approx(1.0)
    assert drawn["3"].axes[3].get_title("left") == "pages"


def test_a_sweep_has_numbers_and_a_unit_on_its_axis(drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["4"].axes
    assert axes.get_xlabel() == "RTT [ms]"
    assert axes.get_ylim() == (0.0, 200.0)
    assert [list(line.get_xdata()) for line in axes.lines] == [[10.0, 40.0]] * 2


def test_ellipses_have_a_reversed_axis_of_latency(drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["5"].axes
    assert axes.xaxis_inverted()
    assert axes.get_ylabel() == "goodput down [Mbit/s]"
    assert entries(drawn["5"]) == ["pfifo", "codel"]


def test_legends_and_labels_lie_beside_the_data(drawn: dict[str, Figure]) -> None:
    for name, figure in drawn.items():
        figure.draw_without_rendering()
        boxes = [axes.get_window_extent() for axes in figure.axes]
        for legend in figure.legends:
            for box in boxes:
                assert Bbox.intersection(legend.get_window_extent(), box) is None, name
        for text in (*figure.texts, *(legend for legend in figure.legends)):
            box = text.get_window_extent()
            assert box.x0 >= -1, name
            assert box.x1 <= figure.bbox.width + 1, name
            assert box.y0 >= -1, name
            assert box.y1 <= figure.bbox.height + 1, name


def test_an_arm_has_the_same_colour_in_every_figure(
    drawn: dict[str, Figure],
    tmp_path: Path,
    results: Mapping[str, sj.Result],
    canvases: list[Figure],
) -> None:
    def colour(figure: Figure, name: str) -> Any:
        (legend,) = figure.legends
        at = entries(figure).index(name)
        return mpl.colors.to_hex(legend.legend_handles[at].get_color()).upper()  # type: ignore[union-attr]

    for name in ("2", "3", "4", "5"):
        assert colour(drawn[name], "pfifo") == COLOURS[0]
        assert colour(drawn[name], "codel") == COLOURS[1]
    study = studies.load(tmp_path / "small")
    found, measured = drawings(study, results, ["4"])
    found.draw(tmp_path / "more", measured, "quick scale")
    assert colour(canvases[-1], "codel") == COLOURS[1]


def test_the_files_are_the_same_each_time_and_name_their_origin(
    tmp_path: Path, results: Mapping[str, sj.Result]
) -> None:
    study = studies.load(write(tmp_path / "small"))
    for place in ("first", "second"):
        found, measured = drawings(study, results)
        shown = found.draw(tmp_path / place, measured, "quick scale")
    names = sorted(path.name for path in (tmp_path / "first").iterdir())
    stems = ("1-a", "2", "3", "4", "5")
    assert names == sorted(f"{stem}.{kind}" for stem in stems for kind in ("svg", "png", "pdf"))
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    about = "A small study, figure 1 a; quick scale, seed 1, Sojourn "
    with Image.open(tmp_path / "first" / "1-a.png") as image:
        assert image.info["Title"].startswith(about)
    assert about in (tmp_path / "first" / "1-a.svg").read_text()
    assert [one.figure.name for one in shown] == ["1 a", "2", "3", "4", "5"]
    bars = "Bars show means over the runs, small dots the runs."
    # Only figures with published values say how these are shown.
    assert [one.drawing.note for one in shown] == [
        f"{bars} Diamonds show published values, with tolerances that claims state.",
        "Lines show means over the runs. White dots show published values.",
        "Lines show all runs together.",
        "Dots on lines show means over the runs, small dots the runs.",
        "Small dots show runs, large dots their medians, ellipses their 1-σ spread.",
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            'arms = ["codel", "pfifo"]',
            'arms = ["pie"]',
            'figure 1 a: no arm "pie"; expected one of pf',
        ),
        (
            'groups = ["web"]',
            'groups = ["dash"]',
            'figure 3: no group "dash"; expected one of udp, tcp',
        ),
        (
            'metric = "duration_s"',
            'metric = "jain"',
            'figure 3: no distribution of "jain"; expected ',
        ),
        (
            'metric = "sojourn_down_ms"\npub',
            'metric = "x"\npub',
            'figure 2: no series "x"; expected ',
        ),
        ('metric = "goodput_mbit_per_s"\n', "", "figure 1 a: panel 1: no metric"),
        (
            'groups = ["udp", "tcp"]\n',
            'groups = ["udp", "tcp"]\npublished = "published/two.csv"\n',
            "figure 1 a: panel 1: published names no groups; expected at most one group",
        ),
        ('sweep = "delay"', 'scenario = "two"', "figure 4: panel 0: kind sweep needs a sweep"),
        ('[[figure.panel]]\nsweep = "delay"', "panel = []\n[x]\n", "no panels"),
        ("published/two.csv", "published/other.csv", "other.csv: cannot read published values: "),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_reported(
    tmp_path: Path, results: Mapping[str, sj.Result], before: str, after: str, expected: str
) -> None:
    assert before in DESCRIPTION
    text = DESCRIPTION.replace(before, after, 1)
    if "[x]" in text:
        text = re.sub(r"\[x\]\n.*?\n\n", "\n", text, flags=re.DOTALL)
    study = studies.load(write(tmp_path / "small", description=text))
    with pytest.raises(sj.ResultError) as raised:  # noqa: PT012 - whichever finds the error
        found, measured = drawings(study, results)
        found.draw(tmp_path / "figures", measured, "quick scale")
    assert expected in str(raised.value)


def test_published_values_need_their_columns(tmp_path: Path) -> None:
    file = tmp_path / "two.csv"
    file.write_text(PUBLISHED.replace("scenario,", "file,"), encoding="utf-8")
    with pytest.raises(
        sj.ResultError, match=r"two\.csv: cannot read .*; expected scenario, arm, x, y"
    ):
        panels.read_published(file)
    file.write_text(PUBLISHED.replace("5.5", "five"), encoding="utf-8")
    with pytest.raises(sj.ResultError, match="cannot read published values"):
        panels.read_published(file)


@pytest.mark.parametrize(
    ("axis", "values", "label", "numbers"),
    [
        ("rtt", ["12ms", "25ms"], "RTT [ms]", [12, 25]),
        ("links.down.rate", ["500kbit", "1mbit", "10mbit"], "rate [Mbit/s]", [0.5, 1, 10]),
        ("traffic[0].bytes", ["90000b", "187500b"], "bytes [B]", [90000, 187500]),
        ("traffic[1].start_jitter", ["1s", "2s"], "start jitter [s]", [1, 2]),
        ("seed", [1, 2, 3], "seed", [1, 2, 3]),
        ("links.down.qdisc", ["codel", "sfq limit 9"], "qdisc", [0, 1]),
        ("x", ["1ms", "2mbit"], "x", [0, 1]),
    ],
)
def test_the_axis_of_a_sweep(
    axis: str, values: list[Any], label: str, numbers: list[float]
) -> None:
    found = labels.places(axis, values)
    assert (found.label, list(found.values)) == (label, numbers)
    assert list(found.names) == (
        [] if "[" in label or axis == "seed" else [str(one) for one in values]
    )


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("goodput_up_mbit_per_s", "goodput up [Mbit/s]"),
        ("induced_latency_ms", "induced latency [ms]"),
        ("loss_down_percent", "loss down [%]"),
        ("fct_s_mean", "completion [s]"),
        ("jain", "Jain"),
        ("cwnd_packets_mean[5,30]", "congestion window mean, 5 to 30 s [packets]"),
        (
            "throughput_down_mbit_per_s_peak_s[0,25]",
            "throughput down time of the peak, 0 to 25 s [s]",
        ),
        ("srtt_ms", "smoothed RTT [ms]"),
        ("of_my_own", "of_my_own"),
    ],
)
def test_the_label_of_a_metric(metric: str, label: str) -> None:
    assert labels.of_metric(metric) == label


def test_figures_have_file_names() -> None:
    assert [file_name(name) for name in ("3a", "../3 b", "Fig. 4: x")] == ["3a", "3-b", "Fig.-4-x"]
