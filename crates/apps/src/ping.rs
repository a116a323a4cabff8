//! Echo requests and replies: ICMP, and the same over UDP.
//!
//! # Source
//!
//! `ping`; irtt, which sends datagrams by the clock; netperf's `UDP_RR`, which has one request in
//! flight and sends the next when the reply has arrived. Old versions of netperf wait forever for a
//! lost reply; here a request is given up after a timeout.
//!
//! Those by the clock leave at equal intervals from a given phase; or, one in each interval, at
//! random times, so that no period of the traffic is sampled at the same point again and again
//! (RFC 2330, section 11.1; RFC 2681 asks for the same). One in each interval, as against Poisson
//! sampling, keeps their number and the time between the first and the last.

use sojourn_net::{Bytes, Duration, Instant, Rng};

use crate::datagrams::{DatagramConfig, DatagramKind, DatagramSource};
use crate::distributions::LONGEST;
use crate::phase::Phase;
use crate::report::PingSample;

/// The shortest time between two back-to-back requests; ours. It bounds the number of requests.
pub const TURNAROUND: Duration = Duration::from_micros(100);

/// When the next request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingPace {
    /// By the clock.
    Every {
        /// Time between requests.
        interval: Duration,
        /// Fixed: equal intervals, the first request after this time. Random: one request at a
        /// random time in each interval.
        phase: Phase,
    },
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

    fn datagrams(&self, time: Duration) -> u64 {
        self.most_datagrams(time, Duration::ZERO)
    }

    fn most_datagrams(&self, time: Duration, rtt: Duration) -> u64 {
        let interval = match self.pace {
            PingPace::Every { interval, .. } => interval,
            PingPace::BackToBack { timeout } => rtt.max(TURNAROUND).min(timeout),
        };
        time.as_nanos() / interval.as_nanos().max(1) + 1
    }

    fn phase(&self, rng: &mut Rng) -> Duration {
        match self.pace {
            PingPace::Every { interval, phase } => phase.draw(interval, rng),
            PingPace::BackToBack { .. } => Duration::ZERO,
        }
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        let (PingPace::Every { interval: time, .. } | PingPace::BackToBack { timeout: time }) =
            self.pace;
        (time == Duration::ZERO || time > LONGEST)
            .then_some(("interval", "must be > 0 and at most one year"))
    }

    fn build(&self, now: Instant, rng: &Rng) -> Box<dyn DatagramSource> {
        Box::new(Ping {
            started: now,
            pace: self.pace,
            rng: rng.fork("interval"),
            requests: Vec::new(),
        })
    }
}

/// Requests and the round-trip times of their replies.
#[derive(Debug)]
struct Ping {
    started: Instant,
    pace: PingPace,
    rng: Rng,
    requests: Vec<PingSample>,
}

impl DatagramSource for Ping {
    fn send(&mut self, now: Instant) -> Instant {
        self.requests.push(PingSample {
            sent: now,
            rtt: None,
        });
        match self.pace {
            PingPace::Every {
                interval,
                phase: Phase::Random,
            } => {
                let passed = interval.times(self.requests.len() as u64);
                self.started + passed + interval.scaled(self.rng.uniform())
            }
            PingPace::Every { interval, .. } => now + interval,
            PingPace::BackToBack { timeout } => now + timeout,
        }
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

    fn on_reply(&mut self, number: u32, rtt: Duration) -> bool {
        let request = self.requests.get_mut(number as usize);
        let unanswered = request.filter(|request| request.rtt.is_none());
        unanswered.map(|request| request.rtt = Some(rtt)).is_some()
    }

    fn requests(&self) -> &[PingSample] {
        &self.requests
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
        assert_eq!(paced.send(at(5)), at(205));
        assert_eq!(paced.due(), Some(at(205)));
        assert!(paced.on_reply(0, ms(30)));
        assert!(!paced.on_reply(0, ms(40)), "a duplicate");
        assert_eq!(paced.due(), Some(at(35)));
        assert_eq!(paced.into_requests()[0].rtt, Some(ms(30)));
        let every = |phase| PingPace::Every {
            interval: timeout,
            phase,
        };
        assert_eq!(ping(every(Phase::Random)).due(), None);
        let mut fixed = ping(every(Phase::Fixed(ms(5))));
        assert_eq!(fixed.send(at(5)), at(205));
        let mut random = ping(every(Phase::Random));
        let mut now = at(5);
        let mut places = Vec::new();
        for n in 1..1_000 {
            now = random.send(now);
            let slot = at(5) + timeout.times(n);
            assert!(slot <= now && now < slot + timeout, "one in each interval");
            places.push((now.as_secs_f64() - slot.as_secs_f64()) / timeout.as_secs_f64());
        }
        let mean = places.iter().sum::<f64>() / 999.0;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
    }
}
