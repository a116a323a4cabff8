//! The memory of flows whose packets arrive next.
//!
//! With thousands of flows, their state exceeds the caches, and most arrivals find that of their flow in
//! no cache. A wire holds the packets that arrive next, so that their flows are known.

use sojourn_prefetch::prefetch;

use super::network::World;
use crate::host::Source;

/// The state of fewer flows fits into the caches: looking ahead costs more than it gains.
const MANY_FLOWS: usize = 500;
/// How many arrivals ahead of time the parts are loaded: the flow first, because it holds the address of its
/// connection, which holds that of its segments.
const FLOW: usize = 6;
const CONNECTION: usize = 4;
const SEGMENTS: usize = 2;

impl World<'_> {
    /// Asks the processor to load the flows of packets that arrive on a wire soon.
    #[inline]
    pub(super) fn look_ahead(&self, wire: u32) {
        if self.flows.len() >= MANY_FLOWS {
            self.load_ahead(wire);
        }
    }

    #[inline(never)]
    fn load_ahead(&self, wire: u32) {
        let wire = &self.wires[wire as usize];
        if let Some(pkt) = wire.after(FLOW) {
            prefetch(&self.flows[pkt.flow_number() as usize]);
        }
        if let Some(pkt) = wire.after(CONNECTION)
            && let Source::Connection(connection) = &self.flows[pkt.flow_number() as usize].source
        {
            connection.prefetch(pkt.kind());
        }
        if let Some(pkt) = wire.after(SEGMENTS)
            && let Source::Connection(connection) = &self.flows[pkt.flow_number() as usize].source
        {
            connection.prefetch_behind(pkt.kind());
        }
    }
}
