//! Files in the format pcap.

use super::{Captured, MOST_PACKET_BYTES, Order, Parsed, Resolution, Source};

/// Bytes of the header of a file, and of a packet.
pub(super) const HEADER: usize = 24;
const RECORD: usize = 16;
const MICROSECONDS: u32 = 0xA1B2_C3D4;
const NANOSECONDS: u32 = 0xA1B2_3C4D;
/// The other bits of the field state a frame check sequence.
const LINK_TYPE: u32 = 0xFFFF;

/// The form of the packets of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    order: Order,
    /// Whether the second part of a time stamp counts ns instead of µs.
    has_nanos: bool,
}

impl Header {
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        [Order::Little, Order::Big].into_iter().find_map(|order| {
            let has_nanos = match order.u32(magic) {
                MICROSECONDS => false,
                NANOSECONDS => true,
                _ => return None,
            };
            Some(Self { order, has_nanos })
        })
    }

    /// Reads a packet.
    pub(super) fn packet(
        self,
        bytes: &[u8],
        sources: &[Source],
        each: &mut dyn FnMut(&[Source], Captured<'_>),
    ) -> Result<Parsed, String> {
        let field = |number: usize| self.order.field(bytes, 4 * number);
        let (Some(seconds), Some(part), Some(kept), Some(length)) =
            (field(0), field(1), field(2), field(3))
        else {
            return Ok(None);
        };
        if kept > MOST_PACKET_BYTES {
            return Err(format!(
                "a packet of {kept} captured bytes; expected at most {MOST_PACKET_BYTES}"
            ));
        }
        let end = RECORD + kept as usize;
        let Some(data) = bytes.get(RECORD..end) else {
            return Ok(None);
        };
        let nanos = i64::from(part) * if self.has_nanos { 1 } else { 1_000 };
        let captured = Captured {
            source: 0,
            at: i64::from(seconds) * 1_000_000_000 + nanos,
            // Some writers state less than they kept.
            length: length.max(kept),
            data,
            id: None,
            comment: None,
        };
        each(sources, captured);
        Ok(Some(end))
    }
}

/// Reads the header of a file; `None`: more bytes are needed.
pub(super) fn header(magic: [u8; 4], bytes: &[u8]) -> Result<Option<(Header, Source)>, String> {
    let Some(header) = Header::of(magic) else {
        return Err("not the begin of a pcap or pcapng file".to_owned());
    };
    let Some(field) = header.order.field(bytes, 20) else {
        return Ok(None);
    };
    let link_type = u16::try_from(field & LINK_TYPE).unwrap_or_default();
    let source = Source {
        name: String::new(),
        link_type,
        resolution: Resolution::Decimal(9),
        offset_s: 0,
    };
    Ok(Some((header, source)))
}
