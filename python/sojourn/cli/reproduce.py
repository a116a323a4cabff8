"""``sojourn reproduce``: reproduce a published study and compare the results."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli import claims_report, completion, numbers_report, signals
from sojourn.cli.options import Force, Jobs, Json, MaxMemory, Replications, Resume, Strict, path
from sojourn.cli.study_runs import InterruptedStudyError
from sojourn.studies import claims
from sojourn.studies import study as studies


def reproduce(
    *,
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            autocompletion=completion.studies,
            help="Name of a study; without it, list the studies.",
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
            help="Directory for the results; by default results/STUDY.",
        ),
    ] = None,
    force: Force = False,
    papers: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=path,
            help="Directory of the studies; by default those that come with Sojourn.",
        ),
    ] = None,
    json: Json = False,
    strict: Strict = False,
    resume: Resume = False,
) -> int:
    """Reproduce a published study and compare the results."""
    folder = studies.studies_folder(papers)
    if study is None:
        _list(folder)
        return 0
    if (folder / study / claims.FILE).is_file():
        execute = partial(claims_report.execute, folder / study)
    else:
        execute = partial(numbers_report.execute, _study(study, folder))
    try:
        return execute(
            replications=replications,
            jobs=jobs,
            max_memory=max_memory,
            out=out,
            force=force,
            as_json=json,
            strict=strict,
            resume=resume,
        )
    except InterruptedStudyError:
        return signals.exit_code()


def _list(folder: Path) -> None:
    """Print the names and titles of the studies in a folder."""
    known = _known(folder)
    width = max(map(len, known))
    for name in known:
        title = studies.title(folder / name) or ""
        print(_core.printable(f"{name:{width}}  {title}".rstrip()))


def _known(folder: Path) -> list[str]:
    """Return the names of the studies in a folder."""
    known = studies.names(folder)
    if not known:
        message = f"no studies in {folder}; expected directories with published.csv or claims.csv"
        raise _core.ResultError(message)
    return known


def _study(name: str, folder: Path) -> studies.Study:
    """Load a study with published numbers."""
    if not (folder / name / "published.csv").is_file():
        message = f'unknown study "{name}"; expected one of {", ".join(_known(folder))}'
        raise _core.ScenarioError(message)
    return studies.load(folder / name)
