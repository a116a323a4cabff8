//! Configuration of both ends of a QUIC connection.

use sojourn_net::{Duration, IpVersion};

use super::received::AckPolicy;
use crate::cc::{CcSpec, SlowStart};
use crate::segment::Flags;

/// UDP payload of every datagram until the handshake is confirmed (RFC 9000 §14.1).
pub const SMALLEST_DATAGRAM: u16 = 1_200;
/// UDP payload that fills an Ethernet frame over IPv4.
pub const LARGEST_DATAGRAM: u16 = largest_datagram(IpVersion::V4);

/// UDP payload that fills an IP packet of 1500 B: less IP (20 or 40) and UDP (8).
pub const fn largest_datagram(ip: IpVersion) -> u16 {
    1_500 - ip.header() - 8
}

/// Most bytes of a certificate flight.
pub const LARGEST_CERTIFICATE: u16 = 60_000;

/// The longest `max_ack_delay` that can be agreed on (RFC 9000 §18.2).
pub const LONGEST_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// `ClientHello` with one key share of X25519 and the usual extensions.
pub(super) const CLIENT_HELLO: u32 = 300;
/// `ServerHello` with a key share of X25519.
pub(super) const SERVER_HELLO: u32 = 90;
/// `Finished` with a hash of 32 bytes.
pub(super) const FINISHED: u32 = 36;
/// The server's flight when a session is resumed: `EncryptedExtensions` and `Finished`.
const RESUMED: u32 = 136;

/// Flow-control windows of both ends (RFC 9000 §4): how much may be sent that the application has not
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControl {
    /// `initial_max_data`: bytes of all streams together.
    pub data: u64,
    /// `initial_max_stream_data`: bytes of each stream.
    pub stream_data: u64,
}

impl Default for FlowControl {
    /// The largest windows of Chromium, 24 and 16 MiB.
    fn default() -> Self {
        Self {
            data: 24 << 20,
            stream_data: 16 << 20,
        }
    }
}

/// The configuration of a connection; both ends must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Congestion control.
    pub cc: CcSpec,
    /// Slow-start exit heuristic; `None`: the control's default over QUIC. A heuristic that the control does
    /// not offer has no effect.
    pub slow_start: Option<SlowStart>,
    /// Initial window in datagrams (RFC 9002 §7.2: 10).
    pub initial_window: u32,
    /// The client resumes a session and sends data before the handshake (0-RTT).
    pub zero_rtt: bool,
    /// Packets are ECN-capable; those of controllers that require ECN always are.
    pub ecn: bool,
    /// UDP payload of a full datagram once the handshake is confirmed.
    pub max_datagram: u16,
    /// Bytes that the server sends in Handshake packets: mostly its certificates.
    pub certificate: u16,
    /// The acknowledgement policy.
    pub ack: AckPolicy,
    /// Pace packets (RFC 9002 §7.7).
    pub pacing: bool,
    /// Flow-control windows.
    pub flow: FlowControl,
    /// `max_idle_timeout`: a connection without packets for this long ends.
    pub idle_timeout: Duration,
    /// Seed of the controller's random numbers.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            cc: CcSpec::default(),
            slow_start: None,
            initial_window: 10,
            zero_rtt: false,
            ecn: false,
            max_datagram: 1_452,
            certificate: 3_000,
            ack: AckPolicy::default(),
            pacing: true,
            flow: FlowControl::default(),
            idle_timeout: Duration::from_secs(30),
            seed: 0,
        }
    }
}

impl Params {
    /// The IP ECN field of datagrams without Initial and Handshake packets.
    pub(super) fn ect(&self) -> Flags {
        match self.cc.kind() {
            cc if cc.needs_accurate_ecn() => Flags::ECT1,
            cc if self.ecn || cc.needs_ecn() => Flags::ECT0,
            _ => Flags::NONE,
        }
    }

    /// The slow-start exit heuristic in use; `None`: one of the controller's own.
    pub fn slow_start(&self) -> Option<SlowStart> {
        let declaration = self.cc.kind().declaration();
        let known = declaration.slow_starts;
        let usual = declaration.quic_slow_start.or(known.first().copied());
        self.slow_start.filter(|way| known.contains(way)).or(usual)
    }

    /// Bytes of the server's flight in Handshake packets.
    pub(super) fn flight(&self) -> u32 {
        if self.zero_rtt {
            RESUMED
        } else {
            self.certificate.into()
        }
    }
}
