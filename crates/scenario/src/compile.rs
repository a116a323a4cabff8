//! Compiles a variant of a scenario to the plan of one run.

use crate::plan::{self, Config, Controlled, FlowConfig, FlowLabel, Hop, Plan};
use sojourn_net::{Duration, Rng};

use crate::decode::Spec;
use crate::link::Link;
use crate::traffic::{Block, Direction, Way};

/// The run of `spec` that is number `replication`; all variants of one number share their seed.
pub(crate) fn plan(spec: &Spec, replication: u32) -> Plan {
    let mut config = Config {
        seed: seed(spec.run.seed, replication),
        duration: spec.run.duration,
        measure_from: spec.run.warmup,
        sample: spec.run.sample,
        links: (spec.links.real.iter())
            .map(|link| link.config(spec.run.duration))
            .collect(),
        flows: Vec::new(),
        keep_events: spec.run.keep_events,
        sample_state: spec.run.sample_state,
    };
    let amounts = Rng::new(config.seed).fork("amount");
    let mut flows = Vec::new();
    for block in &spec.traffic {
        for n in 0..block.keys.count {
            let rtt = block.flow_rtt(n, spec.run.rtt);
            let own = amounts.fork(&block.flow_name(n));
            config
                .flows
                .push(flow(block, n, rtt, &spec.links.real, own));
            flows.push(FlowLabel {
                group: block.name().to_owned(),
                kind: block.kind.name(),
                direction: match block.way {
                    Way::Direction(direction) => Some(direction.name()),
                    Way::Path { .. } => None,
                },
                rtt,
            });
        }
    }
    let controller = spec.run.controller.0.clone();
    if let Some(name) = &controller {
        control(&mut config, name);
    }
    Plan {
        config,
        flows,
        controller,
    }
}

/// Notes what the controller called `name` may change of the links.
fn control(config: &mut Config, name: &str) {
    let class = plan::controller(name);
    let controlled = if class.is_some_and(|class| class.changes_wires()) {
        Controlled::All
    } else {
        Controlled::RateAndQueue
    };
    for link in &mut config.links {
        link.controlled = controlled;
    }
}

/// The path in `spec` of what the plan has at `place`.
pub(crate) fn place_of(spec: &Spec, place: &str) -> String {
    let numbered = |list: &str| {
        let (n, key) = place.strip_prefix(list)?.split_once("].")?;
        Some((n.parse::<u32>().ok()?, key))
    };
    if let Some((mut n, key)) = numbered("flows[") {
        for (at, block) in spec.traffic.iter().enumerate() {
            if n < block.keys.count {
                let key = match (key, &block.way) {
                    ("forward" | "reverse", Way::Direction(_)) => "direction",
                    ("forward", _) => "path",
                    ("reverse", _) => "return",
                    (key, _) => key,
                };
                return format!("traffic[{at}].{key}");
            }
            n -= block.keys.count;
        }
    }
    let link =
        numbered("links[").and_then(|(n, key)| Some((spec.links.real.get(n as usize)?, key)));
    link.map_or_else(
        || place.to_owned(),
        |(link, key)| format!("links.{}.{key}", link.name),
    )
}

/// Named, not added: replication 1 of seed 1 is not replication 0 of seed 2.
fn seed(seed: i64, replication: u32) -> u64 {
    Rng::new(seed.unsigned_abs())
        .fork(&format!("replication/{replication}"))
        .next_u64()
}

/// Flow number `n` of `block`; from `rng` comes how much it transfers.
fn flow(block: &Block, n: u32, rtt: Duration, links: &[Link], rng: Rng) -> FlowConfig {
    let (forward, reverse) = hops(&block.way, rtt, links);
    FlowConfig {
        name: block.flow_name(n),
        forward,
        reverse,
        start: block.keys.start,
        start_jitter: block.keys.start_jitter,
        stop: block.keys.stop,
        dscp: block.keys.dscp,
        ip: block.keys.ip,
        client: block.client(),
        traffic: block.kind.plan(rng),
    }
}

/// The way of the data and the way back.
///
/// The near host sits at the links: what it sends passes them first, what it gets passes them
/// last. Paths are those of a sender at the links too.
fn hops(way: &Way, rtt: Duration, links: &[Link]) -> (Vec<Hop>, Vec<Hop>) {
    let there = Duration::from_nanos(rtt.as_nanos() / 2);
    let back = Duration::from_nanos(rtt.as_nanos() - there.as_nanos());
    let through = |name: &str| links.iter().position(|l| l.name == name).map(Hop::Link);
    let all = |names: &[String]| -> Vec<_> { names.iter().filter_map(|n| through(n)).collect() };
    let sent = |links: Vec<Hop>, delay| links.into_iter().chain([Hop::Delay(delay)]).collect();
    let received = |delay, links: Vec<Hop>| [Hop::Delay(delay)].into_iter().chain(links).collect();
    let up = || through(Direction::Up.name()).into_iter().collect();
    let down = || through(Direction::Down.name()).into_iter().collect();
    match way {
        Way::Direction(Direction::Up) => (sent(up(), there), received(back, down())),
        Way::Direction(Direction::Down) => (received(there, down()), sent(up(), back)),
        Way::Path { path, back: names } => (sent(all(path), there), received(back, all(names))),
    }
}
