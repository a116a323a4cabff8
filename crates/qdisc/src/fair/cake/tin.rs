//! A tin: its flows, its shaper, its AQM and its counters.

use sojourn_net::{Bytes, Duration, Instant, Packet, TcpHeader, Transport};

use super::flows::Flows;
use super::options::{AckFilter, FlowMode};
use super::pace::Pace;
use crate::aqm::cobalt::{Law, ROOTS};
use crate::parts::pool::{List, Pool};

/// What the law of every tin begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    target: Duration,
    interval: Duration,
    mtu: Bytes,
}

impl Tuning {
    /// For a round trip of `rtt`, in microseconds as `tc` and Linux hand it on.
    pub(super) fn of(rtt: Duration, mtu: Bytes) -> Self {
        let micros = rtt.as_micros();
        Self {
            target: Duration::from_micros((micros / 20).max(1)),
            interval: Duration::from_micros(micros.max(1)),
            mtu,
        }
    }
}

/// One tin.
#[derive(Clone, Debug)]
pub(super) struct Tin {
    pub(super) flows: Flows,
    pub(super) law: Law,
    /// What it may use before others come first, in bytes a second; 0 is unlimited.
    pub(super) threshold: u64,
    pace: Option<Pace>,
    /// Until when its share is used up.
    pub(super) time_next: Instant,
    /// Its weight where there is no shaper, and what is left of it.
    pub(super) quantum: i64,
    pub(super) deficit: i64,
    pub(super) backlog: u64,
    pub(super) counts: Counts,
}

/// What a tin counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) drops: u64,
    pub(super) marks: u64,
    pub(super) acks: u64,
    pub(super) longest: u64,
    /// Flows that BLUE drops from.
    pub(super) unresponsive: u64,
    pub(super) delay: Delay,
}

/// Moving averages of the delay, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Delay {
    pub(super) peak: u64,
    pub(super) average: u64,
    pub(super) base: u64,
}

impl Tin {
    /// With `threshold` bytes a second of its own; 0 is unlimited.
    pub(super) fn new(
        (threshold, quantum): (u64, i64),
        tuning: &Tuning,
        mode: FlowMode,
        perturbation: u64,
    ) -> Self {
        let pace = pace_of(threshold);
        let mtu_time = pace.map_or(Duration::ZERO, |pace| pace.time(tuning.mtu.0));
        let longer = Duration::from_nanos(mtu_time.as_nanos() * 3 / 2);
        let target = longer.max(tuning.target);
        Self {
            flows: Flows::new(mode, flow_quantum(threshold), perturbation),
            law: Law {
                target,
                interval: (tuning.interval + target - tuning.target).max(target.times(2)),
                mtu_time,
                increment: 1 << 24,
                decrement: 1 << 20,
                roots: &ROOTS,
            },
            threshold,
            pace,
            time_next: Instant::ZERO,
            quantum: quantum.max(1),
            deficit: 0,
            backlog: 0,
            counts: Counts::default(),
        }
    }

    /// The parameters of `next`; flows, packets and counts stay.
    pub(super) fn change(&mut self, next: Self) {
        self.flows.quantum = next.flows.quantum;
        self.law = next.law;
        self.threshold = next.threshold;
        self.pace = next.pace;
        self.quantum = next.quantum;
    }

    /// Changes what it may use, and what its flows send per turn.
    pub(super) fn set_threshold(&mut self, threshold: u64) {
        self.threshold = threshold;
        self.pace = pace_of(threshold);
        self.flows.quantum = flow_quantum(threshold);
    }

    /// The pace of its share.
    pub(super) const fn pace(&self) -> Option<Pace> {
        self.pace
    }

    /// Counts a packet against the share: what was not used before now is lost, but for one packet.
    #[inline]
    pub(super) fn charge(&mut self, counted: u64, now: Instant) {
        if let Some(pace) = self.pace {
            let time = pace.time(counted);
            if self.time_next < now {
                self.time_next += time;
            } else {
                self.time_next = self.time_next.max(now + time);
            }
        }
    }

    /// Counts a packet against what flow `at` and the tin may still send.
    #[inline]
    pub(super) fn spend(&mut self, at: usize, counted: u64) {
        let counted = i64::try_from(counted).unwrap_or(i64::MAX);
        self.deficit -= counted;
        self.flows[at].deficit -= counted;
    }
}

fn pace_of(threshold: u64) -> Option<Pace> {
    (threshold > 0).then(|| Pace::of(threshold))
}

/// The bytes that a flow sends per turn.
fn flow_quantum(threshold: u64) -> u32 {
    let bytes = match threshold {
        0 => 1_514,
        _ => (threshold >> 12).clamp(300, 1_514),
    };
    u32::try_from(bytes).unwrap_or(1_514)
}

impl Delay {
    #[inline]
    pub(super) fn add(&mut self, delay: Duration) {
        let delay = delay.as_nanos();
        let faster = |yes: bool| if yes { 2 } else { 8 };
        self.average = average(self.average, delay, 8);
        self.peak = average(self.peak, delay, faster(delay > self.peak));
        self.base = average(self.base, delay, faster(delay < self.base));
    }
}

/// A moving average that takes 2^-`shift` of each sample.
#[inline]
const fn average(old: u64, sample: u64, shift: u32) -> u64 {
    old - (old >> shift) + (sample >> shift)
}

const ECN: u16 = TcpHeader::ECE | TcpHeader::CWR;

/// The place in `pool` of an acknowledgement of `list` that can be dropped, since the newest packet
/// says it all.
///
/// Returns the one nearest to the head if there are at least two; [`AckFilter::Aggressive`] needs only
/// one if the newest packet directly follows it.
pub(super) fn superfluous<P: Packet>(
    pool: &Pool<P>,
    list: &List,
    filter: AckFilter,
) -> Option<u32> {
    let newest = pool.newest(list)?;
    let (flow, Transport::Tcp(news)) = (newest.flow(), newest.transport()) else {
        return None;
    };
    if news.flags & (TcpHeader::ACK | TcpHeader::SYN) != TcpHeader::ACK {
        return None;
    }
    let older = usize::try_from(list.packets()).unwrap_or_default() - 1;
    let mut eligible: Option<(u32, u16, usize)> = None;
    let mut found = 0_i64;
    for (nth, (at, pkt)) in pool.iter(list).take(older).enumerate() {
        let Transport::Tcp(ack) = pkt.transport() else {
            continue;
        };
        if pkt.flow() != flow {
            continue;
        }
        // Congestion was reported or answered between the two: both must arrive.
        if eligible.is_some_and(|(_, ecn, _)| ecn != ack.flags & ECN) {
            eligible = None;
            found -= 1;
        }
        if !is_covered(&ack, &news) {
            continue;
        }
        let first = *eligible.get_or_insert((at, ack.flags & ECN, nth));
        if found > 0 {
            return Some(first.0);
        }
        found += 1;
    }
    let (at, ecn, nth) = eligible?;
    let alone = filter == AckFilter::Aggressive && nth + 1 == older && ecn == news.flags & ECN;
    alone.then_some(at)
}

/// Whether `ack` is a pure acknowledgement that `news` makes superfluous. One with AE, a reserved bit or an option
/// that the filter does not know may say more.
fn is_covered(ack: &TcpHeader, news: &TcpHeader) -> bool {
    let pure = ack.flags & !ECN == TcpHeader::ACK && ack.payload == 0 && !ack.other_options;
    let (clock, echo) = news.timestamps.unwrap_or_default();
    let older = ack
        .timestamps
        .is_none_or(|(own, peer)| !after(own, clock) && !after(peer, echo));
    if !pure || !older || after(ack.ack, news.ack) {
        return false;
    }
    match compare_sacks(ack, news) {
        Sacks::More => true,
        // The same number and the same blocks: a duplicate, which the sender counts.
        Sacks::Same => ack.ack != news.ack,
        Sacks::Lost => false,
    }
}

/// What the blocks of a later acknowledgement are to those of an earlier one.
#[derive(PartialEq, Eq)]
enum Sacks {
    More,
    Same,
    /// Something would be lost, or a duplicate is reported.
    Lost,
}

fn compare_sacks(ack: &TcpHeader, news: &TcpHeader) -> Sacks {
    let blocks = |header: &TcpHeader| {
        let sacks = header.sacks.into_iter();
        sacks.filter(|(start, end)| start != end)
    };
    let length = |header: &TcpHeader| -> u64 {
        blocks(header)
            .map(|(start, end)| u64::from(end.wrapping_sub(start)))
            .sum()
    };
    for (start, end) in blocks(ack) {
        let duplicate = after(ack.ack, start);
        let kept = blocks(news).any(|(s, e)| !after(s, start) && !after(end, e));
        if duplicate || !kept {
            return Sacks::Lost;
        }
    }
    if length(news) > length(ack) {
        Sacks::More
    } else {
        Sacks::Same
    }
}

/// Whether `a` comes after `b`, modulo 2^32.
const fn after(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) >= 1 << 31
}
