"""The data of panels, extracted from results that are not kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from sojourn import _core
from sojourn.errors import invalid_file
from sojourn.plot import curves
from sojourn.result import Result
from sojourn.studies import labels, series
from sojourn.studies.claims import Claim, Subject
from sojourn.studies.manifest import Figure, Panel
from sojourn.studies.study import Study

# A line over time cannot show more points.
POINTS = 500
# Kinds of figures that show one number per arm.
OF_NUMBERS = ("bars", "sweep")
_COLUMNS = {"scenario": pl.String, "arm": pl.String, "x": pl.Float64, "y": pl.Float64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a panel."""

    arm: str
    group: str | None
    x: Sequence[float]
    y: Sequence[float]


@dataclass(slots=True, kw_only=True)
class Kept:
    """The data of a panel."""

    figure: Figure
    panel: Panel
    names: Sequence[str]
    arms: dict[str, Sequence[str]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    ellipses: list[curves.Ellipse] = field(default_factory=list)
    direction: str = ""
    duration_s: float = 0.0

    @property
    def groups(self) -> Sequence[str | None]:
        """Its groups of traffic; None: the whole run."""
        return self.panel.groups or [None]

    @property
    def all_arms(self) -> list[str]:
        """The arms of all its scenarios."""
        if self.panel.arms:
            return list(self.panel.arms)
        return list(dict.fromkeys(arm for arms in self.arms.values() for arm in arms))

    def subjects(self, scenario: str, arms: Sequence[str]) -> list[Subject]:
        """List the numbers of a scenario that it shows."""
        if self.figure.kind not in OF_NUMBERS or scenario not in self.names:
            return []
        return [
            Subject(scenario, arm, group, self.panel.metric)
            for arm in self.panel.arms or arms
            for group in self.groups
        ]

    def add(self, scenario: str, result: Result) -> None:
        """Keep what it shows of a result."""
        self.arms[scenario] = self.panel.arms or result.arms
        self._check("arm", self.panel.arms, result.arms)
        groups = result.flows["group"].unique(maintain_order=True).to_list()
        groups += result.transactions["group"].unique(maintain_order=True).to_list()
        self._check("group", self.panel.groups, list(dict.fromkeys(groups)))
        self.duration_s = result.scenario.checked.duration_s
        if self.figure.kind == "series":
            self._add_series(scenario, result)
        elif self.figure.kind == "cdf":
            self._add_cdfs(scenario, result)
        elif self.figure.kind == "ellipse":
            self._add_ellipses(result)

    def _check(self, what: str, names: Sequence[str], known: Sequence[str]) -> None:
        if unknown := next((name for name in names if name not in known), None):
            accepted = ", ".join(known)
            message = (
                f'figure {self.figure.name}: no {what} "{unknown}"; expected one of {accepted}'
            )
            raise _core.ResultError(message)

    def _add_series(self, scenario: str, result: Result) -> None:
        begin, end = self.panel.x_range or (0.0, self.duration_s)
        sample_s = series.sample_s(result)
        # Whole numbers of sample intervals, so that all lines have the same points.
        width = sample_s * max(1, round((end - begin) / sample_s / POINTS))
        for group in self.groups:
            try:
                rows = series.samples(result, self.panel.metric, group)
            except _core.ResultError as error:
                message = f"figure {self.figure.name}: {error}"
                raise _core.ResultError(message) from None
            rows = rows.filter(pl.col("t_s").is_between(begin, end))
            for arm in self.arms[scenario]:
                means = series.averaged(rows.filter(pl.col("arm") == arm), width)
                self._add_line(arm, group, means["t_s"].to_list(), means["value"].to_list())

    def _add_cdfs(self, scenario: str, result: Result) -> None:
        for group in self.groups:
            found = {one.arm: one for one in _distributions(self, result, group)}
            for arm in self.arms[scenario]:
                if arm in found:
                    self._add_line(arm, group, found[arm].x, found[arm].y)

    def _add_line(
        self, arm: str, group: str | None, x: Sequence[float], y: Sequence[float]
    ) -> None:
        if x:
            self.lines.append(Line(arm=arm, group=group, x=x, y=y))

    def _add_ellipses(self, result: Result) -> None:
        sides = curves.directions(result)
        named = (side for side in sides if side in self.panel.metric.split("_"))
        self.direction = next(named, sides[0])
        group = self.groups[0]
        found = {one.arm: one for one in curves.ellipses(result, self.direction, group)}
        self.ellipses = [found[arm] for arm in self.panel.arms or result.arms if arm in found]


def _distributions(kept: Kept, result: Result, group: str | None) -> Sequence[curves.Curve]:
    """Compute the distributions of a panel, after the warm-up and over all runs."""
    metric = kept.panel.metric
    links = {f"sojourn_{link}_ms": link for link in curves.link_names(result)}
    if metric in links:
        return curves.sojourn_cdfs(result, links[metric])
    if metric == "ping_ms":
        return curves.ping_cdfs(result, group)
    tables = {"fct_s": result.flows, "duration_s": result.transactions}
    if metric not in tables:
        accepted = ", ".join([*links, *labels.CDFS])
        message = (
            f'figure {kept.figure.name}: no distribution of "{metric}"; expected one of {accepted}'
        )
        raise _core.ResultError(message)
    rows = tables[metric]
    if group is not None:
        rows = rows.filter(pl.col("group") == group)
    begun = rows.select("arm", t_s="started_s", value=metric)
    return curves.cdfs(result, curves.measured(result, begun))


def published(study: Study, panel: Panel) -> pl.DataFrame:
    """Read the published values of a panel."""
    if not panel.published:
        return pl.DataFrame(schema=_COLUMNS)
    file = study.folder / panel.published
    return read_published(file)


def read_published(file: Path) -> pl.DataFrame:
    """Read a file with published values: columns ``scenario``, ``arm``, ``x``, ``y``."""
    try:
        table = pl.read_csv(file, comment_prefix="#", infer_schema=False)
        return table.select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())
    except (OSError, pl.exceptions.PolarsError) as error:
        first = str(error).partition("\n")[0]
        raise invalid_file(
            file, f"cannot read published values: {first}; expected {', '.join(_COLUMNS)}"
        ) from None


def claimed(claims: Sequence[Claim]) -> Mapping[Subject, tuple[float, float]]:
    """Return the published values that claims state as equal, with their tolerances."""
    return {
        line.subject: (line.value, line.tolerance)
        for claim in claims
        for line in claim.lines
        if line.relation == "equals" and not line.weaker and line.reference is None
        if line.subject is not None and line.value is not None and line.tolerance is not None
    }
