//! Applications as sans-IO state machines.
//!
//! An [`Application`] has no clock, socket or network: a driver passes it events with the time
//! ([`AppEvent`]) and executes the commands that it returns ([`Command`] in [`AppOutput`]). The
//! driver may be a simulator or real sockets. One application is one user: a client and the servers
//! it talks to. The server's part acts only on what has reached the server.
//!
//! Traffic without connections works the same way: a [`DatagramSource`] says when to send the next
//! datagram and takes what arrives.

mod amount;
mod application;
mod bulk;
mod contract;
mod dash;
mod datagrams;
mod page;
mod ping;
mod playout;
mod report;
mod requests;
mod responsiveness;
mod sessions;
mod timers;
mod tls;
mod transport;
mod udp;
mod voip;
mod wait;
mod web;

pub use amount::Amount;
pub use application::{Application, ApplicationConfig, Comparable};
pub use bulk::Bulk;
pub use contract::{AppEvent, AppOutput, Command, Length, Side, Transaction};
pub use dash::DashConfig;
pub use datagrams::{DatagramConfig, DatagramKind, DatagramSource, MAX_UDP_PAYLOAD};
pub use page::{Object, Page, PageError};
pub use ping::{PingConfig, PingPace, TURNAROUND};
pub use playout::JitterBuffer;
pub use report::{
    CallRecord, Confidence, PingSample, PlayerRecord, ResponsivenessRecord, RoundTrips,
};
pub use requests::RequestsConfig;
pub use responsiveness::ResponsivenessConfig;
pub use sessions::SessionsConfig;
pub use transport::{Transport, quic_params};
pub use udp::{Spacing, UdpConfig};
pub use voip::VoipConfig;
pub use wait::{LONGEST, Wait};
pub use web::{Http, WebConfig};
