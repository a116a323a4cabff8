"""``sojourn reproduce``: reproduce published works and judge their claims."""

import contextlib
import difflib
import json
import os
import shlex
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sojourn import _core
from sojourn import report as reports
from sojourn.arguments import Argument
from sojourn.arguments.common import (
    OUTPUT,
    SCENARIO,
    Force,
    Fresh,
    Full,
    Jobs,
    Json,
    MaxMemory,
    Replications,
)
from sojourn.cli import continued, process
from sojourn.cli.options import Everything, Strict
from sojourn.cli.plans import command
from sojourn.cli.process import say
from sojourn.cli.progress import Work, progress_bar, work_of
from sojourn.cli.session import judged
from sojourn.presentation.model import Table, text_table
from sojourn.presentation.terminal import print_note, print_table
from sojourn.report.answer import FEWEST
from sojourn.result import Result, budget, derived_files, storage
from sojourn.result.formatting import counted
from sojourn.scenario import Scenario
from sojourn.studies import bundle as bundles
from sojourn.studies import calibration, outputs, record, runtime, template, wording
from sojourn.studies import study as studies
from sojourn.studies.claims import Subject
from sojourn.studies.quantities import Quantities
from sojourn.studies.runtime import Remaining
from sojourn.studies.study import Study, Varied
from sojourn.studies.verdicts import IN_DIRECTION, NOT_REPRODUCED, VERDICTS, Estimate

if TYPE_CHECKING:
    from sojourn.studies.figures import Drawings

EVERY = "all"
RESULTS = "results"
# Below the output directory of a study: the result of each scenario.
SCENARIOS = "scenarios"
# Name of the report on the result of a scenario.
REPORT = "report.html"
_NOTE = (
    "published: the condition of the claim; measured: mean ± half the width of its 95 % interval; "
    "×: ratio of two means; above, below, differs: significant difference (t test, 5 %)"
)


class InterruptedStudyError(Exception):
    """The user interrupted a study; finished runs are saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the scenarios of a study are run."""

    jobs: int | None
    max_memory: str | None
    force: bool
    fresh: bool


@command(rare=("replications",))
def reproduce(
    *,
    study: Annotated[
        str | None,
        Argument(
            help="Name of a study, or all.",
            unset="list the studies",
            option="STUDY",
            completion="studies",
        ),
    ] = None,
    full: Full = False,
    figure: Annotated[
        Sequence[str],
        Argument(
            help="Run only the scenarios that this figure needs.",
            unset="all",
            metavar="NAME",
            heading=SCENARIO,
        ),
    ] = (),
    papers: Annotated[
        Path | None,
        Argument(
            help="Directory that contains the studies.",
            unset="the one in the installed package",
            metavar="DIR",
            heading=SCENARIO,
            rare=True,
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        Argument(
            help="Search what the work does not state, on the baselines that study.toml names.",
            heading=SCENARIO,
            rare=True,
        ),
    ] = False,
    new: Annotated[
        str | None,
        Argument(
            help="Write a study to start from into a new directory of this name, in --papers.",
            metavar="NAME",
            heading=SCENARIO,
            rare=True,
        ),
    ] = None,
    replications: Replications = None,
    jobs: Jobs = None,
    max_memory: MaxMemory = None,
    fresh: Fresh = False,
    out: Annotated[
        Path | None,
        Argument(
            help="Directory for the results; created if needed, with its parents.",
            unset="results/STUDY, or results if STUDY is all",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ] = None,
    force: Force = False,
    bundle: Annotated[
        Path | None,
        Argument(
            help="Write scenarios, results, environment and checksums to this archive: .zip, "
            ".tar.gz or .tgz.",
            metavar="FILE",
            heading=OUTPUT,
        ),
    ] = None,
    json: Json = False,
    everything: Everything = False,
    strict: Strict = False,
) -> int:
    """Reproduce a published work and judge its claims."""
    if new is not None:
        return _new(new, papers or Path())
    folder = studies.studies_folder(papers)
    if calibrate and study in (None, EVERY):
        message = "--calibrate requires a single study"
        raise _core.ScenarioError(message)
    if calibrate and figure:
        message = "--calibrate runs whole scenarios; expected no --figure"
        raise _core.ScenarioError(message)
    if study is None:
        _list(folder)
        return 0
    names = _names(study, folder, figure)
    options = Options(jobs=jobs, max_memory=max_memory, force=force, fresh=fresh)
    root = out or Path(RESULTS)
    output = root if out or study == EVERY else root / study
    request = outputs.Request(
        study=study,
        scale="full" if full else "quick",
        figures=figure,
        replications=replications,
        papers=papers,
    )
    if calibrate:
        return _calibrate(_study(study, folder), request, output, options, shown=not json)
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
        found = [work.run(strict=strict, quiet=json, everything=everything) for work in works]
    except InterruptedStudyError:
        return process.exit_code()
    if bundle is not None:
        written = [path for work in works for path in work.written]
        # The archive has no studies: those of the user are repeated scenario by scenario.
        command = request.command if papers is None else None
        bundles.bundle(output, bundle, only=written, command=command, force=force)
        say(f"wrote bundle to {bundle}")
    _print([verdicts for _, verdicts in found], study, as_json=json)
    return max(code for code, _ in found)


def _print(records: Sequence[Mapping[str, Any]], study: str, *, as_json: bool) -> None:
    """Print verdicts as JSON, or the totals of several studies."""
    if as_json:
        print(_as_json(records if study == EVERY else records[0]))
    elif study == EVERY:
        _show_totals(records)


def _new(name: str, folder: Path) -> int:
    """Write a study to start from, and print what to do with it."""
    place = template.write(name, folder)
    say(f"wrote {place}")
    print(f"Next: sojourn reproduce {name} --papers {shlex.quote(str(folder))}")
    return 0


def _calibrate(
    study: Study, request: outputs.Request, out: Path, options: Options, *, shown: bool
) -> int:
    """Run the searches of a study, and print the nearest combinations."""
    searches = calibration.prepared(study, request.scale, request.replications)
    outputs.check(out, study.name, [], force=options.force)
    found = {}
    for search in searches:
        say(
            f"{study.name}, calibration {search.name} ({request.scale}): "
            f"{counted(len(search.points), 'combination')}, {counted(search.runs, 'run')}"
        )
        with progress_bar(Work(runs=search.runs), search.name) as progress:
            found[search.name] = calibration.searched(search, jobs=options.jobs, progress=progress)
        if shown:
            head, rows = calibration.rows(found[search.name])
            print_table(Table(head, rows, f"{search.name}: nearest to the published values"))
    document = {"study": study.name, "scale": request.scale, "searches": found}
    outputs.write_file(out / calibration.FILE, outputs.as_json(document).encode())
    if not shown:
        print(_as_json(document))
    say(f"wrote the search to {out / calibration.FILE}; put the values into the scenarios")
    return 0


class _Reproduction:
    """One execution of a study."""

    def __init__(self, study: Study, request: outputs.Request, out: Path, options: Options) -> None:
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

    def run(self, *, strict: bool, quiet: bool, everything: bool) -> tuple[int, dict[str, Any]]:
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
        reused = _reusable(every, self._out / SCENARIOS, self._options)
        new = {key: one for key, one in every.items() if key not in reused}
        _check_memory(new, self._options)
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
            every, varied, drawings, Remaining(expected), reused=reused, strict=strict
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
            _show(verdicts, everything=everything)
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
        remaining: Remaining,
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
        for key, result, seconds in _results(
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
        raise _core.ScenarioError(message)
    return names


def _study(name: str, folder: Path) -> Study:
    if name not in _known(folder):
        known = [*_known(folder), EVERY]
        near = difflib.get_close_matches(name, known, n=1)
        instead = f'did you mean "{near[0]}"?' if near else f"expected one of {', '.join(known)}"
        message = f'unknown study "{name}"; {instead}'
        raise _core.ScenarioError(message)
    return studies.load(folder / name)


def _reusable(scenarios: Mapping[str, Scenario], folder: Path, options: Options) -> list[str]:
    """List the scenarios whose complete results exist already, made by this build."""
    if options.fresh:
        return []
    return [key for key, one in scenarios.items() if continued.is_saved(one, folder / key)]


def _results(
    scenarios: Mapping[str, Scenario],
    folder: Path,
    options: Options,
    *,
    reused: Collection[str],
    reported: Collection[str],
    remaining: Remaining,
) -> Iterator[tuple[str, Result, float | None]]:
    """Run every scenario and save each result in a directory of its name."""
    # Without the results: these take the memory that the runs of the next scenario may need.
    invocations = []
    announced = _FirstContinued()
    with contextlib.ExitStack() as stack:
        claims = {
            key: stack.enter_context(
                storage.claimed(
                    folder / key,
                    force=options.force or key in reused,
                    resumed=_continued(scenario, folder / key, options),
                )
            )
            for key, scenario in scenarios.items()
        }
        for key, scenario in scenarios.items():
            if key in reused:
                yield key, _loaded(folder / key, scenario, reported=key in reported), None
                continue
            started = time.monotonic()
            work = work_of(scenario, jobs=options.jobs)
            with progress_bar(work, f"{key} ({remaining})") as progress:
                execution = continued.run(
                    scenario,
                    jobs=options.jobs,
                    progress=progress,
                    fresh=options.fresh,
                    max_memory=options.max_memory,
                    announce=announced,
                )
            seconds = time.monotonic() - started
            remaining.finished(key, seconds)
            if execution.invocation is not None:
                invocations.append(execution.invocation)
                # What is stored is on the medium, however the study ends.
                stack.callback(execution.invocation.close)
            result, place, claim = execution.result, folder / key, claims[key]
            if result.finished and claim is not None:
                _save(execution, claim, place, reported=key in reported)
            if not result.complete:
                where = f"to {place}" if result.finished else "(nothing to save)"
                runs = f"{result.finished} of {result.total} runs"
                say(f"interrupted: saved {runs} of {key} {where}")
                execution.end(kept=False)
                raise InterruptedStudyError
            yield key, result, seconds
    for invocation in invocations:
        invocation.discard()


def _check_memory(scenarios: Mapping[str, Scenario], options: Options) -> None:
    """Refuse scenarios that may take too much memory."""
    for key, scenario in scenarios.items():
        budget.check(scenario.checked, jobs=options.jobs, max_memory=options.max_memory, name=key)


def _continued(scenario: Scenario, place: Path, options: Options) -> Scenario | None:
    """Return the scenario if a directory has an incomplete result of it, which is continued."""
    return scenario if not options.fresh and continued.is_incomplete(place) else None


class _FirstContinued:
    """Prints what is reused of the first interrupted scenario of a study."""

    def __init__(self) -> None:
        self._said = False

    def __call__(self, finished: int, scenario: Scenario) -> None:
        if not self._said:
            continued.say_what_is_reused(finished, scenario)
            self._said = True


def _loaded(place: Path, scenario: Scenario, *, reported: bool) -> Result:
    """Load a result that exists; write its report if that is missing."""
    result = Result.load(place)
    continued.forget(scenario)
    if reported and not (place / REPORT).exists():
        reports.write(result, derived_files.inside(place, REPORT))
    return result


def _save(
    execution: continued.KeptResult, claim: _core.Claim, place: Path, *, reported: bool
) -> None:
    """Save a result and its report; if that fails, say how to continue."""
    try:
        storage.save(execution.result, claim)
        if reported:
            reports.write(execution.result, derived_files.inside(place, REPORT))
    except _core.ResultError:
        execution.end(kept=False)
        raise


def _show(verdicts: Mapping[str, Any], *, everything: bool) -> None:
    """Print the totals and how close the numbers are; on request, the claims that are not met."""
    fewest = min(verdicts["replications"].values(), default=0)
    what = "Verdict on" if fewest >= FEWEST else "Quick check, too few runs to judge:"
    print_note(
        f"{what} {verdicts['study']} ({wording.scale(verdicts)}): "
        f"{wording.counted(verdicts['totals'])}."
    )
    for preset in verdicts["presets"]:
        print_note(f"With {preset['label']}: {wording.counted(preset['totals'])}.")
    if verdicts["reconstruction"]:
        print_note(f"Reconstruction: {verdicts['reconstruction']}")
    for note in (
        wording.counts(verdicts),
        wording.distances(verdicts["claims"]),
        wording.of_single_runs(verdicts),
    ):
        if note:
            print_note(note)
    print(_core.printable(f"to reproduce these numbers: {verdicts['command']}"))
    rows = [
        [
            claim["id"] if first else "",
            wording.subject(line),
            wording.stated(line),
            wording.measured(line),
            claim["verdict"] if first else "",
        ]
        for claim in verdicts["claims"]
        if claim["verdict"] in (IN_DIRECTION, NOT_REPRODUCED)
        for first, line in _marked(wording.unmet(claim))
    ]
    if rows and everything:
        print()
        head = ["claim", "quantity", "published", "measured", "verdict"]
        print_table(text_table(head, rows, f"{verdicts['title']}: claims not fully reproduced"))
        print(_NOTE)
    elif rows:
        print_note(
            "--all prints the claims that are not fully reproduced; index.html has all, and figures"
        )


def _marked(lines: Sequence[Mapping[str, Any]]) -> list[tuple[bool, Mapping[str, Any]]]:
    return [(at == 0, line) for at, line in enumerate(lines)]


def _show_totals(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the totals of several studies, one line each, and their sum."""
    names = list(VERDICTS)
    rows = [[one["study"], *(str(one["totals"][name]) for name in names)] for one in records]
    sums = [sum(one["totals"][name] for one in records) for name in names]
    rows.append(["total", *map(str, sums)])
    print_table(Table(["study", *names], rows, "claims by verdict"))
