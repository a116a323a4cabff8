//! Metrics of groups of applications.

use arrow_schema::ArrowError;
use sojourn_scenario::traffic_properties;

use super::formulas::{mean, percent, percent_true, quantile, real, sum};
use super::rows::{Ordered, RunKey, Tables, Window, columns, table_of_groups};
use super::{Metric, Role};
use crate::tables::{Table, TableKind};

type ApplicationMetric = Metric<fn(&Group<'_>) -> Option<f64>>;

/// Metrics of groups of applications.
pub(super) const METRICS: &[ApplicationMetric] = &[
    ApplicationMetric::new(
        "transactions",
        "transactions",
        (0, ""),
        "Number of transactions that began at or after *W*; null for `voip` and \
         `responsiveness`.",
        |group| group.has_transactions.then(|| real(group.measured.len())),
    )
    .whole(),
    ApplicationMetric::new(
        "begun_before",
        "in progress at end of warm-up",
        (1, ""),
        "Number of transactions that began before *W* and had not completed by then; null if \
         there were none. They are excluded from the other columns. If they last until the \
         end of the run, `transactions` is 0, which triggers a validity warning.",
        |group| (group.before > 0).then(|| real(group.before)),
    ),
    ApplicationMetric::new(
        "cut_off",
        "cut off by the end",
        (1, ""),
        "Number of transactions that began at or after *W* and were still in progress at the \
         end of the run. They have no duration.",
        |group| {
            let cut = group.durations().filter(Option::is_none).count();
            (!group.measured.is_empty()).then(|| real(cut))
        },
    ),
    ApplicationMetric::new(
        "completed_percent",
        "completed",
        (1, "%"),
        "Share of the transactions that were completed within the run; the others are counted \
         by `cut_off`.",
        |group| percent_true(group.durations().map(|duration| Some(duration.is_some()))),
    )
    .hidden(),
    ApplicationMetric::new(
        "duration_s_mean",
        "duration",
        (3, "s"),
        "Mean duration of the completed transactions. For `web`, the page load time: from the \
         start of the visit to the last byte of the last object, including connection setup \
         and TLS.",
        |group| mean(group.durations()),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "duration_s_p50",
        "duration p50",
        (3, "s"),
        "Median duration of the completed transactions.",
        |group| quantile(group.durations(), 0.5),
    )
    .hidden(),
    ApplicationMetric::new(
        "duration_s_p95",
        "duration p95",
        (3, "s"),
        "95th percentile of the duration of the completed transactions.",
        |group| quantile(group.durations(), 0.95),
    ),
    ApplicationMetric::new(
        "connections",
        "connections",
        (0, ""),
        "Number of connections opened in the whole run.",
        |group| Some(group.sum(|row| row.connections)),
    )
    .hidden()
    .whole(),
    ApplicationMetric::new(
        "handshake_hit_percent",
        "connections with handshake loss",
        (2, "%"),
        "Share of the connections that lost a handshake packet in either direction.",
        |group| {
            percent(
                group.sum(|row| row.handshake_hit),
                group.sum(|row| row.connections),
            )
        },
    )
    .role(Role::Minor),
    ApplicationMetric::new(
        "initial_hit_percent",
        "connections with initial loss",
        (2, "%"),
        "Share of the connections that lost a handshake packet in either direction or a \
         segment of the server's initial window, original or retransmitted.",
        |group| {
            percent(
                group.sum(|row| row.initial_hit),
                group.sum(|row| row.connections),
            )
        },
    )
    .role(Role::Minor),
    ApplicationMetric::new(
        "startup_s_mean",
        "startup",
        (2, "s"),
        "`dash`, mean over players: time from the request for the first segment to the start \
         of playback. Players that never started playback are excluded.",
        |group| group.mean(|row| row.startup_s),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "stalls_mean",
        "stalls",
        (1, ""),
        "`dash`, mean over players: number of playback interruptions after startup.",
        |group| group.mean(|row| row.stalls),
    ),
    ApplicationMetric::new(
        "stalled_s_mean",
        "stalled",
        (1, "s"),
        "`dash`, mean over players: total duration of the playback interruptions.",
        |group| group.mean(|row| row.stalled_s),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "bitrate_mbit_per_s_mean",
        "bit rate",
        (2, "Mbit/s"),
        "`dash`: mean bit rate of the segments fetched.",
        |group| group.mean(|row| row.bitrate_mbit_per_s_mean),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "switches_mean",
        "switches",
        (1, ""),
        "`dash`, mean over players: number of changes of quality between segments.",
        |group| group.mean(|row| row.switches),
    ),
    ApplicationMetric::new(
        "mos_mean",
        "MOS",
        (2, ""),
        "`voip`, mean over calls: mean opinion score computed with the E-model (ITU-T G.107).",
        |group| group.mean(|row| row.mos),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "mos_min",
        "MOS min",
        (2, ""),
        "`voip`: lowest MOS of any call.",
        |group| group.rows.iter().filter_map(|row| row.mos).reduce(f64::min),
    )
    .hidden(),
    ApplicationMetric::new(
        "voice_loss_percent_mean",
        "voice loss",
        (2, "%"),
        "`voip`: share of the packets that were lost or arrived too late for the jitter \
         buffer.",
        |group| group.mean(|row| row.voice_loss_percent),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "loss_interval_packets_mean",
        "loss interval",
        (0, "packets"),
        "`voip`: packets sent per loss period (RFC 3357), a sequence of consecutive lost \
         packets.",
        |group| group.mean(|row| row.loss_interval_packets_mean),
    ),
    ApplicationMetric::new(
        "target_mbit_per_s_mean",
        "target bit rate",
        (2, "Mbit/s"),
        "`media`, mean over flows: mean target bit rate of the encoder.",
        |group| group.mean(|row| row.target_mbit_per_s_mean),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "frame_delay_ms_p95",
        "frame delay p95",
        (1, "ms"),
        "`media`, mean over flows: 95th percentile of the time from the encoder to the arrival of \
         the last packet of a frame.",
        |group| group.mean(|row| row.frame_delay_ms_p95),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "lost_frames_percent_mean",
        "lost frames",
        (2, "%"),
        "`media`, mean over flows: share of the frames that lost a packet.",
        |group| group.mean(|row| row.lost_frames_percent),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "rpm_mean",
        "responsiveness",
        (0, "RPM"),
        "`responsiveness`, mean over tests: round trips per minute under load.",
        |group| group.mean(|row| row.rpm),
    )
    .role(Role::Compared),
    ApplicationMetric::new(
        "foreign_rpm_mean",
        "foreign probes",
        (0, "RPM"),
        "`responsiveness`, mean over tests: round trips per minute of probes on separate \
         connections.",
        |group| group.mean(|row| row.foreign_rpm),
    ),
    ApplicationMetric::new(
        "loaded_rpm_mean",
        "self probes",
        (0, "RPM"),
        "`responsiveness`, mean over tests: round trips per minute of probes on \
         load-generating connections.",
        |group| group.mean(|row| row.loaded_rpm),
    ),
];

columns! {
    /// A row of `applications`.
    ApplicationRow {
        texts: group kind;
        numbers: connections handshake_hit initial_hit startup_s stalls stalled_s bitrate_mbit_per_s_mean switches mos
            voice_loss_percent loss_interval_packets_mean target_mbit_per_s_mean frame_delay_ms_p95 lost_frames_percent
            rpm foreign_rpm loaded_rpm;
    }
}

columns! {
    /// A row of `transactions`.
    TransactionRow {
        texts: group;
        numbers: started_s completed_s duration_s;
    }
}

/// The transactions of a group in a run.
#[derive(Debug, Default)]
struct Transactions<'a> {
    /// Those that began at or after the end of the warm-up.
    measured: Vec<TransactionRow<'a>>,
    /// How many began before and had not completed by then.
    before: usize,
}

/// A group of applications in a run.
#[derive(Debug)]
pub(super) struct Group<'a> {
    rows: &'a [ApplicationRow<'a>],
    has_transactions: bool,
    measured: &'a [TransactionRow<'a>],
    before: usize,
}

impl Group<'_> {
    /// The durations of the transactions; `None`: it did not complete.
    fn durations(&self) -> impl Iterator<Item = Option<f64>> {
        self.measured.iter().map(|row| row.duration_s)
    }

    fn mean(&self, of: impl Fn(&ApplicationRow<'_>) -> Option<f64>) -> Option<f64> {
        mean(self.rows.iter().map(of))
    }

    fn sum(&self, of: impl Fn(&ApplicationRow<'_>) -> Option<f64>) -> f64 {
        sum(self.rows.iter().map(of))
    }
}

/// One row per run, group and type of application.
pub(super) fn metrics(tables: Tables<'_, '_>, window: Window) -> Result<Table, ArrowError> {
    let mut groups: Ordered<(RunKey<'_>, &str, &str), Vec<ApplicationRow<'_>>> = Ordered::default();
    ApplicationRow::read(tables(TableKind::Applications), |run, row| {
        let (group, kind) = (row.group.unwrap_or_default(), row.kind.unwrap_or_default());
        groups.of((run, group, kind)).push(row);
    })?;
    let mut transactions: Ordered<(RunKey<'_>, &str), Transactions<'_>> = Ordered::default();
    TransactionRow::read(tables(TableKind::Transactions), |run, row| {
        let of = transactions.of((run, row.group.unwrap_or_default()));
        if row.started_s >= Some(window.warmup) {
            of.measured.push(row);
        } else if row.started_s.is_some() && row.completed_s.is_none_or(|end| end > window.warmup) {
            of.before += 1;
        }
    })?;
    let rows = groups.items.iter().map(|((run, group, kind), rows)| {
        let found = transactions.get((*run, *group));
        let of = Group {
            rows,
            has_transactions: traffic_properties(kind).transactions.is_some(),
            measured: found.map_or(&[], |found| &found.measured),
            before: found.map_or(0, |found| found.before),
        };
        (*run, vec![(*group).to_owned(), (*kind).to_owned()], of)
    });
    table_of_groups(&["group", "kind"], &rows.collect::<Vec<_>>(), METRICS)
}
