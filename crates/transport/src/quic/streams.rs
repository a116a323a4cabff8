//! Stream data: what is to be sent, and what was received.
//!
//! Streams are numbered from 0 in the order in which they were opened; one number means both
//! directions.

use std::collections::VecDeque;

use super::params::FlowControl;
use super::sizes::{MAX_FRAME_DATA, stream_data, stream_header};
use super::wire::{Frame, Limit};
use crate::ranges::RangeSet;

// Received stream data, and the limits for the peer.
//
// Source:
//
// RFC 9000 §2.2, §4.1, §4.2; `MAX_DATA` and `MAX_STREAM_DATA` are sent again when lost (§13.3).
//
// Law:
//
// ```text
// limit            what the application has read, plus the window
// sent             when it has risen by an eighth of the window, as in quinn-proto; not for a stream
//                  whose end has arrived
// ```
//
// Windows are constant: no auto-tuning. Half of a window, which Chromium waits for, would halve the
// throughput of a small one.

/// A limit is sent once it has risen by one part in this many of the window.
const UPDATE_FRACTION: u64 = 8;

/// The receiving side of a stream.
#[derive(Clone, Debug, Default)]
struct Sink {
    /// Everything below has arrived.
    delivered: u64,
    /// Everything below has been read.
    read: u64,
    /// The limit last sent to the peer.
    max: u64,
    held: RangeSet<u64>,
    size: Option<u64>,
    /// Its limit is in `due`.
    is_due: bool,
}

/// Whether the limit has risen enough above `announced`, `read` bytes having been read.
#[inline]
const fn is_update_due(read: u64, announced: u64, window: u64) -> bool {
    read + window - announced >= window.div_ceil(UPDATE_FRACTION)
}

/// All data that an end has received.
#[derive(Clone, Debug)]
pub(in super::super) struct Incoming {
    streams: Vec<Sink>,
    pub(in super::super) delivered: u64,
    /// Streams received completely and not yet returned by [`Incoming::next_finished`].
    finished: VecDeque<u16>,
    /// The application reads what arrives.
    reading: bool,
    windows: FlowControl,
    read: u64,
    /// The limit last sent to the peer.
    max: u64,
    /// A higher limit is to be sent.
    is_due: bool,
    /// Streams for which one is.
    due: VecDeque<u16>,
}

impl Incoming {
    /// The streams of a new connection with these initial limits.
    pub(in super::super) const fn new(windows: &FlowControl) -> Self {
        Self {
            streams: Vec::new(),
            delivered: 0,
            finished: VecDeque::new(),
            reading: true,
            windows: *windows,
            read: 0,
            max: windows.data,
            is_due: false,
            due: VecDeque::new(),
        }
    }

    fn stream(&mut self, id: u16) -> &mut Sink {
        let n = usize::from(id);
        if self.streams.len() <= n {
            let unopened = Sink {
                max: self.windows.stream_data,
                ..Sink::default()
            };
            self.streams.resize(n + 1, unopened);
        }
        &mut self.streams[n]
    }

    /// Does what [`Incoming::on_frame`] does with a frame that continues its stream and does not end it; else nothing.
    /// Returns whether it did.
    #[inline]
    pub(in super::super) fn take_next(&mut self, frame: &Frame) -> bool {
        let Some(sink) = self.streams.get_mut(usize::from(frame.id)) else {
            return false;
        };
        let continues = frame.offset == sink.delivered && sink.held.is_empty();
        let ends = frame.fin || sink.size.is_some();
        if !continues || ends || frame.len == 0 || !self.reading {
            return false;
        }
        let end = frame.offset + u64::from(frame.len);
        debug_assert!(end <= sink.max, "the peer exceeds a limit");
        sink.delivered = end;
        self.delivered += u64::from(frame.len);
        debug_assert!(self.delivered <= self.max, "the peer exceeds a limit");
        self.read += end - sink.read;
        sink.read = end;
        let FlowControl { data, stream_data } = self.windows;
        if is_update_due(end, sink.max, stream_data) && !sink.is_due {
            sink.is_due = true;
            self.due.push_back(frame.id);
        }
        self.is_due |= is_update_due(self.read, self.max, data);
        true
    }

    /// Processes a frame; data is delivered in order, each byte once.
    pub(in super::super) fn on_frame(&mut self, frame: &Frame) {
        let sink = self.stream(frame.id);
        let was_finished = sink.size == Some(sink.delivered);
        let end = frame.offset.saturating_add(frame.len.into());
        debug_assert!(end <= sink.max, "the peer exceeds a limit");
        if frame.fin {
            sink.size = Some(end);
        }
        let before = sink.delivered;
        if end > before && frame.len > 0 {
            if frame.offset <= before && sink.held.is_empty() {
                sink.delivered = end;
            } else {
                let start = frame.offset.max(before);
                let run = sink.held.insert(start, end, |_, _| {});
                if run.0 <= before {
                    sink.delivered = run.1;
                    sink.held.remove_below(run.1);
                }
            }
        }
        let new = sink.delivered - before;
        let finished = !was_finished && sink.size == Some(sink.delivered);
        self.delivered += new;
        debug_assert!(self.delivered <= self.max, "the peer exceeds a limit");
        if finished {
            self.finished.push_back(frame.id);
        }
        if self.reading && new > 0 {
            self.read(frame.id);
        }
    }

    /// The application reads all delivered data of a stream.
    fn read(&mut self, id: u16) {
        let FlowControl { data, stream_data } = self.windows;
        let sink = self.stream(id);
        let new = sink.delivered - sink.read;
        sink.read = sink.delivered;
        let low = sink.size.is_none() && is_update_due(sink.read, sink.max, stream_data);
        if low && !sink.is_due {
            sink.is_due = true;
            self.due.push_back(id);
        }
        self.read += new;
        self.is_due |= is_update_due(self.read, self.max, data);
    }

    /// The application stops or resumes reading.
    pub(in super::super) fn set_reading(&mut self, reading: bool) {
        self.reading = reading;
        if reading {
            for n in 0..self.streams.len() {
                if let Ok(id) = u16::try_from(n) {
                    self.read(id);
                }
            }
        }
    }

    /// Whether a higher limit is to be sent.
    #[inline]
    pub(in super::super) fn has_due(&self) -> bool {
        self.is_due || !self.due.is_empty()
    }

    /// The next limit to send.
    pub(in super::super) fn next_due(&mut self) -> Option<Limit> {
        if std::mem::take(&mut self.is_due) {
            self.max = Limit::encodable(self.read + self.windows.data).max(self.max);
            return Some(Limit::new(None, self.max));
        }
        while let Some(id) = self.due.pop_front() {
            let window = self.windows.stream_data;
            let sink = self.stream(id);
            sink.is_due = false;
            if sink.size.is_none() {
                sink.max = Limit::encodable(sink.read + window).max(sink.max);
                return Some(Limit::new(Some(id), sink.max));
            }
        }
        None
    }

    /// The packet with this limit was lost; if it is still current, it is sent again.
    pub(in super::super) fn on_limit_lost(&mut self, limit: Limit) {
        let Some(id) = limit.stream else {
            self.is_due |= limit.bytes == self.max;
            return;
        };
        let sink = self.stream(id);
        if limit.bytes == sink.max && !sink.is_due {
            sink.is_due = true;
            self.due.push_back(id);
        }
    }

    /// Whether a stream has arrived completely and has not been returned.
    #[inline]
    pub(in super::super) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// A stream that has arrived completely; each is returned once.
    pub(in super::super) fn next_finished(&mut self) -> Option<u16> {
        self.finished.pop_front()
    }

    /// Bytes of a stream delivered.
    pub(in super::super) fn delivered(&self, id: u16) -> u64 {
        let sink = self.streams.get(usize::from(id));
        sink.map_or(0, |sink| sink.delivered)
    }

    /// Whether all of a stream has arrived.
    pub(in super::super) fn is_finished(&self, id: u16) -> bool {
        let sink = self.streams.get(usize::from(id));
        sink.is_some_and(|sink| sink.size == Some(sink.delivered))
    }
}

// Stream data to send, within the limits of the peer.
//
// Source:
//
// RFC 9000 §2.2, §4.1; blocked frames: §19.12, §19.13.
//
// Law:
//
// ```text
// new data     of a stream up to MAX_STREAM_DATA, of all streams together up to MAX_DATA;
//              retransmissions use no credit
// blocked      a frame once per limit, again when that is lost or nothing else is in flight for long
// ```

/// The sending side of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    written: u64,
    sent: u64,
    /// `MAX_STREAM_DATA`.
    max: u64,
    fin: bool,
    fin_sent: bool,
}

impl Source {
    const fn is_ready(&self) -> bool {
        self.has_data() || self.fin && !self.fin_sent
    }

    const fn has_data(&self) -> bool {
        self.sent < self.written
    }

    /// Whether its limit blocks all of its data.
    const fn is_blocked(&self) -> bool {
        self.has_data() && self.sent >= self.max
    }
}

/// All data that an end has to send.
#[derive(Clone, Debug)]
pub(in super::super) struct Outgoing {
    streams: Vec<Source>,
    /// Streams that may send, in round-robin order.
    ready: VecDeque<u16>,
    /// Streams with data that their limit blocks.
    blocked: u32,
    /// Lost frames to retransmit, oldest first.
    lost: VecDeque<Frame>,
    /// Frames sent that are neither acknowledged nor lost.
    in_flight: u64,
    /// `MAX_DATA`, and what has been sent of it.
    max: u64,
    sent: u64,
    /// The initial `MAX_STREAM_DATA` of a stream.
    stream_max: u64,
    /// Streams for which a blocked frame is to be sent, unless they no longer are.
    unannounced: VecDeque<u16>,
    /// The `MAX_DATA` for which `DATA_BLOCKED` was sent.
    announced: Option<u64>,
}

impl Outgoing {
    /// The streams of a new connection with these initial limits.
    pub(in super::super) const fn new(flow: &FlowControl) -> Self {
        Self {
            streams: Vec::new(),
            ready: VecDeque::new(),
            blocked: 0,
            lost: VecDeque::new(),
            in_flight: 0,
            max: flow.data,
            sent: 0,
            stream_max: flow.stream_data,
            unannounced: VecDeque::new(),
            announced: None,
        }
    }

    fn stream(&mut self, id: u16) -> &mut Source {
        let n = usize::from(id);
        if self.streams.len() <= n {
            let unopened = Source {
                max: self.stream_max,
                ..Source::default()
            };
            self.streams.resize(n + 1, unopened);
        }
        &mut self.streams[n]
    }

    /// Appends to a stream; `fin`: nothing follows.
    pub(in super::super) fn write(&mut self, id: u16, bytes: u64, fin: bool) {
        let stream = self.stream(id);
        debug_assert!(!stream.fin, "data after the end of a stream");
        let waits = stream.is_ready();
        stream.written = stream.written.saturating_add(bytes);
        stream.fin |= fin;
        if !waits && stream.is_ready() {
            self.queue(id);
        }
    }

    /// Bytes of a stream that have not been sent for the first time.
    pub(in super::super) fn unsent(&self, id: u16) -> u64 {
        let stream = self.streams.get(usize::from(id));
        stream.map_or(0, |stream| stream.written - stream.sent)
    }

    /// A stream has something to send.
    fn queue(&mut self, id: u16) {
        if self.streams[usize::from(id)].is_blocked() {
            self.blocked += 1;
            self.unannounced.push_back(id);
        } else {
            self.ready.push_back(id);
        }
    }

    /// Whether there is anything to send that no limit blocks.
    #[inline]
    pub(in super::super) fn has_pending(&self) -> bool {
        !self.lost.is_empty() || self.next_ready().is_some()
    }

    /// Whether all that was written has been acknowledged.
    pub(in super::super) fn is_done(&self) -> bool {
        self.lost.is_empty() && self.ready.is_empty() && self.blocked == 0 && self.in_flight == 0
    }

    /// The place in `ready` of the next stream that may send.
    #[inline]
    fn next_ready(&self) -> Option<usize> {
        if self.sent < self.max {
            return (!self.ready.is_empty()).then_some(0);
        }
        self.next_fin()
    }

    /// The place in `ready` of the next stream that has only its end to send: a FIN without data uses no credit.
    #[inline(never)]
    fn next_fin(&self) -> Option<usize> {
        self.ready
            .iter()
            .position(|&id| !self.streams[usize::from(id)].has_data())
    }

    /// Whether `MAX_DATA` blocks data.
    #[inline]
    fn is_connection_blocked(&self) -> bool {
        self.sent >= self.max
            && self
                .ready
                .iter()
                .any(|&id| self.streams[usize::from(id)].has_data())
    }

    /// Whether any limit blocks data.
    #[inline]
    pub(in super::super) fn is_blocked(&self) -> bool {
        self.blocked > 0 || self.is_connection_blocked()
    }

    /// Whether a blocked frame is to be sent.
    #[inline]
    pub(in super::super) fn has_notice(&self) -> bool {
        !self.unannounced.is_empty()
            || self.announced != Some(self.max) && self.is_connection_blocked()
    }

    /// The next blocked frame to send.
    pub(in super::super) fn next_notice(&mut self) -> Option<Limit> {
        if self.announced != Some(self.max) && self.is_connection_blocked() {
            self.announced = Some(self.max);
            return Some(Limit::blocked(None, self.max));
        }
        while let Some(id) = self.unannounced.pop_front() {
            let stream = &self.streams[usize::from(id)];
            if stream.is_blocked() {
                return Some(Limit::blocked(Some(id), stream.max));
            }
        }
        None
    }

    /// The packet with this blocked frame was lost.
    pub(in super::super) fn on_notice_lost(&mut self, limit: Limit) {
        match limit.stream {
            None if self.announced == Some(limit.bytes) => self.announced = None,
            None => {}
            Some(id) => self.unannounced.push_back(id),
        }
    }

    /// Nothing is in flight and the peer sends nothing: blocked frames are repeated.
    pub(in super::super) fn repeat_notices(&mut self) {
        self.announced = None;
        let blocked = self.streams.iter().position(Source::is_blocked);
        if let Some(id) = blocked.and_then(|n| u16::try_from(n).ok()) {
            self.unannounced.push_back(id);
        }
    }

    /// The peer allows more of a stream, or of all together.
    pub(in super::super) fn on_limit(&mut self, limit: Limit) {
        let Some(id) = limit.stream else {
            self.max = self.max.max(limit.bytes);
            return;
        };
        let stream = self.stream(id);
        if limit.bytes <= stream.max {
            return;
        }
        let waited = stream.is_blocked();
        stream.max = limit.bytes;
        if waited {
            self.blocked -= 1;
            self.ready.push_back(id);
        }
    }

    /// The next frame if it fills `room` bytes, no limit is reached and no other stream has anything to send, as
    /// [`Outgoing::next`] returns it. `None` changes nothing.
    #[inline]
    pub(in super::super) fn next_full(&mut self, room: usize) -> Option<Frame> {
        if !self.lost.is_empty() || self.ready.len() != 1 {
            return None;
        }
        let id = *self.ready.front()?;
        let stream = self.streams.get_mut(usize::from(id))?;
        let offset = stream.sent;
        let data = room.checked_sub(stream_header(id, offset))?;
        if data == 0 || data > MAX_FRAME_DATA {
            return None;
        }
        let len = u16::try_from(data).ok()?;
        // The stream stays the one to send next.
        let sent = self.sent + u64::from(len);
        let end = offset + u64::from(len);
        if end >= stream.written || end >= stream.max || sent >= self.max {
            return None;
        }
        stream.sent = end;
        self.sent = sent;
        self.in_flight += 1;
        Some(Frame {
            id,
            len,
            fin: false,
            offset,
        })
    }

    /// The next frame, its header and data `room` bytes at most, and whether it is a retransmission.
    pub(in super::super) fn next(&mut self, room: usize) -> Option<(Frame, bool)> {
        if let Some(&frame) = self.lost.front() {
            return self.next_lost(frame, room);
        }
        let place = self.next_ready()?;
        let id = self.ready[place];
        let credit = self.max - self.sent;
        let stream = &mut self.streams[usize::from(id)];
        let left = stream.written - stream.sent;
        let allowed = left.min(stream.max - stream.sent).min(credit);
        let fits = stream_data(id, stream.sent, room)?;
        let now = u16::try_from(allowed).unwrap_or(u16::MAX).min(fits);
        if now == 0 && left > 0 {
            return None;
        }
        let frame = Frame {
            id,
            len: now,
            fin: stream.fin && u64::from(now) == left,
            offset: stream.sent,
        };
        stream.sent += u64::from(now);
        stream.fin_sent = frame.fin;
        let more = stream.is_ready();
        self.sent += u64::from(now);
        if place == 0 {
            self.ready.pop_front();
        } else {
            self.ready.remove(place);
        }
        if more {
            self.queue(id);
        }
        self.in_flight += 1;
        Some((frame, false))
    }

    fn next_lost(&mut self, frame: Frame, room: usize) -> Option<(Frame, bool)> {
        let fits = stream_data(frame.id, frame.offset, room)?;
        let now = frame.len.min(fits);
        if now == frame.len {
            self.lost.pop_front();
        } else if now == 0 {
            return None;
        } else {
            let rest = &mut self.lost[0];
            rest.len -= now;
            rest.offset += u64::from(now);
        }
        self.in_flight += 1;
        let whole = now == frame.len;
        let first = Frame {
            len: now,
            fin: frame.fin && whole,
            ..frame
        };
        Some((first, true))
    }

    /// `frames` were acknowledged.
    #[inline]
    pub(in super::super) const fn on_acked(&mut self, frames: u32) {
        self.in_flight -= frames as u64;
    }

    /// A frame was lost: it is sent again.
    pub(in super::super) fn on_lost(&mut self, frame: Frame) {
        self.in_flight -= 1;
        self.lost.push_back(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::FlowControl;
    use super::*;
    use crate::quic::sizes::stream_header;
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
