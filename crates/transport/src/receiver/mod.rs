//! The receiving end of a connection.
//!
//! # Source
//!
//! Linux 6.1, from measurements and facts (`docs/tcp.md`): RFC 9293 §3.8.6.3 and RFC 5681 §4.2
//! (delayed ACKs), RFC 2018 and 2883 (SACK, DSACK), RFC 7323 §4.3 (timestamp echo), RFC 3168
//! §6.1.3 (ECN echo); quick ACKs, ACK compression and window growth as Linux has them.
//!
//! # Law
//!
//! An in-order segment is acknowledged at once if it is the second since the last ACK, if it ends
//! a unit (PSH), if quick ACKs are left (16 at the start, one whenever the window grows), or if
//! it fills the last hole; otherwise after 40 ms. Out of order the first three duplicates are
//! answered at once, later ones together after 1 ms or a twentieth of a round trip.

mod ecn;
mod join;
mod sacks;
mod window;

use std::cmp::Ordering;

use sojourn_net::{Duration, Instant};

use crate::clock::{Ticks, before, micros};
use crate::rtt::MAX_SAMPLE;
use crate::segment::{Flags, MSS, SackBlock, Segment};
use crate::sender::SenderParams;
use ecn::{Counters, Feedback};
use sacks::OutOfOrder;
use window::AdvertisedWindow;

/// Quick ACKs at the start, after a long pause and after duplicate data.
const MAX_QUICK: u8 = 16;
/// The delayed-ACK time-out, in ms.
const MIN_ATO_MS: u32 = 40;
/// Duplicate ACKs that go at once.
const DUPLICATES_AT_ONCE: u8 = 3;
/// Most ACKs that one compressed ACK stands for.
const MAX_COMPRESSED: u8 = 44;
/// Longest wait of a compressed ACK, and the slack its timer allows itself.
const MAX_COMPRESSION: Duration = Duration::from_millis(1);
const COMPRESSION_SLACK: Duration = Duration::from_micros(100);
/// SYN-ACK retransmissions until a half-open connection is dropped.
const MAX_SYN_ACK_RESENT: u8 = 5;

/// How a segment arrived, besides what TCP says in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its IP header says that congestion was met.
    pub ce: bool,
    /// The next segment of the connection arrives at the same instant. The application reads
    /// after the last of such a burst, and only reading acknowledges a second segment.
    pub more: bool,
}

/// The receiving end of a TCP connection; its application is always waiting to read.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, kept small"
)]
pub struct Receiver {
    ticks: Ticks,
    state: State,
    /// Next segment expected.
    next: u32,
    /// What the last ACK acknowledged.
    acked: u32,
    /// Bytes received in order since the last ACK.
    since_ack: u32,
    /// Bytes handed to the application.
    delivered: u64,
    /// The timestamp to echo (RFC 7323 `TS.Recent`).
    echo: u32,
    ato_ms: u32,
    last_data: Instant,
    /// Largest segment seen.
    rcv_mss: u16,
    quick: u8,
    pushed: bool,
    ack_pending: bool,
    ack_now: bool,
    ece: bool,
    /// The application reads when the burst is over.
    read_waits: bool,
    /// Segments of the burst it has not read.
    unread: u32,
    /// Bytes up to the end of the first of them: the window is adjusted when that is read.
    first_unread: u64,
    ecn: bool,
    feedback: Feedback,
    /// The ECN field of acknowledgements.
    ect: Flags,
    /// ECN field and marking of the SYN.
    syn_ecn: (Flags, bool),
    fin_received: bool,
    syn_acks: u8,
    /// How often the timer, not a SYN, had a SYN-ACK sent again.
    syn_ack_timeouts: u8,
    compressed: u8,
    duplicates: u8,
    /// The segment expected when `duplicates` began to count.
    duplicates_of: u32,
    delayed_ack_at: Option<Instant>,
    compressed_ack_at: Option<Instant>,
    held: Option<Box<OutOfOrder>>,
    window: AdvertisedWindow,
    syn_ack_sent: Instant,
    /// The host's retransmission time-out for this connection, in ms.
    rto_ms: u32,
    received: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listen,
    SynReceived,
    Established,
}

impl Receiver {
    /// A listener on a host with this tick counter; it accepts ECN if `ecn`.
    pub const fn new(ticks: Ticks, ecn: bool) -> Self {
        Self {
            ticks,
            state: State::Listen,
            next: 0,
            acked: 0,
            since_ack: 0,
            delivered: 0,
            echo: 0,
            ato_ms: 0,
            last_data: Instant::ZERO,
            rcv_mss: 536,
            quick: 0,
            pushed: false,
            ack_pending: false,
            ack_now: false,
            ece: false,
            read_waits: false,
            unread: 0,
            first_unread: 0,
            ecn,
            feedback: Feedback::Latched,
            ect: Flags::NONE,
            syn_ecn: (Flags::NONE, false),
            fin_received: false,
            syn_acks: 0,
            syn_ack_timeouts: 0,
            compressed: 0,
            duplicates: 0,
            duplicates_of: 0,
            delayed_ack_at: None,
            compressed_ack_at: None,
            held: None,
            window: AdvertisedWindow::new(),
            syn_ack_sent: Instant::ZERO,
            rto_ms: 1_000,
            received: 0,
        }
    }

    /// The listener a sender of these parameters needs: where DCTCP or Prague send it accepts ECN,
    /// tells of each packet whether it was marked, or of how many, and has its acknowledgements be
    /// ECN-capable; where Accurate ECN is asked for it tells of how many.
    #[must_use]
    pub const fn answering(params: &SenderParams, ticks: Ticks) -> Self {
        let mut receiver = Self::new(ticks, params.offers_ecn());
        if params.cc.needs_ecn() {
            receiver.feedback = Feedback::Mirrored;
            receiver.ect = params.ect();
        }
        if params.wants_accurate_ecn() {
            receiver.feedback = Feedback::Counted(Counters::START);
        }
        receiver
    }

    /// Bytes handed to the application, in order, each once.
    pub const fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// Data segments that arrived, duplicates included.
    pub const fn received_segments(&self) -> u64 {
        self.received
    }

    /// Whether everything up to the FIN has been handed over.
    pub const fn finished(&self) -> bool {
        self.fin_received
    }

    /// A segment from the peer arrived in `arrival`.
    pub fn on_segment(
        &mut self,
        now: Instant,
        seg: &Segment,
        arrival: Arrival,
        out: &mut Vec<Segment>,
    ) {
        if seg.flags.has(Flags::SYN) {
            self.syn_ecn = (seg.flags, arrival.ce);
            self.on_syn(now, seg, out);
            return;
        }
        if self.state == State::SynReceived {
            self.establish(now);
        }
        if self.state == State::Listen {
            return;
        }
        if seg.len == 0 && !seg.flags.has(Flags::FIN) {
            // What has been acknowledged already asks for the window (RFC 9293 §3.10.7.4).
            if seg.seq.wrapping_sub(self.acked).cast_signed() < 0 {
                self.send_ack(now, out);
            }
            return;
        }
        self.received += 1;
        self.window.measure_rtt(self.ticks.stamp(now), seg);
        // A timestamp never goes back (RFC 7323 §4.3), though an overtaken segment carries one.
        if seg.seq <= self.acked && !before(seg.ts_val, self.echo) {
            self.echo = seg.ts_val;
        }
        self.read_waits = arrival.more;
        self.hear_congestion(now, seg, arrival.ce, out);
        match seg.seq.cmp(&self.next) {
            Ordering::Equal => self.take_in_order(now, seg, out),
            Ordering::Less => {
                self.report_duplicate(seg.seq);
                self.quick = self.quick.max(MAX_QUICK);
                self.schedule(now, out);
            }
            Ordering::Greater => self.hold(now, seg, out),
        }
    }

    fn on_syn(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        match self.state {
            State::Listen => {
                self.state = State::SynReceived;
                self.echo = seg.ts_val;
                self.negotiate(seg);
                self.send_syn_ack(now, out);
            }
            // The answer was lost; the echo stays that of the first SYN seen.
            State::SynReceived => self.send_syn_ack(now, out),
            State::Established => self.send_ack(now, out),
        }
    }

    fn send_syn_ack(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.syn_ack_sent = now;
        let (syn, ce) = self.syn_ecn;
        let flags = Flags::SYN | Flags::ACK | self.accepted(syn, ce);
        out.push(Segment {
            ts_val: self.ticks.stamp(now),
            ts_ecr: self.echo,
            window: self.window.advertised(),
            flags,
            ..Segment::EMPTY
        });
        let wait = 1_000 << self.syn_ack_timeouts;
        self.delayed_ack_at = Some(self.ticks.expiry(now, wait));
        self.syn_acks = self.syn_acks.saturating_add(1);
    }

    fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.delayed_ack_at = None;
        self.window.begin(now);
        if self.syn_acks == 1 {
            let rtt = micros(now.since(self.syn_ack_sent)).min(MAX_SAMPLE);
            self.begin_with(rtt);
        }
    }

    fn take_in_order(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        self.time_data(now, seg);
        self.accept(seg.len, seg.flags.has(Flags::FIN));
        if self.unread == 0 {
            self.first_unread = self.delivered;
        }
        if let Some(held) = &mut self.held
            && !held.is_empty()
        {
            let (next, bytes, fin) = held.release(self.next);
            self.next = next;
            self.since_ack += bytes;
            self.delivered += u64::from(bytes);
            self.fin_received |= fin;
            self.ack_now |= held.is_empty();
        }
        self.unread += 1;
        self.grow_window(seg.len);
        if !self.read_waits {
            self.unread = 0;
            self.window.adjust(now, self.first_unread);
        }
        if self.fin_received {
            self.ack_now = true;
        }
        self.schedule(now, out);
        // The application has read everything, which answers a pushed segment.
        if self.ack_pending && self.pushed && !self.read_waits {
            self.send_ack(now, out);
        }
    }

    /// Lets the window grow, which the sender is told at once.
    fn grow_window(&mut self, len: u16) {
        let held = self.held.as_ref().map_or(0, |held| held.count);
        if self.window.grow(len, self.unread + held) {
            self.quick = self.quick.max(1);
        }
    }

    fn accept(&mut self, len: u16, fin: bool) {
        self.next += 1;
        self.since_ack += u32::from(len);
        self.delivered += u64::from(len);
        self.fin_received |= fin;
    }

    /// Adapts the delayed-ACK time-out to the spacing of data.
    fn time_data(&mut self, now: Instant, seg: &Segment) {
        if seg.len >= self.rcv_mss {
            self.rcv_mss = seg.len.min(1_460);
            self.pushed |= seg.flags.has(Flags::PSH);
        } else {
            self.pushed = true;
        }
        self.ack_pending = true;
        let tick = |at| self.ticks.at(at);
        let gap = u32::try_from(tick(now) - tick(self.last_data)).unwrap_or(u32::MAX);
        if self.ato_ms == 0 {
            self.refill_quick();
            self.ato_ms = MIN_ATO_MS;
        } else if gap <= MIN_ATO_MS / 2 {
            self.ato_ms = self.ato_ms / 2 + MIN_ATO_MS / 2;
        } else if gap < self.ato_ms {
            self.ato_ms = (self.ato_ms / 2 + gap).min(self.rto_ms);
        } else if gap > self.rto_ms {
            self.refill_quick();
        }
        self.last_data = now;
    }

    fn refill_quick(&mut self) {
        let half = self.window.advertised() / (2 * u32::from(self.rcv_mss));
        let quick = u8::try_from(half.max(2))
            .unwrap_or(MAX_QUICK)
            .min(MAX_QUICK);
        self.quick = self.quick.max(quick);
    }

    fn hold(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        self.ack_pending = true;
        let held = self.held.get_or_insert_default();
        let far = held.add(seg.seq, seg.len, seg.flags.has(Flags::FIN));
        self.grow_window(seg.len);
        if far && self.compressed > 0 {
            self.send_ack(now, out);
            self.ack_pending = true;
        }
        self.schedule(now, out);
    }

    fn report_duplicate(&mut self, seq: u32) {
        self.ack_pending = true;
        let held = self.held.get_or_insert_default();
        held.duplicate = Some(SackBlock {
            start: seq,
            end: seq + 1,
        });
    }

    /// Acknowledges now, or sees to it that somebody does later.
    fn schedule(&mut self, now: Instant, out: &mut Vec<Segment>) {
        // A window that would have to shrink for what is unread says nothing to the sender.
        let held = self.held.as_ref().map_or(0, |held| held.count);
        let second = self.since_ack > u32::from(self.rcv_mss)
            && (!self.read_waits || self.window.holds(self.unread + held));
        if second || self.quick > 0 || self.ack_now {
            self.send_ack(now, out);
            return;
        }
        let holes = self.held.as_ref().is_some_and(|held| !held.is_empty());
        if !holes {
            self.delay_ack(now, out);
            return;
        }
        if self.duplicates_of != self.next {
            self.duplicates_of = self.next;
            self.duplicates = 0;
        }
        if self.duplicates < DUPLICATES_AT_ONCE || self.compressed >= MAX_COMPRESSED {
            self.duplicates = self.duplicates.saturating_add(1);
            self.send_ack(now, out);
            return;
        }
        self.compressed += 1;
        if self.compressed_ack_at.is_none() {
            let twentieth = Duration::from_micros(u64::from(self.window.rtt_micros()) / 20);
            let wait = MAX_COMPRESSION.min(twentieth) + COMPRESSION_SLACK;
            self.compressed_ack_at = Some(now + wait);
        }
    }

    fn delay_ack(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let ato = self.ato_ms.max(MIN_ATO_MS);
        let longest = (self.window.rtt_micros() / 1_000).clamp(MIN_ATO_MS, 200);
        let at = self.ticks.expiry(now, u64::from(ato.min(longest)));
        match self.delayed_ack_at {
            Some(pending) if pending <= now + Duration::from_millis(u64::from(ato / 4)) => {
                self.send_ack(now, out);
            }
            Some(pending) => self.delayed_ack_at = Some(pending.min(at)),
            None => self.delayed_ack_at = Some(at),
        }
    }

    /// Writes an acknowledgement where it is to lie: a copy would wait for its fields.
    fn acknowledge(&mut self, now: Instant, out: &mut Vec<Segment>) {
        out.push(Segment {
            ack: self.next,
            ts_val: self.ticks.stamp(now),
            ts_ecr: self.echo,
            window: self.window.advertised(),
            flags: Flags::ACK,
            ..Segment::EMPTY
        });
        if let Some(seg) = out.last_mut() {
            if let Some(held) = &mut self.held {
                held.report(seg);
            }
            self.tell(seg);
        }
        self.acked = self.next;
        self.since_ack = 0;
    }

    fn send_ack(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.acknowledge(now, out);
        self.pushed = false;
        self.ack_pending = false;
        self.ack_now = false;
        self.compressed = 0;
        self.delayed_ack_at = None;
        self.compressed_ack_at = None;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato_ms = MIN_ATO_MS;
            }
        }
    }

    /// When [`Receiver::on_timer`] is due; `None` if nothing is waited for.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        match (self.delayed_ack_at, self.compressed_ack_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
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
                self.delayed_ack_at = None;
                self.syn_acks = 0;
                self.syn_ack_timeouts = 0;
            }
            State::SynReceived => {
                self.syn_ack_timeouts += 1;
                self.send_syn_ack(now, out);
            }
            State::Established => {
                if self.delayed_ack_at.is_some_and(|at| at <= now) {
                    self.ato_ms = (self.ato_ms * 2).min(self.rto_ms);
                }
                self.send_ack(now, out);
            }
        }
    }
}

const _: () = assert!(MSS < 1_460, "timestamps take their share of a segment");
