//! Data of streams: what is to be sent, and what has arrived.
//!
//! Streams are numbered from 0 in the order in which they were opened; one number means both
//! directions.

mod incoming;
mod outgoing;

pub(super) use incoming::Incoming;
pub(super) use outgoing::Outgoing;

/// Largest data of a frame that a datagram can name.
const LONGEST: usize = 0x7FFF;

#[expect(clippy::cast_possible_truncation, reason = "limited to LONGEST before")]
const fn len(n: usize) -> u16 {
    n as u16
}

/// Bytes of a variable-length integer (RFC 9000 §16).
pub(super) const fn varint(x: u64) -> usize {
    match x {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Type, stream ID and offset of a STREAM frame.
pub(super) const fn stream_header(id: u16, offset: u64) -> usize {
    let offset = if offset == 0 { 0 } else { varint(offset) };
    1 + varint(4 * id as u64) + offset
}

/// A length field, for frames that others follow.
pub(super) const LENGTH_FIELD: usize = 2;

/// Data that a frame of `room` bytes holds if nothing follows it.
fn data_room(id: u16, offset: u64, room: usize) -> Option<usize> {
    let data = room.checked_sub(stream_header(id, offset))?;
    Some(data.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::super::FlowControl;
    use super::*;
    use sojourn_net::Rng;

    #[test]
    fn streams_take_turns_and_all_of_them_arrive_once_whatever_is_lost() {
        let mut rng = Rng::new(1);
        let flow = FlowControl::default();
        let (mut out, mut inn) = (Outgoing::new(&flow), Incoming::new(&flow));
        let sizes = [0_u64, 1, 5_000, 70_000, 1_300, 20_000];
        for (id, &size) in (0..).zip(&sizes) {
            out.write(id, size, true);
        }
        let mut order = Vec::new();
        let mut flying = Vec::new();
        while !out.is_done() {
            let room = 40 + usize::try_from(rng.below(1_400)).unwrap();
            if let Some((frame, again)) = out.next(room) {
                let size = stream_header(frame.id, frame.offset) + usize::from(frame.len);
                assert!(size <= room);
                if !again {
                    order.push(frame.id);
                }
                flying.push(frame);
            }
            if !flying.is_empty() && rng.below(2) == 0 {
                let pick = usize::try_from(rng.below(flying.len() as u64)).unwrap();
                let frame = flying.swap_remove(pick);
                match rng.below(4) {
                    0 => out.on_lost(frame),
                    1 => {
                        // Arrived, but the sender does not learn of it.
                        inn.on_frame(&frame);
                        out.on_lost(frame);
                    }
                    _ => {
                        inn.on_frame(&frame);
                        out.on_acked(1);
                    }
                }
            }
        }
        assert_eq!(order[..8], [0, 1, 2, 3, 4, 5, 2, 3]);
        for (id, &size) in (0..).zip(&sizes) {
            assert!(inn.is_finished(id), "stream {id}");
            assert_eq!(inn.delivered(id), size);
        }
        assert_eq!(inn.delivered, sizes.iter().sum::<u64>());
        let whole = std::iter::from_fn(|| inn.next_finished());
        assert_eq!(whole.count(), 6);
    }
}
