//! Flows: a traffic source, its peer and their records.

mod ahead;
mod application;
mod bulk;
mod connection;
mod datagrams;
mod flow;
mod length;
mod outbox;
mod quic;
mod receiver_clock;
mod tcp;
mod ticks;
mod timer;
mod user;

pub(crate) use ahead::Recorded;
pub(crate) use connection::Connection;
pub(crate) use flow::{Flow, Source};
pub(crate) use outbox::{Outbox, Outgoing};
pub(crate) use quic::{End, QuicConnection};
pub(crate) use ticks::Hosts;
pub(crate) use timer::TimerEvent;
