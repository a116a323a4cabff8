//! The bytes of a segment: a head, then records of a header and a payload.

use sha2::{Digest as _, Sha256};

/// What identifies a record: a SHA-256 digest that the caller computes.
pub type Key = [u8; 32];

/// The first bytes of a segment, and the version of its format.
const MAGIC: &[u8; 12] = b"sojourn runs";
const VERSION: u32 = 1;

/// Length of the head of a segment.
pub(crate) const HEAD: usize = MAGIC.len() + 4;

/// The first bytes of each record.
pub(crate) const RECORD: &[u8; 4] = b"run\n";

/// Length of the header of a record.
pub(crate) const HEADER: usize = 64;

/// The longest payload. Compressed tables of a run have some ten thousand to some million bytes.
pub const MAX_PAYLOAD: usize = 1 << 30;

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A description of the records that follow.
    Note,
    /// A finished run.
    Run,
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) length: u32,
    pub(crate) digest: [u8; 8],
}

/// The head of a segment.
pub(crate) fn head() -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..MAGIC.len()].copy_from_slice(MAGIC);
    head[MAGIC.len()..].copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// Whether these bytes begin a segment, of whatever version.
pub(crate) fn is_head(bytes: &[u8; HEAD]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The first bytes of the SHA-256 of `bytes`, which detect damage, not forgery.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; 8] {
    let digest = Sha256::digest(bytes);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    first
}

impl Header {
    /// The header of a record with this payload; `None`: the payload is too long.
    pub(crate) fn of(kind: Kind, key: Key, payload: &[u8]) -> Option<Self> {
        let length = u32::try_from(payload.len()).ok()?;
        (payload.len() <= MAX_PAYLOAD).then(|| Self {
            kind,
            key,
            length,
            digest: checksum(payload),
        })
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(RECORD);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8] = match self.kind {
            Kind::Note => 0,
            Kind::Run => 1,
        };
        bytes[16..48].copy_from_slice(&self.key);
        bytes[48..56].copy_from_slice(&self.digest);
        let check = checksum(&bytes[..56]);
        bytes[56..].copy_from_slice(&check);
        bytes
    }

    /// `None`: the bytes are not a header, or a damaged one.
    pub(crate) fn read(bytes: &[u8; HEADER]) -> Option<Self> {
        let (content, check) = bytes.split_at(56);
        if content[..4] != *RECORD || checksum(content) != *check {
            return None;
        }
        let kind = match content[8] {
            0 => Kind::Note,
            1 => Kind::Run,
            _ => return None,
        };
        let length = u32::from_le_bytes(content[4..8].try_into().ok()?);
        let acceptable = usize::try_from(length).is_ok_and(|length| length <= MAX_PAYLOAD);
        acceptable.then_some(Self {
            kind,
            key: content[16..48].try_into().ok()?,
            length,
            digest: content[48..56].try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_any_changed_byte_is_found() {
        let header = Header::of(Kind::Run, [7; 32], b"payload").unwrap();
        let bytes = header.to_bytes();
        assert_eq!(Header::read(&bytes), Some(header));
        for at in 0..HEADER {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert_eq!(Header::read(&damaged), None, "byte {at}");
        }
    }
}
