//! Maps packets to the flows of the plan: the two sides of a run, and the ports that identify its flows.

use sojourn_net::FlowKey;
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, Traffic};

use crate::frame::Frame;

/// The flows of a plan, by the ports on which they listen.
#[derive(Debug)]
pub(crate) struct Flows {
    /// The side that sends the data of each flow.
    sources: Vec<Side>,
    /// The flow of the program, for packets that belong to no other flow.
    other: u32,
    /// The flows of a bridge, by the side that their packets come from.
    bridged: Option<[u32; 2]>,
}

impl Flows {
    pub(crate) fn new(plan: &Plan) -> Self {
        let is_program = |flow: &FlowConfig| matches!(flow.traffic, Traffic::Program(_));
        let other = plan.config.flows.iter().position(is_program);
        let sources: Vec<_> = (plan.flows.iter())
            .map(|flow| source_of(flow.direction))
            .collect();
        let from = |side| {
            let mut flows = (0..).zip(plan.config.flows.iter().zip(&sources));
            let is_bridged = |flow: &FlowConfig| matches!(flow.traffic, Traffic::Bridged);
            flows.find_map(|(n, (flow, source))| (is_bridged(flow) && *source == side).then_some(n))
        };
        Self {
            bridged: from(Side::Client).and_then(|client| Some([client, from(Side::Server)?])),
            sources,
            other: other.and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        }
    }

    /// The flow of a packet that was read on `side`, and whether it travels with the data of the flow.
    #[inline]
    pub(crate) fn of(&self, key: &FlowKey, side: Side) -> (u32, bool) {
        if let Some(flows) = self.bridged {
            return (flows[side as usize], true);
        }
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
        if frame.forward {
            source.other()
        } else {
            source
        }
    }
}

impl Flows {
    /// By flow of a bridge: where its packets arrive, and over which link.
    pub(crate) fn ends(&self, config: &Config) -> Vec<(Side, u32)> {
        let last = |flow: &FlowConfig| {
            flow.forward.iter().rev().find_map(|hop| match hop {
                Hop::Link(number) => u32::try_from(*number).ok(),
                Hop::Delay(_) => None,
            })
        };
        let flows = self.sources.iter().zip(&config.flows);
        flows
            .map(|(source, flow)| (source.other(), last(flow).unwrap_or(0)))
            .collect()
    }

    /// By link: the side that sends over it.
    pub(crate) fn senders(&self, config: &Config) -> Vec<Side> {
        let mut senders = vec![Side::Client; config.links.len()];
        for (to, link) in self.ends(config) {
            senders[link as usize] = to.other();
        }
        senders
    }
}

/// Flow number `n` uses port `FIRST_PORT + n` on the listening side, below the ephemeral ports of the kernel.
pub(crate) const FIRST_PORT: u16 = 20_000;
/// Most flows that can have a port.
pub(crate) const MOST_FLOWS: usize = 12_000;

/// Where a packet was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From the client.
    Client,
    /// From the server.
    Server,
}

impl Side {
    /// The opposite side.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The side that sends data in this direction.
pub(crate) fn source_of(direction: Option<&str>) -> Side {
    match direction {
        Some("down") => Side::Server,
        _ => Side::Client,
    }
}

/// The built-in flow with this port, if its number is below `flows`.
#[inline]
pub(crate) fn flow_at(port: u16, flows: usize) -> Option<u32> {
    let number = port.checked_sub(FIRST_PORT)?;
    (usize::from(number) < flows).then_some(number.into())
}
