//! Blocks of a pcapng file: fields, padding and options.

use std::fmt::Display;
use std::io::Write as _;

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
        let end = text.floor_char_boundary(usize::from(u16::MAX));
        self.option(code, &text.as_bytes()[..end]);
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

/// A length as it is stored. A block is far shorter than 4 GiB: packets and options are limited.
pub(crate) fn len32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
