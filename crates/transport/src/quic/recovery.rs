//! Acknowledgements and loss detection.
//!
//! # Source
//!
//! RFC 9002 §5, §6.1, §7.6 and appendix A.
//!
//! # Law
//!
//! ```text
//! lost       a packet sent 3 or more before an acknowledged one, or 9/8 RTT (1 ms) before now
//!            and before an acknowledged one
//! persistent all packets of 3 (srtt + 4 rttvar + max_ack_delay) lost, none between acknowledged
//! ```
//!
//! Both conditions of loss hold for all earlier packets too, so packets are checked in order and
//! each once, for any window.

use sojourn_net::{Duration, Instant};

use super::congestion::{Signal, tick};
use super::endpoint::{Endpoint, Role};
use super::rtt::GRANULARITY;
use super::space::{ACKED, APP, HANDSHAKE, IN_FLIGHT, REQUEUED, Sent};
use super::wire::Ack;
use crate::cc::{self, EcnFeedback, Progress};
use crate::delivery_rate::WithoutRtt;

/// kPacketThreshold.
const PACKET_THRESHOLD: u32 = 3;
/// kPersistentCongestionThreshold.
const PERSISTENT_THRESHOLD: u64 = 3;
/// Of packets sent at one instant, the one that the ACK frame reports last gives the delivery rate.
pub(super) const SAME_ORDER: u32 = 0;

/// What an acknowledgement newly acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct NewlyAcked {
    /// Ack-eliciting packets.
    packets: u32,
    /// The newest packet, ack-eliciting or not.
    newest: Option<u32>,
    /// Bytes that let the window grow.
    growth: u64,
}

/// What an acknowledgement of application data changed, in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// Lost before it.
    pub(super) prior_lost: u64,
    pub(super) newly_delivered: u32,
}

impl Endpoint {
    pub(super) fn on_ack(&mut self, now: Instant, n: usize, ack: &Ack) {
        let (in_flight, lost) = (self.packets_in_flight(), self.counters.lost);
        let space = &mut self.spaces[n];
        let largest = ack.largest();
        if largest >= space.next() {
            return;
        }
        space.largest_acked = space.largest_acked.max(Some(largest));
        if let Some(delivery) = &mut self.delivery {
            delivery.sampler.begin_ack();
        }
        let mut acked = std::mem::take(&mut space.acked);
        let base = space.base;
        let mut newly = NewlyAcked::default();
        for &(start, end) in ack.ranges() {
            let start = start.max(base);
            if start < end {
                acked.insert(start, end, |from, to| {
                    newly.newest = newly.newest.max(to.checked_sub(1));
                    for pn in from..to {
                        self.on_packet_acked(now, (n, pn), &mut newly);
                    }
                });
            }
        }
        self.spaces[n].acked = acked;
        if newly.packets == 0 {
            return;
        }
        // RFC 9002 §5.1: a sample if the largest is newly acknowledged, and with it an ack-eliciting
        // packet.
        let newest = newly.newest.and_then(|pn| self.spaces[n].get(pn));
        let sent_at = newest.map(|sent| sent.at);
        let rtt_micros = sent_at
            .filter(|_| newly.newest == Some(largest))
            .map(|at| self.sample(now, n, at, ack.delay_micros));
        if n == HANDSHAKE {
            self.validated = true;
        }
        let (mut congested, mut ecn) = (false, None);
        if let Some(ce) = ack.ce.filter(|_| n == APP) {
            let next = self.spaces[APP].next();
            let marked = ce.saturating_sub(self.ce_seen);
            self.ce_seen += marked;
            // Marks on packets that only carry ACKs are counted too.
            let of_these = marked.min(newly.packets);
            let feedback = EcnFeedback {
                snd_una: largest + 1,
                snd_nxt: next,
                delivered: newly.packets,
                marked: of_these,
            };
            self.congestion.on_ecn_feedback(&feedback);
            ecn = Some(feedback);
            if marked > 0
                && let Some(at) = sent_at
            {
                congested = self.congestion.on_congestion(now, at, next, Signal::Mark);
            }
        }
        congested |= self.detect_losses(now, n);
        if n == APP {
            let report = cc::Ack {
                now,
                tick: tick(now),
                rtt_micros,
                echo: None,
                snd_una: largest + 1,
                snd_nxt: self.spaces[APP].next(),
                prior_in_flight: in_flight,
                acked: newly.packets,
                srtt8: self.rtt.smoothed_micros_8(),
                pacing_rate: 0,
            };
            let growth = if congested { 0 } else { newly.growth };
            let newly_lost = self.counters.lost - lost;
            let settled = cc::Settled {
                delivered: newly.packets,
                lost: u32::try_from(newly_lost).unwrap_or(u32::MAX),
            };
            self.congestion.on_acked(&report, growth, settled);
            let change = Change {
                prior_lost: lost,
                newly_delivered: newly.packets,
            };
            self.update_model(&report, &change, ack.delay_micros, ecn);
        }
        // A client whose address the server may not have validated keeps its back-off (§6.2.1).
        if self.validated || self.role == Role::Server {
            self.probe_count = 0;
        }
    }

    /// Ack-eliciting packets that are neither acknowledged nor lost.
    pub(super) fn packets_in_flight(&self) -> u32 {
        self.spaces.iter().map(|space| space.eliciting).sum()
    }

    /// Passes an acknowledgement to a model-based controller.
    #[inline]
    pub(super) fn update_model(
        &mut self,
        ack: &cc::Ack,
        change: &Change,
        delay_micros: u32,
        ecn: Option<EcnFeedback>,
    ) {
        if self.delivery.is_some() {
            self.update_model_by(ack, change, delay_micros, ecn);
        }
    }

    #[inline(never)]
    fn update_model_by(
        &mut self,
        ack: &cc::Ack,
        change: &Change,
        delay_micros: u32,
        ecn: Option<EcnFeedback>,
    ) {
        let in_flight = self.packets_in_flight();
        let Some(delivery) = self.delivery.as_deref_mut() else {
            return;
        };
        let (sampler, totals) = delivery.parts(self.counters.lost);
        let newly_delivered = change.newly_delivered;
        let (min_rtt, without_rtt) = (self.rtt.min(), WithoutRtt::Valid);
        let newly_lost = totals.lost - change.prior_lost;
        let progress = Progress {
            newly_delivered,
            sample: sampler.finish_ack(ack.now, newly_delivered, totals, min_rtt, without_rtt),
            delivered: totals.delivered,
            lost: totals.lost,
            delivered_at: sampler.delivered_time(),
            newly_lost: u32::try_from(newly_lost).unwrap_or(u32::MAX),
            in_flight,
            cwnd_limited: self.congestion.limited,
            next_departure: self.congestion.next_departure(ack.now, self.rtt.smoothed()),
            episode: self.congestion.episode(),
            ack_delayed: Duration::from_micros(delay_micros.into()) > GRANULARITY,
            ecn,
        };
        if self.congestion.update_model(ack, &progress) {
            sampler.limit_by_app(totals.delivered, in_flight);
        }
    }

    /// Takes an RTT sample of a packet sent at `at`; returns it in µs.
    #[inline]
    pub(super) fn sample(&mut self, now: Instant, n: usize, at: Instant, delay_micros: u32) -> u32 {
        let latest = now.since(at);
        let micros = u32::try_from(latest.as_micros()).unwrap_or(u32::MAX);
        let mut delay = Duration::ZERO;
        if n == APP {
            delay = Duration::from_micros(delay_micros.into());
            if self.confirmed {
                delay = delay.min(self.params.ack.delay);
            }
            self.counters.rtt_samples += 1;
            self.counters.rtt_micros += latest.as_micros();
            self.counters.rtt_max_micros = self.counters.rtt_max_micros.max(micros);
        }
        self.rtt.sample(latest, delay);
        self.first_sample.get_or_insert(now);
        micros
    }

    fn on_packet_acked(&mut self, now: Instant, (n, pn): (usize, u32), newly: &mut NewlyAcked) {
        let Some(sent) = self.spaces[n].get_mut(pn).filter(|sent| sent.is(IN_FLIGHT)) else {
            return;
        };
        sent.flags = sent.flags & !IN_FLIGHT | ACKED;
        let (at, size) = (sent.at, u64::from(sent.size));
        // What has arrived with it.
        let largest = if n == APP {
            if !sent.is(REQUEUED) {
                self.outgoing.on_acked(sent.datagram.frame_count());
            }
            sent.datagram.largest_acknowledged()
        } else {
            let packet = sent.datagram.crypto_packet(n);
            packet
                .and_then(|packet| packet.ack)
                .map(|ack| ack.largest())
        };
        let space = &mut self.spaces[n];
        space.eliciting -= 1;
        if let Some(largest) = largest {
            space.received.forget_through(largest);
        }
        newly.packets += 1;
        self.congestion.on_gone(size);
        if self.congestion.is_repaired_by(at) {
            self.congestion.end_episode(now, self.spaces[APP].next());
        }
        if !self.congestion.is_before_recovery(at) {
            newly.growth += size;
        }
        if n == APP
            && let Some(delivery) = &mut self.delivery
        {
            delivery.delivered += 1;
            let index = pn - self.spaces[n].base;
            delivery.sampler.on_delivered(index, at, SAME_ORDER);
        }
    }

    /// Detects lost packets and responds to them; returns whether the window was reduced.
    pub(super) fn detect_losses(&mut self, now: Instant, n: usize) -> bool {
        let delay = self.rtt.loss_delay();
        let persistent = (self.rtt.pto() + self.params.ack.delay).times(PERSISTENT_THRESHOLD);
        let Some(largest) = self.spaces[n].largest_acked else {
            return false;
        };
        let mut last_lost = None;
        let mut is_persistent = false;
        self.spaces[n].loss_time = None;
        while self.spaces[n].base <= largest
            && let Some(sent) = self.spaces[n].sent.front()
        {
            if sent.is(IN_FLIGHT) {
                let late = sent.at + delay;
                if self.spaces[n].base + PACKET_THRESHOLD > largest && late > now {
                    self.spaces[n].loss_time = Some(late);
                    break;
                }
                let sent = *sent;
                self.on_packet_lost(now, n, &sent);
                last_lost = Some(sent.at);
                if self.first_sample.is_some_and(|first| sent.at > first) {
                    let since = *self.spaces[n].lost_since.get_or_insert(sent.at);
                    is_persistent |= sent.at.since(since) > persistent;
                }
            } else if sent.is(ACKED) {
                self.spaces[n].lost_since = None;
            }
            self.spaces[n].sent.pop_front();
            self.spaces[n].base += 1;
            if let Some(delivery) = &mut self.delivery
                && n == APP
            {
                delivery.sampler.forget(1);
            }
        }
        let space = &mut self.spaces[n];
        space.acked.remove_below(space.base);
        let next = space.next();
        let Some(at) = last_lost else {
            return false;
        };
        let reduced = self.congestion.on_congestion(now, at, next, Signal::Loss);
        if is_persistent {
            self.spaces[n].lost_since = None;
            self.counters.persistent += 1;
            self.rtt.on_persistent();
            self.congestion.on_persistent(now, next);
        }
        reduced || is_persistent
    }

    /// The first packet tracked is lost.
    fn on_packet_lost(&mut self, now: Instant, n: usize, sent: &Sent) {
        self.counters.lost += 1;
        self.spaces[n].eliciting -= 1;
        self.congestion.on_gone(sent.size.into());
        if n == APP
            && let Some(delivery) = self.delivery.as_deref_mut()
        {
            let (sampler, totals) = delivery.parts(self.counters.lost);
            if let Some(lost) = sampler.lost(0, now, totals) {
                self.congestion.on_lost(&lost);
            }
        }
        if !sent.is(REQUEUED) {
            self.send_again(n, sent);
        }
    }

    /// Queues the content of a packet for retransmission.
    pub(super) fn send_again(&mut self, n: usize, sent: &Sent) {
        if n != APP {
            let packet = sent.datagram.crypto_packet(n);
            if let Some(crypto) = packet.and_then(|packet| packet.crypto) {
                self.spaces[n].crypto.on_lost(crypto);
            }
            return;
        }
        let Some(app) = sent.datagram.app() else {
            return;
        };
        self.done_pending |= app.done;
        for limit in app.limits() {
            if limit.is_blocked {
                self.outgoing.on_notice_lost(limit);
            } else {
                self.incoming.on_limit_lost(limit);
            }
        }
        for &frame in app.frames() {
            self.outgoing.on_lost(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::Params;
    use super::super::wire::Content;
    use super::*;
    use crate::segment::Flags;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn persistent_congestion_sets_the_minimum_to_the_newest_sample() {
        let mut server = Endpoint::new(Role::Server, &Params::default());
        let at = |ms| Instant::from_millis(ms);
        server.sample(at(20), APP, at(0), 0);
        server.sample(at(400), APP, at(100), 0);
        assert_eq!(server.rtt.min(), Some(MS(20)));
        // All of four seconds is lost; the newest packet is acknowledged.
        for ms in [1_000, 3_000, 5_000, 6_000] {
            server.spaces[APP].push(Sent {
                at: at(ms),
                datagram: Content::default().encode(1_200, Flags::NONE),
                size: 1_200,
                flags: if ms < 6_000 { IN_FLIGHT } else { ACKED },
            });
            if ms < 6_000 {
                server.congestion.on_sent(1_200);
            }
        }
        server.spaces[APP].largest_acked = Some(3);
        assert!(server.detect_losses(at(6_300), APP));
        assert_eq!(server.counters.persistent, 1);
        assert_eq!(server.rtt.min(), Some(MS(300)));
    }
}
