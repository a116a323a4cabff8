"""``sojourn reproduce``: reproduce published works and judge their claims."""

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn import _core
from sojourn.cli import completion, signals, study_report, study_runs
from sojourn.cli.options import Force, Jobs, Json, MaxMemory, Replications, Resume, Strict, path
from sojourn.cli.session import judged, say
from sojourn.cli.study_runs import REPORT, InterruptedStudyError
from sojourn.scenario import Scenario
from sojourn.studies import bundle as bundles
from sojourn.studies import outputs, record, runtime, wording
from sojourn.studies import study as studies
from sojourn.studies.claims import Subject
from sojourn.studies.quantities import Quantities
from sojourn.studies.study import Study, Varied
from sojourn.studies.verdicts import Estimate

if TYPE_CHECKING:
    from sojourn.studies.figures import Drawings

EVERY = "all"
RESULTS = "results"
# Below the output directory of a study: the result of each scenario.
SCENARIOS = "scenarios"


def reproduce(
    *,
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            autocompletion=completion.studies,
            help="Name of a study, or all. Without it, list the studies.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Fewer and shorter runs (default). All studies together take minutes."
        ),
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Number of runs, durations and rates as published, and runs that vary the "
            "assumptions.",
        ),
    ] = False,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Run only the scenarios that this figure needs; repeatable."
        ),
    ] = None,
    replications: Replications = None,
    jobs: Jobs = None,
    max_memory: MaxMemory = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=path,
            help="Directory for the results; default: results/STUDY, or results if STUDY is all.",
        ),
    ] = None,
    force: Force = False,
    papers: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=path,
            help="Directory that contains the studies; by default that of the installed package.",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=path,
            help="Write scenarios, results, environment and checksums to this archive: .zip, "
            ".tar.gz or .tgz.",
        ),
    ] = None,
    json: Json = False,
    strict: Strict = False,
    resume: Resume = False,
) -> int:
    """Reproduce a published work and judge its claims."""
    folder = studies.studies_folder(papers)
    if study is None:
        _list(folder)
        return 0
    if quick and full:
        message = "--quick and --full are mutually exclusive"
        raise typer.BadParameter(message)
    names = _names(study, folder, figure or [])
    options = study_runs.Options(jobs=jobs, max_memory=max_memory, force=force, resume=resume)
    root = out or Path(RESULTS)
    records, codes = [], []
    output = root if out or study == EVERY else root / study
    request = outputs.Request(
        study=study,
        scale="full" if full else "quick",
        figures=figure or [],
        replications=replications,
        papers=papers,
    )
    works = [
        _Reproduction(
            _study(name, folder),
            replace(request, study=name),
            output / name if study == EVERY else output,
            options,
        )
        for name in names
    ]
    for work in works:
        work.check()
    if bundle is not None:
        bundles.check(output, bundle, force=force)
    try:
        for work in works:
            code, verdicts = work.run(strict=strict, quiet=json)
            records.append(verdicts)
            codes.append(code)
    except InterruptedStudyError:
        return signals.exit_code()
    if bundle is not None:
        written = [path for work in works for path in work.written]
        # The archive has no studies: those of the user are repeated scenario by scenario.
        command = request.command if papers is None else None
        bundles.bundle(output, bundle, only=written, command=command, force=force)
        say(f"wrote bundle to {bundle}")
    if json:
        print(_as_json(records if study == EVERY else records[0]))
    elif study == EVERY:
        study_report.show_all(records)
    return max(codes)


class _Reproduction:
    """One execution of a study."""

    def __init__(
        self, study: Study, request: outputs.Request, out: Path, options: study_runs.Options
    ) -> None:
        self._study = study
        self._request = request
        self._out = out
        self._options = options
        self._measured: dict[Subject, Estimate] = {}
        self._seconds: dict[str, float] = {}
        self._reported: list[str] = []
        self._problems: list[outputs.Problem] = []
        self._figures = study.figures(request.figures)
        self._written: list[Path] = []

    @property
    def written(self) -> list[Path]:
        """The files and the directories of results that were written or reused."""
        return self._written

    def check(self) -> None:
        """Refuse an output directory in which other files would be replaced."""
        # Not at the top of the file: matplotlib takes long to load.
        from sojourn.studies import page  # noqa: PLC0415
        from sojourn.studies.figures import FOLDER, files_of  # noqa: PLC0415

        drawn = [page.FILE, *(f"{FOLDER}/{name}" for name in files_of(self._figures))]
        outputs.check(self._out, self._study.name, drawn, force=self._options.force)

    def run(self, *, strict: bool, quiet: bool) -> tuple[int, dict[str, Any]]:
        """Run the scenarios, judge the claims, write the files; return the exit code."""
        study, scale, names = self._study, self._request.scale, self._request.figures
        needed = study.needed(self._figures, [] if names else study.claims)
        scenarios = study.scenarios(needed, scale)
        study.check_arms(scenarios)
        if (replications := self._request.replications) is not None:
            scenarios = {
                key: one.replace(replications=replications) for key, one in scenarios.items()
            }
        varied = list(study.variants(scenarios)) if scale == "full" and not names else []
        every = scenarios | {one.key: one.scenario for one in varied}
        reused = study_runs.reusable(every, self._out / SCENARIOS, self._options)
        new = {key: one for key, one in every.items() if key not in reused}
        study_runs.check_memory(new, self._options)
        from sojourn.studies import page  # noqa: PLC0415 - matplotlib takes long to load
        from sojourn.studies.figures import FOLDER, Drawings, files_of  # noqa: PLC0415

        drawings = Drawings(study, self._figures)
        expected = runtime.expected_s(study.folder, new, scale)
        if reused:
            number = "1 result that is" if len(reused) == 1 else f"{len(reused)} results that are"
            say(f"{study.name}: using {number} already in {self._out}")
        if new:
            say(f"{study.name} ({scale}): {runtime.estimate(new, expected)}")
        code = self._measure(
            every, varied, drawings, runtime.Remaining(expected), reused=reused, strict=strict
        )
        judged_claims = record.record(
            study,
            scale=scale,
            replications={key: one.checked.replications for key, one in scenarios.items()},
            measured=self._measured,
            varied=varied,
            builds=drawings.builds,
        )
        verdicts = outputs.with_origin(judged_claims, self._request, self._problems)
        if not quiet:
            study_report.show(verdicts)
        self._written = outputs.write(self._out, verdicts, self._seconds)
        sources = page.Sources(
            figures=drawings.draw(self._out / FOLDER, self._measured, f"{scale} scale"),
            reports={key: f"{SCENARIOS}/{key}/{REPORT}" for key in self._reported},
            builds=drawings.builds,
            seeds=drawings.seeds,
        )
        page.write(self._out / page.FILE, study, verdicts, sources)
        self._written += [
            self._out / page.FILE,
            *(self._out / FOLDER / name for name in files_of(self._figures)),
            *(self._out / SCENARIOS / key for key in every),
        ]
        say(f"wrote verdicts and results of {study.name} to {self._out}")
        return code, verdicts

    def _measure(
        self,
        scenarios: dict[str, Scenario],
        varied: list[Varied],
        drawings: "Drawings",
        remaining: runtime.Remaining,
        *,
        reused: Collection[str],
        strict: bool,
    ) -> int:
        """Run scenarios and keep what claims and figures need of each; return the exit code."""
        bases = {one.key: one.base for one in varied}
        points = {
            point for sweep in self._study.description.sweep.values() for point in sweep.points
        }
        self._reported = [key for key in scenarios if key not in points and key not in bases]
        known = runtime.load(self._out / runtime.FILE).get(self._request.scale, {})
        code = 0
        for key, result, seconds in study_runs.results(
            scenarios,
            self._out / SCENARIOS,
            self._options,
            reused=reused,
            reported=self._reported,
            remaining=remaining,
        ):
            code = code or judged([result], strict=strict)
            if seconds is not None:
                self._seconds[key] = seconds * _threads(self._options.jobs) / result.total
            elif key in known:
                self._seconds[key] = known[key]
            found = outputs.problems(key, result)
            for one in found:
                say(f"error: {wording.problem(asdict(one))}")
            self._problems += found
            quantities = Quantities(result)
            drawings.add(key, result)
            claimed = record.subjects(self._study, bases.get(key, key))
            shown = drawings.subjects(key, result.arms)
            for subject in dict.fromkeys([*claimed, *shown]):
                if subject.arm in result.arms:
                    place = Subject(key, subject.arm, subject.group, subject.metric)
                    self._measured[place] = quantities.estimate(subject)
                elif key not in bases:
                    quantities.estimate(subject)
        return code


def _threads(jobs: int | None) -> int:
    return jobs or os.cpu_count() or 1


def _as_json(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False)


def _list(folder: Path) -> None:
    """Print the names and titles of the studies in a folder."""
    known = _known(folder)
    width = max(map(len, known))
    for name in known:
        title = studies.title(folder / name)
        print(_core.printable(f"{name:{width}}  {title}".rstrip()))


def _known(folder: Path) -> list[str]:
    """Return the names of the studies in a folder."""
    known = studies.names(folder)
    if not known:
        message = f"no studies in {folder}; expected directories with claims.csv"
        raise _core.ResultError(message)
    return known


def _names(study: str, folder: Path, figures: Sequence[str]) -> list[str]:
    """Return the names of the studies to reproduce."""
    names = _known(folder) if study == EVERY else [study]
    if figures and len(names) > 1:
        message = "--figure requires a single study"
        raise typer.BadParameter(message)
    return names


def _study(name: str, folder: Path) -> Study:
    if name not in _known(folder):
        accepted = ", ".join([*_known(folder), EVERY])
        message = f'unknown study "{name}"; expected one of {accepted}'
        raise _core.ScenarioError(message)
    return studies.load(folder / name)
