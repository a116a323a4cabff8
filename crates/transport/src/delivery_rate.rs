//! The delivery-rate sampler of TCP and QUIC.
//!
//! # Source
//!
//! draft-cheng-iccrg-delivery-rate-estimation-02 (now §4.1 of draft-ietf-ccwg-bbr), with the order of
//! packets and the application limit of `net/ipv4/tcp_rate.c` in Linux 6.1. Fields have the draft's names.
//!
//! # Law
//!
//! Each packet P keeps the state of its connection C at the time of its last transmission. Of the packets
//! that an acknowledgement delivers, the one sent last gives the sample:
//!
//! ```text
//! delivered    = C.delivered - P.delivered
//! send_elapsed = P.sent_time - P.first_sent_time
//! ack_elapsed  = C.delivered_time - P.delivered_time
//! interval     = max(send_elapsed, ack_elapsed)
//! ```
//!
//! There is no sample if the interval is shorter than the minimum RTT. Samples of packets sent while the
//! application had nothing more to send are marked: they may be below the capacity of the path.
//!
//! # Differences between TCP and QUIC
//!
//! The arithmetic is the same. Callers choose three arguments:
//!
//! | argument | TCP | QUIC |
//! |---|---|---|
//! | `delivered` of [`Totals`] | segments, with the SYN and DSACKs | ack-eliciting application packets |
//! | `order` | sequence number, as `tcp_skb_sent_after` | all equal |
//! | `min_rtt` | whole µs, at least 1 | ns |
//! | `without_rtt` | invalid: Linux begins with the longest minimum RTT | valid: any interval above 0 |
//!
//! `order` decides which of several packets sent at one instant gives the sample. Over QUIC it is the one
//! read last, and an ACK frame lists its highest range first.

use std::num::NonZeroU64;

use sojourn_net::{Duration, Instant};

use crate::cc::{LostSegment, RateSample};
use crate::ring::Ring;

/// What a connection has counted up to now, in segments or packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Delivered (`C.delivered`).
    pub(crate) delivered: u64,
    /// Declared lost (`C.lost`).
    pub(crate) lost: u64,
}

/// What a sample is worth before the minimum RTT is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithoutRtt {
    /// It is valid, however short its interval.
    Valid,
    /// It is not valid, however long its interval.
    Invalid,
}

/// The state of the connection when a packet was sent (the draft's `P`).
#[derive(Clone, Copy, Debug, Default)]
struct PacketState {
    delivered: u64,
    delivered_time: Instant,
    first_sent_time: Instant,
    lost: u64,
    /// Packets in flight, this one included.
    tx_in_flight: u32,
    is_app_limited: bool,
}

/// The packet sent last of those that the current acknowledgement delivers.
///
/// Its send time is [`DeliveryRateSampler::first_sent_time`].
#[derive(Clone, Copy, Debug)]
struct Newest {
    packet: PacketState,
    send_elapsed: Duration,
    order: u32,
}

/// The sampler of one connection with a model-based controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRateSampler {
    /// One per packet that the connection tracks, in order of sequence numbers.
    packets: Ring<PacketState>,
    /// When the newest packet delivered was sent, or the first one of a flight: the send interval of the
    /// next sample begins there.
    first_sent_time: Instant,
    delivered_time: Instant,
    /// Samples are limited by the application until more than this is delivered.
    app_limited: Option<NonZeroU64>,
    newest: Option<Newest>,
    /// The controller does not use delivery rates: packets are not tracked, and there are no samples.
    is_limit_only: bool,
}

impl DeliveryRateSampler {
    /// A sampler that only knows whether the application limits sending, for a controller that does not use
    /// delivery rates.
    pub(crate) fn without_samples() -> Self {
        Self {
            is_limit_only: true,
            ..Self::default()
        }
    }

    /// A packet is sent for the first time. `in_flight` includes it; `idle`: no other is in flight.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, totals: Totals, in_flight: u32, idle: bool) {
        self.on_sent_run(now, totals, (in_flight, 1), idle);
    }

    /// The same for a number of packets that are sent together; `in_flight` is with the first of them.
    #[inline]
    pub(crate) fn on_sent_run(
        &mut self,
        now: Instant,
        totals: Totals,
        (in_flight, count): (u32, u32),
        idle: bool,
    ) {
        if self.is_limit_only {
            return;
        }
        if idle {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        let mut packet = self.packet_state(totals, in_flight);
        for _ in 0..count {
            self.packets.push(packet);
            packet.tx_in_flight += 1;
        }
    }

    /// The packet `index` places behind the first one tracked is retransmitted. `in_flight` includes it.
    #[inline]
    pub(crate) fn on_resent(&mut self, totals: Totals, in_flight: u32, index: u32) {
        if !self.is_limit_only {
            self.packets[index] = self.packet_state(totals, in_flight);
        }
    }

    #[inline]
    const fn packet_state(&self, totals: Totals, in_flight: u32) -> PacketState {
        PacketState {
            delivered: totals.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            lost: totals.lost,
            tx_in_flight: in_flight,
            is_app_limited: self.is_app_limited(),
        }
    }

    /// An acknowledgement is about to be read.
    #[inline]
    pub(crate) const fn begin_ack(&mut self) {
        self.newest = None;
    }

    /// The acknowledgement delivers the packet `index` places behind the first one tracked, which was last
    /// sent at `sent`. Of packets sent at one instant, the one with the highest `order` gives the sample, and
    /// of equals the one delivered last.
    #[inline]
    pub(crate) fn on_delivered(&mut self, index: u32, sent: Instant, order: u32) {
        if self.is_limit_only {
            return;
        }
        let is_newer = self
            .newest
            .is_none_or(|newest| (sent, order) >= (self.first_sent_time, newest.order));
        if is_newer {
            let packet = self.packets[index];
            self.newest = Some(Newest {
                packet,
                send_elapsed: sent.saturating_since(packet.first_sent_time),
                order,
            });
            self.first_sent_time = sent;
        }
    }

    /// The acknowledgement delivers the first `count` packets tracked, which were sent once, in their order, the
    /// last at `sent`. They are not tracked any more.
    #[inline]
    pub(crate) fn on_delivered_run(&mut self, count: u32, sent: Instant, order: u32) {
        if self.is_limit_only {
            return;
        }
        // Each is newer than the one before it.
        self.on_delivered(count - 1, sent, order);
        self.packets.skip(count);
    }

    /// The packet `index` places behind the first one tracked was declared lost at `now`, and is counted in `totals`.
    /// `None`: the controller does not use delivery rates.
    pub(crate) fn lost(&self, index: u32, now: Instant, totals: Totals) -> Option<LostSegment> {
        if self.is_limit_only {
            return None;
        }
        let packet = &self.packets[index];
        Some(LostSegment {
            now,
            delivered: totals.delivered,
            in_flight_then: packet.tx_in_flight,
            lost_since: totals.lost - packet.lost,
            app_limited: packet.is_app_limited,
        })
    }

    /// The first `count` packets are not tracked any more.
    #[inline]
    pub(crate) fn forget(&mut self, count: u32) {
        if !self.is_limit_only {
            self.packets.skip(count);
        }
    }

    /// The acknowledgement has been read, with `newly_delivered` packets. `None`: it gives no valid sample.
    #[inline]
    pub(crate) fn finish_ack(
        &mut self,
        now: Instant,
        newly_delivered: u32,
        totals: Totals,
        min_rtt: Option<Duration>,
        without_rtt: WithoutRtt,
    ) -> Option<RateSample> {
        if self
            .app_limited
            .is_some_and(|end| totals.delivered > end.get())
        {
            self.app_limited = None;
        }
        if newly_delivered > 0 {
            self.delivered_time = now;
        }
        let Newest {
            packet,
            send_elapsed,
            ..
        } = self.newest?;
        let ack_elapsed = now.since(packet.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        let is_long = match min_rtt {
            Some(min_rtt) => interval >= min_rtt,
            None => without_rtt == WithoutRtt::Valid,
        };
        (is_long && interval > Duration::ZERO).then(|| RateSample {
            prior_delivered: packet.delivered,
            delivered: totals.delivered - packet.delivered,
            interval_micros: interval.as_micros().max(1),
            app_limited: packet.is_app_limited,
            in_flight_then: packet.tx_in_flight,
            lost_since: totals.lost - packet.lost,
        })
    }

    /// The application has nothing more to send, or the controller holds sending down: samples do not show
    /// the capacity of the path until more than is in flight now is delivered.
    #[inline]
    pub(crate) fn limit_by_app(&mut self, delivered: u64, in_flight: u32) {
        let end = NonZeroU64::new(delivered + u64::from(in_flight));
        self.app_limited = end.or(Some(NonZeroU64::MIN));
    }

    /// Whether packets sent now are limited by the application.
    #[inline]
    pub(crate) const fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// When a delivery was last acknowledged.
    #[inline]
    pub(crate) const fn delivered_time(&self) -> Instant {
        self.delivered_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT: Option<Duration> = Some(Duration::from_millis(100));

    const fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    const fn delivered(delivered: u64) -> Totals {
        Totals { delivered, lost: 0 }
    }

    #[test]
    fn a_sample_has_the_packets_in_flight_and_the_losses_since() {
        let mut s = DeliveryRateSampler::default();
        let [then, now] = [(5, 2), (6, 5)].map(|(delivered, lost)| Totals { delivered, lost });
        s.on_sent(ms(0), then, 9, true);
        s.begin_ack();
        s.on_delivered(0, ms(0), 1);
        let sample = s
            .finish_ack(ms(100), 1, now, MIN_RTT, WithoutRtt::Invalid)
            .unwrap();
        assert_eq!((sample.in_flight_then, sample.lost_since), (9, 3));
    }

    #[test]
    fn the_interval_is_the_longer_one_of_sending_and_acknowledging() {
        let mut s = DeliveryRateSampler::default();
        for n in 0..4 {
            s.on_sent(ms(10 * n), delivered(1), 1, n == 0);
        }
        s.begin_ack();
        s.on_delivered(0, ms(0), 1);
        s.forget(1);
        let first = s
            .finish_ack(ms(100), 1, delivered(2), MIN_RTT, WithoutRtt::Invalid)
            .unwrap();
        assert_eq!((first.delivered, first.interval_micros), (1, 100_000));
        assert!(!first.app_limited);
        // Sent 10 ms apart, acknowledged together.
        s.begin_ack();
        for n in 1..4_u32 {
            s.on_delivered(0, ms(10 * u64::from(n)), n + 1);
            s.forget(1);
        }
        let rest = s
            .finish_ack(ms(131), 3, delivered(5), MIN_RTT, WithoutRtt::Invalid)
            .unwrap();
        // All were sent before anything was delivered: four since then.
        assert_eq!((rest.delivered, rest.interval_micros), (4, 131_000));
        assert_eq!(s.delivered_time(), ms(131));
        // Acknowledged 1 ms apart, but sent 200 ms apart.
        s.on_sent(ms(140), delivered(5), 1, false);
        s.on_sent(ms(340), delivered(5), 1, false);
        s.begin_ack();
        s.on_delivered(0, ms(140), 5);
        s.finish_ack(ms(440), 1, delivered(6), MIN_RTT, WithoutRtt::Invalid)
            .unwrap();
        s.on_sent(ms(441), delivered(6), 1, false);
        s.begin_ack();
        s.on_delivered(2, ms(441), 7);
        // Its send interval begins with the packet of 140 ms, its ACK interval at 440 ms.
        let sample = s
            .finish_ack(ms(541), 1, delivered(7), MIN_RTT, WithoutRtt::Invalid)
            .unwrap();
        assert_eq!((sample.delivered, sample.interval_micros), (1, 301_000));
    }

    #[test]
    fn there_is_no_sample_below_the_minimum_rtt() {
        let mut s = DeliveryRateSampler::default();
        s.on_sent(ms(0), delivered(1), 1, true);
        s.begin_ack();
        s.on_delivered(0, ms(0), 1);
        assert!(
            s.finish_ack(ms(99), 1, delivered(2), MIN_RTT, WithoutRtt::Invalid)
                .is_none()
        );
        assert!(
            s.finish_ack(ms(100), 1, delivered(2), MIN_RTT, WithoutRtt::Invalid)
                .is_some()
        );
    }

    #[test]
    fn without_a_minimum_rtt_the_caller_decides() {
        let mut s = DeliveryRateSampler::default();
        s.on_sent(ms(0), delivered(1), 1, true);
        s.begin_ack();
        s.on_delivered(0, ms(0), 1);
        let mut is_valid = |without_rtt| {
            s.finish_ack(ms(1), 1, delivered(2), None, without_rtt)
                .is_some()
        };
        assert!(is_valid(WithoutRtt::Valid) && !is_valid(WithoutRtt::Invalid));
    }

    #[test]
    fn an_interval_below_a_microsecond_counts_as_one() {
        let mut s = DeliveryRateSampler::default();
        let mut sample_after = |nanos| {
            let sent = ms(1);
            s.on_sent(sent, delivered(0), 1, true);
            s.begin_ack();
            s.on_delivered(0, sent, 0);
            s.forget(1);
            let now = sent + Duration::from_nanos(nanos);
            s.finish_ack(now, 1, delivered(1), None, WithoutRtt::Valid)
        };
        assert_eq!(sample_after(999).unwrap().interval_micros, 1);
        assert!(sample_after(0).is_none());
    }

    #[test]
    fn of_packets_sent_at_one_instant_the_one_of_the_highest_order_gives_the_sample() {
        let in_flight_of = |read: [(u32, u32); 2]| {
            let mut s = DeliveryRateSampler::default();
            s.on_sent(ms(0), delivered(0), 1, true);
            s.on_sent(ms(0), delivered(0), 2, false);
            s.begin_ack();
            for (index, order) in read {
                s.on_delivered(index, ms(0), order);
            }
            let sample = s
                .finish_ack(ms(100), 2, delivered(2), MIN_RTT, WithoutRtt::Invalid)
                .unwrap();
            sample.in_flight_then
        };
        assert_eq!(in_flight_of([(0, 1), (1, 2)]), 2);
        assert_eq!(in_flight_of([(1, 2), (0, 1)]), 2);
        // Of equal order: the one read last.
        assert_eq!(in_flight_of([(0, 0), (1, 0)]), 2);
        assert_eq!(in_flight_of([(1, 0), (0, 0)]), 1);
    }

    #[test]
    fn a_retransmission_has_the_state_of_its_own_sending() {
        let mut s = DeliveryRateSampler::default();
        s.on_sent(ms(0), delivered(1), 1, true);
        s.on_sent(ms(0), delivered(1), 2, false);
        s.begin_ack();
        s.on_delivered(1, ms(0), 2);
        s.finish_ack(ms(100), 1, delivered(2), MIN_RTT, WithoutRtt::Invalid)
            .unwrap();
        s.on_resent(delivered(2), 1, 0);
        s.begin_ack();
        s.on_delivered(0, ms(100), 1);
        let sample = s
            .finish_ack(ms(200), 1, delivered(3), MIN_RTT, WithoutRtt::Invalid)
            .unwrap();
        assert_eq!((sample.prior_delivered, sample.delivered), (2, 1));
        assert_eq!(sample.interval_micros, 100_000);
    }

    #[test]
    fn the_application_limits_samples_until_its_last_flight_is_delivered() {
        let mut s = DeliveryRateSampler::default();
        let sample_of = |s: &mut DeliveryRateSampler, n: u64| {
            s.on_sent(ms(2 * n), delivered(n), 1, true);
            s.begin_ack();
            s.on_delivered(0, ms(2 * n), 1);
            s.forget(1);
            let sample = s.finish_ack(ms(2 * n + 1), 1, delivered(n + 1), None, WithoutRtt::Valid);
            sample.unwrap()
        };
        assert!(!sample_of(&mut s, 1).app_limited);
        s.limit_by_app(2, 1);
        assert!(sample_of(&mut s, 2).app_limited);
        assert!(s.is_app_limited());
        assert!(sample_of(&mut s, 3).app_limited);
        assert!(!s.is_app_limited());
        assert!(!sample_of(&mut s, 4).app_limited);
    }

    #[test]
    fn the_limit_of_an_application_that_has_sent_nothing_covers_its_first_packet() {
        let mut s = DeliveryRateSampler::default();
        s.limit_by_app(0, 0);
        s.finish_ack(ms(1), 1, delivered(1), None, WithoutRtt::Valid);
        assert!(s.is_app_limited());
        s.finish_ack(ms(2), 1, delivered(2), None, WithoutRtt::Valid);
        assert!(!s.is_app_limited());
    }
}
