"""Tables and figures for LaTeX: their syntax, and that TeX accepts them where it is installed."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure

import sojourn as sj
from sojourn.plot import figures
from sojourn.presentation import latex
from sojourn.presentation.model import Column, Table
from sojourn.result import formatting
from sojourn.result.estimates import metrics_of
from sojourn.result.naming import described
from support.shell import Command
from support.typesetting import tex, typeset

NASTY = r"""fq_codel {~^\} $x$ 50% & #1 <a|b> "q" -- `t' [o]* µ"""
MULTI = re.compile(r"\\multicolumn\{(\d)\}\{c\}\{(.*)\}")
# What may stand in a table: escaped characters, commands, and text without special characters.
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[&{}$^]|[^\\&{}$^%#_~]")


def columns(row: str) -> int:
    """Count the columns that a row of a table takes."""
    cells = re.split(r"(?<!\\)&", row.removesuffix(r" \\"))
    found = (MULTI.fullmatch(cell.strip()) for cell in cells)
    return sum(1 if match is None else int(match[1]) for match in found)


def check_syntax(text: str) -> None:
    """Check environments, braces, dollar signs, special characters and numbers of columns."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    body = "\n".join(lines)
    assert "".join(TOKEN.findall(body)) == body
    opened: list[str] = []
    for command, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if command == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    bare = re.sub(r"\\[{}$\\]", "", body)
    depth = 0
    for letter in bare:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    (layout,) = re.findall(r"\\begin\{tabular\}\{(.*)\}", body)
    expected = len(re.findall(r"[lr]", layout.replace("@{}", "")))
    rows = [line for line in lines if line.endswith(r" \\")]
    assert len(rows) >= 2
    for row in rows:
        assert columns(row) == expected, row
        assert re.sub(r"\\\$", "", row).count("$") % 2 == 0, row


@pytest.fixture(scope="module")
def various() -> sj.Result:
    """Arms with names full of special characters, classes and applications."""
    scenario = sj.Scenario(
        name=f"a {NASTY}",
        links={
            "up": sj.Link(rate="1mbit", qdisc="pfifo"),
            "down": sj.Link(rate="2mbit", qdisc="dualpi2"),
        },
        traffic=[
            sj.Tcp(name="bulk & co", direction="down", count=2, start_jitter="50ms"),
            sj.Web(name="web", direction="down", page="small"),
            sj.Ping(name="ping", direction="up", interval="100ms"),
        ],
        arms=[
            sj.Arm(name="dualpi2", set={}),
            sj.Arm(name=NASTY, set={"links.down.qdisc": "pfifo limit 100"}),
            sj.Arm(name="[x]", set={"links.down.qdisc": "fq_codel"}),
            sj.Arm(name="*", set={"links.down.qdisc": "pfifo limit 5"}),
        ],
        rtt="20ms",
        duration="6s",
        warmup="2s",
        replications=3,
    )
    return sj.run(scenario, seed=1)


def tables(result: sj.Result) -> list[str]:
    """Tables of all kinds."""
    return [
        result.to_latex(),
        result.to_latex(caption=r"Delay, \emph{all} arms.", label="tab:delay"),
        result.to_latex(["drops", "ping_ms_p95"], arms=["*", NASTY]),
        result.to_latex(group="bulk & co"),
        result.to_latex(group="down: L"),
        result.to_latex(group="web"),
        result.to_latex(baseline="dualpi2"),
        result.to_latex("ping_ms_p95", baseline=NASTY, caption="Differences."),
        result.to_latex(group="bulk & co", baseline="*"),
    ]


def test_every_table_is_valid_syntax(various: sj.Result) -> None:
    for text in tables(various):
        check_syntax(text)


@pytest.mark.parametrize("broken", ["$1$ & }", "50%", "a_b", "$1 & 2"])
def test_the_check_of_the_syntax_finds_errors(broken: str) -> None:
    layout = r"\begin{tabular}{l r@{}l}" + "\n"
    good = r"a & $1$ & $2$ \\" + "\n"
    check_syntax(f"{layout}{good}{good}\\end{{tabular}}\n")
    with pytest.raises(AssertionError):
        check_syntax(f"{layout}{good}a & {broken} & $2$ \\\\\n\\end{{tabular}}\n")
    with pytest.raises(AssertionError):
        check_syntax(f"{layout}{good}{good}")


def test_tex_accepts_every_table(various: sj.Result, tmp_path: Path) -> None:
    program = tex("booktabs")
    typeset(program, tmp_path, "booktabs", "\n\n".join(tables(various)))


def test_the_numbers_are_those_of_the_terminal(result: sj.Result) -> None:
    text = result.to_latex()
    summary = result.summary()
    for metric in metrics_of(result.table().columns):
        if metric.role not in {"headline", "compared"}:
            continue
        for row in summary.filter(metric=metric.column).iter_rows(named=True):
            shown = str(formatting.estimate(row, metric))
            value, half = shown.split(" ±")
            padding = r"(\\phantom{\.?0+})?"
            cells = rf"\${re.escape(value)}{padding}\$ & \$\{{\}}\\pm {half}\$"
            assert re.search(cells, text), cells
    assert text.splitlines()[0] == "% Table by Sojourn"
    assert result.origin in text.splitlines()[1]


def test_decimal_points_are_aligned() -> None:
    (metric,) = described(["ping_ms_p95"])
    rows = [
        {"arm": "a", "mean": 9.123, "low": 9.1, "high": 9.14},
        {"arm": "b", "mean": 1234.5, "low": 1200.0, "high": 1270.0},
        {"arm": "c", "mean": 7.0, "low": None, "high": None},
    ]
    cells = [[f"{row['arm']}", "2", formatting.estimate(row, metric)] for row in rows]
    table = Table(["arm", "$n$", Column(metric.heading)], cells)
    lines = latex.tabular(table).splitlines()
    assert lines[5:-2] == [
        r"a & 2 & $9.12$ & ${}\pm 0.02$ \\",
        r"b & 2 & $1234\phantom{.00}$ & ${}\pm 35$ \\",
        r"c & 2 & $7.0\phantom{0}$ &  \\",
    ]


def test_differences_have_stars_and_minus_signs(result: sj.Result) -> None:
    text = result.to_latex("induced_latency_ms", baseline="fifo")
    (row,) = [line for line in text.splitlines() if line.startswith("fq & ")]
    assert re.fullmatch(r"fq & 3 & \$-\d+\^\{\*\}\$ & \$\\;\[-\d+, -\d+\]\$ \\\\", row)
    assert "Paired differences from fifo," in text


def test_what_a_table_cannot_show_is_refused(result: sj.Result) -> None:
    with pytest.raises(sj.ArgumentError, match=r"^metric=.drop.: unknown metric; expected some"):
        result.to_latex("drop")
    with pytest.raises(sj.ArgumentError, match=r"^group=.x.: unknown group; expected one of tcp"):
        result.to_latex(group="x")
    with pytest.raises(sj.ArgumentError, match=r"^arms='x': no finished run of this arm"):
        result.to_latex(arms=["x"])
    with pytest.raises(sj.ArgumentError, match=r"^baseline='x': no finished run of this arm"):
        result.to_latex(baseline="x")
    with pytest.raises(sj.ArgumentError, match=r"^label='a}b': invalid label"):
        result.to_latex(label="a}b")


def test_the_command_writes_a_table_and_replaces_only_tables(
    sojourn: Command, result: sj.Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "saved")
    done = sojourn("report", "saved", "--latex", "new/delay.tex", "--metric", "drops")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "wrote table to new/delay.tex\n"
    file = tmp_path / "new" / "delay.tex"
    assert file.read_text(encoding="utf-8") == result.to_latex("drops")
    assert not (tmp_path / "saved" / "report.html").exists()
    done = sojourn("report", "saved", "--latex", "new/delay.tex", "--baseline", "fifo")
    assert done.returncode == 0, done.stderr
    assert file.read_text(encoding="utf-8") == result.to_latex(baseline="fifo")
    file.write_text("mine")
    done = sojourn("report", "saved", "--latex", "new/delay.tex")
    assert done.returncode == 3
    assert done.stderr == (
        "sojourn: cannot write new/delay.tex: it exists and is not a Sojourn table\n"
    )
    assert file.read_text() == "mine"
    done = sojourn("report", "saved", "--latex", "saved/manifest.json")
    assert "a table is LaTeX; expected a name such as table.tex" in done.stderr


def test_the_command_prints_a_table_beside_a_report(
    sojourn: Command, result: sj.Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "saved")
    done = sojourn("report", "saved", "--latex", "-", "--group", "tcp up", "--report", "a.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == result.to_latex(group="tcp up")
    assert (tmp_path / "a.html").is_file()
    done = sojourn("report", "saved", "--group", "tcp up")
    assert done.returncode == 2
    assert "--metric, --group and --baseline choose the content of --latex" in done.stderr


def test_a_figure_in_pgf_needs_tex(
    result: sj.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    path = tmp_path / "a.pgf"
    with pytest.raises(sj.ResultError, match=r"a\.pgf: PGF needs TeX .*save the figure as \.pdf"):
        figures.save(sj.plot_cdf(result), path, result)
    assert not path.exists()


@pytest.mark.parametrize("plot", [sj.plot_ellipse, sj.plot_series, sj.plot_cdf])
def test_tex_accepts_figures_in_pgf(
    plot: Callable[[sj.Result], Figure], various: sj.Result, tmp_path: Path
) -> None:
    program = tex("pgf", "underscore")
    path = tmp_path / "a.pgf"
    figures.save(plot(various), path, various)
    text = path.read_text(encoding="utf-8")
    first = text.splitlines()[0]
    assert first.startswith("% Figure by Sojourn: ")
    assert various.scenario.hash[:12] in first
    assert r"fq\_codel" in text
    # The fonts are those of the document, not files of this machine.
    assert str(Path(figures.__file__).parents[3]) not in text
    assert "fontspec" not in text
    typeset(program, tmp_path, "pgf", r"\input{a.pgf}")


def test_a_text_that_tex_cannot_typeset_is_named(
    result: sj.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tex("pgf", "underscore")
    monkeypatch.setattr("sojourn.plot.figures._PROGRAMS", ("pdflatex",))
    monkeypatch.setitem(rcParams, "pgf.texsystem", "pdflatex")
    figure = sj.plot_cdf(result)
    figure.axes[0].set_title("待ち行列")
    with pytest.raises(sj.ResultError, match=r"a\.pgf: pdflatex: .*Unicode character"):
        figures.save(figure, tmp_path / "a.pgf", result)


def test_a_pdf_embeds_truetype_fonts(result: sj.Result, tmp_path: Path) -> None:
    figures.save(sj.plot_cdf(result), tmp_path / "a.pdf", result)
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
