//! Sizes of fields on the wire (RFC 9000 §16, §17, §19).

/// Largest data of a frame that a simulated datagram can carry.
pub(super) const MAX_FRAME_DATA: usize = 0x7FFF;

/// A length field, for frames that others follow.
pub(super) const LENGTH_FIELD: usize = 2;

/// Bytes of a variable-length integer (RFC 9000 §16).
#[inline]
pub(super) const fn varint(x: u64) -> usize {
    match x {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Bytes of a packet number (RFC 9000 §17.1).
#[inline]
pub(super) const fn packet_number(pn: u32, largest_acked: Option<u32>) -> usize {
    let away = match largest_acked {
        None => pn as u64 + 1,
        Some(largest) => (pn - largest) as u64,
    };
    match 2 * away {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x100_0000 => 3,
        _ => 4,
    }
}

/// Type, stream ID and offset of a STREAM frame.
#[inline]
pub(super) const fn stream_header(id: u16, offset: u64) -> usize {
    let offset = if offset == 0 { 0 } else { varint(offset) };
    1 + varint(4 * id as u64) + offset
}

/// Data that a STREAM frame of `room` bytes holds if nothing follows it; `None`: its header does not
/// fit.
pub(super) fn stream_data(id: u16, offset: u64, room: usize) -> Option<u16> {
    let data = room.checked_sub(stream_header(id, offset))?;
    u16::try_from(data.min(MAX_FRAME_DATA)).ok()
}
