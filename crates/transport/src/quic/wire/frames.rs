//! Frames, and the values that a simulated datagram can encode.

use super::super::sizes::{stream_header, varint};

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
