"""One saved thing of each kind, and changes of its manifest that its digest does not betray."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sojourn as sj
from sojourn import _core
from sojourn.search import sensitivity, tune
from support import saved
from support.searched import TEXT, XYZ, Known

# Kinds whose manifest is JSON, and its name.
MANIFESTS = {
    "result": "manifest.json",
    "sweep": "sweep.json",
    "tune": "tune.json",
    "sensitivity": "sensitivity.json",
    "adversary": "adversary.json",
}
CLASSES: dict[str, Any] = {
    "sweep": sj.SweepResult,
    "tune": sj.TuneResult,
    "sensitivity": sj.SensitivityResult,
    "adversary": sj.AdversaryResult,
}
TABLES = {
    "result": [table["name"] for table in json.loads(_core.column_catalogue())],
    "sweep": ["runs", "points"],
    "tune": ["trials", "front", "importance"],
    "sensitivity": ["indices", "noise", "points"],
    "adversary": ["trials"],
}
ARMS = 'arms = [{ name = "a", set = { "links.down.loss" = "100%" } }, { name = "b" }]\n'


def save_all(folder: Path) -> None:
    """Save one thing of each kind, in a directory named after the kind."""
    sj.run(saved.scenario()).save(folder / "result")
    swept(folder / "store").save(folder / "sweep")
    base = sj.Scenario.from_toml(TEXT)

    def known(x: Sequence[float], n: int) -> dict[str, float]:
        return {"ping_ms_p99": 1.0 + x[0] + 0.001 * n, "goodput_up_mbit_per_s": 1.0 + x[1]}

    goals = ["min ping_ms_p99", "max goodput_up"]
    tuned = tune.prepared(tune.TunePlan(base, XYZ, goals, trials=8))
    tune.execute(tuned, Known(known)).save(folder / "tune")
    screened = sensitivity.SensitivityPlan(base, XYZ, ["ping_ms_p99"], method="morris", samples=4)
    sensitivity.execute(sensitivity.prepared(screened), Known(known)).save(folder / "sensitivity")

    sj.adversary(
        sj.Scenario.from_toml(TEXT + ARMS),
        {"rtt": ["20ms", "30ms"]},
        loser="a",
        against="b",
        score="min ping_ms_p99",
        trials=2,
        final_replications=2,
    ).save(folder / "adversary")


def swept(store: Path) -> sj.SweepResult:
    """Run a sweep, or take its runs from a run store."""
    return sj.sweep(
        saved.scenario(),
        {"rtt": ["10ms", "20ms"]},
        where=["rtt > 5ms"],
        replications=2,
        store=store,
    )


def content(kind: str, folder: Path) -> object:
    """Load a saved thing: everything that it says, in a form that can be compared."""
    loaded: Any = sj.Result.load(folder) if kind == "result" else CLASSES[kind].load(folder)
    if kind == "result":
        about: Any = (loaded.provenance, loaded.finished, loaded.total, loaded.build)
    else:
        about = (loaded.manifest, loaded.scenario.hash)
    frames = {name: getattr(loaded, name) for name in TABLES[kind]}
    return repr(about), {name: frame.write_ipc(None).getvalue() for name, frame in frames.items()}


def refusal(call: Callable[[], object]) -> str | None:
    """Call a function; return the message if it refuses, which is one line."""
    try:
        call()
    except sj.SojournError as error:
        message = f"{error}"
    else:
        return None
    assert "\n" not in message
    return message


def sign(folder: Path, kind: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the manifest of a sweep or search; the digests in it agree with its files again."""
    path = folder / MANIFESTS[kind]
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    if isinstance(manifest.get("files"), dict):
        for name in manifest["files"]:
            if (folder / name).is_file():
                found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
                manifest["files"][name] = found
    manifest.pop("manifest_sha256", None)
    text = json.dumps(manifest, separators=(",", ":"), sort_keys=True)
    manifest["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(manifest), encoding="utf-8")
