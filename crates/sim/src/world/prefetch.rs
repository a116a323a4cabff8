//! The memory of flows whose packets arrive next.
//!
//! With thousands of flows, their state exceeds the caches: at most arrivals, the state of the flow is in no cache. A
//! wire holds the packets that arrive next, so their flows are known.

use sojourn_backend::Step;
use sojourn_prefetch::prefetch;

use super::World;

/// Below this number of flows, their state fits into the caches, and prefetching costs more than it saves.
const MANY_FLOWS: usize = 500;
/// How many packets on the wire are skipped before the one whose part is loaded. The packet comes first, because it
/// names its flow, which holds the address of its connection, which holds that of its segments.
const PACKET: usize = 12;
const FLOW: usize = 6;
const CONNECTION: usize = 4;
const SEGMENTS: usize = 2;

impl World<'_> {
    /// Asks the processor to load the flows of packets that arrive on a wire soon.
    #[inline]
    pub(super) fn prefetch_flows(&self, wire: u32) {
        if self.flows.len() >= MANY_FLOWS {
            self.prefetch_parts(wire);
        }
    }

    /// Asks the processor to load the connection of the packet that a link transmits, if its way ends there.
    #[inline]
    pub(super) fn prefetch_leaving(&self, link: u32) {
        if self.flows.len() >= MANY_FLOWS {
            self.prefetch_connection(link);
        }
    }

    #[inline(never)]
    fn prefetch_connection(&self, link: u32) {
        if let Some(pkt) = self.links[link as usize].leaving()
            && self.routes.step(pkt.step()) == Step::End
            && let Some(connection) = self.flows[pkt.flow_number() as usize].connection()
        {
            connection.prefetch(pkt.kind());
        }
    }

    #[inline(never)]
    fn prefetch_parts(&self, wire: u32) {
        let wire = &self.wires[wire as usize];
        if let Some(pkt) = wire.after(PACKET) {
            prefetch(pkt);
        }
        if let Some(pkt) = wire.after(FLOW) {
            prefetch(&self.flows[pkt.flow_number() as usize]);
        }
        if let Some(pkt) = wire.after(CONNECTION)
            && let Some(connection) = self.flows[pkt.flow_number() as usize].connection()
        {
            connection.prefetch(pkt.kind());
        }
        if let Some(pkt) = wire.after(SEGMENTS)
            && let Some(connection) = self.flows[pkt.flow_number() as usize].connection()
        {
            connection.prefetch_behind(pkt.kind());
        }
    }
}
