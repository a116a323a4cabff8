//! Losses at the start of connections and of datagrams, and the packets in flight of each connection.

use sojourn_transport::Flags;

use crate::packet::{Kind, Packet};
use sojourn_records::InitialLosses;
use sojourn_scenario::plan::{FlowConfig, Traffic};

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
            Traffic::Datagrams(_) | Traffic::App(_) | Traffic::Program(_) => 0,
        };
        Self {
            windows: flows.iter().map(window).collect(),
            losses: vec![InitialLosses::default(); flows.len()],
            slots: Vec::new(),
            datagrams: vec![DatagramLosses::default(); flows.len()],
        }
    }

    /// The warm-up ends; the next datagram of flow `id` has this number.
    pub(crate) fn begin_measuring(&mut self, id: usize, number: u64) {
        self.datagrams[id] = DatagramLosses {
            first_measured: number,
            lost: 0,
        };
    }

    pub(crate) fn on_drop(&mut self, pkt: &Packet) {
        self.on_leaving(pkt.flow_number());
        let flow = pkt.flow_number() as usize;
        if let Kind::Udp | Kind::Ping | Kind::Pong = pkt.kind() {
            let datagrams = &mut self.datagrams[flow];
            let number = u64::from(pkt.probe().number);
            datagrams.lost += u64::from(number >= datagrams.first_measured);
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
