//! Applications as sans-IO state machines.
//!
//! An [`Application`] has no clock, socket or network: a driver passes it events with the time
//! ([`AppEvent`]) and executes the commands that it returns ([`Command`] in [`AppOutput`]). The
//! driver may be a simulator or real sockets. One application is one user: a client and the servers
//! it talks to. The server's part acts only on what has reached the server.
//!
//! Traffic without connections works the same way: a [`DatagramSource`] says when to send the next
//! datagram and takes what arrives.

mod bulk;
mod contract;
mod dash;
mod datagrams;
mod demand;
mod distributions;
mod media;
mod page;
mod phase;
mod ping;
mod report;
mod requests;
mod responsiveness;
mod sessions;
mod udp;
mod voip;
mod web;

pub use bulk::Bulk;
pub use contract::{
    AppEvent, AppOutput, Application, ApplicationConfig, Command, Comparable, Exchange, Length,
    Side, Transaction, Transport, quic_params,
};
pub use dash::DashConfig;
pub use datagrams::{DatagramConfig, DatagramKind, DatagramSource, MAX_UDP_PAYLOAD, Outgoing};
pub use demand::{Demand, Opportunity, Volume};
pub use distributions::{Amount, LONGEST, Wait};
pub use media::{EncoderConfig, KeyFrames, MediaConfig, MediaControl, MediaEcn, Pause};
pub use page::{Object, Page, PageError};
pub use phase::Phase;
pub use ping::{PingConfig, PingPace, TURNAROUND};
pub use report::{
    CallRecord, Confidence, MediaRecord, MediaState, PingSample, PlayerRecord,
    ResponsivenessRecord, RoundTrips,
};
pub use requests::RequestsConfig;
pub use responsiveness::ResponsivenessConfig;
pub use sessions::SessionsConfig;
pub use udp::{Spacing, UdpConfig};
pub use voip::{JitterBuffer, VoipConfig};
pub use web::{Http, WebConfig};
