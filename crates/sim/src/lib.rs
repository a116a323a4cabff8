//! The event loop: links with queues, wires, hosts with TCP, QUIC, UDP, ping and applications, and probes.
//!
//! [`run`] turns a [`Config`](sojourn_scenario::plan::Config) into
//! [`Records`](sojourn_records::Records) and is a pure function of it: the same configuration gives
//! the same records, to the bit, on any machine.
//!
//! # Speed
//!
//! The gain is in having few events. A wire keeps its packets in a ring and only its head in the
//! agenda; a timer that moves is looked at when it fires, not cancelled; an event that is next
//! anyway never enters the agenda. A packet is 64 bytes and moves by value.

mod agenda;
mod capture;
mod host;
mod medium;
mod packet;
mod payload;
mod probe;
mod simulator;
mod start_losses;
mod unsupported;
mod world;

pub use agenda::{Agenda, Event};
pub use packet::Packet;
pub use simulator::Simulator;
pub use world::{run, run_captured};
