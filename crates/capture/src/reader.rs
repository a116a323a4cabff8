//! A reader of packet captures: pcap and pcapng, in parts of any length.
//!
//! # Source
//!
//! draft-ietf-opsawg-pcap (file header §4, packet record §5) and draft-ietf-opsawg-pcapng (blocks §3 and §4, options
//! §3.5), both byte orders, with time stamps of any resolution.
//!
//! A file that ends within a packet, such as that of a program that was killed, is valid up to there.

mod pcap;
mod pcapng;

use std::fmt;

/// Longest packet: the largest snapshot length of Wireshark and tcpdump.
const MOST_PACKET_BYTES: u32 = 262_144;
/// Longest block of a pcapng file: a packet with options, or name resolution and secrets.
const MOST_BLOCK_BYTES: u32 = 16 << 20;
/// Interfaces of a file; each takes memory.
const MOST_INTERFACES: usize = 65_536;

/// An observation point of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, if the file states it.
    pub name: String,
    /// What its packets begin with (a `LINKTYPE` number).
    pub link_type: u16,
    /// Time stamps per second: a power of 10 or 2.
    resolution: Resolution,
    /// Seconds that are added to time stamps.
    offset_s: i64,
}

/// Units of time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// 10^-n s.
    Decimal(u8),
    /// 2^-n s.
    Binary(u8),
}

impl Resolution {
    /// Time in ns of a time stamp; saturates.
    fn nanos(self, stamp: u64) -> i64 {
        let stamp = u128::from(stamp);
        let found = match self {
            Self::Decimal(places @ 0..=9) => stamp * 10_u128.pow(9 - u32::from(places)),
            Self::Decimal(places) => {
                let divisor = 10_u128.checked_pow(u32::from(places) - 9);
                divisor.map_or(0, |divisor| stamp / divisor)
            }
            Self::Binary(places) => (stamp * 1_000_000_000) >> places.min(127),
        };
        i64::try_from(found).unwrap_or(i64::MAX)
    }
}

impl Source {
    fn time(&self, stamp: u64) -> i64 {
        let nanos = self.resolution.nanos(stamp);
        nanos.saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The index of its source.
    pub source: usize,
    /// Time since 1970 in ns.
    pub at: i64,
    /// Bytes on the wire, from the header of the link type on.
    pub length: u32,
    /// The bytes that were kept.
    pub data: &'a [u8],
    /// Its number (`epb_packetid`), the same at every point.
    pub id: Option<u64>,
    /// The comment on it.
    pub comment: Option<&'a str>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in bytes of what is invalid.
    pub at: u64,
    /// What is invalid there, and what is valid.
    pub problem: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.problem)
    }
}

impl std::error::Error for Damage {}

/// Reads a capture in parts.
#[derive(Debug, Default)]
pub struct Reader {
    /// The begin of a packet or block whose end was not read yet.
    rest: Vec<u8>,
    /// Offset of `rest` in the file.
    at: u64,
    format: Format,
    sources: Vec<Source>,
    /// Packets without a time stamp, which are left out.
    timeless: u64,
}

#[derive(Debug, Default)]
enum Format {
    #[default]
    Unknown,
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

/// The first part of what was read, and its length; `None`: more bytes are needed.
type Parsed = Option<usize>;

impl Reader {
    /// Reads the next part of the file, and calls `each` for every whole packet.
    ///
    /// # Errors
    /// If the content is invalid. The reader must not be used after it.
    pub fn feed(
        &mut self,
        part: &[u8],
        each: &mut dyn FnMut(&[Source], Captured<'_>),
    ) -> Result<(), Damage> {
        self.rest.extend_from_slice(part);
        let bytes = std::mem::take(&mut self.rest);
        let mut begin = 0;
        let damage = loop {
            match self.step(&bytes[begin..], each) {
                Ok(Some(length)) => begin += length,
                Ok(None) => break None,
                Err(problem) => break Some(problem),
            }
        };
        let at = self.at + begin as u64;
        if let Some(problem) = damage {
            return Err(Damage { at, problem });
        }
        self.at = at;
        self.rest = bytes;
        self.rest.drain(..begin);
        Ok(())
    }

    /// Reads one header, packet or block.
    fn step(
        &mut self,
        bytes: &[u8],
        each: &mut dyn FnMut(&[Source], Captured<'_>),
    ) -> Result<Parsed, String> {
        match &mut self.format {
            Format::Unknown => {
                let Some(magic) = bytes.first_chunk() else {
                    return Ok(None);
                };
                if pcapng::is_section(*magic) {
                    self.format = Format::Pcapng(pcapng::Section::default());
                    return Ok(Some(0));
                }
                let Some((header, source)) = pcap::header(*magic, bytes)? else {
                    return Ok(None);
                };
                self.format = Format::Pcap(header);
                self.sources.push(source);
                Ok(Some(pcap::HEADER))
            }
            Format::Pcap(header) => header.packet(bytes, &self.sources, each),
            Format::Pcapng(section) => {
                section.block(bytes, &mut self.sources, &mut self.timeless, each)
            }
        }
    }

    /// The observation points until now.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Packets without a time stamp (simple packet blocks), which were left out.
    pub const fn timeless(&self) -> u64 {
        self.timeless
    }

    /// Ends the file; returns whether it ends within a packet or block.
    ///
    /// # Errors
    /// If the file is no capture.
    pub fn finish(&self) -> Result<bool, Damage> {
        if matches!(self.format, Format::Unknown) {
            let problem = "ends within its header".to_owned();
            return Err(Damage {
                at: self.at,
                problem,
            });
        }
        Ok(!self.rest.is_empty())
    }
}

/// Whether a file that begins with these bytes is a capture.
pub fn is_capture(begin: &[u8]) -> bool {
    begin
        .first_chunk()
        .is_some_and(|magic| pcapng::is_section(*magic) || pcap::Header::of(*magic).is_some())
}

/// The byte order of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// The 32-bit field at `offset`; `None`: the bytes end before it.
    fn field(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let field = bytes.get(offset..)?.first_chunk()?;
        Some(self.u32(*field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_of_any_resolution_become_nanoseconds() {
        assert_eq!(Resolution::Decimal(6).nanos(5), 5_000);
        assert_eq!(Resolution::Decimal(9).nanos(5), 5);
        assert_eq!(Resolution::Decimal(12).nanos(5_999), 5);
        assert_eq!(Resolution::Decimal(0).nanos(u64::MAX), i64::MAX);
        assert_eq!(Resolution::Decimal(127).nanos(u64::MAX), 0);
        assert_eq!(Resolution::Binary(10).nanos(1_536), 1_500_000_000);
        assert_eq!(Resolution::Binary(127).nanos(u64::MAX), 0);
    }
}
