//! Changes of a link during the run: `changes`.

use sojourn_net::{Duration, Rate};
use sojourn_qdisc::{QdiscSpec, QueueChange};

use super::line::{Deviation, Jitter, Loss};
use crate::declare::{KeyValue, Keys, Percent, keys, tables, written};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::Place;
use crate::plan::{self, WireChange};
use crate::specification::changed_qdisc;
use crate::value::Node;

keys! {
    /// A change of a link during the run.
    #[derive(Clone, Debug)]
    pub(crate) struct Change {
        /// Time of the change.
        at: Duration = Form::POSITIVE_TIME, required "\"10s\"";
        /// New rate.
        rate: Option<Rate> = Form::RATE;
        /// New delay.
        delay: Option<Duration> = Form::TIME;
        /// New loss: a share of packets or a Gilbert-Elliott model; "0%" for none.
        loss: Option<NewLoss> = Form::Either(&[Form::PERCENT, Form::Table(super::line::Chain::KEYS)]);
        /// New share of packets duplicated on the wire.
        duplicate: Option<Percent> = Form::PERCENT;
        /// New jitter; "0s" for none.
        jitter: Option<Jitter> = Form::Either(&[Form::TIME, Form::Table(Deviation::KEYS)]);
        /// Queue of the same kind: parameters that change; of another kind: the queue that replaces the old one.
        qdisc: Option<NewQueue> = Form::Def("qdisc_change");
    }
}

tables! { Change }

/// A loss that is written even if it is zero, since it ends another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewLoss(Loss);

impl KeyValue for NewLoss {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        Loss::read(place).map(Self)
    }

    fn write(&self) -> Option<Node> {
        match &self.0 {
            Loss::Random(share) => share.write(),
            bursts @ Loss::Bursts(_) => bursts.write(),
        }
    }
}

/// A queue or parameters of one, as they were given: what they mean depends on the queue before.
#[derive(Clone, Debug)]
pub(crate) struct NewQueue(Node);

impl KeyValue for NewQueue {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        Ok(Self(place.node.clone()))
    }

    fn write(&self) -> Option<Node> {
        Some(self.0.value.clone().into())
    }
}

impl Change {
    /// The change in a plan of a link whose queue is `before`.
    fn config(&self, before: &QdiscSpec) -> Result<plan::Change, ScenarioError> {
        let change = |NewQueue(node): &NewQueue| {
            let place = Place::root(node);
            changed_qdisc(before, &place).map(Box::new)
        };
        Ok(plan::Change {
            at: self.at,
            rate: self.rate,
            queue: self.qdisc.as_ref().map(change).transpose()?,
            wire: WireChange {
                delay: self.delay,
                loss: self.loss.map(|NewLoss(loss)| loss.config()),
                duplicate: self.duplicate.map(|Percent(share)| share / 100.0),
                jitter: self.jitter.map(Jitter::config),
            },
        })
    }

    /// Whether it changes anything.
    fn is_empty(&self) -> bool {
        let mut keys = crate::value::Table::new();
        Keys::write(self, &mut keys);
        keys.len() == 1
    }
}

/// Changes, each after the one before.
#[derive(Clone, Debug)]
pub(crate) struct Changes(Vec<Change>);

impl Changes {
    /// The changes in a plan of a link that begins with the queue `first`; an error is at the index of its change.
    pub(super) fn configs(
        &self,
        first: &QdiscSpec,
    ) -> Result<Vec<plan::Change>, (usize, ScenarioError)> {
        let mut queue = first;
        let mut all: Vec<plan::Change> = Vec::with_capacity(self.0.len());
        for (n, change) in self.0.iter().enumerate() {
            let config = change.config(queue).map_err(|error| (n, error))?;
            all.push(config);
            let last = all.iter().rev().find_map(|change| change.queue.as_deref());
            queue = last.map_or(first, QueueChange::spec);
        }
        Ok(all)
    }

    /// Fails where the queue `first`, or one that replaced it, cannot change; `place` is that of the changes.
    pub(super) fn check(&self, place: &Place<'_>, first: &QdiscSpec) -> Result<(), ScenarioError> {
        let Err((n, error)) = self.configs(first) else {
            return Ok(());
        };
        let change = &place.list()?[n];
        let qdisc = change.fields(Change::KEYS)?.need("qdisc", "\"codel\"")?;
        let below = if error.path.is_empty() { "" } else { "." };
        Err(ScenarioError {
            path: format!("{}{below}{}", qdisc.path, error.path),
            line: qdisc.node.line,
            ..error
        })
    }
}

impl KeyValue for Changes {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let mut before = Duration::ZERO;
        let mut changes = Vec::new();
        let places = place.list()?;
        if places.is_empty() {
            return Err(place.fail("empty; expected at least one change (or omit the key)"));
        }
        for place in places {
            let change: Change = KeyValue::read(&place)?;
            if change.at <= before {
                let at = place.fields(Change::KEYS)?.need("at", "\"10s\"")?;
                return Err(at.fail(format!(
                    "{} is not after the previous change; expected ascending times",
                    at.node.shown()
                )));
            }
            before = change.at;
            if change.is_empty() {
                let rule =
                    "no change; expected rate = \"5mbit\", delay, loss, duplicate, jitter or qdisc";
                return Err(place.fail(rule));
            }
            changes.push(change);
        }
        Ok(Self(changes))
    }

    fn write(&self) -> Option<Node> {
        Some(written(&self.0))
    }
}
