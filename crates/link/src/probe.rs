//! Records of a link.

use sojourn_net::{Bytes, Duration, Instant, Packet};
use sojourn_qdisc::{Backlog, ClassId, DropReason, MarkReason, Qdisc, Statistic};
use sojourn_records::{ClassRecord, Histogram, LinkCounters, LinkRecord, LinkSample, StateSample};

use crate::{Carried, Taken};

/// Everything observed at one link.
#[derive(Debug)]
pub struct LinkProbe {
    interval: LinkCounters,
    sojourn_sum: u64,
    sojourn_max: Duration,
    /// Counters up to the last sample.
    sampled: LinkCounters,
    sojourn: Histogram,
    busy: Duration,
    series: Vec<LinkSample>,
    states: Vec<StateSample>,
    /// By class index; `None`: nothing was reported for that class.
    classes: Vec<Option<ClassRecord>>,
    /// The classes of queues that were replaced.
    earlier: Vec<ClassRecord>,
}

impl LinkProbe {
    /// An empty probe, with capacity for this number of samples.
    pub fn new(samples: usize) -> Self {
        Self {
            interval: LinkCounters::default(),
            sojourn_sum: 0,
            sojourn_max: Duration::ZERO,
            sampled: LinkCounters::default(),
            sojourn: Histogram::default(),
            busy: Duration::ZERO,
            series: Vec::with_capacity(samples),
            states: Vec::new(),
            classes: Vec::new(),
            earlier: Vec::new(),
        }
    }

    /// The wire delivers a packet twice.
    pub const fn on_duplicated(&mut self) {
        self.interval.duplicated_packets += 1;
    }

    /// The record of a class.
    #[inline]
    fn class(&mut self, class: ClassId) -> &mut ClassRecord {
        if !matches!(self.classes.get(class.place), Some(Some(_))) {
            self.add_class(class);
        }
        self.classes[class.place].get_or_insert_with(|| ClassRecord::new(class))
    }

    /// Nothing was reported for this class before.
    #[cold]
    fn add_class(&mut self, class: ClassId) {
        if class.place >= self.classes.len() {
            self.classes.resize(class.place + 1, None);
        }
        let same = self.earlier.iter().position(|of| of.class == class);
        let record = same.map(|place| self.earlier.remove(place));
        self.classes[class.place] = Some(record.unwrap_or_else(|| ClassRecord::new(class)));
    }

    /// Another queue, whose classes may be others, takes the place of the queue.
    pub fn on_replaced(&mut self) {
        self.earlier.extend(self.classes.drain(..).flatten());
    }

    /// A packet of `class` was dequeued.
    #[inline]
    pub fn on_taken(&mut self, class: Option<&ClassId>, taken: &Taken) {
        self.interval.sent_packets += 1;
        self.interval.sent_bytes += taken.size.0;
        self.sojourn_sum += taken.waited.as_nanos();
        self.sojourn_max = self.sojourn_max.max(taken.waited);
        self.sojourn.record(taken.waited.as_nanos());
        self.busy += taken.busy;
        if let Some(&class) = class {
            self.on_taken_of(class, taken.waited, taken.size);
        }
    }

    /// The queue discarded a packet of `class`.
    #[inline]
    pub fn on_drop(&mut self, class: Option<ClassId>, reason: DropReason) {
        count_drop(&mut self.interval, reason);
        if let Some(class) = class {
            count_drop(&mut self.class(class).totals, reason);
        }
    }

    /// The queue marked a packet of `class`.
    #[inline]
    pub fn on_mark(&mut self, class: Option<ClassId>, reason: MarkReason) {
        count_mark(&mut self.interval, reason);
        if let Some(class) = class {
            count_mark(&mut self.class(class).totals, reason);
        }
    }

    /// The wire behind the link lost a packet.
    pub fn on_lost(&mut self) {
        self.interval.lost_packets += 1;
    }

    /// A packet of `class` was dequeued. Out of line: most queues have no classes.
    #[inline(never)]
    fn on_taken_of(&mut self, class: ClassId, waited: Duration, size: Bytes) {
        let record = self.class(class);
        record.totals.sent_packets += 1;
        record.totals.sent_bytes += size.0;
        record.sojourn.record(waited.as_nanos());
    }

    /// The queue held its packets back for `time`.
    pub fn on_held(&mut self, time: Duration) {
        self.busy += time;
    }

    /// Ends an interval of the series.
    pub fn sample(&mut self, at: Instant, backlog: Backlog) {
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

    /// Records the state of `queue` at the end of an interval, with `more` of the link's own.
    pub fn sample_state<P: Packet>(
        &mut self,
        at: Instant,
        queue: &impl Qdisc<P>,
        more: impl IntoIterator<Item = Statistic>,
    ) {
        let mut statistics = queue.statistics();
        statistics.extend(more);
        statistics.extend(queue.state(at));
        statistics.shrink_to_fit();
        self.states.push(StateSample { at, statistics });
    }

    fn close_interval(&mut self) {
        self.sampled.add(&self.interval);
        self.interval = LinkCounters::default();
        self.sojourn_sum = 0;
        self.sojourn_max = Duration::ZERO;
    }

    /// Forgets the totals: the warm-up is over. The current interval keeps its counts for the series; `before` is the
    /// part of them that belongs to the warm-up.
    pub fn begin_measuring(&mut self) -> LinkCounters {
        self.sampled = LinkCounters::default();
        self.sojourn = Histogram::default();
        self.busy = Duration::ZERO;
        for class in self.classes.iter_mut().flatten().chain(&mut self.earlier) {
            *class = ClassRecord::new(class.class);
        }
        self.interval
    }

    /// The totals since the end of the warm-up; `before`: those of its last interval up to then.
    pub fn totals(&self, before: &LinkCounters) -> LinkCounters {
        let mut all = self.sampled;
        all.add(&self.interval);
        all.since(before)
    }

    /// The record of link `name`: its `totals`, the time it was `sending`, and what its queue keeps and lists.
    pub fn finish<P: Carried>(
        mut self,
        name: String,
        totals: LinkCounters,
        sending: Duration,
        queue: &impl Qdisc<P>,
    ) -> LinkRecord {
        for class in queue.classes() {
            self.class(class);
        }
        LinkRecord {
            name,
            series: self.series,
            states: self.states,
            totals,
            sojourn: self.sojourn,
            sending,
            busy: self.busy,
            driver: None,
            classes: (self.classes.into_iter().flatten())
                .chain(self.earlier)
                .collect(),
            statistics: queue.statistics(),
        }
    }
}

const fn count_drop(counters: &mut LinkCounters, reason: DropReason) {
    match reason {
        DropReason::Overlimit => counters.drops_overlimit += 1,
        DropReason::Aqm => counters.drops_aqm += 1,
        DropReason::AckFilter => counters.drops_ack_filter += 1,
        DropReason::Replaced => counters.drops_replaced += 1,
    }
}

const fn count_mark(counters: &mut LinkCounters, reason: MarkReason) {
    match reason {
        MarkReason::Aqm => counters.marks_aqm += 1,
        MarkReason::CeThreshold => counters.marks_ce_threshold += 1,
    }
}
