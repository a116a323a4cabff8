//! The headers of real packets, as queues use them.
//!
//! # Source
//!
//! IPv4: RFC 791; IPv6 and its extension headers: RFC 8200 §4; TCP options: RFC 9293 §3.1, RFC 7323, RFC 2018; QUIC
//! long headers: RFC 8999 §5.1; the incremental update of a checksum: RFC 1624.
//!
//! The bytes come from programs and are not trusted: no sequence of bytes panics or reads beyond its end.

use sojourn_net::{FlowKey, IpVersion, TcpHeader, Transport};

/// Length of the Ethernet header, which queues on an Ethernet device include in the size of a packet.
pub const ETHERNET_HEADER: u64 = 14;

const TCP: u8 = 6;
/// The IP protocol number of UDP.
pub(crate) const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The fields of an IP packet that queues use.
///
/// ```
/// use sojourn_path::ip::Parsed;
///
/// let mut packet = vec![0x45, 2, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
/// packet.extend([0, 7, 1, 187, 0, 8, 0, 0]);
/// let parsed = Parsed::of(&packet).unwrap();
/// assert_eq!((parsed.len, parsed.tos & 3), (28, 2));
/// assert_eq!(Parsed::of(&packet[..27]), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parsed {
    /// The version of IP.
    pub ip: IpVersion,
    /// Length of the IP packet; at most the number of bytes read.
    pub len: u16,
    /// The second byte of an IPv4 header, or the traffic class of IPv6: DSCP and ECN.
    pub tos: u8,
    /// The flow it belongs to.
    pub flow: FlowKey,
    /// What is behind the IP header.
    pub transport: Transport,
    /// Length of the TCP or UDP payload; for other protocols, of everything after the IP header.
    pub payload: u16,
    /// Whether its destination is a multicast or broadcast address.
    pub is_multicast: bool,
}

impl Parsed {
    /// Parses an IP packet; `None` if the bytes are not a complete IP packet.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => ipv4(bytes),
            6 => ipv6(bytes),
            _ => None,
        }
    }
}

/// The integer at offset `at`, if the bytes contain it.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes(field.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(field.try_into().ok()?))
}

fn ipv4(bytes: &[u8]) -> Option<Parsed> {
    const FRAGMENT_OFFSET: u16 = 0x1FFF;
    let header = usize::from(bytes.first()? & 0xF) * 4;
    let len = u16_at(bytes, 2)?;
    let packet = bytes.get(..usize::from(len))?;
    if header < 20 || packet.len() < header {
        return None;
    }
    let (source, destination) = (u32_at(packet, 12)?, u32_at(packet, 16)?);
    let first = u16_at(packet, 6)? & FRAGMENT_OFFSET == 0;
    let protocol = packet[9];
    let behind = Behind::read(protocol, packet, header, first);
    Some(Parsed {
        ip: IpVersion::V4,
        len,
        tos: packet[1],
        flow: FlowKey {
            source: source.into(),
            destination: destination.into(),
            ports: behind.ports,
            protocol,
        },
        transport: behind.transport,
        payload: behind.payload,
        is_multicast: destination >> 28 == 0xE || destination == u32::MAX,
    })
}

fn ipv6(bytes: &[u8]) -> Option<Parsed> {
    const HEADER: usize = 40;
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION: u8 = 60;
    let len = u16_at(bytes, 4)?.checked_add(40)?;
    let packet = bytes.get(..usize::from(len))?;
    let tos = u16_at(packet, 0)?.to_be_bytes();
    let tos = tos[0] << 4 | tos[1] >> 4;
    let (mut protocol, mut at, mut first) = (*packet.get(6)?, HEADER, true);
    // Ends: each turn moves `at` by at least 8 bytes.
    while let HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION = protocol {
        let (next, units) = (*packet.get(at)?, *packet.get(at + 1)?);
        if protocol == FRAGMENT {
            first &= u16_at(packet, at + 2)? >> 3 == 0;
            at += 8;
        } else {
            at += 8 * (usize::from(units) + 1);
        }
        protocol = next;
    }
    if at > packet.len() {
        return None;
    }
    let behind = Behind::read(protocol, packet, at, first);
    Some(Parsed {
        ip: IpVersion::V6,
        len,
        tos,
        flow: FlowKey {
            source: FlowKey::folded(*packet.get(8..24)?.first_chunk()?),
            destination: FlowKey::folded(*packet.get(24..40)?.first_chunk()?),
            ports: behind.ports,
            protocol,
        },
        transport: behind.transport,
        payload: behind.payload,
        is_multicast: packet[24] == 0xFF,
    })
}

/// What is behind the IP header.
struct Behind {
    ports: u32,
    transport: Transport,
    payload: u16,
}

impl Behind {
    /// Parses the header of `protocol` at offset `at`; fragments other than the first have no such header.
    fn read(protocol: u8, packet: &[u8], at: usize, first: bool) -> Self {
        let rest = packet.len() - at;
        let all = Self {
            ports: 0,
            transport: Transport::Other,
            payload: u16::try_from(rest).unwrap_or(u16::MAX),
        };
        if !first {
            return all;
        }
        let known = match protocol {
            TCP => Self::tcp(packet, at),
            UDP => Self::udp(packet, at),
            // The identifier of an echo request distinguishes the flows of `ping`.
            ICMP | ICMPV6 => u16_at(packet, at + 4).map(|id| Self {
                ports: id.into(),
                ..all
            }),
            _ => None,
        };
        known.unwrap_or(all)
    }

    fn udp(packet: &[u8], at: usize) -> Option<Self> {
        const LONG_HEADER: u8 = 0x80;
        const FIXED_BIT: u8 = 0x40;
        let payload = packet.len().checked_sub(at + 8)?;
        let first = packet.get(at + 8).copied().unwrap_or(0);
        let long = first & (LONG_HEADER | FIXED_BIT) == LONG_HEADER | FIXED_BIT;
        Some(Self {
            ports: u32_at(packet, at)?,
            transport: if long {
                Transport::QuicLong
            } else {
                Transport::Udp
            },
            payload: u16::try_from(payload).unwrap_or(u16::MAX),
        })
    }

    fn tcp(packet: &[u8], at: usize) -> Option<Self> {
        /// The bits behind the length of the header, four of them reserved or AE.
        const FLAGS: u16 = 0xFFF;
        let header = usize::from(packet.get(at + 12)? >> 4) * 4;
        let payload = packet.len().checked_sub(at + header)?;
        if header < 20 {
            return None;
        }
        let payload = u16::try_from(payload).unwrap_or(u16::MAX);
        let options = Options::of(packet.get(at + 20..at + header)?);
        Some(Self {
            ports: u32_at(packet, at)?,
            transport: Transport::Tcp(TcpHeader {
                seq: u32_at(packet, at + 4)?,
                ack: u32_at(packet, at + 8)?,
                payload: payload.into(),
                window: u16_at(packet, at + 14)?.into(),
                flags: u16_at(packet, at + 12)? & FLAGS,
                timestamps: options.timestamps,
                sacks: options.sacks,
                other_options: options.others,
            }),
            payload,
        })
    }
}

/// The options of a TCP header, as a [`TcpHeader`] has them.
#[derive(Default)]
struct Options {
    timestamps: Option<(u32, u32)>,
    sacks: [(u32, u32); 4],
    others: bool,
}

impl Options {
    /// Of the first of each kind; what follows a malformed option is not read, as in Linux.
    fn of(mut rest: &[u8]) -> Self {
        const END: u8 = 0;
        const NOP: u8 = 1;
        const SACK: u8 = 5;
        const TIMESTAMPS: u8 = 8;
        const MD5: u8 = 19;
        let mut found = Self::default();
        let mut has_sacks = false;
        // Ends: each turn shortens `rest`.
        while let Some((&kind, behind)) = rest.split_first() {
            if kind == END {
                break;
            }
            if kind == NOP {
                rest = behind;
                continue;
            }
            let len = usize::from(behind.first().copied().unwrap_or(0));
            let Some(option) = rest.get(..len).filter(|_| len >= 2) else {
                break;
            };
            let pair = |at| Some((u32_at(option, at)?, u32_at(option, at + 4)?));
            match kind {
                TIMESTAMPS if len == 10 => found.timestamps = found.timestamps.or_else(|| pair(2)),
                SACK if len % 8 == 2 => {
                    for (n, sack) in found.sacks.iter_mut().enumerate().filter(|_| !has_sacks) {
                        *sack = pair(2 + 8 * n).unwrap_or((0, 0));
                    }
                    has_sacks = true;
                }
                MD5 => {}
                _ => found.others = true,
            }
            rest = &rest[len..];
        }
        found
    }
}

/// Writes DSCP and ECN into an IP packet and updates the checksum of IPv4. No checksum of TCP or UDP covers them.
pub fn write_tos(packet: &mut [u8], tos: u8) {
    match packet {
        [first, old, ..] if *first >> 4 == 4 => {
            let before = u16::from_be_bytes([*first, *old]);
            let after = u16::from_be_bytes([*first, tos]);
            *old = tos;
            if let Some(field) = packet.get_mut(10..12) {
                let sum = updated_checksum(u16::from_be_bytes([field[0], field[1]]), before, after);
                field.copy_from_slice(&sum.to_be_bytes());
            }
        }
        [first, second, ..] if *first >> 4 == 6 => {
            *first = 0x60 | tos >> 4;
            *second = tos << 4 | *second & 0xF;
        }
        _ => {}
    }
}

/// Updates a checksum after a change of a 16-bit word that it covers (RFC 1624 eq. 3).
///
/// ```
/// use sojourn_path::ip::updated_checksum;
///
/// // Of the words 0x4500 and 0x0014, whose sum is 0x4514.
/// assert_eq!(updated_checksum(!0x4514, 0x0014, 0x0028), !0x4528);
/// ```
pub fn updated_checksum(sum: u16, before: u16, after: u16) -> u16 {
    let total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    let folded = (total & 0xFFFF) + (total >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    !u16::try_from(folded).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
