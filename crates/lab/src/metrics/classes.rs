//! Metrics of classes of queues.

use arrow_schema::ArrowError;

use super::rows::{Ordered, RunKey, Tables, Window, columns, table_of_groups};
use super::{Metric, Role};
use crate::tables::{Table, TableKind};

type ClassMetric = Metric<fn(&Class<'_>) -> Option<f64>>;

/// Metrics of classes of queues.
pub(super) const METRICS: &[ClassMetric] = &[
    ClassMetric::new(
        "sent_mbit_per_s",
        "sent",
        (2, "Mbit/s"),
        "8 · bytes that the class sent after *W* / (*D* − *W*).",
        |class| Some(class.row.sent_bytes.unwrap_or_default() * 8e-6 / class.window.length),
    ),
    ClassMetric::new(
        "sojourn_ms_mean",
        "sojourn mean",
        (2, "ms"),
        "Mean sojourn time of the packets that left the class after *W*.",
        |class| class.row.sojourn_ms_mean,
    )
    .role(Role::Compared),
    ClassMetric::new(
        "sojourn_ms_p95",
        "sojourn p95",
        (2, "ms"),
        "95th percentile of these sojourn times.",
        |class| class.row.sojourn_ms_p95,
    )
    .role(Role::Minor),
    ClassMetric::new(
        "sojourn_ms_p99",
        "sojourn p99",
        (2, "ms"),
        "99th percentile of these sojourn times.",
        |class| class.row.sojourn_ms_p99,
    )
    .role(Role::Minor),
    ClassMetric::new(
        "drops",
        "drops",
        (0, ""),
        "Packets of the class dropped after *W*, by the AQM, an ACK filter, at a full buffer or with a replaced queue.",
        |class| {
            Some(
                class.row.drops_overlimit.unwrap_or_default()
                    + class.row.drops_aqm.unwrap_or_default()
                    + class.row.drops_ack_filter.unwrap_or_default()
                    + class.row.drops_replaced.unwrap_or_default(),
            )
        },
    ),
    ClassMetric::new(
        "marks",
        "marks",
        (0, ""),
        "Packets of the class CE-marked after *W*.",
        |class| {
            Some(
                class.row.marks_aqm.unwrap_or_default()
                    + class.row.marks_ce_threshold.unwrap_or_default(),
            )
        },
    ),
];

columns! {
    /// A row of `classes`.
    ClassRow {
        texts: link class;
        numbers: sent_bytes sojourn_ms_mean sojourn_ms_p95 sojourn_ms_p99 drops_overlimit drops_aqm
            drops_ack_filter drops_replaced marks_aqm marks_ce_threshold;
    }
}

/// A class of a queue in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class<'a> {
    row: ClassRow<'a>,
    window: Window,
}

/// A link and a class of its queue.
type Name<'a> = (&'a str, &'a str);

/// The links and the classes of an arm, in the order of the table.
type OfArm<'a> = (Ordered<&'a str, ()>, Ordered<Name<'a>, ()>);

/// The number at the end of the name of a class; `None` if there is none.
fn number(class: &str) -> Option<u32> {
    let digits = class.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    class[digits..].parse().ok()
}

/// One row per run and class.
///
/// A class that flows are hashed to has a row in the table only in runs in which it had a packet.
/// Here it has one in every run of the arm, with 0 packets in the others, so that means are over all
/// runs.
pub(super) fn metrics(tables: Tables<'_, '_>, window: Window) -> Result<Table, ArrowError> {
    let mut runs: Ordered<RunKey<'_>, Ordered<Name<'_>, ClassRow<'_>>> = Ordered::default();
    let mut arms: Ordered<&str, OfArm<'_>> = Ordered::default();
    ClassRow::read(tables(TableKind::Classes), |run, row| {
        let name = (row.link.unwrap_or_default(), row.class.unwrap_or_default());
        *runs.of(run).of(name) = row;
        let (links, classes) = arms.of(run.0);
        links.of(name.0);
        classes.of(name);
    })?;
    for (_, (links, classes)) in &mut arms.items {
        let place = |link: &str| links.items.iter().position(|(known, ())| *known == link);
        // Stable: classes without a number stay in the order of the table.
        let key = |((link, class), ()): &(Name<'_>, ())| (place(link), number(class));
        classes.items.sort_by_cached_key(key);
    }
    let mut rows = Vec::new();
    for (run, found) in &runs.items {
        let (_, known) = arms.of(run.0);
        for &(name, ()) in &known.items {
            let row = found.get(name).copied().unwrap_or_default();
            let (link, class) = name;
            rows.push((
                *run,
                vec![format!("{link}: {class}")],
                Class { row, window },
            ));
        }
    }
    table_of_groups(&["group"], &rows, METRICS)
}
