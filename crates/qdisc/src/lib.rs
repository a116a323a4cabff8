//! Queue disciplines as pure state machines: no clock, no IO, one file per algorithm.
//!
//! [`Qdisc`] is the whole contract between an algorithm and its world. [`QdiscSpec`] reads a
//! discipline from text and builds it; [`catalogue`] lists what there is.

mod aqm;
mod catalogue;
mod classful;
mod contract;
mod external;
mod fair;
mod link;
mod parameters;
mod parts;
mod registry;
mod tc;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use aqm::blue::{Blue, BlueParams};
pub use aqm::choke::{Choke, ChokeParams};
pub use aqm::cobalt::{Cobalt, CobaltParams};
pub use aqm::codel::{Codel, CodelParams};
pub use aqm::droptail::{DropTail, DropTailParams, Limit};
pub use aqm::dualpi2::{DualPi2, DualPi2Params};
pub use aqm::floq::{Floq, FloqParams};
pub use aqm::hred::HredParams;
pub use aqm::pie::{Pie, PieParams};
pub use aqm::predict::{Predict, PredictParams};
pub use aqm::red::RedDerived;
pub use aqm::red_ns2::{Ns2Red, Ns2RedParams};
pub use catalogue::{ParameterInfo, QdiscInfo, catalogue};
pub use classful::prio::{PfifoFast, PfifoFastParams};
pub use contract::{Backlog, DropReason, MarkReason, Number, Observer, Qdisc, Statistic};
pub use external::{
    BoxedQueue, External, ExternalKind, ExternalParams, ExternalSpec, FailureCause, PYTHON_PREFIX,
    QueueFailure, RegisterError, Ticket, fail, register, registered,
};
pub use fair::afcd::{Afcd, AfcdParams};
pub use fair::afd::{Afd, AfdParams};
pub use fair::cake::{AckFilter, Cake, CakeParams, Diffserv, FlowMode};
pub use fair::cocoa::{Cocoa, CocoaParams};
pub use fair::fq::{Fq, FqParams, Turns};
pub use fair::fq_codel::{FqCodel, FqCodelParams};
pub use fair::fq_pie::{FqPie, FqPieParams};
pub use fair::sfq::{Sfq, SfqParams};
pub use fair::sfq_codel::{SfqCodel, SfqCodelParams};
pub use link::LinkFacts;
pub use parameters::{ParameterError, Profile, Unit, nearest};
pub use parts::fifo::Fifo;
pub use parts::framing::{Framing, LinkLayer};
pub use registry::{
    AnyQdisc, Drr, DrrParams, Prio, PrioParams, QdiscSpec, Red, RedParams, Sfb, SfbParams,
};
pub use sojourn_net::{
    Bytes, Dscp, Duration, Ecn, FlowKey, Instant, Packet, Rate, Rng, TcpHeader, Transport,
    UnitError,
};
