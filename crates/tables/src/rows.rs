//! The tables `flow_series`, `pings` and `events`.

use serde_json::Value;
use sojourn_apps::PingSample;
use sojourn_net::{Duration, Instant};
use sojourn_qdisc::{DropReason, MarkReason, Number};
use sojourn_records::{Column, FlowRecord, FlowSample, Get, Signal, SignalRecord, SignalState};

use super::{Cell, Frame, mbit_per_s};

/// One row of `flow_series`.
pub(super) struct SampleRow<'a> {
    record: &'a FlowRecord,
    group: &'a str,
    sample: &'a FlowSample,
    /// Start of the interval.
    from: Instant,
    /// Target bit rate of media, in kbit/s.
    target: Option<u32>,
}

impl SampleRow<'_> {
    fn of_connection(&self, packets: u32) -> Option<u64> {
        let has_window =
            self.record.kind.is_connection() || self.target.is_some() || self.sample.cwnd.is_some();
        has_window.then_some(packets.into())
    }
}

pub(super) fn series_columns<'a>() -> Vec<Column<SampleRow<'a>>> {
    vec![
        Column::new(
            "t_s",
            "s",
            "End of the interval.",
            Get::Real(|row: &SampleRow<'_>| row.sample.at.as_secs_f64()),
        ),
        Column::new(
            "flow",
            "",
            "Name of the flow.",
            Get::Text(|row| &row.record.name),
        ),
        Column::new(
            "group",
            "",
            "Name of the group: the traffic block of the flow.",
            Get::Text(|row| row.group),
        ),
        Column::new(
            "goodput_mbit_per_s",
            "Mbit/s",
            "Payload passed to the receiving application in the interval, divided by the length of the interval.",
            Get::Real(|row| {
                let sample = row.sample;
                mbit_per_s(sample.delivered_bytes, sample.at.since(row.from))
            }),
        ),
        Column::new(
            "cwnd_packets",
            "packets",
            "Congestion window at the end of the interval; of an application, the sum over its established connections, null without one and in live runs.",
            Get::OptionalCount(|row| row.sample.cwnd.map(|cwnd| cwnd.get().into())),
        ),
        Column::new(
            "ssthresh_packets",
            "packets",
            "Slow-start threshold at the end of the interval; null if not set yet. Of an application, the sum over its established connections if each has set one.",
            Get::OptionalCount(|row| row.sample.ssthresh.map(u64::from)),
        ),
        Column::new(
            "srtt_ms",
            "ms",
            "Smoothed RTT at the end of the interval; null before the first sample. Of an application, the mean over its established connections.",
            Get::OptionalReal(|row| row.sample.srtt.map(Duration::as_millis_f64)),
        ),
        Column::new(
            "in_flight_packets",
            "packets",
            "Packets in flight at the end of the interval; of an application, the sum over its established connections.",
            Get::OptionalCount(|row| row.of_connection(row.sample.in_flight)),
        ),
        Column::new(
            "receive_window_bytes",
            "B",
            "TCP: receive window that the sender of data knew at the end of the interval; of an application, the sum over its established connections. Null in live runs.",
            Get::OptionalCount(|row| row.sample.receive_window.map(u64::from)),
        ),
        Column::new(
            "target_mbit_per_s",
            "Mbit/s",
            "media: target bit rate of the encoder at the end of the interval.",
            Get::OptionalReal(|row| row.target.map(|kbit| f64::from(kbit) / 1e3)),
        ),
    ]
}

pub(super) fn flow_series<F: Frame>(cell: Cell<'_>) -> F {
    let flows = cell.records.flows.iter().zip(&cell.plan.flows);
    let rows: Vec<_> = flows
        .flat_map(|(record, label)| {
            let starts = std::iter::once(Instant::ZERO).chain(record.series.iter().map(|s| s.at));
            let samples = record.series.iter().zip(starts).enumerate();
            samples.map(move |(n, (sample, from))| SampleRow {
                record,
                group: &label.group,
                sample,
                from,
                target: record.targets.get(n).copied(),
            })
        })
        .collect();
    F::of(cell, &rows, &series_columns())
}

/// One row of `pings`.
pub(super) struct PingRow<'a> {
    flow: &'a str,
    ping: &'a PingSample,
}

pub(super) fn ping_columns<'a>() -> Vec<Column<PingRow<'a>>> {
    vec![
        Column::new(
            "t_s",
            "s",
            "Time at which the request was sent.",
            Get::Real(|row: &PingRow<'_>| row.ping.sent.as_secs_f64()),
        ),
        Column::new("flow", "", "Name of the flow.", Get::Text(|row| row.flow)),
        Column::new(
            "rtt_ms",
            "ms",
            "Time until the reply; null if there was no reply within the run.",
            Get::OptionalReal(|row| row.ping.rtt.map(Duration::as_millis_f64)),
        ),
    ]
}

pub(super) fn pings<F: Frame>(cell: Cell<'_>) -> F {
    let flows = cell.records.flows.iter();
    let rows: Vec<_> = flows
        .flat_map(|record| {
            let pings = record.pings.iter();
            pings.map(|ping| PingRow {
                flow: &record.name,
                ping,
            })
        })
        .collect();
    F::of(cell, &rows, &ping_columns())
}

/// One row of `events`.
pub(super) struct EventRow<'a> {
    event: &'a SignalRecord,
    /// As JSON.
    state: Option<String>,
    link: &'a str,
    flow: &'a str,
}

pub(super) fn event_columns<'a>() -> Vec<Column<EventRow<'a>>> {
    vec![
        Column::new(
            "t_s",
            "s",
            "Time of the event.",
            Get::Real(|row: &EventRow<'_>| row.event.at.as_secs_f64()),
        ),
        Column::new("link", "", "Name of the link.", Get::Text(|row| row.link)),
        Column::new("flow", "", "Name of the flow.", Get::Text(|row| row.flow)),
        Column::new(
            "action",
            "",
            "Type of the event: drop, mark or loss.",
            Get::Text(|row| signal_names(row.event.signal).0),
        ),
        Column::new(
            "reason",
            "",
            "Reason for the event: overlimit, aqm, ack_filter, replaced, ce_threshold or wire.",
            Get::Text(|row| signal_names(row.event.signal).1),
        ),
        Column::new(
            "sojourn_ms",
            "ms",
            "Time in the queue before the event, 0 if it was on arrival; null for a loss.",
            Get::OptionalReal(|row| row.at_queue().map(|event| event.waited.as_millis_f64())),
        ),
        Column::new(
            "backlog_packets",
            "packets",
            "Packets in the queue after the event, without this one; null for a loss.",
            Get::OptionalCount(|row| row.at_queue().map(|event| event.backlog.packets as u64)),
        ),
        Column::new(
            "backlog_bytes",
            "B",
            "Bytes of these packets; null for a loss.",
            Get::OptionalCount(|row| row.at_queue().map(|event| event.backlog.bytes.0)),
        ),
        Column::new(
            "state",
            "",
            "State of the queue that the decision depends on, as a JSON object of numbers with the names of \
             `queue_series`, times in µs; null unless the scenario samples the state.",
            Get::OptionalText(|row| row.state.as_deref()),
        ),
    ]
}

impl EventRow<'_> {
    /// What happened at a queue.
    fn at_queue(&self) -> Option<&SignalRecord> {
        (self.event.signal != Signal::Lost).then_some(self.event)
    }
}

/// The state of a queue behind an event as JSON.
pub fn state_json(state: &SignalState) -> String {
    let numbers = state.numbers.iter().map(|statistic| {
        let name = match statistic.part {
            Some((part, place)) => format!("{part}.{place}.{}", statistic.name),
            None => statistic.name.to_owned(),
        };
        let value = match statistic.value {
            Number::Count(n) => n.into(),
            Number::Real(x) => x.into(),
            Number::Flag(flag) => flag.into(),
        };
        (name, value)
    });
    let class = state.class.iter();
    let class = class.map(|class| ("class".to_owned(), class.to_string().into()));
    Value::Object(class.chain(numbers).collect()).to_string()
}

pub(super) fn events<F: Frame>(cell: Cell<'_>) -> F {
    let records = cell.records;
    let events = records.events.iter();
    let rows: Vec<_> = events
        .map(|event| EventRow {
            event,
            state: event.state.as_deref().map(state_json),
            link: &records.links[event.link as usize].name,
            flow: &records.flows[event.flow as usize].name,
        })
        .collect();
    F::of(cell, &rows, &event_columns())
}

/// The action and the reason of an event, as the columns of those names have them.
pub const fn signal_names(signal: Signal) -> (&'static str, &'static str) {
    match signal {
        Signal::Drop(DropReason::Overlimit) => ("drop", "overlimit"),
        Signal::Drop(DropReason::Aqm) => ("drop", "aqm"),
        Signal::Drop(DropReason::AckFilter) => ("drop", "ack_filter"),
        Signal::Drop(DropReason::Replaced) => ("drop", "replaced"),
        Signal::Mark(MarkReason::Aqm) => ("mark", "aqm"),
        Signal::Mark(MarkReason::CeThreshold) => ("mark", "ce_threshold"),
        Signal::Lost => ("loss", "wire"),
    }
}
