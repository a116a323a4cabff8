//! Links and wires.

use std::collections::VecDeque;

use sojourn_net::{Bytes, Duration, Instant, Packet as View, Rate};
use sojourn_qdisc::{AnyQdisc, Qdisc};

use crate::packet::{Owner, Packet};
use crate::probe::{LinkProbe, Taken, Watch};
use crate::tbf::Tbf;
use crate::traced::{Step, Traced};
use sojourn_records::{LinkCounters, LinkRecord};
use sojourn_scenario::plan::{Encapsulation, LinkConfig, Shaper, share};

/// A queue and the transmitter that drains it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) qdisc: AnyQdisc<Packet>,
    rate: Rate,
    /// A size and how long it takes at that rate: most packets are as large as the one before, and
    /// a division is slow. Of a link that keeps its rate.
    usual: (Bytes, Duration),
    /// `None`: frames are sent as they are, always at one rate.
    special: Option<Box<Special>>,
    transmitter: Transmitter,
    /// Its medium and its number there, if it is wireless; then it has no turns of its own.
    pub(crate) radio: Option<(u32, usize)>,
    /// An event that will send the next packet is pending.
    pub(crate) awaited: bool,
    /// The queue has a timer of its own.
    pub(crate) timed: bool,
    /// When that timer's event is pending for, if one is.
    pub(crate) timer_at: Option<Instant>,
    /// Start of the time during which the shaper of the queue has held packets back from an idle link.
    held_since: Option<Instant>,
}

/// A link layer or rate for which bytes alone do not tell how long the link was sending.
#[derive(Debug)]
struct Special {
    encapsulation: Encapsulation,
    /// Since the warm-up ended.
    sending: Duration,
    /// What packets counted since then.
    charged: Bytes,
}

impl Special {
    fn of(config: &LinkConfig) -> Option<Self> {
        (!config.is_plain()).then_some(Self {
            encapsulation: config.encapsulation,
            sending: Duration::ZERO,
            charged: Bytes::default(),
        })
    }

    /// How long a packet that is sent now occupies a link of `rate`. Out of line: most links are plain.
    #[inline(never)]
    fn time(&mut self, rate: Rate, size: Bytes) -> Duration {
        let charged = self.encapsulation.charged(size);
        let time = rate.serialise(charged);
        self.sending += time;
        self.charged += charged;
        time
    }
}

#[derive(Debug)]
enum Transmitter {
    Serial {
        /// What is being sent, while something is: an option would move in other pieces.
        sending: Packet,
        busy: bool,
    },
    Bucket {
        /// How long a full bucket lasts.
        depth: Duration,
        /// When it is, or was, full; a depth earlier the credit is nothing.
        full_at: Instant,
    },
    Tbf(Box<Tbf>),
    Traced(Box<Traced>),
}

impl Link {
    pub(crate) fn new(qdisc: AnyQdisc<Packet>, config: &LinkConfig) -> Self {
        let transmitter = match (&config.trace, config.shaper) {
            (Some(trace), _) => Transmitter::Traced(Box::new(Traced::new(trace.clone()))),
            (None, Shaper::Serial) => Transmitter::Serial {
                sending: Packet::NONE,
                busy: false,
            },
            (None, Shaper::Bucket { burst }) => Transmitter::Bucket {
                depth: config.rate.serialise(burst),
                full_at: Instant::ZERO,
            },
            (None, Shaper::Tbf { burst }) => {
                Transmitter::Tbf(Box::new(Tbf::new(config.rate.serialise(burst))))
            }
        };
        Self {
            timed: qdisc.is_timed(),
            qdisc,
            rate: config.rate,
            usual: (Bytes(0), Duration::ZERO),
            special: Special::of(config).map(Box::new),
            transmitter,
            radio: None,
            awaited: config.radio.is_some(),
            timer_at: None,
            held_since: None,
        }
    }

    /// Dequeues the next packet. Time during which a non-empty queue returns no packet counts as busy,
    /// because its shaper is the bottleneck.
    #[inline]
    pub(crate) fn dequeue(&mut self, now: Instant, watch: &mut Watch<'_>) -> Option<Packet> {
        let next = self.qdisc.dequeue(now, watch);
        // Only a queue with a timer can hold packets back: nothing else would wake the link.
        if self.timed {
            self.follow_hold(now, next.is_some(), watch);
        }
        next
    }

    /// Updates the hold time after a dequeue call; `passed` is whether it returned a packet.
    #[inline(never)]
    fn follow_hold(&mut self, now: Instant, passed: bool, watch: &mut Watch<'_>) {
        if !passed && self.qdisc.backlog().packets > 0 {
            // With a token bucket, packets leave immediately, and their transmission time is already counted.
            let since = match &self.transmitter {
                Transmitter::Bucket { full_at, .. } => now.max(*full_at),
                Transmitter::Tbf(tbf) => now.max(tbf.full_at()),
                Transmitter::Serial { .. } | Transmitter::Traced(_) => now,
            };
            self.held_since.get_or_insert(since);
        } else if let Some(since) = self.held_since.take() {
            watch.probe.on_held(now.saturating_since(since));
        }
    }

    /// Sends what may be sent at `now`; what leaves for the next step of its way goes to `left`.
    /// Called when a packet was offered to an idle link and whenever the time it returned, when it
    /// is the link's turn again, has come.
    #[inline]
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        watch: &mut Watch<'_>,
        left: &mut Option<Packet>,
    ) -> Option<Instant> {
        if let Transmitter::Serial { .. } = self.transmitter {
            self.serial_turn(now, watch, left)
        } else {
            self.shaped_turn(now, watch, left)
        }
    }

    /// A turn of a link that is not serial. Out of line: most links are serial.
    #[inline(never)]
    fn shaped_turn(
        &mut self,
        now: Instant,
        watch: &mut Watch<'_>,
        left: &mut Option<Packet>,
    ) -> Option<Instant> {
        match self.transmitter {
            Transmitter::Serial { .. } => unreachable!("a serial link has turns of its own"),
            Transmitter::Bucket { depth, full_at } => {
                self.bucket_turn(now, (depth, full_at), watch, left)
            }
            Transmitter::Tbf(_) => self.tbf_turn(now, watch, left),
            Transmitter::Traced(_) => self.traced_turn(now, watch, left),
        }
    }

    #[inline]
    fn serial_turn(
        &mut self,
        now: Instant,
        watch: &mut Watch<'_>,
        left: &mut Option<Packet>,
    ) -> Option<Instant> {
        let next = self.dequeue(now, watch);
        let again = next.as_ref().map(|pkt| now + self.take(now, pkt, watch));
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
        (depth, full_at): (Duration, Instant),
        watch: &mut Watch<'_>,
        left: &mut Option<Packet>,
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
        watch: &mut Watch<'_>,
        left: &mut Option<Packet>,
    ) -> Option<Instant> {
        let waits = matches!(&self.transmitter, Transmitter::Tbf(tbf) if tbf.holds());
        let taken = if waits {
            None
        } else {
            let pkt = self.dequeue(now, watch)?;
            Some((pkt, self.take(now, &pkt, watch)))
        };
        let Transmitter::Tbf(tbf) = &mut self.transmitter else {
            unreachable!("the shaper of a link does not change");
        };
        if let Some((pkt, cost)) = taken {
            tbf.hold(pkt, cost);
        }
        match tbf.release(now) {
            Ok(pkt) => *left = Some(pkt),
            Err(at) => return Some(at),
        }
        let others = self.qdisc.backlog().packets > 0;
        others.then_some(now)
    }

    fn traced_turn(
        &mut self,
        now: Instant,
        watch: &mut Watch<'_>,
        left: &mut Option<Packet>,
    ) -> Option<Instant> {
        match self.traced().step(now) {
            Step::Wait(at) => return Some(at),
            Step::Leave(pkt) => *left = Some(pkt),
            Step::Take => {
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

    /// The transmitter of a link that follows a trace.
    fn traced(&mut self) -> &mut Traced {
        let Transmitter::Traced(traced) = &mut self.transmitter else {
            unreachable!("the shaper of a link does not change");
        };
        traced
    }

    /// How long a packet that is sent now occupies the link; on average, if the link follows a trace.
    #[inline]
    fn time(&mut self, size: Bytes) -> Duration {
        if let Some(special) = &mut self.special {
            return special.time(self.rate, size);
        }
        if self.usual.0 != size {
            self.usual = (size, self.rate.serialise(size));
        }
        self.usual.1
    }

    /// From `now` on packets are sent at `rate`; the one that is being sent ends as it began.
    /// Returns when a link that waits for credit is to have its turn instead.
    pub(crate) fn change_rate(&mut self, now: Instant, rate: Rate) -> Option<Instant> {
        let before = std::mem::replace(&mut self.rate, rate);
        // Bytes of burst and of debt stay; what they last is another time.
        let same = |time: Duration| rate.serialise(before.carries(time));
        let at = match &mut self.transmitter {
            Transmitter::Bucket { depth, full_at } => {
                *depth = same(*depth);
                *full_at = now + same(full_at.saturating_since(now));
                credit_returns(*full_at, *depth).max(now)
            }
            Transmitter::Tbf(tbf) => tbf.change_rate(now, same)?,
            Transmitter::Serial { .. } | Transmitter::Traced(_) => return None,
        };
        self.awaited.then_some(at)
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.held_since = self.held_since.map(|since| since.max(now));
        if let Some(special) = &mut self.special {
            special.sending = Duration::ZERO;
            special.charged = Bytes::default();
        }
    }

    /// How long the link has been sending in the time that was measured, in which `bytes` went.
    fn sending(&self, bytes: Bytes, (from, to): (Instant, Instant)) -> Duration {
        match (&self.special, &self.transmitter) {
            (None, _) => self.rate.serialise(bytes),
            // The share of what was offered that packets used.
            (Some(special), Transmitter::Traced(traced)) => share(
                special.charged,
                traced.trace.offered(from, to),
                to.since(from),
            ),
            (Some(special), _) => special.sending,
        }
    }

    /// The record of this link, called `name`, in the `measured` time; `before`: what `probe` counted up to
    /// the end of the warm-up.
    pub(crate) fn record(
        &self,
        name: String,
        mut probe: LinkProbe,
        before: &LinkCounters,
        measured: (Instant, Instant),
    ) -> LinkRecord {
        if let Some(since) = self.held_since {
            probe.on_held(measured.1.saturating_since(since));
        }
        let totals = probe.totals(before);
        let sending = self.sending(Bytes(totals.sent_bytes), measured);
        probe.finish(name, totals, sending, &self.qdisc)
    }

    /// A packet was taken out of the queue to be sent now. Returns how long it occupies the link.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "called once per packet; without this the compiler does not inline the match on the queue"
    )]
    fn take(&mut self, now: Instant, pkt: &Packet, watch: &mut Watch<'_>) -> Duration {
        let size = pkt.size();
        let time = self.time(size);
        let others = self.qdisc.backlog().packets > 0;
        watch.on_taken(&Taken {
            waited: now.since(pkt.stamp),
            size,
            busy: if others { time } else { Duration::ZERO },
        });
        time
    }
}

/// When a bucket that will be full at `full_at` has no debt left.
const fn credit_returns(full_at: Instant, depth: Duration) -> Instant {
    Instant::from_nanos(full_at.as_nanos().saturating_sub(depth.as_nanos()))
}

/// A delay line: however long, only its head has an event in the agenda.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) delay: Duration,
    /// Each stamped with its arrival.
    packets: VecDeque<Packet>,
}

impl Wire {
    pub(crate) const fn new(delay: Duration) -> Self {
        Self {
            delay,
            packets: VecDeque::new(),
        }
    }

    /// Puts a packet on the wire; returns when it arrives if it is the only one.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, pkt: &Packet) -> Option<Instant> {
        let arrival = now + self.delay;
        let alone = self.packets.is_empty();
        self.packets.push_back(pkt.onward(arrival));
        alone.then_some(arrival)
    }

    /// Takes the packet that arrives now; returns when the one behind it does.
    #[inline]
    pub(crate) fn pop(&mut self) -> (Packet, Option<Instant>) {
        let pkt = self.packets.pop_front();
        let pkt = pkt.expect("an arrival follows a packet");
        (pkt, self.packets.front().map(|pkt| pkt.stamp))
    }

    /// Whose packet arrives next.
    pub(crate) fn next_flow(&self) -> Option<Owner> {
        self.packets.front().map(|pkt| pkt.owner)
    }
}
