//! How fast the path delivers, measured on each acknowledgement.
//!
//! # Source
//!
//! draft-cheng-iccrg-delivery-rate-estimation-02 (now §4.1 of draft-ietf-ccwg-bbr), as Linux 6.1.
//!
//! # Law
//!
//! Each transmission remembers how much had been delivered by then and when the last of it was.
//! Of the segments an acknowledgement delivers the one sent last gives the sample:
//!
//! ```text
//! delivered = delivered now - delivered when it was sent
//! interval  = max(time to send that much, time to acknowledge it)
//! ```
//!
//! A sample over less than the minimum RTT is none. Samples of segments sent while the application
//! had nothing more to send are marked so: they tell of it, not of the path.
//!
//! What is remembered lies beside the scoreboard, and only connections whose controller asks for
//! rates have it.

use std::collections::VecDeque;

use sojourn_net::Instant;

use crate::cc::RateSample;

/// What a transmission remembers.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    /// Send time of the most recently delivered segment, or of the flight's first.
    first_sent: Instant,
    delivered_at: Instant,
    app_limited: bool,
    standing: Standing,
}

/// Where the connection stands as a segment leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// Segments delivered.
    pub(super) delivered: u64,
    /// Segments deemed lost.
    pub(super) lost: u64,
    /// Segments in flight, with it.
    pub(super) in_flight: u32,
}

/// The segment sent last of those an acknowledgement delivers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    end_seq: u32,
    stamp: Stamp,
    /// Time it took to send, in µs.
    send_micros: u64,
}

/// The estimator of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    /// One for each segment on the scoreboard.
    stamps: VecDeque<Stamp>,
    first_sent: Instant,
    delivered_at: Instant,
    /// Samples are the application's until so much has been delivered; 0: they are not.
    app_limited: u64,
    newest: Option<Newest>,
}

impl Sampler {
    /// A new segment leaves; `idle`: nothing else is outstanding.
    pub(super) fn on_sent(&mut self, now: Instant, standing: Standing, idle: bool) {
        let stamp = self.stamp(now, standing, idle);
        self.stamps.push_back(stamp);
    }

    /// The segment `index` places behind the first outstanding one leaves again.
    pub(super) fn on_resent(&mut self, now: Instant, standing: Standing, index: u32) {
        self.stamps[index as usize] = self.stamp(now, standing, false);
    }

    fn stamp(&mut self, now: Instant, standing: Standing, idle: bool) -> Stamp {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        Stamp {
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            app_limited: self.app_limited > 0,
            standing,
        }
    }

    /// An acknowledgement begins.
    pub(super) const fn begin(&mut self) {
        self.newest = None;
    }

    /// The segment `index` places behind the first outstanding one, sent last at `sent`, is held.
    pub(super) fn on_held(&mut self, index: u32, sent: Instant, end_seq: u32) {
        let stamp = self.stamps[index as usize];
        self.note(stamp, sent, end_seq);
    }

    /// The first outstanding segment leaves the board; `fresh`: its delivery is news.
    pub(super) fn on_acked(&mut self, sent: Instant, end_seq: u32, fresh: bool) {
        if let Some(stamp) = self.stamps.pop_front()
            && fresh
        {
            self.note(stamp, sent, end_seq);
        }
    }

    fn note(&mut self, stamp: Stamp, sent: Instant, end_seq: u32) {
        let newer = self
            .newest
            .is_none_or(|n| (sent, end_seq) > (self.first_sent, n.end_seq));
        if newer {
            self.newest = Some(Newest {
                end_seq,
                stamp,
                send_micros: sent.saturating_since(stamp.first_sent).as_micros(),
            });
            self.first_sent = sent;
        }
    }

    /// The acknowledgement is read: `newly` segments it delivered; `total`: how many are delivered
    /// and lost by now.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        newly: u32,
        total: (u64, u64),
        min_rtt: u32,
    ) -> Option<RateSample> {
        let (delivered, lost) = total;
        if self.app_limited > 0 && delivered > self.app_limited {
            self.app_limited = 0;
        }
        if newly > 0 {
            self.delivered_at = now;
        }
        let newest = self.newest?;
        let ack_micros = now.since(newest.stamp.delivered_at).as_micros();
        let interval = newest.send_micros.max(ack_micros);
        let then = newest.stamp.standing;
        (interval >= u64::from(min_rtt)).then(|| RateSample {
            prior_delivered: then.delivered,
            delivered: delivered - then.delivered,
            interval_micros: interval,
            app_limited: newest.stamp.app_limited,
            in_flight_then: then.in_flight,
            lost_since: lost - then.lost,
        })
    }

    /// Nothing more to send: what is in flight now tells of the application.
    pub(super) fn limit_by_app(&mut self, delivered: u64, in_flight: u32) {
        self.app_limited = (delivered + u64::from(in_flight)).max(1);
    }

    pub(super) const fn app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Time of the most recent delivery.
    pub(super) const fn delivered_at(&self) -> Instant {
        self.delivered_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn at(delivered: u64) -> Standing {
        Standing {
            delivered,
            ..Standing::default()
        }
    }

    #[test]
    fn a_sample_tells_what_was_in_flight_and_what_was_lost_since() {
        let mut s = Sampler::default();
        let then = Standing {
            delivered: 5,
            lost: 2,
            in_flight: 9,
        };
        s.on_sent(ms(0), then, true);
        s.begin();
        s.on_acked(ms(0), 1, true);
        let sample = s.finish(ms(100), 1, (6, 5), 1).unwrap();
        assert_eq!((sample.in_flight_then, sample.lost_since), (9, 3));
    }

    #[test]
    fn the_rate_is_that_of_the_slower_of_sending_and_acknowledging() {
        let mut s = Sampler::default();
        s.on_sent(ms(0), at(1), true);
        for n in 1..4 {
            s.on_sent(ms(10 * n), at(1), false);
        }
        // Sent 10 ms apart, acknowledged together: three in the 30 ms they took to send.
        s.begin();
        s.on_acked(ms(0), 1, true);
        let first = s.finish(ms(100), 1, (2, 0), 100_000).unwrap();
        assert_eq!((first.delivered, first.interval_micros), (1, 100_000));
        s.begin();
        for n in 1..4 {
            s.on_acked(ms(10 * n), u32::try_from(n).unwrap() + 1, true);
        }
        let rest = s.finish(ms(131), 3, (5, 0), 100_000).unwrap();
        // All were sent before anything was delivered: four since then.
        assert_eq!((rest.delivered, rest.interval_micros), (4, 131_000));
    }

    #[test]
    fn a_sample_over_less_than_the_minimum_rtt_is_none() {
        let mut s = Sampler::default();
        s.on_sent(ms(0), at(1), true);
        s.begin();
        s.on_acked(ms(0), 1, true);
        assert!(s.finish(ms(99), 1, (2, 0), 100_000).is_none());
    }

    #[test]
    fn a_retransmission_counts_from_its_own_sending() {
        let mut s = Sampler::default();
        s.on_sent(ms(0), at(1), true);
        s.on_sent(ms(0), at(1), false);
        s.begin();
        s.on_held(1, ms(0), 2);
        s.finish(ms(100), 1, (2, 0), 1).unwrap();
        s.on_resent(ms(100), at(2), 0);
        s.begin();
        s.on_acked(ms(100), 1, true);
        s.on_acked(ms(0), 2, false);
        let sample = s.finish(ms(200), 1, (3, 0), 1).unwrap();
        assert_eq!((sample.prior_delivered, sample.delivered), (2, 1));
        assert_eq!(sample.interval_micros, 100_000);
    }

    #[test]
    fn the_application_is_the_limit_until_its_last_flight_is_delivered() {
        let mut s = Sampler::default();
        s.limit_by_app(1, 1);
        s.on_sent(ms(0), at(1), true);
        s.begin();
        s.on_acked(ms(0), 1, true);
        assert!(s.finish(ms(1), 1, (2, 0), 1).unwrap().app_limited);
        s.on_sent(ms(2), at(2), true);
        s.begin();
        s.on_acked(ms(2), 2, true);
        assert!(s.finish(ms(3), 1, (3, 0), 1).unwrap().app_limited);
        assert!(!s.app_limited());
    }
}
