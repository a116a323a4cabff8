"""What findings are based on: the tables of a result, and the configuration of each arm."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.result.metrics import CARRIES_DATA, HAS_CONNECTION, KEYS, WITH_TRANSACTIONS
from sojourn.result.stationarity import Drift
from sojourn.result.validity.percentiles import Sparse
from sojourn.scenario import Scenario
from sojourn.scenario.paths import overridden

Block = Mapping[str, Any]

# Keys of applications that end by themselves.
ROUNDS = ("rounds", "visits")
OPPOSITE = {"up": "down", "down": "up"}
# The fact of a run that lasted as long as its program: it says what ended the run.
ENDED_BY = "ended_by"


@dataclass(frozen=True, slots=True)
class Setup:
    """The configuration of an arm, in the canonical form of scenario files."""

    document: Mapping[str, Any]

    @property
    def links(self) -> Mapping[str, Mapping[str, Any]]:
        """The links that have a queue."""
        links = self.document["links"].items()
        return {name: link for name, link in links if isinstance(link, Mapping)}

    @property
    def blocks(self) -> Mapping[str, Block]:
        """The traffic blocks by name, which is the group of their flows."""
        return {block["name"]: block for block in self.document["traffic"]}

    @property
    def sample_s(self) -> float:
        """Length of one interval of the series."""
        return _core.parse_time_s(self.document["sample"])

    def forward(self, block: Block) -> list[str]:
        """List the links on the way of the data."""
        return self._with_queue(block["path"] if "path" in block else [block["direction"]])

    def both_ways(self, block: Block) -> list[str]:
        """List the links on the way of the data and on the way back."""
        back = block.get("return", []) if "path" in block else [OPPOSITE[block["direction"]]]
        return [*self.forward(block), *self._with_queue(back)]

    def _with_queue(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self.links]

    def values(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the value of each key, that of a link or a block in one piece."""
        for key, value in self.document.items():
            if key == "links":
                for name, link in value.items():
                    of_link = link if isinstance(link, Mapping) else {"rate": link}
                    yield from ((f"links.{name}.{key}", _text(one)) for key, one in of_link.items())
            elif key == "traffic":
                for block in value:
                    name = block["name"]
                    yield from ((f"traffic.{name}.{key}", _text(one)) for key, one in block.items())
            else:
                yield key, _text(value)


def _text(value: object) -> str:
    """Write a value of a scenario."""
    return value if isinstance(value, str) else json.dumps(value)


def setups(scenario: Scenario) -> dict[str, Setup]:
    """Return the configuration of each arm."""
    plain = scenario.replace(arms=())
    changes = {arm.name: arm.set for arm in scenario.arms} or {scenario.checked.arms[0]: {}}
    return {
        name: Setup(json.loads(overridden(plain, change).checked.to_json()))  # type: ignore[arg-type]
        for name, change in changes.items()
    }


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The tables of a result, and how its runs were configured."""

    arms: Mapping[str, Setup]
    flows: pl.DataFrame
    links: pl.DataFrame
    flow_series: pl.DataFrame
    link_series: pl.DataFrame
    transactions: pl.DataFrame
    finished: int
    total: int
    replications: int
    warmup_s: float
    duration_s: float
    per_application: pl.DataFrame
    applications: pl.DataFrame
    facts: Sequence[Mapping[str, Any]]
    concerns: Sequence[tuple[str, str]]
    drifts: Sequence[Drift]
    sparse: Sequence[Sparse]

    @property
    def measured_s(self) -> float:
        """Length of the measured time."""
        return self.duration_s - self.warmup_s

    @cached_property
    def is_experiment(self) -> bool:
        """Whether the runs last as their scenario says, not as long as a program."""
        return not any(fact["name"] == ENDED_BY for fact in self.facts)

    @cached_property
    def load(self) -> pl.DataFrame:
        """The flows that carry data."""
        return self.flows.filter(CARRIES_DATA)

    @cached_property
    def spans(self) -> pl.DataFrame:
        """When each flow of the load started and ended: `started_s` and `end_s`."""
        named = [
            (arm, name, block)
            for arm, setup in self.arms.items()
            for name, block in setup.blocks.items()
        ]
        stops = [
            (arm, name, _core.parse_time_s(block["stop"]))
            for arm, name, block in named
            if "stop" in block
        ]
        ending = [(arm, name) for arm, name, block in named if block.keys() & set(ROUNDS)]
        schema = {"arm": pl.String, "group": pl.String}
        stop = pl.DataFrame(stops, schema={**schema, "stop_s": pl.Float64}, orient="row")
        applications = pl.DataFrame(ending, schema=schema, orient="row")
        of_flow = [*KEYS, "flow"]
        last = (
            self.flow_series.lazy()
            .filter(pl.col("goodput_mbit_per_s") > 0)
            .join(applications.lazy(), on=["arm", "group"], how="semi")
            .group_by(of_flow)
            .agg(last_s=pl.col("t_s").max())
            .collect()
        )
        completed = pl.when(HAS_CONNECTION).then(pl.col("started_s") + pl.col("fct_s"))
        end = pl.min_horizontal(completed, "last_s", "stop_s", pl.lit(self.duration_s))
        return (
            self.load.drop_nulls("started_s")
            .join(stop, on=["arm", "group"], how="left", maintain_order="left")
            .join(last, on=of_flow, how="left", maintain_order="left")
            .select(*KEYS, "kind", "started_s", end_s=end)
        )

    def covered(self, spans: pl.DataFrame) -> pl.DataFrame:
        """Return for each run how much of the measured time some spans cover (`covered_s`)."""
        runs = self.flows.select(KEYS).unique(maintain_order=True)
        begin, end = pl.col("started_s").clip(lower_bound=self.warmup_s), pl.col("end_s")
        before = end.cum_max().shift(1).over(KEYS).fill_null(self.warmup_s)
        covered = (end - pl.max_horizontal(begin, before)).clip(lower_bound=0.0)
        sums = spans.sort(*KEYS, "started_s").group_by(KEYS).agg(covered_s=covered.sum())
        return runs.join(sums, on=KEYS, how="left", maintain_order="left")

    @cached_property
    def active(self) -> pl.DataFrame:
        """For how much of the measured time of each run load is offered (`covered_s`).

        Applications offer load during their transactions, and other flows from their start to their
        end. Null for a run without load.
        """
        others = self.spans.filter(~pl.col("kind").is_in(WITH_TRANSACTIONS))
        transactions = self.transactions.select(
            *KEYS, "started_s", end_s=pl.col("completed_s").fill_null(self.duration_s)
        )
        return self.covered(pl.concat([others.drop("kind"), transactions]))

    @cached_property
    def busy(self) -> pl.DataFrame:
        """The mean of `busy_share` and `utilisation` of each link of each arm.

        `busy_share` counts the time with load only: idle time before and after does not dilute it.
        """
        active = pl.col("covered_s").fill_null(self.measured_s)
        share = (pl.col("busy_share") * self.measured_s / active).clip(upper_bound=1.0)
        # Without load in the measured time, 0 / 0: no packet waited.
        share = share.fill_nan(0.0)
        return (
            self.links.join(self.active, on=KEYS, how="left", maintain_order="left")
            .with_columns(busy_share=share)
            .group_by("arm", "link", maintain_order=True)
            .agg(pl.col("busy_share", "utilisation").mean())
        )
