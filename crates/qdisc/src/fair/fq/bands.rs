//! The flows of Linux 6.12 in three bands by priority, and the fast path.
//!
//! Each band has its own new and old flows, and the bands take turns by weight in bytes. A packet
//! that finds no flow with packets joins no flow and is sent first: the fast path, for up to
//! [`FAST_PATH`] packets at a time.

use sojourn_net::{Bytes, Duration, Instant, Packet, Rng};

use super::scheduler::{Flow, Pace, Place, Throttled, Turns, is_pure_ack, signed};
use crate::contract::{Backlog, Statistic};
use crate::parts::pool::{List, Pool};
use crate::parts::priority::{self, CONTROL, PRIOMAP};
use crate::parts::round::{FlowId, Round};

pub(super) const BANDS: u8 = 3;
/// Bytes that each band sends per turn, unless set.
pub(super) const WEIGHTS: [u32; 3] = [9 << 16, 3 << 16, 1 << 16];
/// Packets that may wait in the fast path.
pub(crate) const FAST_PATH: u32 = 8;

/// Parameters of the bands and their flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandParams {
    /// Packets per band.
    pub(super) limit: usize,
    /// Packets per flow.
    pub(super) flow_limit: u32,
    pub(super) turns: Turns,
    /// Band of each priority.
    pub(super) priomap: Option<[u8; 16]>,
    /// Bytes that each band sends per turn.
    pub(super) weights: Option<[u32; 3]>,
}

/// The limit that a packet exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// That of the queue, or of its band.
    Queue,
    /// That of its flow.
    Flow,
}

/// Where an admitted packet waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Before all flows.
    FastPath,
    /// In its flow.
    Flow(FlowId),
}

#[derive(Clone, Debug)]
struct Band {
    new: Round,
    old: Round,
    /// What it may still send in its turn.
    credit: i64,
    weight: i64,
    /// Packets in flows, by their own band: their flow may still be in the lists of another.
    packets: usize,
    drops: u64,
}

/// The flows, their packets, and the turns of bands and flows.
#[derive(Clone, Debug)]
pub(super) struct BandScheduler<P> {
    limit: usize,
    flow_limit: u32,
    quantum: i64,
    refill_delay: Duration,
    mask: u32,
    perturbation: u64,
    /// Flows are paced, so packets do not overtake them.
    paces: bool,
    pacing: bool,
    /// The band of each DSCP, and that of the router's own packets.
    band_of: [u8; 64],
    control_band: u8,
    pool: Pool<P>,
    backlog: Backlog,
    flows: Vec<Flow>,
    /// The band of the newest packet of each flow, to whose lists the flow moves next.
    flow_bands: Vec<u8>,
    bands: [Band; 3],
    /// The band whose turn it is.
    serving: u8,
    /// Links of all lists; a flow is in at most one of them.
    links: Vec<FlowId>,
    throttled: Throttled,
    fast_path: List,
    /// Packets that took the fast path.
    fast: u64,
    /// Flows that were seen, and those of them that hold packets.
    seen: usize,
    active: usize,
}

impl<P: Packet> BandScheduler<P> {
    pub(super) fn new(params: &BandParams, paces: bool, mtu: Bytes, mut rng: Rng) -> Self {
        let turns = params.turns;
        let (quantum, initial_quantum) = turns.quanta(mtu);
        let number = turns.orphan_mask as usize + 1;
        // Typed parameters that bypassed the checks must not stop the queue.
        let priomap = params.priomap.unwrap_or(PRIOMAP);
        let priomap = priomap.map(|band| band.min(BANDS - 1));
        let weights = params.weights.unwrap_or(WEIGHTS);
        Self {
            limit: params.limit,
            flow_limit: params.flow_limit,
            quantum: signed(quantum),
            refill_delay: turns.refill_delay,
            mask: turns.orphan_mask,
            perturbation: rng.next_u64(),
            paces,
            pacing: turns.pacing,
            band_of: priority::bands(&priomap),
            control_band: priomap[CONTROL],
            pool: Pool::new(),
            backlog: Backlog::default(),
            flows: vec![Flow::new(signed(initial_quantum)); number],
            // A flow takes its first turn in the first band, whatever its priority.
            flow_bands: vec![0; number],
            bands: weights.map(|weight| Band {
                new: Round::EMPTY,
                old: Round::EMPTY,
                credit: 0,
                weight: i64::from(weight.max(1)),
                packets: 0,
                drops: 0,
            }),
            serving: 0,
            links: vec![FlowId::NONE; number],
            throttled: Throttled::default(),
            fast_path: List::EMPTY,
            fast: 0,
            seen: 0,
            active: 0,
        }
    }

    pub(super) fn statistics(&self) -> Vec<Statistic> {
        let [first, second, third] = &self.bands;
        vec![
            Statistic::count("flows", self.seen as u64),
            Statistic::count("inactive", (self.seen - self.active) as u64),
            Statistic::count("throttled", self.throttled.len()),
            Statistic::count("band0_pkts", first.packets as u64),
            Statistic::count("band1_pkts", second.packets as u64),
            Statistic::count("band2_pkts", third.packets as u64),
            Statistic::count("fastpath", self.fast),
            Statistic::count("band0_drops", first.drops),
            Statistic::count("band1_drops", second.drops),
            Statistic::count("band2_drops", third.drops),
        ]
    }

    #[inline]
    pub(super) const fn backlog(&self) -> Backlog {
        self.backlog
    }

    #[inline]
    fn classify(&self, pkt: &P) -> FlowId {
        FlowId::masked(pkt.flow().digest(self.perturbation), self.mask)
    }

    #[inline]
    fn band(&self, pkt: &P) -> u8 {
        if pkt.is_control() {
            self.control_band
        } else {
            self.band_of[usize::from(pkt.dscp().number())]
        }
    }

    /// Finds where `pkt` is to wait, unless its band or its flow is full.
    #[inline]
    pub(super) fn admit(&mut self, pkt: &P) -> Result<Way, Full> {
        let band = usize::from(self.band(pkt));
        let band = &mut self.bands[band];
        if band.packets >= self.limit {
            band.drops += 1;
            return Err(Full::Queue);
        }
        // No packet of a flow waits, so none is overtaken.
        if self.active == 0 && self.fast_path.packets() < FAST_PATH && !self.paces {
            return Ok(Way::FastPath);
        }
        let flow = self.classify(pkt);
        if self.flows[flow.index()].list.packets() >= self.flow_limit {
            return Err(Full::Flow);
        }
        Ok(Way::Flow(flow))
    }

    /// Appends `pkt` where [`BandScheduler::admit`] found that it is to wait.
    #[inline]
    pub(super) fn append(&mut self, way: Way, now: Instant, pkt: P) {
        self.backlog.add(pkt.size());
        let Way::Flow(id) = way else {
            self.fast += 1;
            return self.pool.push(&mut self.fast_path, now, pkt);
        };
        self.activate(id, now);
        let band = self.band(&pkt);
        self.flow_bands[id.index()] = band;
        self.bands[usize::from(band)].packets += 1;
        let flow = &mut self.flows[id.index()];
        self.active += usize::from(flow.list.packets() == 0);
        self.pool.push(&mut flow.list, now, pkt);
    }

    /// Makes a flow that is in no list a new one of the band that it was in last.
    fn activate(&mut self, id: FlowId, now: Instant) {
        let flow = &mut self.flows[id.index()];
        match flow.place {
            Place::Listed => return,
            Place::Unknown => self.seen += 1,
            Place::Detached(since) if now.since(since) > self.refill_delay => {
                flow.credit = flow.credit.max(self.quantum);
            }
            Place::Detached(_) => {}
        }
        flow.place = Place::Listed;
        let band = &mut self.bands[usize::from(self.flow_bands[id.index()])];
        band.new.push(&mut self.links, id);
    }

    /// Makes a flow the last of the old ones of its band.
    fn push_old(&mut self, id: FlowId) {
        let band = &mut self.bands[usize::from(self.flow_bands[id.index()])];
        band.old.push(&mut self.links, id);
    }

    /// As [`Scheduler::pace`](super::Scheduler::pace).
    pub(super) fn pace(&mut self, id: FlowId, pace: Pace, size: Bytes, now: Instant) {
        self.flows[id.index()].pace(pace, self.quantum, size, now);
    }

    /// When the next of the flows that wait apart is due, if no other can send.
    #[inline]
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = self.throttled.next_due()?;
        let listed = |band: &Band| band.new.first().or(band.old.first()).is_some();
        let others = self.fast_path.packets() > 0 || self.bands.iter().any(listed);
        (!others).then_some(due)
    }

    /// Gives the flows that are due a place again.
    #[inline]
    pub(super) fn release(&mut self, now: Instant) {
        while let Some(id) = self.throttled.pop_due(now) {
            self.push_old(id);
        }
    }

    /// The flow whose turn it is and whether it is a new one; goes on to the next band that has
    /// credit and a flow.
    #[inline]
    fn turn(&mut self) -> Option<(FlowId, bool)> {
        // Bands in a row that had credit but no flow.
        let mut idle = 0;
        loop {
            let band = &self.bands[usize::from(self.serving)];
            if band.credit > 0 {
                if let Some(id) = band.new.first() {
                    return Some((id, true));
                }
                if let Some(id) = band.old.first() {
                    return Some((id, false));
                }
            }
            if idle == BANDS {
                return None;
            }
            self.serving = (self.serving + 1) % BANDS;
            let band = &mut self.bands[usize::from(self.serving)];
            band.credit = (band.credit + band.weight).min(band.weight);
            // A packet larger than the weight takes the credit of more than one turn.
            idle = if band.credit > 0 { idle + 1 } else { 0 };
        }
    }

    /// The next packet to send, whose it is, unless it took the fast path, and since when it could
    /// leave: since it arrived, or since its flow was due.
    #[inline]
    pub(super) fn next(&mut self, now: Instant) -> Option<(Option<FlowId>, P, Instant)> {
        // The kernel leaves the lists alone then: flows that were found empty keep their places.
        if self.backlog.packets == 0 {
            return None;
        }
        if let Some((pkt, arrived)) = self.pool.pop(&mut self.fast_path) {
            self.backlog.remove(pkt.size());
            return Some((None, pkt, arrived));
        }
        self.release(now);
        // Each turn sends, takes a flow's place, moves one from new to old or refills one, so the
        // loop ends: credit grows with every visit.
        loop {
            let (id, is_new) = self.turn()?;
            let band = &mut self.bands[usize::from(self.serving)];
            let list = if is_new { &mut band.new } else { &mut band.old };
            let flow = &mut self.flows[id.index()];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop(&self.links);
                self.push_old(id);
                continue;
            }
            if flow.due > now
                && let Some((head, _)) = self.pool.oldest_mut(&flow.list)
                && !(self.pacing && is_pure_ack(head))
            {
                list.pop(&self.links);
                self.throttled.push(flow.due, id);
                continue;
            }
            let Some((pkt, arrived)) = self.pool.pop(&mut flow.list) else {
                list.pop(&self.links);
                // A new flow may not come back as new before the old have had their turn.
                if is_new {
                    self.push_old(id);
                } else {
                    flow.place = Place::Detached(now);
                }
                continue;
            };
            let size = pkt.size();
            let ready = arrived.max(flow.due);
            self.active -= usize::from(flow.list.packets() == 0);
            self.backlog.remove(size);
            band.credit -= signed(size);
            flow.credit -= signed(size);
            let own = usize::from(self.band(&pkt));
            self.bands[own].packets -= 1;
            return Some((Some(id), pkt, ready));
        }
    }
}

#[cfg(test)]
mod tests;
