//! The tables `links`, `link_series`, `sojourn`, `queue_statistics`, `queue_series` and `classes`.

use sojourn_net::{Duration, Instant};
use sojourn_qdisc::{Number, Statistic};
use sojourn_records::{ClassRecord, Column, Get, Histogram, LinkCounters, LinkRecord, LinkSample};
use sojourn_scenario::plan::LinkConfig;

use super::{Cell, Frame, ms_of_nanos, ms_of_nanos_f64, real, sojourn_times};

/// One row of `links`.
pub(super) struct LinkRow<'a> {
    record: &'a LinkRecord,
    config: &'a LinkConfig,
    qdisc: String,
    /// From the end of the warm-up to the end of the run.
    window: Duration,
    /// In bits per second.
    capacity: Option<f64>,
}

impl LinkRow<'_> {
    fn driver(&self) -> Option<&Histogram> {
        self.record.driver.as_deref()
    }

    fn share(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.window.as_secs_f64()
    }
}

/// The columns of the counters of a link; the getters take them from a row.
macro_rules! counters {
    ($of:expr) => {
        [
            Column::new(
                "sent_packets",
                "",
                "Packets sent.",
                Get::Count(|row| $of(row).sent_packets),
            ),
            Column::new(
                "sent_bytes",
                "B",
                "Bytes sent, without link-layer overhead.",
                Get::Count(|row| $of(row).sent_bytes),
            ),
            Column::new(
                "drops_overlimit",
                "",
                "Packets dropped because the queue was full.",
                Get::Count(|row| $of(row).drops_overlimit),
            ),
            Column::new(
                "drops_aqm",
                "",
                "Packets dropped by the AQM.",
                Get::Count(|row| $of(row).drops_aqm),
            ),
            Column::new(
                "drops_ack_filter",
                "",
                "ACKs dropped by an ACK filter because a later one made them redundant; not in `drops_aqm`.",
                Get::Count(|row| $of(row).drops_ack_filter),
            ),
            Column::new(
                "drops_replaced",
                "",
                "Packets dropped because their queue was replaced, or emptied by a change of its parameters, during the run.",
                Get::Count(|row| $of(row).drops_replaced),
            ),
            Column::new(
                "marks_aqm",
                "",
                "Packets CE-marked by the AQM.",
                Get::Count(|row| $of(row).marks_aqm),
            ),
            Column::new(
                "marks_ce_threshold",
                "",
                "Packets CE-marked because their sojourn time exceeded `ce_threshold`.",
                Get::Count(|row| $of(row).marks_ce_threshold),
            ),
            Column::new(
                "lost_packets",
                "",
                "Packets lost on the wire after transmission.",
                Get::Count(|row| $of(row).lost_packets),
            ),
            Column::new(
                "duplicated_packets",
                "",
                "Packets that the wire delivered twice.",
                Get::Count(|row| $of(row).duplicated_packets),
            ),
        ]
    };
}

const fn totals<'a>(row: &'a LinkRow<'_>) -> &'a LinkCounters {
    &row.record.totals
}

pub(super) fn link_columns<'a>() -> Vec<Column<LinkRow<'a>>> {
    let mut columns = vec![
        Column::new(
            "link",
            "",
            "Name of the link.",
            Get::Text(|row: &LinkRow<'_>| &row.record.name),
        ),
        Column::new(
            "rate_mbit_per_s",
            "Mbit/s",
            "Rate of the link; for a trace, its mean rate.",
            Get::Real(|row| real(row.config.rate.bits_per_sec()) / 1e6),
        ),
        Column::new(
            "capacity_mbit_per_s",
            "Mbit/s",
            "Mean rate after the warm-up of the link, or of the shaper of its queue if that is slower; null for wireless links.",
            Get::OptionalReal(|row| row.capacity.map(|bits| bits / 1e6)),
        ),
        Column::new(
            "qdisc",
            "",
            "Queue of the link, in canonical form.",
            Get::Text(|row| &row.qdisc),
        ),
    ];
    columns.extend(counters!(totals));
    // A transmission counts when it ends, so that it may be longer than the measured time.
    columns.extend([Column::new(
        "utilisation",
        "",
        "Share of the time during which the link was transmitting.",
        Get::Real(|row: &LinkRow<'_>| row.share(row.record.sending).min(1.0)),
    )]);
    columns.extend(sojourn_times!(LinkRow<'_>));
    columns.extend([
        // A packet counts when it leaves, so that one may reach in from before the warm-up's end.
        Column::new(
            "busy_share",
            "",
            "Share of the time during which packets waited: while the link transmitted another packet, \
             or while the shaper of the queue held them back.",
            Get::Real(|row: &LinkRow<'_>| row.share(row.record.busy).min(1.0)),
        ),
        Column::new(
            "driver_ms_mean",
            "ms",
            "Wireless links and those with tx_ring: mean time that packets spent in the driver and in transmission.",
            Get::OptionalReal(|row| row.driver().and_then(Histogram::mean).map(ms_of_nanos_f64)),
        ),
        Column::new(
            "driver_ms_p95",
            "ms",
            "Wireless links and those with tx_ring: 95th percentile of the time that packets spent in the driver and in transmission.",
            Get::OptionalReal(|row| row.driver()?.quantile(0.95).map(ms_of_nanos)),
        ),
    ]);
    columns
}

pub(super) fn links<F: Frame>(cell: Cell<'_>) -> F {
    let config = cell.config();
    let window = config.duration.saturating_sub(config.measure_from);
    let pairs = cell.records.links.iter().zip(&config.links);
    let rows: Vec<_> = pairs
        .map(|(record, of)| LinkRow {
            record,
            config: of,
            qdisc: of.qdisc.to_string(),
            window,
            capacity: of.capacity(config.measure_from, config.duration),
        })
        .collect();
    F::of(cell, &rows, &link_columns())
}

/// One row of `link_series`.
pub(super) struct SampleRow<'a> {
    record: &'a LinkRecord,
    sample: &'a LinkSample,
}

const fn counted<'a>(row: &'a SampleRow<'_>) -> &'a LinkCounters {
    &row.sample.counters
}

pub(super) fn series_columns<'a>() -> Vec<Column<SampleRow<'a>>> {
    let mut columns = vec![
        Column::new(
            "t_s",
            "s",
            "End of the interval.",
            Get::Real(|row: &SampleRow<'_>| row.sample.at.as_secs_f64()),
        ),
        Column::new(
            "link",
            "",
            "Name of the link.",
            Get::Text(|row| &row.record.name),
        ),
        Column::new(
            "backlog_packets",
            "",
            "Packets waiting at the end of the interval.",
            Get::Count(|row| row.sample.backlog_packets),
        ),
        Column::new(
            "backlog_bytes",
            "B",
            "Bytes waiting at the end of the interval.",
            Get::Count(|row| row.sample.backlog_bytes),
        ),
        Column::new(
            "sojourn_ms_mean",
            "ms",
            "Mean sojourn time of the packets sent in the interval.",
            Get::OptionalReal(|row| row.sample.sojourn_mean.map(Duration::as_millis_f64)),
        ),
        Column::new(
            "sojourn_ms_max",
            "ms",
            "Longest sojourn time of a packet sent in the interval.",
            Get::OptionalReal(|row| row.sample.sojourn_max.map(Duration::as_millis_f64)),
        ),
    ];
    columns.extend(counters!(counted));
    columns
}

pub(super) fn link_series<F: Frame>(cell: Cell<'_>) -> F {
    let links = cell.records.links.iter();
    let rows: Vec<_> = links
        .flat_map(|record| {
            let samples = record.series.iter();
            samples.map(move |sample| SampleRow { record, sample })
        })
        .collect();
    F::of(cell, &rows, &series_columns())
}

/// One row of `sojourn`.
pub(super) struct BucketRow<'a> {
    link: &'a str,
    low: u64,
    high: u64,
    count: u64,
}

pub(super) fn bucket_columns<'a>() -> Vec<Column<BucketRow<'a>>> {
    vec![
        Column::new(
            "link",
            "",
            "Name of the link.",
            Get::Text(|row: &BucketRow<'_>| row.link),
        ),
        Column::new(
            "low_ms",
            "ms",
            "Lower edge of the bucket.",
            Get::Real(|row| ms_of_nanos(row.low)),
        ),
        Column::new(
            "high_ms",
            "ms",
            "Upper edge of the bucket, exclusive.",
            Get::Real(|row| ms_of_nanos(row.high)),
        ),
        Column::new(
            "count",
            "",
            "Number of packets whose sojourn time lies in the bucket.",
            Get::Count(|row| row.count),
        ),
    ]
}

pub(super) fn sojourn<F: Frame>(cell: Cell<'_>) -> F {
    let links = cell.records.links.iter();
    let rows: Vec<_> = links
        .flat_map(|record| {
            let buckets = record.sojourn.buckets();
            buckets.map(|(low, high, count)| BucketRow {
                link: &record.name,
                low,
                high,
                count,
            })
        })
        .collect();
    F::of(cell, &rows, &bucket_columns())
}

/// One row of `queue_statistics`.
pub(super) struct StatisticRow<'a> {
    link: &'a str,
    statistic: &'a Statistic,
}

/// The columns that name the link, the part of its queue and the statistic.
macro_rules! named_statistic {
    ($row:ty) => {
        [
            Column::new(
                "link",
                "",
                "Name of the link.",
                Get::Text(|row: &$row| row.link),
            ),
            Column::new(
                "part",
                "",
                "Type of queue part, such as tins; null for the whole queue.",
                Get::OptionalText(|row: &$row| Some(row.statistic.part?.0)),
            ),
            Column::new(
                "part_number",
                "",
                "Number of the part, from 0.",
                Get::OptionalCount(|row: &$row| Some(row.statistic.part?.1 as u64)),
            ),
            Column::new(
                "name",
                "",
                "Name of the statistic, as in `tc -j -s`.",
                Get::Text(|row: &$row| row.statistic.name),
            ),
        ]
    };
}

pub(super) fn statistic_columns<'a>() -> Vec<Column<StatisticRow<'a>>> {
    let mut columns = Vec::from(named_statistic!(StatisticRow<'_>));
    columns.extend([
        Column::new(
            "type",
            "",
            "Type of the value: count, real or flag.",
            Get::Text(|row: &StatisticRow<'_>| number(row.statistic.value).0),
        ),
        Column::new(
            "value",
            "",
            "Value of the statistic at the end of the run.",
            Get::Real(|row| number(row.statistic.value).1),
        ),
    ]);
    columns
}

pub(super) fn queue_statistics<F: Frame>(cell: Cell<'_>) -> F {
    let links = cell.records.links.iter();
    let rows: Vec<_> = links
        .flat_map(|record| {
            let statistics = record.statistics.iter();
            statistics.map(|statistic| StatisticRow {
                link: &record.name,
                statistic,
            })
        })
        .collect();
    F::of(cell, &rows, &statistic_columns())
}

/// One row of `queue_series`.
pub(super) struct StateRow<'a> {
    at: Instant,
    link: &'a str,
    statistic: &'a Statistic,
}

pub(super) fn state_columns<'a>() -> Vec<Column<StateRow<'a>>> {
    let mut columns = vec![Column::new(
        "t_s",
        "s",
        "End of the interval.",
        Get::Real(|row: &StateRow<'_>| row.at.as_secs_f64()),
    )];
    columns.extend(named_statistic!(StateRow<'_>));
    columns.push(Column::new(
        "value",
        "",
        "Value of the statistic at the end of the interval; 1 or 0 for a flag.",
        Get::Real(|row| number(row.statistic.value).1),
    ));
    columns
}

pub(super) fn queue_series<F: Frame>(cell: Cell<'_>) -> F {
    let links = cell.records.links.iter();
    let samples = links.flat_map(|link| link.states.iter().map(move |sample| (link, sample)));
    let rows: Vec<_> = samples
        .flat_map(|(link, sample)| {
            sample.statistics.iter().map(|statistic| StateRow {
                at: sample.at,
                link: &link.name,
                statistic,
            })
        })
        .collect();
    F::of(cell, &rows, &state_columns())
}

/// The type of a number, and its value.
fn number(value: Number) -> (&'static str, f64) {
    match value {
        Number::Count(n) => ("count", real(n)),
        Number::Real(x) => ("real", x),
        Number::Flag(flag) => ("flag", f64::from(u8::from(flag))),
    }
}

/// One row of `classes`.
pub(super) struct ClassRow<'a> {
    link: &'a str,
    name: String,
    record: &'a ClassRecord,
}

pub(super) fn class_columns<'a>() -> Vec<Column<ClassRow<'a>>> {
    let mut columns = vec![
        Column::new(
            "link",
            "",
            "Name of the link.",
            Get::Text(|row: &ClassRow<'_>| row.link),
        ),
        Column::new(
            "class",
            "",
            "Class of the queue: L or C of dualpi2, tin of cake, band of prio and pfifo_fast, class of drr; numbered \
             as in `queue_statistics`. Of nested queues, the class of the outer one.",
            Get::Text(|row| &row.name),
        ),
        Column::new(
            "sent_packets",
            "",
            "Packets sent after the warm-up.",
            Get::Count(|row| row.record.totals.sent_packets),
        ),
        Column::new(
            "sent_bytes",
            "B",
            "Bytes sent after the warm-up, without link-layer overhead.",
            Get::Count(|row| row.record.totals.sent_bytes),
        ),
        Column::new(
            "drops_overlimit",
            "",
            "Packets dropped because the queue was full.",
            Get::Count(|row| row.record.totals.drops_overlimit),
        ),
        Column::new(
            "drops_aqm",
            "",
            "Packets dropped by the AQM.",
            Get::Count(|row| row.record.totals.drops_aqm),
        ),
        Column::new(
            "drops_ack_filter",
            "",
            "ACKs dropped by an ACK filter because a later one made them redundant; not in `drops_aqm`.",
            Get::Count(|row| row.record.totals.drops_ack_filter),
        ),
        Column::new(
            "drops_replaced",
            "",
            "Packets dropped because their queue was replaced, or emptied by a change of its parameters, during the run.",
            Get::Count(|row| row.record.totals.drops_replaced),
        ),
        Column::new(
            "marks_aqm",
            "",
            "Packets CE-marked by the AQM.",
            Get::Count(|row| row.record.totals.marks_aqm),
        ),
        Column::new(
            "marks_ce_threshold",
            "",
            "Packets CE-marked because their sojourn time exceeded a threshold.",
            Get::Count(|row| row.record.totals.marks_ce_threshold),
        ),
    ];
    columns.extend(sojourn_times!(ClassRow<'_>));
    columns
}

pub(super) fn classes<F: Frame>(cell: Cell<'_>) -> F {
    let links = cell.records.links.iter();
    let rows: Vec<_> = links
        .flat_map(|link| {
            link.classes.iter().map(|record| ClassRow {
                link: &link.name,
                name: record.class.to_string(),
                record,
            })
        })
        .collect();
    F::of(cell, &rows, &class_columns())
}
