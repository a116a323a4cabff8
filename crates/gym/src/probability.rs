//! A FIFO whose drop probability is set from outside.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sojourn_net::{Instant, Packet as _, Rng, Transport};
use sojourn_qdisc::parameters::Scalar;
use sojourn_qdisc::{
    DropReason, Leaving, LinkFacts, MarkReason, Observer, Origin, Peek, QueueClass, Ticket,
    TicketQueue,
};

/// The probability of one queue, set between the steps of its simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probability(Arc<AtomicU64>);

impl Probability {
    pub(crate) fn set(&self, probability: f64) {
        self.0.store(probability.to_bits(), Ordering::Relaxed);
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Makes queues with this limit in packets that share a probability.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) limit: usize,
    pub(crate) probability: Probability,
}

impl QueueClass for Class {
    fn name(&self) -> &'static str {
        "drop_probability"
    }

    fn origin(&self) -> Origin {
        Origin::default()
    }

    fn build(&self, _values: &[Scalar], _link: &LinkFacts, rng: Rng) -> Box<dyn TicketQueue> {
        Box::new(Fifo {
            tickets: VecDeque::new(),
            limit: self.limit,
            probability: self.probability.clone(),
            rng,
        })
    }
}

/// A FIFO that marks arrivals with the probability, or drops those that are not ECN-capable.
#[derive(Clone, Debug)]
struct Fifo {
    tickets: VecDeque<Ticket>,
    limit: usize,
    probability: Probability,
    rng: Rng,
}

impl TicketQueue for Fifo {
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: &Ticket,
        _headers: Option<&Transport>,
        obs: &mut dyn Observer<Ticket>,
    ) {
        let mut ticket = *ticket;
        if self.tickets.len() >= self.limit {
            return obs.on_drop(now, ticket, DropReason::Overlimit);
        }
        if self.rng.uniform() < self.probability.get() {
            if !ticket.mark_ce() {
                return obs.on_drop(now, ticket, DropReason::Aqm);
            }
            obs.on_mark(now, &ticket, MarkReason::Aqm);
        }
        self.tickets.push_back(ticket);
    }

    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<Ticket>) -> Option<Leaving> {
        self.tickets.pop_front().map(|ticket| ticket.leaving())
    }

    fn boxed_clone(&self) -> Box<dyn TicketQueue> {
        Box::new(self.clone())
    }

    fn peek(&self) -> Peek {
        Peek::from(self.tickets.front().map(Ticket::size))
    }
}
