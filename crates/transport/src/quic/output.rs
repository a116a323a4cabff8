//! What is sent: packets, and their assembly to datagrams.

use sojourn_net::Instant;

use super::congestion::tick;
use super::space::{APP, HANDSHAKE, IN_FLIGHT, INITIAL, Sent};
use super::streams::{LENGTH_FIELD, stream_header, varint};
use super::wire::{Ack, App, Content, Datagram, FRAME_WORDS, Frame, LIMIT_WORDS, Opening};
use super::{Endpoint, Keys, Role, SMALLEST_DATAGRAM};
use crate::cc::Start;
use crate::segment::Flags;

/// Connection IDs have 8 bytes, as in most stacks.
const CONNECTION_ID: usize = 8;
/// First byte, version, connection IDs with their lengths, length of the packet.
const LONG_HEADER: usize = 1 + 4 + 2 * (1 + CONNECTION_ID) + 2;
const SHORT_HEADER: usize = 1 + CONNECTION_ID;
/// Authentication tag of the AEAD.
const TAG: usize = 16;
/// Datagrams smaller than this are not worth a packet.
pub(super) const LEAST_DATAGRAM: usize = 64;
/// A packet of the handshake is begun with room for so many bytes of it.
const LEAST_CRYPTO: usize = 24;
/// Room for another frame in a packet.
const LEAST_FRAME: usize = 32;
/// `CONNECTION_CLOSE` with an error code, no frame and no reason.
const CLOSE_FRAME: usize = 4;

/// A datagram under construction.
struct Draft {
    content: Content,
    limit: usize,
    /// Bytes of each packet.
    sizes: [usize; 3],
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
    /// Sends whatever may be sent.
    pub(super) fn flush(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        self.pacing_due = None;
        while let Some(datagram) = self.next_datagram(now) {
            out.push(datagram);
        }
        if !self.outgoing.has_pending() && !self.congestion.is_full() {
            let in_flight = self.packets_in_flight();
            if let Some(rates) = &mut self.rates {
                rates.limit_by_app(in_flight);
            }
        }
        let ready = self.app_send && !self.is_unable_to_send();
        self.congestion.limited = ready && self.outgoing.has_pending();
        self.set_timer();
    }

    /// Bytes that a datagram may have now: a server sends no more than three times what it has
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
        if draft.limit < LEAST_DATAGRAM {
            return None;
        }
        self.add_opening(now, INITIAL, &mut draft);
        self.add_opening(now, HANDSHAKE, &mut draft);
        self.add_app(now, &mut draft);
        if draft.size() == 0 {
            return None;
        }
        Some(self.commit(now, &mut draft))
    }

    fn may_send(&self, n: usize) -> bool {
        self.spaces[n].probes > 0 || !self.congestion.is_full()
    }

    fn add_opening(&mut self, now: Instant, n: usize, draft: &mut Draft) {
        if self.keys[n] != Keys::Ready {
            return;
        }
        // A server pads Initial packets that ask to be acknowledged; that needs room.
        let padded = n == INITIAL && draft.limit < SMALLEST_DATAGRAM.into();
        let may_send = self.may_send(n) && !padded;
        let space = &mut self.spaces[n];
        let token = usize::from(n == INITIAL);
        let mut size = LONG_HEADER + token + number_size(space.next(), space.largest_acked) + TAG;
        let mut opening = Opening {
            pn: space.next(),
            ..Opening::default()
        };
        let probe = space.probes > 0 && may_send;
        let wanted = space.received.is_pending() || may_send && space.crypto.has_pending() || probe;
        if !wanted || draft.room() < size + LEAST_CRYPTO {
            return;
        }
        if space.received.is_pending() {
            opening.ack = space
                .received
                .acknowledge(now, super::wire::MOST_RANGES, false);
            size += opening.ack.as_ref().map_or(0, ack_size);
        }
        if may_send {
            // Type, offset and length; the packet fills the datagram if there is enough.
            let header = 1 + 2 + 2;
            let room = draft.room().saturating_sub(size + header);
            if let Some((crypto, again)) = space.crypto.next(room) {
                opening.crypto = Some(crypto);
                size += header + (crypto.1 - crypto.0) as usize;
                self.counters.handshake_resent += u64::from(again);
            } else if probe {
                opening.ping = true;
                size += 1;
            }
        }
        draft.sizes[n] = size;
        draft.content.openings[n] = Some(opening);
    }

    fn add_app(&mut self, now: Instant, draft: &mut Draft) {
        let early = !self.app_send;
        if early && !self.may_send_early(draft) {
            return;
        }
        let space = &self.spaces[APP];
        let probe = space.probes > 0;
        let header = if early { LONG_HEADER } else { SHORT_HEADER };
        let mut size = header + number_size(space.next(), space.largest_acked) + TAG;
        if draft.room() < size + LEAST_CRYPTO || draft.content.room() < 4 {
            return;
        }
        let ack_due = !early && space.received.is_due(now);
        let limits = !early && (self.incoming.has_due() || self.outgoing.has_notice());
        let has_data = self.outgoing.has_pending();
        let wants = has_data || limits || self.done_pending || probe;
        let may_send = wants && self.may_send(APP) && self.is_paced(now);
        if !ack_due && !may_send {
            return;
        }
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
            size += self.add_data(size, probe, draft);
            // Of the limit that these data have reached.
            if !early && self.outgoing.has_notice() {
                size += self.add_limits(size, 0, draft);
            }
        }
        let says = |app: &App| app.ack.is_some() || app.is_eliciting();
        if draft.content.app.as_ref().is_some_and(says) {
            draft.sizes[APP] = size;
        } else {
            draft.content.app = None;
        }
    }

    /// Whether a client may send data ahead of the handshake: behind its hello.
    fn may_send_early(&self, draft: &Draft) -> bool {
        let said_hello = draft.content.openings[INITIAL].is_some()
            || self.spaces[INITIAL].next() > 0
            || self.keys[INITIAL] == Keys::Discarded;
        self.role == Role::Client && self.params.zero_rtt && said_hello
    }

    /// Whether pacing lets a packet out now; if not, it is looked at again when it does.
    fn is_paced(&mut self, now: Instant) -> bool {
        if self.spaces[APP].probes > 0 {
            return true;
        }
        self.pacing_due = self.congestion.paced_until(now, self.rtt.smoothed());
        self.pacing_due.is_none()
    }

    /// Adds an ACK that leaves so many words; returns its size.
    fn add_ack(&mut self, now: Instant, beside: usize, draft: &mut Draft) -> usize {
        let ecn = self.params.ect() != Flags::NONE;
        let Some(most) = draft.content.ranges(ecn, beside) else {
            return 0;
        };
        let ack = self.app().received.acknowledge(now, most, ecn);
        let size = ack.as_ref().map_or(0, ack_size);
        if let Some(app) = &mut draft.content.app {
            app.ack = ack;
        }
        size
    }

    /// Adds what flow control has to say, and leaves so many words; returns its size.
    fn add_limits(&mut self, size: usize, beside: usize, draft: &mut Draft) -> usize {
        let (mut used, room) = (0, draft.room() - size);
        while draft.content.has_room_for_limit(beside) && room >= used + LEAST_FRAME {
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

    /// Adds what the application has to say; returns its size.
    fn add_data(&mut self, size: usize, probe: bool, draft: &mut Draft) -> usize {
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
            && (frames == 0 || room - used >= LEAST_FRAME)
            && let Some((frame, again)) = self.outgoing.next(room - used)
            && let Some(app) = &mut draft.content.app
        {
            app.push(frame);
            (frames, any_again) = (frames + 1, any_again | again);
            used = (used + frame_size(&frame) + LENGTH_FIELD).min(room);
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

    /// Sends a `CONNECTION_CLOSE` in a packet that the peer can read.
    pub(super) fn send_close(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        let mut draft = self.draft();
        draft.content.close = true;
        if self.app_send {
            let space = &self.spaces[APP];
            let number = number_size(space.next(), space.largest_acked);
            draft.content.app = Some(App::new(space.next(), false));
            draft.sizes[APP] = SHORT_HEADER + number + CLOSE_FRAME + TAG;
        } else {
            let n = usize::from(self.keys[INITIAL] != Keys::Ready);
            draft.content.openings[n] = Some(Opening {
                pn: self.spaces[n].next(),
                ..Opening::default()
            });
            draft.sizes[n] = LONG_HEADER + 1 + 1 + CLOSE_FRAME + TAG;
        }
        if draft.size() <= draft.limit {
            out.push(self.commit(now, &mut draft));
        }
    }

    /// Pads the datagram, numbers its packets and remembers them.
    fn commit(&mut self, now: Instant, draft: &mut Draft) -> Datagram {
        let content = &draft.content;
        let to_pad = content.openings[INITIAL]
            .as_ref()
            .is_some_and(|opening| self.role == Role::Client || opening.is_eliciting());
        if to_pad {
            let last = draft.sizes.iter().rposition(|&size| size > 0).unwrap_or(0);
            let short = usize::from(SMALLEST_DATAGRAM).saturating_sub(draft.size());
            draft.sizes[last] += short;
        }
        let payload = narrow(draft.size());
        // What only 1-RTT packets count, marks, is asked for in datagrams without others.
        let ect = if content.openings.iter().any(Option::is_some) {
            Flags::NONE
        } else {
            self.params.ect()
        };
        let datagram = content.encode(payload, ect);
        self.bytes_sent += u64::from(payload);
        self.counters.datagrams += 1;
        let openings = content.openings.iter();
        let openings = openings.map(|opening| opening.as_ref().map(Opening::is_eliciting));
        let app = content.app.as_ref().map(App::is_eliciting);
        let packets = openings.chain([app]);
        for (n, eliciting) in packets.enumerate() {
            if let Some(eliciting) = eliciting {
                self.remember(now, n, eliciting, datagram, narrow(draft.sizes[n]));
            }
        }
        // A client is done with Initial packets once it sends Handshake packets (RFC 9001 §4.9.1).
        if self.role == Role::Client && content.openings[HANDSHAKE].is_some() {
            self.discard(INITIAL);
        }
        datagram
    }

    /// Data is about to be sent: for the first time, or after a pause.
    fn note_rate(&mut self, now: Instant) {
        let first = self.spaces[APP].eliciting == 0;
        let in_flight = self.packets_in_flight();
        let Some(rates) = &mut self.rates else { return };
        if self.spaces[APP].last_eliciting.is_none() {
            let rtt = self.rtt.smoothed().as_micros();
            self.congestion.begin(&Start {
                now,
                tick: tick(now),
                rtt_micros: u32::try_from(rtt).unwrap_or(u32::MAX),
                measured: self.rtt.has_sample(),
                delivered: rates.delivered,
            });
        } else if first && rates.is_app_limited() {
            self.congestion.on_restart(now);
        }
        rates.on_sent(now, first, in_flight, self.counters.lost);
    }

    fn remember(&mut self, now: Instant, n: usize, eliciting: bool, datagram: Datagram, size: u16) {
        // What is not remembered needs no stamp.
        if n == APP && (eliciting || !self.spaces[APP].sent.is_empty()) {
            self.note_rate(now);
        }
        if n == APP
            && eliciting
            && self.packets_in_flight() == 0
            && let Some(last) = self.spaces[APP].last_eliciting
        {
            self.congestion.on_resume(now, last);
        }
        let space = &mut self.spaces[n];
        space.push(Sent {
            at: now,
            datagram,
            size,
            flags: if eliciting { IN_FLIGHT } else { 0 },
        });
        if eliciting {
            space.probes = space.probes.saturating_sub(1);
            self.congestion.on_sent(size.into());
            if std::mem::take(&mut self.silent) {
                self.idle_from = now;
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

/// Bytes of a packet number (RFC 9000 §17.1).
const fn number_size(pn: u32, largest_acked: Option<u32>) -> usize {
    let away = match largest_acked {
        None => pn as u64 + 1,
        Some(largest) => (pn - largest) as u64,
    };
    match 2 * away {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x100_0000 => 3,
        _ => 4,
    }
}

/// Bytes of an ACK frame.
fn ack_size(ack: &Ack) -> usize {
    let ranges = ack.ranges();
    let mut size = 1 + varint(ack.largest().into()) + 1;
    // The delay counts units of 8 µs (ack_delay_exponent 3).
    size += varint(u64::from(ack.delay_micros >> 3));
    let mut below = ranges[0].1;
    for &(start, end) in ranges {
        let gap = if end == below {
            0
        } else {
            varint((below - end).into())
        };
        size += gap + varint((end - start).into());
        below = start;
    }
    size + ack
        .ce
        .map_or(0, |ce| 2 + varint(ack.largest().into()) + varint(ce.into()))
}

fn frame_size(frame: &Frame) -> usize {
    stream_header(frame.id, frame.offset) + usize::from(frame.len)
}
