//! The receiving end of a connection with a finite buffer, an application that does not always read, another policy of
//! acknowledgements than Linux's, or a device that merges segments.
//!
//! It does what [`Receiver::on_any_segment`] does, in two steps that Linux has as well: the kernel takes a segment,
//! and the application reads it. Connections without these limits do not come here.

use std::cmp::Ordering;

use sojourn_net::{Instant, IpVersion};

use super::ack_schedule::earlier;
use super::buffer::Buffer;
use super::gro::{Gro, Merged};
use super::{Arrival, Receiver};
use crate::reception::{AckPolicy, Reader, ReceiverParams};
use crate::segment::{Flags, Segment};

/// The buffer and the application of a limited receiver.
#[derive(Clone, Debug)]
pub(super) struct Limited {
    pub(super) buffer: Buffer,
    reader: Reader,
    policy: AckPolicy,
    gro: Option<Box<Gro>>,
    /// When an application that reads at a rate may read again.
    ready_at: Instant,
    /// The application reads then, since something waits.
    reads_at: Option<Instant>,
}

impl Limited {
    pub(super) fn new(params: &ReceiverParams, mss: u16, ip: IpVersion) -> Self {
        Self {
            buffer: Buffer::new(params, mss),
            reader: params.reader,
            policy: params.acks,
            gro: Gro::new(&params.device, ip),
            ready_at: Instant::ZERO,
            reads_at: None,
        }
    }

    /// When the application reads what waits, or the device is polled.
    pub(super) fn due(&self) -> Option<Instant> {
        let polls_at = self.gro.as_ref().and_then(|gro| gro.polls_at());
        earlier(self.reads_at, polls_at)
    }

    /// The first instant from `now` on at which the application may read.
    fn may_read_at(&self, now: Instant) -> Instant {
        let at = now.max(self.ready_at);
        match self.reader.pause {
            Some((from, to)) if at >= Instant::ZERO + from && at < Instant::ZERO + to => {
                Instant::ZERO + to
            }
            _ => at,
        }
    }

    /// The application reads at `now`; returns the bytes that it takes, 0 if it does not read yet.
    fn read(&mut self, now: Instant) -> u64 {
        let unread = self.buffer.unread();
        self.reads_at = None;
        if unread == 0 {
            return 0;
        }
        let at = self.may_read_at(now);
        if at > now {
            self.reads_at = Some(at);
            return 0;
        }
        let Some(rate) = self.reader.rate else {
            self.buffer.take(unread);
            return unread;
        };
        let bytes = unread.min(Reader::CHUNK);
        self.buffer.take(bytes);
        self.ready_at = now + rate.serialise(sojourn_net::Bytes(bytes));
        if bytes < unread {
            self.reads_at = Some(self.may_read_at(self.ready_at));
        }
        bytes
    }
}

impl Receiver {
    /// A segment without SYN arrived at a limited receiver.
    pub(super) fn take_limited(
        &mut self,
        now: Instant,
        seg: &Segment,
        arrival: Arrival,
        out: &mut Vec<Segment>,
    ) {
        let gro = self
            .limited
            .as_mut()
            .and_then(|limited| limited.gro.as_mut());
        if let Some(gro) = gro {
            if gro.arrive(seg, arrival.ce, arrival.more) {
                self.poll_device(now, out);
            }
        } else {
            let merged = Merged::of(seg, arrival.ce);
            self.take_merged(now, &merged, arrival.more, out);
        }
        self.set_limited_timer();
    }

    /// The timer waits for the next acknowledgement, read or poll.
    fn set_limited_timer(&mut self) {
        let other = self.limited.as_ref().and_then(|limited| limited.due());
        self.acks.wait_for(other);
    }

    /// Sends an acknowledgement with the window that the buffer permits.
    pub(super) fn send_limited_ack(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let window = self.offer_limited();
        self.acknowledge(now, window, out);
        self.acks.on_sent();
    }

    /// The device hands over what it has received.
    fn poll_device(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let gro = self
            .limited
            .as_mut()
            .and_then(|limited| limited.gro.as_mut());
        let ready = gro.map_or_else(Vec::new, |gro| gro.poll(now, self.ticks));
        let last = ready.len().saturating_sub(1);
        for (n, merged) in ready.iter().enumerate() {
            self.take_merged(now, merged, n < last, out);
        }
    }

    /// Segments that arrived as one; `more` follow before the application reads.
    fn take_merged(&mut self, now: Instant, merged: &Merged, more: bool, out: &mut Vec<Segment>) {
        let seg = &merged.first;
        if seg.len == 0 && !seg.flags.has(Flags::FIN) {
            if self.is_window_probe(seg) {
                self.send_limited_ack(now, out);
            }
            // It may be the last of a burst with data.
            if !more {
                self.read_limited(now, out);
            }
            return;
        }
        self.note_header(now, seg, merged.count);
        for n in 0..merged.count {
            self.take_one_limited(now, merged, n, out);
        }
        self.schedule_limited(now, out);
        if !more {
            self.read_limited(now, out);
        }
    }

    /// Segment `n` of those that arrived as one.
    fn take_one_limited(&mut self, now: Instant, merged: &Merged, n: u32, out: &mut Vec<Segment>) {
        let seg = &merged.segment(n);
        if self.feedback.is_on() {
            self.note_ecn(now, seg, merged.ce, out);
        }
        match seg.seq.cmp(&self.next) {
            Ordering::Equal => {
                if n == 0 {
                    let limited = self.limited.as_ref();
                    let offered = limited.map_or(0, |limited| limited.buffer.offered());
                    let tick = self.ticks.at(now);
                    self.acks.on_data(tick, &merged.first, offered);
                }
                self.queue_limited(seg);
            }
            Ordering::Less => self.note_duplicate(seg),
            Ordering::Greater => {
                let far = self.add_held(seg);
                self.grow_limited(seg.len);
                if far && self.acks.is_compressed() {
                    self.send_limited_ack(now, out);
                }
            }
        }
    }

    /// A repeated SYN was answered; `more` follow before the application reads.
    pub(super) fn after_limited_syn(&mut self, now: Instant, more: bool, out: &mut Vec<Segment>) {
        let gro = self
            .limited
            .as_ref()
            .and_then(|limited| limited.gro.as_ref());
        let waits = gro.is_some_and(|gro| gro.waits());
        if waits && !more {
            self.poll_device(now, out);
        } else if !more {
            self.read_limited(now, out);
        }
        self.set_limited_timer();
    }

    /// The next segment in order waits to be read, with those that it makes in order.
    fn queue_limited(&mut self, seg: &Segment) {
        self.next += 1;
        self.acks.add_received(seg.len.into());
        self.fin_received |= seg.flags.has(Flags::FIN);
        let bytes = u64::from(seg.len);
        if let Some(limited) = &mut self.limited
            && limited.buffer.unread() == 0
        {
            self.first_unread = self.delivered + bytes;
        }
        self.queue_bytes(bytes);
        self.grow_limited(seg.len);
        let released = self.release_held();
        self.queue_bytes(released.into());
        if self.fin_received {
            self.acks.require_immediate();
        }
    }

    fn queue_bytes(&mut self, bytes: u64) {
        if let Some(limited) = &mut self.limited {
            limited.buffer.queue(bytes);
        }
    }

    /// Bytes that wait above a hole.
    fn held_bytes(&self) -> u64 {
        u64::from(self.held_count()) * u64::from(self.window.mss())
    }

    fn grow_limited(&mut self, len: u16) {
        let held = self.held_bytes();
        if let Some(limited) = &mut self.limited
            && limited.buffer.grow(len, held)
        {
            self.acks.ensure_quick(1);
        }
    }

    fn policy(&self) -> AckPolicy {
        let limited = self.limited.as_ref();
        limited.map_or(AckPolicy::LINUX, |limited| limited.policy)
    }

    /// Acknowledges now, or sets a timer to do so later. A second segment alone is acknowledged when it is read, unless
    /// the window is as large as before although it waits.
    fn schedule_limited(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let held = self.held_bytes();
        let rcv_mss = self.acks.rcv_mss();
        let policy = self.policy();
        let enough = self.acks.has_received(policy.every) && {
            let Some(limited) = &self.limited else {
                return;
            };
            if limited.buffer.unread() > 0 && limited.buffer.select(rcv_mss, held).is_short {
                self.acks.end_quick();
            }
            limited.buffer.holds(rcv_mss, held)
        };
        let due = enough || self.acks.is_immediate_with(&policy) || {
            let rtt_micros = self.window.rtt_micros();
            if self.has_hole() {
                self.acks.compress(now, self.next, rtt_micros)
            } else if let Some(longest) = policy.delay {
                self.acks.delay_for(now, longest)
            } else {
                self.acks.delay(self.ticks, now, rtt_micros)
            }
        };
        if due {
            self.send_limited_ack(now, out);
        }
    }

    /// The application reads if it may, and the kernel acknowledges what it has not yet, or announces the room that
    /// this made.
    pub(super) fn read_limited(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let Some(limited) = &mut self.limited else {
            return;
        };
        let bytes = limited.read(now);
        if bytes == 0 {
            return;
        }
        self.delivered += bytes;
        let limited_unread = limited.buffer.unread();
        let copied = self.first_unread.min(self.delivered);
        if let Some(wanted) = self.window.end_round(now, copied)
            && let Some(limited) = &mut self.limited
        {
            limited.buffer.tune(wanted);
        }
        self.first_unread = self.delivered + limited_unread.min(self.window.mss().into());
        let held = self.held_bytes();
        let drained = self.acks.is_pushed() && limited_unread == 0 && held == 0;
        let has_doubled = self
            .limited
            .as_ref()
            .is_some_and(|limited| limited.buffer.has_doubled(self.acks.rcv_mss(), held));
        let policy = self.policy();
        if self.acks.is_scheduled() && (self.acks.has_received(policy.every) || drained)
            || has_doubled && !self.fin_received
        {
            self.send_limited_ack(now, out);
        }
    }

    /// The window of the next acknowledgement.
    pub(super) fn offer_limited(&mut self) -> u32 {
        let (held, rcv_mss) = (self.held_bytes(), self.acks.rcv_mss());
        let Some(limited) = &mut self.limited else {
            return self.window.advertised();
        };
        let offer = limited.buffer.offer(rcv_mss, held);
        if offer.is_short {
            self.acks.end_quick();
        }
        offer.window
    }

    /// The timer of a limited receiver expired.
    pub(super) fn on_limited_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.acks.ack_due().is_some_and(|at| at <= now) {
            self.acks.on_timer(now);
            self.send_limited_ack(now, out);
        }
        let Some(limited) = &self.limited else {
            return;
        };
        let polls_at = limited.gro.as_ref().and_then(|gro| gro.polls_at());
        if limited.reads_at.is_some_and(|at| at <= now) {
            self.read_limited(now, out);
        }
        if polls_at.is_some_and(|at| at <= now) {
            self.poll_device(now, out);
        }
        self.set_limited_timer();
    }
}
