"""The Rust core of Sojourn: scenarios, runs, records and statistics.

Private: the public names are those of :mod:`sojourn`. A run depends only on its scenario and on
the version.

The tables of an :class:`Outcome` and their columns are described by the properties of
:class:`sojourn.Result` with the same names.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, TypedDict, final, type_check_only

__all__ = [
    "Batch",
    "Capture",
    "CaptureAnalysis",
    "Claim",
    "DamagedResultError",
    "DrivenQueue",
    "Folder",
    "Interop",
    "Invocation",
    "LinkControl",
    "Measurements",
    "Meter",
    "NotRegularError",
    "OccupiedError",
    "Outcome",
    "Packet",
    "PacketPath",
    "QueueError",
    "Replacement",
    "ResultError",
    "RunStore",
    "Scenario",
    "ScenarioError",
    "SojournError",
    "Table",
    "UnavailableError",
    "add_derived",
    "averaged_pings",
    "backend_concurrency",
    "backend_names",
    "bootstrap_means",
    "cc_catalogue",
    "check_backend",
    "check_capture",
    "check_jobs",
    "check_part",
    "check_qdisc",
    "column_catalogue",
    "commit",
    "default_max_memory",
    "enter_user_namespace",
    "estimate",
    "is_capture",
    "jain",
    "limit_memory",
    "live_buffer_bytes",
    "load_plugin",
    "max_seed",
    "message",
    "metric_catalogue",
    "open_committed",
    "open_regular",
    "parameters_at",
    "parse_cc",
    "parse_qdisc",
    "parse_rate_bits_per_s",
    "parse_size_bytes",
    "parse_time_s",
    "parse_trace_bits_per_s",
    "plugin_prefix",
    "printable",
    "python_prefix",
    "qdisc_catalogue",
    "qdisc_notes",
    "qdisc_parameters",
    "queue_origin",
    "read_table",
    "register_controller",
    "register_python_queue",
    "run",
    "run_one",
    "run_program",
    "scenario_keys",
    "scenario_schema",
    "scenario_sha256",
    "simulated_events",
    "table_metrics",
    "tc_line",
    "traffic_types",
    "version",
    "worker_memory",
]

# Number, time, direction, bytes, ECN, DSCP, flow, time in the queue.
_Direction: TypeAlias = Literal["forward", "reverse"]
_Ecn: TypeAlias = Literal["not-ect", "ect0", "ect1", "ce"]
_Arrived: TypeAlias = tuple[int, float, _Direction, bytes, _Ecn, int, int, float]
# What means are of, and the mean of each part.
_Means: TypeAlias = list[tuple[str, list[float | None]]]
# Time, direction, packet, size, kind, reason, time since the packet was offered.
_Kind: TypeAlias = Literal["offered", "dropped", "marked", "departed", "lost", "arrived"]
_Happened: TypeAlias = tuple[float, _Direction, int, int, _Kind, str | None, float | None]

class SojournError(Exception):
    """Base class of all Sojourn exceptions."""

class ScenarioError(SojournError):
    """A scenario, queue, time, rate or size is not valid; the message says where.

    Its parts, each None if it is not known: ``path``, the key; ``value``, the text that is not
    valid; and ``problem``, the message without the two.
    """

    path: str | None
    value: str | None
    problem: str | None

class ResultError(SojournError):
    """A result or study cannot be written, read or queried."""

class DamagedResultError(ResultError):
    """A saved result is damaged or of a version that cannot be read."""

class OccupiedError(ResultError):
    """A directory has another result, which may be replaced on request."""

class QueueError(SojournError):
    """A queue or controller written in Python failed; the cause is the exception that it raised."""

class UnavailableError(SojournError):
    """The machine lacks something that a live run needs; the message says what to do about it."""

class NotRegularError(OSError):
    """A path is a directory, a pipe, a device, or a symbolic link that may not be followed."""

@final
class Packet:
    """A packet in a queue.

    A queue keeps it, returns it from `dequeue` or drops it.
    """

    @property
    def size(self) -> int:
        """Length on the wire in bytes, Ethernet header included."""

    @property
    def flow_hash(self) -> int:
        """A 32-bit hash of addresses, ports and protocol: equal for the packets of one flow."""

    @property
    def ecn(self) -> Literal["not-ect", "ect0", "ect1", "ce"]:
        """The ECN field: ``"not-ect"``, ``"ect0"``, ``"ect1"`` or ``"ce"``."""

    @property
    def dscp(self) -> int:
        """The Differentiated Services code point, 0 to 63."""

    @property
    def arrival(self) -> float:
        """When the packet entered the queue, in seconds of simulated time."""

    def mark(self) -> bool:
        """Set Congestion Experienced; False, and no mark, if the packet is not ECN-capable."""

    def drop(self, reason: Literal["aqm", "overlimit"] = "aqm") -> None:
        """Discard the packet.

        `reason` is ``"aqm"``, a congestion signal, or ``"overlimit"``, a full queue.
        """

    def __deepcopy__(self, memo: dict[Any, Any]) -> Packet:
        """Copy the packet into a copy of its queue."""

@final
class PacketPath:
    """Two directions of a bottleneck and a wire, driven by the caller's clock, in seconds."""

    def __new__(
        cls,
        forward: str,
        reverse: str | None = None,
        *,
        forward_trace: str | None = None,
        reverse_trace: str | None = None,
        seed: int = 0,
        events: bool = False,
        strict: bool = False,
        capture: str | PathLike[str] | None = None,
    ) -> Self: ...
    def push(self, now: float, direction: str, payload: bytes, ecn: str, flow: int) -> int:
        """Offer the payload of a UDP datagram; return its number."""

    def push_ip(self, now: float, direction: str, packet: bytes) -> int:
        """Offer an IP packet; return its number."""

    def poll(self, now: float) -> list[_Arrived]:
        """Return the packets that have arrived."""

    def deadline(self) -> float | None:
        """Return when to poll next; None while no packet is inside."""

    def events(self) -> list[_Happened]:
        """Remove and return the events."""

    def counters(self, direction: str) -> list[tuple[str, int]]:
        """Return the counters of a direction."""

    def sojourn(self, direction: str, quantile: float) -> float | None:
        """Return a quantile of the time in the queue of a direction; None if no packet departed."""

    def statistics(self, direction: str) -> list[tuple[str, tuple[str, int] | None, float]]:
        """Return the statistics of the queue of a direction."""

    def set_rate(self, now: float, direction: str, rate: str) -> None:
        """Change the rate of a bottleneck."""

    def set_wire(self, now: float, direction: str, change: str) -> None:
        """Change a wire."""

    def finish_capture(self) -> None:
        """End the capture."""

@final
class Scenario:
    """A valid scenario: links, traffic, duration, replications and arms.

    Two scenarios are equal if their canonical JSON is.
    """

    @staticmethod
    def from_toml(text: str, directory: str | PathLike[str] | None = None) -> Scenario:
        """Read TOML; the message of a :class:`ScenarioError` names the key and what is accepted."""

    @staticmethod
    def from_json(text: str) -> Scenario:
        """Read JSON of the same shape as the TOML."""

    @staticmethod
    def from_saved(text: str) -> Scenario:
        """Read the JSON of a saved result, which is untrusted: no file that it names is read."""

    def to_toml(self) -> str:
        """All keys of the scenario as TOML, defaults included; reading it gives an equal one."""

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, canonical units, defaults included."""

    def changed(self, changes: Sequence[tuple[str, str]]) -> Scenario:
        """Return a copy with some values changed: pairs of a path and a value as JSON.

        Raises :class:`ScenarioError` if a path does not exist, a value is not valid there, or every
        arm sets the value itself.
        """

    def arms_that_set(self, path: str) -> list[str]:
        """Return the names of the arms that set the value at `path`, or a part of it."""

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""

    @property
    def name(self) -> str:
        """Name of the scenario."""

    @property
    def arms(self) -> list[str]:
        """Names of the arms; ``["default"]`` if the scenario has none."""

    @property
    def external_queues(self) -> list[str]:
        """Names of its queues and controllers that are not part of Sojourn, sorted."""

    @property
    def concerns(self) -> list[tuple[str, str]]:
        """Limitations that are known before the runs: pairs of a severity and a text."""

    @property
    def notes(self) -> list[str]:
        """Probable mistakes, such as a link without traffic, one line each."""

    @property
    def replications(self) -> int:
        """Number of runs per arm; replication ``k`` of every arm has the same seed."""

    @property
    def duration_s(self) -> float:
        """Duration of a run in simulated seconds."""

    @property
    def warmup_s(self) -> float:
        """Duration of the warm-up, excluded from totals, in simulated seconds."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Table:
    """A table of an outcome; polars, pyarrow and DuckDB read it without a copy.

    ``polars.DataFrame(table)`` gives a frame (``polars.from_arrow``, a series of structs).
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table by the Arrow PyCapsule interface."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""

    @property
    def pieces(self) -> int:
        """Number of pieces, such as runs, that the rows are stored in."""

    def columns(self, piece: int, names: Sequence[str]) -> list[list[Any]]:
        """Return columns of a piece as lists: texts, numbers or flags, and None for null."""

    def part_means(
        self,
        value: str,
        *,
        of: str | None = None,
        weight: str | None = None,
        warmup_s: float,
        duration_s: float,
        parts: int,
    ) -> list[tuple[str, int, _Means]]:
        """Average a column in each of `parts` parts of the measured time of each run.

        Returns arm, replication, and the means by what they are of, in alphabetical order; None
        where there is no value. `of` is the column with what a value is of, and `weight` the
        column with its weight.
        """

    def load_means(
        self, flows: Table, warmup_s: float, duration_s: float, parts: int
    ) -> list[tuple[str, int, list[tuple[float, float, float]], _Means]]:
        """Average the goodput of each direction likewise, from ``flow_series``.

        Returns arm, replication, when each flow of the load sent (start, end and interval of its
        series), and the means.
        """

    def stuck(self) -> list[tuple[str, int, str, float, int, float]]:
        """Return the stretches in which a queue sent nothing although packets waited.

        They are arm, replication, link, the end of the first interval, the number of intervals,
        and the largest backlog in bytes, from ``link_series``.
        """

    def replies(self, warmup_s: float) -> list[tuple[str, int, int]]:
        """Count the replies to the pings of each run that were sent at or after a time.

        Returns arm, replication and number, from ``pings``.
        """

    def __len__(self) -> int:
        """Return the number of rows."""

@final
class Claim:
    """A directory that is reserved for a result until :meth:`release` is called."""

    def __new__(
        cls, directory: str | PathLike[str], force: bool = False, continued: str | None = None
    ) -> Self:
        """Reserve a directory, and check that a result can be saved in it.

        `continued` is the hash of a scenario whose result in the directory may be replaced.
        """

    @property
    def is_exclusive(self) -> bool:
        """Whether other processes cannot write to it; False on a file system without locks."""

    def release(self) -> None:
        """Unlock the directory; remove it if it was created for the result and is empty."""

@final
class Outcome:
    """The results of all runs of a scenario."""

    @property
    def complete(self) -> bool:
        """Whether every run of every arm finished."""

    @property
    def finished(self) -> int:
        """Number of finished runs."""

    @property
    def total(self) -> int:
        """Number of runs of the scenario."""

    @property
    def manifest(self) -> str:
        """Version, commit, scenario, seed and hash, as JSON."""

    @property
    def table_names(self) -> list[str]:
        """The names that :meth:`table` takes."""

    def table(self, name: str) -> Table:
        """Return the table called `name`."""

    def metrics(self, by: str) -> Table:
        """Return the metrics of every finished run, by run, group, class, application or link.

        The columns are ``arm``, ``replication``, ``group`` unless by run, and the metrics. Raises
        :class:`ResultError` for another `by`.
        """

    def save(self, directory: str | PathLike[str], force: bool = False) -> str:
        """Write ``manifest.json`` and one Parquet file per table; return the manifest's digest.

        If `force` is true, a different result in the directory is replaced, but never a complete
        result by an incomplete one.
        """

    def save_to(self, claim: Claim) -> str:
        """Write the result to a reserved directory; return the manifest's digest."""

    @property
    def loaded_digest(self) -> str | None:
        """The digest of the manifest that the result was loaded with, or None."""

    @staticmethod
    def load(directory: str | PathLike[str], max_bytes: int = ...) -> Outcome:
        """Read a result that :meth:`save` wrote, if its tables need at most `max_bytes`."""

    @staticmethod
    def assemble(
        scenario: Scenario, parts: Sequence[tuple[int, bytes]], backend: str | None = None
    ) -> Outcome:
        """Combine runs of a scenario: pairs of a number and what :func:`run_one` returned.

        Runs are numbered arm by arm. `backend` is the backend that executed all of them, by default
        the first of ``backend_names()``.
        """

def is_capture(begin: bytes) -> bool:
    """Whether a file that begins with these bytes is a packet capture."""

@final
class CaptureAnalysis:
    """Analyses a packet capture, pcap or pcapng, that is read in parts."""

    def __new__(cls) -> CaptureAnalysis: ...
    def feed(self, part: bytes) -> None:
        """Analyse the next part of the file."""

    def finish(
        self,
    ) -> tuple[list[tuple[str, Table]], list[tuple[str, int]], list[str], int | None, bool]:
        """End the analysis, and return what it found.

        Tables by name, what was left out by cause, the names of the interfaces, the time of the
        first packet in ns since 1970, and whether the file ends within a packet.
        """

@final
class Batch:
    """Simulations of scenarios that are advanced together, step by step.

    `action` is "none", "drop_probability", "time" or "windows"; `key` names the time of the queue,
    and `most` is the limit of the FIFO or the number of flows with a window.
    """

    link_columns: list[str]
    flow_columns: list[str]

    def __new__(
        cls,
        scenarios: Sequence[Scenario],
        size: int,
        *,
        link: str,
        step: str,
        action: str,
        key: str,
        most: int,
        threads: int,
    ) -> Batch: ...
    @property
    def columns(self) -> int:
        """Number of columns of a simulation."""

    def reset(self, number: int, scenario: int, seed: int, to: Any) -> None:
        """Start an episode and write its numbers, float64, at the end of the warm-up."""

    def step(self, actions: Any, to: Any) -> None:
        """Advance all simulations by a step with their actions, and write their numbers."""

@final
class DrivenQueue:
    """A queue that is driven packet by packet.

    `rate_bits_per_s` is the rate of its link, None if that is not known.
    """

    def __new__(
        cls, text: str, rate_bits_per_s: int | None, mtu: int, seed: int
    ) -> DrivenQueue: ...
    def enqueue(self, now_ns: int, number: int, flow: int, size: int, tos: int) -> None:
        """Offer a packet."""

    def dequeue(self, now_ns: int) -> tuple[int, int] | None:
        """Return number and type-of-service byte of the packet that leaves; None: none may."""

    @property
    def drops(self) -> list[int]:
        """Numbers of the packets dropped so far."""

    @property
    def marks(self) -> list[int]:
        """Numbers of the packets marked so far."""

    def __len__(self) -> int: ...

@final
class Capture:
    """A file for the packets of a run, in the format pcapng."""

    def __new__(cls, path: str | PathLike[str], *, state: bool = False) -> Capture:
        """Capture into an existing file, whose content is replaced.

        `state`: events, if the scenario keeps them, have the state of the queue.
        """

    @property
    def failure(self) -> str | None:
        """Why packets could not be written, if so."""

@final
class RunStore:
    """A store of finished runs: a directory."""

    def __new__(cls, folder: str | PathLike[str]) -> RunStore:
        """Open the store in a directory, which is created if needed."""

    @property
    def folder(self) -> Path:
        """The directory."""

    def scenarios(self) -> str:
        """List the scenarios with stored runs, oldest first, as JSON."""

    @staticmethod
    def verify(folder: str | PathLike[str]) -> tuple[int, list[tuple[str, int]]]:
        """Read all records in a directory: their number, and the damaged ones by their files.

        Nothing is repaired before that.
        """

    def collect(self, age_s: float) -> int:
        """Remove what ended processes stored at least `age_s` seconds ago; return the bytes."""

    def begin(
        self,
        scenario: Scenario,
        *,
        backend: str | None = None,
        resume: bool = False,
        binary: str | None = None,
    ) -> Invocation:
        """Begin an execution; with `resume`, continue the last interrupted one, if there is one.

        `binary` is a digest of the program. It identifies builds without a clean commit.
        """

    def begin_rows(self, meter: Meter) -> Invocation:
        """Begin an execution that stores rows of a meter, or continue the last interrupted one."""

@final
class Folder:
    """A directory that no other process writes to until the ``with`` statement ends.

    Failures are ``OSError``.
    """

    def __new__(cls, path: str | PathLike[str]) -> Self: ...
    def __enter__(self) -> Self:
        """Lock the directory, which is created if needed, and complete an interrupted commit."""

    def __exit__(self, *_exception: object) -> None:
        """Unlock the directory; remove it if it was created and is empty."""

    @property
    def is_exclusive(self) -> bool:
        """Whether other processes cannot write to it; False on a file system without locks."""

    def is_vacant(self) -> bool:
        """Whether nothing is in the directory but files of the protocol."""

    def check(self, names: Sequence[str]) -> None:
        """Check that files of these names can be committed."""

    def commit(
        self, files: Sequence[tuple[str, bytes]], *, remove: Sequence[str], manifest: str
    ) -> None:
        """Write files, all or none, and remove others with them.

        `manifest` is the digest of the new manifest: reports and figures of another one are
        removed, unless they were modified since.
        """

@final
class Replacement:
    """Replaces a file atomically by what is written to another one in the ``with`` statement.

    Failures are ``OSError``.
    """

    def __new__(
        cls, path: str | PathLike[str], *, rest: str | PathLike[str] | None = None
    ) -> Self: ...
    def __enter__(self) -> Path:
        """Create the file to write, with the permissions of the one that it will replace."""

    def __exit__(self, exception: object, _value: object, _traceback: object) -> None:
        """Put the new content into its place, synced to disk.

        After an exception, the file is as before; what was written gets the name `rest`, if given.
        """

@final
class Meter:
    """Computes the metrics of the runs of a scenario, each as soon as it ends.

    The metrics of a run are a row: some hundred bytes, which any process of the same build can
    read. Runs are numbered arm by arm.
    """

    def __new__(
        cls, scenario: Scenario, *, backend: str | None = None, binary: str | None = None
    ) -> Meter:
        """Prepare for a scenario.

        `backend` is one of ``backend_names()``, by default the first. `binary` is a digest of the
        program; it identifies builds without a clean commit.
        """

    @property
    def runs(self) -> int:
        """Number of runs of the scenario."""

    @property
    def metrics(self) -> list[str]:
        """Names of all metrics that a run may have, in order."""

    @property
    def reusable(self) -> bool:
        """Whether equal keys mean equal rows.

        The backend is deterministic, and the commit identifies the build.
        """

    def key(self, number: int) -> str:
        """Return the key of a row in hexadecimal: a digest of everything that determines it."""

    def shared_keys(self, binary: str) -> list[str] | None:
        """Return the keys of all rows for stores that several machines share.

        None if equal keys would not mean equal rows, since the backend is not deterministic.
        `binary` is a digest of the program. It identifies builds without a clean commit.
        """

    def measure(self, number: int) -> bytes:
        """Run one run and return its row."""

    def start(self, numbers: Sequence[int], *, jobs: int | None = None) -> Measurements:
        """Start runs on `jobs` threads (default: one per processor)."""

    def accepts(self, number: int, row: bytes) -> bool:
        """Return whether these bytes are the row of that run."""

    def table(self, rows: Sequence[tuple[int, bytes]]) -> Table:
        """Return rows as a table, in the order of the runs.

        The columns are ``arm``, ``replication``, and the metrics that apply to any of the runs.
        """

@final
class Measurements:
    """Runs under way: an iterator over lists of pairs of a number and a row.

    A list has the runs that finished within some 50 ms, in the order of completion; it may be
    empty.
    """

    def __iter__(self) -> Measurements: ...
    def __next__(self) -> list[tuple[int, bytes]]:
        """Wait for the next list; Ctrl-C raises ``KeyboardInterrupt``."""

    def stop(self) -> list[tuple[int, bytes]]:
        """End the runs, and return the rows of finished ones that were not returned before."""

@final
class Invocation:
    """One execution of a scenario, whose finished runs are stored."""

    @property
    def finished(self) -> list[int]:
        """Numbers of the runs that need not be repeated; runs are numbered arm by arm."""

    @property
    def committed(self) -> int:
        """Number of runs of this execution that are synced to disk; 0 after :meth:`close`."""

    @property
    def failure(self) -> str | None:
        """The first error that prevented storing a run, or None."""

    def read(self, number: int) -> bytes | None:
        """Return a finished run as :func:`run_one` returned it; None if it is damaged."""

    def append(self, number: int, run: bytes) -> None:
        """Store a run that :func:`run_one` returned."""

    def flush(self) -> None:
        """Wait until all runs are synced to disk."""

    def close(self) -> None:
        """End the execution, so that it can be resumed."""

    def discard(self) -> None:
        """Remove the stored runs of the scenario: its result is complete."""

def run(
    scenario: Scenario,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    backend: str | None = None,
    invocation: Invocation | None = None,
    capture: Capture | None = None,
    only: int | None = None,
) -> Outcome:
    """Run every arm and replication on `jobs` threads (default: one per processor).

    `capture` receives the packets of the run, of which there must be one.

    `only` is the number of the only run to execute, counted arm by arm.

    `invocation` stores each run when it finishes, and returns runs that are already finished.

    `backend` is one of ``backend_names()``, by default the first.

    `progress` is called with (finished, total) in the calling thread, at most every 50 ms. Ctrl-C
    ends the run and returns the finished runs, with ``complete`` false. An exception from
    `progress` ends the run and is raised.
    """

def run_one(scenario: Scenario, number: int, *, backend: str | None = None) -> bytes:
    """Execute run `number`, counted arm by arm, and return it for :meth:`Outcome.assemble`."""

def table_metrics(
    by: str, tables: Mapping[str, bytes], *, warmup_s: float, measured_s: float
) -> Table:
    """Compute the metrics of every run of some tables, given by name as Arrow IPC streams."""

def jain(values: Sequence[float | None]) -> float | None:
    """Return Jain's index of fairness of the known values; None if all are 0 or there are none."""

def averaged_pings(pings: bytes) -> Table:
    """Average the pings of every run of a table, an Arrow IPC stream, as flent does."""

def backend_concurrency(backend: str | None = None) -> int | None:
    """Return how many runs a backend can do at once; None if only the processors limit it.

    Raises :class:`ScenarioError` if no backend has this name.
    """

def check_backend(scenario: Scenario, backend: str | None = None) -> None:
    """Check that a backend supports every arm of a scenario.

    Raises :class:`ScenarioError` if not; the message names the features that it does not support,
    or the known backends if none has this name.
    """

def check_capture(scenario: Scenario, backend: str | None = None) -> None:
    """Check that a scenario has one run and that the backend captures packets.

    Raises :class:`ScenarioError` if not.
    """

def default_max_memory() -> int | None:
    """Return 80 % of the memory of this process in bytes; None if the system names no limit."""

def estimate(
    scenario: Scenario, *, jobs: int | None = None, metrics: bool = False, stored: bool = False
) -> str:
    """Estimate packets, events, CPU time and memory of the runs of a scenario, as JSON.

    {runs, packets, events, cpu_s, peak_memory_bytes, memory: [{place, cause, bytes}]}. With
    `metrics`, only the metrics of runs are kept, not their tables; with `stored`, their series
    stay in the run store.
    """

def limit_memory(limit: int | None, *, worker: bool = False) -> None:
    """Stop runs of this process from now on when it takes more memory than `limit` bytes.

    What it has in memory besides Python and its libraries does not count; None: no limit. The error
    is a `ScenarioError` whose path is max_memory. `worker`: the process has a share of the memory
    of another one, and the pages that both share do not count.
    """

def worker_memory(
    scenario: Scenario, *, workers: int, runs: int, metrics: bool = False
) -> int | None:
    """Return the share of each of several worker processes in the limit of this one, in bytes.

    This process has room for the tables of `runs` runs, or for their metrics.
    """

def simulated_events(scenario: Scenario) -> int:
    """Return the number of events of the first run of a scenario, for tests of the estimate."""

def check_jobs(jobs: int) -> None:
    """Raise a :class:`ScenarioError` if `run` does not accept this number of jobs."""

def backend_names() -> list[str]:
    """Return the names that `run` takes as `backend`, the default first."""

def qdisc_catalogue(name: str | None = None) -> str:
    """Return every queue as JSON; or the one called `name`, which may be from outside, in a list.

    ``[{name, page, class, summary, source, reconstruction, profiles, parameters: [{key, unit,
    default, derived, min, max, range, choices, meaning, provenance}], tc_statistics: {counters,
    leaves, overlimits}}]``. ``counters`` are pairs of a name in ``tc -s qdisc`` and a column,
    ``leaves`` the part of the statistics that contains the inner queues, and ``overlimits`` whether
    the statistics have a number of that name.
    """

def qdisc_parameters(text: str, bits_per_s: int | None = None) -> list[tuple[str, str]]:
    """Return the parameters of a queue, with those derived on a link, as pairs of key and text.

    Flags are ``on`` or ``off``. Without a rate, the rate of the link varies.
    """

def parameters_at(path: str, text: str) -> list[tuple[str, str | None]]:
    """Return the parameters of the queue or control `text` at a path such as ``links.up.qdisc``.

    Pairs of key and text; flags are ``on`` or ``off``, and None stands for a parameter without a
    value. Empty if values at the path have no parameters.
    """

def parse_qdisc(text: str) -> str:
    """Return the canonical form of a queue in the syntax of ``tc``."""

def qdisc_notes(text: str) -> list[str]:
    """Return what to note about a queue in the syntax of ``tc``.

    What ``tc`` reads otherwise than other readers may expect, such as a time without a unit, and
    words without effect. Empty if the text is refused.
    """

def tc_line(text: str, bits_per_s: int | None = None) -> str:
    """Return what follows ``tc qdisc replace dev DEVICE root`` for a queue on a link of this rate.

    Every parameter is stated, in the spelling and the units of ``tc``.
    """

def load_plugin(file: str | PathLike[str]) -> str:
    """Load the queue in a shared library, which runs its code, and return its name in scenarios.

    The name contains the first digits of the SHA-256 of the file.
    """

def plugin_prefix() -> str:
    """Return the prefix of the names of queues in shared libraries."""

def queue_origin(name: str) -> tuple[str | None, str | None]:
    """Return the version and the SHA-256 of a plug-in that this process has loaded."""

def python_prefix() -> str:
    """Return the prefix of the names of queues written in Python."""

def register_python_queue(name: str, queue: type, source: str) -> None:
    """Make a class usable as a queue under `name`; a class of the same name is replaced."""

def register_controller(
    name: str, controller: type, source: str, interval: str, changes_wires: bool
) -> None:
    """Make a class usable as a controller under `name`, called every `interval`.

    A class of the same name is replaced. `changes_wires`: it may change delay, jitter, loss and
    duplication.
    """

def check_qdisc(text: str, cases: int, seed: int) -> None:
    """Call a queue in `cases` random sequences; an AssertionError names the broken rule."""

def cc_catalogue() -> str:
    """Return every congestion control as JSON.

    ``[{name, class, summary, source, slow_starts, quic_slow_start, ecn, parameters: [{key, unit,
    of, default, derived, min, max, range, choices, meaning, provenance}]}]``. ``ecn`` is
    ``optional``, ``required`` or ``accurate``; ``of`` is the unit of a count or the denominator of
    a ratio.
    """

def max_seed() -> int:
    """Return the largest seed of a scenario."""

def parse_cc(text: str) -> str:
    """Return the canonical form of a congestion control such as ``cubic beta 0.8``."""

def check_part(kind: Literal["link", "traffic", "page", "arm"], text: str) -> None:
    """Check one link, traffic block, page or arm, given as JSON, by the rules of scenario files.

    Rules that depend on the rest of the scenario are not checked: the links of a path, the page of
    a web user, the end of the run and the values that an arm sets are assumed to be valid. The path
    in the message of a :class:`ScenarioError` is relative to the part.
    """

def column_catalogue() -> str:
    """Return the tables of a result and their columns as JSON.

    [{name, description, columns: [{name, type, nullable, unit, description}]}]
    """

def scenario_keys() -> dict[str, list[str]]:
    """Return the keys of each table of a scenario.

    The tables are ``"scenario"``, ``"link"``, ``"page object"`` and one per type of traffic.
    """

def metric_catalogue() -> str:
    """Return the metrics and their definitions as JSON.

    [{column, scope, label, unit, digits, role, shown, description}]
    """

@type_check_only
class TrafficType(TypedDict):
    """Properties of a type of traffic that determine the metrics of its flows."""

    measured: Literal["group", "application"] | None
    carries_data: bool
    has_connection: bool
    constant_rate: bool
    transactions: str | None

def traffic_types() -> dict[str, TrafficType]:
    """Return the properties of each type of traffic."""

def scenario_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of scenario files."""

def message(text: str) -> str:
    """Return a message on one line, of bounded length, with control characters escaped."""

def printable(text: str) -> str:
    """Return a text with control characters escaped."""

def parse_time_s(text: str) -> float:
    """Convert a time such as ``5ms`` to seconds."""

def parse_rate_bits_per_s(text: str) -> int:
    """Convert a rate such as ``10mbit`` to bits per second."""

def parse_trace_bits_per_s(gaps_ms: str) -> int:
    """Return the mean bits per second of a trace, given as the ``gaps_ms`` of a scenario."""

def parse_size_bytes(text: str) -> int:
    """Convert a size such as ``64kb`` to bytes; prefixes are powers of 1024."""

def bootstrap_means(
    samples: Iterable[Iterable[float]],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 1,
) -> list[tuple[float, float, float]]:
    """Return the mean of each sample and its percentile-bootstrap interval: mean, low, high.

    For one value, low and high are nan. Samples of one length take little more time than one.
    """

def version() -> str:
    """Return the version of Sojourn."""

def commit() -> str:
    """Return the Git commit of this build; ``unknown`` outside Git, ``-dirty`` if changed."""

def enter_user_namespace() -> None:
    """Become root of a user namespace, unless the process may create network namespaces anyway.

    Raises `UnavailableError` if the kernel does not permit it, or the process has several threads.
    """

def live_buffer_bytes() -> int:
    """Return the bytes of the packet buffers of a live run.

    Raises :class:`UnavailableError` where live runs are not available.
    """

@final
class Interop:
    """A scenario of the QUIC network simulator between two interfaces of the machine.

    `words` are its words, as a shell splits them; `interfaces` are those of the client and of the
    server. While a run forwards packets, connections to the TCP port `ready` succeed. The directory
    `logs`, if not None, gets the captures ``trace_node_left.pcap`` and ``trace_node_right.pcap``.
    """

    def __new__(
        cls,
        words: Sequence[str],
        interfaces: tuple[str, str],
        *,
        ready: int | None = None,
        logs: Path | str | None = None,
    ) -> Self: ...
    @property
    def bits_per_s(self) -> int:
        """The rate of the link in bit/s."""

    @property
    def delay_ns(self) -> int:
        """The one-way delay of the link in ns."""

    @property
    def qdiscs(self) -> tuple[str, str]:
        """The queues for packets to the client and to the server."""

@final
class LinkControl:
    """Changes the links of a running live run, from any thread."""

    def __new__(cls) -> LinkControl: ...
    def change(self, changes: Sequence[tuple[str, str]]) -> tuple[float, list[tuple[str, str]]]:
        """Change links: pairs of a name and the keys of a change as JSON.

        All take effect at once, or none. Return the time in seconds and the settings of all links
        afterwards, each as JSON; without changes, the present ones. Raises :class:`ScenarioError`
        if a change is not valid or the run has ended.
        """

    def watch(self) -> None:
        """From now on, `watch` of the run is called with the links and their flows."""

def run_program(
    scenario: Scenario,
    *,
    ecn: bool = False,
    watch: Callable[[str], object] | None = None,
    links: bool = False,
    flows: bool = False,
    capture: Capture | None = None,
    internet: bool = False,
    bridge: tuple[str, str] | None = None,
    default_route: bool = False,
    interop: Interop | None = None,
    control: LinkControl | None = None,
) -> tuple[Outcome, int | None, bool]:
    """Run the program of a scenario, which has the terminal of this process, until it ends.

    With `internet`, the program reaches the network of the machine. `bridge` names two interfaces
    of the machine, whose packets cross the links in place of those of a program; with
    `default_route`, also interfaces with the default route of the machine. `interop` has two
    networks of the machine, and what happens to packets between them.
    `watch` is called once per second, on the main thread, with the links in the last second, as
    JSON: from the start if `links` or `flows` is set, otherwise once `control` asks for it; with
    `flows` also the transport flows of each link.
    `capture` receives the packets. `control` changes the links during the run; it is of one run.
    Return the outcome, whose scenario has the duration that the run
    took, the exit code of the program (None if it was still running), and whether a signal ended
    the run.
    """

def add_derived(path: str | PathLike[str], manifest: str, sha256: str) -> None:
    """Add a report or figure to the index of its directory."""

def open_committed(directory: str | PathLike[str], name: str) -> int:
    """Open a file of a directory, even after an unfinished commit, and return its descriptor."""

def open_regular(path: str | PathLike[str], *, follow: bool = True) -> int:
    """Open a regular file to read it, and return its descriptor.

    Raises :class:`NotRegularError` for anything else, and for a symbolic link if `follow` is false.
    """

def read_table(content: bytes, max_bytes: int) -> Table:
    """Read the content of a Parquet file, whose table takes at most `max_bytes` of memory.

    Raises :class:`DamagedResultError`, whose message begins with a verb, if it has other columns
    than numbers, text and bytes.
    """

def scenario_sha256(text: str) -> str:
    """Return the SHA-256 of a scenario in JSON as it was written.

    Keys added since are not part of it.
    """
