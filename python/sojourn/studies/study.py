"""Studies: reproductions of published works.

A study is a directory with ``study.toml``, ``claims.csv``, scenarios in TOML, published data and
``about.md``; ``docs/howto/write_study.md`` describes the files.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sojourn import _core
from sojourn.errors import invalid_file
from sojourn.scenario import Arm, Scenario
from sojourn.scenario.paths import overridden
from sojourn.studies import claims, manifest
from sojourn.studies.claims import Claim, Subject
from sojourn.studies.manifest import ARMS, Assumption, Changes, Description, Figure, Variant
from sojourn.studies.verdicts import substituted

FILE = "study.toml"
# Hexadecimal digits of the digest of a scenario.
DIGEST = 12
Scale = Literal["quick", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """A scenario with one assumption changed."""

    assumption: Assumption
    variant: Variant
    base: str
    key: str
    scenario: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study."""

    folder: Path
    description: Description
    claims: Sequence[Claim]

    @property
    def name(self) -> str:
        """Name of the study: that of its directory."""
        return self.folder.name

    def figures(self, names: Sequence[str]) -> list[Figure]:
        """Return figures by their names; without names, all."""
        known = {figure.name: figure for figure in self.description.figure}
        for name in names:
            if name not in known:
                accepted = f"expected one of {', '.join(known)}" if known else "it has no figures"
                message = f'{self.name} has no figure "{name}"; {accepted}'
                raise _core.ScenarioError(message)
        return [known[name] for name in names] if names else list(known.values())

    def needed(self, figures: Sequence[Figure], claims: Sequence[Claim]) -> list[str]:
        """List the scenarios that figures and claims need."""
        judged = self.judged_claims(claims)
        claimed = [subject.scenario for claim in judged for subject in claim.subjects]
        drawn = [
            name
            for figure in figures
            for panel in figure.panel
            for name in self.description.scenarios_of(panel)
        ]
        return list(dict.fromkeys([*claimed, *drawn]))

    def judged_claims(self, claims: Sequence[Claim]) -> list[Claim]:
        """List claims, and those of every preset in place of them."""
        presets = self.description.preset
        others = (substituted(claims, preset.arms, preset.scenarios) for preset in presets)
        return [claim for every in (claims, *others) for claim in every]

    def scenarios(self, names: Sequence[str], scale: Scale) -> dict[str, Scenario]:
        """Build scenarios and points of sweeps."""
        return {name: self._scenario(name, scale) for name in names}

    def _scenario(self, name: str, scale: Scale) -> Scenario:
        file, changes = self._source(name, scale)
        scenario = Scenario.from_file(file)
        for one in changes:
            scenario = changed(scenario, one)
        return scenario

    def digest(self, name: str, scale: Scale) -> str:
        """Digest a scenario as the study states it, without comments and defaults."""
        file, changes = self._source(name, scale)
        stated = [tomllib.loads(file.read_text(encoding="utf-8")), *map(dict, changes)]
        text = json.dumps(stated, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST]

    def _source(self, name: str, scale: Scale) -> tuple[Path, list[Changes]]:
        """Find the file of a scenario, and what is changed in it, in this order."""
        about = self.description
        sweep = next((one for one in about.sweep.values() if name in one.points), None)
        file = self.folder / f"{sweep.scenario if sweep else name}.toml"
        if not file.is_file() or file.name == FILE:
            raise invalid_file(
                self.folder, f"unknown scenario {name}; expected {file.name} or a point of a sweep"
            )
        changes: list[Changes] = [sweep.points[name]] if sweep else []
        if scale == "quick":
            quick = sweep.quick if sweep else about.quick_of(name)
            changes.append({**about.quick, **quick})
        return file, changes

    def check_arms(self, scenarios: Mapping[str, Scenario]) -> None:
        """Check that scenarios have the arms that claims name, and calibration only baselines."""
        for claim in self.claims:
            for line in claim.lines:
                # A search does without weaker forms.
                is_searched = claim.is_calibration and not line.weaker
                for one in (line.subject, line.reference):
                    if one is not None and one.scenario in scenarios:
                        self._check_arm(
                            claim.name, one, scenarios[one.scenario], searched=is_searched
                        )

    def _check_arm(self, claim: str, one: Subject, scenario: Scenario, *, searched: bool) -> None:
        arms = scenario.checked.arms
        if one.arm not in arms:
            rule = f'no arm "{one.arm}" in {one.scenario}; expected one of {", ".join(arms)}'
        elif searched and (own := self.own_queue(scenario, one.arm)):
            rule = (
                f"arm {one.arm} of {one.scenario} has {own}, a queue of the work itself; expected "
                f"only baselines in a claim for calibration"
            )
        else:
            return
        raise invalid_file(self.folder / claims.FILE, f"claim {claim}: {rule}")

    def own_queue(self, scenario: Scenario, arm: str) -> str | None:
        """Return the queue of the work itself that an arm has; None for a baseline."""
        changes = {one.name: one.set for one in scenario.arms}.get(arm, {})
        alone = overridden(scenario.replace(arms=[]), dict(changes))  # type: ignore[arg-type]
        links = json.loads(alone.checked.to_json())["links"].values()
        queues = [link["qdisc"] for link in links if "qdisc" in link]
        words = {word for queue in queues for word in queue.split()}
        return next((name for name in self.description.own if name in words), None)

    def variants(self, scenarios: Mapping[str, Scenario]) -> Iterator[Varied]:
        """Build the scenarios that vary the assumptions."""
        named = {claim.name: claim for claim in self.claims}
        for assumption in self.description.assumption:
            if unknown := next((name for name in assumption.claims if name not in named), None):
                raise invalid_file(
                    self.folder / FILE, f"assumption {assumption.name}: unknown claim {unknown}"
                )
            subjects = [one for name in assumption.claims for one in named[name].subjects]
            for number, variant in enumerate(assumption.variant, start=1):
                for base in assumption.scenarios:
                    if base not in scenarios:
                        raise invalid_file(
                            self.folder / FILE,
                            f"assumption {assumption.name}: no claim or "
                            f'figure needs a scenario "{base}"',
                        )
                    needed = {one.arm for one in subjects if one.scenario == base}
                    scenario = restricted(scenarios[base], assumption.arms or needed)
                    if assumption.replications is not None:
                        scenario = scenario.replace(replications=assumption.replications)
                    yield Varied(
                        assumption=assumption,
                        variant=variant,
                        base=base,
                        key=f"{base}--{assumption.slug}-{number}",
                        scenario=changed(scenario, variant.set),
                    )


def load(folder: Path) -> Study:
    """Read a study."""
    return Study(
        folder=folder,
        description=manifest.load(folder / FILE),
        claims=claims.load(folder / claims.FILE),
    )


def studies_folder(given: Path | None) -> Path:
    """Find the directory of the studies: the given one, or the one in this package."""
    if given is not None:
        if given.is_dir():
            return given
        message = f"{given} is not a directory; expected a directory of studies"
        raise _core.ResultError(message)
    return (Path(__file__).parent / "papers").resolve()


def names(folder: Path) -> list[str]:
    """List the studies of a directory."""
    return sorted(path.parent.name for path in folder.glob(f"*/{claims.FILE}"))


def title(folder: Path) -> str:
    """Return the title of a study; empty if its description is not valid."""
    try:
        return manifest.load(folder / FILE).title
    except _core.ResultError:
        return ""


def restricted(scenario: Scenario, arms: Sequence[str] | set[str]) -> Scenario:
    """Keep some arms of a scenario."""
    return scenario.replace(arms=[arm for arm in scenario.arms if arm.name in arms])


def changed(scenario: Scenario, changes: Changes) -> Scenario:
    """Change a scenario, and also the arms that set the changed queue themselves."""
    setting = {
        path: scenario.checked.arms_that_set(path) for path in changes if not path.startswith(ARMS)
    }
    # All at once: a count and a list with one value per flow are valid only together.
    own = {
        path: changes[path]
        for path, arms in setting.items()
        if len(arms) < max(1, len(scenario.arms))
    }
    if own:
        scenario = overridden(scenario, own)
    for path, value in changes.items():
        if path.startswith(ARMS):
            name, _, rest = path.removeprefix(ARMS).partition(".")
            scenario = _with_arm(scenario, name, rest, value)
        else:
            scenario = _with_arms(scenario, setting[path], path, value)
    return scenario


def _with_arms(scenario: Scenario, arms: Sequence[str], path: str, value: Any) -> Scenario:
    refused = []
    for name in arms:
        try:
            scenario = _with_arm(scenario, name, path, value)
        except _core.ScenarioError as error:
            refused.append(error)
    if refused and len(refused) == len(arms) == len(scenario.arms):
        raise refused[0]
    return scenario


def _with_arm(scenario: Scenario, name: str, path: str, value: Any) -> Scenario:
    """Change one value in one arm; a value of a queue replaces what is set below its path."""
    if name not in [arm.name for arm in scenario.arms]:
        message = f'arms.{name}.{path}: no arm "{name}" in {scenario.name}'
        raise _core.ScenarioError(message)
    return scenario.replace(
        arms=[
            Arm(name=arm.name, set={**_kept(arm, path), path: value}) if arm.name == name else arm
            for arm in scenario.arms
        ]
    )


def _kept(arm: Arm, path: str) -> dict[str, Any]:
    return {
        one: value
        for one, value in arm.set.items()
        if one != path and not one.startswith((f"{path}.", f"{path}["))
    }
