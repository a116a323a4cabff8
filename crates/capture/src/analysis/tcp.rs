//! A TCP connection as an observer sees it: retransmissions, reordering, acknowledged bytes and RTT samples.
//!
//! # Source
//!
//! Categories and conditions are those that the Wireshark User's Guide states in "TCP Analysis", so that the counts can
//! be compared; the implementation is our own.
//!
//! | segment that begins before the highest byte seen | condition, the first that applies |
//! |---|---|
//! | keep-alive | at most one byte, just before the highest byte seen; no SYN, FIN or RST |
//! | spurious retransmission | all its bytes were acknowledged |
//! | fast retransmission | it begins at the last ACK, which was repeated twice with the same window and is less than 20 ms old |
//! | early retransmission | it was seen before, and the highest byte was seen less than the RTT of the handshake before |
//! | out of order | it fills a gap, and the highest byte was seen less than the RTT of the handshake before |
//! | retransmission | otherwise |
//!
//! An RTT sample is the time from a segment to the ACK of its last byte, as `tcp.analysis.ack_rtt`. The first transmission
//! counts: the sample of a segment that was resent includes the time that the loss took. A SYN that is resent begins the
//! samples anew.
//!
//! # Difference from Wireshark 4.0
//!
//! Wireshark does not ask whether a segment was seen before: it counts early retransmissions as out of order. At the
//! sender, the counts here are those of its kernel. [`kind::EARLY`] has both bits, so both counts are known.

use std::collections::BTreeMap;

use crate::headers::TcpHeader;

/// What a segment is: bits.
pub mod kind {
    /// It has bytes, or SYN or FIN, that were not seen before.
    pub const NEW: u8 = 1;
    /// It repeats bytes, or fills a gap too late for reordering.
    pub const RETRANSMISSION: u8 = 2;
    /// It fills a gap; with [`RETRANSMISSION`], see [`EARLY`].
    pub const OUT_OF_ORDER: u8 = 4;
    /// It repeats bytes that were acknowledged before; it is a retransmission too.
    pub const SPURIOUS: u8 = 8;
    /// It is a keep-alive or a probe of a closed window.
    pub const PROBE: u8 = 16;
    /// It has the flag SYN.
    pub const SYN: u8 = 32;
    /// It has the flag FIN.
    pub const FIN: u8 = 64;
    /// The capture lacks segments before it.
    pub const AFTER_GAP: u8 = 128;
    /// It was seen before, and repeats bytes so early that Wireshark 4.0 counts it as out of order.
    pub const EARLY: u8 = RETRANSMISSION | OUT_OF_ORDER;
}

/// Age of the last ACK up to which a retransmission is fast.
const FAST_NS: i64 = 20_000_000;
/// RTT of the handshake if the capture does not show it.
const DEFAULT_RTT_NS: i64 = 3_000_000;
/// Segments of a direction that wait for their ACK. The oldest are forgotten: a capture may lack ACKs.
const MOST_SEGMENTS: usize = 65_536;

/// What a segment shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: u8,
    /// Payload of the other side that it acknowledges for the first time.
    pub(super) acked: u32,
    pub(super) rtt: Option<i64>,
    /// Number of payload bytes of its direction before it.
    pub(super) offset: Option<i64>,
    /// Number of payload bytes of the other direction that it acknowledges.
    pub(super) acked_until: Option<i64>,
}

/// Both directions of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    sides: [Side; 2],
    /// Time of the last SYN, until the handshake is complete.
    syn_at: Option<i64>,
    rtt_of_handshake: Option<i64>,
}

/// The data of one direction, and what the other acknowledged of it.
///
/// Sequence numbers have 64 bits here: those of the packets, continued beyond 2^32.
#[derive(Clone, Debug, Default)]
struct Side {
    /// The number after the highest byte seen.
    next: Option<u64>,
    /// When the highest byte was seen.
    advanced_at: i64,
    /// The number of the SYN.
    initial: Option<u64>,
    /// The number of the first byte of payload.
    first: Option<u64>,
    /// The number after the FIN.
    end: Option<u64>,
    /// The last ACK, when it came, and how often it was repeated.
    acked: Option<u64>,
    acked_at: i64,
    duplicates: u32,
    /// The highest ACK.
    most_acked: Option<u64>,
    /// The receive window that this side stated last.
    window: u16,
    /// Segments that wait for their ACK, by the number after their last byte.
    waiting: BTreeMap<u64, Segment>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    begin: u64,
    sent_at: i64,
}

impl Side {
    /// Continues a sequence number beyond 2^32.
    const fn continued(&self, number: u32) -> u64 {
        let Some(next) = self.next else {
            // So that numbers before the first one are not negative.
            return (1 << 32) + number as u64;
        };
        #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits")]
        let low = next as u32;
        let distance = number.wrapping_sub(low).cast_signed();
        next.saturating_add_signed(distance as i64)
    }
}

impl Conversation {
    /// Whether a SYN begins another connection with the same addresses and ports.
    pub(super) fn is_followed_by(&self, header: &TcpHeader) -> bool {
        if !header.has(TcpHeader::SYN) || header.has(TcpHeader::ACK) {
            return false;
        }
        let same = self.sides.iter().any(|side| {
            let initial = side.initial.unwrap_or_default();
            side.initial.is_some() && side.continued(header.seq) == initial
        });
        !same && self.sides.iter().any(|side| side.next.is_some())
    }

    /// Adds a segment that was sent in `direction`.
    pub(super) fn add(&mut self, at: i64, direction: usize, header: &TcpHeader) -> Seen {
        let mut seen = self.add_data(at, direction, header);
        if header.has(TcpHeader::ACK) {
            self.add_ack(at, direction, header, &mut seen);
        }
        self.sides[direction].window = header.window;
        seen
    }

    fn add_data(&mut self, at: i64, direction: usize, header: &TcpHeader) -> Seen {
        let mut kind = 0;
        if header.has(TcpHeader::SYN) {
            kind |= kind::SYN;
            if !header.has(TcpHeader::ACK) {
                self.syn_at = Some(at);
                for side in &mut self.sides {
                    side.waiting.clear();
                }
            }
        }
        if header.has(TcpHeader::FIN) {
            kind |= kind::FIN;
        }
        let is_control = header.has(TcpHeader::SYN | TcpHeader::FIN);
        let length = u64::from(header.payload)
            + u64::from(header.has(TcpHeader::SYN))
            + u64::from(header.has(TcpHeader::FIN));
        let rtt = self.rtt_of_handshake.unwrap_or(DEFAULT_RTT_NS);
        let receiver_window = self.sides[1 - direction].window;
        let side = &mut self.sides[direction];
        let begin = side.continued(header.seq);
        let end = begin.saturating_add(length);
        let next = *side.next.get_or_insert(begin);
        let first = begin.saturating_add(u64::from(header.has(TcpHeader::SYN)));
        side.first.get_or_insert(first);
        if header.has(TcpHeader::SYN) {
            side.initial.get_or_insert(begin);
        }
        if header.has(TcpHeader::FIN) {
            side.end.get_or_insert(end);
        }
        let is_keep_alive = !is_control
            && !header.has(TcpHeader::RST)
            && header.payload <= 1
            && begin.checked_add(1) == Some(next);
        let is_window_probe = header.payload == 1 && begin == next && receiver_window == 0;
        let seen = Seen {
            offset: side.offset(first),
            ..Seen::default()
        };
        if is_keep_alive || (is_window_probe && side.acked.is_some()) {
            kind |= kind::PROBE;
            if length > 0 {
                side.wait(end, Segment { begin, sent_at: at });
            }
            return Seen { kind, ..seen };
        }
        if length == 0 {
            return Seen { kind, ..seen };
        }
        kind |= match () {
            () if begin > next => kind::NEW | kind::AFTER_GAP,
            () if begin == next => kind::NEW,
            () => side.repeats(at, begin..end, rtt, is_control),
        };
        if end > next {
            kind |= kind::NEW;
            side.next = Some(end);
            side.advanced_at = at;
        }
        side.wait(end, Segment { begin, sent_at: at });
        Seen { kind, ..seen }
    }

    /// Applies the ACK of a segment that was sent in `direction` to the data of the other.
    fn add_ack(&mut self, at: i64, direction: usize, header: &TcpHeader, seen: &mut Seen) {
        if direction == 0
            && !header.has(TcpHeader::SYN | TcpHeader::RST)
            && let Some(syn_at) = self.syn_at.take()
            && self.rtt_of_handshake.is_none()
        {
            self.rtt_of_handshake = Some(at.saturating_sub(syn_at));
        }
        let has_window = header.window == self.sides[direction].window && header.window != 0;
        let side = &mut self.sides[1 - direction];
        let ack = side.continued(header.ack);
        let next = *side.next.get_or_insert(ack);
        side.first.get_or_insert(ack);
        seen.acked_until = side.offset(ack);
        let is_repeated = header.payload == 0
            && has_window
            && !header.has(TcpHeader::SYN | TcpHeader::FIN | TcpHeader::RST)
            && side.acked == Some(ack);
        side.duplicates = if is_repeated { side.duplicates + 1 } else { 0 };
        side.acked = Some(ack);
        side.acked_at = at;
        seen.acked = side.progress(ack);
        // Data that the capture lacks.
        side.next = Some(next.max(ack));
        while let Some(first) = side.waiting.first_entry()
            && *first.key() <= ack
        {
            let (end, segment) = first.remove_entry();
            if end == ack {
                seen.rtt = Some(at.saturating_sub(segment.sent_at));
            }
        }
    }
}

impl Side {
    /// Payload bytes before a sequence number; negative before the first one that was seen.
    fn offset(&self, number: u64) -> Option<i64> {
        i64::try_from(i128::from(number) - i128::from(self.first?)).ok()
    }

    /// What a segment is that begins before the highest byte seen.
    fn repeats(&self, at: i64, bytes: std::ops::Range<u64>, rtt: i64, is_control: bool) -> u8 {
        let is_acked = self.acked.is_some_and(|acked| bytes.end <= acked);
        if is_acked && !is_control {
            return kind::RETRANSMISSION | kind::SPURIOUS;
        }
        let is_fast = self.duplicates >= 2
            && self.acked == Some(bytes.start)
            && at.saturating_sub(self.acked_at) < FAST_NS;
        let mut containing = self.waiting.range(bytes.end..);
        let was_seen = containing
            .next()
            .is_some_and(|(_, segment)| segment.begin <= bytes.start);
        let is_early = at.saturating_sub(self.advanced_at) < rtt;
        match () {
            () if is_fast || !is_early || self.next == Some(bytes.end) => kind::RETRANSMISSION,
            () if was_seen => kind::EARLY,
            () => kind::OUT_OF_ORDER,
        }
    }

    /// Notes an ACK; returns how much payload it acknowledges for the first time.
    fn progress(&mut self, ack: u64) -> u32 {
        // Neither SYN nor FIN is payload.
        let payload_until = |number: u64, end: Option<u64>| {
            number - u64::from(end.is_some_and(|end| number >= end && end > 0))
        };
        let first = self.initial.map(|initial| initial.saturating_add(1));
        let before = self.most_acked.or(first).unwrap_or(ack);
        if ack <= before {
            self.most_acked = Some(before);
            return 0;
        }
        self.most_acked = Some(ack);
        let found = payload_until(ack, self.end).saturating_sub(payload_until(before, self.end));
        u32::try_from(found).unwrap_or(u32::MAX)
    }

    fn wait(&mut self, end: u64, segment: Segment) {
        self.waiting.entry(end).or_insert(segment);
        if self.waiting.len() > MOST_SEGMENTS {
            self.waiting.pop_first();
        }
    }
}

impl super::Connection {
    /// Notes the handshake and the end of a connection.
    pub(super) fn note(&mut self, at: i64, direction: usize, header: &TcpHeader) {
        if header.has(TcpHeader::SYN) && !header.has(TcpHeader::ACK) {
            self.opened_at.get_or_insert(at);
        }
        let is_answered = self.tcp.sides[1].initial.is_some();
        if direction == 0 && is_answered && !header.has(TcpHeader::SYN | TcpHeader::RST) {
            self.connected_at.get_or_insert(at);
        }
        self.is_reset |= header.has(TcpHeader::RST);
        self.is_closed |= self.tcp.sides.iter().all(|side| side.end.is_some());
    }
}
