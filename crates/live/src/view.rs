//! The view of a running run: the state of each link in the last interval.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sojourn_backend::locked;
use sojourn_net::{Duration, FlowKey, Instant};
use sojourn_path::links::Taken;
use sojourn_qdisc::Backlog;
use sojourn_records::Histogram;

/// Time between two views.
pub(crate) const VIEW_INTERVAL: Duration = Duration::from_secs(1);

/// Most flows of a link that are counted in an interval; others are not shown.
const MOST_FLOWS: usize = 1_024;

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
    /// Packets sent since the start of the run.
    pub sent_packets: u64,
    /// Bytes sent since the start of the run.
    pub sent_bytes: u64,
    /// Its flows, if requested, by descending rate.
    pub flows: Vec<FlowView>,
}

/// The last view, which one thread writes and another reads.
pub(crate) type Shared = Arc<Mutex<Vec<LinkView>>>;

/// Counters for the views.
#[derive(Debug)]
pub(crate) struct Views {
    links: Vec<Interval>,
    shared: Shared,
}

/// Counters of one link.
#[derive(Debug, Default)]
pub(crate) struct Interval {
    name: String,
    sojourn: Histogram,
    bytes: u64,
    drops: u64,
    marks: u64,
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
}

impl FlowCounts {
    #[expect(clippy::cast_precision_loss, reason = "exact below 9 petabytes")]
    fn view(&self, (protocol, ports): (u8, u32)) -> FlowView {
        let mean = self.waited.as_nanos().checked_div(self.packets);
        let [a, b, c, d] = ports.to_be_bytes();
        FlowView {
            protocol,
            ports: [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])],
            bits_per_s: self.bytes as f64 * 8.0 / VIEW_INTERVAL.as_secs_f64(),
            sojourn: mean.map(|mean| [Duration::from_nanos(mean), self.longest]),
            drops: self.drops,
            marks: self.marks,
        }
    }
}

impl Interval {
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
        }
    }

    /// The queue discarded a packet.
    pub(crate) fn on_drop(&mut self, flow: &FlowKey) {
        self.drops += 1;
        if let Some(counts) = self.counts(flow) {
            counts.drops += 1;
        }
    }

    /// The queue marked a packet.
    pub(crate) fn on_mark(&mut self, flow: &FlowKey) {
        self.marks += 1;
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
        let mut views: Vec<_> = std::mem::take(flows)
            .into_iter()
            .map(|(key, counts)| counts.view(key))
            .collect();
        views.sort_by(|a, b| b.bits_per_s.total_cmp(&a.bits_per_s));
        views
    }

    #[expect(clippy::cast_precision_loss, reason = "exact below 9 petabytes")]
    fn view(&mut self, at: Instant, backlog: Backlog) -> LinkView {
        let flows = self.take_flows();
        let quantile = |q| self.sojourn.quantile(q).map(Duration::from_nanos);
        let quantiles = [quantile(0.5), quantile(0.95), quantile(0.99)];
        LinkView {
            name: self.name.clone(),
            at,
            bits_per_s: self.bytes as f64 * 8.0 / VIEW_INTERVAL.as_secs_f64(),
            backlog_packets: backlog.packets as u64,
            backlog_bytes: backlog.bytes.0,
            sojourn: match quantiles {
                [Some(a), Some(b), Some(c)] => Some([a, b, c]),
                _ => None,
            },
            drops: self.drops,
            marks: self.marks,
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            flows,
        }
    }
}

impl Views {
    pub(crate) fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        shared: Shared,
        with_flows: bool,
    ) -> Self {
        let interval = |name: &str| Interval {
            name: name.to_owned(),
            flows: with_flows.then(BTreeMap::new),
            ..Interval::default()
        };
        Self {
            links: names.map(interval).collect(),
            shared,
        }
    }

    pub(crate) fn of(&mut self, link: u32) -> &mut Interval {
        &mut self.links[link as usize]
    }

    /// An interval ends: shows it and begins the next.
    pub(crate) fn show(&mut self, at: Instant, backlogs: impl Iterator<Item = Backlog>) {
        let links = self.links.iter_mut().zip(backlogs);
        let views = links
            .map(|(link, backlog)| link.view(at, backlog))
            .collect();
        *locked(&self.shared) = views;
        for link in &mut self.links {
            link.sojourn = Histogram::default();
            link.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use sojourn_net::Bytes;

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
        let mut views = Views::new(["up"].into_iter(), Shared::default(), true);
        let shared = Arc::clone(&views.shared);
        let [small, large] = [flow(0x0001_0002), flow(0x0003_0004)];
        let link = views.of(0);
        link.on_taken(&small, &taken(125, 1));
        link.on_taken(&large, &taken(1_250, 2));
        link.on_taken(&large, &taken(1_250, 4));
        link.on_drop(&small);
        link.on_mark(&large);
        views.show(Instant::ZERO, std::iter::once(Backlog::default()));
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

        views.show(Instant::ZERO, std::iter::once(Backlog::default()));
        assert_eq!(shared.lock().unwrap()[0].flows, []);
        assert_eq!(
            shared.lock().unwrap()[0].drops,
            1,
            "the drops of a link are totals"
        );
    }

    #[test]
    fn flows_are_counted_only_if_they_are_wanted_and_not_without_bound() {
        let mut without = Views::new(["up"].into_iter(), Shared::default(), false);
        without.of(0).on_taken(&flow(1), &taken(100, 1));
        assert_eq!(without.of(0).take_flows(), []);

        let mut with = Views::new(["up"].into_iter(), Shared::default(), true);
        for ports in 0..5_000 {
            with.of(0).on_taken(&flow(ports), &taken(100, 1));
        }
        assert_eq!(with.of(0).take_flows().len(), MOST_FLOWS);
        assert_eq!(with.of(0).sent_packets, 5_000);
    }
}
