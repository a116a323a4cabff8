//! Processing of received datagrams, and the progress of the handshake.

use sojourn_net::{Duration, Instant};

use super::congestion::tick;
use super::endpoint::{Endpoint, Keys, Role, State};
use super::params::{CLIENT_HELLO, FINISHED, SERVER_HELLO};
use super::received::AckPolicy;
use super::recovery::{Change, SAME_ORDER};
use super::space::{APP, HANDSHAKE, IN_FLIGHT, INITIAL, REQUEUED};
use super::wire::{App, CryptoPacket, Datagram, RunAck};
use crate::cc;

/// Handshake packets are acknowledged immediately (RFC 9000 §13.2.1).
const AT_ONCE: AckPolicy = AckPolicy {
    every: 1,
    delay: Duration::ZERO,
    reordered: true,
};

impl Endpoint {
    /// A datagram from the peer arrived; `ce`: with a CE mark.
    #[inline]
    pub fn on_datagram(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        ce: bool,
        out: &mut Vec<Datagram>,
    ) {
        if !ce && self.take_plain(now, datagram) {
            self.flush_app(now, out);
        } else if self.process(now, datagram, ce) {
            self.flush(now, out);
        }
    }

    /// Processes a datagram, up to what is sent in response. Returns whether anything may be sent.
    #[inline(never)]
    fn process(&mut self, now: Instant, datagram: &Datagram, ce: bool) -> bool {
        if matches!(self.state, State::Closed | State::Aborted) {
            return false;
        }
        if self.state == State::Idle {
            // Only a client's Initial opens a connection at a server.
            if self.role == Role::Client || datagram.crypto_packet(INITIAL).is_none() {
                return false;
            }
            self.state = State::Connecting;
            self.keys[INITIAL] = Keys::Ready;
        }
        self.bytes_received += u64::from(datagram.payload());
        let mut processed = false;
        if datagram.is_handshake() {
            for n in [INITIAL, HANDSHAKE] {
                if let Some(packet) = datagram.crypto_packet(n) {
                    processed |= self.on_crypto_packet(now, n, &packet, ce);
                }
            }
        }
        if let Some(app) = datagram.app() {
            processed |= self.on_app(now, &app, ce);
        }
        if processed {
            self.idle_since = now;
            self.idle_restarts_on_send = true;
            if datagram.is_close() {
                self.state = State::Closed;
                return false;
            }
        }
        true
    }

    /// Processes an Initial or Handshake packet; returns whether it was new and could be decrypted.
    fn on_crypto_packet(
        &mut self,
        now: Instant,
        n: usize,
        packet: &CryptoPacket,
        ce: bool,
    ) -> bool {
        if self.keys[n] != Keys::Ready || self.spaces[n].received.is_duplicate(packet.pn) {
            return false;
        }
        if n == HANDSHAKE && self.role == Role::Server {
            self.validated = true;
            self.discard(INITIAL);
        }
        let eliciting = packet.is_eliciting();
        let received = &mut self.spaces[n].received;
        received.on_packet(now, packet.pn, eliciting, ce, &AT_ONCE);
        if let Some(ack) = &packet.ack {
            self.on_ack(now, n, ack);
        }
        if let Some(crypto) = packet.crypto {
            self.spaces[n].crypto.on_arrived(crypto);
            self.advance();
        }
        true
    }

    /// Processes a 0-RTT or 1-RTT packet; returns whether it was new and could be decrypted.
    fn on_app(&mut self, now: Instant, app: &App, ce: bool) -> bool {
        let readable = if app.early {
            self.params.zero_rtt && self.app_send
        } else {
            self.app_read
        };
        if !readable || self.spaces[APP].received.is_duplicate(app.pn) {
            return false;
        }
        let policy = self.params.ack;
        let eliciting = app.is_eliciting();
        let received = &mut self.app().received;
        received.on_packet(now, app.pn, eliciting, ce, &policy);
        if let Some(ack) = &app.ack {
            self.on_ack(now, APP, ack);
        }
        if app.done && self.role == Role::Client {
            self.confirm();
        }
        for limit in app.limits() {
            // A blocked peer needs no answer: new limits are sent as the application reads.
            if !limit.is_blocked {
                self.outgoing.on_limit(limit);
            }
        }
        self.counters.received += u64::from(!app.frames().is_empty());
        for frame in app.frames() {
            self.incoming.on_frame(frame);
        }
        true
    }

    /// Advances the handshake as far as the received data allows.
    fn advance(&mut self) {
        let hello = self.spaces[INITIAL].crypto.arrived();
        let flight = self.spaces[HANDSHAKE].crypto.arrived();
        match self.role {
            Role::Client => {
                if self.keys[HANDSHAKE] == Keys::None && hello >= SERVER_HELLO {
                    self.keys[HANDSHAKE] = Keys::Ready;
                }
                if !self.app_send && flight >= self.params.flight() {
                    self.spaces[HANDSHAKE].crypto.total = FINISHED;
                    self.app_send = true;
                    self.app_read = true;
                    self.state = State::Established;
                }
            }
            Role::Server => {
                if self.keys[HANDSHAKE] == Keys::None && hello >= CLIENT_HELLO {
                    self.keys[HANDSHAKE] = Keys::Ready;
                    self.spaces[INITIAL].crypto.total = SERVER_HELLO;
                    self.spaces[HANDSHAKE].crypto.total = self.params.flight();
                    self.app_send = true;
                }
                if !self.app_read && flight >= FINISHED {
                    self.app_read = true;
                    self.state = State::Established;
                    self.done_pending = true;
                    self.confirm();
                }
            }
        }
    }

    fn confirm(&mut self) {
        if !self.confirmed {
            self.confirmed = true;
            self.validated = true;
            self.congestion.enlarge(self.params.max_datagram);
            self.discard(HANDSHAKE);
        }
    }

    /// Discards the keys of Initial or Handshake packets and the state of their space (RFC 9002 §6.4).
    pub(super) fn discard(&mut self, n: usize) {
        if self.keys[n] == Keys::Discarded {
            return;
        }
        self.keys[n] = Keys::Discarded;
        let space = std::mem::take(&mut self.spaces[n]);
        let in_flight = space.sent.iter().filter(|sent| sent.is(IN_FLIGHT));
        let bytes = in_flight.map(|sent| u64::from(sent.size)).sum();
        self.congestion.on_gone(bytes);
        self.probe_count = 0;
    }
}

// Processing of datagrams with one 1-RTT packet that holds one frame, as most do: the next data in order, or an ACK
// that reports nothing but progress.

impl Endpoint {
    /// Processes a datagram without a CE mark, up to what is sent in response, if a short path can. Returns whether
    /// it did; if not, nothing has changed.
    #[inline]
    fn take_plain(&mut self, now: Instant, datagram: &Datagram) -> bool {
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
        if self.congestion.is_repaired_by(newest_eliciting) {
            self.congestion.end_episode(now, self.spaces[APP].next());
        }
        let rtt_micros = self.sample(now, APP, newest, ack.delay_micros);
        let report = cc::Ack {
            now,
            tick: tick(now),
            rtt_micros: Some(rtt_micros),
            echo: None,
            snd_una: end,
            snd_nxt: self.spaces[APP].next(),
            prior_in_flight: in_flight,
            acked: packets,
            srtt8: self.rtt.smoothed_micros_8(),
            pacing_rate: 0,
        };
        let settled = cc::Settled {
            delivered: packets,
            lost: 0,
        };
        self.congestion.on_acked(&report, growth, settled);
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
