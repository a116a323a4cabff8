//! Files in the format pcapng.

use super::{
    Captured, MOST_BLOCK_BYTES, MOST_INTERFACES, MOST_PACKET_BYTES, Order, Parsed, Resolution,
    Source,
};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_PACKETID: u16 = 5;
/// Of a resolution: the exponent is one of 2 instead of 10.
const BINARY: u8 = 0x80;

/// Type and length before the content of a block, and the length after it.
const FRAME: usize = 12;
/// Bytes of a packet block before the packet.
const PACKET: usize = 20;

pub(super) fn is_section(magic: [u8; 4]) -> bool {
    u32::from_le_bytes(magic) == SECTION_HEADER
}

/// The part of a file from one section header to the next.
#[derive(Debug, Default)]
pub(super) struct Section {
    order: Order,
    /// The sources of earlier sections.
    before: usize,
}

impl Section {
    /// Reads a block.
    pub(super) fn block(
        &mut self,
        bytes: &[u8],
        sources: &mut Vec<Source>,
        timeless: &mut u64,
        each: &mut dyn FnMut(&[Source], Captured<'_>),
    ) -> Result<Parsed, String> {
        let Some(kind) = self.order.field(bytes, 0) else {
            return Ok(None);
        };
        if kind == SECTION_HEADER {
            let Some(magic) = bytes.get(8..).and_then(<[u8]>::first_chunk) else {
                return Ok(None);
            };
            self.order = [Order::Little, Order::Big]
                .into_iter()
                .find(|order| order.u32(*magic) == BYTE_ORDER_MAGIC)
                .ok_or("a section header without a byte order")?;
            self.before = sources.len();
        }
        let Some(length) = self.order.field(bytes, 4) else {
            return Ok(None);
        };
        if !(FRAME..=MOST_BLOCK_BYTES as usize).contains(&(length as usize)) || length % 4 != 0 {
            return Err(format!(
                "a block of {length} bytes; expected a multiple of 4 from {FRAME} to \
                 {MOST_BLOCK_BYTES}"
            ));
        }
        let end = length as usize;
        let Some(content) = bytes.get(8..end - 4) else {
            return Ok(None);
        };
        match self.order.field(bytes, end - 4) {
            None => return Ok(None),
            Some(again) if again == length => {}
            Some(again) => {
                return Err(format!("a block of {length} bytes that ends with {again}"));
            }
        }
        match kind {
            INTERFACE_DESCRIPTION => sources.push(self.source(content, sources.len())?),
            ENHANCED_PACKET => self.packet(content, sources, false, each)?,
            OLD_PACKET => self.packet(content, sources, true, each)?,
            SIMPLE_PACKET => *timeless += 1,
            _ => {}
        }
        Ok(Some(end))
    }

    fn source(&self, content: &[u8], known: usize) -> Result<Source, String> {
        if known >= MOST_INTERFACES {
            return Err(format!(
                "too many interfaces; expected at most {MOST_INTERFACES}"
            ));
        }
        let fixed: &[u8; 8] = content
            .first_chunk()
            .ok_or("an interface of less than 8 bytes")?;
        let mut source = Source {
            name: String::new(),
            link_type: self.order.u16([fixed[0], fixed[1]]),
            resolution: Resolution::Decimal(6),
            offset_s: 0,
        };
        for (code, value) in self.options(&content[8..]) {
            match (code, value) {
                (IF_NAME, text) => source.name = String::from_utf8_lossy(text).into_owned(),
                (IF_TSRESOL, [exponent]) => {
                    let places = exponent & !BINARY;
                    source.resolution = if exponent & BINARY == 0 {
                        Resolution::Decimal(places)
                    } else {
                        Resolution::Binary(places)
                    };
                }
                (IF_TSOFFSET, value) => {
                    if let Ok(value) = value.try_into() {
                        source.offset_s = self.order.u64(value).cast_signed();
                    }
                }
                _ => {}
            }
        }
        Ok(source)
    }

    /// Reads an enhanced packet, or one of the older form, whose first field has 16 bits.
    fn packet(
        &self,
        content: &[u8],
        sources: &[Source],
        is_old: bool,
        each: &mut dyn FnMut(&[Source], Captured<'_>),
    ) -> Result<(), String> {
        let fixed: &[u8; PACKET] = content
            .first_chunk()
            .ok_or("a packet block without its fixed part")?;
        let field = |number: usize| self.order.field(fixed, 4 * number).unwrap_or_default();
        let number = if is_old {
            self.order.u16([fixed[0], fixed[1]]).into()
        } else {
            field(0)
        };
        let source = self.before + number as usize;
        let Some(of) = sources.get(source) else {
            return Err(format!(
                "a packet of interface {number}; the section has {}",
                sources.len() - self.before
            ));
        };
        let (kept, length) = (field(3), field(4));
        if kept > MOST_PACKET_BYTES {
            return Err(format!(
                "a packet of {kept} captured bytes; expected at most {MOST_PACKET_BYTES}"
            ));
        }
        let end = PACKET + kept as usize;
        let Some(data) = content.get(PACKET..end) else {
            return Err(format!(
                "a packet of {kept} captured bytes in a block that has room for {}",
                content.len() - PACKET
            ));
        };
        let mut captured = Captured {
            source,
            at: of.time(u64::from(field(1)) << 32 | u64::from(field(2))),
            length: length.max(kept),
            data,
            id: None,
            comment: None,
        };
        let options = content.get(end.next_multiple_of(4)..).unwrap_or_default();
        for (code, value) in self.options(options) {
            match code {
                COMMENT => captured.comment = std::str::from_utf8(value).ok(),
                EPB_PACKETID => {
                    captured.id = value.try_into().ok().map(|value| self.order.u64(value));
                }
                _ => {}
            }
        }
        each(sources, captured);
        Ok(())
    }

    /// Yields options up to the first that is incomplete.
    fn options<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> {
        let order = self.order;
        std::iter::from_fn(move || {
            let [a, b, c, d] = *bytes.first_chunk()?;
            let (code, length) = (order.u16([a, b]), usize::from(order.u16([c, d])));
            if code == END_OF_OPTIONS {
                return None;
            }
            let value = bytes.get(4..4 + length)?;
            bytes = bytes
                .get(4 + length.next_multiple_of(4)..)
                .unwrap_or_default();
            Some((code, value))
        })
    }
}
