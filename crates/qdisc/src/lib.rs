//! Queue disciplines as pure state machines: no clock, no IO, one file per algorithm.
//!
//! [`Qdisc`] is the whole contract between an algorithm and its world. [`QdiscSpec`] reads a
//! discipline from text and builds it; [`catalogue`] lists what there is.

mod aqm;
mod catalogue;
mod change;
mod classful;
mod contract;
mod external;
mod fair;
pub mod parameters;
mod parts;
mod registry;
#[cfg(test)]
#[expect(unreachable_pub, reason = "make new-queue makes a public queue of it")]
mod skeleton;
mod tc;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use aqm::droptail::Limit;
pub use aqm::dualpi2::{DropEarly, EcnMask};
pub use aqm::red::RedDerived;
#[cfg(feature = "json")]
pub use catalogue::catalogue_json;
pub use catalogue::{QdiscInfo, catalogue};
pub use change::QueueChange;
pub use classful::htb::{
    Address as HtbAddress, Code as HtbDscp, HtbClass, HtbFilter, HtbIp, HtbLinkLayer, HtbProtocol,
    Ports as HtbPorts,
};
pub use contract::{
    Backlog, ClassId, DropReason, MarkReason, Number, Observer, Peek, Qdisc, Statistic,
};
pub use external::{
    FailureCause, Leaving, Origin, PLUGIN_PREFIX, PYTHON_PREFIX, QueueClass, QueueFailure,
    RegisterError, Ticket, TicketQueue, fail, intern, is_external, origin_of, register,
};
pub use fair::cake::{AckFilter, Diffserv, FlowMode};
pub use fair::mac80211::TxqId;
pub use parameters::{Counter, Footprint, ParameterError, Profile, Retention, TcStatistics};
pub use parameters::{FlowCondition, FlowFacts, LinkFacts};
pub use parts::fifo::Fifo;
pub use parts::framing::{Framing, LinkLayer};
pub use registry::disciplines::*;
pub use registry::{AnyQdisc, QdiscSpec};
pub use sojourn_net::{
    Bytes, Dscp, Duration, Ecn, FlowKey, Instant, Packet, Rate, Rng, TcpHeader, Transport,
    UnitError,
};
pub use sojourn_schema::{Entries, ParameterInfo, Unit, Word, choice, parameters};
pub use tc::ModuleQueue;
