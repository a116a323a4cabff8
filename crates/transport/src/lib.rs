//! TCP as in Linux 6.1, QUIC and their congestion controls, sans-IO.
//!
//! A [`Sender`] and a [`Receiver`] are the two ends of one TCP connection. They own no clock,
//! socket or queue: the environment passes segments and expired timers to them with the time, and
//! takes the segments they push to an outbox. [`quic`] has the ends of QUIC connections.
//!
//! # Model
//!
//! Sequence numbers count *segments*, not bytes: a segment keeps its boundaries for life, so an
//! index says all that an acknowledgement, a SACK block or a scoreboard needs. Payload lengths
//! travel with the segments. Everything an acknowledgement causes happens at its arrival.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | segments never change their boundaries | a retransmission may merge or split | none while only the last segment of a write is short |
//! | 64-bit nanoseconds, 1 ms ticks where Linux counts jiffies | µs and jiffies | below 1 µs |
//! | the send buffer never limits, nor cuts a unit | auto-tuned, refilled at once, in pieces of 22 to 45 segments | a unit split in two now and then |
//! | an end that sends and receives is a sender and a receiver | one connection | no acknowledgement rides on data: where data flows both ways at once, pure ones are more |

pub mod cc;
mod clock;
mod delivery_rate;
mod handshake;
mod limit;
mod profile;
pub mod quic;
mod ranges;
mod receiver;
mod reception;
mod ring;
mod rtt;
mod segment;
mod sender;

pub use cc::{CcKind, CcSpec, SlowStart};
pub use clock::Ticks;
pub use handshake::Handshake;
pub use limit::Limit;
pub use profile::SenderProfile;
pub use receiver::{Arrival, Receiver};
pub use reception::{AckPolicy, Device, PeerEcn, Reader, ReceiveBuffer, ReceiverParams};
pub use segment::{Flags, MSS, SMALLEST_MSS, SackBlock, Segment, full_payload};
pub use sender::{AfterIdle, BurstLimits, OnCe, Sender, SenderParams, State, Writer};
