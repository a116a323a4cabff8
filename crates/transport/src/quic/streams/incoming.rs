//! What has arrived, and how much more may.
//!
//! # Source
//!
//! RFC 9000 §2.2, §4.1, §4.2; `MAX_DATA` and `MAX_STREAM_DATA` are sent again when lost (§13.3).
//!
//! # Law
//!
//! ```text
//! limit            what the application has read, and a window
//! told             when it has risen by an eighth of the window, as in quinn-proto; of a stream whose end
//!                  has arrived no more
//! ```
//!
//! Windows stay as they are: no auto-tuning. Half of a window, which Chromium waits for, would halve what a
//! small one carries: the second half arrives while the news of the first is under way.

use std::collections::VecDeque;

use super::super::FlowControl;
use super::super::wire::{Frame, Limit};
use crate::ranges::RangeSet;

/// A limit that has risen by this part of the window is told.
const WORTH_TELLING: u64 = 8;

/// A direction of a stream, at its destination.
#[derive(Clone, Debug, Default)]
struct Sink {
    /// Everything below has arrived.
    delivered: u64,
    /// Everything below has been read.
    read: u64,
    /// The limit that the peer was told.
    max: u64,
    held: RangeSet<u64>,
    size: Option<u64>,
    /// It is in `due`.
    is_due: bool,
}

/// Whether the limit has risen enough since `told`, after `read` with this window.
const fn is_worth_telling(read: u64, told: u64, window: u64) -> bool {
    read + window - told >= window.div_ceil(WORTH_TELLING)
}

/// What an end has received.
#[derive(Clone, Debug)]
pub(in super::super) struct Incoming {
    streams: Vec<Sink>,
    pub(in super::super) delivered: u64,
    /// Streams received whole that nobody has asked for yet.
    finished: VecDeque<u16>,
    /// The application reads what arrives.
    reading: bool,
    windows: FlowControl,
    read: u64,
    /// The limit that the peer was told.
    max: u64,
    /// The peer is to be told of a higher one.
    is_due: bool,
    /// The same of streams.
    due: VecDeque<u16>,
}

impl Incoming {
    /// Of a connection whose peer knows that it begins with these limits.
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

    /// Takes a frame; data is handed over in order, each byte once.
    pub(in super::super) fn on_frame(&mut self, frame: &Frame) {
        let sink = self.stream(frame.id);
        let was_finished = sink.size == Some(sink.delivered);
        let end = frame.offset.saturating_add(frame.len.into());
        debug_assert!(end <= sink.max, "a peer that heeds no limit");
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
        debug_assert!(self.delivered <= self.max, "a peer that heeds no limit");
        if finished {
            self.finished.push_back(frame.id);
        }
        if self.reading && new > 0 {
            self.read(frame.id);
        }
    }

    /// The application reads all that it can of a stream.
    fn read(&mut self, id: u16) {
        let FlowControl { data, stream_data } = self.windows;
        let sink = self.stream(id);
        let new = sink.delivered - sink.read;
        sink.read = sink.delivered;
        let low = sink.size.is_none() && is_worth_telling(sink.read, sink.max, stream_data);
        if low && !sink.is_due {
            sink.is_due = true;
            self.due.push_back(id);
        }
        self.read += new;
        self.is_due |= is_worth_telling(self.read, self.max, data);
    }

    /// The application reads no more, or again.
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

    /// Whether the peer is to be told that it may send more.
    #[inline]
    pub(in super::super) fn has_due(&self) -> bool {
        self.is_due || !self.due.is_empty()
    }

    /// What it is to be told next.
    pub(in super::super) fn next_due(&mut self) -> Option<Limit> {
        if std::mem::take(&mut self.is_due) {
            self.max = Limit::tellable(self.read + self.windows.data).max(self.max);
            return Some(Limit::new(None, self.max));
        }
        while let Some(id) = self.due.pop_front() {
            let window = self.windows.stream_data;
            let sink = self.stream(id);
            sink.is_due = false;
            if sink.size.is_none() {
                sink.max = Limit::tellable(sink.read + window).max(sink.max);
                return Some(Limit::new(Some(id), sink.max));
            }
        }
        None
    }

    /// The peer may not have heard of this limit; if it was the last, it is told again.
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

    /// A stream that has arrived whole, each once.
    pub(in super::super) fn next_finished(&mut self) -> Option<u16> {
        self.finished.pop_front()
    }

    /// Bytes of a stream handed over.
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
