//! Real packets: the parsed header fields that queues use, the handle that they pass on, and the buffers with the bytes,
//! which are allocated in groups, reused and reference-counted.
//!
//! # Source
//!
//! IPv4: RFC 791; IPv6 and its extension headers: RFC 8200 §4; TCP options: RFC 9293 §3.1, RFC 7323, RFC 2018; QUIC
//! long headers: RFC 8999 §5.1; the incremental update of a checksum: RFC 1624.
//!
//! The bytes come from programs and are not trusted: no sequence of bytes panics or reads beyond its end.

use sojourn_net::{Bytes, Dscp, Ecn, FlowKey, Instant, IpVersion, Packet, TcpHeader, Transport};
use sojourn_path::links::Carried;

/// Length of the Ethernet header, which queues on an Ethernet device include in the size of a packet.
pub(crate) const ETHERNET_HEADER: u64 = 14;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The fields of an IP packet that queues use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parsed {
    /// The version of IP.
    pub(crate) ip: IpVersion,
    /// Length of the IP packet; at most the number of bytes read.
    pub(crate) len: u16,
    /// The second byte of an IPv4 header, or the traffic class of IPv6: DSCP and ECN.
    pub(crate) tos: u8,
    /// The flow it belongs to.
    pub(crate) flow: FlowKey,
    /// What is behind the IP header.
    pub(crate) transport: Transport,
    /// Length of the TCP or UDP payload; for other protocols, of everything after the IP header.
    pub(crate) payload: u16,
    /// Whether its destination is a multicast or broadcast address.
    pub(crate) is_multicast: bool,
}

impl Parsed {
    /// Parses an IP packet; `None` if the bytes are not a complete IP packet.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
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
pub(crate) fn write_tos(packet: &mut [u8], tos: u8) {
    match packet {
        [first, old, ..] if *first >> 4 == 4 => {
            let before = u16::from_be_bytes([*first, *old]);
            let after = u16::from_be_bytes([*first, tos]);
            *old = tos;
            if let Some(field) = packet.get_mut(10..12) {
                let sum = updated(u16::from_be_bytes([field[0], field[1]]), before, after);
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
fn updated(sum: u16, before: u16, after: u16) -> u16 {
    let total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    let folded = (total & 0xFFFF) + (total >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    !u16::try_from(folded).unwrap_or(u16::MAX)
}

/// A handle to a packet in the pool.
///
/// Queues change only the copy of DSCP and ECN in the handle; the pool writes it to the bytes when the packet leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    stamp: Instant,
    /// When it entered the datapath.
    pub(crate) entered: Instant,
    /// Its parsed headers.
    pub(crate) parsed: Parsed,
    /// Its buffer.
    pub(crate) slot: u32,
    /// Packets are numbered in the order in which they are read.
    pub(crate) id: u64,
    /// Its flow in the plan.
    pub(crate) flow: u32,
    /// The inner queue of the discipline that it was offered to last, if the run is captured.
    pub(crate) queue: Option<u32>,
    /// The next step of its path.
    pub(crate) step: u16,
    /// Whether it travels in the direction of the data of its flow.
    pub(crate) forward: bool,
}

impl Frame {
    /// A packet that was read at `now`, at the first `step` of its path.
    pub(crate) const fn new(parsed: Parsed, slot: u32, id: u64, now: Instant) -> Self {
        Self {
            stamp: now,
            entered: now,
            parsed,
            slot,
            id,
            flow: 0,
            queue: None,
            step: 0,
            forward: true,
        }
    }
}

impl Packet for Frame {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes(u64::from(self.parsed.len) + ETHERNET_HEADER)
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.parsed.tos)
    }

    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.parsed.tos = self.parsed.tos & !0b11 | ecn.bits();
    }

    #[inline]
    fn dscp(&self) -> Dscp {
        Dscp::new(self.parsed.tos >> 2).unwrap_or_default()
    }

    #[inline]
    fn set_dscp(&mut self, dscp: Dscp) {
        self.parsed.tos = self.parsed.tos & 0b11 | dscp.number() << 2;
    }

    #[inline]
    fn ip(&self) -> IpVersion {
        self.parsed.ip
    }

    #[inline]
    fn transport(&self) -> Transport {
        self.parsed.transport
    }

    #[inline]
    fn flow(&self) -> FlowKey {
        self.parsed.flow
    }
}

impl Carried for Frame {
    const NONE: Self = Self::new(
        Parsed {
            ip: IpVersion::V4,
            len: 0,
            tos: 0,
            flow: FlowKey {
                source: 0,
                destination: 0,
                ports: 0,
                protocol: 0,
            },
            transport: Transport::Other,
            payload: 0,
            is_multicast: false,
        },
        0,
        0,
        Instant::ZERO,
    );

    #[inline]
    fn stamp(&self) -> Instant {
        self.stamp
    }

    #[inline]
    fn onward(&self, stamp: Instant) -> Self {
        Self {
            stamp,
            step: self.step + 1,
            ..*self
        }
    }
}

/// Buffers that are allocated at a time.
const GROUP: usize = 256;

/// Buffers of one size.
#[derive(Debug)]
pub(crate) struct Pool {
    size: usize,
    /// All buffers; one that is lent is empty.
    buffers: Vec<Box<[u8]>>,
    /// Number of handles to each buffer.
    handles: Vec<u8>,
    free: Vec<u32>,
    most: usize,
}

impl Pool {
    /// A pool of at most `most` buffers of `size` bytes.
    pub(crate) const fn new(size: usize, most: usize) -> Self {
        Self {
            size,
            buffers: Vec::new(),
            handles: Vec::new(),
            free: Vec::new(),
            most,
        }
    }

    /// Takes a free buffer, which then has one handle; `None` if the pool is exhausted.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop()?;
        self.handles[slot as usize] = 1;
        Some(slot)
    }

    fn grow(&mut self) {
        let have = self.handles.len();
        let more = GROUP.min(self.most.saturating_sub(have));
        let size = self.size;
        let buffers = std::iter::repeat_with(|| vec![0; size].into());
        self.buffers.extend(buffers.take(more));
        self.handles.resize(have + more, 0);
        let slots = (have..have + more).rev();
        self.free
            .extend(slots.filter_map(|slot| u32::try_from(slot).ok()));
    }

    /// Bytes of a buffer.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// The bytes of a buffer.
    pub(crate) fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        &mut self.buffers[slot as usize]
    }

    /// Takes the bytes of a buffer, to be returned by [`Pool::give_back`].
    pub(crate) fn lend(&mut self, slot: u32) -> Box<[u8]> {
        std::mem::take(&mut self.buffers[slot as usize])
    }

    /// Returns the bytes of a buffer.
    pub(crate) fn give_back(&mut self, slot: u32, buffer: Box<[u8]>) {
        self.buffers[slot as usize] = buffer;
    }

    /// The bytes of a packet, with its DSCP and ECN.
    pub(crate) fn packet(&mut self, frame: &Frame) -> &[u8] {
        let packet = &mut self.bytes_mut(frame.slot)[..usize::from(frame.parsed.len)];
        write_tos(packet, frame.parsed.tos);
        packet
    }

    /// The bytes of a packet as they are in its buffer.
    pub(crate) fn bytes(&self, frame: &Frame) -> &[u8] {
        &self.buffers[frame.slot as usize][..usize::from(frame.parsed.len)]
    }

    /// Whether a buffer has several handles.
    pub(crate) fn is_shared(&self, slot: u32) -> bool {
        self.handles[slot as usize] > 1
    }

    /// A handle was copied.
    pub(crate) fn retain(&mut self, slot: u32) {
        self.handles[slot as usize] += 1;
    }

    /// A handle is no longer used.
    pub(crate) fn release(&mut self, slot: u32) {
        let handles = &mut self.handles[slot as usize];
        *handles = handles.saturating_sub(1);
        if *handles == 0 {
            self.free.push(slot);
        }
    }

    /// Buffers in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.handles.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests;
