//! Probes that record what happens at a link.

use sojourn_net::{Bytes, Duration, Instant, Packet as View};
use sojourn_qdisc::{Backlog, ClassId, DropReason, MarkReason, Observer, Qdisc};

use crate::packet::Packet;
use crate::start_losses::StartLossTracker;
use sojourn_records::{
    ClassRecord, Histogram, LinkCounters, LinkRecord, LinkSample, Signal, SignalRecord,
};
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
    /// By place; `None`: nothing was reported of that class.
    classes: Vec<Option<ClassRecord>>,
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
            classes: Vec::new(),
        }
    }

    /// The wire delivers a packet twice.
    pub(crate) const fn on_duplicated(&mut self) {
        self.interval.duplicated_packets += 1;
    }

    /// The record of a class.
    #[inline(never)]
    fn class(&mut self, class: ClassId) -> &mut ClassRecord {
        if class.place >= self.classes.len() {
            self.classes.resize(class.place + 1, None);
        }
        self.classes[class.place].get_or_insert_with(|| ClassRecord::new(class))
    }

    #[inline]
    fn on_taken(&mut self, taken: &Taken) {
        self.interval.sent_packets += 1;
        self.interval.sent_bytes += taken.size.0;
        self.sojourn_sum += taken.waited.as_nanos();
        self.sojourn_max = self.sojourn_max.max(taken.waited);
        self.sojourn.record(taken.waited.as_nanos());
        self.busy += taken.busy;
    }

    /// A packet of `class` was taken. Out of line: most queues have no classes.
    #[inline(never)]
    fn on_taken_of(&mut self, class: ClassId, waited: Duration, size: Bytes) {
        let record = self.class(class);
        record.totals.sent_packets += 1;
        record.totals.sent_bytes += size.0;
        record.sojourn.record(waited.as_nanos());
    }

    /// The queue held its packets back for `time`.
    pub(crate) fn on_held(&mut self, time: Duration) {
        self.busy += time;
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
        for class in self.classes.iter_mut().flatten() {
            *class = ClassRecord::new(class.class);
        }
        self.interval
    }

    /// The totals since the end of the warm-up; `before`: those of its last interval up to then.
    pub(crate) fn totals(&self, before: &LinkCounters) -> LinkCounters {
        let mut all = self.sampled;
        all.add(&self.interval);
        all.since(before)
    }

    /// The record of link `name`: its `totals`, the time it was `sending`, and what its queue keeps and lists.
    pub(crate) fn finish(
        mut self,
        name: String,
        totals: LinkCounters,
        sending: Duration,
        queue: &impl Qdisc<Packet>,
    ) -> LinkRecord {
        for class in queue.classes() {
            self.class(class);
        }
        LinkRecord {
            name,
            series: self.series,
            totals,
            sojourn: self.sojourn,
            sending,
            busy: self.busy,
            driver: None,
            classes: self.classes.into_iter().flatten().collect(),
            statistics: queue.statistics(),
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
            class: None,
        }
    }
}

/// Observer of a link's queue that records in its probe.
pub(crate) struct Watch<'a> {
    pub(crate) probe: &'a mut LinkProbe,
    events: &'a mut Option<Vec<SignalRecord>>,
    starts: &'a mut StartLossTracker,
    link: u32,
    /// What the queue reports next is about a packet of this class.
    class: Option<ClassId>,
}

impl Watch<'_> {
    /// A packet was taken out of the queue.
    #[inline]
    pub(crate) fn on_taken(&mut self, taken: &Taken) {
        self.probe.on_taken(taken);
        if let Some(class) = self.class {
            self.probe.on_taken_of(class, taken.waited, taken.size);
        }
    }

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
    fn on_class(&mut self, class: ClassId) {
        self.class = Some(class);
    }

    fn on_drop(&mut self, now: Instant, pkt: Packet, reason: DropReason) {
        debug_assert!(pkt.size().0 > 0, "a packet has a size");
        count_drop(&mut self.probe.interval, reason);
        if let Some(class) = self.class {
            count_drop(&mut self.probe.class(class).totals, reason);
        }
        self.starts.on_drop(&pkt);
        self.note(now, pkt.owner.flow(), Signal::Drop(reason));
    }

    fn on_mark(&mut self, now: Instant, pkt: &Packet, reason: MarkReason) {
        count_mark(&mut self.probe.interval, reason);
        if let Some(class) = self.class {
            count_mark(&mut self.probe.class(class).totals, reason);
        }
        self.note(now, pkt.owner.flow(), Signal::Mark(reason));
    }
}

const fn count_drop(counters: &mut LinkCounters, reason: DropReason) {
    match reason {
        DropReason::Overlimit => counters.drops_overlimit += 1,
        DropReason::Aqm => counters.drops_aqm += 1,
    }
}

const fn count_mark(counters: &mut LinkCounters, reason: MarkReason) {
    match reason {
        MarkReason::Aqm => counters.marks_aqm += 1,
        MarkReason::CeThreshold => counters.marks_ce_threshold += 1,
    }
}
