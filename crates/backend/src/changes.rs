//! Changes of links that are asked for during a run: by its controller, or by the user of a live run.

use sojourn_net::{Duration, Instant, Rate};
use sojourn_qdisc::{QdiscSpec, QueueChange};
use sojourn_records::ChangeRecord;
use sojourn_scenario::controlled_change;
use sojourn_scenario::plan::{Change, Config, Controlled, LinkConfig, Request, WireChange};

/// The settings of the links of a run, and the changes that were asked for.
#[derive(Clone, Debug)]
pub struct LinkChanges {
    links: Vec<ChangedLink>,
    records: Vec<ChangeRecord>,
}

/// The settings of a link.
#[derive(Clone, Debug)]
struct ChangedLink {
    queue: QdiscSpec,
    /// `None`: a trace determines it.
    rate: Option<Rate>,
    /// Every key has a value.
    wire: WireChange,
    /// Changes of the link so far, those of the scenario included.
    changes: usize,
    /// The highest rate and the shortest delay that were checked.
    fastest: Rate,
    shortest: Duration,
}

impl LinkChanges {
    /// Of a run that begins.
    pub fn new(config: &Config) -> Self {
        Self {
            links: config.links.iter().map(ChangedLink::new).collect(),
            records: Vec::new(),
        }
    }

    /// A change is applied to a link; returns the number of changes before it.
    pub fn on_change(&mut self, link: u32, change: &Change) -> usize {
        let link = &mut self.links[link as usize];
        if let Some(queue) = &change.queue {
            link.queue = queue.spec().clone();
        }
        // A scenario changes no rate of a trace.
        link.rate = change.rate.or(link.rate);
        link.wire = WireChange {
            delay: change.wire.delay.or(link.wire.delay),
            loss: change.wire.loss.or(link.wire.loss),
            duplicate: change.wire.duplicate.or(link.wire.duplicate),
            jitter: change.wire.jitter.or(link.wire.jitter),
        };
        link.changes += 1;
        link.changes - 1
    }

    /// The queue of a link.
    pub fn queue(&self, link: usize) -> &QdiscSpec {
        &self.links[link].queue
    }

    /// All settings of a link that changes can set.
    pub fn settings(&self, link: usize) -> Change {
        let link = &self.links[link];
        Change {
            at: Duration::ZERO,
            rate: link.rate,
            queue: Some(Box::new(QueueChange::Replacement(link.queue.clone()))),
            wire: link.wire,
        }
    }

    /// What was asked for and accepted, by time.
    pub fn records(&self) -> &[ChangeRecord] {
        &self.records
    }

    /// What was asked for and accepted, by time.
    pub fn into_records(self) -> Vec<ChangeRecord> {
        self.records
    }

    /// Checks and records a change that is asked for, of a link that sends at `rate`; `None`: it is in force already.
    ///
    /// # Errors
    /// The key of the scenario that is at fault, and the rule.
    pub fn accept(
        &mut self,
        config: &Config,
        now: Instant,
        rate: Rate,
        request: &Request,
    ) -> Result<Option<Change>, String> {
        let (link, of) = (&config.links[request.link], &mut self.links[request.link]);
        let at = now.since(Instant::ZERO);
        let place = |key: &str, rule: &str| {
            let dot = if key.is_empty() { "" } else { "." };
            format!("links.{}{dot}{key}: {rule}", link.name)
        };
        let read = controlled_change(&request.change, at, (rate, &of.queue));
        let Some((change, text)) = read.map_err(|error| place(&error.path, &error.rule))? else {
            return Ok(None);
        };
        if change.wire != WireChange::default() && link.controlled != Controlled::All {
            let rule = "a change of delay, loss, duplicate or jitter; \
                        set changes_wires = True in the class of the controller";
            return Err(place("", rule));
        }
        if change.queue.is_some() && link.changes.iter().any(|written| written.queue.is_some()) {
            let rule = "changes of the scenario change this queue too; expected one of the two";
            return Err(place("qdisc", rule));
        }
        (config.check_change(request.link, &change)).map_err(|(key, rule)| place(&key, &rule))?;
        of.check_limits(config, request.link, &change)
            .map_err(|rule| place("", &rule))?;
        self.records.push(ChangeRecord {
            at: now,
            link: request.link,
            rate: change.rate,
            delay: change.wire.delay,
            text,
        });
        Ok(Some(change))
    }

    /// As [`LinkChanges::accept`], of several changes with the rates of all links: all are accepted or none is. Returns
    /// those that are not in force already, each with the number of its link.
    ///
    /// # Errors
    /// That of the first change that is not accepted.
    pub fn accept_all(
        &mut self,
        config: &Config,
        now: Instant,
        rates: &[Rate],
        requests: &[Request],
    ) -> Result<Vec<(usize, Change)>, String> {
        let (links, recorded) = (self.links.clone(), self.records.len());
        let mut accepted = Vec::with_capacity(requests.len());
        for request in requests {
            match self.accept(config, now, rates[request.link], request) {
                Ok(change) => accepted.extend(change.map(|change| (request.link, change))),
                Err(problem) => {
                    self.links = links;
                    self.records.truncate(recorded);
                    return Err(problem);
                }
            }
        }
        Ok(accepted)
    }
}

impl ChangedLink {
    fn new(link: &LinkConfig) -> Self {
        Self {
            queue: link.qdisc.clone(),
            rate: (!link.follows_trace()).then_some(link.rate),
            wire: WireChange {
                delay: Some(link.delay),
                loss: Some(link.line.loss),
                duplicate: Some(link.line.duplicate),
                jitter: Some(link.line.jitter),
            },
            changes: 0,
            fastest: link.fastest(),
            shortest: link.delay,
        }
    }

    /// Checks what a run relies on if the link becomes faster, or its delay shorter, than it ever was.
    fn check_limits(&mut self, config: &Config, n: usize, change: &Change) -> Result<(), String> {
        let rate = change.rate.filter(|&rate| rate > self.fastest);
        let delay = (change.wire.delay).filter(|&delay| delay < self.shortest);
        if rate.is_none() && delay.is_none() {
            return Ok(());
        }
        self.fastest = rate.unwrap_or(self.fastest);
        self.shortest = delay.unwrap_or(self.shortest);
        let mut config = config.clone();
        let link = &mut config.links[n];
        (link.rate, link.delay) = (self.fastest, self.shortest);
        config.check().map_err(|error| error.rule)
    }
}
