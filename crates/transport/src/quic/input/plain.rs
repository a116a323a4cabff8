//! Processing of datagrams with one 1-RTT packet that holds one frame, as most do: the next data in order, or an ACK
//! that reports nothing but progress.

use sojourn_net::Instant;

use super::super::congestion::tick;
use super::super::endpoint::{Endpoint, State};
use super::super::recovery::{Change, SAME_ORDER};
use super::super::space::{APP, IN_FLIGHT, REQUEUED};
use super::super::wire::{Datagram, RunAck};
use crate::cc;

impl Endpoint {
    /// Processes a datagram without a CE mark, up to what is sent in response, if a short path can. Returns whether
    /// it did; if not, nothing has changed.
    #[inline]
    pub(super) fn take_plain(&mut self, now: Instant, datagram: &Datagram) -> bool {
        if self.state != State::Established || !self.is_past_handshake() {
            return false;
        }
        if let Some((pn, frame)) = datagram.only_frame() {
            if !self.spaces[APP].received.is_next(pn) || !self.incoming.take_next(&frame) {
                return false;
            }
            self.take_next(now, pn, true);
            self.counters.received += 1;
        } else if let Some((pn, ack)) = datagram.only_ack() {
            if !self.spaces[APP].received.is_next(pn) || !self.is_plain(&ack) {
                return false;
            }
            self.take_next(now, pn, false);
            self.on_plain_ack(now, &ack);
        } else {
            return false;
        }
        self.bytes_received += u64::from(datagram.payload());
        self.idle_since = now;
        self.idle_restarts_on_send = true;
        true
    }

    /// The packet after the newest one has arrived.
    #[inline]
    fn take_next(&mut self, now: Instant, pn: u32, eliciting: bool) {
        let policy = &self.params.ack;
        self.spaces[APP]
            .received
            .on_next(now, pn, eliciting, policy);
    }

    /// Whether an ACK with this newest range newly acknowledges all packets from the oldest on, of which the first is
    /// ack-eliciting. Older ranges are of packets that are settled.
    #[inline]
    fn is_plain(&self, ack: &RunAck) -> bool {
        let app = &self.spaces[APP];
        let (start, end) = ack.run;
        start <= app.base
            && app.base < end
            && end <= app.next()
            && app.acked.is_empty()
            && app.sent.front().is_some_and(|sent| sent.is(IN_FLIGHT))
    }

    /// Does what [`Endpoint::on_ack`] does, with an ACK that [`Endpoint::is_plain`].
    #[inline]
    fn on_plain_ack(&mut self, now: Instant, ack: &RunAck) {
        let space = &mut self.spaces[APP];
        let in_flight = space.eliciting;
        let (_, end) = ack.run;
        let mut delivery = self.delivery.as_deref_mut();
        if let Some(delivery) = &mut delivery {
            delivery.sampler.begin_ack();
        }
        let (mut newest, mut newest_eliciting) = (now, now);
        let (mut packets, mut frames, mut bytes, mut growth) = (0, 0, 0, 0);
        // Nothing below is left to be acknowledged, so each packet is settled at once.
        let settled = end - space.base;
        for index in 0..settled {
            let Some(sent) = space.sent.pop_front() else {
                break;
            };
            newest = sent.at;
            if !sent.is(IN_FLIGHT) {
                continue;
            }
            newest_eliciting = sent.at;
            if !sent.is(REQUEUED) {
                frames += sent.datagram.frame_count();
            }
            if let Some(largest) = sent.datagram.largest_acknowledged() {
                space.received.forget_through(largest);
            }
            let size = u64::from(sent.size);
            packets += 1;
            bytes += size;
            if !self.congestion.is_before_recovery(sent.at) {
                growth += size;
            }
            if let Some(delivery) = &mut delivery {
                delivery.delivered += 1;
                delivery.sampler.on_delivered(index, sent.at, SAME_ORDER);
            }
        }
        if let Some(delivery) = &mut delivery {
            delivery.sampler.forget(settled);
        }
        space.base = end;
        space.largest_acked = Some(end - 1);
        space.eliciting -= packets;
        space.loss_time = None;
        space.lost_since = None;
        self.outgoing.on_acked(frames);
        self.congestion.on_gone(bytes);
        self.congestion.on_delivered(newest_eliciting);
        let rtt_micros = self.sample(now, APP, newest, ack.delay_micros);
        let report = cc::Ack {
            now,
            tick: tick(now),
            rtt_micros: Some(rtt_micros),
            one_way_ms: None,
            snd_una: end,
            snd_nxt: self.spaces[APP].next(),
            prior_in_flight: in_flight,
            pacing_rate: 0,
        };
        self.congestion.on_acked(&report, growth);
        let change = Change {
            prior_lost: self.counters.lost,
            newly_delivered: packets,
        };
        self.update_model(&report, &change, ack.delay_micros, None);
        self.probe_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{CcKind, CcSpec};
    use crate::quic::{FlowControl, Params, Role};
    use sojourn_net::{Duration, Ecn, Rng};

    /// Datagrams that took the short path, and others, of a transfer in both directions over a path that loses one
    /// of `loss` datagrams and reorders some.
    fn transfer(params: &Params, loss: u64) -> (u32, u32) {
        let mut rng = Rng::new(1);
        let mut ends = [Role::Client, Role::Server].map(|role| Endpoint::new(role, params));
        let mut now = Instant::from_millis(1);
        let mut flying: Vec<(Instant, usize, Datagram)> = Vec::new();
        let (mut out, mut short, mut other) = (Vec::new(), 0, 0);
        ends[0].write(now, 0, 1_500_000, false, &mut out);
        // Writes after a pause.
        let mut writes = 3;
        ends[0].connect(now, &mut out);
        ends[1].write(now, 1, 200_000, true, &mut out);
        let mut link_free = now;
        let mut from = 0;
        loop {
            for datagram in out.drain(..) {
                if rng.below(loss) == 0 {
                    continue;
                }
                link_free = link_free.max(now) + Duration::from_micros(100);
                let jitter = if rng.below(200) == 0 { 500 } else { 0 };
                let at = link_free + Duration::from_micros(5_000 + jitter);
                flying.push((at, 1 - from, datagram));
            }
            flying.sort_by_key(|&(at, ..)| at);
            let timer = (0..2)
                .filter_map(|n| Some((ends[n].next_timer()?, n)))
                .min();
            if ends.iter().all(Endpoint::all_acknowledged) && flying.is_empty() {
                if writes == 0 {
                    return (short, other);
                }
                writes -= 1;
                now = now.max(link_free) + Duration::from_millis(400);
                from = 0;
                let (mut like_any, mut sent) = (ends[0].clone(), Vec::new());
                like_any.outgoing.write(0, 200_000, writes == 0);
                like_any.flush_any(now, &mut sent);
                ends[0].write(now, 0, 200_000, writes == 0, &mut out);
                assert_eq!(out, sent);
                assert_eq!(format!("{:?}", ends[0]), format!("{like_any:?}"));
                continue;
            }
            if let Some(&(at, to, datagram)) = flying.first()
                && timer.is_none_or(|(due, _)| at <= due)
            {
                flying.remove(0);
                now = at;
                from = to;
                let end = &mut ends[to];
                // Comparing takes time.
                if rng.below(4) > 0 {
                    end.on_datagram(now, &datagram, false, &mut out);
                    continue;
                }
                let (mut like_any, mut sent) = (end.clone(), out.clone());
                let ce = datagram.ecn() != Ecn::NotEct && rng.below(100) == 0;
                if like_any.process(now, &datagram, ce) {
                    like_any.flush_any(now, &mut sent);
                }
                let takes = !ce && end.clone().take_plain(now, &datagram);
                end.on_datagram(now, &datagram, ce, &mut out);
                assert_eq!(out, sent);
                assert_eq!(format!("{end:?}"), format!("{like_any:?}"));
                *(if takes { &mut short } else { &mut other }) += 1;
            } else if let Some((due, n)) = timer {
                now = now.max(due);
                from = n;
                let end = &mut ends[n];
                if rng.below(4) > 0 || end.state != State::Established {
                    end.on_timer(now, &mut out);
                    continue;
                }
                let (mut like_any, mut sent) = (end.clone(), Vec::new());
                if like_any.expire(now) {
                    like_any.flush_any(now, &mut sent);
                }
                end.on_timer(now, &mut out);
                assert_eq!(out, sent);
                assert_eq!(format!("{end:?}"), format!("{like_any:?}"));
            }
        }
    }

    #[test]
    fn the_short_path_does_what_is_done_with_any_datagram() {
        let cc = |kind: CcKind| CcSpec::from(kind);
        let small = FlowControl {
            data: 150_000,
            stream_data: 100_000,
        };
        for (params, loss) in [
            (Params::default(), 1_000),
            (Params::default(), 50),
            (
                Params {
                    pacing: false,
                    flow: small,
                    ..Params::default()
                },
                300,
            ),
            (
                Params {
                    cc: cc(CcKind::Reno),
                    ecn: true,
                    ..Params::default()
                },
                1_000,
            ),
        ] {
            let (short, other) = transfer(&params, loss);
            assert!(short > 150 && other > 15, "{short} {other}");
        }
    }

    #[test]
    fn a_controller_that_needs_the_delivery_rate_takes_it_too() {
        for cc in [CcKind::Bbr, CcKind::Bbr3] {
            let params = Params {
                cc: cc.into(),
                ..Params::default()
            };
            let (short, other) = transfer(&params, 1_000);
            assert!(short > 200 && other > 5, "{short} {other}");
        }
    }
}
