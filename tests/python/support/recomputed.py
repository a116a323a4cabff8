"""Recompute the findings on a result from its tables, row by row, without polars.

``compare`` parses the text of every finding and compares its subject and its numbers with what the
tables and the scenario say. Of findings that follow from the scenario alone, nothing is compared.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import fmean
from typing import Any

import sojourn as sj
from sojourn import _core

Row = dict[str, Any]
Numbers = tuple[float, ...]
# What a finding is about, such as an arm and a link, and its numbers.
Found = dict[tuple[str, ...], Numbers]

TYPES = _core.traffic_types()
BUSY = 0.05
NEEDS_MARKS = {"dctcp", "prague"}
COVERAGE = {5: 84.0, 3: 75.0}
OPPOSITE = {"up": "down", "down": "up"}
# Changes of these parts of a scenario are no changes of queues or controls.
COMPARED = {"qdisc", "cc"}
# Relative and absolute tolerance: of three digits, and of one decimal place.
CLOSE = 6e-3
DECIMAL = 0.051

PATTERNS = {
    "one run": r"n = (1): differences may be due to chance",
    "few runs": r"n = (\d+): intervals are too narrow \((75|84) % instead of 95 % at n = ",
    "repeated": r"(?P<arms>.*): all (\d+) replications have identical results",
    "short": r"only ([\d.]+) s of each run is measured",
    "no bottleneck": r"(?P<arms>\w+): no link was a bottleneck: packets waited [\d.]+ % of",
    "briefly": r"(?P<arms>\w+): packets waited only briefly, .*dropped or marked (\d+): ",
    "limits": r"(?P<arms>[\w, ]+): no link was a bottleneck: packets waited for at most "
    r"([\d.]+) % of the time",
    "idle link": r"packets hardly waited at (?P<link>\w+) \(at most (\d+) % of "
    r"(?:its rate|[\d.]+ [GMk]?bit/s) used\)",
    "elsewhere": r"the arms differ in the queue of .*, but the bottleneck of every flow is",
    "identical": r"(?P<arms>\w+ and \w+) have identical results in every run",
    "confounded": r"(?P<arms>[\w, ]+): these arms differ in ",
    "environment": r"the arms differ in [^;]*(, not in queues|: compare arms)",
    "ends early": r"(?P<arms>[\w, ]+): load is offered for only ([\d.]+)(?: to ([\d.]+))? s of the "
    r"([\d.]+) s",
    "in phase": r"(?:[\w, ]+: )?(?:the \d+ flows of )?\w+ (?:and \w+ )?send .* meet at link",
    "not negotiated": r"(?P<arms>[\w, ]+): the queue of link (?P<link>\w+) may mark, but no flow",
    "no marks": r"(?P<arms>[\w, ]+): (?P<cc>\w+) of (?P<group>\w+) needs ECN marks",
    "stuck": r"(?P<arms>\w+): the queue of link (?P<link>\w+) sent nothing for ([\d.]+) s",
    "connections": r"(?P<arms>\w+): (\d+) of (\d+) connections were never established",
    "aborted": r"(?P<arms>\w+): (\d+) of (\d+) connections of (?P<group>\w+) failed",
    "ping loss": r"(?P<arms>\w+): (\d+) % of pings had no reply",
    "no transaction": r"(?P<arms>\w+): no transaction of (?P<group>\w+) began after the warm-up "
    r"\(number of runs: (\d+)\)",
    "cut off": r"(?P<arms>\w+): (?P<group>\w+): (\d+) of (\d+) \w+ were still in progress",
    "worst calls": r"(?P<arms>\w+): (?P<group>\w+): (\d+) of (\d+) calls have the lowest",
    "few probes": r"(?P<arms>\w+): (\d+) of (\d+) tests of (?P<group>\w+) had too few probes",
    "unstable": r"(?P<arms>\w+): (\d+) of (\d+) tests of (?P<group>\w+) did not reach stability",
    "drift": r"(?P<arms>\w+): (?P<what>.*) is not stationary: ([\d.e+-]+) \S+ in the first, "
    r"([\d.e+-]+) \S+ in the second half",
    "sparse": r"(?P<arms>[\w, ]+): (?:(?P<group>\w+): )?(?P<what>(?:ping|completion|duration) "
    r"p\d+).* has too few observations: ([\d.]+) per run and (\d+) in all; it needs "
    r"(\d+) and (\d+)",
    # These follow from the scenario, not from what was measured.
    "": r"(not )?compared with a real implementation|([\w, ]+: )?(still starting up|"
    r"the queue .* assumes a rate|the shaper .* is faster than the link)",
}


def parsed(text: str) -> tuple[str, tuple[str, ...], Numbers]:
    """Return the kind of a finding, what it is about, and its numbers."""
    for kind, pattern in PATTERNS.items():
        if match := re.match(pattern, text):
            names = match.groupdict()
            rest = set(names.values())
            subject = tuple(sorted(name for name in names.values() if name))
            if kind == "idle link":
                subject = (names["link"],)
            numbers = tuple(
                float(group)
                for number, group in enumerate(match.groups(), 1)
                if group
                and number not in match.re.groupindex.values()
                and group not in rest
                and re.fullmatch(r"[\d.e+-]+", group)
            )
            return kind, subject, numbers
    message = f"a finding without a recomputation: {text}"
    raise AssertionError(message)


class Recomputed:
    """The findings that the tables of a result imply."""

    def __init__(self, result: sj.Result, trees: Mapping[str, Row]) -> None:
        self.trees = trees
        self.arms = list(trees)
        first = next(iter(trees.values()))
        self.warmup = _core.parse_time_s(first["warmup"])
        self.duration = _core.parse_time_s(first["duration"])
        self.measured = self.duration - self.warmup
        self.sample = _core.parse_time_s(first["sample"])
        self.replications = int(first["replications"])
        self.flows: list[Row] = result.flows.to_dicts()
        self.links: list[Row] = result.links.to_dicts()
        self.link_series: list[Row] = result.link_series.to_dicts()
        self.flow_series: list[Row] = result.flow_series.to_dicts()
        self.pings: list[Row] = result.pings.to_dicts()
        self.transactions: list[Row] = result.transactions.to_dicts()
        self.applications: list[Row] = result.applications.to_dicts()
        self.runs = sorted({(row["arm"], row["replication"]) for row in self.links})
        self.load = [row for row in self.flows if TYPES[row["kind"]]["carries_data"]]
        self.busy = self._busy()

    def block(self, arm: str, group: str) -> Row:
        return next(b for b in self.trees[arm]["traffic"] if b["name"] == group)

    def forward(self, block: Row) -> list[str]:
        names = block["path"] if "path" in block else [block["direction"]]
        return [name for name in names if isinstance(self.trees[self.arms[0]]["links"][name], dict)]

    def both(self, block: Row) -> list[str]:
        back = block.get("return", []) if "path" in block else [OPPOSITE[block["direction"]]]
        return [*self.forward(block), *back]

    def of(self, rows: Iterable[Row], arm: str, replication: int | None = None) -> list[Row]:
        return [
            row for row in rows if row["arm"] == arm and replication in {None, row["replication"]}
        ]

    def _spans(self, arm: str, replication: int, *, only: Callable[[Row], bool]) -> list[Numbers]:
        """List when the flows of the load started and ended."""
        spans = []
        for row in self.of(self.load, arm, replication):
            if row["started_s"] is None or not only(row):
                continue
            block, end = self.block(arm, row["group"]), self.duration
            if TYPES[row["kind"]]["has_connection"] and row["fct_s"] is not None:
                end = min(end, row["started_s"] + row["fct_s"])
            if "stop" in block:
                end = min(end, _core.parse_time_s(block["stop"]))
            if "rounds" in block or "visits" in block:
                sent = [
                    one["t_s"]
                    for one in self.of(self.flow_series, arm, replication)
                    if one["flow"] == row["flow"] and (one["goodput_mbit_per_s"] or 0) > 0
                ]
                end = min([end, *sent[-1:]])
            spans.append((row["started_s"], end))
        return spans

    def _covered(self, spans: Iterable[Numbers]) -> float:
        """Measure the union of some spans within the measured time."""
        edges = sorted({self.warmup, self.duration, *(x for span in spans for x in span)})
        spans = list(spans)
        return sum(
            b - a
            for a, b in pairwise(edges)
            if a >= self.warmup and b <= self.duration and any(s <= a and b <= e for s, e in spans)
        )

    def _busy(self) -> dict[tuple[str, str], Numbers]:
        """Average the share of the time with load with packets waiting, and the utilisation."""
        values = defaultdict(list)
        for arm, replication in self.runs:
            spans = self._spans(
                arm, replication, only=lambda row: not TYPES[row["kind"]]["transactions"]
            )
            spans += [
                (
                    row["started_s"],
                    self.duration if row["completed_s"] is None else row["completed_s"],
                )
                for row in self.of(self.transactions, arm, replication)
            ]
            covered = self._covered(spans) if spans else self.measured
            for row in self.of(self.links, arm, replication):
                waited = row["busy_share"] * self.measured
                share = min(1.0, waited / covered) if covered else float(waited > 0)
                values[arm, row["link"]].append((share, row["utilisation"]))
        return {key: tuple(map(fmean, zip(*rows, strict=True))) for key, rows in values.items()}

    def queues(self, arm: str) -> dict[str, str]:
        return {row["link"]: row["qdisc"] for row in self.of(self.links, arm)}

    def changed(self) -> list[str]:
        """List the links whose queue is not that of the first arm."""
        first = self.queues(self.arms[0])
        return [
            link
            for link in first
            if any(self.queues(arm).get(link) != first[link] for arm in self.arms)
        ]

    def total(self, arm: str, links: Iterable[str] | None = None, *prefixes: str) -> int:
        """Sum counts of an arm."""
        return sum(
            value or 0
            for row in self.of(self.links, arm)
            if links is None or row["link"] in links
            for column, value in row.items()
            if column.startswith(prefixes)
        )

    # Each of the following methods recomputes the findings of one kind.

    def repetition(self) -> Iterator[tuple[str, Found]]:
        n = float(self.replications)
        yield "one run", {(): (1.0,)} if n == 1 else {}
        yield "few runs", {(): (n, COVERAGE[5 if n >= 5 else 3])} if 1 < n < 8 else {}
        yield "short", {(): (self.measured,)} if self.measured < 10 else {}
        arms = [arm for arm in self.arms if self._is_repeated(arm)]
        yield "repeated", {(", ".join(arms),): (n,)} if arms else {}

    def _is_repeated(self, arm: str) -> bool:
        numbers = range(self.replications)
        rows = self.load if self.of(self.load, arm) else [*self.flows, *self.links]
        ignored = {"replication", "started_s", "connected_s"}
        runs = [
            [[(k, v) for k, v in row.items() if k not in ignored] for row in self.of(rows, arm, n)]
            for n in numbers
        ]
        return len(runs) > 1 and all(run == runs[0] for run in runs)

    def bottlenecks(self) -> Iterator[tuple[str, Found]]:
        most = {
            arm: max(share for (of, _), (share, _) in self.busy.items() if of == arm)
            for arm in self.arms
        }
        idle = [arm for arm in self.arms if most[arm] < BUSY]
        signals = {arm: self.total(arm, None, "drops_", "marks_") for arm in idle}
        compares = bool(self.changed())
        yield "no bottleneck", {(a,): () for a in idle if compares and not signals[a]}
        yield "briefly", {(a,): (signals[a],) for a in idle if compares and signals[a]}
        yield (
            "idle link",
            {
                (link,): (100 * used,)
                for link in self.queues(self.arms[0])
                for share, used in [
                    tuple(max(self.busy[a, link][n] for a in self.arms) for n in (0, 1))
                ]
                if share < BUSY and not idle
            },
        )
        carrying = {
            link
            for arm in self.arms
            for block in self.trees[arm]["traffic"]
            for link in self.forward(block)
        }
        changed = set(self.changed()) & carrying
        places = {
            row["bottleneck"]
            for row in self.load
            if self.busy.get((row["arm"], row["bottleneck"]), (0.0,))[0] >= BUSY
        }
        yield "elsewhere", {(): ()} if changed and places and not places & changed else {}

    def limits(self, found: Found) -> None:
        """Check notes on arms without a bottleneck: each is about some of them."""
        idle = {
            arm
            for arm in self.arms
            if max(share for (of, _), (share, _) in self.busy.items() if of == arm) < BUSY
        }
        named = set()
        for (names,), (percent,) in found.items():
            arms = names.split(", ")
            most = max(share for (arm, _), (share, _) in self.busy.items() if arm in arms)
            assert abs(100 * most - percent) <= DECIMAL, (names, most)
            named |= set(arms)
        assert named == (set() if self.changed() else idle), (named, idle)

    def arms_that_differ(self) -> Iterator[tuple[str, Found]]:
        seen: list[str] = []
        identical: Found = {}
        for arm in self.arms:
            twin = next((one for one in seen if self._values(one) == self._values(arm)), None)
            if twin is None:
                seen.append(arm)
            else:
                identical[f"{arm} and {twin}",] = ()
        yield "identical", identical
        parts = {arm: self._parts(arm) for arm in self.arms}
        environments = {environment for environment, _ in parts.values()}
        pairs = [
            (one, other)
            for one, other in combinations(self.arms, 2)
            if parts[one][0] != parts[other][0]
            and parts[one][1] != parts[other][1]
            and (parts[one][0], parts[other][1]) not in parts.values()
            and (parts[other][0], parts[one][1]) not in parts.values()
        ]
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        yield "confounded", {(", ".join(names),): ()} if names else {}
        yield "environment", {(): ()} if len(environments) > 1 and not names else {}

    def _values(self, arm: str) -> list[list[tuple[str, Any]]]:
        """Return what was measured in an arm, without what restates its configuration."""
        ignored = {
            "arm",
            "cc",
            "rtt_ms",
            "base_rtt_ms",
            "bytes",
            "qdisc",
            "rate_mbit_per_s",
            "capacity_mbit_per_s",
        }
        return [
            [(key, value) for key, value in row.items() if key not in ignored]
            for rows in (self.flows, self.links)
            for row in self.of(rows, arm)
        ]

    def _parts(self, arm: str) -> tuple[str, str]:
        """Split the configuration of an arm: load, RTT and rate; queues and controls."""
        environment, compared = [], []
        tree = self.trees[arm]
        values = [(f"links.{n}.{k}", v) for n, of in tree["links"].items() for k, v in of.items()]
        values += [(f"{b['name']}.{k}", v) for b in tree["traffic"] for k, v in b.items()]
        values += [("rtt", tree["rtt"])]
        for path, value in values:
            part = compared if path.rpartition(".")[2] in COMPARED else environment
            part.append((path, value))
        return json.dumps(environment), json.dumps(compared)

    def load_in_time(self) -> Iterator[tuple[str, Found]]:
        means = {}
        for arm in self.arms:
            spans = [self._spans(arm, n, only=lambda _: True) for n in range(self.replications)]
            covered = [self._covered(of_run) for of_run in spans if of_run]
            if covered and fmean(covered) < 0.8 * self.measured:
                means[arm] = fmean(covered)
        ends = (
            tuple(dict.fromkeys(f"{of(means.values()):.3g}" for of in (min, max))) if means else ()
        )
        numbers = (*map(float, ends), self.measured)
        yield "ends early", {(", ".join(means),): numbers} if means else {}

    def stuck(self) -> Iterator[tuple[str, Found]]:
        found: Found = {}
        for arm, replication in self.runs:
            series = defaultdict(list)
            for row in self.of(self.link_series, arm, replication):
                series[row["link"]].append(row)
            for link in self.of(self.links, arm, replication):
                rows = sorted(series[link["link"]], key=lambda row: row["t_s"])
                tree = self.trees[arm]["links"][link["link"]]
                if {"trace", "medium", "changes"} & tree.keys():
                    continue
                rates = [link["rate_mbit_per_s"], link["capacity_mbit_per_s"]]
                rate = 1e6 * min(rate for rate in rates if rate is not None)
                length, backlog = 0, 0
                for row in [*rows, {"sent_packets": 1, "backlog_bytes": 0}]:
                    if not row["sent_packets"] and row["backlog_bytes"]:
                        length, backlog = length + 1, max(backlog, row["backlog_bytes"])
                        continue
                    lasted = length * self.sample
                    if lasted > 1 + 16 * backlog / rate:
                        key = tuple(sorted((arm, link["link"])))
                        found[key] = (max(lasted, *found.get(key, (0.0,))),)
                    length, backlog = 0, 0
        yield "stuck", found

    def marks(self, found: Mapping[str, Found]) -> None:
        """Check what is said about ECN: no marks, and nobody or somebody who wants them."""
        for arms, link in (
            sorted(key, key=lambda name: name in self.queues(self.arms[0]))
            for key in found.get("not negotiated", {})
        ):
            for arm in arms.split(", "):
                assert not self.total(arm, [link], "marks_"), arm
                assert re.search(r"\b(ecn|ce_threshold|dualpi2)\b", self.queues(arm)[link]), arm
                for block in self.trees[arm]["traffic"]:
                    control = str(block.get("cc", "")).split(" ")[0]
                    negotiates = block.get("ecn", False) or control in NEEDS_MARKS
                    crosses = link in self.both(block)
                    assert not (negotiates and crosses), (arm, link, block["name"])
        without: dict[tuple[str, str], list[str]] = {}
        for arm in self.arms:
            for block in self.trees[arm]["traffic"]:
                control = str(block.get("cc", "")).split(" ")[0]
                links = self.forward(block)
                started = any(row["group"] == block["name"] for row in self.of(self.flows, arm))
                if control not in NEEDS_MARKS or not started or self.total(arm, links, "marks_"):
                    continue
                if self.total(arm, links, "drops_"):
                    without.setdefault((control, block["name"]), []).append(arm)
        said = {
            (control, group, arm)
            for key in found.get("no marks", {})
            for control in NEEDS_MARKS & set(key)
            for group in {b["name"] for b in self.trees[self.arms[0]]["traffic"]} & set(key)
            for names in set(key) - {control, group}
            for arm in names.split(", ")
        }
        assert said >= {(*key, arm) for key, arms in without.items() for arm in arms}, without
        for _, group, arm in said:
            links = self.forward(self.block(arm, group))
            assert not self.total(arm, links, "marks_")
            waits = any(self.busy[arm, link][0] >= BUSY for link in links)
            assert waits or self.total(arm, links, "drops_"), (arm, group)

    def counts(self) -> Iterator[tuple[str, Found]]:
        connections, aborted, losses, calls, probes, unstable = ({} for _ in range(6))
        for arm in self.arms:
            own = self.of(self.flows, arm)
            mine = [row for row in own if TYPES[row["kind"]]["has_connection"]]
            never = sum(row["connected_s"] is None for row in mine)
            if never:
                connections[arm,] = (never, len(mine))
            for group in {row["group"] for row in mine}:
                of_group = [row for row in mine if row["group"] == group]
                failed = sum(bool(row["aborted"]) for row in of_group)
                if failed:
                    aborted[tuple(sorted((arm, group)))] = (failed, len(of_group))
            lost = [row["ping_loss"] for row in own if row["kind"] == "ping"]
            lost = [share for share in lost if share is not None]
            if lost and fmean(lost) > 0.1:
                losses[arm,] = (round(100 * fmean(lost)),)
            applications = self.of(self.applications, arm)
            for group in {row["group"] for row in applications}:
                of_group = [row for row in applications if row["group"] == group]
                key = tuple(sorted((arm, group)))
                worst = sum(row["mos"] is not None and row["mos"] <= 1 for row in of_group)
                if of_group[0]["kind"] == "voip" and worst:
                    calls[key] = (worst, len(of_group))
                if of_group[0]["kind"] == "responsiveness":
                    few = sum(row["rpm"] is None for row in of_group)
                    # Null has no confidence; it is counted by the other finding.
                    low = sum(row["rpm_confidence"] not in {None, "high"} for row in of_group)
                    probes |= {key: (few, len(of_group))} if few else {}
                    unstable |= {key: (low, len(of_group))} if low else {}
        yield "connections", connections
        yield "aborted", aborted
        yield "ping loss", losses
        yield "worst calls", calls
        yield "few probes", probes
        yield "unstable", unstable

    def of_transactions(self) -> Iterator[tuple[str, Found]]:
        none: Found = {}
        cut: Found = {}
        for arm in self.arms:
            for block in self.trees[arm]["traffic"]:
                key = tuple(sorted((arm, block["name"])))
                if not TYPES[block["type"]]["transactions"]:
                    continue
                flows = [row for row in self.of(self.flows, arm) if row["group"] == block["name"]]
                if not flows:
                    continue
                per_run = []
                begun = ended = 0
                for n in range(self.replications):
                    rows = [
                        row
                        for row in self.of(self.transactions, arm, n)
                        if row["group"] == block["name"] and row["started_s"] >= self.warmup
                    ]
                    per_run.append(len(rows))
                    begun += len(rows)
                    ended += sum(row["completed_s"] is not None for row in rows)
                if not all(per_run):
                    none[key] = (sum(not one for one in per_run),)
                if begun and begun - ended > 0.1 * begun:
                    cut[key] = (begun - ended, begun)
        yield "no transaction", none
        yield "cut off", cut

    def _observations(self) -> Iterator[tuple[str, str, Row]]:
        """Yield the observations of percentiles: quantity, group and row."""
        for row in self.pings:
            if row["t_s"] >= self.warmup and row["rtt_ms"] is not None:
                yield "ping", "", row
        for row in self.transactions:
            if row["started_s"] >= self.warmup and row["completed_s"] is not None:
                yield "duration", row["group"], row
        for row in self.flows:
            if (row["started_s"] or 0.0) >= self.warmup and row["fct_s"] is not None:
                yield "completion", row["group"], row

    def sparse(self) -> Iterator[tuple[str, Found]]:
        """Find percentiles with few observations."""
        seen = Counter(
            (what, group, row["arm"], row["replication"])
            for what, group, row in self._observations()
        )
        of_arms: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        for (*key, _), count in seen.items():
            of_arms[tuple(key)].append(count)
        found: Found = {}
        for (what, group, arm), counts in of_arms.items():
            for percent in (95, 99) if what == "ping" else (95,):
                needed = (round(100 / (100 - percent)), round(500 / (100 - percent)))
                if fmean(counts) < needed[0] or sum(counts) < needed[1]:
                    numbers = (fmean(counts), sum(counts), *needed)
                    found[group, f"{what} p{percent}", arm] = numbers
        yield "sparse", found

    def drifts(self, found: Found) -> None:
        """Check the means of both halves of quantities that are said to drift."""
        for key, said in found.items():
            (arm,) = (name for name in key if name in self.arms)
            (what,) = (name for name in key if name != arm)
            runs = [self._parts_of(arm, number, what) for number in range(self.replications)]
            runs = [run for run in runs if run]
            # Parts without a value are left out on both sides.
            pairs = [(n, n + 5) for n in range(5) if all({n, n + 5} <= run.keys() for run in runs)]
            for half, written in enumerate(said):
                mean = fmean(fmean(run[pair[half]] for pair in pairs) for run in runs)
                assert abs(mean - written) <= CLOSE * mean, (key, said, mean)

    def _parts_of(self, arm: str, number: int, what: str) -> dict[int, float]:
        """Average a quantity of a run over each tenth of the measured time."""
        values: dict[int, list[Numbers]] = defaultdict(list)
        for t, value, weight in self._series(arm, number, what):
            part = math.ceil((t - self.warmup) / (self.measured / 10)) - 1
            if 0 <= part < 10:
                values[part].append((value, weight))
        return {
            part: sum(value * weight for value, weight in of) / sum(weight for _, weight in of)
            for part, of in values.items()
        }

    def _series(self, arm: str, number: int, what: str) -> Iterator[Numbers]:
        """Yield the times, values and weights of a quantity."""
        if what.startswith("ping"):
            for row in self.of(self.pings, arm, number):
                if row["rtt_ms"] is not None:
                    yield row["t_s"], row["rtt_ms"], 1.0
        elif what.startswith("sojourn time of link "):
            for row in self.of(self.link_series, arm, number):
                if f"sojourn time of link {row['link']}" == what and row["sent_packets"]:
                    yield row["t_s"], row["sojourn_ms_mean"], row["sent_packets"]
        else:
            directions = {
                row["flow"]: row["direction"] or "total"
                for row in self.of(self.flows, arm, number)
                if row["kind"] == "udp"
                or (TYPES[row["kind"]]["has_connection"] and row["bytes"] is None)
            }
            sums: dict[float, float] = defaultdict(float)
            for row in self.of(self.flow_series, arm, number):
                if f"goodput {directions.get(row['flow'])}" == what:
                    sums[row["t_s"]] += row["goodput_mbit_per_s"]
            yield from ((t, value, 1.0) for t, value in sums.items())


def _said(result: sj.Result) -> dict[str, Found]:
    """Parse the findings on a result."""
    found: dict[str, Found] = defaultdict(dict)
    for finding in result.validity.findings:
        kind, subject, numbers = parsed(finding.text)
        if kind == "sparse":
            match = re.match(PATTERNS["sparse"], finding.text)
            assert match
            for arm in match["arms"].split(", "):
                found[kind][match["group"] or "", match["what"], arm] = numbers
        elif kind:
            assert subject not in found[kind], finding.text
            found[kind][subject] = numbers
    return found


def compare(result: sj.Result, trees: Mapping[str, Row]) -> dict[str, int]:
    """Compare the findings on a result with its tables; return how many there are of each kind."""
    found, of = _said(result), Recomputed(result, trees)
    parts: Sequence[Callable[[], Iterator[tuple[str, Found]]]] = (
        of.repetition,
        of.bottlenecks,
        of.arms_that_differ,
        of.load_in_time,
        of.stuck,
        of.counts,
        of.of_transactions,
        of.sparse,
    )
    for kind, wanted in (one for part in parts for one in part()):
        said = found.get(kind, {})
        assert said.keys() == wanted.keys(), (kind, said, wanted)
        for key, numbers in wanted.items():
            if kind == "sparse":
                _check_sparse(key, said[key], wanted)
            else:
                _check_numbers(kind, said[key], numbers)
    of.limits(found.get("limits", {}))
    of.marks(found)
    of.drifts(found.get("drift", {}))
    return {kind: len(subjects) for kind, subjects in found.items()}


def _check_numbers(kind: str, said: Numbers, wanted: Numbers) -> None:
    """Compare numbers as far as their digits go."""
    for written, number in zip(said, wanted, strict=True):
        # Of idle links, without a decimal place.
        slack = 0.501 if kind == "idle link" else CLOSE * number
        assert abs(written - number) <= slack, (kind, said, wanted)


def _check_sparse(key: tuple[str, ...], said: Numbers, wanted: Found) -> None:
    """Compare the observations of a percentile: the text states the fewest of its arms."""
    alike = [numbers for (group, what, _), numbers in wanted.items() if (group, what) == key[:2]]
    least_per_run = int(10 * min(numbers[0] for numbers in alike) + 1e-9) / 10
    assert said == (least_per_run, min(numbers[1] for numbers in alike), *alike[0][2:]), (key, said)
