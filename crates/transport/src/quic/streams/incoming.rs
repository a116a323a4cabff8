//! Received stream data, and the limits for the peer.
//!
//! # Source
//!
//! RFC 9000 §2.2, §4.1, §4.2; `MAX_DATA` and `MAX_STREAM_DATA` are sent again when lost (§13.3).
//!
//! # Law
//!
//! ```text
//! limit            what the application has read, plus the window
//! sent             when it has risen by an eighth of the window, as in quinn-proto; not for a stream
//!                  whose end has arrived
//! ```
//!
//! Windows are constant: no auto-tuning. Half of a window, which Chromium waits for, would halve the
//! throughput of a small one.

use std::collections::VecDeque;

use super::super::params::FlowControl;
use super::super::wire::{Frame, Limit};
use crate::ranges::RangeSet;

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
