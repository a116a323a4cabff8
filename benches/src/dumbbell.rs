//! S1 to S5: long flows over one bottleneck, as the peers ran them; and the cases that cost most.

use sojourn_apps::{Phase, Spacing, UdpConfig};
use sojourn_net::{Bytes, Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_scenario::plan::{
    ChannelConfig, Config, DriverLimit, FlowConfig, Hop, LinkConfig, RadioConfig, RateControl,
    Sharing, Standard, Traffic,
};
use sojourn_transport::{SenderParams, quic};

/// Long flows over one bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumbbell {
    /// `S1` to `S5`, or that of one of [`TRANSPORTS`] or [`MANY_FLOWS`].
    pub name: &'static str,
    /// One line for a table.
    pub what: &'static str,
    flows: usize,
    quic: bool,
    /// Congestion control.
    cc: &'static str,
    ecn: bool,
    rate: Rate,
    /// The bottleneck is an access point, and `rate` that of its symbols.
    wireless: bool,
    /// Links of the same rate behind the bottleneck.
    further: usize,
    /// Rate of the senders' access link; `None`: there is none.
    access: Option<Rate>,
    /// Base RTTs in milliseconds; flow `n` has the `n % len`-th.
    rtts_ms: &'static [u64],
    qdisc: &'static str,
    /// Rate of a UDP stream beside the flows.
    cbr: Option<Rate>,
    seconds: u64,
}

/// All of them.
pub const DUMBBELLS: [Dumbbell; 5] = [
    Dumbbell {
        name: "S1",
        what: "1 CUBIC, 100 Mbit/s, 100 ms, CoDel, 60 s",
        flows: 1,
        quic: false,
        cc: "cubic",
        ecn: false,
        wireless: false,
        further: 0,
        rate: Rate::mbit(100),
        access: None,
        rtts_ms: &[100],
        qdisc: "codel limit 1000",
        cbr: None,
        seconds: 60,
    },
    Dumbbell {
        name: "S2",
        what: "4 CUBIC, 10 Mbit/s, 50 ms, FIFO of 127, 140 s",
        flows: 4,
        quic: false,
        cc: "cubic",
        ecn: false,
        wireless: false,
        further: 0,
        rate: Rate::mbit(10),
        access: None,
        rtts_ms: &[50],
        qdisc: "pfifo limit 127",
        cbr: None,
        seconds: 140,
    },
    Dumbbell {
        name: "S3",
        what: "30 CUBIC, 1 Gbit/s, 120 ms, CoDel, access 10 Gbit/s, 20 s",
        flows: 30,
        quic: false,
        cc: "cubic",
        ecn: false,
        wireless: false,
        further: 0,
        rate: Rate::mbit(1_000),
        access: Some(Rate::mbit(10_000)),
        rtts_ms: &[120],
        qdisc: "codel limit 1000",
        cbr: None,
        seconds: 20,
    },
    Dumbbell {
        name: "S4",
        what: "3 CUBIC, 10 Gbit/s, 120 ms, FIFO of one BDP, 10 s",
        flows: 3,
        quic: false,
        cc: "cubic",
        ecn: false,
        wireless: false,
        further: 0,
        rate: Rate::mbit(10_000),
        access: None,
        rtts_ms: &[120],
        qdisc: "pfifo limit 100000",
        cbr: None,
        seconds: 10,
    },
    Dumbbell {
        name: "S5",
        what: "100 CUBIC of 20-100 ms and 10 Mbit/s UDP, 100 Mbit/s, FQ-CoDel, 60 s",
        flows: 100,
        quic: false,
        cc: "cubic",
        ecn: false,
        wireless: false,
        further: 0,
        rate: Rate::mbit(100),
        access: None,
        rtts_ms: &[20, 40, 60, 80, 100],
        qdisc: "fq_codel",
        cbr: Some(Rate::mbit(10)),
        seconds: 60,
    },
];

/// The same flows with other transports, controls and links, which the peers do not have.
pub const TRANSPORTS: [Dumbbell; 7] = [
    FOUR_FLOWS,
    Dumbbell {
        name: "quic",
        what: "4 CUBIC over QUIC, 100 Mbit/s, 50 ms, CoDel, 20 s",
        quic: true,
        ..FOUR_FLOWS
    },
    Dumbbell {
        name: "bbr",
        what: "4 BBR, 100 Mbit/s, 50 ms, CoDel, 20 s",
        cc: "bbr",
        ..FOUR_FLOWS
    },
    Dumbbell {
        name: "dualpi2",
        what: "4 CUBIC with ECN, 100 Mbit/s, 50 ms, DualPI2, 20 s",
        ecn: true,
        qdisc: "dualpi2",
        ..FOUR_FLOWS
    },
    Dumbbell {
        name: "prague",
        what: "4 Prague, 100 Mbit/s, 50 ms, DualPI2, 20 s",
        cc: "prague",
        qdisc: "dualpi2",
        ..FOUR_FLOWS
    },
    Dumbbell {
        name: "wifi",
        what: "4 CUBIC, 802.11n at 144 Mbit/s, 50 ms, FQ-CoDel, 20 s",
        rate: Rate::mbit(144),
        wireless: true,
        qdisc: "fq_codel",
        ..FOUR_FLOWS
    },
    Dumbbell {
        name: "series",
        what: "4 CUBIC, 16 links of 100 Mbit/s in series, 50 ms, CoDel, 20 s",
        further: 15,
        ..FOUR_FLOWS
    },
];

const FOUR_FLOWS: Dumbbell = Dumbbell {
    name: "tcp",
    what: "4 CUBIC, 100 Mbit/s, 50 ms, CoDel, 20 s",
    flows: 4,
    quic: false,
    cc: "cubic",
    ecn: false,
    rate: Rate::mbit(100),
    wireless: false,
    further: 0,
    access: None,
    rtts_ms: &[50],
    qdisc: "codel limit 1000",
    cbr: None,
    seconds: 20,
};

/// Flows whose state exceeds the processor's caches.
pub const MANY_FLOWS: [Dumbbell; 3] = [
    Dumbbell {
        name: "thousand",
        what: "1,000 CUBIC, 1 Gbit/s, 50 ms, FQ-CoDel, 5 s",
        flows: 1_000,
        rate: Rate::mbit(1_000),
        qdisc: "fq_codel",
        seconds: 5,
        ..FOUR_FLOWS
    },
    Dumbbell {
        name: "many_codel",
        what: "10,000 CUBIC, 10 Gbit/s, 50 ms, CoDel, 2 s",
        ..TEN_THOUSAND
    },
    Dumbbell {
        name: "many_fq_codel",
        what: "10,000 CUBIC, 10 Gbit/s, 50 ms, FQ-CoDel, 2 s",
        qdisc: "fq_codel",
        ..TEN_THOUSAND
    },
];

const TEN_THOUSAND: Dumbbell = Dumbbell {
    flows: 10_000,
    rate: Rate::mbit(10_000),
    qdisc: "codel limit 10240",
    seconds: 2,
    ..FOUR_FLOWS
};

/// One of many short runs.
pub const SHORT: Dumbbell = Dumbbell {
    name: "short",
    what: "500 runs: 2 CUBIC, 10 Mbit/s, 50 ms, FQ-CoDel, 1 s",
    flows: 2,
    rate: Rate::mbit(10),
    qdisc: "fq_codel",
    seconds: 1,
    ..FOUR_FLOWS
};

/// The same with a queue of 1,024 classes.
const SHORT_DRR: Dumbbell = Dumbbell {
    name: "short_drr",
    what: "the same with DRR",
    qdisc: "drr",
    ..SHORT
};

impl Dumbbell {
    /// The scenario called `name`: one of S1 to S5, of [`TRANSPORTS`], of [`MANY_FLOWS`], or a short run.
    pub fn named(name: &str) -> Option<Self> {
        let all = DUMBBELLS.into_iter().chain(TRANSPORTS).chain(MANY_FLOWS);
        let mut all = all.chain([SHORT, SHORT_DRR]);
        all.find(|d| d.name == name)
    }

    /// The place of the bottleneck in [`Config::links`].
    pub const BOTTLENECK: usize = 0;

    /// As a simulation, with a sample interval of 100 ms, a typical setting.
    ///
    /// # Panics
    /// If a queue of the list is unknown to the catalogue.
    pub fn config(&self) -> Config {
        let mut bottleneck = link("bottleneck", self.rate, self.qdisc);
        bottleneck.radio = self.wireless.then(access_point);
        let mut links = vec![bottleneck];
        let mut forward = vec![Hop::Link(Self::BOTTLENECK)];
        for n in 1..=self.further {
            links.push(link(&format!("link-{n}"), self.rate, "pfifo limit 1000"));
            forward.push(Hop::Link(n));
        }
        if let Some(rate) = self.access {
            forward.insert(0, Hop::Link(links.len()));
            links.push(link("access", rate, "pfifo limit 1000000"));
        }
        let way = |half: Hop| [forward.clone(), vec![half]].concat();
        let half = |n: usize| {
            let rtt = self.rtts_ms[n % self.rtts_ms.len()];
            Hop::Delay(Duration::from_micros(rtt * 500))
        };
        let mut flows: Vec<_> = (0..self.flows)
            .map(|n| FlowConfig {
                name: format!("tcp-{n}"),
                forward: way(half(n)),
                reverse: vec![half(n)],
                start: Duration::ZERO,
                start_jitter: Duration::from_millis(if self.flows == 1 { 0 } else { 100 }),
                stop: None,
                dscp: Dscp::DEFAULT,
                client: None,
                ip: IpVersion::V4,
                traffic: self.traffic(),
            })
            .collect();
        flows.extend(self.cbr.map(|rate| FlowConfig {
            name: "udp".to_owned(),
            forward: way(half(0)),
            reverse: vec![half(0)],
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic: Traffic::datagrams(UdpConfig {
                rate,
                payload: Bytes(1_472),
                spacing: Spacing::CONSTANT,
                phase: Phase::Fixed(Duration::ZERO),
            }),
        }));
        Config {
            seed: 1,
            duration: Duration::from_secs(self.seconds),
            measure_from: Duration::ZERO,
            sample: Duration::from_millis(100),
            links,
            flows,
            keep_events: false,
            sample_state: false,
        }
    }

    fn traffic(&self) -> Traffic {
        if self.quic {
            return Traffic::Quic {
                bytes: None,
                request: None,
                params: quic::Params::default(),
            };
        }
        Traffic::Tcp {
            bytes: None,
            params: SenderParams {
                cc: self
                    .cc
                    .parse()
                    .expect("the benchmark names controls of the catalogue"),
                ecn: self.ecn,
                ..SenderParams::default()
            },
        }
    }
}

/// A radio of 802.11n whose driver queue holds what Linux's airtime limit allows.
fn access_point() -> RadioConfig {
    RadioConfig {
        medium: "air".to_owned(),
        standard: Standard::N,
        driver: DriverLimit::Airtime(Duration::from_millis(5)),
        stations: Vec::new(),
        sharing: Sharing::Turns,
        aggregate_time: RadioConfig::AGGREGATE_TIME,
        aggregate_packets: RadioConfig::AGGREGATE_PACKETS,
        rate_control: RateControl::Fixed,
        channel: ChannelConfig::default(),
    }
}

/// A serial link whose queue is `qdisc`.
///
/// # Panics
/// If the catalogue does not know it.
pub fn link(name: &str, rate: Rate, qdisc: &str) -> LinkConfig {
    let qdisc = QdiscSpec::parse(qdisc).expect("the benchmark names queues of the catalogue");
    LinkConfig::new(name.to_owned(), rate, qdisc)
}

/// TCP without end.
pub fn bulk() -> Traffic {
    Traffic::Tcp {
        bytes: None,
        params: SenderParams::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::REFERENCE;

    #[test]
    fn every_scenario_can_be_run() {
        for dumbbell in DUMBBELLS {
            assert_eq!(dumbbell.config().check(), Ok(()), "{}", dumbbell.name);
            assert_eq!(Dumbbell::named(dumbbell.name), Some(dumbbell));
            assert!(REFERENCE.budgets.k_per_s.contains_key(dumbbell.name));
        }
    }

    #[test]
    fn every_worst_case_can_be_run_and_every_budget_is_of_one() {
        let cases = || TRANSPORTS.into_iter().chain(MANY_FLOWS);
        for case in cases().chain([SHORT]) {
            assert_eq!(case.config().check(), Ok(()), "{}", case.name);
        }
        let is_case = |name: &String| cases().any(|case| case.name == *name);
        assert!(REFERENCE.budgets.worst_ns.keys().all(is_case));
        assert!(REFERENCE.budgets.worst_ratio.keys().all(is_case));
        assert!(cases().all(|case| Dumbbell::named(case.name) == Some(case)));
    }
}
