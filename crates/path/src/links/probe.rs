//! Records of a link.

use sojourn_net::{Bytes, Duration, Instant, Packet};
use sojourn_qdisc::{Backlog, ClassId, DropReason, MarkReason, Qdisc, Statistic};

use super::{Carried, Taken};
use crate::records::{ClassRecord, Histogram, LinkCounters, LinkRecord, LinkSample, StateSample};

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
    called: Box<Called>,
}

/// What belongs to the interval between two calls of a controller, which need not end with that of the series.
#[derive(Debug, Default)]
struct Called {
    /// Of closed intervals of the series.
    closed: LinkCounters,
    closed_sum: u64,
    closed_max: Duration,
    /// Of the current interval of the series, up to the last call.
    before: LinkCounters,
    before_sum: u64,
    before_max: Duration,
}

/// What a link counted between two calls of a controller.
#[derive(Clone, Copy, Debug)]
pub struct CallCounts {
    /// Packets and bytes.
    pub counters: LinkCounters,
    /// Mean sojourn time of the packets sent; `None`: none were sent.
    pub sojourn_mean: Option<Duration>,
    /// Longest sojourn time of them.
    pub sojourn_max: Option<Duration>,
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
            called: Box::default(),
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
            sojourn_max: (sent > 0).then_some(self.sojourn_max.max(self.called.before_max)),
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

    /// The series so far, and the states of the queue.
    pub fn series(&self) -> (&[LinkSample], &[StateSample]) {
        (&self.series, &self.states)
    }

    /// What was counted since the last call of this method.
    pub fn count_since_call(&mut self) -> CallCounts {
        let called = &self.called;
        let mut counters = called.closed;
        counters.add(&self.interval.since(&called.before));
        let sum = called.closed_sum + self.sojourn_sum - called.before_sum;
        let max = called.closed_max.max(self.sojourn_max);
        let sent = counters.sent_packets;
        *self.called = Called {
            before: self.interval,
            before_sum: self.sojourn_sum,
            before_max: called.before_max.max(self.sojourn_max),
            ..Called::default()
        };
        self.sojourn_max = Duration::ZERO;
        CallCounts {
            counters,
            sojourn_mean: sum.checked_div(sent).map(Duration::from_nanos),
            sojourn_max: (sent > 0).then_some(max),
        }
    }

    fn close_interval(&mut self) {
        let called = &mut self.called;
        called.closed.add(&self.interval.since(&called.before));
        called.closed_sum += self.sojourn_sum - called.before_sum;
        called.closed_max = called.closed_max.max(self.sojourn_max);
        called.before = LinkCounters::default();
        called.before_sum = 0;
        called.before_max = Duration::ZERO;
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

pub(crate) const fn count_drop(counters: &mut LinkCounters, reason: DropReason) {
    match reason {
        DropReason::Overlimit => counters.drops_overlimit += 1,
        DropReason::Aqm => counters.drops_aqm += 1,
        DropReason::AckFilter => counters.drops_ack_filter += 1,
        DropReason::Replaced => counters.drops_replaced += 1,
    }
}

pub(crate) const fn count_mark(counters: &mut LinkCounters, reason: MarkReason) {
    match reason {
        MarkReason::Aqm => counters.marks_aqm += 1,
        MarkReason::CeThreshold => counters.marks_ce_threshold += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_samples_count_the_same_packets_in_intervals_of_their_own() {
        let ms = Duration::from_millis;
        let mut probe = LinkProbe::new(2);
        let take = |probe: &mut LinkProbe, waited: u64| {
            let taken = Taken {
                waited: ms(waited),
                size: Bytes(100),
                busy: Duration::ZERO,
            };
            probe.on_taken(None, &taken);
        };
        let sent = |calls: &CallCounts| {
            let times = (calls.sojourn_mean, calls.sojourn_max);
            (calls.counters.sent_packets, times)
        };
        let backlog = Backlog::default();
        take(&mut probe, 9);
        let first = probe.count_since_call();
        assert_eq!(sent(&first), (1, (Some(ms(9)), Some(ms(9)))));
        take(&mut probe, 5);
        probe.sample(Instant::from_millis(10), backlog);
        // The sample has both, the call only the second and what follows.
        assert_eq!(probe.series[0].sojourn_max, Some(ms(9)));
        assert_eq!(probe.series[0].sojourn_mean, Some(ms(7)));
        take(&mut probe, 1);
        probe.on_lost();
        let second = probe.count_since_call();
        assert_eq!(sent(&second), (2, (Some(ms(3)), Some(ms(5)))));
        assert_eq!(second.counters.lost_packets, 1);
        assert_eq!(sent(&probe.count_since_call()), (0, (None, None)));
        probe.sample(Instant::from_millis(20), backlog);
        assert_eq!(probe.series[1].sojourn_max, Some(ms(1)));
        assert_eq!(probe.series[1].counters.sent_packets, 1);
    }
}
