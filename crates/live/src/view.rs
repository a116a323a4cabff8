//! What somebody who watches a run is shown: each link in the last interval.

use std::sync::{Arc, Mutex, PoisonError};

use sojourn_link::Taken;
use sojourn_net::{Duration, Instant};
use sojourn_qdisc::Backlog;
use sojourn_records::Histogram;

/// Time between two views.
pub(crate) const VIEW_INTERVAL: Duration = Duration::from_secs(1);

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
}

/// The last view, which one thread writes and another reads.
pub(crate) type Shared = Arc<Mutex<Vec<LinkView>>>;

/// What is counted for the views.
#[derive(Debug)]
pub(crate) struct Views {
    links: Vec<Interval>,
    shared: Shared,
}

/// What is counted of one link.
#[derive(Debug, Default)]
pub(crate) struct Interval {
    name: String,
    sojourn: Histogram,
    bytes: u64,
    pub(crate) drops: u64,
    pub(crate) marks: u64,
    sent_packets: u64,
    sent_bytes: u64,
}

impl Interval {
    /// A packet was taken out of the queue.
    pub(crate) fn on_taken(&mut self, taken: &Taken) {
        self.sojourn.record(taken.waited.as_nanos());
        self.bytes += taken.size.0;
        self.sent_packets += 1;
        self.sent_bytes += taken.size.0;
    }

    #[expect(clippy::cast_precision_loss, reason = "exact below 9 petabytes")]
    fn view(&self, at: Instant, backlog: Backlog) -> LinkView {
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
        }
    }
}

impl Views {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a str>, shared: Shared) -> Self {
        let interval = |name: &str| Interval {
            name: name.to_owned(),
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
        let links = self.links.iter().zip(backlogs);
        let views = links
            .map(|(link, backlog)| link.view(at, backlog))
            .collect();
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = views;
        for link in &mut self.links {
            link.sojourn = Histogram::default();
            link.bytes = 0;
        }
    }
}
