//! Wires with loss, duplication, jitter or changing delay.
//!
//! # Source
//!
//! The behaviour of Linux's `netem`, from `tc-netem(8)` and its tables of distributions: loss and duplicates are
//! decided first, then the delay is drawn. A Gilbert-Elliott chain decides the loss in its current state, then changes
//! the state.
//!
//! # Order
//!
//! If order is kept, packets wait in a ring, and a packet that would overtake arrives together with its predecessor. If
//! order is free, packets wait in a heap. In both cases only the first packet has an event in the agenda.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use sojourn_net::{Duration, Instant, Rng};

use super::Carried;
use crate::config::{
    Distribution, EcnRewrite, GilbertElliott, Jitter, LineConfig, Loss, Order, WireChange,
};

/// Truncation of the distributions, as by the 16-bit tables of `netem`.
const FARTHEST: f64 = 4.0;

/// A wire that is not perfect, behind link number `link`.
#[derive(Debug)]
pub struct Line<P> {
    /// Number of the link.
    pub link: u32,
    /// Mean delay of packets that are put on it from now on.
    delay: Duration,
    losses: Losses,
    drops: DropList,
    duplicate: f64,
    jitter: Option<Jitter>,
    ecn: Option<EcnRewrite>,
    loss_rng: Rng,
    duplicate_rng: Rng,
    jitter_rng: Rng,
    /// When the last packet that was put on it arrives.
    last: Instant,
    under_way: UnderWay<P>,
}

/// The packets that are lost by their number, from 1.
#[derive(Debug)]
struct DropList {
    /// Those still to come, ascending.
    numbers: VecDeque<u64>,
    /// Packets so far.
    count: u64,
}

impl DropList {
    /// Whether the list names this packet.
    fn strike(&mut self) -> bool {
        self.count += 1;
        let strikes = self.numbers.front() == Some(&self.count);
        if strikes {
            self.numbers.pop_front();
        }
        strikes
    }
}

#[derive(Debug)]
enum Losses {
    None,
    Random(f64),
    Chain { chain: GilbertElliott, bad: bool },
}

#[derive(Debug)]
enum UnderWay<P> {
    InOrder(VecDeque<(Instant, P)>),
    Any {
        heap: BinaryHeap<Reverse<Due<P>>>,
        sent: u64,
    },
}

/// A packet on a wire with free order: sorted by arrival time, then by sending order.
#[derive(Debug)]
struct Due<P> {
    at: Instant,
    nth: u64,
    pkt: P,
}

/// What a wire did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It never arrives.
    Lost,
    /// It arrives this number of times.
    Arrives(u32),
}

impl<P: Carried> Line<P> {
    /// A wire behind link number `link`; `rng` is its own.
    pub fn new(link: u32, delay: Duration, config: &LineConfig, rng: &Rng) -> Self {
        Self {
            link,
            delay,
            losses: Losses::new(config.loss),
            drops: DropList {
                numbers: config.drops.clone().into(),
                count: 0,
            },
            duplicate: config.duplicate,
            jitter: config.jitter,
            ecn: config.ecn,
            loss_rng: rng.fork("loss"),
            duplicate_rng: rng.fork("duplicate"),
            jitter_rng: rng.fork("jitter"),
            last: Instant::ZERO,
            under_way: if is_free(config.jitter) {
                UnderWay::Any {
                    heap: BinaryHeap::new(),
                    sent: 0,
                }
            } else {
                UnderWay::InOrder(VecDeque::new())
            },
        }
    }

    /// Changes what happens to packets that are put on the wire from now on; those under way arrive as decided before.
    /// As in `netem`, a new chain of losses begins in its good state.
    pub fn change(&mut self, change: &WireChange) {
        self.delay = change.delay.unwrap_or(self.delay);
        self.duplicate = change.duplicate.unwrap_or(self.duplicate);
        if let Some(loss) = change.loss {
            self.losses = Losses::new(loss);
        }
        if let Some(jitter) = change.jitter {
            self.jitter = jitter;
            self.under_way.set_order(is_free(jitter), &mut self.last);
        }
    }

    /// Puts a packet on the wire. Afterwards [`Line::next`] may be earlier than before.
    pub fn push(&mut self, now: Instant, mut pkt: P) -> Verdict {
        if self.drops.strike() || self.losses.strike(&mut self.loss_rng) {
            return Verdict::Lost;
        }
        match self.ecn {
            Some(EcnRewrite::All(field)) => pkt.set_ecn(field),
            Some(EcnRewrite::Mark) => drop(pkt.mark_ce()),
            None => {}
        }
        let twice = self.duplicate > 0.0 && self.duplicate_rng.uniform() < self.duplicate;
        let copies = 1 + u32::from(twice);
        for _ in 0..copies {
            let at = self.arrival(now);
            match &mut self.under_way {
                UnderWay::InOrder(ring) => {
                    self.last = self.last.max(at);
                    ring.push_back((self.last, pkt));
                }
                UnderWay::Any { heap, sent } => {
                    heap.push(Reverse(Due {
                        at,
                        nth: *sent,
                        pkt,
                    }));
                    *sent += 1;
                }
            }
        }
        Verdict::Arrives(copies)
    }

    fn arrival(&mut self, now: Instant) -> Instant {
        let Some(jitter) = self.jitter else {
            return now + self.delay;
        };
        let deviation = draw(jitter.distribution, &mut self.jitter_rng);
        let by = jitter.spread.scaled(deviation.abs());
        if deviation < 0.0 {
            now + self.delay.saturating_sub(by)
        } else {
            now + self.delay + by
        }
    }

    /// When the next packet arrives.
    pub fn next(&self) -> Option<Instant> {
        match &self.under_way {
            UnderWay::InOrder(ring) => ring.front().map(|&(at, _)| at),
            UnderWay::Any { heap, .. } => heap.peek().map(|Reverse(due)| due.at),
        }
    }

    /// Takes the packet that arrives now.
    pub fn pop(&mut self) -> Option<P> {
        match &mut self.under_way {
            UnderWay::InOrder(ring) => ring.pop_front().map(|(_, pkt)| pkt),
            UnderWay::Any { heap, .. } => heap.pop().map(|Reverse(due)| due.pkt),
        }
    }
}

/// Whether packets may overtake each other.
const fn is_free(jitter: Option<Jitter>) -> bool {
    matches!(
        jitter,
        Some(Jitter {
            order: Order::Free,
            ..
        })
    )
}

impl<P> UnderWay<P> {
    /// Lets packets overtake each other from now on, or not. If not, none arrives before those under way: the latest of
    /// them is the new `last`.
    fn set_order(&mut self, is_free: bool, last: &mut Instant) {
        let before = std::mem::replace(self, Self::InOrder(VecDeque::new()));
        *self = match before {
            Self::InOrder(ring) if is_free => {
                let due = (0..).zip(ring);
                let due = due.map(|(nth, (at, pkt))| Reverse(Due { at, nth, pkt }));
                let heap: BinaryHeap<_> = due.collect();
                let sent = heap.len() as u64;
                Self::Any { heap, sent }
            }
            Self::Any { heap, .. } if !is_free => {
                // In descending order of the reversed, which is ascending.
                let mut due = heap.into_sorted_vec();
                due.reverse();
                let ring: VecDeque<_> = due
                    .into_iter()
                    .map(|Reverse(due)| (due.at, due.pkt))
                    .collect();
                *last = ring.back().map_or(*last, |&(at, _)| at.max(*last));
                Self::InOrder(ring)
            }
            same => same,
        };
    }
}

impl Losses {
    const fn new(loss: Loss) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Random(p) => Self::Random(p),
            Loss::GilbertElliott(chain) => Self::Chain { chain, bad: false },
        }
    }

    /// Whether this packet is lost.
    fn strike(&mut self, rng: &mut Rng) -> bool {
        match self {
            Self::None => false,
            Self::Random(p) => rng.uniform() < *p,
            Self::Chain { chain, bad } => {
                let (risk, leave) = if *bad {
                    (chain.in_bad, chain.to_good)
                } else {
                    (chain.in_good, chain.to_bad)
                };
                let lost = rng.uniform() < risk;
                *bad ^= rng.uniform() < leave;
                lost
            }
        }
    }
}

/// A deviation in units of the spread.
fn draw(distribution: Distribution, rng: &mut Rng) -> f64 {
    match distribution {
        Distribution::Uniform => 2.0 * rng.uniform() - 1.0,
        Distribution::Normal => normal(rng),
        Distribution::Pareto => pareto(rng),
        Distribution::ParetoNormal => 0.25 * normal(rng) + 0.75 * pareto(rng),
    }
}

/// The Box-Muller transform, truncated; the uniform numbers are in (0, 1], so that the logarithm is finite.
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - rng.uniform())).sqrt();
    let x = radius * libm::cos(std::f64::consts::TAU * rng.uniform());
    x.clamp(-FARTHEST, FARTHEST)
}

fn pareto(rng: &mut Rng) -> f64 {
    let x = libm::pow(1.0 - rng.uniform(), -1.0 / 3.0);
    (4.0 / 3.0 * (x - 1.5)).min(FARTHEST)
}

impl<P> Due<P> {
    const fn key(&self) -> (Instant, u64) {
        (self.at, self.nth)
    }
}

impl<P> PartialEq for Due<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Due<P> {}

impl<P> PartialOrd for Due<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Due<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// How many packets at the front of a wire are looked at one by one.
const FEW: usize = 16;

/// A delay line; only its first packet has a pending event.
#[derive(Debug)]
pub struct Wire<P> {
    /// Propagation delay.
    pub delay: Duration,
    /// Each with its arrival time as time stamp.
    packets: VecDeque<P>,
}

impl<P: Carried> Wire<P> {
    /// A wire of this delay.
    pub const fn new(delay: Duration) -> Self {
        Self {
            delay,
            packets: VecDeque::new(),
        }
    }

    /// Puts a packet on the wire; returns when it arrives if it is the only one.
    #[inline]
    pub fn push(&mut self, now: Instant, pkt: &P) -> Option<Instant> {
        self.put(pkt.onward(now + self.delay))
    }

    /// Puts a packet on the wire. Its time stamp is the time of its arrival, and it is at the step behind the wire.
    /// Returns when it arrives if it is the only one.
    #[inline]
    pub fn put(&mut self, pkt: P) -> Option<Instant> {
        let alone = self.packets.is_empty();
        let arrival = pkt.stamp();
        self.packets.push_back(pkt);
        alone.then_some(arrival)
    }

    /// The packet that arrives now. Returns a reference, because moving the packet out copies it twice.
    ///
    /// # Panics
    /// If nothing is on the wire.
    #[inline]
    pub fn first(&self) -> &P {
        self.packets.front().expect("an arrival follows a packet")
    }

    /// Removes the [first](Self::first) packet; returns the arrival time of the next one, if any.
    #[inline]
    pub fn remove_first(&mut self) -> Option<Instant> {
        self.packets.pop_front();
        self.packets.front().map(Carried::stamp)
    }

    /// The packets that arrive at `now`, the next one first.
    #[inline]
    pub fn due(&self, now: Instant) -> impl DoubleEndedIterator<Item = &P> + ExactSizeIterator {
        // Nothing on the wire is overdue. Mostly, few packets are due, of many on the wire.
        let is_due = |pkt: &P| pkt.stamp() <= now;
        let few = self.packets.iter().take(FEW);
        let due = match few.take_while(|pkt| is_due(pkt)).count() {
            FEW => self.packets.partition_point(is_due),
            due => due,
        };
        self.packets.range(..due)
    }

    /// The packet that arrives after `others` other ones.
    #[inline]
    pub fn after(&self, others: usize) -> Option<&P> {
        self.packets.get(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::{Bytes, Ecn, FlowKey, Packet};

    /// Identified by its number only.
    #[derive(Clone, Copy, Debug)]
    struct Numbered(u32);

    impl Packet for Numbered {
        fn size(&self) -> Bytes {
            Bytes(100)
        }

        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }

        fn set_ecn(&mut self, _ecn: Ecn) {}

        fn flow(&self) -> FlowKey {
            FlowKey::default()
        }
    }

    impl Carried for Numbered {
        const NONE: Self = Self(0);

        fn stamp(&self) -> Instant {
            Instant::ZERO
        }

        fn onward(&self, _stamp: Instant) -> Self {
            *self
        }
    }

    /// Mean and standard deviation of 100,000 draws, and the extremes.
    fn drawn(distribution: Distribution) -> (f64, f64, f64, f64) {
        const DRAWS: u32 = 100_000;
        let mut rng = Rng::new(1);
        let all: Vec<_> = (0..DRAWS).map(|_| draw(distribution, &mut rng)).collect();
        let n = f64::from(DRAWS);
        let mean = all.iter().sum::<f64>() / n;
        let square = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (mean, square.sqrt(), least, most)
    }

    #[test]
    fn deviations_have_the_moments_of_their_distribution() {
        let near = |got: f64, want: f64| assert!((got - want).abs() < 0.01, "{got}, not {want}");
        let (mean, deviation, least, most) = drawn(Distribution::Uniform);
        near(mean, 0.0);
        near(deviation, 1.0 / 3.0_f64.sqrt());
        near(least, -1.0);
        near(most, 1.0);
        let (mean, deviation, least, most) = drawn(Distribution::Normal);
        near(mean, 0.0);
        near(deviation, 1.0);
        assert!(least >= -4.0 && most <= 4.0);
        // Cut where x = 4.5, which one packet in 91 exceeds: the mean falls by
        // 4/3 · 4.5^-2 / 2, which is 0.0329.
        let (mean, _, least, most) = drawn(Distribution::Pareto);
        near(mean, -0.0329);
        near(least, -2.0 / 3.0);
        near(most, 4.0);
        let (mean, ..) = drawn(Distribution::ParetoNormal);
        near(mean, 0.75 * -0.0329);
    }

    #[test]
    fn bursts_of_losses_are_as_long_and_as_frequent_as_the_chain_says() {
        let chain = GilbertElliott {
            to_bad: 0.01,
            to_good: 0.25,
            in_bad: 1.0,
            in_good: 0.0,
        };
        let mut losses = Losses::Chain { chain, bad: false };
        let mut rng = Rng::new(1);
        let lost: Vec<_> = (0..1_000_000).map(|_| losses.strike(&mut rng)).collect();
        let count = |hits: usize| f64::from(u32::try_from(hits).expect("a million"));
        let all = count(lost.iter().filter(|&&l| l).count());
        let bursts = count(lost.windows(2).filter(|w| !w[0] && w[1]).count());
        // p / (p + r) of the packets, 1 / r at a time.
        assert!((all / 1e6 / (0.01 / 0.26) - 1.0).abs() < 0.03, "{all}");
        assert!((all / bursts / 4.0 - 1.0).abs() < 0.03, "{bursts}");
    }

    /// The numbers of 1,000 packets, sent one a microsecond, as they arrive, and when.
    fn arrivals(config: &LineConfig) -> Vec<(Instant, u32)> {
        let delay = Duration::from_millis(10);
        let mut line = Line::new(0, delay, config, &Rng::new(1));
        for number in 0..1_000 {
            let now = Instant::from_nanos(u64::from(number) * 1_000);
            line.push(now, Numbered(number));
        }
        std::iter::from_fn(|| Some((line.next()?, line.pop()?.0))).collect()
    }

    #[test]
    fn packets_overtake_only_where_order_is_free() {
        let jitter = |order| LineConfig {
            jitter: Some(Jitter {
                spread: Duration::from_millis(1),
                distribution: Distribution::Uniform,
                order,
            }),
            ..LineConfig::PERFECT
        };
        let free = arrivals(&jitter(Order::Free));
        let kept = arrivals(&jitter(Order::Kept));
        for all in [&free, &kept] {
            assert!(all.is_sorted_by_key(|&(at, _)| at));
        }
        // The draws are the same; none is early by more than the spread or late by more.
        let bounds = 9_000_000..=11_000_000;
        for &(at, number) in &free {
            let after = at.as_nanos() - u64::from(number) * 1_000;
            assert!(bounds.contains(&after), "{after}");
            let in_order = kept[number as usize].0;
            assert!(in_order >= at, "{number}");
        }
        assert!(kept.is_sorted_by_key(|&(_, number)| number));
        let mut numbers: Vec<_> = free.iter().map(|&(_, number)| number).collect();
        assert!(!numbers.is_sorted());
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..1_000));
    }

    /// Known by its ECN field only.
    #[derive(Clone, Copy, Debug)]
    struct Field(Ecn);

    impl Packet for Field {
        fn size(&self) -> Bytes {
            Bytes(100)
        }

        fn ecn(&self) -> Ecn {
            self.0
        }

        fn set_ecn(&mut self, ecn: Ecn) {
            self.0 = ecn;
        }

        fn flow(&self) -> FlowKey {
            FlowKey::default()
        }
    }

    impl Carried for Field {
        const NONE: Self = Self(Ecn::NotEct);

        fn stamp(&self) -> Instant {
            Instant::ZERO
        }

        fn onward(&self, _stamp: Instant) -> Self {
            *self
        }
    }

    #[test]
    fn a_wire_may_overwrite_the_ecn_field() {
        let fields = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        for rewrite in EcnRewrite::ALL {
            let config = LineConfig {
                ecn: Some(rewrite),
                ..LineConfig::PERFECT
            };
            let mut line = Line::new(0, Duration::from_millis(1), &config, &Rng::new(1));
            let arrived = fields.map(|field| {
                line.push(Instant::ZERO, Field(field));
                line.pop().map(|pkt| pkt.0)
            });
            let wanted = match rewrite {
                EcnRewrite::All(field) => [field; 4],
                EcnRewrite::Mark => [Ecn::NotEct, Ecn::Ce, Ecn::Ce, Ecn::Ce],
            };
            assert_eq!(arrived, wanted.map(Some), "{rewrite:?}");
        }
    }

    #[test]
    fn a_packet_may_arrive_twice() {
        let all = arrivals(&LineConfig {
            duplicate: 0.5,
            ..LineConfig::PERFECT
        });
        let mut numbers: Vec<_> = all.iter().map(|&(_, number)| number).collect();
        assert!(numbers.is_sorted());
        assert!((1_400..1_600).contains(&numbers.len()), "{}", numbers.len());
        numbers.dedup();
        assert_eq!(numbers.len(), 1_000);
    }

    #[test]
    fn packets_are_lost_by_their_number() {
        let all = arrivals(&LineConfig {
            drops: vec![1, 3, 1_000, 2_000],
            ..LineConfig::PERFECT
        });
        let numbers = all.iter().map(|&(_, number)| number + 1);
        assert!(numbers.eq((2..1_000).filter(|number| *number != 3)));
    }

    /// A wire of `config` with packets 0 to 99 on it, one per microsecond.
    fn busy(config: &LineConfig) -> (Line<Numbered>, Instant) {
        let mut line = Line::new(0, Duration::from_millis(10), config, &Rng::new(1));
        let mut now = Instant::ZERO;
        for number in 0..100 {
            now += Duration::from_micros(1);
            line.push(now, Numbered(number));
        }
        (line, now)
    }

    fn rest(line: &mut Line<Numbered>) -> Vec<(Instant, u32)> {
        std::iter::from_fn(|| Some((line.next()?, line.pop()?.0))).collect()
    }

    #[test]
    fn losses_and_duplicates_change_for_later_packets_only() {
        let (mut line, now) = busy(&LineConfig::PERFECT);
        line.change(&WireChange {
            loss: Some(Loss::Random(1.0)),
            ..WireChange::default()
        });
        assert_eq!(line.push(now, Numbered(100)), Verdict::Lost);
        line.change(&WireChange {
            loss: Some(Loss::None),
            duplicate: Some(1.0),
            ..WireChange::default()
        });
        assert_eq!(line.push(now, Numbered(101)), Verdict::Arrives(2));
        line.change(&WireChange {
            duplicate: Some(0.0),
            delay: Some(Duration::from_millis(30)),
            ..WireChange::default()
        });
        assert_eq!(line.push(now, Numbered(102)), Verdict::Arrives(1));
        let all = rest(&mut line);
        assert_eq!(all.len(), 103);
        assert_eq!(all[102], (now + Duration::from_millis(30), 102));
    }

    #[test]
    fn the_order_changes_with_packets_under_way() {
        let jitter = |order| {
            Some(Jitter {
                spread: Duration::from_millis(5),
                distribution: Distribution::Uniform,
                order,
            })
        };
        let change = |jitter| WireChange {
            jitter: Some(jitter),
            delay: Some(Duration::from_millis(1)),
            ..WireChange::default()
        };
        // From kept to free: a later packet may overtake those under way.
        let (mut line, now) = busy(&LineConfig::PERFECT);
        line.change(&change(jitter(Order::Free)));
        line.change(&WireChange {
            jitter: Some(jitter(Order::Free)),
            delay: Some(Duration::ZERO),
            ..WireChange::default()
        });
        for number in 100..200 {
            line.push(now, Numbered(number));
        }
        let all = rest(&mut line);
        assert_eq!(all.len(), 200);
        assert!(all.is_sorted_by_key(|&(at, _)| at));
        assert!(all[0].1 >= 100, "{:?}", all[0]);
        // From free to kept, and without jitter: none arrives before those under way.
        let free = LineConfig {
            jitter: jitter(Order::Free),
            ..LineConfig::PERFECT
        };
        for next in [jitter(Order::Kept), None] {
            let (mut line, now) = busy(&free);
            line.change(&change(next));
            line.push(now, Numbered(100));
            let all = rest(&mut line);
            assert!(all.is_sorted_by_key(|&(at, _)| at));
            assert_eq!(all.last().map(|&(_, number)| number), Some(100));
        }
    }
}
