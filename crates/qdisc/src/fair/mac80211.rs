//! `mac80211`: FQ-CoDel per station, airtime fairness and airtime queue limits of Linux's `WiFi`.
//!
//! # Source
//!
//! T. Høiland-Jørgensen et al., "Ending the Anomaly: Achieving Low Latency and Airtime Fairness in `WiFi`" (USENIX ATC
//! 2017), algorithms 1 to 3; constants and order of steps of Linux 6.1, `include/net/fq_impl.h`, `net/mac80211/tx.c`,
//! `sta_info.c` and `airtime.c`.
//!
//! # Algorithm
//!
//! A *TXQ* holds the packets for one station of one TID, the first three bits of the DSCP. The hash of a flow selects
//! one of the queues that all TXQs share; if another TXQ uses that queue, the packet joins a queue that only its TXQ
//! has. Within a TXQ, flows are served as by FQ-CoDel. The parameters of CoDel depend on the station.
//!
//! The driver asks for the next TXQ of an access category, then for packets of it:
//!
//! * airtime fairness: a station has a deficit per category. A transmission costs it its airtime. The first TXQ in the
//!   list whose station has credit is served; the others get their weight and move to the end.
//! * airtime queue limits (AQL): a TXQ is not served while the driver holds packets with too much airtime for its
//!   station.
//!
//! Pseudo-code: `docs/qdiscs/mac80211.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux 6.1 | effect |
//! |---|---|---|
//! | Ethernet size of packets | 802.11 size in the deficits of flows | below 2 % for full packets |
//! | flows hashed with `SplitMix64` | siphash | which flows collide |
//! | one spatial stream in the estimate of AQL | streams of the station | 4 µs per stream and aggregate |

use std::collections::VecDeque;

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rate, Rng};

use crate::aqm::codel::{self, CodelParams, Control, Law, Source};
use crate::contract::{Backlog, DropReason, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LINUX, LinkFacts, Params, Profile, Retention, TcStatistics, fixed, parameters,
};
use crate::parts::memory::Memory;
use crate::parts::pool::{List, Pool};
use crate::parts::round::{FlowId, Links, Round};

parameters! {
    /// Parameters of [`Mac80211`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Mac80211Params {
        /// Maximum number of packets in all queues together.
        pub limit: usize = 8_192 => packets(1, 100_000_000),
            "include/net/fq_impl.h: fq_init, limit";
        /// Maximum kernel memory of all queues together.
        pub memory_limit: Option<Bytes> = None => size(1, 1 << 40).unset("4 MiB with 802.11n, otherwise 16 MiB"),
            "net/mac80211/tx.c: ieee80211_txq_setup_flows, memory_limit";
        /// Number of queues that flows of all stations are hashed to.
        pub flows: u32 = 4_096 => count(1, 32_768),
            "net/mac80211/tx.c: ieee80211_txq_setup_flows";
        /// Bytes that a flow sends per turn.
        pub quantum: Bytes = Bytes(300) => size(1, 1 << 20),
            "include/net/fq_impl.h: fq_init, quantum";
        /// Acceptable standing delay of each queue.
        pub target: Duration = Duration::from_millis(20) => time(1, LONGEST),
            "net/mac80211/sta_info.c: sta_update_codel_params";
        /// CoDel interval.
        pub interval: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "net/mac80211/sta_info.c: sta_update_codel_params";
        /// Mark ECN-capable packets instead of dropping them, but for slow stations.
        pub ecn: bool = true => flag(),
            "net/mac80211/sta_info.c: sta_update_codel_params";
        /// A station is slow if its expected throughput is below this rate times the number of stations.
        pub slow_rate: Rate = Rate::mbit(6) => rate(),
            "net/mac80211/sta_info.h: STA_SLOW_THRESHOLD";
        /// Acceptable standing delay of a slow station.
        pub slow_target: Duration = Duration::from_millis(50) => time(1, LONGEST),
            "net/mac80211/sta_info.c: sta_update_codel_params";
        /// CoDel interval of a slow station.
        pub slow_interval: Duration = Duration::from_millis(300) => time(1, LONGEST),
            "net/mac80211/sta_info.c: sta_update_codel_params";
        /// Serve stations by airtime.
        pub airtime: bool = true => flag(),
            "include/net/cfg80211.h: NL80211_EXT_FEATURE_AIRTIME_FAIRNESS";
        /// Limit the airtime of packets in the driver.
        pub aql: bool = true => flag(),
            "include/net/cfg80211.h: NL80211_EXT_FEATURE_AQL";
        /// Airtime in the driver per station and category below which it always gets packets.
        pub aql_low: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "include/net/cfg80211.h: IEEE80211_DEFAULT_AQL_TXQ_LIMIT_L";
        /// Airtime in the driver per station and category below which it gets packets if the total is below the threshold.
        pub aql_high: Duration = Duration::from_millis(12) => time(1, LONGEST),
            "include/net/cfg80211.h: IEEE80211_DEFAULT_AQL_TXQ_LIMIT_H";
        /// Airtime in the driver of all stations from which the lower limit applies.
        pub aql_threshold: Duration = Duration::from_millis(24) => time(1, LONGEST),
            "include/net/cfg80211.h: IEEE80211_AQL_THRESHOLD";
    }
}

impl Mac80211Params {
    /// Of a usual station and of a slow one.
    fn laws(&self) -> [Law; 2] {
        [
            self.law(self.target, self.interval, self.ecn),
            self.law(self.slow_target, self.slow_interval, false),
        ]
    }

    fn law(&self, target: Duration, interval: Duration, ecn: bool) -> Law {
        Law::new(&CodelParams {
            limit: self.limit,
            target,
            interval,
            ce_threshold: None,
            ecn,
            profile: Profile::Linux,
        })
    }
}

impl Params for Mac80211Params {
    type Queue<P: Packet> = Mac80211<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "mac80211",
        class: Some("Mac80211"),
        summary: "Linux's WiFi queue: FQ-CoDel per station, airtime fairness, airtime queue limits",
        source: "Høiland-Jørgensen et al., USENIX ATC 2017; Linux 6.1 mac80211",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const TC_STATISTICS: TcStatistics = TcStatistics::of(codel::COUNTERS);

    const COMPARISON: Comparison = Comparison::None;

    fn conflict(&self) -> Option<String> {
        (self.aql_low > self.aql_high).then(|| {
            let (low, high) = (self.aql_low, self.aql_high);
            format!("aql_low {low} is above aql_high {high}; expected at most aql_high")
        })
    }

    fn build<P: Packet>(&self, _link: &LinkFacts, rng: Rng) -> Mac80211<P> {
        Mac80211::new(self, rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[("flows", self.flows == next.flows)])
    }

    /// As in debugfs: an arrival drops what is above a lower limit.
    fn change<P: Packet>(
        &self,
        queue: &mut Mac80211<P>,
        _now: Instant,
        _link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        if let Some(limit) = self.memory_limit {
            queue.memory_limit = limit.0;
        }
        queue.laws = self.laws();
        queue.params = *self;
        queue.follow_throughput();
    }
}

/// Stations: one per host that traffic can have, and one for packets without host.
pub(crate) const STATIONS: usize = 128;
/// TIDs of a station.
const TIDS: usize = 8;
/// Access categories.
const CLASSES: usize = 4;
/// A station that was served within this time pays for its airtime, and keeps its place until it has.
const ACTIVE: Duration = Duration::from_millis(100);
/// Most packets that one overload drops.
const DROP_BATCH: u32 = 32;
/// Weight of a station in airtime fairness: microseconds that it gets per round.
const WEIGHT: u32 = 256;
/// Success that rate control expects at most.
const MOST_SUCCESS: f64 = 0.9;
/// Packet by which rate control computes throughput.
const AVERAGE: Bytes = Bytes(1_200);

/// A TXQ: the packets for one station of one TID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxqId(u16);

impl TxqId {
    fn new(station: u8, tid: u8) -> Self {
        Self(u16::from(station) * 8 + u16::from(tid))
    }

    const fn index(self) -> usize {
        self.0 as usize
    }

    /// The station.
    pub const fn station(self) -> u8 {
        (self.0 / 8).to_le_bytes()[0]
    }

    /// The access category: 0 is background, 1 best effort, 2 video, 3 voice.
    pub const fn class(self) -> usize {
        match self.0 % 8 {
            1 | 2 => 0,
            0 | 3 => 1,
            4 | 5 => 2,
            _ => 3,
        }
    }
}

/// The queue of an access point as in Linux's `mac80211`.
#[derive(Clone, Debug)]
pub struct Mac80211<P> {
    params: Mac80211Params,
    memory_limit: u64,
    perturbation: u64,
    /// Of a usual station and of a slow one.
    laws: [Law; 2],
    store: Store<P>,
    /// Those that packets are hashed to, then one for each TXQ.
    flows: Vec<Flow>,
    txqs: Vec<Txq>,
    stations: Vec<Station>,
    /// Stations that have had a packet.
    seen: u64,
    /// TXQs to serve, by category.
    active: [VecDeque<TxqId>; CLASSES],
    /// Whether a radio reports airtime.
    has_radio: bool,
    /// Airtime in the driver, in µs.
    pending: u64,
    counted: Counted,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    new_flows: u64,
    collisions: u64,
    overlimit: u64,
    overmemory: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    list: List,
    control: Control,
    deficit: i64,
    next: FlowId,
    /// The TXQ in whose lists it is.
    txq: Option<TxqId>,
}

impl Links for Vec<Flow> {
    fn link_of(&self, flow: FlowId) -> Option<FlowId> {
        self.get(flow.index()).map(|flow| flow.next)
    }

    fn set_link(&mut self, flow: FlowId, next: FlowId) {
        self[flow.index()].next = next;
    }
}

#[derive(Clone, Debug)]
struct Txq {
    new: Round,
    old: Round,
    packets: u64,
    is_scheduled: bool,
}

#[derive(Clone, Debug)]
struct Station {
    is_seen: bool,
    is_slow: bool,
    weight: i64,
    /// The rate at which it is sent to.
    rate: Option<Rate>,
    /// Expected throughput.
    throughput: Option<Rate>,
    /// What was sent to it and received from it, in µs.
    airtime: u64,
    air: [Air; CLASSES],
}

/// The airtime of a station and category, in µs.
#[derive(Clone, Debug)]
struct Air {
    deficit: i64,
    pending: u64,
    last_active: Instant,
}

#[derive(Clone, Debug)]
struct Store<P> {
    pool: Pool<P>,
    backlog: Backlog,
    memory: Memory,
    /// The size of the packet that was taken out last.
    last: Bytes,
}

impl<P: Packet> Mac80211<P> {
    /// An empty queue without a radio: all stations get turns, and nothing limits the driver.
    pub fn new(params: &Mac80211Params, mut rng: Rng) -> Self {
        let flow = Flow {
            list: List::EMPTY,
            control: Control::default(),
            deficit: 0,
            next: FlowId::NONE,
            txq: None,
        };
        let txq = Txq {
            new: Round::EMPTY,
            old: Round::EMPTY,
            packets: 0,
            is_scheduled: false,
        };
        let weight = i64::from(WEIGHT);
        let air = Air {
            deficit: weight,
            pending: 0,
            last_active: Instant::ZERO,
        };
        let station = Station {
            is_seen: false,
            is_slow: false,
            weight,
            rate: None,
            throughput: None,
            airtime: 0,
            air: [air.clone(), air.clone(), air.clone(), air],
        };
        let most = 16 << 20;
        Self {
            params: *params,
            memory_limit: params.memory_limit.map_or(most, |limit| limit.0),
            perturbation: rng.next_u64(),
            laws: params.laws(),
            store: Store {
                pool: Pool::new(),
                backlog: Backlog::default(),
                memory: Memory::of_buffers(),
                last: Bytes(0),
            },
            flows: vec![flow; params.flows as usize + STATIONS * TIDS],
            txqs: vec![txq; STATIONS * TIDS],
            stations: vec![station; STATIONS],
            seen: 0,
            active: Default::default(),
            has_radio: false,
            pending: 0,
            counted: Counted::default(),
        }
    }

    /// A radio serves the queue and reports airtime; `is_ht_only` if it is one of 802.11n.
    pub fn attach(&mut self, is_ht_only: bool) {
        self.has_radio = true;
        if is_ht_only && self.params.memory_limit.is_none() {
            self.memory_limit = 4 << 20;
        }
    }

    /// The weight of a station in airtime fairness.
    pub fn set_weight(&mut self, station: u8, weight: u32) {
        let station = &mut self.stations[usize::from(station)];
        station.weight = weight.into();
        for air in &mut station.air {
            air.deficit = weight.into();
        }
    }

    /// Rate control sends to a station at `rate`, with this probability of success.
    pub fn set_rate(&mut self, station: u8, rate: Rate, success: f64) {
        let time = aggregated(rate, AVERAGE);
        let bits = 8.0 * real(AVERAGE.0) * success.min(MOST_SUCCESS);
        let throughput = bits / time.as_secs_f64();
        let station = &mut self.stations[usize::from(station)];
        station.rate = Some(rate);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate"
        )]
        let expected = Rate::from_bits_per_sec(throughput as u64);
        station.throughput = expected;
        self.follow_throughput();
    }

    /// Decides which stations are slow.
    fn follow_throughput(&mut self) {
        let least = self.params.slow_rate.bits_per_sec() * self.seen;
        for station in &mut self.stations {
            let expected = station.throughput;
            station.is_slow = expected.is_some_and(|rate| rate.bits_per_sec() < least);
        }
    }

    /// What AQL expects a packet of `size` to take on the air.
    pub fn expected_airtime(&self, station: u8, class: usize, size: Bytes) -> Duration {
        match self.stations[usize::from(station)].rate {
            None => Duration::ZERO,
            // Voice is not aggregated.
            Some(rate) if class == 3 => rate.serialise(size + HEADER) + OVERHEAD,
            Some(rate) => aggregated(rate, size),
        }
    }

    /// The TXQ of category `class` that the driver serves next.
    pub fn next_txq(&mut self, now: Instant, class: usize) -> Option<TxqId> {
        let is_fair = self.is_fair();
        // Each turn removes a TXQ, gives a station its weight, or finds one more at its limit.
        let mut at_limit = 0;
        loop {
            let id = *self.active[class].front()?;
            let may_send = self.may_send(id);
            let txq = &mut self.txqs[id.index()];
            let station = &mut self.stations[usize::from(id.station())];
            let air = &mut station.air[class];
            let credit = air.deficit - signed(air.pending);
            let owes = is_fair && credit < 0;
            if txq.packets == 0 && !(owes && now.since(air.last_active) <= ACTIVE) {
                txq.is_scheduled = false;
                self.active[class].pop_front();
                continue;
            }
            if owes {
                air.deficit += station.weight;
            }
            if !owes && may_send {
                air.last_active = now;
                if !is_fair {
                    self.active[class].rotate_left(1);
                }
                return Some(id);
            }
            at_limit = if may_send { 0 } else { at_limit + 1 };
            if at_limit > self.active[class].len() {
                return None;
            }
            self.active[class].rotate_left(1);
        }
    }

    fn is_fair(&self) -> bool {
        self.has_radio && self.params.airtime
    }

    /// Whether AQL lets the driver have another packet of `txq`.
    pub fn may_send(&self, txq: TxqId) -> bool {
        if !self.params.aql || !self.has_radio {
            return true;
        }
        let pending = self.stations[usize::from(txq.station())].air[txq.class()].pending;
        pending < self.params.aql_low.as_micros()
            || self.pending < self.params.aql_threshold.as_micros()
                && pending < self.params.aql_high.as_micros()
    }

    /// The driver takes a packet out of `txq`, which it expects to take the airtime of [`Mac80211::expected_airtime`].
    pub fn dequeue_from(
        &mut self,
        now: Instant,
        id: TxqId,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        if !self.may_send(id) {
            return None;
        }
        let law = &self.laws[usize::from(self.stations[usize::from(id.station())].is_slow)];
        let txq = &mut self.txqs[id.index()];
        // Each turn sends, gives a flow its quantum or sets it aside, and only an arrival brings one back.
        let pkt = loop {
            let is_new = txq.new.first().is_some();
            let list = if is_new { &mut txq.new } else { &mut txq.old };
            let at = list.first()?;
            let flow = &mut self.flows[at.index()];
            if flow.deficit <= 0 {
                flow.deficit += signed(self.params.quantum.0);
                list.pop(&self.flows);
                txq.old.push(&mut self.flows, at);
                continue;
            }
            let mut source = FlowSource {
                store: &mut self.store,
                packets: &mut txq.packets,
                list: &mut flow.list,
            };
            if let Some(pkt) = flow.control.dequeue(law, &mut source, now, obs) {
                flow.deficit -= signed(self.store.last.0);
                break pkt;
            }
            list.pop(&self.flows);
            if is_new && txq.old.first().is_some() {
                txq.old.push(&mut self.flows, at);
            } else {
                self.flows[at.index()].txq = None;
            }
        };
        let micros = self.expected_airtime(id.station(), id.class(), pkt.size());
        self.stations[usize::from(id.station())].air[id.class()].pending += micros.as_micros();
        self.pending += micros.as_micros();
        Some(pkt)
    }

    /// Packets that were expected to take `expected` µs have left the driver.
    pub fn complete(&mut self, station: u8, class: usize, expected: u64) {
        let air = &mut self.stations[usize::from(station)].air[class];
        air.pending = air.pending.saturating_sub(expected);
        self.pending = self.pending.saturating_sub(expected);
    }

    /// A transmission to or from a station took `airtime`.
    pub fn charge(&mut self, now: Instant, station: u8, class: usize, airtime: Duration) {
        let station = &mut self.stations[usize::from(station)];
        station.airtime += airtime.as_micros();
        let air = &mut station.air[class];
        if now.since(air.last_active) <= ACTIVE {
            air.deficit -= signed(airtime.as_micros());
        }
    }

    /// The flow that `pkt` of `txq` joins, and whether another TXQ had the queue of its hash.
    fn classify(&self, pkt: &P, id: TxqId) -> (FlowId, bool) {
        let digest = pkt.flow().digest(self.perturbation);
        let hashed = FlowId::scaled(digest, self.params.flows);
        match self.flows[hashed.index()].txq {
            Some(other) if other != id => (FlowId::at(self.params.flows + u32::from(id.0)), true),
            _ => (hashed, false),
        }
    }

    fn schedule(&mut self, now: Instant, id: TxqId) {
        let txq = &mut self.txqs[id.index()];
        if txq.is_scheduled {
            return;
        }
        txq.is_scheduled = true;
        let class = id.class();
        self.stations[usize::from(id.station())].air[class].last_active = now;
        if self.is_fair() {
            self.active[class].push_front(id);
        } else {
            self.active[class].push_back(id);
        }
    }

    /// Drops half the packets, at most 32, of the flow with the most bytes; says whether there was one.
    #[cold]
    fn drop_from_fattest(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> bool {
        let mut fattest: Option<&mut Flow> = None;
        let mut most = Bytes(0);
        for flow in &mut self.flows {
            if flow.list.bytes() > most {
                most = flow.list.bytes();
                fattest = Some(flow);
            }
        }
        let Some(flow) = fattest else {
            return false;
        };
        let Some(txq) = flow.txq else {
            return false;
        };
        let packets = (flow.list.packets() / 2).clamp(1, DROP_BATCH);
        let mut source = FlowSource {
            store: &mut self.store,
            packets: &mut self.txqs[txq.index()].packets,
            list: &mut flow.list,
        };
        for _ in 0..packets {
            if let Some((pkt, _)) = source.pop() {
                obs.on_drop(now, pkt, DropReason::Overlimit);
            }
        }
        self.counted.overlimit += 1;
        true
    }
}

impl<P: Packet> Qdisc<P> for Mac80211<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let number = obs.station_of(&pkt) % 128;
        let id = TxqId::new(number, pkt.dscp().number() >> 3);
        let station = &mut self.stations[usize::from(number)];
        if !station.is_seen {
            station.is_seen = true;
            self.seen += 1;
            self.follow_throughput();
        }
        let (at, collides) = self.classify(&pkt, id);
        self.counted.collisions += u64::from(collides);
        let txq = &mut self.txqs[id.index()];
        let flow = &mut self.flows[at.index()];
        let is_away = flow.txq.is_none();
        flow.txq = Some(id);
        let size = self.store.push(&mut flow.list, now, pkt);
        debug_assert!(size.0 > 0, "a packet has a size");
        txq.packets += 1;
        if is_away {
            flow.deficit = signed(self.params.quantum.0);
            txq.new.push(&mut self.flows, at);
            self.counted.new_flows += 1;
        }
        loop {
            let over_memory = self.store.memory.used() > self.memory_limit;
            if !over_memory && self.store.backlog.packets <= self.params.limit {
                break;
            }
            self.counted.overmemory += u64::from(over_memory);
            if !self.drop_from_fattest(now, obs) {
                break;
            }
        }
        self.schedule(now, id);
    }

    /// Without a radio, categories have strict priority, and stations take turns by packet.
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        for class in (0..CLASSES).rev() {
            // Each turn sends or finds a TXQ empty, which the next removes.
            while let Some(txq) = self.next_txq(now, class) {
                if let Some(pkt) = self.dequeue_from(now, txq, obs) {
                    return Some(pkt);
                }
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog
    }

    fn statistics(&self) -> Vec<Statistic> {
        let slow = self.stations.iter().filter(|s| s.is_seen && s.is_slow);
        let mut statistics = vec![
            Statistic::count("new_flows", self.counted.new_flows),
            Statistic::count("collisions", self.counted.collisions),
            Statistic::count("overlimit", self.counted.overlimit),
            Statistic::count("overmemory", self.counted.overmemory),
            Statistic::count("memory_used", self.store.memory.used()),
            Statistic::count("active_stations", self.seen),
            Statistic::count("slow_stations", slow.count() as u64),
        ];
        if self.has_radio {
            let seen = self.stations.iter().enumerate().filter(|(_, s)| s.is_seen);
            statistics.extend(seen.map(|(place, station)| {
                Statistic::count("airtime_us", station.airtime).within("stations", place)
            }));
        }
        statistics
    }

    fn state(&self, _now: Instant) -> Vec<Statistic> {
        let dropping = self.flows.iter().filter(|f| f.control.is_dropping());
        vec![
            Statistic::count("dropping_flows", dropping.count() as u64),
            Statistic::count("aql_pending", self.pending),
        ]
    }
}

impl<P: Packet> Store<P> {
    fn push(&mut self, list: &mut List, now: Instant, pkt: P) -> Bytes {
        let before = list.bytes();
        self.pool.push(list, now, pkt);
        let size = list.bytes() - before;
        self.backlog.add(size);
        self.memory.add(size);
        size
    }
}

/// One flow, as CoDel sees it.
struct FlowSource<'a, P> {
    store: &'a mut Store<P>,
    /// Of the TXQ.
    packets: &'a mut u64,
    list: &'a mut List,
}

impl<P: Packet> Source<P> for FlowSource<'_, P> {
    fn pop(&mut self) -> Option<(P, Instant)> {
        let before = self.list.bytes();
        let popped = self.store.pool.pop(self.list)?;
        let size = before - self.list.bytes();
        self.store.backlog.remove(size);
        self.store.memory.remove(size);
        self.store.last = size;
        *self.packets -= 1;
        Some(popped)
    }

    /// In `mac80211` CoDel has no MTU: it signals unless the flow is empty.
    fn is_small(&self) -> bool {
        self.list.packets() == 0
    }
}

/// What the estimate of AQL adds to a packet.
const HEADER: Bytes = Bytes(38);
/// Preamble of one spatial stream.
const OVERHEAD: Duration = Duration::from_micros(40);

/// What AQL expects a packet to take in an aggregate, whose length it guesses from the time of 1,024 B.
fn aggregated(rate: Rate, size: Bytes) -> Duration {
    let packets = match rate.serialise(Bytes(1_024)).as_micros() {
        401.. => 2,
        251.. => 4,
        151.. => 8,
        71.. => 16,
        _ => 32,
    };
    let overhead = Duration::from_nanos(OVERHEAD.as_nanos() / packets);
    rate.serialise(size + HEADER) + overhead
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn real(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests;
