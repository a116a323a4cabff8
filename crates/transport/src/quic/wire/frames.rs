//! Frames, and the values that a simulated datagram can encode.

use super::{ACK, APP, COUNT, Datagram, FRAMES_AT, RANGES_AT, ack_bits};
use crate::quic::sizes::{stream_header, varint};
use crate::segment::Flags;

/// Most ranges of an ACK of application data.
pub(in super::super) const MAX_RANGES: usize = 7;
/// Words of a limit.
pub(in super::super) const LIMIT_WORDS: usize = 2;

/// A STREAM frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Frame {
    pub(in super::super) id: u16,
    pub(in super::super) len: u16,
    pub(in super::super) fin: bool,
    pub(in super::super) offset: u64,
}

impl Frame {
    /// Bytes of its frame, without a length field (RFC 9000 §19.8).
    pub(in super::super) fn size(&self) -> usize {
        stream_header(self.id, self.offset) + usize::from(self.len)
    }
}

/// A flow-control frame: `MAX_DATA`, `MAX_STREAM_DATA`, `DATA_BLOCKED` or `STREAM_DATA_BLOCKED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Limit {
    /// The stream; `None`: all streams together.
    pub(in super::super) stream: Option<u16>,
    /// `DATA_BLOCKED` or `STREAM_DATA_BLOCKED`.
    pub(in super::super) is_blocked: bool,
    pub(in super::super) bytes: u64,
}

impl Limit {
    /// A limit that the peer may use.
    pub(in super::super) const fn new(stream: Option<u16>, bytes: u64) -> Self {
        Self {
            stream,
            is_blocked: false,
            bytes,
        }
    }

    /// A limit that blocks data.
    pub(in super::super) const fn blocked(stream: Option<u16>, bytes: u64) -> Self {
        Self {
            stream,
            is_blocked: true,
            bytes,
        }
    }

    /// The nearest limit that a datagram can encode.
    pub(in super::super) fn encodable(bytes: u64) -> u64 {
        bytes.min(LARGEST_LIMIT)
    }

    /// Bytes of its frame (RFC 9000 §19.9, §19.10, §19.12, §19.13).
    pub(in super::super) const fn size(&self) -> usize {
        let id = match self.stream {
            Some(id) => varint(4 * id as u64),
            None => 0,
        };
        1 + id + varint(self.bytes)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
    pub(super) fn words(self) -> [u32; LIMIT_WORDS] {
        let stream = u32::from(self.stream.unwrap_or(NO_STREAM));
        let high = (self.bytes >> 32) as u32;
        let head = stream << 16 | u32::from(self.is_blocked) << 15 | high;
        [head, self.bytes as u32]
    }

    pub(super) fn of([head, low]: [u32; LIMIT_WORDS]) -> Self {
        let stream = (head >> 16) as u16;
        Self {
            stream: (stream != NO_STREAM).then_some(stream),
            is_blocked: head & 0x8000 != 0,
            bytes: u64::from(head & 0x7FFF) << 32 | u64::from(low),
        }
    }
}

/// Stands for all streams together.
const NO_STREAM: u16 = u16::MAX;
/// A limit has 47 bits.
const LARGEST_LIMIT: u64 = (1 << 47) - 1;

/// An ACK frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Ack {
    pub(super) ranges: [(u32, u32); MAX_RANGES],
    pub(super) count: u8,
    pub(in super::super) delay_micros: u32,
    /// CE marks counted; `None`: the path is not ECN-capable.
    pub(in super::super) ce: Option<u32>,
}

impl Ack {
    /// An ACK without ranges.
    pub(in super::super) fn new(delay_micros: u32, ce: Option<u32>) -> Self {
        Self {
            delay_micros,
            ce,
            ..Self::default()
        }
    }

    /// Half-open runs of packet numbers, the newest first.
    pub(in super::super) fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges[..usize::from(self.count)]
    }

    /// The largest packet number acknowledged.
    pub(in super::super) const fn largest(&self) -> u32 {
        self.ranges[0].1 - 1
    }

    /// Adds a range, if it fits.
    pub(in super::super) fn push(&mut self, range: (u32, u32)) {
        if let Some(place) = self.ranges.get_mut(usize::from(self.count)) {
            *place = range;
            self.count += 1;
        }
    }

    /// Bytes of its frame (RFC 9000 §19.3).
    pub(in super::super) fn size(&self) -> usize {
        let ranges = self.ranges();
        let mut size = 1 + varint(self.largest().into()) + 1;
        // The delay counts units of 8 µs (ack_delay_exponent 3).
        size += varint(u64::from(self.delay_micros >> 3));
        let mut below = ranges[0].1;
        for &(start, end) in ranges {
            let gap = if end == below {
                0
            } else {
                varint((below - end).into())
            };
            size += gap + varint((end - start).into());
            below = start;
        }
        size + self.ce.map_or(0, |ce| {
            2 + varint(self.largest().into()) + varint(ce.into())
        })
    }

    /// Words of its encoding.
    pub(super) fn words(&self) -> usize {
        2 + usize::from(self.count) + usize::from(self.ce.is_some())
    }
}

/// A range below `below` as an ACK can encode it: gap and length have 16 bits each, so a longer range
/// is cut to its top; `None`: it lies too far below.
pub(in super::super) fn encodable(below: u32, (start, end): (u32, u32)) -> Option<(u32, u32)> {
    const MAX: u32 = 0xFFFF;
    let far = below - end > MAX;
    (!far).then(|| (start.max(end.saturating_sub(MAX)), end))
}

/// An ACK of a single range, without ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct RunAck {
    /// The packets, half-open.
    pub(in super::super) run: (u32, u32),
    pub(in super::super) delay_micros: u32,
}

/// Words of a datagram.
pub(super) const WORDS: usize = 11;

/// Writes the words of a datagram.
pub(super) struct Writer {
    words: [u32; WORDS],
    next: usize,
}

impl Writer {
    #[inline]
    pub(super) const fn new() -> Self {
        Self {
            words: [0; WORDS],
            next: 1,
        }
    }

    /// The words; `bits`: the first of them.
    #[inline]
    pub(super) const fn finish(mut self, bits: u32) -> [u32; WORDS] {
        self.words[0] = bits;
        self.words
    }

    #[inline]
    pub(super) fn word(&mut self, word: u32) {
        self.words[self.next] = word;
        self.next += 1;
    }

    #[inline]
    pub(super) fn ack(&mut self, ack: &Ack) {
        let (start, end) = ack.ranges[0];
        self.word(end - 1);
        self.word(start);
        self.word(ack.delay_micros);
        if let Some(ce) = ack.ce {
            self.word(ce);
        }
        let mut below = start;
        for &(start, end) in &ack.ranges()[1..] {
            self.word((below - end) << 16 | (end - start));
            below = start;
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub(super) fn frame(&mut self, frame: &Frame) {
        let fin = u32::from(frame.fin) << 15;
        self.word(u32::from(frame.id) << 16 | fin | u32::from(frame.len));
        self.word(frame.offset as u32);
        self.word((frame.offset >> 32) as u32);
    }
}

/// Word 0 with a STREAM frame.
const FRAME_ONLY: u32 = APP | 1 << FRAMES_AT;
/// Word 0 with an ACK without ECN, but for the number of ranges.
const ACK_ONLY: u32 = APP | ACK;

impl RunAck {
    /// Bytes of its frame, as [`Ack::size`].
    #[inline]
    pub(in super::super) const fn size(&self) -> usize {
        let (start, end) = self.run;
        let delay = varint(self.delay_micros as u64 >> 3);
        1 + varint(end as u64 - 1) + 1 + delay + varint((end - start) as u64)
    }
}

impl Datagram {
    /// A datagram with a 1-RTT packet that holds a STREAM frame.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub(in super::super) fn of_frame(pn: u32, frame: &Frame, payload: u16, ect: Flags) -> Self {
        let fin = u32::from(frame.fin) << 15;
        let mut words = [0; WORDS];
        words[0] = FRAME_ONLY;
        words[1] = pn;
        words[2] = u32::from(frame.id) << 16 | fin | u32::from(frame.len);
        words[3] = frame.offset as u32;
        words[4] = (frame.offset >> 32) as u32;
        Self::from_parts(words, payload, ect)
    }

    /// A datagram with a 1-RTT packet that holds an ACK.
    #[inline]
    pub(in super::super) fn of_ack(pn: u32, ack: &Ack, payload: u16, ect: Flags) -> Self {
        let mut writer = Writer::new();
        writer.word(pn);
        writer.ack(ack);
        Self::of(writer, APP | ack_bits(ack), payload, ect)
    }

    /// A datagram with a 1-RTT packet that holds an ACK of a single range.
    #[inline]
    pub(in super::super) const fn of_run_ack(
        pn: u32,
        ack: &RunAck,
        payload: u16,
        ect: Flags,
    ) -> Self {
        let (start, end) = ack.run;
        let mut words = [0; WORDS];
        words[0] = ACK_ONLY | 1 << RANGES_AT;
        words[1] = pn;
        words[2] = end - 1;
        words[3] = start;
        words[4] = ack.delay_micros;
        Self::from_parts(words, payload, ect)
    }

    /// The packet number and the frame, if it has a 1-RTT packet with a STREAM frame and nothing else.
    #[inline]
    pub(in super::super) fn only_frame(&self) -> Option<(u32, Frame)> {
        let [bits, pn, head, low, high, ..] = self.words;
        let frame = Frame {
            id: (head >> 16) as u16,
            len: (head & 0x7FFF) as u16,
            fin: head & 0x8000 != 0,
            offset: u64::from(high) << 32 | u64::from(low),
        };
        (bits == FRAME_ONLY).then_some((pn, frame))
    }

    /// The packet number and the ACK, of which only the newest range, if it has a 1-RTT packet with an ACK without ECN
    /// and nothing else.
    #[inline]
    pub(in super::super) fn only_ack(&self) -> Option<(u32, RunAck)> {
        let [bits, pn, largest, start, delay_micros, ..] = self.words;
        let ack = RunAck {
            run: (start, largest.wrapping_add(1)),
            delay_micros,
        };
        (bits & !(COUNT << RANGES_AT) == ACK_ONLY).then_some((pn, ack))
    }
}
