//! Stream data to send, within the limits of the peer.
//!
//! # Source
//!
//! RFC 9000 §2.2, §4.1; blocked frames: §19.12, §19.13.
//!
//! # Law
//!
//! ```text
//! new data     of a stream up to MAX_STREAM_DATA, of all streams together up to MAX_DATA;
//!              retransmissions use no credit
//! blocked      a frame once per limit, again when that is lost or nothing else is in flight for long
//! ```

use std::collections::VecDeque;

use super::super::params::FlowControl;
use super::super::sizes::{MAX_FRAME_DATA, stream_data, stream_header};
use super::super::wire::{Frame, Limit};

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
