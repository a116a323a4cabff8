//! Maps packets to the flows of the plan.

use sojourn_net::FlowKey;
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{FlowConfig, Traffic};

use crate::frame::Frame;
use crate::side::{Side, flow_at, source_of};

/// The flows of a plan, by the ports on which they listen.
#[derive(Debug)]
pub(crate) struct Flows {
    /// The side that sends the data of each flow.
    sources: Vec<Side>,
    /// The flow of the program, for packets that belong to no other flow.
    other: u32,
}

impl Flows {
    pub(crate) fn new(plan: &Plan) -> Self {
        let is_program = |flow: &FlowConfig| matches!(flow.traffic, Traffic::Program(_));
        let other = plan.config.flows.iter().position(is_program);
        let sources = plan.flows.iter().map(|flow| source_of(flow.direction));
        Self {
            sources: sources.collect(),
            other: other.and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        }
    }

    /// The flow of a packet that was read on `side`, and whether it travels with the data of the flow.
    #[inline]
    pub(crate) fn of(&self, key: &FlowKey, side: Side) -> (u32, bool) {
        let [a, b, c, d] = key.ports.to_be_bytes();
        let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        let flow = ports
            .into_iter()
            .find_map(|port| flow_at(port, self.sources.len()));
        let flow = flow.unwrap_or(self.other);
        (flow, self.sources[flow as usize] == side)
    }

    /// The destination side of a packet.
    #[inline]
    pub(crate) fn destination(&self, frame: &Frame) -> Side {
        let source = self.sources[frame.flow as usize];
        match (source, frame.forward) {
            (Side::Client, true) | (Side::Server, false) => Side::Server,
            (Side::Client, false) | (Side::Server, true) => Side::Client,
        }
    }
}
