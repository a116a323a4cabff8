//! How fast the path delivers, for controllers that model it.
//!
//! # Source
//!
//! draft-cheng-iccrg-delivery-rate-estimation, as TCP has it here: the rate of the newest packet an
//! acknowledgement delivered is what was delivered since it left, over the longer of the times in
//! which that was sent and acknowledged. Packets of a connection's data count, each as one.

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant};

use crate::cc::RateSample;

/// What was known when a packet was sent.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    app_limited: bool,
    /// Packets in flight, with it, and packets lost by then.
    in_flight: u32,
    lost: u64,
}

/// The sampler of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// One for each packet that the space of application data remembers.
    stamps: VecDeque<Stamp>,
    pub(super) delivered: u64,
    pub(super) delivered_at: Instant,
    /// When the newest packet delivered was sent: the sending of the next sample begins there.
    first_sent: Instant,
    /// What was sent until so much is delivered was limited by the application; 0: it is not.
    app_limited: u64,
    /// The newest packet of the acknowledgement at hand, and when it was sent.
    newest: Option<(Stamp, Instant)>,
    pub(super) newly: u32,
}

impl Rates {
    /// A packet is sent while `in_flight` others are in flight, `first`: none of the data's, and
    /// after `lost` were.
    pub(super) fn on_sent(&mut self, now: Instant, first: bool, in_flight: u32, lost: u64) {
        if first {
            self.first_sent = now;
            self.delivered_at = now;
        }
        self.stamps.push_back(Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.is_app_limited(),
            in_flight: in_flight + 1,
            lost,
        });
    }

    /// The oldest packet is forgotten.
    pub(super) fn on_forgotten(&mut self) {
        self.stamps.pop_front();
    }

    /// The packet at `place`, sent at `sent`, was delivered.
    pub(super) fn on_acked(&mut self, now: Instant, place: usize, sent: Instant) {
        self.delivered += 1;
        self.newly += 1;
        self.delivered_at = now;
        if let Some(&stamp) = self.stamps.get(place)
            && self.newest.is_none_or(|(_, newest)| newest <= sent)
        {
            self.newest = Some((stamp, sent));
        }
    }

    /// The acknowledgement is read; `lost` have been by now. A rate over less than the least round trip is none.
    pub(super) fn finish(&mut self, least: Duration, lost: u64) -> Option<RateSample> {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let (stamp, sent) = self.newest.take()?;
        self.first_sent = sent;
        let sending = sent.saturating_since(stamp.first_sent);
        let acking = self.delivered_at.saturating_since(stamp.delivered_at);
        let interval = sending.max(acking);
        (interval >= least && interval > Duration::ZERO).then(|| RateSample {
            prior_delivered: stamp.delivered,
            delivered: self.delivered - stamp.delivered,
            interval_micros: interval.as_micros().max(1),
            app_limited: stamp.app_limited,
            in_flight_then: stamp.in_flight,
            lost_since: lost - stamp.lost,
        })
    }

    /// Nothing more to send: what is in flight now tells of the application.
    pub(super) fn limit_by_app(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    pub(super) const fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn the_rate_is_that_of_the_slower_of_sending_and_acknowledging() {
        let mut rates = Rates::default();
        for n in 0..4 {
            rates.on_sent(MS(10 * n), n == 0, 0, 0);
        }
        rates.on_acked(MS(100), 0, MS(0));
        let first = rates.finish(Duration::from_millis(100), 0).unwrap();
        assert_eq!((first.delivered, first.interval_micros), (1, 100_000));
        for n in 1..4 {
            rates.on_acked(MS(131), n, MS(10 * n as u64));
        }
        let rest = rates.finish(Duration::from_millis(100), 0).unwrap();
        assert_eq!((rest.delivered, rest.interval_micros), (4, 131_000));
        assert!(!rest.app_limited);
    }

    #[test]
    fn the_application_is_the_limit_until_its_last_flight_is_delivered() {
        let mut rates = Rates::default();
        rates.on_sent(MS(0), true, 7, 2);
        rates.limit_by_app(1);
        rates.on_sent(MS(1), false, 1, 2);
        rates.on_acked(MS(50), 0, MS(0));
        let first = rates.finish(Duration::ZERO, 5).unwrap();
        assert!(!first.app_limited);
        assert_eq!((first.in_flight_then, first.lost_since), (8, 3));
        rates.on_acked(MS(51), 1, MS(1));
        assert!(rates.finish(Duration::ZERO, 5).unwrap().app_limited);
        assert!(!rates.is_app_limited());
    }
}
