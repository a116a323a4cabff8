//! Echo requests and replies: ICMP, and the same over UDP.
//!
//! # Source
//!
//! `ping`; irtt, which sends datagrams by the clock; netperf's `UDP_RR`, which has one request in
//! flight and sends the next when the reply has arrived. Old versions of netperf wait forever for a
//! lost reply; here a request is given up after a timeout.

use sojourn_net::{Bytes, Duration, Instant, Rng};

use crate::datagrams::{DatagramConfig, DatagramCounts, DatagramKind, DatagramSource};
use crate::report::PingSample;
use crate::wait::LONGEST;

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

/// Echo requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingConfig {
    /// When the next request is sent.
    pub pace: PingPace,
    /// Payload of a UDP request and of its reply; `None`: ICMP.
    pub payload: Option<Bytes>,
}

impl DatagramConfig for PingConfig {
    fn kind(&self) -> DatagramKind {
        self.payload
            .map_or(DatagramKind::IcmpEcho, DatagramKind::UdpEcho)
    }

    fn phase(&self) -> Duration {
        match self.pace {
            PingPace::Every(interval) => interval,
            PingPace::BackToBack { .. } => Duration::ZERO,
        }
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        let (PingPace::Every(time) | PingPace::BackToBack { timeout: time }) = self.pace;
        (time == Duration::ZERO || time > LONGEST)
            .then_some(("interval", "must be > 0 and at most one year"))
    }

    fn build(&self, now: Instant, _: &Rng) -> Box<dyn DatagramSource> {
        Box::new(Ping {
            started: now,
            pace: self.pace,
            requests: Vec::new(),
            before: 0,
        })
    }
}

/// Requests and the round-trip times of their replies.
#[derive(Debug)]
struct Ping {
    started: Instant,
    pace: PingPace,
    requests: Vec<PingSample>,
    /// Number of requests sent during the warm-up.
    before: usize,
}

impl DatagramSource for Ping {
    fn send(&mut self, now: Instant) -> (u32, Instant) {
        let number = u32::try_from(self.requests.len()).unwrap_or(u32::MAX);
        self.requests.push(PingSample {
            sent: now,
            rtt: None,
        });
        let (PingPace::Every(later) | PingPace::BackToBack { timeout: later }) = self.pace;
        (number, now + later)
    }

    fn due(&self) -> Option<Instant> {
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

    /// Duplicates are ignored.
    fn on_reply(&mut self, number: u32, rtt: Duration) {
        if let Some(request) = self.requests.get_mut(number as usize) {
            request.rtt.get_or_insert(rtt);
        }
    }

    fn begin_measuring(&mut self) {
        self.before = self.requests.len();
    }

    fn counts(&self) -> DatagramCounts {
        let measured = &self.requests[self.before..];
        DatagramCounts {
            sent: measured.len() as u64,
            received: measured.iter().filter(|p| p.rtt.is_some()).count() as u64,
        }
    }

    fn into_requests(self: Box<Self>) -> Vec<PingSample> {
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
        let ping = |pace| {
            let config = PingConfig {
                pace,
                payload: None,
            };
            config.build(at(5), &Rng::new(1))
        };
        let mut paced = ping(PingPace::BackToBack { timeout });
        assert_eq!(paced.due(), Some(at(5)));
        assert_eq!(paced.send(at(5)), (0, at(205)));
        assert_eq!(paced.due(), Some(at(205)));
        paced.on_reply(0, ms(30));
        paced.on_reply(0, ms(40));
        assert_eq!(paced.due(), Some(at(35)));
        assert_eq!(paced.into_requests()[0].rtt, Some(ms(30)));
        assert_eq!(ping(PingPace::Every(timeout)).due(), None);
    }

    #[test]
    fn only_requests_after_the_warm_up_are_counted() {
        let config = PingConfig {
            pace: PingPace::Every(Duration::from_millis(10)),
            payload: Some(Bytes(1)),
        };
        let mut ping = config.build(Instant::ZERO, &Rng::new(1));
        ping.send(Instant::ZERO);
        ping.begin_measuring();
        for n in 1..4 {
            ping.send(Instant::from_millis(10 * n));
        }
        for number in [0, 2] {
            ping.on_reply(number, Duration::from_millis(3));
        }
        let counts = ping.counts();
        assert_eq!((counts.sent, counts.received), (3, 1));
        assert_eq!(ping.into_requests().len(), 4);
    }
}
