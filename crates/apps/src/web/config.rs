//! Configuration of a web user.

use sojourn_net::Bytes;
use sojourn_transport::{SenderParams, quic};

use crate::page::Page;
use crate::wait::Wait;

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1 over up to six connections to a server.
    One,
    /// HTTP/2 over one.
    Two,
    /// HTTP/3 over one of QUIC.
    Three,
}

impl Http {
    /// Every version.
    pub const ALL: [Self; 3] = [Self::One, Self::Two, Self::Three];

    /// Its number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "1.1",
            Self::Two => "2",
            Self::Three => "3",
        }
    }

    /// Initial capacity of a connection's queues of requests and of responses. HTTP/1.1 has one request under way, and
    /// a `VecDeque` that grows from nothing allocates four places.
    pub(super) const fn initial_capacity(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two | Self::Three => 0,
        }
    }
}

/// Configuration of web users.
#[derive(Clone, Debug, PartialEq)]
pub struct WebConfig {
    /// Parameters of both ends of each connection; over QUIC, those that QUIC has too.
    pub tcp: SenderParams,
    /// Version of HTTP.
    pub http: Http,
    /// Connections begin with the handshake of TLS 1.3.
    pub tls: bool,
    /// HTTP/3: users have been there before. Requests follow the client's hello at once (0-RTT), and the
    /// server sends no certificates.
    pub zero_rtt: bool,
    /// HTTP/3: how much may be sent before it is read.
    pub flow: quic::FlowControl,
    /// Bytes of a request.
    pub request: Bytes,
    /// The page.
    pub page: Page,
    /// Time from one page to the next.
    pub think: Wait,
    /// Number of pages; `None`: until the run ends.
    pub visits: Option<u32>,
}
