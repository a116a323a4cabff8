//! Transport of an application's connections.

use sojourn_transport::{SenderParams, quic};

/// What an application's connections run over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC, whose handshake contains that of TLS.
    Quic,
}

impl Transport {
    /// Every transport.
    pub const ALL: [Self; 2] = [Self::Tcp, Self::Quic];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Quic => "quic",
        }
    }
}

/// Parameters of QUIC connections: of TCP's, those that both have; defaults for the others.
pub fn quic_params(tcp: &SenderParams) -> quic::Params {
    quic::Params {
        cc: tcp.cc,
        slow_start: tcp.slow_start,
        initial_window: tcp.initial_window,
        ecn: tcp.ecn,
        ..quic::Params::default()
    }
}
