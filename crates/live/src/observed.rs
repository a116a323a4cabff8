//! Observations of the packets of a run.

use sojourn_net::{Duration, Instant, Packet as _};
use sojourn_path::links::{Events, LinkProbe, Taken, Watcher};
use sojourn_qdisc::{ClassId, DropReason, MarkReason, Observer, Statistic};
use sojourn_records::{FlowCounters, FlowSample, Histogram, Signal};

use crate::capture::Capture;
use crate::frame::{Frame, Pool};
use crate::traces::Traces;
use crate::view::{Interval, Views};

/// Observers of a run besides its records.
#[derive(Debug, Default)]
pub(crate) struct Observers<'c> {
    /// The capture of its packets, if requested.
    pub(crate) capture: Option<Capture<'c>>,
    /// One per link, if the run can be watched.
    pub(crate) views: Option<Views>,
    /// The captures of both sides, if requested.
    pub(crate) traces: Option<Traces>,
}

/// All observations of a run.
#[derive(Debug)]
pub(crate) struct Observed<'c> {
    /// One per link.
    pub(crate) probes: Vec<LinkProbe>,
    /// One per flow.
    pub(crate) flows: Vec<FlowProbe>,
    /// Drops, marks and losses, if the plan keeps them.
    pub(crate) events: Option<Events>,
    /// The capture of its packets, if requested.
    pub(crate) capture: Option<Capture<'c>>,
    /// One per link, if the run can be watched.
    pub(crate) views: Option<Views>,
    /// The captures of both sides, if requested.
    pub(crate) traces: Option<Traces>,
}

impl<'c> Observed<'c> {
    /// Observes a link.
    pub(crate) fn watch<'a>(&'a mut self, link: u32, pool: &'a mut Pool) -> Watch<'a, 'c> {
        Watch {
            probe: &mut self.probes[link as usize],
            flows: &mut self.flows,
            events: &mut self.events,
            capture: self.capture.as_mut(),
            view: (self.views.as_mut())
                .filter(|views| views.active)
                .map(|views| views.of(link)),
            traces: self.traces.as_mut(),
            pool,
            link,
            class: None,
        }
    }
}

/// Observations of a flow on its path.
#[derive(Debug, Default)]
pub(crate) struct FlowProbe {
    /// Packets in the direction of its data, since the warm-up ended.
    pub(crate) totals: FlowCounters,
    /// Packets that queues dropped and wires lost, since the warm-up ended, with its data.
    pub(crate) lost: u64,
    /// One-way delay of packets in the direction of its data, in ns, since the warm-up ended.
    pub(crate) delay: Histogram,
    /// Packets in queues, in both directions, and since when.
    waiting: u32,
    waiting_since: Instant,
    /// For how long at least one packet waited in a queue, since the warm-up ended.
    waited: Duration,
    /// When its first packet was read.
    pub(crate) started: Option<Instant>,
    /// Payload that arrived in the current interval.
    pub(crate) interval_bytes: u64,
    pub(crate) series: Vec<FlowSample>,
}

impl FlowProbe {
    /// A packet was read.
    pub(crate) fn on_sent(&mut self, now: Instant, forward: bool) {
        self.started.get_or_insert(now);
        self.totals.sent_packets += u64::from(forward);
    }

    /// A packet enters a queue.
    fn enter(&mut self, now: Instant) {
        if self.waiting == 0 {
            self.waiting_since = now;
        }
        self.waiting += 1;
    }

    /// A packet leaves a queue.
    fn leave(&mut self, now: Instant) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.waited += now.saturating_since(self.waiting_since);
        }
    }

    /// For how long at least one packet has waited in a queue by `end`, since the warm-up ended.
    pub(crate) fn waited(&self, end: Instant) -> Duration {
        if self.waiting == 0 {
            self.waited
        } else {
            self.waited + end.saturating_since(self.waiting_since)
        }
    }

    /// A packet has reached the end of its path.
    pub(crate) fn on_delivered(&mut self, now: Instant, frame: &Frame) {
        if !frame.forward {
            return;
        }
        self.totals.received_packets += 1;
        self.totals.delivered_bytes += u64::from(frame.parsed.payload);
        self.interval_bytes += u64::from(frame.parsed.payload);
        self.delay
            .record(now.saturating_since(frame.entered).as_nanos());
    }

    /// An interval ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        if self.started.is_none() {
            return;
        }
        let bytes = std::mem::take(&mut self.interval_bytes);
        self.series.push(FlowSample::without_connection(at, bytes));
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.waited = Duration::ZERO;
        self.waiting_since = now;
        self.totals = FlowCounters::default();
        self.lost = 0;
        self.delay = Histogram::default();
    }
}

/// Observer of one link.
pub(crate) struct Watch<'a, 'c> {
    pub(crate) probe: &'a mut LinkProbe,
    flows: &'a mut [FlowProbe],
    events: &'a mut Option<Events>,
    capture: Option<&'a mut Capture<'c>>,
    view: Option<&'a mut Interval>,
    traces: Option<&'a mut Traces>,
    pool: &'a mut Pool,
    link: u32,
    class: Option<ClassId>,
}

impl Watch<'_, '_> {
    /// A packet is about to be offered to the queue.
    pub(crate) fn enter(&mut self, now: Instant, frame: &Frame) {
        self.flows[frame.flow as usize].enter(now);
        if let Some(view) = &mut self.view {
            view.on_offered(&frame.parsed.flow, frame.size());
        }
    }

    /// The wire behind the link lost a packet.
    pub(crate) fn on_lost(&mut self, now: Instant, frame: &Frame) {
        self.probe.on_lost();
        if let Some(capture) = &mut self.capture {
            capture.on_lost(now, self.link, frame, self.pool.packet(frame));
        }
        if let Some(view) = &mut self.view {
            view.on_lost();
        }
        self.discard(frame);
        self.note(now, frame, Signal::Lost);
    }

    fn discard(&mut self, frame: &Frame) {
        if frame.forward {
            self.flows[frame.flow as usize].lost += 1;
        }
        self.pool.release(frame.slot);
    }

    fn note(&mut self, at: Instant, frame: &Frame, signal: Signal) {
        if let Some(events) = self.events {
            events.note(at, (self.link, frame.flow), frame, signal, self.class);
        }
    }
}

impl Observer<Frame> for Watch<'_, '_> {
    fn on_class(&mut self, class: ClassId) {
        self.class = Some(class);
    }

    fn on_decision(&mut self, numbers: &dyn Fn() -> Vec<Statistic>) {
        if let Some(events) = self.events {
            events.on_decision(numbers);
        }
    }

    fn flow_of(&mut self, frame: &Frame) -> Option<u32> {
        Some(frame.flow)
    }

    fn on_drop(&mut self, now: Instant, frame: Frame, reason: DropReason) {
        self.probe.on_drop(self.class, reason);
        self.flows[frame.flow as usize].leave(now);
        if let Some(capture) = &mut self.capture {
            let bytes = self.pool.packet(&frame);
            capture.on_drop(now, self.link, &frame, bytes, reason);
        }
        if let Some(view) = &mut self.view {
            view.on_drop(&frame.parsed.flow, frame.size(), reason);
        }
        self.discard(&frame);
        self.note(now, &frame, Signal::Drop(reason));
    }

    fn on_mark(&mut self, now: Instant, frame: &Frame, reason: MarkReason) {
        self.probe.on_mark(self.class, reason);
        if let Some(capture) = &mut self.capture {
            capture.on_mark(frame, reason);
        }
        if let Some(view) = &mut self.view {
            view.on_mark(&frame.parsed.flow, reason);
        }
        self.note(now, frame, Signal::Mark(reason));
    }
}

impl Watcher<Frame> for Watch<'_, '_> {
    fn on_taken(&mut self, now: Instant, frame: &Frame, taken: &Taken) {
        self.flows[frame.flow as usize].leave(now);
        if let Some(capture) = &mut self.capture {
            capture.on_taken(now, self.link, frame, self.pool.packet(frame));
        }
        if let Some(traces) = &mut self.traces {
            let packet = &self.pool.packet(frame)[usize::from(frame.header)..];
            traces.on_taken(now, self.link, packet);
        }
        self.probe.on_taken(self.class.as_ref(), taken);
        if let Some(view) = &mut self.view {
            view.on_taken(&frame.parsed.flow, taken);
        }
    }

    fn on_held(&mut self, time: Duration) {
        self.probe.on_held(time);
    }

    #[inline]
    fn events(&mut self) -> Option<&mut Events> {
        self.events.as_mut()
    }
}
