//! Processing of received datagrams, and the progress of the handshake.

mod plain;

use sojourn_net::{Duration, Instant};

use super::endpoint::{Endpoint, Keys, Role, State};
use super::params::{CLIENT_HELLO, FINISHED, SERVER_HELLO};
use super::received::AckPolicy;
use super::space::{APP, HANDSHAKE, IN_FLIGHT, INITIAL};
use super::wire::{App, CryptoPacket, Datagram};

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
