//! What a flow costs that has nothing to do.

use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_scenario::plan::{Config, FlowConfig, Hop, Traffic};
use sojourn_transport::SenderParams;

use crate::dumbbell::{bulk, link};

/// Why the flows are idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// They have not started.
    Waiting,
    /// They have sent all they had.
    Done,
}

/// `n` TCP flows that are idle when the run ends, in a run that samples nothing on its way.
pub fn config(n: usize, why: Idle) -> Config {
    let one_way = Duration::from_millis(5);
    let (start, start_jitter, traffic) = match why {
        Idle::Waiting => (Duration::from_secs(3_600), Duration::ZERO, bulk()),
        // One segment each, spread so that few are under way at once.
        Idle::Done => (
            Duration::ZERO,
            Duration::from_secs(10),
            Traffic::Tcp {
                bytes: Some(1_000),
                params: SenderParams::default(),
            },
        ),
    };
    let flows = (0..n).map(|k| FlowConfig {
        name: format!("{k}"),
        forward: vec![Hop::Link(0), Hop::Delay(one_way)],
        reverse: vec![Hop::Delay(one_way)],
        start,
        start_jitter,
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic: traffic.clone(),
    });
    let duration = Duration::from_secs(12);
    Config {
        seed: 1,
        duration,
        measure_from: Duration::ZERO,
        sample: duration,
        links: vec![link("wire", Rate::mbit(10_000), "pfifo limit 1000")],
        flows: flows.collect(),
        keep_events: false,
        sample_state: false,
    }
}
