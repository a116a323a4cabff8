//! Stream data: what is to be sent, and what was received.
//!
//! Streams are numbered from 0 in the order in which they were opened; one number means both
//! directions.

mod incoming;
mod outgoing;

pub(super) use incoming::Incoming;
pub(super) use outgoing::Outgoing;

#[cfg(test)]
mod tests {
    use super::super::params::FlowControl;
    use super::super::sizes::stream_header;
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
