//! Sequence numbers of simulated TCP connections, in bytes.
//!
//! A simulated segment carries its index and its length. The number of its first byte is
//!
//! ```text
//! initial + 1 + index * mss - what the short segments before it lack
//! ```
//!
//! so bytes are contiguous, as in a real connection. The SYN and the FIN take one number each. A short
//! segment is known once it has been sent, and no acknowledgement names it earlier.

use sojourn_net::TcpHeader;

use crate::synth::Tcp;

/// The window scale of simulated hosts: windows are multiples of 2,048 B.
pub const WINDOW_SCALE: u8 = 11;
/// Bytes that the MSS option includes in addition to the payload of a full-sized segment.
const TIMESTAMPS: u16 = 12;
/// Initial sequence numbers of the two ends: the byte numbers of a connection are easily read off.
const INITIAL: [u32; 2] = [1_000_000_000, 2_000_000_000];

/// The role of a segment in its connection. A connection carries data in one direction or in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// From the data sender: a data segment, or its half of the handshake.
    Data,
    /// An acknowledgement of data.
    Ack,
    /// From the requesting end: a segment of requests.
    Request,
    /// An acknowledgement of requests.
    RequestAck,
}

impl Role {
    /// The end that sends the segment: 0 sends data, 1 requests.
    const fn end(self) -> usize {
        match self {
            Self::Data | Self::RequestAck => 0,
            Self::Ack | Self::Request => 1,
        }
    }

    const fn acknowledges(self) -> bool {
        matches!(self, Self::Ack | Self::RequestAck)
    }
}

/// A segment that is shorter than the others.
#[derive(Clone, Copy, Debug)]
struct Short {
    index: u32,
    /// Bytes missing from this and all earlier segments, modulo 2^32.
    lack: u32,
}

/// How many short segments before the first unacknowledged one are kept: a SACK block may report a duplicate of
/// one of them (RFC 2883).
const ACKNOWLEDGED: usize = 1_024;

/// The sequence numbers that one end sends.
#[derive(Clone, Debug)]
struct Numbers {
    initial: u32,
    mss: u32,
    /// The index after the last segment sent.
    next: u32,
    /// The first byte that the peer has not acknowledged.
    acknowledged: u32,
    /// By index; of the segments acknowledged long ago, only the last is kept.
    short: Vec<Short>,
}

impl Numbers {
    const fn new(initial: u32, mss: u16) -> Self {
        Self {
            initial,
            mss: mss as u32,
            next: 0,
            acknowledged: initial.wrapping_add(1),
            short: Vec::new(),
        }
    }

    /// Segment `index` is sent; it consumes `size` sequence numbers.
    fn send(&mut self, index: u32, size: u32) {
        if index < self.next {
            return;
        }
        self.next = index.saturating_add(1);
        if size != self.mss {
            let before = self.short.last().map_or(0, |short| short.lack);
            let lack = before.wrapping_add(self.mss.wrapping_sub(size));
            self.short.push(Short { index, lack });
        }
    }

    /// The peer acknowledges the segments below `index`.
    fn acknowledge(&mut self, index: u32) {
        self.acknowledged = self.byte(index);
        if self.short.len() > 4 * ACKNOWLEDGED {
            let below = self.short.partition_point(|short| short.index < index);
            self.short.drain(..below.saturating_sub(ACKNOWLEDGED));
        }
    }

    /// The number of the first byte of segment `index`.
    fn byte(&self, index: u32) -> u32 {
        let before = match self.short.last() {
            Some(last) if last.index < index => self.short.len(),
            _ => self.short.partition_point(|short| short.index < index),
        };
        let lack = before
            .checked_sub(1)
            .map_or(0, |last| self.short[last].lack);
        let bytes = index.wrapping_mul(self.mss).wrapping_sub(lack);
        self.initial.wrapping_add(1).wrapping_add(bytes)
    }
}

/// The sequence numbers of a simulated TCP connection.
///
/// Every segment must be passed to [`Connection::send`] when it is sent, in the order of sending: also if
/// it is lost before the first observation point. The memory is 8 bytes per segment that is not full-sized,
/// in flight or among the last few thousand.
#[derive(Clone, Debug)]
pub struct Connection {
    ends: [Numbers; 2],
    mss: u16,
}

impl Connection {
    /// A connection whose full-sized segments carry `mss` bytes.
    pub const fn new(mss: u16) -> Self {
        let [data, requests] = INITIAL;
        Self {
            ends: [Numbers::new(data, mss), Numbers::new(requests, mss)],
            mss,
        }
    }

    /// Converts a segment that is sent now; numbers in `header` are indices of segments. The caller adds
    /// what a [`TcpHeader`] lacks: the option of RFC 9768.
    ///
    /// A segment whose role has no acknowledgement carries the last acknowledgement of the same end; a segment without
    /// data carries the next sequence number of its end.
    pub fn send(&mut self, role: Role, header: &TcpHeader) -> Tcp {
        let (here, there) = match &mut self.ends {
            [data, requests] if role.end() == 0 => (data, requests),
            [data, requests] => (requests, data),
        };
        let has = |bit| header.flags & bit != 0;
        let is_syn = has(TcpHeader::SYN);
        let size = header.payload + u32::from(has(TcpHeader::FIN));
        let seq = if is_syn {
            here.initial
        } else if role.acknowledges() {
            here.byte(here.next)
        } else if size == 0 && header.seq.wrapping_add(1) == here.next {
            // A probe of a closed window: the number before the next.
            here.byte(here.next).wrapping_sub(1)
        } else {
            if size > 0 {
                here.send(header.seq, size);
            }
            here.byte(header.seq)
        };
        let mut sacks = [(0, 0); 3];
        if role.acknowledges() {
            there.acknowledge(header.ack);
            for (sack, (start, end)) in sacks.iter_mut().zip(header.sacks) {
                if start != end {
                    *sack = (there.byte(start), there.byte(end));
                }
            }
        }
        Tcp {
            seq,
            ack: if has(TcpHeader::ACK) {
                there.acknowledged
            } else {
                0
            },
            flags: header.flags,
            window: header.window,
            window_scale: WINDOW_SCALE,
            mss: is_syn.then(|| self.mss.saturating_add(TIMESTAMPS)),
            timestamps: header.timestamps,
            sacks,
            accurate_ecn: None,
        }
    }
}
