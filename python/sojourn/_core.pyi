"""The Rust core of Sojourn: scenarios, runs, records and statistics.

Private: the public names are those of :mod:`sojourn`. A run depends only on its scenario and on
the version.

The tables of an :class:`Outcome` are listed below. All begin with the columns ``arm`` (str) and
``replication`` (u32, from 0). A value that was not measured is null, never 0.

``flows``
    One row per flow: ``flow``, ``group`` (the name of its traffic block), ``kind`` (tcp, quic,
    udp, ping, or an application: web, sessions, request, incast, dash, voip,
    responsiveness), ``direction`` (up,
    down; null where the scenario gives paths), ``cc``,
    ``rtt_ms`` (base), ``started_s``, ``connected_s``, ``fct_s`` (flow completion time of finite
    TCP and QUIC, from the first packet), ``aborted`` (an endpoint gave up the connection; null without one), ``bytes`` (to transfer; null: endless),
    ``delivered_bytes``,
    ``goodput_mbit_per_s`` (payload over max(warm-up, start) to min(end, stop, completion)),
    ``sent_packets``, ``received_packets`` (UDP and voice: without duplicates),
    ``retransmits``, ``timeouts``, ``syn_retransmits``, ``handshake_losses`` (dropped or lost SYNs
    and SYN-ACKs), ``initial_losses`` (these, and drops of segments of the initial window; both from the
    start of the flow, warm-up included), ``srtt_ms_mean``, ``ack_rtt_ms_mean`` (over the
    acknowledgements with an RTT sample), ``cwnd_packets_mean``,
    ``owd_ms_mean``, ``owd_ms_p95``, ``owd_ms_max`` (one-way delay),
    ``ping_ms_mean``, ``ping_ms_median``, ``ping_ms_p95``, ``ping_ms_p99``, ``ping_ms_max``,
    ``ping_ms_min`` and ``ping_loss`` (share without reply).
``links``
    One row per link: ``link``, ``rate_mbit_per_s``, ``qdisc``, ``sent_packets``, ``sent_bytes``,
    ``utilisation``, ``drops_overlimit``, ``drops_aqm``, ``marks_aqm``, ``marks_ce_threshold``,
    ``lost_packets`` (on the wire, after transmission), ``duplicated_packets``,
    ``sojourn_ms_mean``, ``sojourn_ms_p50``, ``sojourn_ms_p95``, ``sojourn_ms_p99``,
    ``sojourn_ms_max``, ``busy_share`` (of time with more than one packet waiting),
    ``driver_ms_mean``, ``driver_ms_p95`` (time below the queue of a wireless link, with the driver
    and on the air; null for other links).
``flow_series``
    One row per flow and interval: ``t_s`` (end of the interval), ``flow``, ``group``,
    ``goodput_mbit_per_s``, ``cwnd_packets``, ``ssthresh_packets``, ``srtt_ms``,
    ``in_flight_packets``.
``link_series``
    One row per link and interval: ``t_s``, ``link``, ``backlog_packets``, ``backlog_bytes``,
    ``sojourn_ms_mean``, ``sojourn_ms_max``, ``sent_packets``, ``sent_bytes``,
    ``drops_overlimit``, ``drops_aqm``, ``marks_aqm``, ``marks_ce_threshold``,
    ``lost_packets``, ``duplicated_packets``.
``pings``
    One row per ping: ``t_s`` (send time), ``flow``, ``rtt_ms`` (null: no reply).
``sojourn``
    One row per link and bucket of its histogram: ``link``, ``low_ms``, ``high_ms``, ``count``.
``queue_statistics``
    One row per queue statistic at the end of the run: ``link``, ``part`` and
    ``part_number`` (such as tins and 0; null: the whole queue), ``name`` (as in ``tc -j -s``),
    ``type`` (count, real, flag), ``value``.
``events``
    One row per drop or mark, if the scenario sets ``keep_events``: ``t_s``, ``link``, ``flow``,
    ``action`` (drop, mark, loss), ``reason`` (overlimit, aqm, ce_threshold, wire).
``transactions``
    One row per transaction: ``flow``, ``group``, ``kind``,
    ``started_s``, ``completed_s`` and ``duration_s`` (null: not completed within the run), ``bytes``
    (of the responses). Of ``web`` a page, of ``sessions`` a connection, of ``request`` a
    response, of ``incast`` a round, of ``dash`` a segment.
``applications``
    One row per application: ``flow``, ``group``, ``kind``, ``connections`` (opened), ``failed``
    (aborted by TCP), ``handshake_hit`` (with a dropped SYN of either side),
    ``initial_hit`` (these, and those that lost a segment of the server's initial window), all
    from its start, warm-up included; ``transactions``, ``completed``, ``duration_s_mean``,
    ``duration_s_p50``, ``duration_s_p95`` of transactions that began after the warm-up; of ``dash``, from
    its start: ``startup_s``, ``stalls``, ``stalled_s``, ``bitrate_mbit_per_s_mean``,
    ``switches``; of ``voip``, after the warm-up: ``mos`` (E-model), ``mouth_to_ear_ms``,
    ``voice_loss_percent`` (lost or late), ``loss_runs``, ``loss_run_packets_max``,
    ``loss_interval_packets_mean``; of ``responsiveness``: ``rpm`` (the mean of ``foreign_rpm`` and
    ``loaded_rpm``), ``rpm_confidence`` (low, medium, high), ``rpm_at_s``, ``rpm_probes``, and the
    trimmed means ``tcp_handshake_ms``, ``tls_handshake_ms``, ``http_foreign_ms`` and
    ``http_loaded_ms``.
"""

from collections.abc import Callable, Iterable
from os import PathLike
from typing import Literal, final

__all__ = [
    "Outcome",
    "ResultError",
    "Scenario",
    "ScenarioError",
    "SojournError",
    "Table",
    "bootstrap_difference",
    "bootstrap_mean",
    "change_qdisc",
    "check_part",
    "commit",
    "parse_qdisc",
    "parse_rate_bits_per_s",
    "parse_size_bytes",
    "parse_time_s",
    "qdisc_catalogue",
    "run",
    "scenario_keys",
    "version",
]

class SojournError(Exception):
    """Base of all errors of Sojourn."""

class ScenarioError(SojournError):
    """A scenario, queue, time, rate or size is not valid; the message gives its place."""

class ResultError(SojournError):
    """A result folder cannot be written or read."""

@final
class Scenario:
    """A valid scenario: links, traffic, duration, replications and arms.

    Two scenarios are equal if their canonical JSON is.
    """

    @staticmethod
    def from_toml(text: str, folder: str | PathLike[str] | None = None) -> Scenario:
        """Read TOML; the message of a :class:`ScenarioError` names the key and what is accepted."""

    @staticmethod
    def from_json(text: str) -> Scenario:
        """Read JSON of the same shape as the TOML."""

    def to_toml(self) -> str:
        """All keys of the scenario as TOML, defaults included; reading it gives an equal one."""

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, canonical units, defaults included."""

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
    def replications(self) -> int:
        """Number of runs per arm; replication ``k`` of every arm has the same seed."""

    @property
    def duration_s(self) -> float:
        """Duration of a run in simulated seconds."""

    @property
    def warmup_s(self) -> float:
        """Time that totals exclude, in simulated seconds."""

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

    def __len__(self) -> int:
        """Return the number of rows."""

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

    def save(self, folder: str | PathLike[str]) -> None:
        """Write ``manifest.json`` and one Parquet file per table; replaces only a result."""

    @staticmethod
    def load(folder: str | PathLike[str]) -> Outcome:
        """Read a result that :meth:`save` wrote."""

def run(
    scenario: Scenario,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    backend: str | None = None,
) -> Outcome:
    """Run every arm and replication on `jobs` threads (default: one per processor).

    `backend` is one of ``backend_names()``, by default the first.

    `progress` is called with (finished, total) in the calling thread, at most every 50 ms. Ctrl-C
    ends the run and returns the finished runs, with ``complete`` false; a second Ctrl-C raises
    KeyboardInterrupt. An exception from `progress` ends the run and is raised.
    """

def backend_names() -> list[str]:
    """Return the names that `run` takes as `backend`, the default first."""

def qdisc_catalogue() -> str:
    """Every queue as JSON.

    ``[{name, page, class, summary, source, reconstruction, profiles, parameters: [{key, unit, default,
    derived, min, max, range, choices, meaning, provenance}]}]``
    """

def change_qdisc(text: str, key: str, value: str) -> str:
    """Return the canonical form of a queue with the parameter `key` set to `value`.

    The value of a flag is ``"true"`` or ``"false"``.
    """

def parse_qdisc(text: str) -> str:
    """Return the canonical form of a queue in the syntax of ``tc``."""

def check_part(kind: Literal["link", "traffic", "page"], text: str) -> None:
    """Check one link, traffic block or page, given as JSON, by the rules of scenario files.

    What depends on the rest of the scenario is left to the check of the whole: the links of a
    path, the page of a web user and the end of the run are assumed to fit. The path in the
    message of a :class:`ScenarioError` is relative to the part.
    """

def scenario_keys() -> dict[str, list[str]]:
    """Return the keys of each table of a scenario.

    By what it describes: ``"scenario"``, ``"link"``, ``"page object"`` and each type of traffic.
    """

def parse_time_s(text: str) -> float:
    """Return the seconds in a time such as ``5ms``."""

def parse_rate_bits_per_s(text: str) -> int:
    """Return the bits per second in a rate such as ``10mbit``."""

def parse_size_bytes(text: str) -> int:
    """Return the bytes in a size such as ``64kb``, whose prefixes are powers of 1024."""

def bootstrap_mean(
    values: Iterable[float],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 1,
) -> tuple[float, float, float]:
    """Return the mean and a percentile-bootstrap interval of it: mean, low, high.

    For one value, low and high are nan.
    """

def bootstrap_difference(
    values: Iterable[float],
    baseline: Iterable[float],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 1,
) -> tuple[float, float, float]:
    """Return the mean of the paired differences ``values - baseline``, with its interval."""

def version() -> str:
    """Return the version of Sojourn."""

def commit() -> str:
    """Return the Git commit of this build; ``unknown`` outside Git, ``-dirty`` if changed."""
