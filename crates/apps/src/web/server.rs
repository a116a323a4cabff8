//! The server of a connection: the order in which it sends responses.

use std::collections::VecDeque;

use super::Http;
use crate::contract::{AppOutput, Command, Side};
use crate::demand::Volume;

/// Payload of a frame: the least that every HTTP/2 client accepts, and the most unless it says so.
const FRAME: u64 = 16_384;
const FRAME_HEADER: u64 = 9;
/// A server writes so much ahead of TCP, and again when no more than this is unsent.
const AHEAD: u64 = 32_768;
const LOW: u64 = 16_384;

/// `responses` of `bytes` in total over HTTP/2, each frame written on its own.
pub(super) const fn in_frames(responses: u64, bytes: u64) -> Volume {
    let frames = (bytes / FRAME).saturating_add(responses);
    Volume {
        bytes: bytes.saturating_add(frames.saturating_mul(FRAME_HEADER)),
        messages: frames,
    }
}

#[derive(Debug)]
pub(super) struct Serving {
    http: Http,
    /// Responses not written to their end: the object, and what is left of it.
    turn: VecDeque<(u32, u64)>,
    /// Bytes written in all.
    written: u64,
    /// Where the last byte of each response written to its end is.
    ends: VecDeque<(u64, u32)>,
    /// What the client was last said to expect.
    expected: u64,
    /// Written since there was room.
    ahead: u64,
}

impl Serving {
    pub(crate) fn new(http: Http) -> Self {
        Self {
            http,
            turn: VecDeque::with_capacity(http.initial_capacity()),
            written: 0,
            ends: VecDeque::with_capacity(http.initial_capacity()),
            expected: 0,
            ahead: 0,
        }
    }

    /// Sends the server's flight of TLS.
    pub(super) fn greet(&mut self, n: u32, flight: u64, out: &mut AppOutput) {
        self.written = flight;
        self.expected = flight;
        out.write(n, Side::Server, flight);
        out.push(Command::Expect(n, Side::Client, flight));
    }

    /// A response is ready.
    pub(super) fn add(&mut self, object: u32, bytes: u64) {
        self.turn.push_back((object, bytes));
    }

    pub(super) const fn on_room(&mut self) {
        self.ahead = 0;
    }

    /// Writes what may be written.
    pub(super) fn send(&mut self, n: u32, out: &mut AppOutput) {
        let before = self.written;
        match self.http {
            // Streams of HTTP/3 need nobody who puts responses in turn.
            Http::One | Http::Three => {
                while let Some((object, bytes)) = self.turn.pop_front() {
                    self.written += bytes;
                    self.ends.push_back((self.written, object));
                }
            }
            Http::Two => self.write_frames(),
        }
        if self.written > before {
            out.write(n, Side::Server, self.written - before);
            self.expect(n, out);
            if self.http == Http::Two {
                out.push(Command::ExpectWritable(n, LOW));
            }
        }
    }

    /// A frame of each response in turn.
    fn write_frames(&mut self) {
        while self.ahead < AHEAD
            && let Some((object, left)) = self.turn.pop_front()
        {
            let payload = left.min(FRAME);
            self.written += FRAME_HEADER + payload;
            self.ahead += FRAME_HEADER + payload;
            if payload == left {
                self.ends.push_back((self.written, object));
            } else {
                self.turn.push_back((object, left - payload));
            }
        }
    }

    /// The next response that ends within the first `bytes`.
    pub(super) fn next_whole(&mut self, bytes: u64) -> Option<u32> {
        let &(end, object) = self.ends.front()?;
        (end <= bytes).then(|| {
            self.ends.pop_front();
            object
        })
    }

    /// Requests an event when the client has received the next complete response.
    pub(super) fn expect(&mut self, n: u32, out: &mut AppOutput) {
        if let Some(&(end, _)) = self.ends.front()
            && end != self.expected
        {
            self.expected = end;
            out.push(Command::Expect(n, Side::Client, end));
        }
    }
}
