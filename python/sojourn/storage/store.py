"""A shared store of finished runs."""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.storage import batch
from sojourn.storage.batch import About, DamagedError
from sojourn.storage.objects import CLOCK, Bucket, Directory, Item, Objects

_RUNS = "runs/"
# Concurrent reads: a request spends most of its time waiting.
_AT_ONCE = 16
# Digits of the digest in the prefix of the batches of a scenario.
_DIGITS = 32
# How shared stores are written.
STORES = "s3://bucket/prefix or a directory"
# Delays between attempts: NFS caches names, so an object of another machine may appear late.
_DELAYS_S = (0.1, 0.4, 1.5, 3.0)
# Keys of a scenario that do not affect the prefix of its batches.
_OTHER = ("arms", "replications", "name", "duration", "warmup")


class Store:
    """A store of finished runs in a directory or a bucket."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    @classmethod
    def at(cls, url: str) -> "Store":
        """Open a store; its place is first read when the store is used.

        Examples
        --------
        >>> Store.at("/mnt/team").url
        '/mnt/team'
        """
        if not is_store(url):
            shown = url or '""'
            message = f"store {shown}: expected {STORES}"
            raise _core.ScenarioError(message)
        if "://" in url:
            return cls(Bucket(url))
        # Absolute: workers on this machine have another working directory.
        return cls(Directory(Path(url).absolute()))

    @property
    def url(self) -> str:
        """The place of the store."""
        return self._objects.url

    def rows_of(self, scenario: _core.Scenario) -> "Rows":
        """Return the rows of a scenario that this version of Sojourn has stored.

        Scenarios that differ only in their arms, duration or warm-up, such as those of one sweep,
        have the same prefix.
        """
        document = json.loads(scenario.to_json())
        rest = {key: value for key, value in document.items() if key not in _OTHER}
        digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
        about = About(
            scenario=scenario.name,
            scenario_sha256=digest,
            version=_core.version(),
            commit=_core.commit(),
        )
        return Rows(self._objects, about)

    def scenarios(self) -> list[dict[str, Any]]:
        """List the scenarios with stored runs, oldest first, as ``RunStore.scenarios`` does."""
        groups: dict[str, list[Item]] = defaultdict(list)
        for item in self._batches():
            groups[item.name.rpartition("/")[0]].append(item)
        now = time.time()
        with ThreadPoolExecutor(_AT_ONCE) as executor:
            abouts = list(executor.map(self._about, groups.values()))
        found = [
            {
                "name": "" if about is None else about.scenario,
                "scenario_sha256": "" if about is None else about.scenario_sha256,
                "commit": "" if about is None else about.commit,
                "runs": sum(_count(item) for item in items),
                "bytes": sum(item.size for item in items),
                # The clock of this machine may differ from that of the store.
                "age_s": max(now - max(item.modified_s for item in items), 0.0),
                "active": False,
            }
            for items, about in zip(groups.values(), abouts, strict=True)
        ]
        return sorted(found, key=lambda one: -one["age_s"])

    def verify(self) -> tuple[int, list[tuple[str, int, str]]]:
        """Read all batches; return the number of rows, and the damaged batches.

        A damaged batch is listed with its place, the number of its rows and the fault.
        """
        items = list(self._batches())
        with ThreadPoolExecutor(_AT_ONCE) as executor:
            faults = list(executor.map(self._fault, items))
        damaged = [
            (f"{self.url}/{item.name}", max(_count(item), 1), fault)
            for item, fault in zip(items, faults, strict=True)
            if fault is not None
        ]
        return sum(_count(item) for item in items), damaged

    def collect(self, age_s: float) -> int:
        """Remove the batches that are at least `age_s` seconds old; return their size in bytes.

        Ages are computed with the clock of the store, not that of this machine.
        """
        before_s = self._objects.now_s() - age_s
        old = {item.name: item.size for item in self._batches() if item.modified_s <= before_s}
        return sum(old[name] for name in self._objects.remove(list(old), before_s))

    def check(self) -> None:
        """Check that the place is a store."""
        if self._objects.get(CLOCK) is not None or self._objects.list(_RUNS):
            return
        exists = "://" in self.url or Path(self.url).exists()
        fault = "is not a store" if exists else "does not exist"
        message = f"store {self.url}: {fault}; expected one that a sweep has created"
        raise _core.ResultError(message)

    def _batches(self) -> Iterable[Item]:
        return (
            item for item in self._objects.list(_RUNS) if _base(item.name).endswith(batch.SUFFIX)
        )

    def _fault(self, item: Item) -> str | None:
        data = self._objects.get(item.name)
        if data is None:
            # Removed in the meantime.
            return None
        try:
            batch.decode(_base(item.name), data)
        except DamagedError as error:
            return f"{error}"
        return None

    def _about(self, items: Sequence[Item]) -> About | None:
        """Return the scenario and version of batches, from the first that is not damaged."""
        for item in items:
            try:
                return batch.decode(_base(item.name), self._objects.get(item.name) or b"")[1]
            except DamagedError:
                continue
        return None


class Rows:
    """The stored rows of the runs of a scenario."""

    def __init__(self, objects: Objects, about: About) -> None:
        self._objects = objects
        self._about = about
        identity = json.dumps([about.scenario_sha256, about.version, about.commit])
        digest = hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]
        self._prefix = f"{_RUNS}{digest}/"
        self._known: set[str] = set()
        self._rows: dict[str, bytes] = {}
        # The keys of the batches that this sweep or its workers wrote.
        self._written: dict[str, tuple[str, ...]] = {}
        # The place and fault of each damaged batch.
        self.damaged: list[str] = []
        # Their names.
        self._damaged: dict[str, str] = {}

    @property
    def prefix(self) -> str:
        """The prefix of the names of the batches; equal for equal scenarios and versions."""
        return self._prefix

    @property
    def about(self) -> About:
        """Scenario and version of the rows."""
        return self._about

    def has(self, name: str) -> bool:
        """Whether a batch exists and is undamaged; also false if the store cannot be read."""
        try:
            return batch.is_undamaged(name, self._objects.get(self._prefix + name))
        except _core.ResultError:
            return False

    def refresh(self) -> None:
        """Read the batches that were written since the last call."""
        names = [_base(item.name) for item in self._objects.list(self._prefix)]
        new = [n for n in names if n.endswith(batch.SUFFIX) and n not in self._known]
        with ThreadPoolExecutor(_AT_ONCE) as executor:
            contents = executor.map(lambda name: self._objects.get(self._prefix + name), new)
            for name, data in zip(new, contents, strict=True):
                if data is not None:
                    self._accepted(name, data)

    def find(self, key: str) -> bytes | None:
        """Return the row of a run; None if no batch has it."""
        return self._rows.get(key)

    def add(self, rows: Mapping[str, bytes]) -> str:
        """Write rows as a batch and return its name."""
        name, data = batch.encode(rows, self._about)
        self._objects.put(self._prefix + name, data)
        self._known.add(name)
        self._rows.update(rows)
        self._written[name] = tuple(rows)
        return name

    def restore(self) -> int:
        """Write again the batches that `store gc` has removed; return their number."""
        if not self._written:
            return 0
        found = {_base(item.name) for item in self._objects.list(self._prefix)}
        lost = [keys for name, keys in self._written.items() if name not in found]
        for keys in lost:
            self.add({key: self._rows[key] for key in keys})
        return len(lost)

    def load(self, name: str) -> bool:
        """Read a batch that another process has just written; return false if it is damaged."""
        if name in self._known:
            return True
        data = self._objects.get(self._prefix + name)
        for delay_s in _DELAYS_S:
            if data is not None:
                break
            time.sleep(delay_s)
            data = self._objects.get(self._prefix + name)
        if data is None:
            self._add_fault(name, "does not exist")
            return False
        rows = self._accepted(name, data)
        if rows is None:
            return False
        self._written[name] = tuple(rows)
        return True

    def _accepted(self, name: str, data: bytes) -> dict[str, bytes] | None:
        """Keep the rows of a batch and return them; None if it is damaged."""
        try:
            rows = batch.decode(name, data)[0]
        except DamagedError as error:
            # A batch of the same runs may replace it.
            self._add_fault(name, f"{error}")
            return None
        self._rows.update(rows)
        self._known.add(name)
        return rows

    def remains(self, fault: str) -> bool:
        """Whether the batch of an item of `damaged` is still there and damaged.

        Also true if the store cannot be read.
        """
        name = self._damaged[fault]
        try:
            data = self._objects.get(self._prefix + name)
        except _core.ResultError:
            return True
        return data is not None and not batch.is_undamaged(name, data)

    def _add_fault(self, name: str, fault: str) -> None:
        text = f"{self._objects.url}/{self._prefix}{name}: {fault}"
        self.damaged.append(text)
        self._damaged[text] = name


def is_store(text: str) -> bool:
    """Whether a text names the place of a shared store, which need not exist.

    Examples
    --------
    >>> is_store("s3://bucket/prefix"), is_store("gs://bucket")
    (True, False)
    """
    scheme, separator, rest = text.partition("://")
    if separator:
        return scheme == "s3" and bool(rest.split("/")[0])
    # A directory "s3:" would be a bucket with a missing slash.
    return bool(text) and not text.startswith("s3:")


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _count(item: Item) -> int:
    return batch.count(_base(item.name)) or 0
