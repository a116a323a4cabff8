"""Draw the figures of a study as in the work, with published and measured values.

Results are added one at a time and not kept; only the data that the figures show are kept.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sojourn import _core
from sojourn.plot.figures import encoded
from sojourn.presentation import draw, style
from sojourn.presentation.figure import Figure as Drawing
from sojourn.result import Result
from sojourn.studies import panel_drawing, panels
from sojourn.studies.claims import Subject
from sojourn.studies.manifest import Figure
from sojourn.studies.outputs import write_file
from sojourn.studies.panel_drawing import Context
from sojourn.studies.panels import Kept
from sojourn.studies.study import FILE, Study
from sojourn.studies.verdicts import Measured

FOLDER = "figures"
SUFFIXES = (".svg", ".png", ".pdf")
# Widest figure, and the width of a figure of one panel, in inches.
_WIDEST = 10.5
_ALONE = 6.4
# Room for a legend and the line of provenance.
_EXTRA = 0.7
# Width of a bar and of what is beside the bars of a panel.
_BAR, _BESIDE = 0.17, 0.9
# Width of the cluster of an arm at least.
_ARM = 0.38


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure that was drawn."""

    figure: Figure
    drawing: Drawing


class Drawings:
    """The figures of a study that are being drawn."""

    def __init__(self, study: Study, figures: Sequence[Figure]) -> None:
        for figure in figures:
            _check(figure)
        self._study = study
        self._figures = {
            figure.name: [
                Kept(figure=figure, panel=panel, names=study.description.scenarios_of(panel))
                for panel in figure.panel
            ]
            for figure in figures
        }
        self._builds: dict[str, None] = {}
        self._seeds: dict[str, int] = {}
        self._runs: dict[str, int] = {}

    def subjects(self, scenario: str, arms: Sequence[str]) -> list[Subject]:
        """List the numbers of a scenario that the figures show."""
        found = (one for kept in self._kept() for one in kept.subjects(scenario, arms))
        return list(dict.fromkeys(found))

    def add(self, scenario: str, result: Result) -> None:
        """Keep what the figures show of a result."""
        self._builds[result.build] = None
        # The scenario of a result states its seed.
        self._seeds[scenario] = result.scenario.seed or 0
        self._runs[scenario] = result.scenario.checked.replications
        for kept in self._kept():
            if scenario in kept.names:
                kept.add(scenario, result)

    def draw(self, folder: Path, measured: Measured, about: str) -> list[Drawn]:
        """Draw the figures and write them as SVG, PNG and PDF."""
        context = Context(
            colours=self.colours,
            measured=measured,
            claimed=panels.claimed(self._study.claims),
            sweeps=self._study.description.sweep,
        )
        drawn = []
        for name, kept in self._figures.items():
            shown = {key for one in kept for key in one.names}
            seeds = ranges(seed for key, seed in self._seeds.items() if key in shown)
            note = (
                f"{self._study.description.title}, figure {name}; {about}, seed {seeds}, "
                f"Sojourn {', '.join(self._builds)}"
            )
            figure, runs = kept[0].figure, max(self._runs.get(key, 2) for key in shown)
            drawing = self._drawing(kept, context, runs)
            canvas = draw.draw(replace(drawing, note=""), origin=note)
            # Otherwise every format computes the layout again.
            canvas.draw_without_rendering()
            canvas.set_layout_engine("none")
            for suffix in SUFFIXES:
                file = folder / f"{file_name(name)}{suffix}"
                write_file(file, encoded(canvas, file, note))
            drawn.append(Drawn(figure=figure, drawing=drawing))
        return drawn

    @property
    def builds(self) -> list[str]:
        """Versions of Sojourn that made the results."""
        return list(self._builds)

    @property
    def seeds(self) -> str:
        """Seeds of the results."""
        return ranges(self._seeds.values())

    def _kept(self) -> Iterator[Kept]:
        for kept in self._figures.values():
            yield from kept

    @property
    def colours(self) -> Mapping[str, int]:
        """Return the number of each arm of the study, whichever figures are drawn."""
        folder, named = self._study.folder, self._study.description
        of_files = {
            file.stem: _arms(file) for file in sorted(folder.glob("*.toml")) if file.name != FILE
        }
        found: dict[str, None] = {}
        for figure in named.figure:
            for panel in figure.panel:
                file = named.sweep[panel.sweep].scenario if panel.sweep else panel.scenario
                found |= dict.fromkeys(panel.arms or of_files.get(file, []))
        for arms in (*of_files.values(), *(kept.all_arms for kept in self._kept())):
            found |= dict.fromkeys(arms)
        return style.numbers(found)

    def _drawing(self, kept: Sequence[Kept], context: Context, runs: int) -> Drawing:
        """Return a figure of a number of runs per arm, and say what its marks show."""
        columns, rows, width, height = _layout(kept)
        marks: set[str] = set()
        found = []
        for one in kept:
            published = panels.published(self._study, one.panel)
            found.append(panel_drawing.panel(one, published, context))
            marks |= panel_drawing.marks(one, published, context)
        return Drawing(
            title=kept[0].figure.title,
            panels=found,
            colours=context.colours,
            legend=panel_drawing.legend(kept, context, marks),
            note=panel_drawing.caption(kept[0].figure.kind, marks, runs),
            columns=columns,
            width=width / columns,
            height=(height - _EXTRA) / rows,
            shared=_shared(kept),
        )


def _check(figure: Figure) -> None:
    needed = "sweep" if figure.kind == "sweep" else "scenario"
    problem = "" if figure.panel else "no panels"
    for at, panel in enumerate(figure.panel):
        if not getattr(panel, needed):
            problem = f"panel {at}: kind {figure.kind} needs a {needed}"
        elif not panel.metric and figure.kind != "ellipse":
            problem = f"panel {at}: no metric"
        elif figure.kind == "bars" and panel.published and len(panel.groups) > 1:
            problem = f"panel {at}: published names no groups; expected at most one group"
    if problem:
        message = f"figure {figure.name}: {problem}"
        raise _core.ResultError(message)


def ranges(numbers: Iterable[int]) -> str:
    """Write numbers, consecutive ones as a range.

    Examples
    --------
    >>> ranges([1, 2, 3, 7, 9, 8, 20])
    '1 to 3, 7 to 9, 20'
    """
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        f"{part[0]} to {part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts
    )


def file_name(name: str) -> str:
    """Return the name of the files of a figure, without suffix.

    Examples
    --------
    >>> file_name("3a"), file_name("slide 4, left")
    ('3a', 'slide-4-left')
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")


def files_of(figures: Sequence[Figure]) -> list[str]:
    """List the names of the files of figures."""
    return [f"{file_name(figure.name)}{suffix}" for figure in figures for suffix in SUFFIXES]


def _arms(file: Path) -> list[str]:
    """Return the names of the arms in a scenario file."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return [str(arm["name"]) for arm in table.get("arms", []) if "name" in arm]


def _shared(kept: Sequence[Kept]) -> bool:
    """Whether only the lowest panels need the labels of the horizontal axis."""
    kind = kept[0].figure.kind
    if kind == "bars":
        return len({tuple(one.all_arms) for one in kept}) == 1
    axes = {(tuple(one.panel.x_range), one.panel.x_label, one.duration_s) for one in kept}
    return kind == "series" and len(axes) == 1


def _layout(kept: Sequence[Kept]) -> tuple[int, int, float, float]:
    """Choose columns and rows of panels, and the size of the figure in inches."""
    number, kind = len(kept), kept[0].figure.kind
    below = 0.0
    if kind == "series":
        columns, height = (1 if number < 4 else 2), (3.0 if number == 1 else 2.1)  # noqa: PLR2004
        width = _ALONE if number == 1 else 7.2 if columns == 1 else _WIDEST
    elif kind == "bars":
        natural = max(
            _BESIDE + len(one.all_arms) * max(_ARM, _BAR * len(one.groups)) for one in kept
        )
        columns = _columns(number, natural)
        width, height = min(_WIDEST, max(columns * natural, 4.4)), 3.0
        if number > columns and _shared(kept):
            height, below = 2.2, 0.8
    else:
        columns = _columns(number, 3.4)
        width, height = (5.2 if number == 1 else columns * 3.5), 3.3
    rows = math.ceil(number / columns)
    return columns, rows, width, rows * height + below + _EXTRA


def _columns(number: int, width: float) -> int:
    """Choose the columns for panels of a width, so that rows are filled evenly."""
    most = max(1, min(number, int(_WIDEST / width)))
    even = next(columns for columns in range(most, 0, -1) if number % columns == 0)
    # A single column of many panels is too high.
    few = 3
    return even if even > 1 or number <= few else math.ceil(number / math.ceil(number / most))
