//! Queue disciplines as pure state machines: no clock, no IO, one file per algorithm.
//!
//! [`Qdisc`] is the whole contract between an algorithm and its world. [`QdiscSpec`] reads a
//! discipline from text and builds it; [`catalogue`] lists what there is.

mod afcd;
mod afd;
mod blue;
mod cake;
mod catalogue;
mod choice;
mod choke;
mod classes;
mod cobalt;
mod cocoa;
mod codel;
mod contract;
mod droptail;
mod drr;
mod dualpi2;
mod fifo;
mod floq;
mod fq;
mod fq_codel;
mod fq_pie;
mod framing;
mod hred;
mod jiffies;
mod leaf;
mod parameter;
mod pie;
mod pool;
mod predict;
mod prio;
mod red;
mod red_ns2;
mod registry;
mod round;
mod sfb;
mod sfq;
mod sfq_codel;
mod shadow;
mod spec;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use afcd::{Afcd, AfcdParams};
pub use afd::{Afd, AfdParams};
pub use blue::{Blue, BlueParams};
pub use cake::{AckFilter, Cake, CakeParams, Diffserv, FlowMode};
pub use catalogue::{ParameterInfo, QdiscInfo, catalogue};
pub use choke::{Choke, ChokeParams};
pub use cobalt::{Cobalt, CobaltParams};
pub use cocoa::{Cocoa, CocoaParams};
pub use codel::{Codel, CodelParams};
pub use contract::{Backlog, DropReason, MarkReason, Number, Observer, Qdisc, Statistic};
pub use droptail::{DropTail, DropTailParams, Limit};
pub use drr::{Drr, DrrParams};
pub use dualpi2::{DualPi2, DualPi2Params};
pub use fifo::Fifo;
pub use floq::{Floq, FloqParams};
pub use fq::{Fq, FqParams, Turns};
pub use fq_codel::{FqCodel, FqCodelParams};
pub use fq_pie::{FqPie, FqPieParams};
pub use framing::{Framing, LinkLayer};
pub use hred::HredParams;
pub use parameter::{ParameterError, Profile, Unit, nearest};
pub use pie::{Pie, PieParams};
pub use predict::{Predict, PredictParams};
pub use prio::{PfifoFast, PfifoFastParams, Prio, PrioParams};
pub use red::{Red, RedDerived, RedParams};
pub use red_ns2::{Ns2Red, Ns2RedParams};
pub use registry::{AnyQdisc, QdiscSpec};
pub use sfb::{Sfb, SfbParams};
pub use sfq::{Sfq, SfqParams};
pub use sfq_codel::{SfqCodel, SfqCodelParams};
pub use sojourn_net::{
    Bytes, Dscp, Duration, Ecn, FlowKey, Instant, Packet, Rate, Rng, TcpHeader, Transport,
    UnitError,
};
pub use spec::LinkFacts;
