//! The state of a simulated network.

use std::collections::VecDeque;

use sojourn_apps::{AppEvent, AppOutput};
use sojourn_link::{Line, Link, Routes, Wire};
use sojourn_net::{Duration, Instant, Rng};

use super::arrivals::Arrivals;
use super::following::Following;
use crate::agenda::Agenda;
use crate::host::{Flow, Hosts, Outbox};
use crate::medium::{Medium, Sent};
use crate::packet::Packet;
use crate::probe::Observations;
use sojourn_records::LinkCounters;
use sojourn_scenario::plan::Config;

/// The whole simulated network: plain vectors, owned in one place, named by index.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) config: &'a Config,
    pub(super) hosts: Hosts,
    /// The parent of the flows' random streams.
    pub(super) flow_rng: Rng,
    pub(super) now: Instant,
    pub(super) end: Instant,
    pub(super) sample: Duration,
    pub(super) agenda: Agenda,
    pub(super) routes: Routes,
    /// How far receivers are ahead of the network, indexed by `Flow::lead`; the first is zero.
    pub(super) leads: Vec<Duration>,
    pub(super) links: Vec<Link<Packet>>,
    /// Of each link: its medium and its number there, if it is wireless; the medium then determines when it sends.
    pub(super) radios: Vec<Option<(u32, usize)>>,
    pub(super) observed: Observations<'a>,
    pub(super) wires: Vec<Wire<Packet>>,
    pub(super) lines: Vec<Line<Packet>>,
    pub(super) media: Vec<Medium>,
    /// What a medium has just delivered; empty between events.
    pub(super) sent: Sent,
    /// Those of the configuration, then slots for connections of applications.
    pub(super) flows: Vec<Flow>,
    pub(super) applications: Applications,
    pub(super) arrivals: Arrivals,
    pub(super) following: Following,
    pub(super) outbox: Outbox,
    pub(super) before: Vec<LinkCounters>,
    pub(super) handled: u64,
}

/// State shared by all applications.
#[derive(Debug, Default)]
pub(super) struct Applications {
    /// Commands, of which there are none between events, and reports.
    pub(super) output: AppOutput,
    /// Applications to notify of events, the oldest first.
    pub(super) pending: VecDeque<(u32, AppEvent)>,
    /// Slots of connections that have ended, the oldest first.
    pub(super) ended: VecDeque<u32>,
}
