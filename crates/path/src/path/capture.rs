//! Packets of a path in the format pcapng, with the headers that the bytes lack.

use std::fmt;
use std::io::{self, Write};

use sojourn_capture::{
    Direction as Passage, Interface, LinkPoints, Point, Record, Section, Verdict, Writer,
};
use sojourn_net::{FlowKey, Instant, IpVersion, Packet, Rate};
use sojourn_qdisc::QdiscSpec;

use super::Direction;
use super::builder::{Bottleneck, Output};
use super::packet::{Handle, Layer, Stored};
use crate::ip::{ETHERNET_HEADER, UDP};

/// Bytes of a packet that are kept: all of it.
const SNAP_LENGTH: u32 = 65_535;

/// A capture in progress.
pub(super) struct Capture {
    writer: Writer<Box<dyn Write + Send>>,
    /// By direction.
    points: [LinkPoints; 2],
    /// A packet with its headers.
    packet: Vec<u8>,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

/// Where a packet is observed.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    Offered,
    Taken,
    Gone,
}

impl Capture {
    pub(super) fn new(out: Output, bottlenecks: &[Bottleneck; 2]) -> Self {
        let section = Section {
            hardware: Some("simulated"),
            ..Section::default()
        };
        let mut writer = Writer::new(out.0, &section);
        let points = Direction::BOTH.map(|direction| {
            let link = bottlenecks[direction.index()].link.as_ref();
            let kind = link.map_or("", |(_, queue)| queue.kind());
            let text = link.map_or("none".to_owned(), |(_, queue)| QdiscSpec::to_string(queue));
            let constant = link.filter(|(transmitter, _)| !transmitter.follows_trace());
            let like = Interface {
                rate: constant.map(|(transmitter, _)| -> Rate { transmitter.rate }),
                snap_length: SNAP_LENGTH,
                ..Interface::new("")
            };
            LinkPoints::add_like(&mut writer, direction.name(), kind, &text, &like)
        });
        Self {
            writer,
            points,
            packet: Vec::new(),
        }
    }

    /// Writes a packet at a point.
    pub(super) fn write<B: AsRef<[u8]>>(
        &mut self,
        now: Instant,
        (direction, at): (Direction, At),
        handle: &Handle,
        stored: &Stored<B>,
        verdict: Verdict,
    ) {
        let points = &self.points[direction.index()];
        let (point, passage): (Point, _) = match at {
            At::Offered => (points.enq, Passage::Inbound),
            At::Taken => (points.deq, Passage::Outbound),
            At::Gone if verdict == Verdict::Lost => (points.drop, Passage::Outbound),
            At::Gone => (points.drop, Passage::Inbound),
        };
        let bytes = stored.bytes.as_ref();
        self.packet.clear();
        match stored.layer {
            Layer::UdpPayload => push_datagram(&mut self.packet, handle, bytes),
            Layer::Ip => self.packet.extend_from_slice(bytes),
            Layer::Ethernet => {
                let header = usize::try_from(ETHERNET_HEADER).unwrap_or(0);
                let rest = bytes.get(header..).unwrap_or_default();
                self.packet.extend_from_slice(rest);
            }
        }
        if stored.layer != Layer::UdpPayload && handle.tos != stored.tos {
            crate::ip::write_tos(&mut self.packet, handle.tos);
        }
        let record = Record {
            at: now,
            id: Some(stored.id.0),
            direction: passage,
            // Behind a link, a packet is in no queue.
            queue: stored.queue.filter(|_| verdict != Verdict::Lost),
            verdict,
            length: u32::try_from(self.packet.len()).unwrap_or(u32::MAX),
            data: &self.packet,
        };
        self.writer.write(point, &record);
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.writer.finish().map(drop)
    }
}

/// Appends an IP packet with a UDP datagram of this payload.
fn push_datagram(packet: &mut Vec<u8>, handle: &Handle, payload: &[u8]) {
    const TTL: u8 = 64;
    let FlowKey {
        source,
        destination,
        ports,
        ..
    } = handle.flow();
    let datagram = u16::try_from(payload.len() + 8).unwrap_or(u16::MAX);
    match handle.ip() {
        IpVersion::V4 => {
            let length = datagram.saturating_add(IpVersion::V4.header());
            packet.extend([0x45, handle.tos]);
            packet.extend(length.to_be_bytes());
            packet.extend([0, 0, 0x40, 0, TTL, UDP, 0, 0]);
            for host in [source, destination] {
                packet.extend_from_slice(&host.to_be_bytes()[4..]);
            }
            let sum = checksum(0, &packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        IpVersion::V6 => {
            packet.extend([0x60 | handle.tos >> 4, handle.tos << 4, 0, 0]);
            packet.extend(datagram.to_be_bytes());
            packet.extend([UDP, TTL]);
            for host in [source, destination] {
                // The folded address in a unique local one.
                packet.extend([0xFD, 0, 0, 0, 0, 0, 0, 0]);
                packet.extend(host.to_be_bytes());
            }
        }
    }
    let header = packet.len();
    packet.extend(ports.to_be_bytes());
    packet.extend(datagram.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend_from_slice(payload);
    // The pseudo-header: both addresses, which end the IP header, then protocol and length.
    let hosts = match handle.ip() {
        IpVersion::V4 => &packet[12..20],
        IpVersion::V6 => &packet[8..40],
    };
    let pseudo = sum_of(hosts) + u64::from(UDP) + u64::from(datagram);
    let sum = match checksum(pseudo, &packet[header..]) {
        // 0 means no checksum.
        0 => 0xFFFF,
        sum => sum,
    };
    packet[header + 6..header + 8].copy_from_slice(&sum.to_be_bytes());
}

/// The sum of 16-bit words (RFC 1071).
fn sum_of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    let words =
        words.map(|word| u64::from(word[0]) << 8 | word.get(1).copied().map_or(0, u64::from));
    words.sum()
}

fn checksum(before: u64, bytes: &[u8]) -> u16 {
    let mut sum = before + sum_of(bytes);
    // Ends: each turn makes a sum above 16 bits smaller.
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}
