//! The simulated form of a datagram, no larger than a TCP segment.
//!
//! # Layout
//!
//! Eleven words hold the content of all packets of the datagram; nothing refers to the state of the
//! sender, so a datagram that is reordered, duplicated or late is read as a real one would be.
//!
//! ```text
//! word 0      which packets there are, and their flags; counts of ranges and frames
//! Initial     packet number and largest acknowledged | bitmap of the 32 below | CRYPTO from, length
//! Handshake   the same
//! 0/1-RTT     packet number | ACK: largest, start of its range, delay, CE; gap and length of
//!             older ranges | limits: stream or none, blocked or not, bytes in 47 bits | STREAM: id, FIN
//!             and length, offset in two words
//! ```
//!
//! # Differences from RFC 9000
//!
//! | here | RFC 9000 | effect |
//! |---|---|---|
//! | an ACK has up to 7 ranges, 4 with a frame | as many as fit | only in heavy loss: each range is in several ACKs |
//! | up to 2 limits of flow control in a packet, below 2^47 B | as many as fit, 2^62 B | none |
//! | up to 3 STREAM frames in a packet, 1 with handshake packets | as many as fit | small streams share a packet less |
//! | Initial and Handshake packet numbers have 16 bits | 62 | none: hundreds are never reached |

mod frames;

use sojourn_net::Ecn;

use crate::segment::{Flags, Segment};
pub(super) use frames::{Ack, Frame, LIMIT_WORDS, Limit, MAX_RANGES, RunAck, encodable};
use frames::{WORDS, Writer};

/// Most STREAM frames of a packet, and the words of each.
const MAX_FRAMES: usize = 3;
pub(super) const FRAME_WORDS: usize = 3;
/// Most flow-control limits of a packet.
const MAX_LIMITS: usize = 2;

/// A UDP datagram of QUIC packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    words: [u32; WORDS],
    payload: u16,
    /// The ECN field of its IP header.
    ect: Flags,
}

const _: () = assert!(size_of::<Datagram>() <= size_of::<Segment>());

// Word 0.
const INITIAL: u32 = 1;
const HANDSHAKE: u32 = 1 << 1;
const APP: u32 = 1 << 2;
const EARLY: u32 = 1 << 3;
const INITIAL_PING: u32 = 1 << 4;
const HANDSHAKE_PING: u32 = 1 << 5;
const PING: u32 = 1 << 6;
const DONE: u32 = 1 << 7;
const CLOSE: u32 = 1 << 8;
const ACK: u32 = 1 << 9;
const ACK_ECN: u32 = 1 << 10;
const INITIAL_ACK: u32 = 1 << 11;
const HANDSHAKE_ACK: u32 = 1 << 12;
const FRAMES_AT: u32 = 16;
const RANGES_AT: u32 = 20;
const LIMITS_AT: u32 = 24;
const COUNT: u32 = 7;

/// An Initial or Handshake packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CryptoPacket {
    pub(super) pn: u32,
    pub(super) ack: Option<Ack>,
    /// CRYPTO data, from and to.
    pub(super) crypto: Option<(u32, u32)>,
    pub(super) ping: bool,
}

/// A 0-RTT or 1-RTT packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct App {
    pub(super) pn: u32,
    /// 0-RTT.
    pub(super) early: bool,
    pub(super) ping: bool,
    /// `HANDSHAKE_DONE`.
    pub(super) done: bool,
    pub(super) ack: Option<Ack>,
    frames: [Frame; MAX_FRAMES],
    count: u8,
    /// Encoded, since most packets have none.
    limits: [[u32; LIMIT_WORDS]; MAX_LIMITS],
    limit_count: u8,
}

impl App {
    /// An empty packet; `early`: 0-RTT.
    pub(super) fn new(pn: u32, early: bool) -> Self {
        Self {
            pn,
            early,
            ..Self::default()
        }
    }

    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames[..usize::from(self.count)]
    }

    pub(super) fn push(&mut self, frame: Frame) {
        if let Some(place) = self.frames.get_mut(usize::from(self.count)) {
            *place = frame;
            self.count += 1;
        }
    }

    pub(super) fn limits(&self) -> impl Iterator<Item = Limit> {
        let limits = self.limits.into_iter().map(Limit::of);
        limits.take(usize::from(self.limit_count))
    }

    pub(super) fn push_limit(&mut self, limit: Limit) {
        if let Some(place) = self.limits.get_mut(usize::from(self.limit_count)) {
            *place = limit.words();
            self.limit_count += 1;
        }
    }

    /// Whether it is ack-eliciting.
    pub(super) const fn is_eliciting(&self) -> bool {
        self.ping || self.done || self.count > 0 || self.limit_count > 0
    }

    fn write(&self, writer: &mut Writer) {
        writer.word(self.pn);
        if let Some(ack) = &self.ack {
            writer.ack(ack);
        }
        for word in self.limits().flat_map(Limit::words) {
            writer.word(word);
        }
        for frame in self.frames() {
            writer.frame(frame);
        }
    }
}

impl CryptoPacket {
    /// Whether it is ack-eliciting.
    pub(super) const fn is_eliciting(&self) -> bool {
        self.ping || self.crypto.is_some()
    }

    fn write(&self, writer: &mut Writer) {
        let largest = self.ack.map_or(0, |ack| ack.largest());
        let (from, to) = self.crypto.unwrap_or_default();
        writer.word(self.pn | largest << 16);
        writer.word(self.ack.map_or(0, |ack| pack_bitmap(&ack)));
        writer.word(from | (to - from) << 16);
    }
}

/// The content of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// The Initial and the Handshake packet.
    pub(super) crypto_packets: [Option<CryptoPacket>; 2],
    pub(super) app: Option<App>,
    /// `CONNECTION_CLOSE`.
    pub(super) close: bool,
}

impl Content {
    /// Free words.
    pub(super) fn room(&self) -> usize {
        let crypto_packets = self.crypto_packets.iter().flatten().count();
        let app = self.app.as_ref().map_or(0, |app| {
            1 + app.ack.as_ref().map_or(0, Ack::words)
                + FRAME_WORDS * usize::from(app.count)
                + LIMIT_WORDS * usize::from(app.limit_count)
        });
        WORDS - 1 - 3 * crypto_packets - app
    }

    /// Ranges that fit into an ACK if `reserved` words stay free; `None`: no ACK fits.
    pub(super) fn ranges(&self, ecn: bool, reserved: usize) -> Option<usize> {
        let most = self.room().checked_sub(2 + usize::from(ecn) + reserved)?;
        (most > 0).then_some(most.min(MAX_RANGES))
    }

    /// Whether another STREAM frame fits.
    pub(super) fn has_room_for_frame(&self) -> bool {
        self.room() >= FRAME_WORDS
            && self
                .app
                .as_ref()
                .is_some_and(|app| usize::from(app.count) < MAX_FRAMES)
    }

    /// Whether another limit fits besides `reserved` words.
    pub(super) fn has_room_for_limit(&self, reserved: usize) -> bool {
        self.room() >= LIMIT_WORDS + reserved
            && self
                .app
                .as_ref()
                .is_some_and(|app| usize::from(app.limit_count) < MAX_LIMITS)
    }

    pub(super) fn encode(&self, payload: u16, ect: Flags) -> Datagram {
        let mut writer = Writer::new();
        let mut bits = 0;
        let flags = [
            (INITIAL, INITIAL_ACK, INITIAL_PING),
            (HANDSHAKE, HANDSHAKE_ACK, HANDSHAKE_PING),
        ];
        for (packet, (here, ack, ping)) in self.crypto_packets.iter().zip(flags) {
            let Some(packet) = packet else { continue };
            bits |= here;
            bits |= if packet.ack.is_some() { ack } else { 0 };
            bits |= if packet.ping { ping } else { 0 };
            packet.write(&mut writer);
        }
        if let Some(app) = &self.app {
            bits |= APP | u32::from(app.count) << FRAMES_AT;
            bits |= u32::from(app.limit_count) << LIMITS_AT;
            bits |= if app.early { EARLY } else { 0 };
            bits |= if app.ping { PING } else { 0 };
            bits |= if app.done { DONE } else { 0 };
            bits |= app.ack.as_ref().map_or(0, ack_bits);
            app.write(&mut writer);
        }
        if self.close {
            bits |= CLOSE;
        }
        Datagram::of(writer, bits, payload, ect)
    }
}

/// Ranges that an ACK holds which is the only frame of its packet.
pub(super) const fn most_ranges(ecn: bool) -> usize {
    let most = WORDS - 1 - 1 - 2 - ecn as usize;
    if most < MAX_RANGES { most } else { MAX_RANGES }
}

/// The bits of word 0 for an ACK of a 0-RTT or 1-RTT packet.
#[inline]
fn ack_bits(ack: &Ack) -> u32 {
    let ecn = if ack.ce.is_some() { ACK_ECN } else { 0 };
    ACK | ecn | u32::from(ack.count) << RANGES_AT
}

impl Datagram {
    #[inline]
    const fn of(writer: Writer, bits: u32, payload: u16, ect: Flags) -> Self {
        Self {
            words: writer.finish(bits),
            payload,
            ect,
        }
    }

    /// Whether its 0-RTT or 1-RTT packet is ack-eliciting.
    #[inline]
    pub(super) const fn is_eliciting(&self) -> bool {
        self.words[0] & (PING | DONE | COUNT << FRAMES_AT | COUNT << LIMITS_AT) != 0
    }

    /// Bytes of UDP payload.
    #[inline]
    pub const fn payload(&self) -> u16 {
        self.payload
    }

    /// Whether its first byte is that of a long header (RFC 9000 §17.2): a connection is being
    /// set up.
    #[inline]
    pub const fn is_long(&self) -> bool {
        self.words[0] & (INITIAL | HANDSHAKE | EARLY) != 0
    }

    /// Whether it holds an Initial or Handshake packet.
    #[inline]
    pub const fn is_handshake(&self) -> bool {
        self.words[0] & (INITIAL | HANDSHAKE) != 0
    }

    /// Whether it closes the connection.
    #[inline]
    pub(super) const fn is_close(&self) -> bool {
        self.words[0] & CLOSE != 0
    }

    /// Whether it carries stream data.
    #[inline]
    pub const fn has_data(&self) -> bool {
        self.frame_count() != 0
    }

    /// Number of its STREAM frames.
    #[inline]
    pub(super) const fn frame_count(&self) -> u32 {
        (self.words[0] >> FRAMES_AT) & COUNT
    }

    /// The largest packet number that the ACK of its 0-RTT or 1-RTT packet acknowledges, if it has one.
    #[inline]
    pub(super) const fn largest_acknowledged(&self) -> Option<u32> {
        if self.words[0] & ACK == 0 {
            return None;
        }
        Some(self.words[self.app_at() + 1])
    }

    /// The packet number of its 0-RTT or 1-RTT packet, if it has one.
    pub fn app_number(&self) -> Option<u32> {
        let has = self.words[0] & APP != 0;
        has.then(|| self.words[self.app_at()])
    }

    /// Its encoding: words, UDP payload in bytes and ECN field.
    #[inline]
    pub const fn parts(&self) -> ([u32; WORDS], u16, Flags) {
        (self.words, self.payload, self.ect)
    }

    /// The datagram with these [`Datagram::parts`].
    #[inline]
    pub const fn from_parts(words: [u32; WORDS], payload: u16, ect: Flags) -> Self {
        Self {
            words,
            payload,
            ect,
        }
    }

    /// The ECN field of its IP header.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        self.ect.ecn()
    }

    const fn app_at(&self) -> usize {
        let crypto_packets = (self.words[0] & (INITIAL | HANDSHAKE)).count_ones();
        1 + 3 * crypto_packets as usize
    }

    /// All of it.
    #[cfg(test)]
    fn content(&self) -> Content {
        let bits = self.words[0];
        Content {
            crypto_packets: [self.crypto_packet(0), self.crypto_packet(1)],
            app: self.app(),
            close: bits & CLOSE != 0,
        }
    }

    /// Its Initial (0) or Handshake (1) packet.
    pub(super) fn crypto_packet(&self, n: usize) -> Option<CryptoPacket> {
        let bits = self.words[0];
        let (here, has_ack, ping) = match n {
            0 => (INITIAL, INITIAL_ACK, INITIAL_PING),
            _ => (HANDSHAKE, HANDSHAKE_ACK, HANDSHAKE_PING),
        };
        if bits & here == 0 {
            return None;
        }
        let at = if n == 1 && bits & INITIAL != 0 { 4 } else { 1 };
        let [numbers, bitmap, crypto] = [self.words[at], self.words[at + 1], self.words[at + 2]];
        let (from, len) = (crypto & 0xFFFF, crypto >> 16);
        Some(CryptoPacket {
            pn: numbers & 0xFFFF,
            ack: (bits & has_ack != 0).then(|| unpack_bitmap(numbers >> 16, bitmap)),
            crypto: (len > 0).then_some((from, from + len)),
            ping: bits & ping != 0,
        })
    }

    /// Its 0-RTT or 1-RTT packet.
    pub(super) fn app(&self) -> Option<App> {
        let bits = self.words[0];
        if bits & APP == 0 {
            return None;
        }
        let mut words = self.words[self.app_at()..].iter().copied();
        let mut next = || words.next().unwrap_or_default();
        let mut app = App {
            pn: next(),
            early: bits & EARLY != 0,
            ping: bits & PING != 0,
            done: bits & DONE != 0,
            ..App::default()
        };
        if bits & ACK != 0 {
            let mut ack = Ack::default();
            let (largest, start) = (next(), next());
            ack.push((start, largest + 1));
            ack.delay_micros = next();
            ack.ce = (bits & ACK_ECN != 0).then(&mut next);
            let mut below = start;
            for _ in 1..(bits >> RANGES_AT) & COUNT {
                let word = next();
                let end = below - (word >> 16);
                below = end - (word & 0xFFFF);
                ack.push((below, end));
            }
            app.ack = Some(ack);
        }
        for _ in 0..(bits >> LIMITS_AT) & COUNT {
            app.push_limit(Limit::of([next(), next()]));
        }
        for _ in 0..(bits >> FRAMES_AT) & COUNT {
            let (head, low, high) = (next(), next(), next());
            app.push(Frame {
                id: (head >> 16) as u16,
                len: (head & 0x7FFF) as u16,
                fin: head & 0x8000 != 0,
                offset: u64::from(high) << 32 | u64::from(low),
            });
        }
        Some(app)
    }
}

/// Bit k: packet `largest - 1 - k` has arrived.
fn pack_bitmap(ack: &Ack) -> u32 {
    let largest = ack.largest();
    let mut bitmap = 0;
    for &(start, end) in ack.ranges() {
        for pn in start.max(largest.saturating_sub(32))..end.min(largest) {
            bitmap |= 1 << (largest - 1 - pn);
        }
    }
    bitmap
}

fn unpack_bitmap(largest: u32, bitmap: u32) -> Ack {
    let mut ack = Ack::default();
    let (mut start, mut end) = (largest, largest + 1);
    for k in 0..32.min(largest) {
        let pn = largest - 1 - k;
        if bitmap & 1 << k == 0 {
            continue;
        }
        if pn + 1 == start {
            start = pn;
        } else {
            ack.push((start, end));
            (start, end) = (pn, pn + 1);
        }
    }
    ack.push((start, end));
    ack
}

#[cfg(test)]
mod tests;
