//! Traffic of every kind both ways over two links, and what a run of it records.

use sojourn_apps::{Phase, PingConfig, PingPace, Spacing, UdpConfig};
use sojourn_net::{Bytes, Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::{CcKind, SenderParams};

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) fn link(name: &str, mbit: u64, qdisc: &str) -> LinkConfig {
    let qdisc = QdiscSpec::parse(qdisc).unwrap();
    LinkConfig::new(name.to_owned(), Rate::mbit(mbit), qdisc)
}

pub(crate) fn flow(name: &str, traffic: Traffic) -> FlowConfig {
    FlowConfig {
        name: name.to_owned(),
        forward: vec![Hop::Link(0), Hop::Delay(MS.times(20))],
        reverse: vec![Hop::Link(1), Hop::Delay(MS.times(20))],
        start: Duration::ZERO,
        start_jitter: MS.times(50),
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic,
    }
}

pub(crate) fn bulk(cc: CcKind, bytes: Option<u64>, ecn: bool) -> Traffic {
    let params = SenderParams {
        cc: cc.into(),
        ecn,
        ..SenderParams::default()
    };
    Traffic::Tcp { bytes, params }
}

pub(crate) fn cbr(mbit: u64, spread: f64) -> Traffic {
    Traffic::datagrams(UdpConfig {
        phase: Phase::Fixed(Duration::ZERO),
        rate: Rate::mbit(mbit),
        payload: Bytes(1_000),
        spacing: Spacing::Even { spread },
    })
}

/// Some of everything, both ways, over `qdisc`.
pub(crate) fn mixed(qdisc: &str, seed: u64) -> Config {
    let mut flows = vec![
        flow("cubic", bulk(CcKind::Cubic, None, false)),
        flow("reno", bulk(CcKind::Reno, None, true)),
        flow("finite", bulk(CcKind::Cubic, Some(300_000), false)),
        flow("cbr", cbr(2, 0.5)),
        flow(
            "ping",
            Traffic::datagrams(PingConfig {
                pace: PingPace::Every {
                    interval: MS.times(30),
                    phase: Phase::Random,
                },
                payload: None,
            }),
        ),
        flow("back", bulk(CcKind::Cubic, None, true)),
    ];
    let back = flows.last_mut().unwrap();
    std::mem::swap(&mut back.forward, &mut back.reverse);
    Config {
        seed,
        duration: Duration::from_secs(6),
        measure_from: Duration::from_secs(2),
        sample: MS.times(100),
        links: vec![link("down", 10, qdisc), link("up", 2, qdisc)],
        flows,
        keep_events: true,
        sample_state: false,
    }
}

pub(crate) fn records(config: &Config) -> Records {
    run(config, &mut |_| true).unwrap().unwrap()
}
