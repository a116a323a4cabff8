//! Real headers for simulated packets: IPv4, IPv6, TCP, UDP, QUIC, ICMP and `ICMPv6`.
//!
//! The payload is all zeros, and checksums cover it. It is not written, except for the first bytes of QUIC.

mod tcp;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sojourn_net::{Dscp, Ecn, IpVersion};

pub use tcp::{AccurateEcn, Tcp};

/// A simulated packet for which headers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synth {
    /// Address and port of the sender; its version of IP is that of the packet.
    pub source: SocketAddr,
    /// Address and port of the receiver, of the same version of IP.
    pub destination: SocketAddr,
    /// The ECN field.
    pub ecn: Ecn,
    /// The class.
    pub dscp: Dscp,
    /// Hops left.
    pub ttl: u8,
    /// The identification of the IPv4 header, the same at every point; IPv6 has none.
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
    /// An echo request of ICMP or `ICMPv6`; addresses have no ports.
    EchoRequest {
        /// The same in all requests of a flow.
        identifier: u16,
        /// The number of the request.
        sequence: u16,
    },
    /// An echo reply of ICMP or `ICMPv6`.
    EchoReply {
        /// That of the request.
        identifier: u16,
        /// That of the request.
        sequence: u16,
    },
}

/// Version 4, and 5 words of header.
const VERSION_AND_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: [u8; 2] = [0x40, 0];
/// Version 6; the low half of the byte begins the traffic class.
const VERSION_6: u8 = 0x60;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;
/// Types of echo messages (RFC 792, RFC 4443 §4): of requests and of replies.
const ECHO: [u8; 2] = [8, 0];
const ECHO_V6: [u8; 2] = [128, 129];
/// A short header: only the fixed bit (RFC 9000 §17.3).
const QUIC_SHORT: [u8; 1] = [0x40];
/// A long header of type Initial, and the version.
const QUIC_LONG: [u8; 5] = *b"\xC0sjrn";

/// The addresses of a packet.
#[derive(Clone, Copy)]
enum Addresses {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

impl Addresses {
    const fn ip(self) -> IpVersion {
        match self {
            Self::V4(..) => IpVersion::V4,
            Self::V6(..) => IpVersion::V6,
        }
    }

    /// The checksum of `segment`, of `protocol`, with the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1).
    fn checksum(self, protocol: u8, segment: &[u8], length: u16) -> u16 {
        let [high, low] = length.to_be_bytes();
        let numbers = [0, protocol, high, low];
        match self {
            Self::V4(source, destination) => {
                checksum(&[&source.octets(), &destination.octets(), &numbers, segment])
            }
            Self::V6(source, destination) => {
                checksum(&[&source.octets(), &destination.octets(), &numbers, segment])
            }
        }
    }
}

impl Synth {
    /// Replaces the content of `out` with the headers; returns the length of the packet with its payload. `None`: the
    /// packet would be too long for IP, or the addresses are of different versions.
    pub fn write(&self, out: &mut Vec<u8>) -> Option<u32> {
        let addresses = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Addresses::V4(source, destination),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Addresses::V6(source, destination),
            _ => return None,
        };
        let ip = addresses.ip();
        let header = usize::from(ip.header());
        out.clear();
        out.resize(header, 0);
        let checksum_at = self.write_transport(ip, out)?;
        let headers = out.len() - header - self.written_payload().len();
        let segment = u16::try_from(headers + usize::from(self.payload)).ok()?;

        let (protocol, has_pseudo_header) = match (self.protocol, ip) {
            (Protocol::Tcp(_), _) => (TCP, true),
            (Protocol::Udp | Protocol::Quic { .. }, _) => (UDP, true),
            (_, IpVersion::V4) => (ICMP, false),
            (_, IpVersion::V6) => (ICMP_V6, true),
        };
        let sum = if has_pseudo_header {
            addresses.checksum(protocol, &out[header..], segment)
        } else {
            checksum(&[&out[header..]])
        };
        // UDP: a checksum of 0 means no checksum.
        let sum = if sum == 0 && protocol == UDP {
            0xFFFF
        } else {
            sum
        };
        out[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
        match addresses {
            Addresses::V4(source, destination) => {
                let total = segment.checked_add(ip.header())?;
                self.write_ipv4(total, protocol, (source, destination), out);
            }
            Addresses::V6(source, destination) => {
                self.write_ipv6(segment, protocol, (source, destination), out);
            }
        }
        Some(u32::from(segment) + u32::from(ip.header()))
    }

    /// DSCP and ECN, in one byte.
    const fn class(&self) -> u8 {
        self.dscp.number() << 2 | self.ecn.bits()
    }

    /// Fills in the header (RFC 791 §3.1) of a packet of `total` bytes.
    fn write_ipv4(
        &self,
        total: u16,
        protocol: u8,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        out: &mut [u8],
    ) {
        out[0] = VERSION_AND_LENGTH;
        out[1] = self.class();
        out[2..4].copy_from_slice(&total.to_be_bytes());
        out[4..6].copy_from_slice(&self.identification.to_be_bytes());
        out[6..8].copy_from_slice(&DONT_FRAGMENT);
        out[8] = self.ttl;
        out[9] = protocol;
        out[12..16].copy_from_slice(&source.octets());
        out[16..20].copy_from_slice(&destination.octets());
        let sum = checksum(&[&out[..20]]);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    /// Fills in the header (RFC 8200 §3) before `segment` bytes, with a flow label of 0.
    fn write_ipv6(
        &self,
        segment: u16,
        protocol: u8,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        out: &mut [u8],
    ) {
        out[0] = VERSION_6 | self.class() >> 4;
        out[1] = self.class() << 4;
        out[4..6].copy_from_slice(&segment.to_be_bytes());
        out[6] = protocol;
        out[7] = self.ttl;
        out[8..24].copy_from_slice(&source.octets());
        out[24..40].copy_from_slice(&destination.octets());
    }

    /// Appends the transport header with a checksum of 0; returns where the checksum is.
    fn write_transport(&self, ip: IpVersion, out: &mut Vec<u8>) -> Option<usize> {
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
                let [request, reply] = match ip {
                    IpVersion::V4 => ECHO,
                    IpVersion::V6 => ECHO_V6,
                };
                let is_request = matches!(self.protocol, Protocol::EchoRequest { .. });
                let kind = if is_request { request } else { reply };
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
