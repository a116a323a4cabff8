//! The controller of a run: what it sees of each interval, and the changes that it asks for.

use std::collections::BTreeMap;

use sojourn_backend::LinkChanges;
use sojourn_net::{Duration, Instant};
use sojourn_qdisc::Qdisc;
use sojourn_records::ChangeRecord;
use sojourn_scenario::plan::{Change, Config, Controller, LinkMeasured, Measured, Reply};

use super::World;
use crate::packet::{Kind, Packet};

/// A controller and what the run keeps for it.
#[derive(Debug)]
pub(super) struct Control {
    controller: Box<dyn Controller>,
    interval: Duration,
    changes: LinkChanges,
    /// Delays of ping requests whose reply is under way, by flow and number.
    requests: BTreeMap<(u32, u32), Duration>,
    /// Replies since the last call.
    replies: Vec<Reply>,
}

impl Control {
    /// A controller that is called every `interval`.
    pub(super) fn new(
        config: &Config,
        controller: Box<dyn Controller>,
        interval: Duration,
    ) -> Self {
        Self {
            controller,
            interval,
            changes: LinkChanges::new(config),
            requests: BTreeMap::new(),
            replies: Vec::new(),
        }
    }

    /// The time of the call after `now`; `None`: the run ends before.
    pub(super) fn next(&self, now: Instant, end: Instant) -> Option<Instant> {
        let next = now + self.interval;
        (next < end).then_some(next)
    }

    /// A change of the scenario is applied to a link; returns the number of changes before it.
    pub(super) fn on_change(&mut self, link: u32, change: &Change) -> usize {
        self.changes.on_change(link, change)
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
        self.changes.into_records()
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
            let accepted = (control.changes).accept(&self.config, self.now, rate, &request);
            match accepted {
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
        let changes = &control.changes;
        let links = links.enumerate().map(|(n, ((config, link), probe))| {
            let counts = probe.count_since_call();
            let counters = &counts.counters;
            let backlog = link.qdisc.backlog();
            let wired = config.radio.is_none();
            LinkMeasured {
                rate: (wired && !config.follows_trace()).then_some(link.rate()),
                queue: changes.queue(n).to_string(),
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
