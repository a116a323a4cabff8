//! Predict: predicts congestion from the growth of the load. A reconstruction.
//!
//! # Source
//!
//! I. Järvinen and M. Kojo, "On Redesigning the Unequipped Ship: Load Transient Awareness and AQM
//! Algorithms", slides, ICCRG at IETF 97, 2016. They show the structure (time slots, busy time in a
//! two-dimensional history with rolling sums, a predictor for each candidate round-trip time, look-back
//! over a stretched round trip, prediction one round trip ahead) and no constants or rules of choice,
//! and there is no public code. What they leave open is **reconstructed** here, validated by a
//! prototype of the same reconstruction; none of it is its authors'.
//!
//! # Algorithm
//!
//! In one round-trip time `R` every outstanding packet crosses the link once, so the load, the sum
//! of all windows as time on the link, is `L` = busy time in the last `R` + time to send the
//! backlog. The link can carry a load of `R`. The load is known with an empty queue, too. A signal
//! changes the arrivals one round trip later; until then the load grows as before. At the end of
//! each time slot, the growth of the load is estimated for each candidate `R`, and the departures
//! (with `mark_arrival`, the arrivals) of one stretched round trip are marked if the predicted load reaches `full R`, so that every
//! flow is signalled once.
//!
//! Bursts of a long round trip look like growth at a short one. A candidate is therefore ignored
//! while an active candidate is more than `dominance` times as long.
//!
//! It has no algorithm for congestion avoidance, which its authors left open; `fallback` adds CoDel
//! while no growth is detected and no signal is pending.
//!
//! It is designed for end hosts that end slow start at a mark without reducing the window.
//!
//! Pseudo-code: `docs/qdiscs/predict.md`.
//!
//! # Choices of this reconstruction
//!
//! | here | the slides | why |
//! |---|---|---|
//! | busy time from the sizes of departures and the link's rate | a counter of the link | the queue sees no more |
//! | when the rate changes, the history is discarded | – | loads are times at one rate |
//! | candidates that have not yet grown for `persistence R` are not chosen | "heuristics" | one slot proves nothing |
//! | what cannot be marked is dropped once a flow and signal, or let be (`nodrop`) | ECN alone | other traffic needs a signal too |
//! | `compact`: one sum a slot instead of a rolling sum for each candidate | the two-dimensional history | the same numbers from a 53rd of the sums |
//!
//! Profile `kernel`: ratios, roots and times are integers, as in `kernel/modules/sch_predict.c`, and a dequeue does not
//! drop the last packet, because parents in the kernel rely on it that a queue with packets gives one.

mod forecast;
mod growth;
mod history;
mod integer;

use sojourn_net::{Bytes, Duration, Instant, Packet, Rate, Rng};

use super::codel;
use super::codel::{CodelParams, Control};
use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LinkFacts, PAPER_AND_KERNEL, Params, Profile, Retention, fixed, parameters, time_text,
};
use crate::parts::fifo::Fifo;
use forecast::{Forecaster, Law, Rules, Signal, later};
use growth::MOST_ROUNDS;
use history::History;
use integer::IntegerLaw;

/// The busy time in a window is kept in 32 bits of nanoseconds, 4.3 s.
const LONGEST_RTT: u64 = 2_000_000_000;

parameters! {
    /// Parameters of [`Predict`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PredictParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "reconstruction";
        /// Link rate.
        pub bandwidth: Option<Rate> = None => rate().unset("the link's rate, else 10mbit"),
            "reconstruction";
        /// Length of a time slot.
        pub slot: Duration = Duration::from_millis(1) => time(500_000, 10_000_000),
            "Järvinen and Kojo 2016 (slides): time slots; the value is a reconstruction";
        /// Shortest candidate round-trip time.
        pub rtt_min: Duration = Duration::from_millis(8) => time(500_000, LONGEST_RTT),
            "reconstruction";
        /// Longest candidate round-trip time.
        pub rtt_max: Duration = Duration::from_millis(700) => time(500_000, LONGEST_RTT),
            "reconstruction";
        /// Candidates per doubling of the round-trip time.
        pub per_octave: u32 = 8 => count(1, 16),
            "reconstruction";
        /// Number of consecutive round trips over which growth is measured.
        pub rounds: u32 = 2 => count(1, 4),
            "reconstruction";
        /// Smallest accepted growth factor per round trip.
        pub growth_min: f64 = 1.25 => fraction(1, 10),
            "reconstruction";
        /// Largest accepted growth factor per round trip.
        pub growth_max: f64 = 2.3 => fraction(1, 10),
            "reconstruction";
        /// Largest accepted ratio of the largest growth factor to the smallest.
        pub consistency: f64 = 1.5 => fraction(1, 10),
            "reconstruction";
        /// Number of standard deviations by which the growth must exceed random variation.
        pub significance: f64 = 3.0 => fraction(0, 1_000),
            "reconstruction";
        /// Number of round trips that growth must last before it counts.
        pub persistence: f64 = 0.5 => fraction(0, 10),
            "reconstruction";
        /// Number of round trips for which a matching candidate stays active.
        pub hold: f64 = 1.0 => fraction(0, 10),
            "reconstruction";
        /// Largest ratio of the longest active candidate to the chosen one.
        pub dominance: f64 = 1.6 => fraction(1, 10_000),
            "reconstruction";
        /// Predicted load at which a signal is sent; 1 is a full link without a queue.
        pub full: f64 = 1.0 => fraction(0, 10),
            "Järvinen and Kojo 2016 (slides): a full link; the value is a reconstruction";
        /// Number of stretched round trips during which departing packets are marked.
        pub mark: f64 = 1.0 => fraction(0, 10),
            "reconstruction";
        /// Mark packets as they arrive instead of as they depart.
        pub mark_arrival: bool = false => flag(),
            "Järvinen and Kojo 2016 (slides): no head drop is needed";
        /// Add the queueing delay to the round trip of each look-back.
        pub stretch: bool = true => flag(),
            "Järvinen and Kojo 2016 (slides): look-back over a stretched round trip";
        /// Keep one sum per slot instead of a history per candidate; the results are the same.
        pub compact: bool = false => flag(),
            "reconstruction";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = true => flag(),
            "Järvinen and Kojo 2016 (slides): ECN";
        /// Pass packets that cannot be marked instead of dropping them.
        pub nodrop: bool = false => flag(),
            "reconstruction";
        /// Apply CoDel while no candidate is active.
        pub fallback: bool = false => flag(),
            "reconstruction";
        /// Acceptable standing delay of the CoDel fallback.
        pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "RFC 8289 section 4.3: TARGET; the fallback is a reconstruction";
        /// Interval of the CoDel fallback.
        pub interval: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "RFC 8289 section 4.2: INTERVAL; the fallback is a reconstruction";
        /// Real numbers, or the integers of the kernel module.
        pub profile: Profile = Profile::Paper => profile(),
            "Sojourn parameter";
    }
}

impl PredictParams {
    fn rate(&self, link: &LinkFacts) -> Rate {
        self.bandwidth.or(link.rate).unwrap_or(UNKNOWN_RATE)
    }

    /// The law of the fallback.
    fn codel(&self) -> codel::Law {
        let Self {
            target,
            interval,
            ecn,
            profile,
            ..
        } = *self;
        codel::Law::new(&CodelParams::inside(target, interval, ecn, profile))
    }

    /// The law on a link on which a full packet takes this long.
    fn rules(&self, packet: Duration) -> Rules {
        if self.profile == Profile::Kernel {
            return Rules::Integer(IntegerLaw::new(self, packet));
        }
        Rules::Real(Law {
            rounds: (self.rounds as usize).min(MOST_ROUNDS),
            growth_min: self.growth_min,
            growth_max: self.growth_max,
            consistency: self.consistency,
            significance: self.significance,
            persistence: self.persistence,
            hold: self.hold,
            dominance: self.dominance,
            full: self.full,
            mark: self.mark,
            packet: forecast::nanos(packet),
        })
    }
}

impl Params for PredictParams {
    type Queue<P: Packet> = Predict<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "predict",
        class: Some("Predict"),
        summary: "Marks early enough that slow start ends when the link becomes full \
                  (reconstructed)",
        source: "Järvinen and Kojo, slides at ICCRG, IETF 97, 2016",
        reconstruction: Some(
            "only the structure was published; the constants, the growth tests, the candidate \
             selection and the choice of packets to mark are Sojourn's",
        ),
        profiles: PAPER_AND_KERNEL,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn conflict(&self) -> Option<String> {
        if self.rtt_min > self.rtt_max {
            return Some(format!(
                "rtt_min {} must not exceed rtt_max {}",
                time_text(self.rtt_min),
                time_text(self.rtt_max)
            ));
        }
        if self.growth_min >= self.growth_max {
            return Some(format!(
                "growth_min {} must be below growth_max {}",
                self.growth_min, self.growth_max
            ));
        }
        (self.rtt_min < self.slot).then(|| {
            format!(
                "rtt_min {} must not be shorter than slot {}",
                time_text(self.rtt_min),
                time_text(self.slot)
            )
        })
    }

    fn assumed_rate(&self) -> Option<Rate> {
        self.bandwidth.is_none().then_some(UNKNOWN_RATE)
    }

    fn build<P: Packet>(&self, link: &LinkFacts, _rng: Rng) -> Predict<P> {
        Predict::new(self, link)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("profile", self.profile == next.profile),
            ("slot", self.slot == next.slot),
            ("rtt_min", self.rtt_min == next.rtt_min),
            ("rtt_max", self.rtt_max == next.rtt_max),
            ("per_octave", self.per_octave == next.per_octave),
            ("rounds", self.rounds == next.rounds),
            ("compact", self.compact == next.compact),
        ])
    }

    /// As in the kernel module of Sojourn: another rate discards the history, and the oldest packets above a lower limit
    /// are dropped.
    fn change<P: Packet>(
        &self,
        queue: &mut Predict<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        let rate = self.rate(link);
        if rate != queue.meter.rate {
            queue.change_rate(now, rate);
        }
        queue.change(self, link);
        queue.buffer.fifo.shrink(now, self.limit, obs);
    }
}

/// A FIFO that marks in time for an exponential growth of the load to end at a full link.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct Predict<P> {
    limit: usize,
    slot: Duration,
    ecn: bool,
    nodrop: bool,
    mark_arrival: bool,
    /// Whether a dequeue never drops the last packet.
    keeps_last: bool,
    buffer: Buffer<P>,
    meter: Meter,
    /// Whether the rate is that of the link, not one that is configured.
    follows_link: bool,
    /// When the slot under way ends.
    slot_ends: Instant,
    mark_until: Instant,
    past: Box<Past>,
    fallback: Option<Box<(codel::Law, Control)>>,
}

/// What is touched once a slot.
#[derive(Clone, Debug)]
struct Past {
    history: History,
    forecaster: Forecaster,
    /// The last slot in which anything was sent or waited, as far as it is remembered.
    last_used: Option<u64>,
    /// Number of unused slots after which the history does not matter.
    memory: u64,
    signals: u64,
    last_signal: Option<Signal>,
    /// Whom it has reached by a drop.
    signalled: Signalled,
}

/// The rate of a link that says none.
const UNKNOWN_RATE: Rate = Rate::mbit(10);

impl<P: Packet> Predict<P> {
    /// An empty queue on `link`.
    pub fn new(params: &PredictParams, link: &LinkFacts) -> Self {
        let rate = params.rate(link);
        let (least, most) = (params.rtt_min, params.rtt_max);
        let integer = params.profile == Profile::Kernel;
        let rtts = if integer {
            integer::candidates(least, most, params.per_octave)
        } else {
            forecast::candidates(least, most, params.per_octave)
        };
        let windows: Vec<u32> = rtts
            .iter()
            .map(|&rtt| forecast::window_slots(rtt, params.slot))
            .collect();
        let rounds = (params.rounds as usize).min(MOST_ROUNDS);
        let memory = 2 * u64::from(windows.iter().copied().max().unwrap_or(1)) + 2;
        let slot = u32::try_from(params.slot.as_nanos()).unwrap_or(u32::MAX);
        Self {
            limit: params.limit,
            slot: params.slot,
            ecn: params.ecn,
            nodrop: params.nodrop,
            mark_arrival: params.mark_arrival,
            keeps_last: integer,
            buffer: Buffer {
                fifo: Fifo::new(),
                maxpacket: link.mtu,
            },
            meter: Meter::new(rate),
            follows_link: params.bandwidth.is_none(),
            slot_ends: Instant::ZERO + params.slot,
            mark_until: Instant::ZERO,
            past: Box::new(Past {
                history: History::new(windows, slot, rounds, params.stretch, params.compact),
                forecaster: Forecaster::new(
                    params.rules(rate.serialise(link.mtu)),
                    &rtts,
                    params.slot,
                ),
                last_used: None,
                memory,
                signals: 0,
                last_signal: None,
                signalled: Signalled::default(),
            }),
            fallback: params
                .fallback
                .then(|| Box::new((params.codel(), Control::default()))),
        }
    }

    /// Other parameters at the same rate.
    fn change(&mut self, params: &PredictParams, link: &LinkFacts) {
        self.limit = params.limit;
        self.ecn = params.ecn;
        self.nodrop = params.nodrop;
        self.mark_arrival = params.mark_arrival;
        self.follows_link = params.bandwidth.is_none();
        let packet = params.rate(link).serialise(self.buffer.maxpacket);
        let rules = params.rules(packet);
        self.past.forecaster.change(rules, params.slot);
        self.past.history.set_stretch(params.stretch);
        let control = self.fallback.take().map(|codel| codel.1);
        self.fallback = params
            .fallback
            .then(|| Box::new((params.codel(), control.unwrap_or_default())));
    }

    /// A load is a time at one rate, so the history of the old one is discarded. As at the start, growth can be found
    /// after two round trips.
    fn change_rate(&mut self, now: Instant, rate: Rate) {
        self.catch_up(now);
        self.meter.change_rate(now, rate);
        let past = &mut *self.past;
        past.history.forget(past.history.next());
        past.last_used = None;
        past.forecaster
            .restart(rate.serialise(self.buffer.maxpacket));
    }

    /// Ends the slots that are over at `now`. What happens in a slot shows in departures alone, so
    /// it is early enough to look at it when one is asked for.
    #[inline]
    fn catch_up(&mut self, now: Instant) {
        if now >= self.slot_ends {
            self.end_slots(now);
        }
    }

    #[cold]
    fn end_slots(&mut self, now: Instant) {
        let under_way = now.as_nanos() / self.slot.as_nanos();
        // A link that stood still for longer than the history reaches has taught nothing.
        if under_way - self.past.history.next() > self.past.history.room() {
            self.skip_to(under_way);
        }
        while self.past.history.next() < under_way {
            if self.has_no_past() {
                self.skip_to(under_way);
                break;
            }
            self.end_slot();
        }
        self.slot_ends = later(
            Instant::from_nanos(under_way * self.slot.as_nanos()),
            self.slot,
        );
    }

    fn end_slot(&mut self) {
        let past = &mut *self.past;
        let slot = past.history.next();
        let end = Instant::from_nanos((slot + 1) * self.slot.as_nanos());
        let busy = self.meter.end_slot(end, self.slot);
        let waiting = self
            .meter
            .time_to_send(end, self.buffer.fifo.backlog().bytes);
        if busy > 0 || waiting > 0 {
            past.last_used = Some(slot);
        }
        past.history.record(busy, waiting);
        if let Some(signal) = past.forecaster.end_slot(end, &past.history, waiting) {
            self.mark_until = later(end, past.forecaster.mark(&signal));
            past.signals += 1;
            past.last_signal = Some(signal);
            past.signalled = Signalled::default();
        }
    }

    /// Whether the past of an unused link can no longer be seen in any load.
    fn has_no_past(&self) -> bool {
        let next = self.past.history.next();
        let start = Instant::from_nanos(next.saturating_mul(self.slot.as_nanos()));
        self.buffer.fifo.backlog().packets == 0
            && self.meter.is_idle(start)
            && self
                .past
                .last_used
                .is_none_or(|used| next - used > self.past.memory)
    }

    fn skip_to(&mut self, slot: u64) {
        self.past.forecaster.skip(slot - self.past.history.next());
        self.past.history.forget(slot);
        self.meter
            .begin_at(Instant::from_nanos(slot * self.slot.as_nanos()));
        self.past.last_used = None;
    }

    /// The next packet, marked if a signal is due.
    fn tell_next(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        if now >= self.mark_until || self.mark_arrival {
            return self.buffer.fifo.pop_stamped().map(|(pkt, _)| pkt);
        }
        // Each turn removes a packet, so the loop ends with the queue.
        loop {
            let (pkt, _) = self.buffer.fifo.pop_stamped()?;
            let may_drop = !self.keeps_last || self.backlog().packets > 0;
            if let Some(pkt) = self.tell(now, pkt, may_drop, obs) {
                return Some(pkt);
            }
        }
    }

    /// The packet, marked if it can be; nothing if it is dropped instead.
    fn tell(
        &mut self,
        now: Instant,
        mut pkt: P,
        may_drop: bool,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        if self.ecn && pkt.mark_ce() {
            obs.on_mark(now, &pkt, MarkReason::Aqm);
            return Some(pkt);
        }
        if self.nodrop || !may_drop || !self.past.signalled.insert(pkt.flow().digest(0)) {
            return Some(pkt);
        }
        obs.on_drop(now, pkt, DropReason::Aqm);
        None
    }

    /// Appends a packet that arrives during a signal, marked.
    #[cold]
    fn append_marked(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if let Some(pkt) = self.tell(now, pkt, true, obs) {
            self.buffer.fifo.push(now, pkt);
        }
    }
}

impl<P: Packet> Qdisc<P> for Predict<P> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.catch_up(now);
        if self.backlog().packets >= self.limit {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if self.mark_arrival && now < self.mark_until {
            return self.append_marked(now, pkt, obs);
        }
        self.buffer.fifo.push(now, pkt);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.catch_up(now);
        let pkt = match &mut self.fallback {
            Some(codel) if now >= self.mark_until && !self.past.forecaster.tracks(now) => {
                let (law, control) = &mut **codel;
                control.dequeue(law, &mut self.buffer, now, obs)
            }
            _ => self.tell_next(now, obs),
        }?;
        self.meter.on_departure(now, pkt.size());
        Some(pkt)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.buffer.fifo.backlog()
    }

    /// The end of the slot, so that the work is spread; none while there is nothing to look at.
    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        (!self.has_no_past()).then_some(self.slot_ends)
    }

    fn on_timer(&mut self, now: Instant) {
        self.catch_up(now);
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        if self.follows_link {
            self.change_rate(now, rate);
        }
    }

    /// The signals so far, and the round-trip time of the last in µs.
    fn statistics(&self) -> Vec<Statistic> {
        let mut all = vec![Statistic::count("signals", self.past.signals)];
        if let Some(signal) = self.past.last_signal {
            all.push(Statistic::count("signal_rtt", signal.rtt.as_micros()));
        }
        all
    }

    /// Whether packets are signalled; the longest active candidate in µs, and its load as a fraction of it.
    fn state(&self, now: Instant) -> Vec<Statistic> {
        let mut all = vec![Statistic::flag("marking", now < self.mark_until)];
        if let Some((rtt, load)) = self.past.forecaster.active(now, &self.past.history) {
            all.extend([
                Statistic::count("active_rtt", rtt.as_micros()),
                Statistic::real("load", load),
            ]);
        }
        all
    }
}

#[derive(Clone, Debug)]
struct Buffer<P> {
    fifo: Fifo<P>,
    maxpacket: Bytes,
}

impl<P: Packet> codel::Source<P> for Buffer<P> {
    #[inline]
    fn pop(&mut self) -> Option<(P, Instant)> {
        self.fifo.pop_stamped()
    }

    #[inline]
    fn is_small(&self) -> bool {
        self.fifo.backlog().bytes <= self.maxpacket
    }
}

/// The flows that a signal has reached by a drop. Two in one place pass for one.
#[derive(Clone, Debug, Default)]
struct Signalled([u64; 16]);

impl Signalled {
    /// Whether the flow had not been signalled; now it has.
    fn insert(&mut self, hash: u32) -> bool {
        let (word, bit) = (hash as usize / 64 % self.0.len(), 1_u64 << (hash % 64));
        let news = self.0[word] & bit == 0;
        self.0[word] |= bit;
        news
    }
}

/// A link that sends one packet after another.
#[derive(Clone, Debug)]
struct Meter {
    rate: Rate,
    /// When it has sent all that it was given.
    busy_until: Instant,
    /// Transmission time given to it in this slot or, ahead of time, in an earlier one, in ns.
    unaccounted: u64,
}

impl Meter {
    const fn new(rate: Rate) -> Self {
        Self {
            rate,
            busy_until: Instant::ZERO,
            unaccounted: 0,
        }
    }

    /// The link begins to send a packet, or will when it has sent the others.
    #[inline]
    fn on_departure(&mut self, now: Instant, size: Bytes) {
        let time = self.rate.serialise(size);
        self.busy_until = later(self.busy_until.max(now), time);
        self.unaccounted = self.unaccounted.saturating_add(time.as_nanos());
    }

    /// A slot of this length ends: for how long of it the link was busy, in ns.
    ///
    /// What was given and is not sent at the `end` is what is left until `busy_until`, without a
    /// pause; so a transmission that straddles the edge is split there.
    fn end_slot(&mut self, end: Instant, slot: Duration) -> u32 {
        let left = self.busy_until.saturating_since(end).as_nanos();
        let busy = self.unaccounted.saturating_sub(left).min(slot.as_nanos());
        self.unaccounted = left;
        u32::try_from(busy).unwrap_or(u32::MAX)
    }

    /// The time that the link takes for what it sends and for `waiting` bytes, in ns.
    fn time_to_send(&self, now: Instant, waiting: Bytes) -> u32 {
        let left = self.busy_until.saturating_since(now).as_nanos();
        let time = self.rate.serialise(waiting).as_nanos();
        u32::try_from(left.saturating_add(time)).unwrap_or(u32::MAX)
    }

    /// Forgets what was sent before `start`.
    fn begin_at(&mut self, start: Instant) {
        self.unaccounted = self.busy_until.saturating_since(start).as_nanos();
    }

    /// The link sends at `rate` from now on, except what it is sending; forgets what it sent before.
    fn change_rate(&mut self, now: Instant, rate: Rate) {
        self.rate = rate;
        self.begin_at(now);
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.busy_until <= now
    }
}

#[cfg(test)]
mod tests;
