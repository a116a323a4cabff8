//! The tree: what each class may do, which classes are served, and when that changes.
//!
//! A class is in a *row* of its level, one for each priority, while it may send and has packets below it. A class that
//! may borrow is in the *feed* of its parent instead. Each row and feed has a *cursor*, the class whose turn it is.
//! A class that may not send has an event at the time at which its mode changes by then.

use std::collections::BTreeSet;

use super::params::{HtbClass, HtbParams, LEVELS, Parents};
use super::rate::{Pace, bytes_per_sec, depth};
use crate::parameters::Leaf;

/// Priorities (`TC_HTB_NUMPRIO`).
pub(super) const PRIORITIES: usize = 8;
/// Credit is not counted for a longer time (`htb_class.mbuffer`): 1 minute.
const LONGEST: i64 = 60_000_000_000;
/// The bounds of a quantum that follows from the rate.
const QUANTUM: (u64, u64) = (1_000, 200_000);

/// What a class may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It has reached its ceil.
    CannotSend,
    /// It has reached its rate.
    MayBorrow,
    /// It is within its rate.
    CanSend,
}

/// A class.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) parent: Option<usize>,
    pub(super) level: usize,
    /// The number of its queue; `None`: it has classes below it.
    pub(super) leaf: Option<usize>,
    limits: Limits,
    pub(super) tokens: i64,
    pub(super) ctokens: i64,
    /// When the tokens were counted last, in nanoseconds.
    checked: u64,
    mode: Mode,
    /// The event at which the mode may change.
    event: Option<Event>,
    /// The priorities for which it, or a class below it, has packets to send.
    active: u8,
    /// What it may still send in its turn at each level.
    deficit: [i64; LEVELS],
    /// The classes below it that borrow from it, by priority; empty in a leaf.
    feeds: Box<[Turns]>,
    pub(super) counts: Counts,
}

/// What `tc class change` sets.
#[derive(Clone, Debug)]
struct Limits {
    prio: usize,
    quantum: i64,
    rate: Pace,
    ceil: Pace,
    /// The depths of the buckets, in nanoseconds.
    buffer: i64,
    cbuffer: i64,
}

impl Limits {
    fn of<L: Leaf>(class: &HtbClass<L>, r2q: u32) -> Self {
        let ceil = class.ceil.or(class.rate);
        let [burst, cburst] = class.bursts();
        let derived = bytes_per_sec(class.rate) / u64::from(r2q.max(1));
        let quantum = class
            .quantum
            .map_or_else(|| derived.clamp(QUANTUM.0, QUANTUM.1), |bytes| bytes.0);
        Self {
            prio: usize::from(class.prio).min(PRIORITIES - 1),
            quantum: i64::try_from(quantum).unwrap_or(i64::MAX),
            rate: Pace::of(class.rate, class),
            ceil: Pace::of(ceil, class),
            buffer: depth(burst, class.rate),
            cbuffer: depth(cburst, ceil),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    /// Packets sent within its own rate.
    pub(super) lends: u64,
    /// Packets sent with the credit of a class above.
    pub(super) borrows: u64,
}

/// When, in which order, and the place of the class.
type Event = (u64, u64, usize);

/// Classes of one priority in the order of their places, and whose turn it is.
#[derive(Clone, Debug, Default)]
struct Turns {
    members: Vec<usize>,
    cursor: Option<usize>,
    /// The class at the cursor when it left: the next one follows it.
    left: Option<usize>,
}

impl Turns {
    fn insert(&mut self, class: usize) {
        if let Err(at) = self.members.binary_search(&class) {
            self.members.insert(at, class);
        }
    }

    fn remove(&mut self, class: usize) {
        if let Ok(at) = self.members.binary_search(&class) {
            self.members.remove(at);
        }
    }

    /// The first class at or after `class`.
    fn at_or_after(&self, class: usize) -> Option<usize> {
        let at = self.members.partition_point(|&member| member < class);
        self.members.get(at).copied()
    }

    fn advance(&mut self) {
        self.cursor = self.cursor.and_then(|class| self.at_or_after(class + 1));
    }
}

#[derive(Clone, Debug, Default)]
struct Level {
    rows: [Turns; PRIORITIES],
    /// The priorities whose row has classes.
    occupied: u8,
    events: BTreeSet<Event>,
    /// When events are looked at next.
    next_event: u64,
}

/// All classes.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    levels: [Level; LEVELS],
    /// The time of the last dequeue, in nanoseconds.
    now: u64,
    /// Events so far.
    events: u64,
    /// How often a class has reached its ceil.
    pub(super) overlimits: u64,
}

impl Tree {
    /// The classes of `params`, full of tokens.
    pub(super) fn new<L: Leaf>(params: &HtbParams<L>, parents: &Parents) -> Self {
        let mut has_children = vec![false; parents.len()];
        for &parent in parents.iter().flatten() {
            has_children[parent] = true;
        }
        let mut leaves = 0..;
        let mut nodes: Vec<Node> = Vec::with_capacity(parents.len());
        for ((class, &parent), &is_inner) in params.classes.0.iter().zip(parents).zip(&has_children)
        {
            let level = match (is_inner, parent) {
                (false, _) => 0,
                (true, None) => LEVELS - 1,
                (true, Some(parent)) => nodes[parent].level - 1,
            };
            let limits = Limits::of(class, params.r2q);
            nodes.push(Node {
                parent,
                level,
                leaf: if is_inner { None } else { leaves.next() },
                tokens: limits.buffer,
                ctokens: limits.cbuffer,
                limits,
                checked: 0,
                mode: Mode::CanSend,
                event: None,
                active: 0,
                deficit: [0; LEVELS],
                feeds: if is_inner {
                    vec![Turns::default(); PRIORITIES].into()
                } else {
                    Box::default()
                },
                counts: Counts::default(),
            });
        }
        Self {
            nodes,
            levels: std::array::from_fn(|_| Level::default()),
            now: 0,
            events: 0,
            overlimits: 0,
        }
    }

    /// Gives the same classes the limits of `params`. As in Linux, tokens, modes and turns stay: a class that waits
    /// does so until the time that its former rate gave, and an active one has its former priority.
    pub(super) fn change<L: Leaf>(&mut self, params: &HtbParams<L>) {
        for (node, class) in self.nodes.iter_mut().zip(&params.classes.0) {
            node.limits = Limits::of(class, params.r2q);
        }
    }

    /// A leaf has packets.
    #[inline]
    pub(super) fn activate(&mut self, leaf: usize) {
        let node = &mut self.nodes[leaf];
        if node.active == 0 {
            node.active = 1 << node.limits.prio;
            self.join(leaf);
        }
    }

    /// A leaf has no packets any more.
    pub(super) fn deactivate(&mut self, leaf: usize) {
        if self.nodes[leaf].active != 0 {
            self.leave(leaf);
            self.nodes[leaf].active = 0;
        }
    }

    /// Adds a class that may send or borrow to its row or feed, and classes above it as far as they borrow.
    fn join(&mut self, class: usize) {
        let mut at = class;
        let mut prios = self.nodes[at].active;
        while let (Mode::MayBorrow, Some(parent)) = (self.nodes[at].mode, self.nodes[at].parent)
            && prios != 0
        {
            let above = &mut self.nodes[parent];
            let mut first = prios;
            for prio in bits(prios) {
                let feed = &mut above.feeds[prio];
                if !feed.members.is_empty() {
                    // The parent has joined for this priority already.
                    first &= !(1 << prio);
                }
                feed.insert(at);
            }
            prios = first;
            above.active |= prios;
            at = parent;
        }
        if self.nodes[at].mode == Mode::CanSend {
            let level = &mut self.levels[self.nodes[at].level];
            level.occupied |= prios;
            for prio in bits(prios) {
                level.rows[prio].insert(at);
            }
        }
    }

    /// Removes a class from where [`Tree::join`] put it.
    fn leave(&mut self, class: usize) {
        let mut at = class;
        let mut prios = self.nodes[at].active;
        while let (Mode::MayBorrow, Some(parent)) = (self.nodes[at].mode, self.nodes[at].parent)
            && prios != 0
        {
            let above = &mut self.nodes[parent];
            let mut last = 0;
            for prio in bits(prios) {
                let feed = &mut above.feeds[prio];
                if feed.cursor == Some(at) {
                    feed.left = Some(at);
                    feed.cursor = None;
                }
                feed.remove(at);
                if feed.members.is_empty() {
                    last |= 1 << prio;
                }
            }
            prios = last;
            above.active &= !prios;
            at = parent;
        }
        if self.nodes[at].mode == Mode::CanSend {
            let level = &mut self.levels[self.nodes[at].level];
            for prio in bits(prios) {
                let row = &mut level.rows[prio];
                if row.cursor == Some(at) {
                    row.advance();
                }
                row.remove(at);
                if row.members.is_empty() {
                    level.occupied &= !(1 << prio);
                }
            }
        }
    }

    /// The mode of a class whose tokens have grown for `grown`, and how long it lasts at least.
    fn mode_after(&self, class: usize, grown: i64) -> (Mode, i64) {
        let node = &self.nodes[class];
        let ctokens = node.ctokens.saturating_add(grown);
        if ctokens < 0 {
            return (Mode::CannotSend, -ctokens);
        }
        let tokens = node.tokens.saturating_add(grown);
        if tokens >= 0 {
            return (Mode::CanSend, grown);
        }
        (Mode::MayBorrow, -tokens)
    }

    /// Brings the mode of a class up to date; returns how long it lasts at least.
    fn update_mode(&mut self, class: usize, grown: i64) -> i64 {
        let (mode, lasts) = self.mode_after(class, grown);
        let node = &mut self.nodes[class];
        if mode == node.mode {
            return lasts;
        }
        self.overlimits += u64::from(mode == Mode::CannotSend);
        if node.active == 0 {
            node.mode = mode;
            return lasts;
        }
        if node.mode != Mode::CannotSend {
            self.leave(class);
        }
        self.nodes[class].mode = mode;
        if mode != Mode::CannotSend {
            self.join(class);
        }
        lasts
    }

    /// Sets the event of a class.
    fn wait(&mut self, class: usize, time: i64) {
        let at = self.now + u64::try_from(time).unwrap_or(0).max(1);
        let event = (at, self.events, class);
        self.events += 1;
        let level = &mut self.levels[self.nodes[class].level];
        level.next_event = level.next_event.min(at);
        level.events.insert(event);
        self.nodes[class].event = Some(event);
    }

    /// How much time has passed since the tokens of a class were counted.
    fn grown(&self, class: usize) -> i64 {
        let passed = self.now.saturating_sub(self.nodes[class].checked);
        i64::try_from(passed).unwrap_or(LONGEST).min(LONGEST)
    }

    /// Charges a leaf and the classes above it for a packet that was sent with the credit of `level`.
    pub(super) fn charge(&mut self, leaf: usize, level: usize, bytes: u64) {
        let mut next = Some(leaf);
        while let Some(class) = next {
            let grown = self.grown(class);
            let now = self.now;
            let node = &mut self.nodes[class];
            if node.level >= level {
                node.counts.lends += u64::from(node.level == level);
                node.tokens = spent(
                    node.tokens,
                    grown,
                    node.limits.buffer,
                    node.limits.rate.nanos(bytes),
                );
            } else {
                node.counts.borrows += 1;
                // The time is counted now, so that the tokens grow; they are not capped.
                node.tokens += grown;
            }
            node.ctokens = spent(
                node.ctokens,
                grown,
                node.limits.cbuffer,
                node.limits.ceil.nanos(bytes),
            );
            node.checked = now;
            node.counts.bytes += bytes;
            node.counts.packets += 1;
            next = node.parent;
            let before = node.mode;
            let lasts = self.update_mode(class, 0);
            let mode = self.nodes[class].mode;
            if mode == before {
                continue;
            }
            if let Some(event) = self.nodes[class].event.take() {
                self.levels[self.nodes[class].level].events.remove(&event);
            }
            if mode != Mode::CanSend {
                self.wait(class, lasts);
            }
        }
    }

    /// A dequeue begins.
    pub(super) const fn begin(&mut self, now: u64) {
        self.now = now;
    }

    /// Handles the events of a level that are due; returns when to look again.
    pub(super) fn run_events(&mut self, level: usize) -> u64 {
        const IDLE: u64 = 1_000_000_000;
        if self.now < self.levels[level].next_event {
            return self.levels[level].next_event;
        }
        let next = loop {
            let Some(&event) = self.levels[level].events.first() else {
                break self.now + IDLE;
            };
            let (at, _, class) = event;
            if at > self.now {
                break at;
            }
            self.levels[level].events.remove(&event);
            self.nodes[class].event = None;
            let lasts = self.update_mode(class, self.grown(class));
            if self.nodes[class].mode != Mode::CanSend {
                self.wait(class, lasts);
            }
        };
        self.levels[level].next_event = next;
        next
    }

    /// The priorities for which a class of `level` may send.
    #[inline]
    pub(super) fn occupied(&self, level: usize) -> impl Iterator<Item = usize> + use<> {
        bits(self.levels[level].occupied)
    }

    /// Whether a class of `level` may send with this priority.
    pub(super) fn is_occupied(&self, level: usize, prio: usize) -> bool {
        self.levels[level].occupied & 1 << prio != 0
    }

    /// The leaf whose turn it is, if one may send with the credit of `level` at this priority.
    pub(super) fn lookup(&mut self, level: usize, prio: usize) -> Option<usize> {
        // The classes with the feeds on the way from the row to the leaf.
        let mut way = [0; LEVELS];
        let mut depth = 0;
        loop {
            let turns = match depth {
                0 => &mut self.levels[level].rows[prio],
                _ => &mut self.nodes[way[depth - 1]].feeds[prio],
            };
            if let (None, Some(left)) = (turns.cursor, turns.left) {
                turns.cursor = turns.at_or_after(left);
            }
            turns.left = None;
            let Some(class) = turns.cursor else {
                // The end of the round: begin again, and let the class above go on.
                turns.cursor = turns.members.first().copied();
                turns.cursor?;
                if depth > 0 {
                    depth -= 1;
                    match depth {
                        0 => self.levels[level].rows[prio].advance(),
                        _ => self.nodes[way[depth - 1]].feeds[prio].advance(),
                    }
                }
                continue;
            };
            if self.nodes[class].level == 0 {
                return Some(class);
            }
            way[depth] = class;
            depth += 1;
        }
    }

    /// Ends the turn of a leaf among those of its feed, or of the row of the leaves.
    pub(super) fn end_turn(&mut self, leaf: usize, level: usize, prio: usize) {
        match self.nodes[leaf].parent.filter(|_| level > 0) {
            Some(parent) => self.nodes[parent].feeds[prio].advance(),
            None => self.levels[0].rows[prio].advance(),
        }
    }

    /// A leaf has sent a packet with the credit of `level`.
    pub(super) fn spend(&mut self, leaf: usize, level: usize, prio: usize, bytes: u64) {
        let node = &mut self.nodes[leaf];
        let deficit = &mut node.deficit[level];
        *deficit -= i64::try_from(bytes).unwrap_or(i64::MAX);
        if *deficit < 0 {
            *deficit += node.limits.quantum;
            self.end_turn(leaf, level, prio);
        }
    }
}

/// Tokens that have grown, up to the size of the bucket, less the cost of a packet.
fn spent(tokens: i64, grown: i64, bucket: i64, cost: i64) -> i64 {
    let left = tokens
        .saturating_add(grown)
        .min(bucket)
        .saturating_sub(cost);
    if left <= -LONGEST { 1 - LONGEST } else { left }
}

/// The numbers of the bits that are set, lowest first.
fn bits(mut mask: u8) -> impl Iterator<Item = usize> + use<> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            bit
        })
    })
}
