//! A decoded and valid scenario.

use sojourn_net::Duration;

use crate::link::Links;
use crate::page::Pages;
use crate::traffic::Block;
use crate::value::Node;

/// One variant of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) duration: Duration,
    pub(crate) warmup: Duration,
    pub(crate) replications: u32,
    pub(crate) seed: i64,
    pub(crate) sample: Duration,
    /// Base RTT of traffic that names none.
    pub(crate) rtt: Duration,
    pub(crate) keep_events: bool,
    pub(crate) links: Links,
    pub(crate) pages: Pages,
    pub(crate) traffic: Vec<Block>,
    pub(crate) arms: Vec<Arm>,
}

/// A variant: dotted keys and what they are set to.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) set: Vec<(String, Node)>,
}
