//! Data of streams: what is to be sent, and what has arrived.
//!
//! Streams are numbered from 0 in the order in which they were opened; one number means both
//! directions. One flow-control window serves all, see `congestion`.

use std::collections::VecDeque;

use super::wire::Frame;
use crate::ranges::RangeSet;

/// Largest data of a frame that a datagram can name.
const LONGEST: usize = 0x7FFF;

/// A direction of a stream, at its source.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    written: u64,
    sent: u64,
    fin: bool,
    fin_sent: bool,
}

impl Source {
    const fn is_ready(&self) -> bool {
        self.sent < self.written || self.fin && !self.fin_sent
    }
}

/// What an end has to send.
#[derive(Clone, Debug, Default)]
pub(super) struct Outgoing {
    streams: Vec<Source>,
    /// Streams with data that has never been sent, each once; they take turns.
    ready: VecDeque<u16>,
    /// Frames to be sent again, oldest first.
    lost: VecDeque<Frame>,
    /// Frames sent whose fate is open.
    in_flight: u64,
}

impl Outgoing {
    /// Appends to a stream; `fin`: nothing follows.
    pub(super) fn write(&mut self, id: u16, bytes: u64, fin: bool) {
        let n = usize::from(id);
        if self.streams.len() <= n {
            self.streams.resize(n + 1, Source::default());
        }
        let stream = &mut self.streams[n];
        debug_assert!(!stream.fin, "a stream that has ended");
        let waits = stream.is_ready();
        stream.written = stream.written.saturating_add(bytes);
        stream.fin |= fin;
        if !waits && stream.is_ready() {
            self.ready.push_back(id);
        }
    }

    /// Whether there is anything to send, again or for the first time.
    pub(super) fn has_pending(&self) -> bool {
        !self.lost.is_empty() || !self.ready.is_empty()
    }

    /// Whether all that was written has been acknowledged.
    pub(super) fn is_done(&self) -> bool {
        !self.has_pending() && self.in_flight == 0
    }

    /// The next frame, its header and data `room` bytes at most, and whether it is sent again.
    pub(super) fn next(&mut self, room: usize) -> Option<(Frame, bool)> {
        if let Some(&frame) = self.lost.front() {
            let fits = data_room(frame.id, frame.offset, room)?;
            let now = usize::from(frame.len).min(fits);
            if now == usize::from(frame.len) {
                self.lost.pop_front();
            } else if now == 0 {
                return None;
            } else {
                let rest = &mut self.lost[0];
                rest.len -= len(now);
                rest.offset += now as u64;
            }
            self.in_flight += 1;
            let whole = now == usize::from(frame.len);
            let first = Frame {
                len: len(now),
                fin: frame.fin && whole,
                ..frame
            };
            return Some((first, true));
        }
        let id = *self.ready.front()?;
        let stream = &mut self.streams[usize::from(id)];
        let left = stream.written - stream.sent;
        let fits = data_room(id, stream.sent, room)?;
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(fits);
        if now == 0 && left > 0 {
            return None;
        }
        let frame = Frame {
            id,
            len: len(now),
            fin: stream.fin && now as u64 == left,
            offset: stream.sent,
        };
        stream.sent += now as u64;
        stream.fin_sent = frame.fin;
        self.ready.pop_front();
        if stream.is_ready() {
            self.ready.push_back(id);
        }
        self.in_flight += 1;
        Some((frame, false))
    }

    /// A frame has arrived.
    pub(super) const fn on_acked(&mut self) {
        self.in_flight -= 1;
    }

    /// A frame is to be sent again.
    pub(super) fn on_lost(&mut self, frame: Frame) {
        self.in_flight -= 1;
        self.lost.push_back(frame);
    }
}

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

/// A direction of a stream, at its destination.
#[derive(Clone, Debug, Default)]
struct Sink {
    /// Everything below has been handed over.
    delivered: u64,
    held: RangeSet<u64>,
    size: Option<u64>,
}

/// What an end has received.
#[derive(Clone, Debug, Default)]
pub(super) struct Incoming {
    streams: Vec<Sink>,
    pub(super) delivered: u64,
    /// Streams received whole that nobody has asked for yet.
    finished: VecDeque<u16>,
}

impl Incoming {
    /// Takes a frame; data is handed over in order, each byte once.
    pub(super) fn on_frame(&mut self, frame: &Frame) {
        let n = usize::from(frame.id);
        if self.streams.len() <= n {
            self.streams.resize(n + 1, Sink::default());
        }
        let sink = &mut self.streams[n];
        let was_finished = sink.size == Some(sink.delivered);
        let end = frame.offset.saturating_add(frame.len.into());
        if frame.fin {
            sink.size = Some(end);
        }
        if end > sink.delivered && frame.len > 0 {
            let before = sink.delivered;
            if frame.offset <= sink.delivered && sink.held.is_empty() {
                sink.delivered = end;
            } else {
                let start = frame.offset.max(sink.delivered);
                let run = sink.held.insert(start, end, |_, _| {});
                if run.0 <= sink.delivered {
                    sink.delivered = run.1;
                    sink.held.remove_below(run.1);
                }
            }
            self.delivered += sink.delivered - before;
        }
        if !was_finished && sink.size == Some(sink.delivered) {
            self.finished.push_back(frame.id);
        }
    }

    /// A stream that has arrived whole, each once.
    pub(super) fn next_finished(&mut self) -> Option<u16> {
        self.finished.pop_front()
    }

    /// Bytes of a stream handed over.
    pub(super) fn delivered(&self, id: u16) -> u64 {
        let sink = self.streams.get(usize::from(id));
        sink.map_or(0, |sink| sink.delivered)
    }

    /// Whether all of a stream has arrived.
    pub(super) fn is_finished(&self, id: u16) -> bool {
        let sink = self.streams.get(usize::from(id));
        sink.is_some_and(|sink| sink.size == Some(sink.delivered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Rng;

    #[test]
    fn streams_take_turns_and_all_of_them_arrive_once_whatever_is_lost() {
        let mut rng = Rng::new(1);
        let (mut out, mut inn) = (Outgoing::default(), Incoming::default());
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
                inn.streams.resize(6, Sink::default());
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
                        out.on_acked();
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
