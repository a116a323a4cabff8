//! Real headers for simulated packets: IPv4, TCP, UDP, QUIC and ICMP.
//!
//! The payload is all zeros, and checksums cover it. It is not written, except for the first bytes of QUIC.

mod tcp;

use std::net::SocketAddrV4;

use sojourn_net::{Dscp, Ecn};

pub use tcp::{AccurateEcn, Tcp};

/// A simulated packet for which headers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synth {
    /// Address and port of the sender.
    pub source: SocketAddrV4,
    /// Address and port of the receiver.
    pub destination: SocketAddrV4,
    /// The ECN field.
    pub ecn: Ecn,
    /// The class.
    pub dscp: Dscp,
    /// Hops left.
    pub ttl: u8,
    /// The identification of the IP header, the same at every point.
    pub identification: u16,
    /// What follows the IP header.
    pub protocol: Protocol,
    /// Bytes of payload after the headers of TCP, UDP or ICMP.
    pub payload: u16,
}

/// The transport part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A TCP segment.
    Tcp(Tcp),
    /// A UDP datagram.
    Udp,
    /// A UDP datagram with opaque content of QUIC: only its first byte, and with a long header the version, are not
    /// zero. No implementation uses this version, so Wireshark shows a UDP datagram and does not try to decrypt it.
    Quic {
        /// It begins with a long header: the connection is being set up.
        long: bool,
    },
    /// An echo request of ICMP; addresses have no ports.
    EchoRequest {
        /// The same in all requests of a flow.
        identifier: u16,
        /// The number of the request.
        sequence: u16,
    },
    /// An echo reply of ICMP.
    EchoReply {
        /// That of the request.
        identifier: u16,
        /// That of the request.
        sequence: u16,
    },
}

const IP_HEADER: usize = 20;
/// Version 4, and 5 words of header.
const VERSION_AND_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: [u8; 2] = [0x40, 0];
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
/// A short header: only the fixed bit (RFC 9000 §17.3).
const QUIC_SHORT: [u8; 1] = [0x40];
/// A long header of type Initial, and the version.
const QUIC_LONG: [u8; 5] = *b"\xC0sjrn";

impl Synth {
    /// Replaces the content of `out` with the headers; returns the length of the packet with its payload. `None`: the
    /// packet would be too long for IPv4.
    pub fn write(&self, out: &mut Vec<u8>) -> Option<u32> {
        out.clear();
        out.resize(IP_HEADER, 0);
        let checksum_at = self.write_transport(out)?;
        let headers = out.len() - self.written_payload().len();
        let total = u16::try_from(headers + usize::from(self.payload)).ok()?;

        // The pseudo-header for the checksum, in place of the IP header.
        let segment = total - 20;
        let (protocol, has_pseudo_header) = match self.protocol {
            Protocol::Tcp(_) => (TCP, true),
            Protocol::Udp | Protocol::Quic { .. } => (UDP, true),
            Protocol::EchoRequest { .. } | Protocol::EchoReply { .. } => (ICMP, false),
        };
        let (source, destination) = (self.source.ip().octets(), self.destination.ip().octets());
        let [high, low] = segment.to_be_bytes();
        let numbers = [0, protocol, high, low];
        let sum = if has_pseudo_header {
            checksum(&[&source, &destination, &numbers, &out[IP_HEADER..]])
        } else {
            checksum(&[&out[IP_HEADER..]])
        };
        // UDP: a checksum of 0 means no checksum.
        let sum = if sum == 0 && protocol == UDP {
            0xFFFF
        } else {
            sum
        };
        out[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());

        out[0] = VERSION_AND_LENGTH;
        out[1] = self.dscp.number() << 2 | self.ecn.bits();
        out[2..4].copy_from_slice(&total.to_be_bytes());
        out[4..6].copy_from_slice(&self.identification.to_be_bytes());
        out[6..8].copy_from_slice(&DONT_FRAGMENT);
        out[8] = self.ttl;
        out[9] = protocol;
        out[12..16].copy_from_slice(&source);
        out[16..20].copy_from_slice(&destination);
        let sum = checksum(&[&out[..IP_HEADER]]);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
        Some(total.into())
    }

    /// Appends the transport header with a checksum of 0; returns where the checksum is.
    fn write_transport(&self, out: &mut Vec<u8>) -> Option<usize> {
        let start = out.len();
        let ports = [self.source.port(), self.destination.port()];
        match &self.protocol {
            Protocol::Tcp(tcp) => {
                tcp.write(ports, out);
                Some(start + 16)
            }
            Protocol::Udp | Protocol::Quic { .. } => {
                let length = self.payload.checked_add(8)?;
                for field in [ports[0], ports[1], length, 0] {
                    out.extend_from_slice(&field.to_be_bytes());
                }
                out.extend_from_slice(self.written_payload());
                Some(start + 6)
            }
            Protocol::EchoRequest {
                identifier,
                sequence,
            }
            | Protocol::EchoReply {
                identifier,
                sequence,
            } => {
                let is_request = matches!(self.protocol, Protocol::EchoRequest { .. });
                let kind = if is_request { ECHO_REQUEST } else { ECHO_REPLY };
                out.extend_from_slice(&[kind, 0, 0, 0]);
                out.extend_from_slice(&identifier.to_be_bytes());
                out.extend_from_slice(&sequence.to_be_bytes());
                Some(start + 2)
            }
        }
    }

    /// The first bytes of the payload, if they are not zero.
    fn written_payload(&self) -> &'static [u8] {
        let bytes: &[u8] = match self.protocol {
            Protocol::Quic { long: false } => &QUIC_SHORT,
            Protocol::Quic { long: true } => &QUIC_LONG,
            _ => &[],
        };
        &bytes[..bytes.len().min(self.payload.into())]
    }
}

/// The checksum of these bytes; all parts but the last have an even length.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u64 = 0;
    for part in parts {
        let mut words = part.chunks_exact(2);
        for word in &mut words {
            sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            sum += u64::from(*last) << 8;
        }
    }
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    // At most 16 bits are left.
    !u16::try_from(sum).unwrap_or(u16::MAX)
}
