//! Encoding of a datagram.

use super::frames::{Ack, Frame};

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
