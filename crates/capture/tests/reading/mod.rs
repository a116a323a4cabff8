//! A small reader of pcapng, for tests.

#![allow(dead_code, reason = "each test file uses its part")]

/// A block of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) kind: u32,
    /// The fields before the options; of a packet, with its bytes and their padding.
    pub(crate) body: Vec<u8>,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
}

impl Block {
    pub(crate) fn option(&self, code: u16) -> Option<&[u8]> {
        let mut found = self.options.iter().filter(|option| option.0 == code);
        let value = found.next().map(|option| option.1.as_slice());
        assert!(found.next().is_none(), "option {code} occurs twice");
        value
    }

    pub(crate) fn text(&self, code: u16) -> Option<&str> {
        self.option(code)
            .map(|text| std::str::from_utf8(text).unwrap())
    }

    pub(crate) fn number(&self, code: u16) -> Option<u64> {
        let mut wide = [0; 8];
        let value = self.option(code)?;
        wide[..value.len()].copy_from_slice(value);
        Some(u64::from_le_bytes(wide))
    }

    /// The 32-bit field at `offset`.
    pub(crate) fn field(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.body[offset..offset + 4].try_into().unwrap())
    }

    /// The captured bytes of a packet.
    pub(crate) fn data(&self) -> &[u8] {
        &self.body[20..20 + self.field(12) as usize]
    }

    /// The time stamp of a packet or of statistics.
    pub(crate) fn time(&self) -> u64 {
        u64::from(self.field(4)) << 32 | u64::from(self.field(8))
    }
}

/// The blocks of a capture; panics unless it is well-formed to the last byte.
pub(crate) fn blocks(mut bytes: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    while !bytes.is_empty() {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (kind, length) = (word(0), word(4) as usize);
        assert!(length.is_multiple_of(4), "a block of {length} bytes");
        assert_eq!(word(length - 4) as usize, length, "the second length");
        let content = &bytes[8..length - 4];
        let fixed = match kind {
            0x0A0D_0D0A => 16,
            1 => 8,
            4 => 0,
            5 => 12,
            6 => 20 + (word(20) as usize).next_multiple_of(4),
            other => panic!("a block of type {other}"),
        };
        let (body, options) = content.split_at(fixed);
        blocks.push(Block {
            kind,
            body: body.to_vec(),
            options: read_options(options),
        });
        bytes = &bytes[length..];
    }
    blocks
}

fn read_options(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut options = Vec::new();
    while !bytes.is_empty() {
        let code = u16::from_le_bytes([bytes[0], bytes[1]]);
        let length = usize::from(u16::from_le_bytes([bytes[2], bytes[3]]));
        let end = 4 + length.next_multiple_of(4);
        if code == 0 {
            assert_eq!((length, bytes.len()), (0, 4), "the end of options");
            return options;
        }
        options.push((code, bytes[4..4 + length].to_vec()));
        assert!(bytes[4 + length..end].iter().all(|b| *b == 0), "padding");
        bytes = &bytes[end..];
    }
    assert!(options.is_empty(), "options without an end");
    options
}
