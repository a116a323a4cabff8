//! The tick counters of the hosts at the ends of a flow.

use sojourn_transport::Ticks;

/// The tick counters of the two hosts: the sender of data and its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts {
    pub(crate) near: Ticks,
    pub(crate) far: Ticks,
}
