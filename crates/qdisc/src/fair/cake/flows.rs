//! The flows and hosts of a tin: an 8-way set-associative hash, and the fair shares of hosts.

use std::ops::{Index, IndexMut};

use sojourn_net::{FlowKey, Rng};

use super::options::FlowMode;
use super::pace::{DrrSchedule, FLOWS, Round};
use crate::aqm::cobalt::Control;
use crate::parts::pool::List;

/// Places that a flow or a host may take: those of its set.
const WAYS: usize = 8;
const SETS: usize = FLOWS / WAYS;

/// Where a flow is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Set {
    /// In no list.
    #[default]
    None,
    /// Within its first turn since it was empty.
    Sparse,
    /// Sparse but for its turn being used up; it was empty then.
    SparseWait,
    /// Beyond its first turn.
    Bulk,
    /// Empty, while its law still remembers congestion.
    Decaying,
}

/// One queue.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) list: List,
    pub(super) control: Control,
    /// Bytes it may still send in its turn.
    pub(super) deficit: i64,
    source: u16,
    destination: u16,
    pub(super) set: Set,
}

/// Which hosts share capacity first, before their flows do.
#[derive(Clone, Copy, Debug)]
struct Isolation {
    sources: bool,
    destinations: bool,
}

/// The hosts of one side.
#[derive(Clone, Debug)]
struct Hosts {
    tags: Box<[[u32; WAYS]; SETS]>,
    /// Bulk flows of each.
    bulk: Box<[[u16; WAYS]; SETS]>,
}

/// How often a packet found its flow's place.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    /// In another way of the set.
    pub(super) hits: u64,
    /// Nowhere, but a way was free.
    pub(super) misses: u64,
    /// Nowhere, and it has to share.
    pub(super) collisions: u64,
}

/// How many flows are where in their lives.
#[derive(Clone, Debug)]
pub(super) struct Census {
    /// By [`Set`].
    counts: [u32; 5],
}

/// The flows of a tin.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    mode: FlowMode,
    /// The flows of a host share what is the host's.
    isolates: Isolation,
    perturbation: u64,
    tags: Box<[[u32; WAYS]; SETS]>,
    /// Flows in no list, a bit for each way of a set.
    free: Box<[u8; SETS]>,
    all: Box<[Flow; FLOWS]>,
    sources: Hosts,
    destinations: Hosts,
    pub(super) schedule: DrrSchedule,
    pub(super) ways: Ways,
    pub(super) census: Census,
    /// Bytes a flow may send in a turn if its hosts have no other.
    pub(super) quantum: u32,
}

impl Index<usize> for Flows {
    type Output = Flow;

    #[inline]
    fn index(&self, at: usize) -> &Flow {
        &self.all[at % FLOWS]
    }
}

impl IndexMut<usize> for Flows {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut Flow {
        &mut self.all[at % FLOWS]
    }
}

impl Flows {
    pub(super) fn new(mode: FlowMode, quantum: u32, perturbation: u64) -> Self {
        let flow = Flow {
            list: List::EMPTY,
            control: Control::default(),
            deficit: 0,
            source: 0,
            destination: 0,
            set: Set::None,
        };
        let hosts = Hosts {
            tags: boxed([0; WAYS]),
            bulk: boxed([0; WAYS]),
        };
        Self {
            mode,
            isolates: Isolation {
                sources: mode.isolates_sources(),
                destinations: mode.isolates_destinations(),
            },
            perturbation,
            tags: boxed([0; WAYS]),
            free: boxed(u8::MAX),
            all: boxed(flow),
            sources: hosts.clone(),
            destinations: hosts,
            schedule: DrrSchedule::new(),
            ways: Ways::default(),
            census: Census::new(),
            quantum,
        }
    }

    /// The queue for packets of `key`.
    #[inline]
    pub(super) fn place(&mut self, key: impl Fn() -> FlowKey) -> usize {
        let Some(tag) = self.tag(&key()) else {
            return 0;
        };
        let own = slot(tag);
        if self.tags[own / WAYS][own % WAYS] == tag && !self.is_free(own) {
            return own;
        }
        self.seek(tag, &key())
    }

    /// What [`Flows::place`] would return, without taking the place.
    pub(super) fn place_of(&self, key: &FlowKey) -> usize {
        let Some(tag) = self.tag(key) else {
            return 0;
        };
        let own = slot(tag);
        let known = first_way(own, known(&self.tags[own / WAYS], tag));
        let free = || first_way(own, self.free[own / WAYS]);
        known.or_else(free).unwrap_or(own)
    }

    #[inline]
    fn is_free(&self, at: usize) -> bool {
        self.free[at / WAYS % SETS] >> (at % WAYS) & 1 == 1
    }

    /// What distinguishes flows; `None`: there is one queue for all packets.
    #[inline]
    fn tag(&self, key: &FlowKey) -> Option<u32> {
        Some(match self.mode {
            FlowMode::Flowblind => return None,
            FlowMode::Srchost => self.source_tag(key),
            FlowMode::Dsthost => self.destination_tag(key),
            FlowMode::Hosts => self.source_tag(key) ^ self.destination_tag(key),
            _ => key.digest(self.perturbation),
        })
    }

    /// Finds a place for a flow that is not in its own.
    fn seek(&mut self, tag: u32, key: &FlowKey) -> usize {
        let own = slot(tag);
        let place;
        let mut newly = true;
        if let Some(known) = first_way(own, known(&self.tags[own / WAYS], tag)) {
            self.ways.hits += u64::from(known != own);
            newly = self.is_free(known);
            place = known;
        } else if let Some(free) = first_way(own, self.free[own / WAYS]) {
            self.ways.misses += 1;
            place = free;
        } else {
            self.ways.collisions += 1;
            place = own;
            self.count_bulk(own, false);
        }
        self.tags[place / WAYS][place % WAYS] = tag;
        if newly {
            if self.isolates.sources {
                let tag = self.source_tag(key);
                self.all[place].source = self.sources.place(tag);
            }
            if self.isolates.destinations {
                let tag = self.destination_tag(key);
                self.all[place].destination = self.destinations.place(tag);
            }
            self.count_bulk(place, true);
        }
        place
    }

    fn source_tag(&self, key: &FlowKey) -> u32 {
        let source = FlowKey {
            source: key.source,
            ..FlowKey::default()
        };
        source.digest(self.perturbation)
    }

    fn destination_tag(&self, key: &FlowKey) -> u32 {
        let destination = FlowKey {
            destination: key.destination,
            ..FlowKey::default()
        };
        destination.digest(self.perturbation)
    }

    /// Counts a flow among those of its hosts, or no longer, if it is bulk.
    #[inline]
    fn count_bulk(&mut self, at: usize, more: bool) {
        let flow = &self.all[at % FLOWS];
        if flow.set != Set::Bulk {
            return;
        }
        if self.isolates.sources {
            self.sources.count(flow.source, more);
        }
        if self.isolates.destinations {
            self.destinations.count(flow.destination, more);
        }
    }

    /// Moves a flow to another stage of its life.
    #[inline]
    pub(super) fn advance(&mut self, at: usize, set: Set) {
        self.count_bulk(at, false);
        let was = std::mem::replace(&mut self[at].set, set);
        self.census.counts[was as usize] -= 1;
        self.census.counts[set as usize] += 1;
        let changed = (was == Set::None) != (set == Set::None);
        self.free[at / WAYS % SETS] ^= u8::from(changed) << (at % WAYS);
        if set == Set::Bulk {
            self.count_bulk(at, true);
        }
    }

    /// A packet was put into a flow: if the flow was idle, it begins.
    #[inline]
    pub(super) fn wake(&mut self, at: usize, rng: &mut Rng) {
        match self[at].set {
            Set::None | Set::Decaying => {
                self.schedule.append(Round::New, at);
                self.advance(at, Set::Sparse);
                self[at].deficit = self.turn(at, rng);
            }
            Set::SparseWait => self.advance(at, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// A turn is used up: the flow waits for the next.
    #[inline]
    pub(super) fn next_turn(&mut self, at: usize, rng: &mut Rng) {
        if self[at].set == Set::Sparse {
            let waits = self[at].list.packets() > 0;
            self.advance(at, if waits { Set::Bulk } else { Set::SparseWait });
        }
        self[at].deficit += self.turn(at, rng);
        self.schedule.append(Round::Old, at);
    }

    /// The flow was found empty: it leaves, at once or when its law has calmed down.
    #[inline]
    pub(super) fn retire(&mut self, at: usize, calm: bool) {
        if calm {
            self.schedule.remove(at);
            self.advance(at, Set::None);
        } else {
            self.schedule.append(Round::Decaying, at);
            self.advance(at, Set::Decaying);
        }
    }

    /// The flow whose turn it is; each call of the queue looks at one that decays first.
    #[inline]
    pub(super) fn first(&self, look_at_decaying: bool) -> Option<usize> {
        let decaying = || self.schedule.first(Round::Decaying);
        let rest = || {
            self.schedule
                .first(Round::New)
                .or(self.schedule.first(Round::Old))
        };
        if look_at_decaying {
            decaying().or_else(rest)
        } else {
            rest().or_else(decaying)
        }
    }

    /// Whether a flow has packets, or was not yet seen to have none.
    #[inline]
    pub(super) const fn is_active(&self) -> bool {
        (self.census.idle() as usize) < FLOWS
    }

    /// The bytes of a turn: the quantum, divided by the bulk flows of the busier host; the random
    /// part makes up for what rounding takes.
    #[inline]
    fn turn(&self, at: usize, rng: &mut Rng) -> i64 {
        let flow = &self[at];
        // Where hosts are not isolated, none has bulk flows.
        let sources = self.sources.flows_of(flow.source);
        let load = sources
            .max(self.destinations.flows_of(flow.destination))
            .max(1);
        let share = SHARES[usize::from(load).min(FLOWS)];
        i64::from((self.quantum * share + (rng.next_u32() >> 16)) >> 16)
    }
}

impl Census {
    fn new() -> Self {
        let mut counts = [0; 5];
        counts[Set::None as usize] = u32::try_from(FLOWS).unwrap_or_default();
        Self { counts }
    }

    /// Flows without packets.
    #[inline]
    const fn idle(&self) -> u32 {
        self.counts[Set::None as usize] + self.counts[Set::Decaying as usize]
    }

    pub(super) const fn sparse(&self) -> u32 {
        self.counts[Set::Sparse as usize] + self.counts[Set::SparseWait as usize]
    }

    #[inline]
    pub(super) const fn bulk(&self) -> u32 {
        self.counts[Set::Bulk as usize]
    }

    pub(super) const fn decaying(&self) -> u32 {
        self.counts[Set::Decaying as usize]
    }
}

impl Hosts {
    /// The place of the host with this tag: its own, one that no bulk flow holds, or one to share.
    fn place(&mut self, tag: u32) -> u16 {
        let own = slot(tag);
        let set = own / WAYS;
        let known = first_way(own, known(&self.tags[set], tag));
        let free = || first_way(own, unused(&self.bulk[set]));
        let place = known.or_else(free).unwrap_or(own);
        self.tags[place / WAYS % SETS][place % WAYS] = tag;
        u16::try_from(place).unwrap_or_default()
    }

    /// Bulk flows of a host.
    #[inline]
    fn flows_of(&self, host: u16) -> u16 {
        let host = usize::from(host);
        self.bulk[host / WAYS % SETS][host % WAYS]
    }

    #[inline]
    fn count(&mut self, host: u16, more: bool) {
        let host = usize::from(host);
        let bulk = &mut self.bulk[host / WAYS % SETS][host % WAYS];
        *bulk = if more {
            bulk.saturating_add(1)
        } else {
            bulk.saturating_sub(1)
        };
    }
}

/// 1 / n, of 2^16.
const SHARES: [u32; FLOWS + 1] = {
    let mut shares = [u16::MAX as u32; FLOWS + 1];
    let mut n = 1;
    while n <= FLOWS {
        #[expect(clippy::cast_possible_truncation, reason = "at most 1024")]
        let divisor = n as u32;
        shares[n] = u16::MAX as u32 / divisor;
        n += 1;
    }
    shares
};

/// The place that a tag names.
#[inline]
const fn slot(tag: u32) -> usize {
    tag as usize % FLOWS
}

/// The ways of a set that hold `tag`, a bit for each.
#[inline]
fn known(tags: &[u32; WAYS], tag: u32) -> u8 {
    bits(tags.map(|of| of == tag))
}

/// The ways of a set of hosts that no bulk flow holds, a bit for each.
#[inline]
fn unused(bulk: &[u16; WAYS]) -> u8 {
    bits(bulk.map(|flows| flows == 0))
}

/// Without branches, which could not be predicted.
#[inline]
fn bits(ways: [bool; WAYS]) -> u8 {
    let bits = ways.into_iter().zip(0..);
    bits.fold(0, |bits, (way, at)| bits | u8::from(way) << at)
}

/// The first of the `eligible` ways of its set from `own` on, around its end.
#[inline]
fn first_way(own: usize, eligible: u8) -> Option<usize> {
    let turned = eligible.rotate_right(u32::try_from(own % WAYS).unwrap_or_default());
    let way = own + turned.trailing_zeros() as usize;
    (eligible != 0).then_some(own - own % WAYS + way % WAYS)
}

/// As many copies of `item` as the array has places.
fn boxed<T: Clone, const N: usize>(item: T) -> Box<[T; N]> {
    let all = vec![item; N].into_boxed_slice();
    all.try_into().ok().expect("of this length")
}

/// Departures after the last shortage during which the heap is kept.
const KEPT: u32 = 65_535;

/// The bytes of each queue, where a [`Longest`] reads them.
pub(super) trait Lengths {
    fn bytes(&self, queue: usize) -> u64;
}

/// The longest of all queues.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    /// Queues, each with no more bytes than its parent at half its place.
    heap: Vec<u16>,
    /// Where in the heap each queue is.
    places: Vec<u16>,
    kept: u32,
}

impl Longest {
    /// Of `queues`, at most 2^16.
    pub(super) fn new(queues: usize) -> Self {
        Self {
            heap: (0..=u16::MAX).take(queues).collect(),
            places: (0..=u16::MAX).take(queues).collect(),
            kept: 0,
        }
    }

    /// Queues that grow or shrink have to be reported.
    #[inline]
    pub(super) const fn is_kept(&self) -> bool {
        self.kept > 0
    }

    /// Queue `queue` has grown.
    #[inline]
    pub(super) fn grow(&mut self, queue: usize, lengths: &(impl Lengths + ?Sized)) {
        if self.is_kept() {
            self.rise(usize::from(self.places[queue]), lengths);
        }
    }

    /// Queue `queue` has shrunk.
    #[inline]
    pub(super) fn shrink(&mut self, queue: usize, lengths: &(impl Lengths + ?Sized)) {
        if self.is_kept() {
            self.sink(usize::from(self.places[queue]), lengths);
        }
    }

    /// A packet was sent.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// The queue with the most bytes.
    pub(super) fn find(&mut self, lengths: &(impl Lengths + ?Sized)) -> usize {
        if self.kept == 0 {
            for at in (0..=self.heap.len() / 2).rev() {
                self.sink(at, lengths);
            }
        }
        self.kept = KEPT;
        usize::from(self.heap[0])
    }

    fn at(&self, place: usize, lengths: &(impl Lengths + ?Sized)) -> u64 {
        let queue = self.heap.get(place).map(|&queue| usize::from(queue));
        queue.map_or(0, |queue| lengths.bytes(queue))
    }

    #[cold]
    fn sink(&mut self, mut place: usize, lengths: &(impl Lengths + ?Sized)) {
        loop {
            let mut largest = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if self.at(child, lengths) > self.at(largest, lengths) {
                    largest = child;
                }
            }
            if largest == place {
                return;
            }
            self.swap(place, largest);
            place = largest;
        }
    }

    #[cold]
    fn rise(&mut self, mut place: usize, lengths: &(impl Lengths + ?Sized)) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.at(place, lengths) <= self.at(parent, lengths) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            let queue = usize::from(self.heap[place]);
            #[expect(clippy::cast_possible_truncation, reason = "at most 2^16 queues")]
            let at = place as u16;
            self.places[queue] = at;
        }
    }
}
