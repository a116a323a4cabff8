//! The view of a running run: the state of each link in the last interval.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sojourn_backend::locked;
use sojourn_net::{Bytes, Duration, FlowKey, Instant};
use sojourn_path::links::Taken;
use sojourn_qdisc::{Backlog, DropReason, MarkReason};
use sojourn_records::Histogram;

/// What watchers of a run are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shows {
    /// Nothing until [`Control::watch`](crate::Control::watch) is called.
    #[default]
    Nothing,
    /// The links.
    Links,
    /// The links with their flows.
    Flows,
}

/// Time between two views.
pub(crate) const VIEW_INTERVAL: Duration = Duration::from_secs(1);

/// Most flows of a link that are counted in an interval; others are not shown.
const MOST_FLOWS: usize = 1_024;

/// Reasons of drops and marks, by the names of their columns.
const DROPS: [(DropReason, &str); 4] = [
    (DropReason::Overlimit, "overlimit"),
    (DropReason::Aqm, "aqm"),
    (DropReason::AckFilter, "ack_filter"),
    (DropReason::Replaced, "replaced"),
];
const MARKS: [(MarkReason, &str); 2] = [
    (MarkReason::Aqm, "aqm"),
    (MarkReason::CeThreshold, "ce_threshold"),
];

/// A transport flow at a link in the last interval.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowView {
    /// The IP protocol number.
    pub protocol: u8,
    /// Ports of source and destination; 0 where there are none.
    pub ports: [u16; 2],
    /// Bits that were sent per second.
    pub bits_per_s: f64,
    /// Mean and maximum of the time in the queue; `None`: nothing was sent.
    pub sojourn: Option<[Duration; 2]>,
    /// Bytes waiting at the end.
    pub backlog_bytes: u64,
    /// Packets that the queue discarded.
    pub drops: u64,
    /// Packets that the queue marked.
    pub marks: u64,
}

/// A link in the last interval.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkView {
    /// Its name.
    pub name: String,
    /// When the interval ended.
    pub at: Instant,
    /// Bits that were sent per second.
    pub bits_per_s: f64,
    /// Packets waiting at the end.
    pub backlog_packets: u64,
    /// Bytes waiting at the end.
    pub backlog_bytes: u64,
    /// Quantiles 0.5, 0.95 and 0.99 of the time in the queue; `None`: nothing was sent.
    pub sojourn: Option<[Duration; 3]>,
    /// Packets that the queue has discarded since the start of the run.
    pub drops: u64,
    /// Packets that the queue has marked since the start of the run.
    pub marks: u64,
    /// `drops` by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// `marks` by reason.
    pub marked: Vec<(&'static str, u64)>,
    /// Packets that the wire has lost since the start of the run.
    pub lost: u64,
    /// Packets sent since the start of the run.
    pub sent_packets: u64,
    /// Bytes sent since the start of the run.
    pub sent_bytes: u64,
    /// Its flows, if requested, by descending rate.
    pub flows: Vec<FlowView>,
    /// The keys that can change, as JSON.
    pub settings: String,
    /// What was asked for and changed in the interval: when, and a line of TOML.
    pub changes: Vec<(Instant, String)>,
}

/// A link at the end of an interval.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// What waits.
    pub(crate) backlog: Backlog,
    /// The keys that can change, as JSON.
    pub(crate) settings: String,
    /// What was changed in the interval.
    pub(crate) changes: Vec<(Instant, String)>,
}

/// The last view, which one thread writes and another reads.
pub(crate) type Shared = Arc<Mutex<Vec<LinkView>>>;

/// Counters for the views.
#[derive(Debug)]
pub(crate) struct Views {
    /// Whether anybody watches.
    pub(crate) active: bool,
    links: Vec<Interval>,
    shared: Shared,
}

/// Counters of one link.
#[derive(Debug, Default)]
pub(crate) struct Interval {
    name: String,
    sojourn: Histogram,
    bytes: u64,
    /// By reason, as [`DROPS`] and [`MARKS`].
    drops: [u64; DROPS.len()],
    marks: [u64; MARKS.len()],
    lost: u64,
    sent_packets: u64,
    sent_bytes: u64,
    /// By protocol and ports; `None`: not requested.
    flows: Option<BTreeMap<(u8, u32), FlowCounts>>,
}

/// Counters of one flow in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct FlowCounts {
    packets: u64,
    bytes: u64,
    waited: Duration,
    longest: Duration,
    drops: u64,
    marks: u64,
    /// What waits, from one interval to the next.
    waiting_packets: u64,
    waiting_bytes: u64,
}

impl FlowCounts {
    /// A packet has left the queue.
    fn leave(&mut self, size: Bytes) {
        self.waiting_packets = self.waiting_packets.saturating_sub(1);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(size.0);
    }

    /// The counts at the start of the next interval; `None`: nothing waits.
    fn next(&self) -> Option<Self> {
        (self.waiting_packets > 0).then(|| Self {
            waiting_packets: self.waiting_packets,
            waiting_bytes: self.waiting_bytes,
            ..Self::default()
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "exact below 9 petabytes")]
    fn view(&self, (protocol, ports): (u8, u32)) -> FlowView {
        let mean = self.waited.as_nanos().checked_div(self.packets);
        let [a, b, c, d] = ports.to_be_bytes();
        FlowView {
            protocol,
            ports: [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])],
            bits_per_s: self.bytes as f64 * 8.0 / VIEW_INTERVAL.as_secs_f64(),
            sojourn: mean.map(|mean| [Duration::from_nanos(mean), self.longest]),
            backlog_bytes: self.waiting_bytes,
            drops: self.drops,
            marks: self.marks,
        }
    }
}

impl Interval {
    /// A packet is offered to the queue.
    pub(crate) fn on_offered(&mut self, flow: &FlowKey, size: Bytes) {
        if let Some(counts) = self.counts(flow) {
            counts.waiting_packets += 1;
            counts.waiting_bytes += size.0;
        }
    }

    /// The queue dequeued a packet.
    pub(crate) fn on_taken(&mut self, flow: &FlowKey, taken: &Taken) {
        self.sojourn.record(taken.waited.as_nanos());
        self.bytes += taken.size.0;
        self.sent_packets += 1;
        self.sent_bytes += taken.size.0;
        if let Some(counts) = self.counts(flow) {
            counts.packets += 1;
            counts.bytes += taken.size.0;
            counts.waited += taken.waited;
            counts.longest = counts.longest.max(taken.waited);
            counts.leave(taken.size);
        }
    }

    /// The queue discarded a packet.
    pub(crate) fn on_drop(&mut self, flow: &FlowKey, size: Bytes, reason: DropReason) {
        let place = DROPS.iter().position(|(known, _)| *known == reason);
        self.drops[place.unwrap_or(0)] += 1;
        if let Some(counts) = self.counts(flow) {
            counts.drops += 1;
            counts.leave(size);
        }
    }

    /// The wire behind the queue lost a packet.
    pub(crate) const fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// The queue marked a packet.
    pub(crate) fn on_mark(&mut self, flow: &FlowKey, reason: MarkReason) {
        let place = MARKS.iter().position(|(known, _)| *known == reason);
        self.marks[place.unwrap_or(0)] += 1;
        if let Some(counts) = self.counts(flow) {
            counts.marks += 1;
        }
    }

    /// The counters of a flow; `None`: flows are not requested, or there are too many.
    fn counts(&mut self, flow: &FlowKey) -> Option<&mut FlowCounts> {
        let flows = self.flows.as_mut()?;
        let key = (flow.protocol, flow.ports);
        if flows.len() >= MOST_FLOWS && !flows.contains_key(&key) {
            return None;
        }
        Some(flows.entry(key).or_default())
    }

    /// Takes the flows of the interval, and resets them.
    fn take_flows(&mut self) -> Vec<FlowView> {
        let Some(flows) = &mut self.flows else {
            return Vec::new();
        };
        let mut views: Vec<_> = flows
            .iter()
            .map(|(key, counts)| counts.view(*key))
            .collect();
        let waiting = flows
            .iter()
            .filter_map(|(key, counts)| Some((*key, counts.next()?)));
        *flows = waiting.collect();
        views.sort_by(|a, b| b.bits_per_s.total_cmp(&a.bits_per_s));
        views
    }

    #[expect(clippy::cast_precision_loss, reason = "exact below 9 petabytes")]
    fn view(&mut self, at: Instant, state: State) -> LinkView {
        let flows = self.take_flows();
        let quantile = |q| self.sojourn.quantile(q).map(Duration::from_nanos);
        let quantiles = [quantile(0.5), quantile(0.95), quantile(0.99)];
        LinkView {
            name: self.name.clone(),
            at,
            bits_per_s: self.bytes as f64 * 8.0 / VIEW_INTERVAL.as_secs_f64(),
            backlog_packets: state.backlog.packets as u64,
            backlog_bytes: state.backlog.bytes.0,
            sojourn: match quantiles {
                [Some(a), Some(b), Some(c)] => Some([a, b, c]),
                _ => None,
            },
            drops: self.drops.iter().sum(),
            marks: self.marks.iter().sum(),
            dropped: by_reason(&DROPS, &self.drops),
            marked: by_reason(&MARKS, &self.marks),
            lost: self.lost,
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            flows,
            settings: state.settings,
            changes: state.changes,
        }
    }
}

/// The names of reasons with their counts.
fn by_reason<R>(reasons: &[(R, &'static str)], counts: &[u64]) -> Vec<(&'static str, u64)> {
    let names = reasons.iter().map(|(_, name)| *name);
    names.zip(counts.iter().copied()).collect()
}

impl Views {
    pub(crate) fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        shared: Shared,
        shows: Shows,
    ) -> Self {
        let interval = |name: &str| Interval {
            name: name.to_owned(),
            flows: (shows == Shows::Flows).then(BTreeMap::new),
            ..Interval::default()
        };
        Self {
            active: shows != Shows::Nothing,
            links: names.map(interval).collect(),
            shared,
        }
    }

    /// Shows the links with their flows from now on.
    pub(crate) fn show_flows(&mut self) {
        self.active = true;
        for link in &mut self.links {
            link.flows.get_or_insert_default();
        }
    }

    pub(crate) fn of(&mut self, link: u32) -> &mut Interval {
        &mut self.links[link as usize]
    }

    /// An interval ends: shows it and begins the next.
    pub(crate) fn show(&mut self, at: Instant, states: impl Iterator<Item = State>) {
        let links = self.links.iter_mut().zip(states);
        let views = links.map(|(link, state)| link.view(at, state)).collect();
        *locked(&self.shared) = views;
        for link in &mut self.links {
            link.sojourn = Histogram::default();
            link.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bytes: u64, waited_ms: u64) -> Taken {
        Taken {
            size: Bytes(bytes),
            waited: Duration::from_millis(waited_ms),
            busy: Duration::ZERO,
        }
    }

    fn flow(ports: u32) -> FlowKey {
        FlowKey {
            source: 1,
            destination: 2,
            ports,
            protocol: 6,
        }
    }

    #[test]
    fn a_view_shows_the_flows_of_the_last_interval_that_sent_most_first() {
        let mut views = Views::new(["up"].into_iter(), Shared::default(), Shows::Flows);
        let shared = Arc::clone(&views.shared);
        let [small, large] = [flow(0x0001_0002), flow(0x0003_0004)];
        let link = views.of(0);
        link.on_taken(&small, &taken(125, 1));
        link.on_taken(&large, &taken(1_250, 2));
        link.on_taken(&large, &taken(1_250, 4));
        link.on_offered(&small, Bytes(125));
        link.on_drop(&small, Bytes(125), DropReason::Aqm);
        link.on_mark(&large, MarkReason::CeThreshold);
        link.on_offered(&large, Bytes(1_250));
        let change = (Instant::ZERO, "{rate = \"1mbit\"}".to_owned());
        let state = State {
            settings: "{}".to_owned(),
            changes: vec![change.clone()],
            ..State::default()
        };
        views.show(Instant::ZERO, std::iter::once(state));
        let shown = shared.lock().unwrap().clone();
        let [first, second] = &shown[0].flows[..] else {
            panic!("two flows: {:?}", shown[0].flows);
        };
        assert_eq!((first.ports, second.ports), ([3, 4], [1, 2]));
        assert_eq!(first.sojourn, Some([3, 4].map(Duration::from_millis)));
        assert_eq!(
            [first.drops, first.marks, second.drops, second.marks],
            [0, 1, 1, 0]
        );
        assert!(
            (first.bits_per_s - 20_000.0).abs() < 1e-9,
            "{}",
            first.bits_per_s
        );

        assert_eq!([first.backlog_bytes, second.backlog_bytes], [1_250, 0]);
        assert_eq!(shown[0].dropped[1], ("aqm", 1));
        assert_eq!(shown[0].marked[1], ("ce_threshold", 1));
        assert_eq!(shown[0].changes, [change]);

        // What waits is shown until it leaves, although nothing is sent.
        views.show(Instant::ZERO, std::iter::once(State::default()));
        let backlogs = |shared: &Shared| {
            let flows = &shared.lock().unwrap()[0].flows;
            flows
                .iter()
                .map(|flow| flow.backlog_bytes)
                .collect::<Vec<_>>()
        };
        assert_eq!(backlogs(&shared), [1_250]);
        views.of(0).on_taken(&large, &taken(1_250, 2_000));
        views.show(Instant::ZERO, std::iter::once(State::default()));
        assert_eq!(backlogs(&shared), [0]);
        views.show(Instant::ZERO, std::iter::once(State::default()));
        assert_eq!(shared.lock().unwrap()[0].flows, []);
        assert_eq!(
            shared.lock().unwrap()[0].drops,
            1,
            "the drops of a link are totals"
        );
    }

    #[test]
    fn flows_are_counted_only_if_they_are_wanted_and_not_without_bound() {
        let mut without = Views::new(["up"].into_iter(), Shared::default(), Shows::Links);
        without.of(0).on_taken(&flow(1), &taken(100, 1));
        assert_eq!(without.of(0).take_flows(), []);

        without.show_flows();
        without.of(0).on_taken(&flow(1), &taken(100, 1));
        assert_eq!(without.of(0).take_flows().len(), 1);

        let mut with = Views::new(["up"].into_iter(), Shared::default(), Shows::Flows);
        for ports in 0..5_000 {
            with.of(0).on_taken(&flow(ports), &taken(100, 1));
        }
        assert_eq!(with.of(0).take_flows().len(), MOST_FLOWS);
        assert_eq!(with.of(0).sent_packets, 5_000);
    }
}
