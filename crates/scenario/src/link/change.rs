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
use crate::value::{Node, Value, time_text};

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

/// The key of the time.
const AT: &str = "at";

/// The rule that a change without effect breaks.
const NOTHING: &str =
    "no change; expected rate = \"5mbit\", delay, loss, duplicate, jitter or qdisc";

/// The change at `at` that a controller describes in JSON: as in `changes`, without a time. The link has the `rate` and
/// the queue `before`; a value that is in force already is no change, and `None` is no change at all. Also returns the
/// keys that change as a line of TOML.
///
/// # Errors
/// The first thing that is wrong, and at which key.
pub fn controlled_change(
    json: &str,
    at: Duration,
    (rate, before): (Rate, &QdiscSpec),
) -> Result<Option<(plan::Change, String)>, ScenarioError> {
    let mut change = Change::controlled(Node::from_json(json)?, at)?;
    let mut config = change.config(before).map_err(|error| {
        let below = if error.path.is_empty() { "" } else { "." };
        ScenarioError {
            path: format!("qdisc{below}{}", error.path),
            ..error
        }
    })?;
    if config.rate == Some(rate) {
        (change.rate, config.rate) = (None, None);
    }
    if let Some(QueueChange::Parameters(spec)) = config.queue.as_deref()
        && spec == before
    {
        (change.qdisc, config.queue) = (None, None);
    }
    Ok((!change.is_empty()).then(|| (config, change.text())))
}

/// The keys that a change sets, without its time, as canonical JSON: the inverse of [`controlled_change`]. A queue has all
/// of its parameters.
pub fn changed_keys(change: &plan::Change) -> String {
    let wire = &change.wire;
    let change = Change {
        at: change.at,
        rate: change.rate,
        delay: wire.delay,
        loss: wire.loss.map(|loss| NewLoss(Loss::of(loss))),
        duplicate: wire.duplicate.map(Percent::of),
        jitter: wire.jitter.map(Jitter::of),
        qdisc: (change.queue.as_ref()).map(|queue| NewQueue(queue.spec().to_string().into())),
    };
    crate::text::json(&Value::Table(change.keys()).into())
}

/// A plan of a run with the changes that its controller made: pairs of time and number of the link, with the line of
/// TOML that [`controlled_change`] returned.
pub fn with_controlled_changes<'c>(
    plan: &plan::Plan,
    changes: impl IntoIterator<Item = (Duration, usize, &'c str)>,
) -> plan::Plan {
    let mut plan = plan.clone();
    for (at, link, text) in changes {
        let link = &mut plan.config.links[link];
        let before = link.queues().last().unwrap_or(&link.qdisc).clone();
        if let Some(change) = recorded(text, at, &before) {
            let place = link.changes.partition_point(|other| other.at <= at);
            link.changes.insert(place, change);
        }
    }
    plan
}

/// The change that a line of TOML describes.
fn recorded(text: &str, at: Duration, before: &QdiscSpec) -> Option<plan::Change> {
    let mut root = Node::from_toml(&format!("change = {text}")).ok()?;
    let Value::Table(keys) = &mut root.value else {
        return None;
    };
    let change = Change::controlled(keys.remove("change")?, at).ok()?;
    change.config(before).ok()
}

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

    /// The change at `at` that a table without a time describes.
    fn controlled(mut node: Node, at: Duration) -> Result<Self, ScenarioError> {
        if let Value::Table(keys) = &mut node.value
            && let Some(given) = keys.insert(AT.to_owned(), time_text(at).into())
        {
            let rule = format!(
                "{} cannot be set; changes by a controller take effect at once",
                given.shown()
            );
            return Err(ScenarioError::new(AT, rule));
        }
        let change: Self = KeyValue::read(&Place::root(&node))?;
        if change.is_empty() {
            return Err(ScenarioError::new("", NOTHING));
        }
        Ok(change)
    }

    /// The keys in canonical form without the time, on one line of TOML.
    fn text(&self) -> String {
        crate::text::inline_toml(&Value::Table(self.keys()).into())
    }

    /// The keys in canonical form without the time.
    fn keys(&self) -> crate::value::Table {
        let mut keys = crate::value::Table::new();
        Keys::write(self, &mut keys);
        keys.remove(AT);
        keys
    }

    /// Whether it changes anything.
    fn is_empty(&self) -> bool {
        self.keys().is_empty()
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
                return Err(place.fail(NOTHING));
            }
            changes.push(change);
        }
        Ok(Self(changes))
    }

    fn write(&self) -> Option<Node> {
        Some(written(&self.0))
    }
}
