//! Echo requests and replies: ICMP, and the same over UDP.
//!
//! # Source
//!
//! `ping`; irtt, which sends datagrams by the clock; netperf's `UDP_RR`, which has one request in
//! flight and sends the next when the reply has arrived. Old versions of netperf wait forever for a
//! lost reply; here a request is given up after a timeout.

use sojourn_net::{Duration, Instant};

/// Shortest time from a reply to the next request of a host; ours. It bounds the number of requests.
const TURNAROUND: Duration = Duration::from_micros(100);

/// When the next request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingPace {
    /// By the clock; the first at a random point of the first interval.
    Every(Duration),
    /// When the previous reply has arrived, one request at a time.
    BackToBack {
        /// A request without a reply for this long is given up.
        timeout: Duration,
    },
}

/// One echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingSample {
    /// When it was sent.
    pub sent: Instant,
    /// Round-trip time; `None`: no reply within the run.
    pub rtt: Option<Duration>,
}

/// Requests and the round-trip times of their replies.
#[derive(Debug)]
pub struct Ping {
    started: Instant,
    pace: PingPace,
    requests: Vec<PingSample>,
}

impl Ping {
    /// No request sent yet.
    pub const fn new(now: Instant, pace: PingPace) -> Self {
        Self {
            started: now,
            pace,
            requests: Vec::new(),
        }
    }

    /// Number of the request to send now, and when the next one is due at the latest.
    pub fn send(&mut self, now: Instant) -> (u32, Instant) {
        let number = u32::try_from(self.requests.len()).unwrap_or(u32::MAX);
        self.requests.push(PingSample {
            sent: now,
            rtt: None,
        });
        let (PingPace::Every(later) | PingPace::BackToBack { timeout: later }) = self.pace;
        (number, now + later)
    }

    /// When the next request is due if replies pace them; `None`: the clock does.
    pub fn due(&self) -> Option<Instant> {
        let PingPace::BackToBack { timeout } = self.pace else {
            return None;
        };
        Some(match self.requests.last() {
            None => self.started,
            Some(PingSample { sent, rtt: None }) => *sent + timeout,
            Some(PingSample {
                sent,
                rtt: Some(rtt),
            }) => *sent + (*rtt).max(TURNAROUND),
        })
    }

    /// A reply has arrived. Duplicates are ignored.
    pub fn on_reply(&mut self, number: u32, rtt: Duration) {
        if let Some(request) = self.requests.get_mut(number as usize) {
            request.rtt.get_or_insert(rtt);
        }
    }

    /// All requests, in order.
    pub fn requests(&self) -> &[PingSample] {
        &self.requests
    }

    /// All requests, in order.
    pub fn into_requests(self) -> Vec<PingSample> {
        self.requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_request_follows_the_reply_or_the_timeout() {
        let (ms, at) = (Duration::from_millis, Instant::from_millis);
        let timeout = ms(200);
        let mut ping = Ping::new(at(5), PingPace::BackToBack { timeout });
        assert_eq!(ping.due(), Some(at(5)));
        assert_eq!(ping.send(at(5)), (0, at(205)));
        assert_eq!(ping.due(), Some(at(205)));
        ping.on_reply(0, ms(30));
        ping.on_reply(0, ms(40));
        assert_eq!(ping.due(), Some(at(35)));
        assert_eq!(ping.requests()[0].rtt, Some(ms(30)));
        let clock = Ping::new(at(5), PingPace::Every(timeout));
        assert_eq!(clock.due(), None);
    }
}
