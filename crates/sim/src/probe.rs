//! What is observed of a run: its links, the losses at the start of connections and datagrams, and packets in flight.

use sojourn_apps::DatagramKind;
use sojourn_net::{Duration, Instant, Packet as View, Rate};
use sojourn_path::links::{Events, LinkProbe, Taken, Watcher};
use sojourn_qdisc::{ClassId, DropReason, MarkReason, Observer, Statistic};
use sojourn_records::{CaptureOutput, InitialLosses, Signal};
use sojourn_scenario::plan::{Config, FlowConfig, Traffic};
use sojourn_transport::Flags;

use crate::capture::Capture;
use crate::host::Flow;
use crate::packet::{Kind, Packet};

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
    pub(crate) events: Option<Events>,
    pub(crate) starts: StartLossTracker,
    pub(crate) waits: Waits,
    /// If the packets of the run are written to a file.
    pub(crate) capture: Option<Box<Capture<'c>>>,
}

impl<'c> Observations<'c> {
    /// Nothing yet, and no links.
    pub(crate) fn new(config: &Config, capture: Option<CaptureOutput<'c>>) -> Self {
        let captured = capture.as_ref();
        let with_state = config.sample_state || captured.is_some_and(|to| to.with_state);
        Self {
            probes: Vec::new(),
            notes: Notes {
                events: config.keep_events.then(|| Events::new(with_state)),
                starts: StartLossTracker::new(&config.flows),
                waits: Waits::new(config.flows.len()),
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
            senders: None,
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
    /// The flows, if the queue asks for pacing rates.
    pub(crate) senders: Option<&'a [Flow]>,
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
        self.note(now, pkt, Signal::Lost);
        if let Some(capture) = &mut self.notes.capture {
            capture.on_lost(now, self.link, pkt);
        }
    }

    fn note(&mut self, at: Instant, pkt: &Packet, signal: Signal) {
        if let Some(events) = &mut self.notes.events {
            let flow = self.notes.starts.flow_of(pkt.flow_number());
            events.note(at, (self.link, flow), pkt, signal, self.class);
        }
    }
}

impl Observer<Packet> for Watch<'_, '_> {
    fn on_class(&mut self, class: ClassId) {
        self.class = Some(class);
    }

    fn on_decision(&mut self, numbers: &dyn Fn() -> Vec<Statistic>) {
        if let Some(events) = &mut self.notes.events {
            events.on_decision(numbers);
        }
    }

    fn pacing_rate(&self, pkt: &Packet) -> Option<Rate> {
        self.senders?[pkt.flow_number() as usize].pacing_rate(pkt.kind())
    }

    fn flow_of(&mut self, pkt: &Packet) -> Option<u32> {
        Some(self.notes.starts.flow_of(pkt.flow_number()))
    }

    fn station_of(&self, pkt: &Packet) -> u8 {
        pkt.station()
    }

    fn on_drop(&mut self, now: Instant, pkt: Packet, reason: DropReason) {
        debug_assert!(pkt.size().0 > 0, "a packet has a size");
        self.probe.on_drop(self.class, reason);
        self.notes.starts.on_drop(&pkt);
        self.note(now, &pkt, Signal::Drop(reason));
        if let Some(capture) = &mut self.notes.capture {
            capture.on_drop(now, self.link, &pkt, reason);
        }
    }

    fn on_mark(&mut self, now: Instant, pkt: &Packet, reason: MarkReason) {
        self.probe.on_mark(self.class, reason);
        self.note(now, pkt, Signal::Mark(reason));
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
        self.notes.waits.leave(pkt.flow_number(), now, taken.waited);
        // By reference: most packets have no class, which is not copied then.
        self.probe.on_taken(self.class.as_ref(), taken);
        if let Some(capture) = &mut self.notes.capture {
            capture.on_taken(now, self.link, pkt);
        }
    }

    fn on_held(&mut self, time: Duration) {
        self.probe.on_held(time);
    }

    #[inline]
    fn events(&mut self) -> Option<&mut Events> {
        self.notes.events.as_mut()
    }
}

/// For how long packets of each flow or slot have waited in queues, at least one at a time.
///
/// A packet counts when it leaves: nothing is done when it enters a queue, and the time is exact but for the last
/// gap between two packets of the flow.
#[derive(Debug)]
pub(crate) struct Waits(Vec<Wait>);

#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Until then all is counted.
    until: Instant,
    time: Duration,
}

impl Waits {
    const NONE: Wait = Wait {
        until: Instant::ZERO,
        time: Duration::ZERO,
    };

    fn new(flows: usize) -> Self {
        Self(vec![Self::NONE; flows])
    }

    /// Adds a slot.
    pub(crate) fn add_slot(&mut self) {
        self.0.push(Self::NONE);
    }

    /// A packet of a flow leaves a queue in which it has `waited`.
    #[inline]
    fn leave(&mut self, flow: u32, now: Instant, waited: Duration) {
        if waited > Duration::ZERO
            && let Some(wait) = self.0.get_mut(flow as usize)
        {
            wait.time += waited.min(now.since(wait.until));
            wait.until = now;
        }
    }

    /// For how long packets of a flow have waited.
    pub(crate) fn of(&self, flow: u32) -> Duration {
        self.0[flow as usize].time
    }
}

/// Losses at the start of connections: one entry per flow of the configuration, then
/// one per slot for connections of applications.
#[derive(Debug)]
pub(crate) struct StartLossTracker {
    /// The initial window of each, in segments or datagrams; 0 for what has none.
    windows: Vec<u32>,
    losses: Vec<InitialLosses>,
    slots: Vec<Slot>,
    /// One entry per flow of the configuration.
    datagrams: Vec<DatagramLosses>,
}

#[derive(Clone, Copy, Debug, Default)]
struct DatagramLosses {
    /// Number of the first datagram sent after the warm-up.
    first_measured: u64,
    /// Of those from the first on: dropped, or the reply to it.
    lost: u64,
    /// What comes back are reports, which are no replies.
    has_reports: bool,
}

impl DatagramLosses {
    fn of(flow: &FlowConfig) -> Self {
        let kind = match &flow.traffic {
            Traffic::Datagrams(config) => Some(config.kind()),
            _ => None,
        };
        Self {
            has_reports: matches!(kind, Some(DatagramKind::Media(_))),
            ..Self::default()
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The flow of the application whose connection it holds.
    app: u32,
    /// Packets of its connections in the network.
    under_way: i32,
}

impl StartLossTracker {
    pub(crate) fn new(flows: &[FlowConfig]) -> Self {
        let window = |flow: &FlowConfig| match flow.traffic {
            Traffic::Tcp { params, .. } => params.initial_window,
            Traffic::Quic { params, .. } => params.initial_window,
            Traffic::Datagrams(_) | Traffic::App(_) | Traffic::Program(_) | Traffic::Bridged => 0,
        };
        Self {
            windows: flows.iter().map(window).collect(),
            losses: vec![InitialLosses::default(); flows.len()],
            slots: Vec::new(),
            datagrams: flows.iter().map(DatagramLosses::of).collect(),
        }
    }

    /// The warm-up ends; the next datagram of flow `id` has this number.
    pub(crate) fn begin_measuring(&mut self, id: usize, number: u64) {
        let datagrams = &mut self.datagrams[id];
        datagrams.first_measured = number;
        datagrams.lost = 0;
    }

    pub(crate) fn on_drop(&mut self, pkt: &Packet) {
        self.on_leaving(pkt.flow_number());
        let flow = pkt.flow_number() as usize;
        if let Kind::Udp | Kind::Ping | Kind::Pong = pkt.kind() {
            let datagrams = &mut self.datagrams[flow];
            let number = u64::from(pkt.probe().number);
            let is_report = datagrams.has_reports && pkt.kind() == Kind::Pong;
            datagrams.lost += u64::from(number >= datagrams.first_measured && !is_report);
            return;
        }
        let losses = &mut self.losses[flow];
        let window = self.windows[flow];
        if let Kind::QuicData | Kind::QuicBack = pkt.kind() {
            let datagram = pkt.datagram();
            let first = datagram.has_data() && datagram.app_number() < Some(window);
            if datagram.is_handshake() {
                losses.handshake += 1;
            } else if pkt.kind() == Kind::QuicData && first {
                losses.window += 1;
            }
            return;
        }
        let segment = pkt.segment();
        if segment.flags.has(Flags::SYN) {
            losses.handshake += 1;
        } else if pkt.kind() == Kind::Data && segment.len > 0 && segment.seq < window {
            losses.window += 1;
        }
    }

    /// The slot of that number; `None`: it is a flow of the configuration.
    fn slot(&mut self, id: u32) -> Option<&mut Slot> {
        let declared = self.losses.len() - self.slots.len();
        let n = (id as usize).checked_sub(declared)?;
        self.slots.get_mut(n)
    }

    /// Adds a slot.
    pub(crate) fn add_slot(&mut self) {
        self.windows.push(0);
        self.losses.push(InitialLosses::default());
        self.slots.push(Slot {
            app: 0,
            under_way: 0,
        });
    }

    /// A connection of application `app` takes the slot.
    pub(crate) fn open_slot(&mut self, id: u32, app: u32, initial_window: u32) {
        self.windows[id as usize] = initial_window;
        self.losses[id as usize] = InitialLosses::default();
        if let Some(slot) = self.slot(id) {
            slot.app = app;
        }
    }

    /// Whether no packet of an earlier connection in the slot is left in the network.
    pub(crate) fn is_clear(&mut self, id: u32) -> bool {
        self.slot(id).is_some_and(|slot| slot.under_way == 0)
    }

    /// The connection in the slot sends this many packets.
    pub(crate) fn on_sending(&mut self, id: u32, packets: usize) {
        if let Some(slot) = self.slot(id) {
            slot.under_way += i32::try_from(packets).unwrap_or(i32::MAX);
        }
    }

    /// A packet of a connection in the slot has left the network.
    pub(crate) fn on_leaving(&mut self, id: u32) {
        if let Some(slot) = self.slot(id) {
            slot.under_way -= 1;
        }
    }

    /// What the connection in the slot has lost of its beginning.
    pub(crate) fn losses_of(&self, id: u32) -> InitialLosses {
        self.losses[id as usize]
    }

    /// The flow of the configuration that `id` belongs to.
    pub(crate) fn flow_of(&mut self, id: u32) -> u32 {
        self.slot(id).map_or(id, |slot| slot.app)
    }

    /// For each flow of the configuration, in order: losses at the start, and how many datagrams sent after the
    /// warm-up were lost, copies included.
    pub(crate) fn finish(self) -> impl Iterator<Item = (InitialLosses, u64)> {
        let datagrams = self.datagrams.into_iter().map(|datagrams| datagrams.lost);
        self.losses.into_iter().zip(datagrams)
    }
}
