//! What is observed at the links of a run.

use sojourn_link::{LinkProbe, Taken, Watcher};
use sojourn_net::{Duration, Instant, Packet as View};
use sojourn_qdisc::{ClassId, DropReason, MarkReason, Observer};
use sojourn_records::{CaptureOutput, Signal, SignalRecord};
use sojourn_scenario::plan::Config;

use crate::capture::Capture;
use crate::packet::Packet;
use crate::start_losses::StartLossTracker;

/// What is observed at all links.
#[derive(Debug)]
pub(crate) struct Observations<'c> {
    /// One per link.
    pub(crate) probes: Vec<LinkProbe>,
    pub(crate) notes: Notes<'c>,
}

/// What is noted of packets besides the counters of their link. One field of a [`Watch`], which is made
/// twice per packet.
#[derive(Debug)]
pub(crate) struct Notes<'c> {
    pub(crate) events: Option<Vec<SignalRecord>>,
    pub(crate) starts: StartLossTracker,
    /// If the packets of the run are written to a file.
    pub(crate) capture: Option<Box<Capture<'c>>>,
}

impl<'c> Observations<'c> {
    /// Nothing yet, and no links.
    pub(crate) fn new(config: &Config, capture: Option<CaptureOutput<'c>>) -> Self {
        Self {
            probes: Vec::new(),
            notes: Notes {
                events: config.keep_events.then(Vec::new),
                starts: StartLossTracker::new(&config.flows),
                capture: capture.map(|output| Box::new(Capture::new(config, output))),
            },
        }
    }

    /// Watches a link.
    #[inline]
    pub(crate) fn watch(&mut self, link: u32) -> Watch<'_, 'c> {
        Watch {
            probe: &mut self.probes[link as usize],
            notes: &mut self.notes,
            link,
            class: None,
        }
    }
}

/// Observer of a link's queue that records in its probe.
pub(crate) struct Watch<'a, 'c> {
    pub(crate) probe: &'a mut LinkProbe,
    notes: &'a mut Notes<'c>,
    link: u32,
    /// What the queue reports next is about a packet of this class.
    class: Option<ClassId>,
}

impl Watch<'_, '_> {
    /// Clears the class before the next packet is enqueued: a queue states the class of a packet in the call that
    /// signals it.
    #[inline]
    pub(crate) fn begin_packet(&mut self) {
        self.class = None;
    }

    /// The wire behind the link lost a packet.
    pub(crate) fn on_lost(&mut self, now: Instant, pkt: &Packet) {
        self.probe.on_lost();
        self.notes.starts.on_drop(pkt);
        self.note(now, pkt.flow_number(), Signal::Lost);
        if let Some(capture) = &mut self.notes.capture {
            capture.on_lost(now, self.link, pkt);
        }
    }

    fn note(&mut self, at: Instant, flow: u32, signal: Signal) {
        if let Some(events) = &mut self.notes.events {
            events.push(SignalRecord {
                at,
                link: self.link,
                flow: self.notes.starts.flow_of(flow),
                signal,
            });
        }
    }
}

impl Observer<Packet> for Watch<'_, '_> {
    fn on_class(&mut self, class: ClassId) {
        self.class = Some(class);
    }

    fn on_drop(&mut self, now: Instant, pkt: Packet, reason: DropReason) {
        debug_assert!(pkt.size().0 > 0, "a packet has a size");
        self.probe.on_drop(self.class, reason);
        self.notes.starts.on_drop(&pkt);
        self.note(now, pkt.flow_number(), Signal::Drop(reason));
        if let Some(capture) = &mut self.notes.capture {
            capture.on_drop(now, self.link, &pkt, reason);
        }
    }

    fn on_mark(&mut self, now: Instant, pkt: &Packet, reason: MarkReason) {
        self.probe.on_mark(self.class, reason);
        self.note(now, pkt.flow_number(), Signal::Mark(reason));
        if let Some(capture) = &mut self.notes.capture {
            capture.on_mark(pkt, reason);
        }
    }
}

impl Watcher<Packet> for Watch<'_, '_> {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; because of the call of a capture it is not inlined without this"
    )]
    fn on_taken(&mut self, now: Instant, pkt: &Packet, taken: &Taken) {
        // By reference: most packets have no class, which is not copied then.
        self.probe.on_taken(self.class.as_ref(), taken);
        if let Some(capture) = &mut self.notes.capture {
            capture.on_taken(now, self.link, pkt);
        }
    }

    fn on_held(&mut self, time: Duration) {
        self.probe.on_held(time);
    }
}
