//! Encoding of a datagram.

use super::frames::{Ack, Frame, Limit};
use super::{ACK, ACK_ECN, App, CryptoPacket, Datagram, RANGES_AT, WORDS, pack_bitmap};
use crate::segment::Flags;

/// Writes the words of a datagram.
pub(super) struct Writer {
    words: [u32; WORDS],
    next: usize,
}

/// The bits of word 0 for an ACK of a 0-RTT or 1-RTT packet.
#[inline]
pub(super) fn ack_bits(ack: &Ack) -> u32 {
    let ecn = if ack.ce.is_some() { ACK_ECN } else { 0 };
    ACK | ecn | u32::from(ack.count) << RANGES_AT
}

impl Writer {
    #[inline]
    pub(super) const fn new() -> Self {
        Self {
            words: [0; WORDS],
            next: 1,
        }
    }

    #[inline]
    pub(super) const fn finish(mut self, bits: u32, payload: u16, ect: Flags) -> Datagram {
        self.words[0] = bits;
        Datagram {
            words: self.words,
            payload,
            ect,
        }
    }

    #[inline]
    pub(super) fn word(&mut self, word: u32) {
        self.words[self.next] = word;
        self.next += 1;
    }

    pub(super) fn crypto_packet(&mut self, packet: &CryptoPacket) {
        let largest = packet.ack.map_or(0, |ack| ack.largest());
        let (from, to) = packet.crypto.unwrap_or_default();
        self.word(packet.pn | largest << 16);
        self.word(packet.ack.map_or(0, |ack| pack_bitmap(&ack)));
        self.word(from | (to - from) << 16);
    }

    pub(super) fn app(&mut self, app: &App) {
        self.word(app.pn);
        if let Some(ack) = &app.ack {
            self.ack(ack);
        }
        for word in app.limits().flat_map(Limit::words) {
            self.word(word);
        }
        for frame in app.frames() {
            self.frame(frame);
        }
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
