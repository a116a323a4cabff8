//! Assembly of packets and datagrams.

use sojourn_net::Instant;

use super::congestion::tick;
use super::endpoint::{Delivery, Endpoint, Keys, Role};
use super::params::SMALLEST_DATAGRAM;
use super::rtt::RttEstimator;
use super::sizes::{LENGTH_FIELD, packet_number};
use super::space::{APP, HANDSHAKE, IN_FLIGHT, INITIAL, Sent};
use super::wire::{
    Ack, App, Content, CryptoPacket, Datagram, FRAME_WORDS, Frame, LIMIT_WORDS, MAX_RANGES,
    most_ranges,
};
use crate::cc::Start;
use crate::segment::Flags;

/// Connection IDs have 8 bytes, as in most stacks.
const CONNECTION_ID: usize = 8;
/// First byte, version, connection IDs with their lengths, length of the packet.
const LONG_HEADER: usize = 1 + 4 + 2 * (1 + CONNECTION_ID) + 2;
const SHORT_HEADER: usize = 1 + CONNECTION_ID;
/// Authentication tag of the AEAD.
const TAG: usize = 16;
/// No datagram smaller than this is sent.
pub(super) const MIN_DATAGRAM: usize = 64;
/// Least room for CRYPTO data for which a handshake packet is started.
const MIN_CRYPTO: usize = 24;
/// Least room for which another frame is added to a packet.
const MIN_FRAME: usize = 32;
/// `CONNECTION_CLOSE` with an error code, no frame and no reason.
const CLOSE_FRAME: usize = 4;

/// A datagram under construction.
struct Draft {
    content: Content,
    limit: usize,
    /// Bytes of each packet.
    sizes: [usize; 3],
}

/// What a 0-RTT or 1-RTT packet may carry.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct AppTurn {
    /// 0-RTT.
    early: bool,
    probe: bool,
    /// Flow-control frames are due.
    limits: bool,
    has_data: bool,
    /// More than an acknowledgement.
    may_send: bool,
}

impl Draft {
    fn size(&self) -> usize {
        self.sizes.iter().sum()
    }

    fn room(&self) -> usize {
        self.limit - self.size()
    }
}

impl Endpoint {
    /// Sends everything that may be sent now.
    #[inline(never)]
    pub(super) fn flush(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        if self.is_past_handshake() {
            self.flush_app(now, out);
        } else {
            self.flush_any(now, out);
        }
    }

    /// Sends everything that may be sent now, packets of all packet number spaces.
    pub(super) fn flush_any(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        self.pacing_due = None;
        while let Some(datagram) = self.next_datagram(now) {
            out.push(datagram);
        }
        self.note_idle_window();
        let ready = self.app_send && !self.is_unable_to_send();
        self.congestion.limited = ready && self.outgoing.has_pending();
        self.set_timer();
    }

    /// A window with room and nothing to send limits the samples of the delivery rate.
    #[inline]
    fn note_idle_window(&mut self) {
        if self.delivery.is_some() && !self.outgoing.has_pending() && !self.congestion.is_full() {
            let in_flight = self.packets_in_flight();
            if let Some(Delivery { delivered, sampler }) = self.delivery.as_deref_mut() {
                sampler.limit_by_app(*delivered, in_flight);
            }
        }
    }

    /// Largest datagram that may be sent now: a server sends no more than three times what it has
    /// received before the client's address is validated (RFC 9000 §8.1).
    pub(super) fn allowance(&self) -> usize {
        let most = if self.confirmed {
            self.params.max_datagram
        } else {
            SMALLEST_DATAGRAM
        };
        if self.role == Role::Client || self.validated {
            return most.into();
        }
        let credit = (3 * self.bytes_received).saturating_sub(self.bytes_sent);
        usize::try_from(credit).map_or(most.into(), |credit| credit.min(most.into()))
    }

    fn draft(&self) -> Draft {
        Draft {
            content: Content::default(),
            limit: self.allowance(),
            sizes: [0; 3],
        }
    }

    fn next_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let mut draft = self.draft();
        if draft.limit < MIN_DATAGRAM {
            return None;
        }
        self.add_crypto_packet(now, INITIAL, &mut draft);
        self.add_crypto_packet(now, HANDSHAKE, &mut draft);
        self.add_app(now, &mut draft);
        if draft.size() == 0 {
            return None;
        }
        Some(self.commit(now, &mut draft))
    }

    fn may_send(&self, n: usize) -> bool {
        self.spaces[n].probes > 0 || !self.congestion.is_full()
    }

    fn add_crypto_packet(&mut self, now: Instant, n: usize, draft: &mut Draft) {
        if self.keys[n] != Keys::Ready {
            return;
        }
        // A server pads ack-eliciting Initial packets, which needs room.
        let padded = n == INITIAL && draft.limit < SMALLEST_DATAGRAM.into();
        let may_send = self.may_send(n) && !padded;
        let space = &mut self.spaces[n];
        let token = usize::from(n == INITIAL);
        let mut size = LONG_HEADER + token + packet_number(space.next(), space.largest_acked) + TAG;
        let mut packet = CryptoPacket {
            pn: space.next(),
            ..CryptoPacket::default()
        };
        let probe = space.probes > 0 && may_send;
        let wanted = space.received.is_pending() || may_send && space.crypto.has_pending() || probe;
        if !wanted || draft.room() < size + MIN_CRYPTO {
            return;
        }
        if space.received.is_pending() {
            packet.ack = space.received.acknowledge(now, MAX_RANGES, false);
            size += packet.ack.as_ref().map_or(0, Ack::size);
        }
        if may_send {
            // Type, offset and length.
            let header = 1 + 2 + 2;
            let room = draft.room().saturating_sub(size + header);
            if let Some((crypto, again)) = space.crypto.next(room) {
                packet.crypto = Some(crypto);
                size += header + (crypto.1 - crypto.0) as usize;
                self.counters.handshake_resent += u64::from(again);
            } else if probe {
                packet.ping = true;
                size += 1;
            }
        }
        draft.sizes[n] = size;
        draft.content.crypto_packets[n] = Some(packet);
    }

    fn add_app(&mut self, now: Instant, draft: &mut Draft) {
        let early = !self.app_send;
        if early && !self.may_send_early(draft) {
            return;
        }
        let size = self.app_header(early);
        if draft.room() < size + MIN_CRYPTO || draft.content.room() < 4 {
            return;
        }
        if let Some(turn) = self.app_turn(now, early) {
            self.fill_app(now, &turn, None, draft);
        }
    }

    /// Bytes of a 0-RTT or 1-RTT packet without its frames.
    fn app_header(&self, early: bool) -> usize {
        let space = &self.spaces[APP];
        let header = if early { LONG_HEADER } else { SHORT_HEADER };
        header + packet_number(space.next(), space.largest_acked) + TAG
    }

    /// What a 0-RTT or 1-RTT packet may carry now; `None`: nothing.
    #[inline]
    fn app_turn(&mut self, now: Instant, early: bool) -> Option<AppTurn> {
        let space = &self.spaces[APP];
        let probe = space.probes > 0;
        let ack_due = !early && space.received.is_due(now);
        let limits = !early && (self.incoming.has_due() || self.outgoing.has_notice());
        let has_data = self.outgoing.has_pending();
        let wants = has_data || limits || self.done_pending || probe;
        let may_send = wants && self.may_send(APP) && self.is_paced(now);
        (ack_due || may_send).then_some(AppTurn {
            early,
            probe,
            limits,
            has_data,
            may_send,
        })
    }

    /// Adds the packet for which there is a turn; `first` is a frame that has been taken for it.
    fn fill_app(
        &mut self,
        now: Instant,
        turn: &AppTurn,
        first: Option<(Frame, bool)>,
        draft: &mut Draft,
    ) {
        let &AppTurn {
            early,
            probe,
            limits,
            has_data,
            may_send,
        } = turn;
        let mut size = self.app_header(early);
        let space = &self.spaces[APP];
        draft.content.app = Some(App::new(space.next(), early));
        let for_data = if may_send && has_data { FRAME_WORDS } else { 0 };
        if !early && space.received.is_pending() {
            let for_limit = if may_send && limits { LIMIT_WORDS } else { 0 };
            size += self.add_ack(now, for_data + for_limit, draft);
        }
        if may_send {
            if limits {
                size += self.add_limits(size, for_data, draft);
            }
            size += self.add_data(size, probe, first, draft);
            // This data may have reached a limit.
            if !early && self.outgoing.has_notice() {
                size += self.add_limits(size, 0, draft);
            }
        }
        let is_useful = |app: &App| app.ack.is_some() || app.is_eliciting();
        if draft.content.app.as_ref().is_some_and(is_useful) {
            draft.sizes[APP] = size;
        } else {
            draft.content.app = None;
        }
    }

    /// Whether a client may send 0-RTT data: after its `ClientHello`.
    fn may_send_early(&self, draft: &Draft) -> bool {
        let sent_hello = draft.content.crypto_packets[INITIAL].is_some()
            || self.spaces[INITIAL].next() > 0
            || self.keys[INITIAL] == Keys::Discarded;
        self.role == Role::Client && self.params.zero_rtt && sent_hello
    }

    /// Whether pacing allows a packet now; if not, sets the pacing timer.
    fn is_paced(&mut self, now: Instant) -> bool {
        if self.spaces[APP].probes > 0 {
            return true;
        }
        self.pacing_due = self.congestion.paced_until(now, self.rtt.smoothed());
        self.pacing_due.is_none()
    }

    /// Adds an ACK that leaves `reserved` words free; returns its size.
    fn add_ack(&mut self, now: Instant, reserved: usize, draft: &mut Draft) -> usize {
        let ecn = self.ect != Flags::NONE;
        let Some(most) = draft.content.ranges(ecn, reserved) else {
            return 0;
        };
        let ack = self.app().received.acknowledge(now, most, ecn);
        let size = ack.as_ref().map_or(0, Ack::size);
        if let Some(app) = &mut draft.content.app {
            app.ack = ack;
        }
        size
    }

    /// Adds flow-control frames that leave `reserved` words free; returns their size.
    fn add_limits(&mut self, size: usize, reserved: usize, draft: &mut Draft) -> usize {
        let (mut used, room) = (0, draft.room() - size);
        while draft.content.has_room_for_limit(reserved) && room >= used + MIN_FRAME {
            let notice = || self.outgoing.next_notice();
            let Some(limit) = self.incoming.next_due().or_else(notice) else {
                break;
            };
            self.counters.blocked += u64::from(limit.is_blocked);
            used += limit.size();
            if let Some(app) = &mut draft.content.app {
                app.push_limit(limit);
            }
        }
        used
    }

    /// Adds STREAM frames, `first` of them before the others, and `HANDSHAKE_DONE`; returns their size.
    fn add_data(
        &mut self,
        size: usize,
        probe: bool,
        mut first: Option<(Frame, bool)>,
        draft: &mut Draft,
    ) -> usize {
        let mut used = 0;
        let room = draft.room() - size;
        if std::mem::take(&mut self.done_pending)
            && let Some(app) = &mut draft.content.app
        {
            app.done = true;
            used += 1;
        }
        let (mut frames, mut any_again) = (0, false);
        while draft.content.has_room_for_frame()
            && (frames == 0 || room - used >= MIN_FRAME)
            && let Some((frame, again)) = first.take().or_else(|| self.outgoing.next(room - used))
            && let Some(app) = &mut draft.content.app
        {
            app.push(frame);
            (frames, any_again) = (frames + 1, any_again | again);
            used = (used + frame.size() + LENGTH_FIELD).min(room);
        }
        self.counters.sent += u64::from(frames > 0);
        self.counters.resent += u64::from(any_again);
        if let Some(app) = &mut draft.content.app
            && probe
            && !app.is_eliciting()
        {
            app.ping = true;
            used += 1;
        }
        used
    }

    /// Sends a `CONNECTION_CLOSE` in a packet that the peer can decrypt.
    pub(super) fn send_close(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        let mut draft = self.draft();
        draft.content.close = true;
        if self.app_send {
            let space = &self.spaces[APP];
            let number = packet_number(space.next(), space.largest_acked);
            draft.content.app = Some(App::new(space.next(), false));
            draft.sizes[APP] = SHORT_HEADER + number + CLOSE_FRAME + TAG;
        } else {
            let n = usize::from(self.keys[INITIAL] != Keys::Ready);
            draft.content.crypto_packets[n] = Some(CryptoPacket {
                pn: self.spaces[n].next(),
                ..CryptoPacket::default()
            });
            draft.sizes[n] = LONG_HEADER + 1 + 1 + CLOSE_FRAME + TAG;
        }
        if draft.size() <= draft.limit {
            out.push(self.commit(now, &mut draft));
        }
    }

    /// Pads the datagram, numbers its packets and records them as sent.
    fn commit(&mut self, now: Instant, draft: &mut Draft) -> Datagram {
        let content = &draft.content;
        let to_pad = content.crypto_packets[INITIAL]
            .as_ref()
            .is_some_and(|packet| self.role == Role::Client || packet.is_eliciting());
        if to_pad {
            let last = draft.sizes.iter().rposition(|&size| size > 0).unwrap_or(0);
            let short = usize::from(SMALLEST_DATAGRAM).saturating_sub(draft.size());
            draft.sizes[last] += short;
        }
        let payload = narrow(draft.size());
        // Only 1-RTT packets report marks, so only datagrams without other packets are ECN-capable.
        let ect = if content.crypto_packets.iter().any(Option::is_some) {
            Flags::NONE
        } else {
            self.ect
        };
        let datagram = content.encode(payload, ect);
        self.bytes_sent += u64::from(payload);
        self.counters.datagrams += 1;
        let crypto_packets = content.crypto_packets.iter();
        let crypto_packets =
            crypto_packets.map(|packet| packet.as_ref().map(CryptoPacket::is_eliciting));
        let app = content.app.as_ref().map(App::is_eliciting);
        let packets = crypto_packets.chain([app]);
        for (n, eliciting) in packets.enumerate() {
            if let Some(eliciting) = eliciting {
                self.record_sent(now, n, eliciting, datagram, narrow(draft.sizes[n]));
            }
        }
        // A client discards Initial keys once it sends Handshake packets (RFC 9001 §4.9.1).
        if self.role == Role::Client && content.crypto_packets[HANDSHAKE].is_some() {
            self.discard(INITIAL);
        }
        datagram
    }

    /// Data is about to be sent: for the first time, or after a pause.
    fn note_rate(&mut self, now: Instant) {
        let first = self.spaces[APP].eliciting == 0;
        let in_flight = self.packets_in_flight();
        let Some(delivery) = self.delivery.as_deref_mut() else {
            return;
        };
        let (sampler, totals) = delivery.parts(self.counters.lost);
        if self.spaces[APP].last_eliciting.is_none() {
            self.congestion
                .begin(&start(now, &self.rtt, totals.delivered));
        } else if first && sampler.is_app_limited() {
            self.congestion.on_restart(now, self.spaces[APP].next());
        }
        sampler.on_sent(now, totals, in_flight + 1, first);
    }

    /// Data is about to be sent while nothing is in flight.
    fn leave_idle(&mut self, now: Instant) {
        let space = &self.spaces[APP];
        match space.last_eliciting {
            Some(last) => self.congestion.on_resume(now, last, space.next()),
            // `note_rate` begins with the delivery rates of a model-based control.
            None if self.delivery.is_none() => self.congestion.begin(&start(now, &self.rtt, 0)),
            None => {}
        }
    }

    fn record_sent(
        &mut self,
        now: Instant,
        n: usize,
        eliciting: bool,
        datagram: Datagram,
        size: u16,
    ) {
        // The sampler tracks the packets that are recorded.
        if n == APP && (eliciting || !self.spaces[APP].sent.is_empty()) {
            self.note_rate(now);
        }
        if n == APP && eliciting && self.packets_in_flight() == 0 {
            self.leave_idle(now);
        }
        let space = &mut self.spaces[n];
        if !eliciting && space.eliciting == 0 && self.delivery.is_none() {
            return space.skip();
        }
        space.push(Sent {
            at: now,
            datagram,
            size,
            flags: if eliciting { IN_FLIGHT } else { 0 },
        });
        if eliciting {
            space.probes = space.probes.saturating_sub(1);
            self.congestion.on_sent(size.into());
            if std::mem::take(&mut self.idle_restarts_on_send) {
                self.idle_since = now;
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a datagram has at most 1472 bytes"
)]
const fn narrow(size: usize) -> u16 {
    size as u16
}

impl Endpoint {
    /// Sends everything that may be sent now, once nothing but 1-RTT packets is left.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; it is not inlined without this"
    )]
    pub(in super::super) fn flush_app(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        self.pacing_due = None;
        let left = self.send_plain(now, out);
        self.congestion.limited = left.unwrap_or_else(|| self.send_app_datagrams(now, out));
        self.note_idle_window();
        self.set_app_timer();
    }

    /// Sends datagrams with whatever frames are due; returns whether data is left that may not be sent now.
    #[inline(never)]
    fn send_app_datagrams(&mut self, now: Instant, out: &mut Vec<Datagram>) -> bool {
        while let Some(datagram) = self.next_app_datagram(now) {
            out.push(datagram);
        }
        self.outgoing.has_pending()
    }

    /// Sends datagrams with one frame, as long as no other is due. Returns whether data is left that may not be sent
    /// now; `None`: other datagrams may be due.
    #[inline]
    fn send_plain(&mut self, now: Instant, out: &mut Vec<Datagram>) -> Option<bool> {
        let app = &self.spaces[APP];
        if app.probes > 0
            || self.done_pending
            || self.incoming.has_due()
            || self.outgoing.has_notice()
        {
            return None;
        }
        if self.outgoing.has_pending() {
            let only_data = !app.received.is_pending();
            return (only_data && self.send_full(now, out)).then_some(true);
        }
        if app.received.is_due(now)
            && let Some(datagram) = self.next_ack(now)
        {
            out.push(datagram);
        }
        Some(false)
    }

    /// Sends datagrams that a STREAM frame fills. Returns whether no more may be sent now.
    #[inline]
    fn send_full(&mut self, now: Instant, out: &mut Vec<Datagram>) -> bool {
        if self.congestion.is_full() {
            return true;
        }
        let mut rate = self.congestion.fill_pacer(now, self.rtt.smoothed());
        let payload = self.params.max_datagram;
        let header = SHORT_HEADER + TAG;
        loop {
            self.pacing_due = self.congestion.pacing_wait(now, rate);
            if self.pacing_due.is_some() {
                return true;
            }
            let space = &mut self.spaces[APP];
            let pn = space.next();
            let size = header + packet_number(pn, space.largest_acked);
            let Some(frame) = self.outgoing.next_full(usize::from(payload) - size) else {
                return false;
            };
            let datagram = Datagram::of_frame(pn, &frame, payload, self.ect);
            if self.delivery.is_some() {
                self.note_rate(now);
                rate = self.congestion.fill_pacer(now, self.rtt.smoothed());
            }
            if self.spaces[APP].eliciting == 0 {
                self.leave_idle(now);
            }
            self.spaces[APP].push(Sent {
                at: now,
                datagram,
                size: payload,
                flags: IN_FLIGHT,
            });
            out.push(datagram);
            self.congestion.on_sent(payload.into());
            if std::mem::take(&mut self.idle_restarts_on_send) {
                self.idle_since = now;
            }
            self.counters.sent += 1;
            self.counters.datagrams += 1;
            self.bytes_sent += u64::from(payload);
            if self.congestion.is_full() {
                return true;
            }
        }
    }

    /// A datagram with an ACK and nothing else.
    #[inline]
    fn next_ack(&mut self, now: Instant) -> Option<Datagram> {
        let (ecn, ect) = (self.ect != Flags::NONE, self.ect);
        let space = &mut self.spaces[APP];
        let pn = space.next();
        let size = SHORT_HEADER + TAG + packet_number(pn, space.largest_acked);
        let run = if ecn {
            None
        } else {
            space.received.acknowledge_run(now)
        };
        let datagram = if let Some(ack) = run {
            Datagram::of_run_ack(pn, &ack, narrow(size + ack.size()), ect)
        } else {
            let ack = space.received.acknowledge(now, most_ranges(ecn), ecn)?;
            Datagram::of_ack(pn, &ack, narrow(size + ack.size()), ect)
        };
        if space.eliciting == 0 && self.delivery.is_none() {
            space.skip();
            self.bytes_sent += u64::from(datagram.payload());
            self.counters.datagrams += 1;
            return Some(datagram);
        }
        Some(self.send_app(now, datagram))
    }

    /// The next datagram once nothing but 1-RTT packets is left. Most hold one frame, data or an ACK, and are
    /// written without a draft.
    #[inline]
    fn next_app_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let turn = self.app_turn(now, false)?;
        let size = self.app_header(false);
        let space = &mut self.spaces[APP];
        let pn = space.next();
        let mut first = None;
        if !turn.may_send {
            return self.next_ack(now);
        }
        let only_data = turn.has_data && !turn.limits && !turn.probe && !self.done_pending;
        if only_data && !space.received.is_pending() {
            let room = self.allowance() - size;
            let (frame, again) = self.outgoing.next(room)?;
            let used = (frame.size() + LENGTH_FIELD).min(room);
            // No other frame follows.
            if room - used < MIN_FRAME && !self.outgoing.has_notice() {
                self.counters.sent += 1;
                self.counters.resent += u64::from(again);
                let size = narrow(size + used);
                return Some(self.send_app(now, Datagram::of_frame(pn, &frame, size, self.ect)));
            }
            first = Some((frame, again));
        }
        let mut draft = self.draft();
        self.fill_app(now, &turn, first, &mut draft);
        (draft.size() > 0).then(|| {
            let datagram = draft.content.encode(narrow(draft.size()), self.ect);
            self.send_app(now, datagram)
        })
    }

    /// Records a datagram with a 1-RTT packet only as sent.
    #[inline]
    fn send_app(&mut self, now: Instant, datagram: Datagram) -> Datagram {
        self.bytes_sent += u64::from(datagram.payload());
        self.counters.datagrams += 1;
        let eliciting = datagram.is_eliciting();
        self.record_sent(now, APP, eliciting, datagram, datagram.payload());
        datagram
    }
}

/// The first data is sent; `delivered` packets were delivered before.
fn start(now: Instant, rtt: &RttEstimator, delivered: u64) -> Start {
    let micros = rtt.smoothed().as_micros();
    Start {
        now,
        tick: tick(now),
        rtt_micros: u32::try_from(micros).unwrap_or(u32::MAX),
        measured: rtt.has_sample(),
        delivered,
    }
}
