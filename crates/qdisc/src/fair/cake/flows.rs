//! The flows and hosts of a tin: an 8-way set-associative hash, and the fair shares of hosts.

use std::ops::{Index, IndexMut};

use sojourn_net::{FlowKey, Rng};

use super::options::FlowMode;
use super::schedule::{DrrSchedule, FLOWS, Round};
use crate::aqm::cobalt::Control;
use crate::parts::pool::List;

/// Places that a flow or a host may take: those of its set.
const WAYS: usize = 8;

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

/// The hosts of one side.
#[derive(Clone, Debug)]
struct Hosts {
    tags: Vec<u32>,
    /// Bulk flows of each.
    bulk: Vec<u16>,
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
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    pub(super) sparse: u32,
    pub(super) bulk: u32,
    pub(super) decaying: u32,
}

/// The flows of a tin.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    mode: FlowMode,
    perturbation: u64,
    tags: Vec<u32>,
    all: Vec<Flow>,
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
        &self.all[at]
    }
}

impl IndexMut<usize> for Flows {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut Flow {
        &mut self.all[at]
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
            tags: vec![0; FLOWS],
            bulk: vec![0; FLOWS],
        };
        Self {
            mode,
            perturbation,
            tags: vec![0; FLOWS],
            all: vec![flow; FLOWS],
            sources: hosts.clone(),
            destinations: hosts,
            schedule: DrrSchedule::new(),
            ways: Ways::default(),
            census: Census::default(),
            quantum,
        }
    }

    /// The queue for packets of `key`.
    #[inline]
    pub(super) fn place(&mut self, key: &FlowKey) -> usize {
        let Some(tag) = self.tag(key) else {
            return 0;
        };
        let own = slot(tag);
        if self.tags[own] == tag && self.all[own].set != Set::None {
            return own;
        }
        self.seek(tag, key)
    }

    /// What [`Flows::place`] would return, without taking the place.
    pub(super) fn place_of(&self, key: &FlowKey) -> usize {
        let Some(tag) = self.tag(key) else {
            return 0;
        };
        let own = slot(tag);
        let known = ways(own).find(|&at| self.tags[at] == tag);
        let free = || ways(own).find(|&at| self.all[at].set == Set::None);
        known.or_else(free).unwrap_or(own)
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
        if let Some(known) = ways(own).find(|&at| self.tags[at] == tag) {
            self.ways.hits += u64::from(known != own);
            newly = self.all[known].set == Set::None;
            place = known;
        } else if let Some(free) = ways(own).find(|&at| self.all[at].set == Set::None) {
            self.ways.misses += 1;
            place = free;
        } else {
            self.ways.collisions += 1;
            place = own;
            self.count_bulk(own, false);
        }
        self.tags[place] = tag;
        if newly {
            if self.mode.isolates_sources() {
                let tag = self.source_tag(key);
                self.all[place].source = self.sources.place(tag);
            }
            if self.mode.isolates_destinations() {
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
    fn count_bulk(&mut self, at: usize, more: bool) {
        let flow = &self.all[at];
        if flow.set != Set::Bulk {
            return;
        }
        if self.mode.isolates_sources() {
            self.sources.count(flow.source, more);
        }
        if self.mode.isolates_destinations() {
            self.destinations.count(flow.destination, more);
        }
    }

    /// Moves a flow to another stage of its life.
    #[inline]
    pub(super) fn advance(&mut self, at: usize, set: Set) {
        self.count_bulk(at, false);
        let was = std::mem::replace(&mut self.all[at].set, set);
        if let Some(count) = self.census.of(was) {
            *count -= 1;
        }
        if let Some(count) = self.census.of(set) {
            *count += 1;
        }
        self.count_bulk(at, true);
    }

    /// A packet was put into a flow: if the flow was idle, it begins.
    #[inline]
    pub(super) fn wake(&mut self, at: usize, rng: &mut Rng) {
        match self.all[at].set {
            Set::None | Set::Decaying => {
                self.schedule.append(Round::New, at);
                self.advance(at, Set::Sparse);
                self.all[at].deficit = self.turn(at, rng);
            }
            Set::SparseWait => self.advance(at, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// A turn is used up: the flow waits for the next.
    #[inline]
    pub(super) fn next_turn(&mut self, at: usize, rng: &mut Rng) {
        if self.all[at].set == Set::Sparse {
            let waits = self.all[at].list.packets() > 0;
            self.advance(at, if waits { Set::Bulk } else { Set::SparseWait });
        }
        self.all[at].deficit += self.turn(at, rng);
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
        self.census.sparse + self.census.bulk > 0
    }

    /// The bytes of a turn: the quantum, divided by the bulk flows of the busier host; the random
    /// part makes up for what rounding takes.
    #[inline]
    fn turn(&self, at: usize, rng: &mut Rng) -> i64 {
        let flow = &self.all[at];
        let mut load = 1;
        if self.mode.isolates_sources() {
            load = load.max(self.sources.bulk[usize::from(flow.source)]);
        }
        if self.mode.isolates_destinations() {
            load = load.max(self.destinations.bulk[usize::from(flow.destination)]);
        }
        let share = SHARES[usize::from(load).min(FLOWS)];
        i64::from((self.quantum * share + (rng.next_u32() >> 16)) >> 16)
    }
}

impl Census {
    fn of(&mut self, set: Set) -> Option<&mut u32> {
        match set {
            Set::None => None,
            Set::Sparse | Set::SparseWait => Some(&mut self.sparse),
            Set::Bulk => Some(&mut self.bulk),
            Set::Decaying => Some(&mut self.decaying),
        }
    }
}

impl Hosts {
    /// The place of the host with this tag: its own, one that no bulk flow holds, or one to share.
    fn place(&mut self, tag: u32) -> u16 {
        let own = slot(tag);
        let known = ways(own).find(|&at| self.tags[at] == tag);
        let free = || ways(own).find(|&at| self.bulk[at] == 0);
        let place = known.or_else(free).unwrap_or(own);
        self.tags[place] = tag;
        u16::try_from(place).unwrap_or_default()
    }

    #[inline]
    fn count(&mut self, host: u16, more: bool) {
        let bulk = &mut self.bulk[usize::from(host)];
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

/// The places of its set, its own first.
fn ways(own: usize) -> impl Iterator<Item = usize> {
    let set = own - own % WAYS;
    (0..WAYS).map(move |way| set + (own + way) % WAYS)
}
