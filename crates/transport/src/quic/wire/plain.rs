//! Datagrams with a 1-RTT packet that holds one frame and nothing else, as most do.

use super::super::sizes::varint;
use super::frames::{Ack, Frame, RunAck};
use super::writer::{WORDS, Writer};
use super::{ACK, APP, COUNT, Datagram, FRAMES_AT, RANGES_AT, ack_bits};
use crate::segment::Flags;

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
