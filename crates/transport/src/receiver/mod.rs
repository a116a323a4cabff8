//! The receiving end of a TCP connection.
//!
//! # Source
//!
//! Linux 6.1, from measurements and facts (`docs/explanation/tcp.md`): RFC 9293 §3.8.6.3 and RFC 5681 §4.2
//! (delayed ACKs), RFC 2018 and 2883 (SACK, DSACK), RFC 7323 §4.3 (timestamp echo), RFC 3168
//! §6.1.3 (ECN echo); quick ACKs, ACK compression and window growth as in Linux.
//!
//! # Layout
//!
//! | file | content |
//! |---|---|
//! | `connection` | [`Receiver`]: a set of the parts below, and the steps that connect them |
//! | `ack_schedule` | when data is acknowledged |
//! | `feedback` | ECN: what acknowledgements report of CE |
//! | `out_of_order` | segments that wait for a hole to be filled, and SACK blocks |
//! | `window` | how the advertised window grows |
//! | `limited`, `buffer` | the same with a finite buffer, a slow application or another policy of acknowledgements |
//! | `gro` | a device that merges segments |

mod ack_schedule;
mod buffer;
mod feedback;
mod gro;
mod limited;
mod out_of_order;
mod window;

use std::cmp::Ordering;

use sojourn_net::{Instant, IpVersion};
use sojourn_prefetch::prefetch;

use crate::clock::{Ticks, before, micros};
use crate::handshake::Handshake;
use crate::profile::SenderProfile;
use crate::reception::AckPolicy;
use crate::rtt::MAX_SAMPLE;
use crate::segment::{Flags, MSS, Segment};
use crate::sender::SenderParams;
use crate::sender::handshake::SYN_WINDOW;
use ack_schedule::AckSchedule;
use feedback::EcnFeedback;
use limited::Limited;
use out_of_order::OutOfOrder;
use window::AdvertisedWindow;

/// SYN-ACK retransmissions until a half-open connection is dropped.
const MAX_SYN_ACK_RESENT: u8 = 5;

/// How a segment arrived, besides its TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its IP header has a CE mark.
    pub ce: bool,
    /// The next segment of the connection arrives at the same instant. The application reads
    /// after the last of such a burst, and only reading acknowledges a second segment.
    pub more: bool,
}

/// The receiving end of a TCP connection; unless it is limited, its application is always waiting to read, and it
/// acknowledges as Linux does.
#[derive(Clone, Debug)]
pub struct Receiver {
    ticks: Ticks,
    acks: AckSchedule,
    window: AdvertisedWindow,
    held: Option<Box<OutOfOrder>>,
    /// Of a receiver in [`State::Limited`].
    limited: Option<Box<Limited>>,
    feedback: EcnFeedback,
    /// Bytes delivered to the application.
    delivered: u64,
    /// Bytes up to the end of the first unread segment: the window is adjusted when it is read.
    first_unread: u64,
    received: u64,
    syn_ack_sent: Instant,
    /// Next segment expected.
    next: u32,
    /// What the last ACK acknowledged.
    acked: u32,
    /// The timestamp to echo (RFC 7323 `TS.Recent`).
    echo: u32,
    /// Segments of the burst that the application has not read.
    unread: u32,
    state: State,
    /// The application reads when the burst is over.
    read_waits: bool,
    fin_received: bool,
    syn_acks: u8,
    /// SYN-ACKs retransmitted by the timer, not by a SYN.
    syn_ack_timeouts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listen,
    SynReceived,
    /// Established, without limits.
    Established,
    /// Established, with what [`limited`] has.
    Limited,
}

impl Receiver {
    /// A listener on a host with this tick counter, for segments of [`MSS`]; it accepts ECN if `ecn`.
    pub const fn new(ticks: Ticks, ecn: bool) -> Self {
        Self::with_feedback(
            ticks,
            (IpVersion::V4, MSS),
            SenderProfile::Linux,
            EcnFeedback::new(ecn),
        )
    }

    /// The listener for a sender with these parameters: it accepts ECN if the sender offers it,
    /// reports marks as its controller requires, and sends ECN-capable acknowledgements to DCTCP
    /// and Prague.
    #[must_use]
    pub fn answering(params: &SenderParams, ticks: Ticks) -> Self {
        let limited = (!params.receiver.is_usual())
            .then(|| Box::new(Limited::new(&params.receiver, params.mss, params.ip)));
        let mut receiver = Self {
            limited,
            ..Self::with_feedback(
                ticks,
                (params.ip, params.mss),
                params.profile,
                EcnFeedback::answering(params),
            )
        };
        if params.receiver.acks.every != AckPolicy::LINUX.every {
            receiver.acks.ignore_push();
        }
        receiver
    }

    const fn with_feedback(
        ticks: Ticks,
        (ip, mss): (IpVersion, u16),
        profile: SenderProfile,
        feedback: EcnFeedback,
    ) -> Self {
        Self {
            ticks,
            acks: AckSchedule::new(mss, ticks.at(Instant::ZERO), profile),
            window: AdvertisedWindow::new(ip, mss),
            held: None,
            limited: None,
            feedback,
            delivered: 0,
            first_unread: 0,
            received: 0,
            syn_ack_sent: Instant::ZERO,
            next: 0,
            acked: 0,
            echo: 0,
            unread: 0,
            state: State::Listen,
            read_waits: false,
            fin_received: false,
            syn_acks: 0,
            syn_ack_timeouts: 0,
        }
    }

    /// Asks the processor to load the segments above a hole.
    #[inline]
    pub fn prefetch_held(&self) {
        if let Some(held) = &self.held {
            prefetch(&**held);
        }
    }

    /// Bytes delivered to the application, in order, each once.
    pub const fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// Data segments that arrived, duplicates included.
    pub const fn received_segments(&self) -> u64 {
        self.received
    }

    /// Data segments that arrived CE-marked, if ECN was negotiated.
    pub const fn marked_segments(&self) -> u64 {
        self.feedback.marked_segments()
    }

    /// Whether everything up to the FIN has been delivered.
    pub fn finished(&self) -> bool {
        self.fin_received && self.has_read_all()
    }

    fn has_read_all(&self) -> bool {
        let limited = self.limited.as_ref();
        limited.is_none_or(|limited| limited.buffer.unread() == 0)
    }

    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established | State::Limited)
    }

    /// A segment from the peer arrived in `arrival`.
    pub fn on_segment(
        &mut self,
        now: Instant,
        seg: &Segment,
        arrival: Arrival,
        out: &mut Vec<Segment>,
    ) {
        if seg.seq == self.next && self.expects_only_data(seg, arrival.ce) {
            self.take_next(now, seg, arrival.more, out);
        } else {
            self.on_any_segment(now, seg, arrival, out);
        }
    }

    /// Out of line: it would cost the usual segment registers that this saves.
    #[inline(never)]
    fn on_any_segment(
        &mut self,
        now: Instant,
        seg: &Segment,
        arrival: Arrival,
        out: &mut Vec<Segment>,
    ) {
        if seg.flags.has(Flags::SYN) {
            self.feedback.on_syn(seg.flags, arrival.ce);
            self.on_syn(now, seg, out);
            // A repeated SYN may be the last of a burst with data.
            if self.state == State::Limited {
                self.after_limited_syn(now, arrival.more, out);
            }
            return;
        }
        if self.state == State::SynReceived {
            self.feedback.on_confirmation(seg);
            self.establish(now);
        }
        if self.state != State::Established {
            if self.state == State::Limited {
                self.take_limited(now, seg, arrival, out);
            }
            return;
        }
        if seg.len == 0 && !seg.flags.has(Flags::FIN) {
            if self.is_window_probe(seg) {
                self.send_ack(now, out);
            }
            return;
        }
        self.note_header(now, seg, 1);
        self.read_waits = arrival.more;
        if self.feedback.is_on() {
            self.note_ecn(now, seg, arrival.ce, out);
        }
        match seg.seq.cmp(&self.next) {
            Ordering::Equal => self.take_in_order(now, seg, out),
            Ordering::Less => {
                self.note_duplicate(seg);
                self.schedule(now, out);
            }
            Ordering::Greater => self.hold(now, seg, out),
        }
    }

    /// Whether a segment without data asks for the window: its number was acknowledged (RFC 9293 §3.10.7.4).
    const fn is_window_probe(&self, seg: &Segment) -> bool {
        before(seg.seq, self.acked)
    }

    /// A segment with data or FIN arrived, or `count` that a device merged.
    #[inline]
    fn note_header(&mut self, now: Instant, seg: &Segment, count: u32) {
        self.received += u64::from(count);
        self.window.measure_rtt(self.ticks.stamp(now), seg);
        // A timestamp never goes back (RFC 7323 §4.3), though an overtaken segment has an older one.
        if seg.seq <= self.acked && !before(seg.ts_val, self.echo) {
            self.echo = seg.ts_val;
        }
    }

    /// A segment arrived again.
    fn note_duplicate(&mut self, seg: &Segment) {
        let held = self.held.get_or_insert_default();
        held.report_duplicate(seg.seq);
        self.acks.on_duplicate();
    }

    /// Whether `seg`, CE-marked or not, is data without FIN that needs no response but an acknowledgement and changes
    /// nothing of the ECN feedback, on a connection without holes.
    #[inline]
    fn expects_only_data(&self, seg: &Segment, ce: bool) -> bool {
        let flags = if self.feedback.is_on() {
            self.feedback.flags_of_interest(seg.flags, ce)
        } else {
            seg.flags
        };
        (flags == Flags::ACK || flags == Flags::ACK | Flags::PSH)
            && seg.len > 0
            && self.state == State::Established
            && !self.has_hole()
    }

    /// The next segment in order arrived, [data only](Self::expects_only_data): the steps of
    /// [`Self::on_any_segment`] that do something then.
    #[inline]
    fn take_next(&mut self, now: Instant, seg: &Segment, more: bool, out: &mut Vec<Segment>) {
        let tick = self.ticks.at(now);
        self.received += 1;
        self.window.measure_rtt(self.ticks.stamp(now), seg);
        if seg.seq == self.acked && !before(seg.ts_val, self.echo) {
            self.echo = seg.ts_val;
        }
        self.read_waits = more;
        self.acks.on_data(tick, seg, self.window.advertised());
        self.next += 1;
        self.acks.add_received(seg.len.into());
        self.delivered += u64::from(seg.len);
        if self.unread == 0 {
            self.first_unread = self.delivered;
        }
        self.unread += 1;
        if self.window.grow(seg.len, self.unread) {
            self.acks.ensure_quick(1);
        }
        if !more {
            self.unread = 0;
            self.window.adjust(now, self.first_unread);
        }
        let due = self.acks.is_second() && (!more || self.window.holds(self.unread))
            || self.acks.is_immediate()
            || self.acks.delay(self.ticks, now, self.window.rtt_micros());
        if due {
            self.send_ack(now, out);
        }
        // The application has read everything: a pushed segment is acknowledged.
        if self.acks.is_pushed() && !more {
            self.send_ack(now, out);
        }
    }

    /// A data segment arrived, CE-marked or not, and ECN was negotiated.
    #[inline]
    fn note_ecn(&mut self, now: Instant, seg: &Segment, ce: bool, out: &mut Vec<Segment>) {
        let is_new = seg.seq >= self.next;
        if self.feedback.changes_with(ce, is_new) && self.acks.is_delayed() {
            let window = match self.state {
                State::Limited => self.offer_limited(),
                _ => self.window.advertised(),
            };
            self.acknowledge(now, window, out);
        }
        let response = self.feedback.on_data(seg, ce, is_new);
        if response.immediate {
            self.acks.require_immediate();
        }
        if response.quick {
            self.acks.on_mark();
        }
    }

    fn on_syn(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        match self.state {
            State::Listen => {
                self.state = State::SynReceived;
                self.echo = seg.ts_val;
                self.feedback.negotiate(seg);
                self.send_syn_ack(now, out);
            }
            // The SYN-ACK was lost; the echo stays that of the first SYN seen.
            State::SynReceived => self.send_syn_ack(now, out),
            State::Established => self.send_ack(now, out),
            State::Limited => self.send_limited_ack(now, out),
        }
    }

    fn send_syn_ack(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.syn_ack_sent = now;
        out.push(Segment {
            ts_val: self.ticks.stamp(now),
            ts_ecr: self.echo,
            window: self.first_window(),
            flags: Flags::SYN | Flags::ACK | self.feedback.syn_ack_flags(),
            ..Segment::EMPTY
        });
        let wait = self.acks.syn_ack_timeout_ms() << self.syn_ack_timeouts;
        self.acks.set_timer(Some(self.ticks.expiry(now, wait)));
        self.syn_acks = self.syn_acks.saturating_add(1);
    }

    /// The window of the handshake.
    fn first_window(&self) -> u32 {
        match &self.limited {
            Some(limited) => limited.buffer.first(),
            None => self.window.advertised(),
        }
    }

    fn established(&self) -> State {
        match self.limited {
            Some(_) => State::Limited,
            None => State::Established,
        }
    }

    fn establish(&mut self, now: Instant) {
        self.state = self.established();
        self.acks.set_timer(None);
        self.window.begin(now);
        if self.syn_acks == 1 {
            let rtt = micros(now.since(self.syn_ack_sent)).min(MAX_SAMPLE);
            self.begin_with(rtt);
        }
    }

    /// What the handshake measured and negotiated; `seg` is the segment that completed it, at
    /// `now`.
    pub fn handshake(&self, now: Instant, seg: &Segment) -> Handshake {
        let rtt_micros = if self.syn_acks == 1 {
            micros(now.since(self.syn_ack_sent))
        } else {
            let ms = self.ticks.stamp(now).wrapping_sub(seg.ts_ecr);
            1_000 * ms.clamp(1, MAX_SAMPLE / 1_000)
        };
        Handshake {
            rtt_micros: rtt_micros.min(MAX_SAMPLE),
            ecn: self.feedback.is_on(),
            is_mangled: self.feedback.is_mangled(),
            syn_ack_marked: self.feedback.is_syn_ack_marked(),
            peer_stamp: seg.ts_val,
            // Both ends have the same limits.
            peer_window: match &self.limited {
                Some(limited) => limited.buffer.first(),
                None => SYN_WINDOW,
            },
        }
    }

    /// Becomes the receiving half of an end whose sending half made the handshake.
    pub fn join(&mut self, now: Instant, handshake: &Handshake) {
        self.state = self.established();
        self.feedback.join(handshake);
        self.echo = handshake.peer_stamp;
        self.window.begin(now);
        self.begin_with(handshake.rtt_micros);
    }

    fn begin_with(&mut self, rtt_micros: u32) {
        self.window.first_rtt(rtt_micros);
        self.acks.begin(rtt_micros);
    }

    fn take_in_order(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        self.acks
            .on_data(self.ticks.at(now), seg, self.window.advertised());
        self.next += 1;
        self.acks.add_received(seg.len.into());
        self.delivered += u64::from(seg.len);
        self.fin_received |= seg.flags.has(Flags::FIN);
        if self.unread == 0 {
            self.first_unread = self.delivered;
        }
        self.delivered += u64::from(self.release_held());
        self.unread += 1;
        self.grow_window(seg.len);
        if !self.read_waits {
            self.unread = 0;
            self.window.adjust(now, self.first_unread);
        }
        if self.fin_received {
            self.acks.require_immediate();
        }
        self.schedule(now, out);
        // The application has read everything: a pushed segment is acknowledged.
        if self.acks.is_pushed() && !self.read_waits {
            self.send_ack(now, out);
        }
    }

    /// Releases held segments that have become in order; returns their bytes.
    #[inline]
    fn release_held(&mut self) -> u32 {
        let Some(held) = self.held.as_mut().filter(|held| !held.is_empty()) else {
            return 0;
        };
        let (next, bytes, fin) = held.release(self.next, self.window.mss());
        self.next = next;
        self.acks.add_received(bytes);
        self.fin_received |= fin;
        if held.is_empty() {
            self.acks.require_immediate();
        }
        bytes
    }

    /// Holds a segment above a hole; returns what [`OutOfOrder::add`] does.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as OutOfOrder::add")]
    fn add_held(&mut self, seg: &Segment) -> bool {
        let held = self.held.get_or_insert_default();
        let short = (seg.len != self.window.mss()).then_some(seg.len);
        held.add(seg.seq, short, seg.flags.has(Flags::FIN))
    }

    /// Whether segments wait above a hole.
    #[inline]
    fn has_hole(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.is_empty())
    }

    /// Segments held out of order.
    #[inline]
    fn held_count(&self) -> u32 {
        self.held.as_ref().map_or(0, |held| held.count())
    }

    /// Lets the window grow, which is reported to the sender immediately.
    fn grow_window(&mut self, len: u16) {
        if self.window.grow(len, self.unread + self.held_count()) {
            self.acks.ensure_quick(1);
        }
    }

    fn hold(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        let far = self.add_held(seg);
        self.grow_window(seg.len);
        if far && self.acks.is_compressed() {
            self.send_ack(now, out);
        }
        self.schedule(now, out);
    }

    /// Acknowledges now, or sets a timer to do so later.
    fn schedule(&mut self, now: Instant, out: &mut Vec<Segment>) {
        // While unread data would shrink the window, an ACK has no news for the sender.
        let second = self.acks.is_second()
            && (!self.read_waits || self.window.holds(self.unread + self.held_count()));
        let due = second || self.acks.is_immediate() || {
            let rtt_micros = self.window.rtt_micros();
            if self.has_hole() {
                self.acks.compress(now, self.next, rtt_micros)
            } else {
                self.acks.delay(self.ticks, now, rtt_micros)
            }
        };
        if due {
            self.send_ack(now, out);
        }
    }

    /// Writes an acknowledgement in its final place: a copy would wait for its fields.
    fn acknowledge(&mut self, now: Instant, window: u32, out: &mut Vec<Segment>) {
        out.push(Segment {
            ack: self.next,
            ts_val: self.ticks.stamp(now),
            ts_ecr: self.echo,
            window,
            flags: Flags::ACK,
            ..Segment::EMPTY
        });
        if let Some(seg) = out.last_mut() {
            if let Some(held) = &mut self.held {
                held.report(seg);
            }
            self.feedback.write_to(seg);
        }
        self.acked = self.next;
        self.acks.on_acknowledged();
    }

    /// Sends an acknowledgement; [`Receiver::send_limited_ack`] if the receiver is limited.
    fn send_ack(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.acknowledge(now, self.window.advertised(), out);
        self.acks.on_sent();
    }

    /// When [`Receiver::on_timer`] is due; `None` if no timer runs.
    #[inline]
    pub const fn next_timer(&self) -> Option<Instant> {
        self.acks.due()
    }

    /// The time returned by [`Receiver::next_timer`] has come.
    pub fn on_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.next_timer().is_none_or(|at| now < at) {
            return;
        }
        match self.state {
            State::Listen => {}
            State::SynReceived if self.syn_ack_timeouts == MAX_SYN_ACK_RESENT => {
                self.state = State::Listen;
                self.acks.set_timer(None);
                self.syn_acks = 0;
                self.syn_ack_timeouts = 0;
            }
            State::SynReceived => {
                self.syn_ack_timeouts += 1;
                self.send_syn_ack(now, out);
            }
            State::Established => {
                self.acks.on_timer(now);
                self.send_ack(now, out);
            }
            State::Limited => self.on_limited_timer(now, out),
        }
    }
}

const _: () = assert!(MSS < 1_460, "timestamps take their share of a segment");

#[cfg(test)]
mod tests;
