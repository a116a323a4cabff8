"""``sojourn cite``: print BibTeX entries for Sojourn and for the sources of a result."""

import difflib
import json as text_json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from sojourn import _core, bibliography
from sojourn.arguments import Argument
from sojourn.arguments.common import Json
from sojourn.bibliography import Uses, Work
from sojourn.cli.plans import command
from sojourn.cli.process import say
from sojourn.cli.reproduce import SCENARIOS
from sojourn.result import Result, derived_files
from sojourn.scenario import Scenario
from sojourn.scenario.files import read_scenario
from sojourn.studies import claims, manifest, outputs
from sojourn.studies import study as studies

_EXPECTED = (
    "expected the directory of a result, a scenario file, or the name of a study, queue or "
    "congestion control"
)


class _Cited:
    """The works to print, and the builds that produced the results among their origins."""

    def __init__(self) -> None:
        self.uses = Uses()
        self.works = dict(bibliography.works())
        self.builds: list[str] = []

    def scenario(self, scenario: Scenario) -> None:
        document = text_json.loads(scenario.checked.to_json())
        self.uses.update(bibliography.of_scenario(document))

    def result(self, folder: Path) -> None:
        result = Result.load(folder)
        self.builds.append(result.build)
        self.scenario(result.scenario)

    def output(self, folder: Path) -> None:
        """Add the work that the study of an output directory reproduces."""
        name = outputs.study_name(folder)
        if name is None:
            return
        package = studies.studies_folder(None)
        if name in studies.names(package):
            self.work(package / name)
        else:
            say(
                f'note: {folder}: the study "{name}" does not come with Sojourn; to cite the work '
                "that it reproduces, name its directory"
            )

    def study(self, folder: Path) -> None:
        """Add the work that a study reproduces, and what its scenarios use."""
        self.work(folder)
        for file in sorted(folder.glob("*.toml")):
            if file.name != studies.FILE:
                self.scenario(_scenario(file))

    def work(self, folder: Path) -> None:
        """Add the work that a study reproduces."""
        file = folder / studies.FILE
        if file.is_file():
            given = bibliography.citation(manifest.load(file).citation, f"{file}")
            work = bibliography.same(given)
            self.works.setdefault(work.key, work)
            self.uses.add([work.key], f"study {folder.name}")
        self.uses.update(bibliography.of_study(folder.name))

    def entries(self) -> Iterator[tuple[Work, list[str]]]:
        yield bibliography.tool(self.builds), []
        for key, purposes in self.uses.of.items():
            yield self.works[key], purposes


@command()
def cite(
    *,
    what: Annotated[
        Sequence[str],
        Argument(
            help="Directory of one or more results, scenario file, or name of a study, queue or "
            "congestion control.",
            unset="only Sojourn itself",
            option="WHAT",
            completion="citable",
        ),
    ] = (),
    json: Json = False,
) -> int:
    """Print BibTeX entries for Sojourn and for the sources of a result, scenario or queue."""
    cited = _Cited()
    for text in what:
        _add(text, cited)
    if json:
        document = [work.document | {"used_for": purposes} for work, purposes in cited.entries()]
        print(text_json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(_bibtex(*entry) for entry in cited.entries()))
    if not what:
        say(
            "to also cite the works behind a result, scenario, study or queue, name it: "
            "sojourn cite results/mine"
        )
    return 0


def _bibtex(work: Work, purposes: list[str]) -> str:
    """Write an entry below a comment that says what it is used for."""
    if not purposes:
        return work.bibtex
    # BibTeX takes everything after an @ as an entry, even in a comment.
    used_for = _core.printable(", ".join(purposes)).replace("@", "")
    return f"% {used_for}\n{work.bibtex}"


def _add(text: str, cited: _Cited) -> None:
    """Add the works behind a path or a name; a path that exists comes first."""
    path = Path(text)
    if text and path.is_dir() and (found := _results(path)):
        for place in (path, *sorted(one for one in path.iterdir() if one.is_dir())):
            cited.output(place)
        for folder in found:
            cited.result(folder)
    elif text and path.is_dir() and _is_study(path):
        cited.study(path)
    elif text and path.is_file():
        cited.scenario(_scenario(path))
    elif text in studies.names(folder := studies.studies_folder(None)):
        cited.study(folder / text)
    else:
        cited.uses.update(_named(text))


def _results(folder: Path) -> list[Path]:
    """List the results in a directory: itself, those in it, or those of reproduced studies."""
    for pattern in ("", "*/", f"{SCENARIOS}/*/", f"*/{SCENARIOS}/*/"):
        if found := sorted(folder.glob(pattern + derived_files.MANIFEST)):
            return [path.parent for path in found]
    return []


def _is_study(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (studies.FILE, claims.FILE))


def _scenario(file: Path) -> Scenario:
    try:
        return Scenario.from_toml(read_scenario(file), file.parent)
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        raise _core.ScenarioError(message) from None
    except _core.ScenarioError as error:
        message = f"{file}: {error}"
        raise _core.ScenarioError(message) from None


def _named(text: str) -> Uses:
    """Return the works behind a queue or a congestion control."""
    name = next(iter(text.split()), "")
    queues = [entry["name"] for entry in text_json.loads(_core.qdisc_catalogue())]
    controls = [entry["name"] for entry in text_json.loads(_core.cc_catalogue())]
    if name in queues:
        return bibliography.of_queue(text)
    if name in controls:
        return bibliography.of_control(text)
    known = [*queues, *controls, *studies.names(studies.studies_folder(None))]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else f"; {_EXPECTED}"
    message = f'unknown name "{text}"{hint}'
    raise _core.ScenarioError(message)
