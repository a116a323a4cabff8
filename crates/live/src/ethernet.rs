//! Ethernet frames as packet sockets deliver them: VLAN tags and segmentation are undone by the kernel, and redone here.
//!
//! # Source
//!
//! The header in front of each frame: `struct virtio_net_hdr`, Virtual I/O Device (VIRTIO) 1.2 §5.1.6. Tags: IEEE 802.1Q
//! and 802.1ad. Segments of TCP: RFC 9293 §3.1; CWR of the first segment only: RFC 3168 §6.1.2, unless it is a bit of
//! the counter ACE: RFC 9768 §3.2.2. Checksums: RFC 1071.
//!
//! The bytes come from other machines and are not trusted: no sequence of bytes panics or reads beyond its end.

use sojourn_net::{FlowKey, IpVersion, Transport};
use sojourn_path::ip::Parsed;

/// Length of an Ethernet header without tags.
pub(crate) const HEADER: usize = 14;
/// Length of a VLAN tag.
pub(crate) const TAG: usize = 4;
/// Most tags that are read; what is behind more of them is opaque.
const MOST_TAGS: usize = 3;
/// The hardware addresses in front of the tags.
const ADDRESSES: usize = 12;

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86DD;
const VLANS: [u16; 3] = [0x8100, 0x88A8, 0x9100];

/// A VLAN tag that a device has taken off a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vlan {
    pub(crate) protocol: u16,
    pub(crate) control: u16,
}

/// What the kernel leaves to be done to a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    /// The checksum from this byte on is to be written at an offset from it.
    pub(crate) checksum: Option<(u16, u16)>,
    /// The frame is to be split into segments.
    pub(crate) split: Option<Split>,
}

/// How a frame is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// Payload of each segment.
    size: u16,
    is_tcp: bool,
    /// Whether CWR is for the first segment only, and not a bit that all of them have.
    has_ecn: bool,
}

impl Offload {
    /// Length of the header.
    pub(crate) const LENGTH: usize = 10;

    /// Reads the header in front of a frame; `None`: a kind of segments that is unknown.
    pub(crate) fn of(header: [u8; Self::LENGTH]) -> Option<Self> {
        const NEEDS_CHECKSUM: u8 = 1;
        const WITH_ECN: u8 = 0x80;
        let [flags, kind, _, _, rest @ ..] = header;
        let [size, start, offset] =
            [0, 2, 4].map(|at| u16::from_ne_bytes([rest[at], rest[at + 1]]));
        let split = match kind & !WITH_ECN {
            0 => None,
            1 | 4 => Some(Split {
                size,
                is_tcp: true,
                has_ecn: kind & WITH_ECN != 0,
            }),
            5 => Some(Split {
                size,
                is_tcp: false,
                has_ecn: false,
            }),
            _ => return None,
        };
        if split.is_some_and(|split| split.size == 0) {
            return None;
        }
        let checksum = (flags & NEEDS_CHECKSUM != 0).then_some((start, offset));
        Some(Self { checksum, split })
    }
}

/// Writes the checksum that a frame lacks; false: it would be outside the frame.
pub(crate) fn complete(frame: &mut [u8], (start, offset): (u16, u16)) -> bool {
    let (start, offset) = (usize::from(start), usize::from(offset));
    let Some(covered) = frame
        .get_mut(start..)
        .filter(|covered| offset + 2 <= covered.len())
    else {
        return false;
    };
    // The field has the sum of the pseudo header.
    let sum = match checksum(0, covered) {
        // UDP sends no checksum as 0; that of TCP is never a field of UDP.
        0 if offset == UDP_CHECKSUM => u16::MAX,
        sum => sum,
    };
    covered[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Where UDP and TCP have their checksum.
const UDP_CHECKSUM: usize = 6;
const TCP_CHECKSUM: usize = 16;

/// Puts a tag in front of the protocol of a frame of `length` bytes, which a buffer must have room for; returns the new
/// length.
pub(crate) fn insert(buffer: &mut [u8], length: usize, vlan: Vlan) -> usize {
    if length < ADDRESSES || buffer.len() < length + TAG {
        return length;
    }
    buffer.copy_within(ADDRESSES..length, ADDRESSES + TAG);
    let [a, b] = vlan.protocol.to_be_bytes();
    let [c, d] = vlan.control.to_be_bytes();
    buffer[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&[a, b, c, d]);
    length + TAG
}

/// What queues see of a frame: its headers, and where the packet begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) parsed: Parsed,
    /// Length of the Ethernet header with tags.
    pub(crate) header: u8,
    /// Whether the packet is one of IP.
    pub(crate) is_ip: bool,
}

/// Reads a frame; `None`: it has no complete Ethernet header or is longer than 65,535 bytes.
///
/// What is not a packet of IP, such as ARP, belongs to a flow of its own per pair of hardware addresses and protocol.
pub(crate) fn read(frame: &[u8]) -> Option<Read> {
    let mut at = ADDRESSES;
    let mut protocol = u16_at(frame, at)?;
    for _ in 0..MOST_TAGS {
        if !VLANS.contains(&protocol) {
            break;
        }
        at += TAG;
        protocol = u16_at(frame, at)?;
    }
    let packet = frame.get(at + 2..)?;
    // With what pads a short frame.
    let len = u16::try_from(packet.len()).ok()?;
    let header = u8::try_from(at + 2).ok()?;
    let ip = match (protocol, packet.first().map(|first| first >> 4)) {
        (IPV4, Some(4)) | (IPV6, Some(6)) => Parsed::of(packet),
        _ => None,
    };
    let parsed = ip.map(|parsed| Parsed { len, ..parsed });
    let opaque = || Parsed {
        ip: IpVersion::V4,
        len,
        tos: 0,
        flow: FlowKey {
            source: address(frame, 6),
            destination: address(frame, 0),
            ports: protocol.into(),
            protocol: 0,
        },
        transport: Transport::Other,
        payload: len,
        is_multicast: frame[0] & 1 != 0,
    };
    Some(Read {
        is_ip: parsed.is_some(),
        parsed: parsed.unwrap_or_else(opaque),
        header,
    })
}

/// A hardware address as a number.
fn address(frame: &[u8], at: usize) -> u64 {
    let bytes = frame[at..at + 6].iter();
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// A frame that is to be split, read once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments<'a> {
    frame: &'a [u8],
    split: Split,
    /// Where the headers of IP and of the transport begin, and where its payload does.
    ip: usize,
    transport: usize,
    payload: usize,
    is_ipv6: bool,
}

impl<'a> Segments<'a> {
    /// Of a frame without tags; `None`: it is not one of TCP or UDP over IP with a checksum to be completed.
    pub(crate) fn of(frame: &'a [u8], offload: &Offload) -> Option<Self> {
        let split = offload.split?;
        let (start, offset) = offload.checksum?;
        let transport = usize::from(start);
        let mut ip = HEADER;
        let mut protocol = u16_at(frame, ADDRESSES)?;
        // A second tag, whose first one is kept apart.
        while VLANS.contains(&protocol) && ip < HEADER + MOST_TAGS * TAG {
            protocol = u16_at(frame, ip + 2)?;
            ip += TAG;
        }
        let is_ipv6 = match protocol {
            IPV4 => false,
            IPV6 => true,
            _ => return None,
        };
        // Nothing is between both headers: neither an extension of IPv6 nor a tunnel.
        let behind_ip = if is_ipv6 {
            ip + 40
        } else {
            ip + usize::from(frame.get(ip)? & 0xF) * 4
        };
        let (length, at_checksum) = if split.is_tcp {
            let words = *frame.get(transport + 12)? >> 4;
            (usize::from(words) * 4, TCP_CHECKSUM)
        } else {
            (8, UDP_CHECKSUM)
        };
        let payload = transport + length;
        let shortest = if split.is_tcp { 20 } else { 8 };
        let fits = transport == behind_ip && transport >= ip + 20;
        let fits = fits && length >= shortest && payload < frame.len();
        (fits && usize::from(offset) == at_checksum).then_some(Self {
            frame,
            split,
            ip,
            transport,
            payload,
            is_ipv6,
        })
    }

    /// How many segments there are.
    pub(crate) fn count(&self) -> usize {
        (self.frame.len() - self.payload).div_ceil(self.split.size.into())
    }

    /// Writes segment number `n` to a buffer; returns its length, or `None` if it does not fit or does not exist.
    pub(crate) fn write(&self, n: usize, buffer: &mut [u8]) -> Option<usize> {
        let size = usize::from(self.split.size);
        let from = self.payload + n * size;
        let to = (from + size).min(self.frame.len());
        let payload = self.frame.get(from..to)?;
        let out = buffer.get_mut(..self.payload + payload.len())?;
        out[..self.payload].copy_from_slice(&self.frame[..self.payload]);
        out[self.payload..].copy_from_slice(payload);
        let is_last = to == self.frame.len();
        self.write_ip(out, n);
        self.write_transport(out, n, is_last);
        Some(out.len())
    }

    fn write_ip(&self, out: &mut [u8], n: usize) {
        let ip = &mut out[self.ip..];
        let whole = u16::try_from(ip.len()).unwrap_or(u16::MAX);
        if self.is_ipv6 {
            ip[4..6].copy_from_slice(&whole.saturating_sub(40).to_be_bytes());
            return;
        }
        ip[2..4].copy_from_slice(&whole.to_be_bytes());
        let number = u16::from_be_bytes([ip[4], ip[5]]);
        let number = number.wrapping_add(u16::try_from(n).unwrap_or(0));
        ip[4..6].copy_from_slice(&number.to_be_bytes());
        ip[10..12].fill(0);
        let header = &ip[..self.transport - self.ip];
        let sum = checksum(0, header);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    fn write_transport(&self, out: &mut [u8], n: usize, is_last: bool) {
        const FIN_AND_PUSH: u8 = 0x09;
        const CWR: u8 = 0x80;
        let pseudo = self.pseudo_header(&out[self.ip..], out.len() - self.transport);
        let segment = &mut out[self.transport..];
        let at = if self.split.is_tcp {
            let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
            let passed = u32::try_from(n * usize::from(self.split.size)).unwrap_or(0);
            segment[4..8].copy_from_slice(&sequence.wrapping_add(passed).to_be_bytes());
            if !is_last {
                segment[13] &= !FIN_AND_PUSH;
            }
            if n > 0 && self.split.has_ecn {
                segment[13] &= !CWR;
            }
            TCP_CHECKSUM
        } else {
            let length = u16::try_from(segment.len()).unwrap_or(u16::MAX);
            segment[4..6].copy_from_slice(&length.to_be_bytes());
            UDP_CHECKSUM
        };
        segment[at..at + 2].fill(0);
        let sum = match checksum(pseudo, segment) {
            0 if !self.split.is_tcp => u16::MAX,
            sum => sum,
        };
        segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// The sum of the pseudo header of a segment of `length` bytes.
    fn pseudo_header(&self, ip: &[u8], length: usize) -> u64 {
        const TCP: u64 = 6;
        const UDP: u64 = 17;
        let addresses = if self.is_ipv6 {
            &ip[8..40]
        } else {
            &ip[12..20]
        };
        let protocol = if self.split.is_tcp { TCP } else { UDP };
        sum_of(addresses) + protocol + length as u64
    }
}

/// The checksum of bytes and of what was added up before.
fn checksum(before: u64, bytes: &[u8]) -> u16 {
    let mut sum = before + sum_of(bytes);
    // Ends: each turn shortens the sum.
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// The sum of the words of bytes, the last of which is padded with zeros.
fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let sum: u64 = words
        .iter()
        .map(|&word| u64::from(u16::from_be_bytes(word)))
        .sum();
    sum + rest.first().map_or(0, |&last| u64::from(last) << 8)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes(field.try_into().ok()?))
}

#[cfg(test)]
mod tests;
