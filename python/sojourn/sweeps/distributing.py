"""An executor whose runs are executed on a cluster."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sojourn import _core
from sojourn.sweeps import tasks
from sojourn.sweeps.carriers import Carrier
from sojourn.sweeps.cluster import Cluster, Run
from sojourn.sweeps.executors import Row, Work
from sojourn.sweeps.sharing import SharedCache, keys


@dataclass(slots=True, kw_only=True)
class ClusterExecutor:
    """Executes runs on the workers of Dask Distributed; a context manager.

    A task may contain runs of several carriers, so carriers with few short runs add no overhead.
    """

    scheduler: str | None
    cache: SharedCache
    jobs: int
    backend: str | None = None
    _cluster: Cluster | None = None
    # Of the sweep that is executed; a search has one after the other. Numbers are not used again.
    _carriers: dict[int, Carrier] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _places: dict[Carrier, int] = field(default_factory=dict)
    _texts: dict[int, str | bytes] = field(default_factory=dict)
    # Per carrier: runs submitted to the cluster, and rows that were not requested yet.
    _given: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    _ready: dict[int, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    # Carriers and numbers that wait for a submitted run, by its key: samples may be equal.
    _waiting: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def prepare(self, work: Iterable[Work], *, once: bool) -> None:  # noqa: ARG002 - no difference
        """Submit runs that the sweep will request."""
        for carrier, numbers in work:
            self._give(carrier, numbers, first=False)

    def execute(self, carrier: Carrier, numbers: Sequence[int]) -> Iterator[Sequence[Row]]:
        """Execute runs of a carrier; see :meth:`Executor.execute`."""
        place = self._place(carrier)
        self._give(carrier, numbers, first=True)
        waiting = set(numbers)
        while waiting:
            ready = self._ready[place]
            rows = [(number, ready.pop(number)) for number in waiting & ready.keys()]
            waiting -= {number for number, _ in rows}
            yield rows
            if waiting:
                self._take()
        self._texts.pop(place, None)
        # Equal carriers may come again.
        self._given[place].difference_update(numbers)

    def end(self) -> None:
        """Release the carriers, unless runs remain, which :meth:`close` cancels."""
        if not self._waiting:
            for kept in (self._carriers, self._places, self._texts, self._given, self._ready):
                kept.clear()

    def close(self) -> None:
        """Cancel the unfinished runs."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _give(self, carrier: Carrier, numbers: Sequence[int], *, first: bool) -> None:
        place = self._place(carrier)
        new = [number for number in numbers if number not in self._given[place]]
        if not new:
            return
        self._given[place].update(new)
        known = keys(carrier.scenario, self.backend)
        estimate = json.loads(_core.estimate(carrier.scenario, metrics=True))
        cost_s = estimate["cpu_s"] / len(known)
        runs = []
        for number in new:
            key = known[number]
            # Equal runs are executed once.
            if key not in self._waiting:
                runs.append(Run(place, number, key, cost_s, name=_name(carrier, number)))
            self._waiting.setdefault(key, []).append((place, number))
        self._opened().add(runs, first=first)

    def _take(self) -> None:
        assert self._cluster is not None  # noqa: S101 - runs were given to it
        for run, row, in_store in self._cluster.take():
            for carrier, number in self._waiting.pop(run.key):
                self._ready[carrier][number] = row
            if not in_store:
                self.cache.keep(self._carriers[run.carrier], {run.key: row})

    def _place(self, carrier: Carrier) -> int:
        if carrier not in self._places:
            place = self._places[carrier] = next(self._numbers)
            self._carriers[place] = carrier
        return self._places[carrier]

    def _text(self, place: int) -> str | bytes:
        if place not in self._texts:
            self._texts[place] = tasks.scenario_of(self._carriers[place].scenario)
        return self._texts[place]

    def _opened(self) -> Cluster:
        """Start the cluster when the first run is needed."""
        if self._cluster is None:
            self._cluster = Cluster(
                self.scheduler,
                store=self.cache.store.url,
                # A search executes carriers of several scenarios one after the other.
                rows=lambda place: self.cache.rows_of(self._carriers[place]),
                text=self._text,
                jobs=self.jobs,
                backend=self.backend,
            )
        return self._cluster


def _name(carrier: Carrier, number: int) -> str:
    """Name a run as in the errors of queues, so that the sweep can add its point."""
    cell, replication = divmod(number, carrier.most)
    return f'arm "{carrier.scenario.arms[cell]}", replication {replication}'
