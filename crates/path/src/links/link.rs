//! A queue and the transmitter that drains it.

use sojourn_net::{Bytes, Duration, Instant, Rate, Rng};
use sojourn_qdisc::{AnyQdisc, LinkFacts, Peek, Qdisc, QdiscSpec, QueueChange, TxqId};

use super::probe::LinkProbe;
use super::ring::Ring;
use super::transmitter::{Tbf, TraceStep, Traced};
use super::{Carried, Taken, Watcher};
use crate::config::{Encapsulation, RateTrace, Shaper, TransmitterConfig, share};
use crate::records::{LinkCounters, LinkRecord};

/// A queue and the transmitter that drains it.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is read for every packet, and none follows from the others alone"
)]
pub struct Link<P> {
    /// The queue.
    pub qdisc: AnyQdisc<P>,
    rate: Rate,
    /// The last packet size and its transmission time: most packets have the size of the previous one, and
    /// a division is slow. Not used by a link with special state.
    usual: (Bytes, Duration),
    /// `None`: frames are sent as they are, always at one rate.
    special: Option<Box<Special>>,
    transmitter: Transmitter<P>,
    /// An event that will send the next packet is pending.
    pub awaited: bool,
    /// What [`Qdisc::packets_affect_timer`] returns for the queue.
    pub packets_affect_timer: bool,
    /// The queue or one inside it asks for the pacing rates of senders.
    pub paces_sockets: bool,
    /// The watcher records events.
    records_events: bool,
    /// [`Link::attend`] has something to do.
    is_attended: bool,
    /// Time of the pending event of the queue's timer, if [`Link::advance_timer`] keeps track of it.
    timer_at: Option<Instant>,
    /// Start of the time during which the shaper of the queue has held packets back from an idle link.
    held_since: Option<Instant>,
}

/// State of a link whose transmission time does not follow from the number of bytes alone.
#[derive(Debug)]
struct Special {
    encapsulation: Encapsulation,
    /// The rate over time, if it is not constant between changes.
    rates: Option<RateTrace>,
    /// Since the warm-up ended.
    sending: Duration,
    /// Bytes charged for packets since then.
    charged: Bytes,
    /// The two at the last call of the controller; only their differences count.
    at_call: (Duration, Bytes),
    /// Only because a controller may change the rate, which it has not done yet.
    unchanged: bool,
}

impl Special {
    fn of(config: &TransmitterConfig) -> Option<Self> {
        let plain = config.is_plain();
        (!plain || config.is_controlled).then_some(Self {
            encapsulation: config.encapsulation,
            rates: config.rates.clone(),
            sending: Duration::ZERO,
            charged: Bytes::default(),
            at_call: (Duration::ZERO, Bytes::default()),
            unchanged: plain,
        })
    }

    /// How long a packet that is sent now occupies a link of `rate`. Out of line: most links are plain.
    #[inline(never)]
    fn time(&mut self, now: Instant, rate: Rate, size: Bytes) -> Duration {
        let charged = self.encapsulation.charged(size);
        let time = match &self.rates {
            Some(rates) => rates.finish(now, charged).since(now),
            None => rate.serialise(charged),
        };
        self.sending += time;
        self.charged += charged;
        time
    }
}

#[derive(Debug)]
enum Transmitter<P> {
    Serial {
        /// The packet in transmission while `busy`; an `Option` would be copied less efficiently.
        sending: P,
        busy: bool,
    },
    Bucket {
        /// How long a full bucket lasts.
        depth: Duration,
        /// When it is, or was, full; one depth earlier the credit is zero.
        full_at: Instant,
    },
    Tbf(Box<Tbf<P>>),
    Traced(Box<Traced<P>>),
    Ring(Box<Ring<P>>),
}

/// The next packet in the queue of a link with `tbf`.
enum Head {
    /// There are tokens for it at this time.
    Waits(Instant),
    /// It may be dequeued.
    MayLeave,
    /// The queue is empty.
    Empty,
}

impl<P: Carried> Link<P> {
    /// An idle link whose queue is built for a link of these `facts` with `rng`.
    pub fn new(queue: &QdiscSpec, facts: (&LinkFacts, Rng), config: &TransmitterConfig) -> Self {
        let qdisc = queue.build(facts.0, facts.1);
        let transmitter = match (&config.trace, config.shaper) {
            (Some(trace), _) => Transmitter::Traced(Box::new(Traced::new(trace.clone()))),
            (None, Shaper::Serial) => Transmitter::Serial {
                sending: P::NONE,
                busy: false,
            },
            (None, Shaper::Bucket { burst }) => Transmitter::Bucket {
                depth: config.rate.serialise(burst),
                full_at: Instant::ZERO,
            },
            (None, Shaper::Tbf { burst }) => {
                Transmitter::Tbf(Box::new(Tbf::new(config.rate.serialise(burst))))
            }
            (None, Shaper::Ring(ring)) => Transmitter::Ring(Box::new(Ring::new(ring))),
        };
        Self {
            packets_affect_timer: qdisc.packets_affect_timer(),
            paces_sockets: queue.paces_sockets(),
            records_events: false,
            is_attended: qdisc.packets_affect_timer(),
            qdisc,
            rate: config.rate,
            usual: (Bytes(0), Duration::ZERO),
            special: Special::of(config).map(Box::new),
            transmitter,
            awaited: false,
            timer_at: None,
            held_since: None,
        }
    }

    /// Whether the link would send `pkt` at once, without a trace of it in its queue. Of a link with nothing to send.
    #[inline]
    pub fn passes(&self, pkt: &P) -> bool {
        matches!(self.transmitter, Transmitter::Serial { busy: false, .. })
            && self.qdisc.passes_unchanged(pkt)
    }

    /// Sends a packet past the queue, which [passes](Self::passes) it. Returns the time at which its transmission ends.
    #[inline]
    pub fn send_at_once(&mut self, now: Instant, pkt: &P, watch: &mut impl Watcher<P>) -> Instant {
        let size = pkt.size();
        let taken = Taken {
            waited: Duration::ZERO,
            size,
            busy: Duration::ZERO,
        };
        watch.on_taken(now, pkt, &taken);
        self.transmitter = Transmitter::Serial {
            sending: *pkt,
            busy: true,
        };
        now + self.time(now, size)
    }

    /// The packet whose transmission on a serial link ends with the next turn.
    #[inline]
    pub const fn leaving(&self) -> Option<&P> {
        match &self.transmitter {
            Transmitter::Serial {
                sending,
                busy: true,
            } => Some(sending),
            _ => None,
        }
    }

    /// The packet that was [leaving](Self::leaving) has left: no turn passes it on.
    #[inline]
    pub const fn has_left(&mut self) {
        if let Transmitter::Serial { busy, .. } = &mut self.transmitter {
            *busy = false;
        }
    }

    /// The same link; `events`: what watches it records [events](Watcher::events).
    #[must_use]
    pub const fn recording(mut self, events: bool) -> Self {
        self.records_events = events;
        self.is_attended = events || self.packets_affect_timer;
        self
    }

    /// Offers a packet, stamped with the time, to the queue.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, pkt: P, watch: &mut impl Watcher<P>) {
        self.qdisc.enqueue(now, pkt, watch);
        if self.records_events {
            self.settle(now, None, watch);
        }
    }

    /// Dequeues the next packet. Time during which a non-empty queue returns no packet counts as busy,
    /// because its shaper is the bottleneck.
    // Otherwise each packet is copied once more.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "2 % of all instructions")]
    pub fn dequeue(&mut self, now: Instant, watch: &mut impl Watcher<P>) -> Option<P> {
        let next = self.qdisc.dequeue(now, watch);
        if self.is_attended {
            self.attend(now, next.as_ref().map(P::size), watch);
        }
        next
    }

    /// Takes a packet out of a TXQ of its queue; `None` as well if the queue has none.
    #[inline(never)]
    pub fn dequeue_from(
        &mut self,
        now: Instant,
        txq: TxqId,
        watch: &mut impl Watcher<P>,
    ) -> Option<P> {
        let next = self.qdisc.as_mac80211()?.dequeue_from(now, txq, watch);
        if self.is_attended {
            self.attend(now, next.as_ref().map(P::size), watch);
        }
        next
    }

    /// Follows a call of the queue that took a packet of the size `left` out. Out of line: most queues have no timer,
    /// and most runs record no events.
    #[inline(never)]
    fn attend(&mut self, now: Instant, left: Option<Bytes>, watch: &mut impl Watcher<P>) {
        if self.records_events {
            self.settle(now, left, watch);
        }
        // No other queue holds packets back.
        if self.packets_affect_timer {
            self.follow_hold(now, left.is_some(), watch);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle(&mut self, now: Instant, left: Option<Bytes>, watch: &mut impl Watcher<P>) {
        if let Some(events) = watch.events() {
            events.settle(now, &self.qdisc, left);
        }
    }

    /// Updates the hold time after a dequeue call; `passed` is whether it returned a packet.
    fn follow_hold(&mut self, now: Instant, passed: bool, watch: &mut impl Watcher<P>) {
        if !passed && self.qdisc.backlog().packets > 0 {
            // With a token bucket, packets leave immediately, and their transmission time is already counted.
            let since = match &self.transmitter {
                Transmitter::Bucket { full_at, .. } => now.max(*full_at),
                Transmitter::Tbf(tbf) => now.max(tbf.full_at()),
                Transmitter::Serial { .. } | Transmitter::Traced(_) | Transmitter::Ring(_) => now,
            };
            self.held_since.get_or_insert(since);
        } else if let Some(since) = self.held_since.take() {
            watch.on_held(now.saturating_since(since));
        }
    }

    /// Whether the event of the queue's timer that has come is the pending one, which then is no longer pending; other
    /// events are stale.
    pub fn take_timer(&mut self, now: Instant) -> bool {
        self.timer_at.take_if(|at| *at == now).is_some()
    }

    /// The time at which to schedule an event for the timer of the queue, which is then the pending one. `None`: an
    /// event is pending that is no later, or there is no timer.
    #[inline]
    pub fn advance_timer(&mut self, now: Instant) -> Option<Instant> {
        let due = self.qdisc.next_timer()?;
        if self.timer_at.is_some_and(|pending| pending <= due) {
            return None;
        }
        self.timer_at = Some(due.max(now));
        self.timer_at
    }

    /// Sends what may be sent at `now`; a packet that leaves the link is stored in `left`.
    /// Called when a packet is offered to an idle link, and at the time that the previous call
    /// returned, at which the link may send again.
    #[inline]
    pub fn turn(
        &mut self,
        now: Instant,
        watch: &mut impl Watcher<P>,
        left: &mut Option<P>,
    ) -> Option<Instant> {
        if let Transmitter::Serial { .. } = self.transmitter {
            self.serial_turn(now, watch, left)
        } else {
            self.shaped_turn(now, watch, left)
        }
    }

    /// The same for a link that is not serial. Out of line: most links are serial.
    #[inline(never)]
    fn shaped_turn(
        &mut self,
        now: Instant,
        watch: &mut impl Watcher<P>,
        left: &mut Option<P>,
    ) -> Option<Instant> {
        match self.transmitter {
            Transmitter::Serial { .. } => unreachable!("a serial link has turns of its own"),
            Transmitter::Bucket { depth, full_at } => {
                self.bucket_turn(now, depth, full_at, watch, left)
            }
            Transmitter::Tbf(_) => self.tbf_turn(now, watch, left),
            Transmitter::Traced(_) => self.traced_turn(now, watch, left),
            Transmitter::Ring(_) => self.ring_turn(now, watch, left),
        }
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "called once per packet; its caller has a second, rare call"
    )]
    fn serial_turn(
        &mut self,
        now: Instant,
        watch: &mut impl Watcher<P>,
        left: &mut Option<P>,
    ) -> Option<Instant> {
        // Not `dequeue`, whose result would be copied: its first words, which have just been stored one by one, would be
        // loaded at once and wait for that.
        let next = self.qdisc.dequeue(now, watch);
        if self.is_attended {
            self.attend(now, next.as_ref().map(P::size), watch);
        }
        #[expect(
            clippy::manual_map,
            reason = "the compiler does not inline the closure"
        )]
        let again = match &next {
            Some(pkt) => Some(now + self.take(now, pkt, watch)),
            None => None,
        };
        let Transmitter::Serial { sending, busy } = &mut self.transmitter else {
            unreachable!("the shaper of a link does not change");
        };
        if *busy {
            *left = Some(*sending);
        }
        *busy = next.is_some();
        if let Some(pkt) = next {
            *sending = pkt;
        }
        again
    }

    fn bucket_turn(
        &mut self,
        now: Instant,
        depth: Duration,
        full_at: Instant,
        watch: &mut impl Watcher<P>,
        left: &mut Option<P>,
    ) -> Option<Instant> {
        if now + depth < full_at {
            return Some(credit_returns(full_at, depth));
        }
        let pkt = self.dequeue(now, watch)?;
        let time = self.take(now, &pkt, watch);
        // An idle link gathers no more than the depth of the bucket.
        let full_at = full_at.max(now) + time;
        self.transmitter = Transmitter::Bucket { depth, full_at };
        *left = Some(pkt);
        let others = self.qdisc.backlog().packets > 0;
        others.then(|| credit_returns(full_at, depth).max(now))
    }

    fn tbf_turn(
        &mut self,
        now: Instant,
        watch: &mut impl Watcher<P>,
        left: &mut Option<P>,
    ) -> Option<Instant> {
        if !self.tbf().holds() {
            match self.head_ready(now) {
                Head::Waits(ready) => return Some(ready),
                Head::Empty => return None,
                Head::MayLeave => {}
            }
            let pkt = self.dequeue(now, watch)?;
            let cost = self.take(now, &pkt, watch);
            self.tbf().hold(pkt, cost);
        }
        match self.tbf().release(now) {
            Ok(pkt) => *left = Some(pkt),
            Err(at) => return Some(at),
        }
        let others = self.qdisc.backlog().packets > 0;
        others.then_some(now)
    }

    fn traced_turn(
        &mut self,
        now: Instant,
        watch: &mut impl Watcher<P>,
        left: &mut Option<P>,
    ) -> Option<Instant> {
        match self.traced().step(now) {
            TraceStep::Wait(at) => return Some(at),
            TraceStep::Leave(pkt) => *left = Some(pkt),
            TraceStep::Take => {
                let Some(pkt) = self.dequeue(now, watch) else {
                    self.traced().idle();
                    return None;
                };
                let layer = self.special.as_ref().map(|s| s.encapsulation);
                let charged = layer.unwrap_or_default().charged(pkt.size());
                self.traced().begin(pkt, charged);
                self.take(now, &pkt, watch);
            }
        }
        Some(now)
    }

    /// Of a link with a ring.
    fn ring_turn(
        &mut self,
        now: Instant,
        watch: &mut impl Watcher<P>,
        left: &mut Option<P>,
    ) -> Option<Instant> {
        let ring = self.ring()?;
        if !ring.take_due(now) {
            return None;
        }
        *left = ring.advance(now);
        self.fill_ring(now, watch)
    }

    /// Whether packets pass through a ring, which is to be [filled](Self::fill_ring) when a packet is offered.
    pub const fn has_ring(&self) -> bool {
        matches!(self.transmitter, Transmitter::Ring(_))
    }

    /// The driver takes out of the queue what its ring has room for. Returns the time of a further turn, if there must
    /// be one; `None` of a link without a ring.
    pub fn fill_ring(&mut self, now: Instant, watch: &mut impl Watcher<P>) -> Option<Instant> {
        while self.ring()?.has_room()
            && let Some(pkt) = self.dequeue(now, watch)
        {
            let size = pkt.size();
            let others = self.qdisc.backlog().packets > 0;
            let taken = Taken {
                waited: now.since(pkt.stamp()),
                size,
                busy: if others {
                    self.cost(size)
                } else {
                    Duration::ZERO
                },
            };
            watch.on_taken(now, &pkt, &taken);
            self.ring()?.push(now, pkt, size);
        }
        if let Some(size) = self.ring()?.next_to_send() {
            let sent = now + self.time(now, size);
            self.ring()?.begin(sent);
        }
        self.ring()?.next_turn()
    }

    /// Its ring, if it has one.
    fn ring(&mut self) -> Option<&mut Ring<P>> {
        match &mut self.transmitter {
            Transmitter::Ring(ring) => Some(ring),
            _ => None,
        }
    }

    /// The bucket of a link with `tbf`.
    fn tbf(&mut self) -> &mut Tbf<P> {
        let Transmitter::Tbf(tbf) = &mut self.transmitter else {
            unreachable!("the shaper of a link does not change");
        };
        tbf
    }

    /// Whether `tbf` may dequeue the next packet.
    ///
    /// A queue that can tell its next packet without dequeuing it keeps this packet until there are tokens, and is not
    /// asked for a packet while it is empty, so it does not detect that the link is idle.
    fn head_ready(&mut self, now: Instant) -> Head {
        match self.qdisc.peek() {
            Peek::Dequeues => Head::MayLeave,
            Peek::Empty => Head::Empty,
            Peek::Head(size) => {
                let cost = self.cost(size);
                let ready = self.tbf().ready(now, cost);
                if ready > now {
                    Head::Waits(ready)
                } else {
                    Head::MayLeave
                }
            }
        }
    }

    /// The transmitter of a link that follows a trace.
    fn traced(&mut self) -> &mut Traced<P> {
        let Transmitter::Traced(traced) = &mut self.transmitter else {
            unreachable!("the shaper of a link does not change");
        };
        traced
    }

    /// How long a packet of `size` would occupy the link.
    fn cost(&self, size: Bytes) -> Duration {
        let layer = self.special.as_ref().map(|special| special.encapsulation);
        self.rate.serialise(layer.unwrap_or_default().charged(size))
    }

    /// How long a packet that is sent now occupies the link; on average, if the link follows a trace.
    #[inline]
    fn time(&mut self, now: Instant, size: Bytes) -> Duration {
        if let Some(special) = &mut self.special {
            return special.time(now, self.rate, size);
        }
        if self.usual.0 != size {
            self.usual = (size, self.rate.serialise(size));
        }
        self.usual.1
    }

    /// From `now` on, packets are sent at `rate`; the packet in transmission completes at the old rate.
    /// Returns the new time at which a link that waits for credit may send.
    pub fn change_rate(&mut self, now: Instant, rate: Rate) -> Option<Instant> {
        let before = std::mem::replace(&mut self.rate, rate);
        self.usual = (Bytes(0), Duration::ZERO);
        if let Some(special) = &mut self.special {
            special.unchanged = false;
        }
        self.qdisc.on_link_rate(now, rate);
        // Burst and debt keep their size in bytes, so their durations change.
        let same = |time: Duration| rate.serialise(before.carries(time));
        let at = match &mut self.transmitter {
            Transmitter::Bucket { depth, full_at } => {
                *depth = same(*depth);
                *full_at = now + same(full_at.saturating_since(now));
                credit_returns(*full_at, *depth).max(now)
            }
            Transmitter::Tbf(tbf) => match tbf.change_rate(now, same) {
                Some(at) => at,
                None => match self.head_ready(now) {
                    Head::Waits(at) => at,
                    Head::MayLeave | Head::Empty => now,
                },
            },
            Transmitter::Serial { .. } | Transmitter::Traced(_) | Transmitter::Ring(_) => {
                return None;
            }
        };
        self.awaited.then_some(at)
    }

    /// Changes the queue, or replaces it by one that is built for a link of these `facts` with `rng`. The environment
    /// then asks for the timer of the queue, and for a packet if the link is idle.
    #[cold]
    #[inline(never)]
    pub fn change_queue(
        &mut self,
        now: Instant,
        change: &QueueChange,
        facts: (&LinkFacts, Rng),
        watch: &mut impl Watcher<P>,
    ) {
        self.qdisc.apply(now, change, facts, watch);
        self.packets_affect_timer = self.qdisc.packets_affect_timer();
        self.paces_sockets = change.spec().paces_sockets();
        self.is_attended = self.records_events || self.packets_affect_timer;
        if self.records_events {
            self.settle(now, None, watch);
        }
        if self.qdisc.backlog().packets == 0
            && let Some(since) = self.held_since.take()
        {
            watch.on_held(now.saturating_since(since));
        }
    }

    /// The rate at which it sends now.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The warm-up is over.
    pub fn begin_measuring(&mut self, now: Instant) {
        self.held_since = self.held_since.map(|since| since.max(now));
        if let Some(ring) = self.ring() {
            ring.begin_measuring(now);
        }
        if let Some(special) = &mut self.special {
            let (time, bytes) = special.at_call;
            special.at_call = (
                // Wraps: the part of an interval before the end of the warm-up.
                Duration::from_nanos(time.as_nanos().wrapping_sub(special.sending.as_nanos())),
                Bytes(bytes.0.wrapping_sub(special.charged.0)),
            );
            special.sending = Duration::ZERO;
            special.charged = Bytes::default();
        }
    }

    /// The share of its capacity that packets used from `from`, the last call of this method, to `to`. Of a link with a
    /// controller.
    pub fn utilisation(&mut self, from: Instant, to: Instant) -> Option<f64> {
        let special = self.special.as_mut()?;
        let (time, bytes) = special.at_call;
        special.at_call = (special.sending, special.charged);
        let time = special.sending.as_nanos().wrapping_sub(time.as_nanos());
        let bytes = Bytes(special.charged.0.wrapping_sub(bytes.0));
        let length = to.since(from);
        let used = match (&self.transmitter, &special.rates) {
            (Transmitter::Traced(traced), _) => {
                share(bytes, traced.trace.offered(from, to), length)
            }
            (_, Some(rates)) => share(bytes, rates.offered(from, to), length),
            (_, None) => Duration::from_nanos(time),
        };
        Some(used.as_secs_f64() / length.as_secs_f64())
    }

    /// Transmission time in the measured interval, in which `bytes` were sent.
    fn sending(&self, bytes: Bytes, from: Instant, to: Instant) -> Duration {
        match (&self.special, &self.transmitter) {
            (None, _) => self.rate.serialise(bytes),
            (Some(special), _) if special.unchanged => self.rate.serialise(bytes),
            // The fraction of the offered capacity that packets used.
            (Some(special), Transmitter::Traced(traced)) => share(
                special.charged,
                traced.trace.offered(from, to),
                to.since(from),
            ),
            (Some(special), _) => match &special.rates {
                Some(rates) => share(special.charged, rates.offered(from, to), to.since(from)),
                None => special.sending,
            },
        }
    }

    /// The record of this link, called `name`, in the measured time from `from` to `to`; `before`: what `probe`
    /// counted up to the end of the warm-up.
    pub fn record(
        &self,
        name: String,
        mut probe: LinkProbe,
        before: &LinkCounters,
        from: Instant,
        to: Instant,
    ) -> LinkRecord {
        if let Some(since) = self.held_since {
            probe.on_held(to.saturating_since(since));
        }
        let totals = probe.totals(before);
        let sending = self.sending(Bytes(totals.sent_bytes), from, to);
        let driver = match &self.transmitter {
            Transmitter::Ring(ring) => Some(Box::new(ring.below().clone())),
            _ => None,
        };
        LinkRecord {
            driver,
            ..probe.finish(name, totals, sending, &self.qdisc)
        }
    }

    /// A packet was dequeued to be sent now. Returns how long it occupies the link.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "called once per packet; without this the compiler does not inline the match on the queue"
    )]
    fn take(&mut self, now: Instant, pkt: &P, watch: &mut impl Watcher<P>) -> Duration {
        let size = pkt.size();
        let time = self.time(now, size);
        let others = self.qdisc.backlog().packets > 0;
        let taken = Taken {
            waited: now.since(pkt.stamp()),
            size,
            busy: if others { time } else { Duration::ZERO },
        };
        watch.on_taken(now, pkt, &taken);
        time
    }
}

/// When a bucket that will be full at `full_at` has no debt left.
const fn credit_returns(full_at: Instant, depth: Duration) -> Instant {
    Instant::from_nanos(full_at.as_nanos().saturating_sub(depth.as_nanos()))
}
