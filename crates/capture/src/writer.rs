//! The writer of a pcapng capture: packets at observation points, with verdicts.
//!
//! # Source
//!
//! draft-ietf-opsawg-pcapng: section header §4.1, interface description §4.2, enhanced packet §4.3, name
//! resolution §4.5, interface statistics §4.6. A drop is recorded in `epb_verdict` as `TC_ACT_SHOT`
//! (`linux/pkt_cls.h`) of type Linux eBPF TC, the only type for a verdict of a queue discipline.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::net::IpAddr;

use sojourn_net::{Instant, Rate};
use sojourn_qdisc::{DropReason, MarkReason};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const NAME_RESOLUTION: u32 = 4;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// The section length is not stated: the file may be a pipe.
const UNKNOWN_LENGTH: [u8; 8] = [0xFF; 8];

const SHB_HARDWARE: u16 = 2;
const SHB_OS: u16 = 3;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const EPB_PACKETID: u16 = 5;
const EPB_QUEUE: u16 = 6;
const EPB_VERDICT: u16 = 7;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
const NRB_RECORD_IPV4: u16 = 1;
const NRB_RECORD_IPV6: u16 = 2;

/// Time stamps count 10^-9 s.
const NANOSECONDS: u8 = 9;
/// The type of a verdict: Linux eBPF TC.
const VERDICT_TC: u8 = 1;
/// The packet was dropped.
const TC_ACT_SHOT: u64 = 2;

/// Default snapshot length in bytes: IPv4 and TCP headers with all options have at most 120.
pub const SNAP_LENGTH: u32 = 128;
/// The largest snapshot length that readers accept.
const LONGEST_SNAP: u32 = 262_144;

/// Where a capture comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section<'a> {
    /// The machine, for example `simulated`.
    pub hardware: Option<&'a str>,
    /// The operating system of a live run.
    pub os: Option<&'a str>,
    /// The run and the digest of its manifest.
    pub comment: Option<&'a str>,
    /// Unix time of the origin of the clock, in ns; 0 for a simulation.
    pub base: u64,
}

/// What the bytes of a packet begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkType {
    /// An IPv4 or IPv6 header (`LINKTYPE_RAW`).
    #[default]
    Raw,
    /// An Ethernet header (`LINKTYPE_ETHERNET`).
    Ethernet,
}

impl LinkType {
    const fn code(self) -> u16 {
        match self {
            Self::Raw => 101,
            Self::Ethernet => 1,
        }
    }
}

/// An observation point.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Its name, for example `down.enq`.
    pub name: &'a str,
    /// What is observed here.
    pub description: Option<&'a str>,
    /// The name of the queue, for comments on packets.
    pub queue: Option<&'a str>,
    /// The rate of the link, if it is constant.
    pub rate: Option<Rate>,
    /// What the bytes of a packet begin with.
    pub link: LinkType,
    /// Snapshot length in bytes, at most 262,144.
    pub snap_length: u32,
}

impl<'a> Interface<'a> {
    /// A point of this name for IP packets, which keeps headers.
    pub const fn new(name: &'a str) -> Self {
        Self {
            name,
            description: None,
            queue: None,
            rate: None,
            link: LinkType::Raw,
            snap_length: SNAP_LENGTH,
        }
    }
}

/// The number of an observation point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point(u32);

/// State of a point.
#[derive(Debug)]
struct Observed {
    queue: String,
    snap_length: u32,
    received: u64,
    dropped: u64,
    /// The time stamp of its last packet.
    last: u64,
}

/// Writes a capture.
///
/// The first error is kept, nothing is written after it, and [`Writer::finish`] returns it. A packet
/// allocates no memory once the buffer has grown to the longest one. Each block is one call of
/// [`Write::write_all`], so the output should be buffered.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    block: Block,
    base: u64,
    points: Vec<Observed>,
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture.
    pub fn new(out: W, section: &Section<'_>) -> Self {
        let mut writer = Self {
            out,
            block: Block::default(),
            base: section.base,
            points: Vec::new(),
            error: None,
        };
        let block = &mut writer.block;
        block.begin(SECTION_HEADER);
        block.u32(BYTE_ORDER_MAGIC);
        // Version 1.0.
        block.u16(1);
        block.u16(0);
        block.padded(&UNKNOWN_LENGTH);
        let texts = [
            (COMMENT, section.comment),
            (SHB_HARDWARE, section.hardware),
            (SHB_OS, section.os),
            (
                SHB_USERAPPL,
                Some(concat!("sojourn ", env!("CARGO_PKG_VERSION"))),
            ),
        ];
        for (code, text) in texts {
            if let Some(text) = text {
                block.text(code, text);
            }
        }
        writer.flush_block();
        writer
    }

    /// Adds an observation point.
    pub fn add(&mut self, interface: &Interface<'_>) -> Point {
        let snap_length = interface.snap_length.min(LONGEST_SNAP);
        let block = &mut self.block;
        block.begin(INTERFACE_DESCRIPTION);
        block.u16(interface.link.code());
        block.u16(0);
        block.u32(snap_length);
        block.text(IF_NAME, interface.name);
        if let Some(text) = interface.description {
            block.text(IF_DESCRIPTION, text);
        }
        if let Some(rate) = interface.rate {
            block.option(IF_SPEED, &rate.bits_per_sec().to_le_bytes());
        }
        block.option(IF_TSRESOL, &[NANOSECONDS]);
        self.flush_block();
        let point = Point(len32(self.points.len()));
        self.points.push(Observed {
            queue: interface.queue.unwrap_or_default().to_owned(),
            snap_length,
            received: 0,
            dropped: 0,
            last: self.base,
        });
        point
    }

    /// Names hosts. Readers use a name for the packets after it.
    pub fn names<'a>(&mut self, hosts: impl IntoIterator<Item = (IpAddr, &'a str)>) {
        self.block.begin(NAME_RESOLUTION);
        for (address, name) in hosts {
            let name = begin(name, u8::MAX.into());
            let (kind, octets) = match address {
                IpAddr::V4(address) => (NRB_RECORD_IPV4, address.octets().to_vec()),
                IpAddr::V6(address) => (NRB_RECORD_IPV6, address.octets().to_vec()),
            };
            let value = [&octets, name.as_bytes(), b"\0"].concat();
            // A record has the layout of an option.
            self.block.option(kind, &value);
        }
        self.flush_block();
    }

    /// Writes a packet.
    ///
    /// # Panics
    /// If `point` belongs to another writer with more points.
    pub fn write(&mut self, point: Point, record: &Record<'_>) {
        if self.error.is_some() {
            return;
        }
        let observed = &mut self.points[point.0 as usize];
        let time = self.base.saturating_add(record.at.as_nanos());
        observed.last = time;
        observed.received += 1;
        let is_dropped = matches!(record.verdict, Verdict::Dropped(_));
        observed.dropped += u64::from(is_dropped);

        let most = observed.snap_length.min(record.length) as usize;
        let data = &record.data[..record.data.len().min(most)];
        let block = &mut self.block;
        block.begin(ENHANCED_PACKET);
        block.u32(point.0);
        block.time(time);
        block.u32(len32(data.len()));
        block.u32(record.length);
        block.padded(data);
        if let Some(comment) = record.verdict.comment(&observed.queue) {
            block.formatted(COMMENT, &comment);
        }
        block.option(EPB_FLAGS, &record.direction.bits().to_le_bytes());
        if let Some(id) = record.id {
            block.option(EPB_PACKETID, &id.to_le_bytes());
        }
        if let Some(queue) = record.queue {
            block.option(EPB_QUEUE, &queue.to_le_bytes());
        }
        if is_dropped {
            let mut verdict = [VERDICT_TC; 9];
            verdict[1..].copy_from_slice(&TC_ACT_SHOT.to_le_bytes());
            block.option(EPB_VERDICT, &verdict);
        }
        self.flush_block();
    }

    /// Ends the capture with the statistics of every point: packets recorded, and packets that the queue dropped.
    /// Returns the output, flushed.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(mut self) -> io::Result<W> {
        for number in 0..self.points.len() {
            let observed = &self.points[number];
            let block = &mut self.block;
            block.begin(INTERFACE_STATISTICS);
            block.u32(len32(number));
            block.time(observed.last);
            block.option(ISB_IFRECV, &observed.received.to_le_bytes());
            block.option(ISB_IFDROP, &observed.dropped.to_le_bytes());
            self.flush_block();
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes the block, unless an earlier one failed.
    fn flush_block(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(self.block.end()).err();
        }
    }
}

/// A packet at an observation point.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When.
    pub at: Instant,
    /// The number of the packet, the same at every point.
    pub id: Option<u64>,
    /// Whether it enters or leaves.
    pub direction: Direction,
    /// The queue of a fair-queueing discipline that the packet is in.
    pub queue: Option<u32>,
    /// The verdict.
    pub verdict: Verdict,
    /// Bytes on the wire, from the first header of the link type on.
    pub length: u32,
    /// The first bytes of the packet: at least its headers, at most `length` bytes.
    pub data: &'a [u8],
}

/// The direction of a packet at an observation point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Not stated.
    #[default]
    Unknown,
    /// It enters the queue.
    Inbound,
    /// It leaves the queue.
    Outbound,
}

impl Direction {
    /// The two lowest bits of `epb_flags`.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Inbound => 1,
            Self::Outbound => 2,
        }
    }
}

/// The verdict on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// None: it passes.
    #[default]
    Passed,
    /// It was CE-marked.
    Marked(MarkReason),
    /// The queue dropped it.
    Dropped(DropReason),
    /// The wire lost it.
    Lost,
}

impl Verdict {
    /// The comment on the packet, with the name of the queue if it is known; `None`: no comment.
    pub(crate) const fn comment(self, queue: &str) -> Option<Comment<'_>> {
        match self {
            Self::Passed => None,
            verdict => Some(Comment { verdict, queue }),
        }
    }
}

/// The comment on a packet, such as `dropped: fq_codel aqm`.
pub(crate) struct Comment<'a> {
    verdict: Verdict,
    queue: &'a str,
}

impl fmt::Display for Comment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (decision, reason) = match self.verdict {
            Verdict::Passed => return f.write_str("passed"),
            Verdict::Lost => return f.write_str("lost on the wire"),
            Verdict::Dropped(DropReason::Overlimit) => ("dropped", "overlimit"),
            Verdict::Dropped(DropReason::Aqm) => ("dropped", "aqm"),
            Verdict::Dropped(DropReason::AckFilter) => ("dropped", "ack_filter"),
            Verdict::Dropped(DropReason::Replaced) => ("dropped", "replaced"),
            Verdict::Marked(MarkReason::Aqm) => ("marked CE", "aqm"),
            Verdict::Marked(MarkReason::CeThreshold) => ("marked CE", "ce_threshold"),
        };
        if self.queue.is_empty() {
            write!(f, "{decision}: {reason}")
        } else {
            write!(f, "{decision}: {} {reason}", self.queue)
        }
    }
}

/// The observation points of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkPoints {
    /// Where packets are offered to the queue.
    pub enq: Point,
    /// Where packets are taken from the queue.
    pub deq: Point,
    /// Where the queue drops packets, or the wire behind the link loses them.
    pub drop: Point,
}

impl LinkPoints {
    /// Adds the points of a link with a queue of this kind; `queue` is its specification, and `rate` is that of the link
    /// if it is constant.
    pub fn add<W: Write>(
        writer: &mut Writer<W>,
        link: &str,
        kind: &str,
        queue: &dyn fmt::Display,
        rate: Option<Rate>,
    ) -> Self {
        let like = Interface {
            rate,
            ..Interface::new("")
        };
        Self::add_like(writer, link, kind, queue, &like)
    }

    /// The same with the rate, the link type and the snapshot length of `like`.
    pub fn add_like<W: Write>(
        writer: &mut Writer<W>,
        link: &str,
        kind: &str,
        queue: &dyn fmt::Display,
        like: &Interface<'_>,
    ) -> Self {
        let mut point = |suffix: &str, description: &str| {
            let name = format!("{link}.{suffix}");
            let description = format!("{description}; queue: {queue}");
            writer.add(&Interface {
                name: &name,
                description: Some(&description),
                queue: Some(kind),
                ..*like
            })
        };
        Self {
            enq: point("enq", "packets offered to the queue"),
            deq: point("deq", "packets taken from the queue to be sent"),
            drop: point("drop", "packets dropped by the queue or lost on the wire"),
        }
    }
}

/// The end of a list of options.
const END_OF_OPTIONS: u16 = 0;
/// A comment: an option of every block.
pub(crate) const COMMENT: u16 = 1;

/// A block under construction, little-endian. Its memory is reused for the next block.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    has_options: bool,
}

impl Block {
    /// Starts a block of this type and discards the previous one.
    pub(crate) fn begin(&mut self, kind: u32) {
        self.bytes.clear();
        self.has_options = false;
        self.u32(kind);
        // The length, which `end` sets.
        self.u32(0);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A time stamp: the high half comes first in either byte order.
    pub(crate) fn time(&mut self, nanos: u64) {
        let [low, high] = [nanos & u64::from(u32::MAX), nanos >> 32];
        for half in [high, low] {
            // Both have 32 bits.
            self.u32(u32::try_from(half).unwrap_or(u32::MAX));
        }
    }

    /// Bytes, padded to a multiple of four.
    pub(crate) fn padded(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }

    /// An option. Its value has at most 65,535 bytes; more are cut off.
    pub(crate) fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.has_options = true;
        self.u16(code);
        self.u16(length);
        self.padded(&value[..usize::from(length)]);
    }

    /// An option with text, which is cut off between two characters.
    pub(crate) fn text(&mut self, code: u16, text: &str) {
        self.option(code, begin(text, u16::MAX.into()).as_bytes());
    }

    /// An option with text that is formatted in place. The text must be short: longer than 65,535 bytes,
    /// it may be cut off within a character.
    pub(crate) fn formatted(&mut self, code: u16, text: &impl Display) {
        self.has_options = true;
        self.u16(code);
        let length_at = self.bytes.len();
        self.u16(0);
        let start = self.bytes.len();
        // Writing to a vector does not fail.
        let _ = write!(self.bytes, "{text}");
        self.bytes.truncate(start + usize::from(u16::MAX));
        let length = u16::try_from(self.bytes.len() - start).unwrap_or(u16::MAX);
        self.bytes[length_at..start].copy_from_slice(&length.to_le_bytes());
        self.pad();
    }

    /// Ends the block.
    pub(crate) fn end(&mut self) -> &[u8] {
        if self.has_options {
            self.u16(END_OF_OPTIONS);
            self.u16(0);
        }
        let length = len32(self.bytes.len() + size_of::<u32>());
        self.u32(length);
        self.bytes[4..8].copy_from_slice(&length.to_le_bytes());
        &self.bytes
    }
}

/// The whole characters in the first `most` bytes of a text.
fn begin(text: &str, most: usize) -> &str {
    let mut ends = (0..=most.min(text.len())).rev();
    let end = ends.find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// A length as it is stored. A block is far shorter than 4 GiB: packets and options are limited.
pub(crate) fn len32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
