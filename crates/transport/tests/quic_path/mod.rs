//! A scripted path for datagrams of any kind, and a QUIC connection over it.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(missing_docs, reason = "the fields are what they are called")]

pub(crate) mod connection;

use std::collections::VecDeque;
use std::ops::Range;

use sojourn_net::{Bytes, Duration, Instant, Rate, Rng};

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum To {
    Server,
    Client,
}

/// One direction; probabilities are in thousandths.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub rate: Option<Rate>,
    /// Packets that may wait or be sent, if there is a rate.
    pub limit: usize,
    pub delay: Duration,
    /// Each packet is delayed by up to this, independently.
    pub jitter: Duration,
    pub loss: u64,
    pub duplication: u64,
    pub marking: u64,
    /// Datagrams with these numbers, from 0, are lost.
    pub drop: Vec<Range<u32>>,
    /// All datagrams sent in this time are lost.
    pub dark: Option<Range<Instant>>,
}

impl Way {
    pub(crate) fn of_delay(delay: Duration) -> Self {
        Self {
            rate: None,
            limit: usize::MAX,
            delay,
            jitter: Duration::ZERO,
            loss: 0,
            duplication: 0,
            marking: 0,
            drop: Vec::new(),
            dark: None,
        }
    }
}

/// Bytes that Ethernet, IP and UDP add.
const HEADERS: u64 = 42;

/// Both directions.
#[derive(Debug)]
pub(crate) struct Path {
    ways: [Way; 2],
    rng: Rng,
    /// When the packets in each queue leave it.
    queues: [VecDeque<Instant>; 2],
    pub sent: [u32; 2],
    pub dropped: [u32; 2],
}

impl Path {
    pub(crate) fn new(to_server: Way, to_client: Way, seed: u64) -> Self {
        Self {
            ways: [to_server, to_client],
            rng: Rng::new(seed),
            queues: Default::default(),
            sent: [0; 2],
            dropped: [0; 2],
        }
    }

    /// When a datagram arrives, how often, and whether with a mark.
    pub(crate) fn carry(
        &mut self,
        now: Instant,
        to: To,
        payload: u64,
    ) -> ([Option<Instant>; 2], bool) {
        let n = to as usize;
        let way = &self.ways[n];
        let number = self.sent[n];
        self.sent[n] += 1;
        let queue = &mut self.queues[n];
        while queue.front().is_some_and(|&leaves| leaves <= now) {
            queue.pop_front();
        }
        let lost = way.drop.iter().any(|drop| drop.contains(&number))
            || way.dark.as_ref().is_some_and(|dark| dark.contains(&now))
            || self.rng.below(1_000) < way.loss
            || way.rate.is_some() && queue.len() >= way.limit;
        if lost {
            self.dropped[n] += 1;
            return ([None, None], false);
        }
        let mut leaves = now;
        if let Some(rate) = way.rate {
            let begins = queue.back().copied().unwrap_or(now);
            leaves = begins + rate.serialise(Bytes(payload + HEADERS));
            queue.push_back(leaves);
        }
        let twice = self.rng.below(1_000) < way.duplication;
        let marked = self.rng.below(1_000) < way.marking;
        let mut arrival = || {
            let jitter = self.rng.below(way.jitter.as_nanos() + 1);
            leaves + way.delay + Duration::from_nanos(jitter)
        };
        let first = arrival();
        ([Some(first), twice.then(arrival)], marked)
    }
}
