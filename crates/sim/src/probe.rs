//! Probes that record what happens at a link.

use sojourn_net::{Bytes, Duration, Instant, Packet as View};
use sojourn_qdisc::{Backlog, DropReason, MarkReason, Observer, Statistic};

use crate::packet::Packet;
use crate::start_losses::StartLossTracker;
use sojourn_records::Histogram;
use sojourn_records::{LinkCounters, LinkRecord, LinkSample, Signal, SignalRecord};
use sojourn_scenario::plan::Config;

/// A packet taken out of the queue of a link, as its probe records it.
pub(crate) struct Taken {
    pub(crate) waited: Duration,
    pub(crate) size: Bytes,
    /// The time it occupies the link, if another packet waits meanwhile.
    pub(crate) busy: Duration,
}

/// Everything observed at one link.
#[derive(Debug)]
pub(crate) struct LinkProbe {
    interval: LinkCounters,
    sojourn_sum: u64,
    sojourn_max: Duration,
    /// Counted up to the last sample.
    sampled: LinkCounters,
    sojourn: Histogram,
    busy: Duration,
    series: Vec<LinkSample>,
}

impl LinkProbe {
    pub(crate) fn new(samples: usize) -> Self {
        Self {
            interval: LinkCounters::default(),
            sojourn_sum: 0,
            sojourn_max: Duration::ZERO,
            sampled: LinkCounters::default(),
            sojourn: Histogram::default(),
            busy: Duration::ZERO,
            series: Vec::with_capacity(samples),
        }
    }

    /// The wire delivers a packet twice.
    pub(crate) const fn on_duplicated(&mut self) {
        self.interval.duplicated_packets += 1;
    }

    #[inline]
    pub(crate) fn on_taken(&mut self, taken: &Taken) {
        self.interval.sent_packets += 1;
        self.interval.sent_bytes += taken.size.0;
        self.sojourn_sum += taken.waited.as_nanos();
        self.sojourn_max = self.sojourn_max.max(taken.waited);
        self.sojourn.record(taken.waited.as_nanos());
        self.busy += taken.busy;
    }

    pub(crate) fn sample(&mut self, at: Instant, backlog: Backlog) {
        let sent = self.interval.sent_packets;
        self.series.push(LinkSample {
            at,
            backlog_packets: backlog.packets as u64,
            backlog_bytes: backlog.bytes.0,
            sojourn_mean: self.sojourn_sum.checked_div(sent).map(Duration::from_nanos),
            sojourn_max: (sent > 0).then_some(self.sojourn_max),
            counters: self.interval,
        });
        self.close_interval();
    }

    fn close_interval(&mut self) {
        self.sampled.add(&self.interval);
        self.interval = LinkCounters::default();
        self.sojourn_sum = 0;
        self.sojourn_max = Duration::ZERO;
    }

    /// Forgets the totals: the warm-up is over. The interval under way keeps its counts for the
    /// series; `before` is what of it belongs to the warm-up.
    pub(crate) fn begin_measuring(&mut self) -> LinkCounters {
        self.sampled = LinkCounters::default();
        self.sojourn = Histogram::default();
        self.busy = Duration::ZERO;
        self.interval
    }

    /// The totals since the end of the warm-up; `before`: those of its last interval up to then.
    pub(crate) fn totals(&self, before: &LinkCounters) -> LinkCounters {
        let mut all = self.sampled;
        all.add(&self.interval);
        all.since(before)
    }

    /// The record of link `name`: its `totals`, the time it was `sending`, and the statistics of its queue.
    pub(crate) fn finish(
        self,
        name: String,
        totals: LinkCounters,
        sending: Duration,
        statistics: Vec<Statistic>,
    ) -> LinkRecord {
        LinkRecord {
            name,
            series: self.series,
            totals,
            sojourn: self.sojourn,
            sending,
            busy: self.busy,
            driver: None,
            statistics,
        }
    }
}

/// What is observed at all links.
#[derive(Debug)]
pub(crate) struct Observations {
    /// One per link.
    pub(crate) probes: Vec<LinkProbe>,
    pub(crate) events: Option<Vec<SignalRecord>>,
    pub(crate) starts: StartLossTracker,
}

impl Observations {
    /// Nothing yet, and no links.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            probes: Vec::new(),
            events: config.keep_events.then(Vec::new),
            starts: StartLossTracker::new(&config.flows),
        }
    }

    /// Watches a link.
    #[inline]
    pub(crate) fn watch(&mut self, link: u32) -> Watch<'_> {
        Watch {
            probe: &mut self.probes[link as usize],
            events: &mut self.events,
            starts: &mut self.starts,
            link,
        }
    }
}

/// Observer of a link's queue that records in its probe.
pub(crate) struct Watch<'a> {
    pub(crate) probe: &'a mut LinkProbe,
    events: &'a mut Option<Vec<SignalRecord>>,
    starts: &'a mut StartLossTracker,
    link: u32,
}

impl Watch<'_> {
    /// The wire behind the link lost a packet.
    pub(crate) fn on_lost(&mut self, now: Instant, pkt: &Packet) {
        self.probe.interval.lost_packets += 1;
        self.starts.on_drop(pkt);
        self.note(now, pkt.owner.flow(), Signal::Lost);
    }

    fn note(&mut self, at: Instant, flow: u32, signal: Signal) {
        if let Some(events) = self.events {
            events.push(SignalRecord {
                at,
                link: self.link,
                flow: self.starts.flow_of(flow),
                signal,
            });
        }
    }
}

impl Observer<Packet> for Watch<'_> {
    fn on_drop(&mut self, now: Instant, pkt: Packet, reason: DropReason) {
        debug_assert!(pkt.size().0 > 0, "a packet has a size");
        match reason {
            DropReason::Overlimit => self.probe.interval.drops_overlimit += 1,
            DropReason::Aqm => self.probe.interval.drops_aqm += 1,
        }
        self.starts.on_drop(&pkt);
        self.note(now, pkt.owner.flow(), Signal::Drop(reason));
    }

    fn on_mark(&mut self, now: Instant, pkt: &Packet, reason: MarkReason) {
        match reason {
            MarkReason::Aqm => self.probe.interval.marks_aqm += 1,
            MarkReason::CeThreshold => self.probe.interval.marks_ce_threshold += 1,
        }
        self.note(now, pkt.owner.flow(), Signal::Mark(reason));
    }
}
