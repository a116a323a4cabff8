//! Scheduling of acknowledgements.
//!
//! # Law
//!
//! An in-order segment is acknowledged immediately if it is the second since the last ACK, if it
//! ends a burst (PSH), if quick ACKs are left (16 at the start, one whenever the window grows), or
//! if it fills the last hole; otherwise after 40 ms. Out of order the first three duplicates are
//! acknowledged immediately, later ones together after 1 ms or a twentieth of a round trip.

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant};

use crate::clock::Ticks;
use crate::profile::{Compression, SenderProfile};
use crate::reception::AckPolicy;
use crate::segment::{Flags, Segment};

/// Quick ACKs at the start, after a long pause and after duplicate data.
const MAX_QUICK: u8 = 16;
/// The delayed-ACK time-out, in ms.
const MIN_ATO_MS: u32 = 40;
/// Duplicate ACKs that are sent immediately.
const IMMEDIATE_DUPLICATES: u8 = 3;
/// Most ACKs that one compressed ACK replaces.
const MAX_COMPRESSED: u8 = 44;
/// Longest delay of a compressed ACK, and the slack of its timer.
const MAX_COMPRESSION: Duration = Duration::from_millis(1);
const COMPRESSION_SLACK: Duration = Duration::from_micros(100);
/// Smallest and largest segment that the estimate of the peer's MSS believes.
const MIN_RCV_MSS: u16 = 536;
const MAX_RCV_MSS: u16 = 1_460;

/// The schedule of acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct AckSchedule {
    /// The tick at which the last in-order data arrived.
    last_data: u64,
    delayed_at: Option<Instant>,
    compressed_at: Option<Instant>,
    /// The earlier of the two, or what a limited receiver waits for if that is earlier still: it is asked for after
    /// each segment.
    due: Option<Instant>,
    /// Bytes received in order since the last ACK.
    since_ack: u32,
    /// The delayed-ACK time-out; `None` before the first data.
    ato_ms: Option<NonZeroU32>,
    /// The host's retransmission time-out for this connection, in ms.
    rto_ms: u32,
    /// The segment expected when `duplicates` began to count.
    duplicates_of: u32,
    /// Largest segment seen.
    rcv_mss: u16,
    quick: u8,
    compressed: u8,
    duplicates: u8,
    pushed: bool,
    immediate: bool,
    /// A full segment with PSH is acknowledged at once.
    push_counts: bool,
    compression: Compression,
    profile: SenderProfile,
}

impl AckSchedule {
    /// The schedule of a connection without data before `tick`.
    pub(super) const fn new(mss: u16, tick: u64, profile: SenderProfile) -> Self {
        Self {
            last_data: tick,
            delayed_at: None,
            compressed_at: None,
            due: None,
            since_ack: 0,
            ato_ms: None,
            rto_ms: 1_000,
            duplicates_of: 0,
            rcv_mss: if mss < MIN_RCV_MSS { mss } else { MIN_RCV_MSS },
            // Not used up if each segment is acknowledged.
            quick: profile.rules().ack_each as u8,
            compressed: 0,
            duplicates: 0,
            pushed: false,
            immediate: false,
            push_counts: profile.rules().ack_push,
            compression: profile.rules().compression,
            profile,
        }
    }

    /// The handshake took `rtt_micros`.
    pub(super) fn begin(&mut self, rtt_micros: u32) {
        self.rto_ms = (rtt_micros + (2 * rtt_micros).max(200_000)).div_ceil(1_000);
    }

    /// An in-order segment arrived at `tick` while `window` bytes are advertised: adapts the delayed-ACK
    /// time-out to the spacing of data.
    #[inline]
    pub(super) fn on_data(&mut self, tick: u64, seg: &Segment, window: u32) {
        if seg.len >= self.rcv_mss {
            self.rcv_mss = seg.len.min(MAX_RCV_MSS);
            self.pushed |= seg.flags.has(Flags::PSH) & self.push_counts;
        } else {
            self.pushed = true;
        }
        let gap = u32::try_from(tick - self.last_data).unwrap_or(u32::MAX);
        if let Some(ato) = self.ato_ms {
            let ato = ato.get();
            if gap <= MIN_ATO_MS / 2 {
                self.ato_ms = NonZeroU32::new(ato / 2 + MIN_ATO_MS / 2);
            } else if gap < ato {
                self.ato_ms = NonZeroU32::new((ato / 2 + gap).min(self.rto_ms));
            } else if gap > self.rto_ms {
                self.refill_quick(window);
            }
        } else {
            self.refill_quick(window);
            self.ato_ms = NonZeroU32::new(MIN_ATO_MS);
        }
        self.last_data = tick;
    }

    fn refill_quick(&mut self, window: u32) {
        let half = window / (2 * u32::from(self.rcv_mss));
        let quick = u8::try_from(half.max(2)).unwrap_or(MAX_QUICK);
        self.ensure_quick(quick.min(MAX_QUICK));
    }

    /// At least `count` ACKs are to be immediate.
    #[inline]
    pub(super) fn ensure_quick(&mut self, count: u8) {
        self.quick = self.quick.max(count);
    }

    /// The first CE mark of a window arrived.
    pub(super) fn on_mark(&mut self) {
        self.ensure_quick(self.profile.rules().quick_acks_of_mark);
    }

    /// The time-out of the first SYN-ACK, in ms.
    pub(super) const fn syn_ack_timeout_ms(&self) -> u64 {
        self.profile.rules().syn_timeout_ms as u64
    }

    /// Duplicate data arrived.
    pub(super) fn on_duplicate(&mut self) {
        self.ensure_quick(MAX_QUICK);
    }

    /// `bytes` more were received in order.
    #[inline]
    pub(super) const fn add_received(&mut self, bytes: u32) {
        self.since_ack += bytes;
    }

    /// The next acknowledgement is to be immediate.
    #[inline]
    pub(super) const fn require_immediate(&mut self) {
        self.immediate = true;
    }

    /// Whether more than one full segment is unacknowledged.
    #[inline]
    pub(super) fn is_second(&self) -> bool {
        self.since_ack > u32::from(self.rcv_mss)
    }

    /// Whether as much is unacknowledged as `every` full segments have.
    pub(super) fn has_received(&self, every: u8) -> bool {
        self.since_ack > u32::from(every - 1) * u32::from(self.rcv_mss)
    }

    /// [`AckSchedule::is_immediate`] with this policy.
    pub(super) fn is_immediate_with(&self, policy: &AckPolicy) -> bool {
        policy.every == 1 || self.immediate || policy.quick && self.quick > 0
    }

    /// Delays the acknowledgement of in-order data by at most `longest`; it is not due now.
    pub(super) fn delay_for(&mut self, now: Instant, longest: Duration) -> bool {
        self.set_delayed(now + longest);
        false
    }

    /// A full segment with PSH is as any.
    pub(super) const fn ignore_push(&mut self) {
        self.push_counts = false;
    }

    /// The estimate of the peer's MSS.
    pub(super) const fn rcv_mss(&self) -> u16 {
        self.rcv_mss
    }

    /// Whether data has arrived since the last ACK.
    pub(super) const fn is_scheduled(&self) -> bool {
        self.since_ack > 0
    }

    /// Space becomes short: acknowledgements are no longer quick.
    pub(super) const fn end_quick(&mut self) {
        self.quick = 0;
    }

    /// Whether quick ACKs are left or an immediate ACK is required.
    #[inline]
    pub(super) const fn is_immediate(&self) -> bool {
        self.quick > 0 || self.immediate
    }

    /// Whether a segment that was not acknowledged ended a burst.
    #[inline]
    pub(super) const fn is_pushed(&self) -> bool {
        self.pushed
    }

    /// Whether an acknowledgement is delayed.
    pub(super) const fn is_delayed(&self) -> bool {
        self.delayed_at.is_some()
    }

    /// Whether an acknowledgement of duplicates is delayed.
    pub(super) const fn is_compressed(&self) -> bool {
        self.compressed > 0
    }

    /// Delays the acknowledgement of in-order data, or returns that it is due now.
    pub(super) fn delay(&mut self, ticks: Ticks, now: Instant, rtt_micros: Option<u32>) -> bool {
        let ato = self
            .ato_ms
            .map_or(MIN_ATO_MS, |ato| ato.get().max(MIN_ATO_MS));
        let longest = rtt_micros.map_or(MIN_ATO_MS, |rtt| (rtt / 1_000).clamp(MIN_ATO_MS, 200));
        let at = ticks.expiry(now, u64::from(ato.min(longest)));
        let quarter = Duration::from_millis(u64::from(ato / 4));
        if self
            .delayed_at
            .is_some_and(|pending| pending <= now + quarter)
        {
            return true;
        }
        self.set_delayed(at);
        false
    }

    #[inline]
    fn set_delayed(&mut self, at: Instant) {
        self.delayed_at = Some(self.delayed_at.map_or(at, |pending| pending.min(at)));
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Delays the acknowledgement of data above a hole at `next`, or returns that it is due now.
    pub(super) fn compress(&mut self, now: Instant, next: u32, rtt_micros: Option<u32>) -> bool {
        if self.duplicates_of != next {
            self.duplicates_of = next;
            self.duplicates = 0;
        }
        if self.duplicates < IMMEDIATE_DUPLICATES
            || self.compressed >= MAX_COMPRESSED
            || self.compression == Compression::None
        {
            self.duplicates = self.duplicates.saturating_add(1);
            return true;
        }
        self.compressed += 1;
        if self.compressed_at.is_none() {
            let mut wait = rtt_micros.map_or(Duration::ZERO, |rtt| {
                MAX_COMPRESSION.min(Duration::from_micros(u64::from(rtt) / 20))
            });
            if self.compression == Compression::Slack {
                wait += COMPRESSION_SLACK;
            }
            let at = now + wait;
            self.compressed_at = Some(at);
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
        false
    }

    /// Everything received in order is acknowledged, though the schedule stays.
    #[inline]
    pub(super) const fn on_acknowledged(&mut self) {
        self.since_ack = 0;
    }

    /// An acknowledgement was sent.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.pushed = false;
        self.immediate = false;
        self.compressed = 0;
        self.delayed_at = None;
        self.compressed_at = None;
        self.due = None;
        if self.quick > 0 && !self.profile.rules().ack_each {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato_ms = NonZeroU32::new(MIN_ATO_MS);
            }
        }
    }

    /// The timer of the handshake shares that of delayed ACKs.
    pub(super) const fn set_timer(&mut self, at: Option<Instant>) {
        self.delayed_at = at;
        self.due = at;
    }

    /// When the timer of the receiver is due; `None`: none runs.
    #[inline]
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// When an acknowledgement is due.
    pub(super) fn ack_due(&self) -> Option<Instant> {
        earlier(self.delayed_at, self.compressed_at)
    }

    /// A limited receiver waits for `other` beside acknowledgements.
    pub(super) fn wait_for(&mut self, other: Option<Instant>) {
        self.due = earlier(self.ack_due(), other);
    }

    /// The timer expired: a delayed ACK was too early, so the next waits longer.
    pub(super) fn on_timer(&mut self, now: Instant) {
        if self.delayed_at.is_some_and(|at| at <= now)
            && let Some(ato) = self.ato_ms
        {
            self.ato_ms = NonZeroU32::new((ato.get() * 2).min(self.rto_ms));
        }
    }
}

/// The earlier of two instants, each of which may be missing.
pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
