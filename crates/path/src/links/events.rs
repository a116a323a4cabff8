//! The drops, marks and losses of a run, and what the packets met.

use sojourn_net::{Bytes, Duration, Instant};
use sojourn_qdisc::{Backlog, ClassId, Qdisc, Statistic};

use super::Carried;
use crate::records::{Signal, SignalRecord, SignalState};

/// The drops, marks and losses of a run, in their order.
///
/// A queue reports an event in the middle of a call, so [`Events::settle`] adds the backlog after the call.
#[derive(Debug, Default)]
pub struct Events {
    all: Vec<SignalRecord>,
    /// Events with their backlog.
    settled: usize,
    with_state: bool,
    /// What the next event depends on.
    numbers: Option<Vec<Statistic>>,
}

impl Events {
    /// None yet; `with_state`: they have the state of the queue.
    pub fn new(with_state: bool) -> Self {
        Self {
            with_state,
            ..Self::default()
        }
    }

    /// What the next event of this call depends on.
    pub fn on_decision(&mut self, numbers: &dyn Fn() -> Vec<Statistic>) {
        if self.with_state {
            self.numbers = Some(numbers());
        }
    }

    /// A queue drops or marks a packet of `flow` at `link`, or its wire loses it.
    pub fn note<P: Carried>(
        &mut self,
        at: Instant,
        (link, flow): (u32, u32),
        pkt: &P,
        signal: Signal,
        class: Option<ClassId>,
    ) {
        let mut event = SignalRecord {
            at,
            link,
            flow,
            signal,
            waited: Duration::ZERO,
            backlog: Backlog::default(),
            state: None,
        };
        if signal == Signal::Lost {
            self.settled += 1;
        } else {
            event.waited = at.saturating_since(pkt.stamp());
            event.backlog.add(pkt.size());
            let numbers = self.numbers.take().unwrap_or_default();
            event.state = (self.with_state).then(|| Box::new(SignalState { class, numbers }));
        }
        self.all.push(event);
    }

    /// Adds the backlog, and the state of decisions without numbers, to what `queue` reported in a call that has ended
    /// and that took a packet of the size `left` out, after all that it reported.
    pub fn settle<P: Carried>(&mut self, now: Instant, queue: &impl Qdisc<P>, left: Option<Bytes>) {
        self.numbers = None;
        if self.settled == self.all.len() {
            return;
        }
        let mut backlog = queue.backlog();
        if let Some(size) = left {
            backlog.add(size);
        }
        let mut state = None;
        for event in self.all[self.settled..].iter_mut().rev() {
            let own = event.backlog;
            event.backlog = backlog;
            if let Signal::Drop(_) = event.signal {
                backlog.packets += own.packets;
                backlog.bytes += own.bytes;
            } else {
                event.backlog.remove(own.bytes);
            }
            if let Some(SignalState { numbers, .. }) = event.state.as_deref_mut()
                && numbers.is_empty()
            {
                // Statistics of parts can be many: one of each class.
                let state = state.get_or_insert_with(|| {
                    let mut all = queue.statistics();
                    all.retain(|statistic| statistic.part.is_none());
                    all.extend(queue.state(now));
                    all
                });
                numbers.clone_from(state);
            }
        }
        self.settled = self.all.len();
    }

    /// Those so far.
    pub fn so_far(&self) -> &[SignalRecord] {
        &self.all
    }

    /// All of them.
    pub fn finish(self) -> Vec<SignalRecord> {
        self.all
    }
}
