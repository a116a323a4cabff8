//! The controller of a run: what it sees of each interval, and the changes that it asks for.

use std::collections::BTreeMap;

use sojourn_net::{Duration, Instant, Rate};
use sojourn_qdisc::{Qdisc, QdiscSpec};
use sojourn_records::ChangeRecord;
use sojourn_scenario::controlled_change;
use sojourn_scenario::plan::{
    Change, Config, Controlled, Controller, LinkMeasured, Measured, Reply, Request, WireChange,
};

use super::World;
use crate::packet::{Kind, Packet};

/// A controller and what the run keeps for it.
#[derive(Debug)]
pub(super) struct Control {
    controller: Box<dyn Controller>,
    interval: Duration,
    /// One per link.
    links: Vec<ControlledLink>,
    /// Delays of ping requests whose reply is under way, by flow and number.
    requests: BTreeMap<(u32, u32), Duration>,
    /// Replies since the last call.
    replies: Vec<Reply>,
    changes: Vec<ChangeRecord>,
}

/// What a controller has made of a link.
#[derive(Debug)]
struct ControlledLink {
    queue: QdiscSpec,
    /// Changes of the link so far, those of the scenario included.
    changes: usize,
    /// The highest rate and the shortest delay that were checked.
    fastest: Rate,
    shortest: Duration,
}

impl Control {
    /// A controller that is called every `interval`.
    pub(super) fn new(
        config: &Config,
        controller: Box<dyn Controller>,
        interval: Duration,
    ) -> Self {
        let links = config.links.iter().map(|link| ControlledLink {
            queue: link.qdisc.clone(),
            changes: 0,
            fastest: link.fastest(),
            shortest: link.delay,
        });
        Self {
            controller,
            interval,
            links: links.collect(),
            requests: BTreeMap::new(),
            replies: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The time of the call after `now`; `None`: the run ends before.
    pub(super) fn next(&self, now: Instant, end: Instant) -> Option<Instant> {
        let next = now + self.interval;
        (next < end).then_some(next)
    }

    /// A change of the scenario is applied to a link; returns the number of changes before it.
    pub(super) fn on_change(&mut self, link: u32, change: &Change) -> usize {
        let link = &mut self.links[link as usize];
        if let Some(queue) = &change.queue {
            link.queue = queue.spec().clone();
        }
        link.changes += 1;
        link.changes - 1
    }

    /// A packet of a flow of datagrams arrives.
    pub(super) fn on_datagram(&mut self, now: Instant, pkt: &Packet) {
        let probe = pkt.probe();
        let (flow, elapsed) = (pkt.flow_number(), now.since(probe.sent));
        match pkt.kind() {
            Kind::Ping => {
                self.requests.insert((flow, probe.number), elapsed);
            }
            // Of two copies, the first counts.
            Kind::Pong => {
                if let Some(there) = self.requests.remove(&(flow, probe.number)) {
                    self.replies.push(Reply {
                        flow: flow as usize,
                        sent: probe.sent,
                        there,
                        back: elapsed.saturating_sub(there),
                    });
                }
            }
            _ => {}
        }
    }

    /// What the controller changed.
    pub(super) fn into_changes(self) -> Vec<ChangeRecord> {
        self.changes
    }

    /// The change that is asked for; `None`: it is in force already.
    fn accepted(
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
        self.changes.push(ChangeRecord {
            at: now,
            link: request.link,
            rate: change.rate,
            delay: change.wire.delay,
            text,
        });
        Ok(Some(change))
    }
}

impl ControlledLink {
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

impl World<'_> {
    /// Calls the controller, and applies the changes that it asks for. Returns when to call it again.
    #[cold]
    pub(super) fn on_control(&mut self) -> Option<Instant> {
        let mut control = self.control.take()?;
        let measured = self.measure(&mut control);
        for request in control.controller.control(&measured) {
            let rate = self.links[request.link].rate();
            match control.accepted(&self.config, self.now, rate, &request) {
                Ok(None) => {}
                Ok(Some(change)) => {
                    let link = u32::try_from(request.link).unwrap_or(u32::MAX);
                    let n = control.on_change(link, &change);
                    self.apply_change(link, n, &change);
                }
                Err(problem) => control.controller.refuse(self.now, problem),
            }
        }
        let next = control.next(self.now, self.end);
        self.control = Some(control);
        next
    }

    /// Measures the interval that ends now.
    fn measure(&mut self, control: &mut Control) -> Measured {
        let (from, at) = (
            Instant::from_nanos(self.now.as_nanos() - control.interval.as_nanos()),
            self.now,
        );
        let probes = &mut self.observed.probes;
        let links = self.config.links.iter().zip(&mut self.links).zip(probes);
        let links = links
            .zip(&control.links)
            .map(|(((config, link), probe), of)| {
                let counts = probe.count_since_call();
                let counters = &counts.counters;
                let backlog = link.qdisc.backlog();
                let wired = config.radio.is_none();
                LinkMeasured {
                    rate: (wired && !config.follows_trace()).then_some(link.rate()),
                    queue: of.queue.to_string(),
                    sent_packets: counters.sent_packets,
                    sent_bytes: counters.sent_bytes,
                    utilisation: link.utilisation(from, at).filter(|_| wired),
                    backlog_packets: backlog.packets as u64,
                    backlog_bytes: backlog.bytes,
                    sojourn_mean: counts.sojourn_mean,
                    sojourn_max: counts.sojourn_max,
                    drops: counters.drops_overlimit
                        + counters.drops_aqm
                        + counters.drops_ack_filter
                        + counters.drops_replaced,
                    marks: counters.marks_aqm + counters.marks_ce_threshold,
                    lost: counters.lost_packets,
                }
            });
        Measured {
            at,
            links: links.collect(),
            replies: std::mem::take(&mut control.replies),
        }
    }
}
