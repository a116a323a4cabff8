//! The kernel's scenario as a simulation.

use sojourn_apps::{Phase, PingConfig, PingPace, Spacing, UdpConfig};
use sojourn_net::{Bytes, Dscp, Duration, IpVersion, Rate, Rng};
use sojourn_qdisc::{QdiscInfo, QdiscSpec, catalogue};
use sojourn_scenario::plan::{
    Config, FlowConfig, Hop, LineConfig, LinkConfig, Loss, Shaper, Traffic,
};
use sojourn_transport::{
    AckPolicy, BurstLimits, CcKind, Device, Reader, ReceiveBuffer, ReceiverParams, SenderParams,
    Writer,
};

use crate::truth::{Direction, Flow, Scenario, Truth};

/// How long the harness waited for what was still under way.
const AFTER: f64 = 3.0;

/// A full packet takes 0.12 us.
const UNPACED: Rate = Rate::mbit(100_000);

/// One run: which flows start when, and the seed of everything else.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    pub(crate) seed: u64,
    /// Seconds, for each flow.
    pub(crate) starts: Vec<f64>,
    /// When the first ping is sent, in seconds; `None`: one at a random time in each interval.
    pub(crate) ping_start: Option<f64>,
}

/// The harness sends the first datagram when the flow starts.
const START: Phase = Phase::Fixed(Duration::ZERO);

/// The kernel's repetitions, then more where chance matters: the sample of three tells little of
/// the mean where the phase between flows or a coin decides.
///
/// Starts are those of the kernel with the most repetitions; the harness drew the same on each.
pub(crate) fn draws(truth: &Truth, scenario: &Scenario) -> Vec<Draw> {
    const RUNS: u64 = 10;
    const SPREAD: f64 = 0.05;
    let mut all = recorded(truth, scenario);
    let reps = &truth.most_repeated(scenario).reps;
    if !chance_matters(scenario) {
        return all;
    }
    let nominal: Vec<_> = reps[0].starts.iter().map(|s| s.floor()).collect();
    for seed in all.len() as u64 + 1..=RUNS {
        let mut rng = Rng::new(seed).fork(&scenario.name);
        let starts = nominal.iter().map(|s| s + SPREAD * rng.uniform()).collect();
        all.push(Draw {
            seed,
            starts,
            ping_start: None,
        });
    }
    all
}

/// The kernel's repetitions.
pub(crate) fn recorded(truth: &Truth, scenario: &Scenario) -> Vec<Draw> {
    let reps = &truth.most_repeated(scenario).reps;
    let recorded = (1..).zip(reps).map(|(seed, rep)| Draw {
        seed,
        starts: rep.starts.clone(),
        ping_start: Some(rep.ping_start),
    });
    recorded.collect()
}

fn chance_matters(scenario: &Scenario) -> bool {
    let random = [
        "pie",
        "red",
        "sfb",
        "sfq",
        "fq_codel",
        "cake",
        "root cake",
        "dualpi2",
        "afq",
        "floq",
    ];
    // BBR draws the phase its cycle begins with.
    let lots = scenario.flows.iter().any(|f| f.cc == "bbr");
    let of_controls = scenario.suite == "C1" && (scenario.loss > 0.0 || scenario.flows.len() > 1);
    lots || of_controls
        || scenario.flows.len() > 2
        || random.iter().any(|kind| scenario.qdisc.starts_with(kind))
}

/// The simulation of one run.
///
/// # Errors
/// When a queue or a controller is unknown to Sojourn.
pub(crate) fn config(scenario: &Scenario, draw: &Draw) -> Result<Config, String> {
    let mut links = vec![link(scenario, Direction::Up)?];
    if scenario.rate_down > 0.0 {
        links.push(link(scenario, Direction::Down)?);
    }
    let mut flows = Vec::new();
    for (n, (flow, &start)) in scenario.flows.iter().zip(&draw.starts).enumerate() {
        let (forward, reverse) = ways(scenario, flow.dir, flow.rtt);
        flows.push(FlowConfig {
            name: format!("tcp-{n}"),
            forward,
            reverse,
            start: seconds(start),
            start_jitter: Duration::ZERO,
            stop: Some(seconds(flow.stop)),
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic: tcp(scenario, flow)?,
        });
    }
    for (n, udp) in scenario.udp.iter().enumerate() {
        let (forward, reverse) = ways(scenario, Direction::Up, scenario.rtt);
        flows.push(FlowConfig {
            name: format!("udp-{n}"),
            forward,
            reverse,
            start: seconds(udp.start),
            start_jitter: Duration::ZERO,
            stop: Some(seconds(udp.stop)),
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic: Traffic::datagrams(UdpConfig {
                rate: mbit(udp.rate_mbps)?,
                payload: Bytes(udp.size),
                spacing: Spacing::CONSTANT,
                phase: START,
            }),
        });
    }
    let (forward, reverse) = ways(scenario, Direction::Up, scenario.rtt);
    let ping = PingConfig {
        pace: PingPace::Every {
            interval: seconds(scenario.ping),
            phase: draw.ping_start.map_or(Phase::Random, |_| START),
        },
        payload: None,
    };
    flows.push(FlowConfig {
        name: "ping".to_owned(),
        forward,
        reverse,
        start: seconds(draw.ping_start.unwrap_or_default()),
        start_jitter: Duration::ZERO,
        stop: Some(seconds(scenario.ping_stop)),
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic: Traffic::datagrams(ping),
    });
    Ok(Config {
        seed: draw.seed,
        duration: seconds(scenario.duration + AFTER),
        measure_from: Duration::ZERO,
        sample: Duration::from_millis(100),
        links,
        flows,
        keep_events: false,
        sample_state: false,
    })
}

/// htb with the bucket of the harness: 1 ms of the rate and 1600 B.
fn link(scenario: &Scenario, direction: Direction) -> Result<LinkConfig, String> {
    let rate = match direction {
        Direction::Up => scenario.rate_up,
        Direction::Down => scenario.rate_down,
    };
    let qdisc = scenario.qdisc(direction);
    let spec = spec(scenario, direction);
    // A queue at the root paces itself in front of a device that takes what it gets.
    let (rate, shaper) = if qdisc.starts_with("root ") {
        (UNPACED, Shaper::Serial)
    } else {
        let rate = mbit(rate)?;
        let burst = rate.carries(Duration::from_millis(1)) + Bytes(1_600);
        (rate, Shaper::Bucket { burst })
    };
    let qdisc = QdiscSpec::parse(&spec).map_err(|e| format!("{spec}: {e}"))?;
    let loss = match direction {
        Direction::Up if scenario.loss > 0.0 => Loss::Random(scenario.loss / 100.0),
        Direction::Up | Direction::Down => Loss::None,
    };
    Ok(LinkConfig {
        shaper,
        line: LineConfig {
            loss,
            ..LineConfig::PERFECT
        },
        ..LinkConfig::new(direction.name().to_owned(), rate, qdisc)
    })
}

/// The queue of one direction in our words.
pub(crate) fn spec(scenario: &Scenario, direction: Direction) -> String {
    let tc = scenario.qdisc(direction).trim_start_matches("root ");
    kernel_spec(tc, scenario)
}

/// The `tc` arguments in our words: the kernel's behaviour where it differs from the RFC's, RED that
/// adapts only where the kernel's did, and the classifier that the kernel of L4 was built with. In M, queues are those
/// of the modules of Sojourn.
fn kernel_spec(tc: &str, scenario: &Scenario) -> String {
    let words = match scenario.label.as_str() {
        "red_asis" => tc.trim_end_matches(" adaptive").to_owned(),
        "red_step" => with_highest_probability(tc),
        _ if scenario.suite == "L4" => format!("{tc} any_ect"),
        _ => tc.to_owned(),
    };
    match scenario.suite.as_str() {
        // The default profile of cocoa has the arithmetic of its module.
        "M" if tc.starts_with("cocoa") => words,
        "M" => format!("{words} profile kernel"),
        _ => format!("{words} profile {}", profile(tc, &scenario.kernel)),
    }
}

/// The profile that `kernel` has: its own where the queue changed after Linux 6.1.
fn profile(tc: &str, kernel: &str) -> String {
    let own = format!("linux-{kernel}");
    let name = tc.split(' ').next();
    let changed = |kind: &&QdiscInfo| {
        let mut profiles = kind.profiles.iter();
        Some(kind.name) == name && profiles.any(|profile| profile.to_string() == own)
    };
    match catalogue().iter().find(changed) {
        Some(_) => own,
        None => "linux".to_owned(),
    }
}

/// `tc` 6.1 has no room for a probability of 1 and writes 0, which the kernel reads as the largest
/// `(max - min) / 2^n` below 1 (`tc -d qdisc` shows 0.61035 for 30000 and 35000).
fn with_highest_probability(tc: &str) -> String {
    let words: Vec<&str> = tc.split(' ').collect();
    let value = |name: &str| -> Option<u32> {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1)?.parse().ok()
    };
    match (value("min"), value("max")) {
        (Some(min), Some(max)) if max > min => {
            let range = max - min;
            let part = f64::from(range) / f64::from(range.next_power_of_two());
            tc.replace("probability 1 ", &format!("probability {part} "))
        }
        _ => tc.to_owned(),
    }
}

/// The bottleneck comes first on the way up and last on the way down: it stands next to the client.
fn ways(scenario: &Scenario, direction: Direction, rtt_ms: f64) -> (Vec<Hop>, Vec<Hop>) {
    let half = Hop::Delay(seconds(rtt_ms / 2_000.0));
    let up = vec![Hop::Link(0), half];
    let mut down = vec![half];
    if scenario.rate_down > 0.0 {
        down.push(Hop::Link(1));
    }
    match direction {
        Direction::Up => (up, down),
        Direction::Down => (down, up),
    }
}

fn tcp(scenario: &Scenario, flow: &Flow) -> Result<Traffic, String> {
    let cc = flow.cc.parse::<CcKind>().map_err(|e| e.to_string())?;
    Ok(Traffic::Tcp {
        bytes: flow.bytes,
        params: SenderParams {
            cc: cc.into(),
            ecn: scenario.ecn,
            bursts: bursts(scenario),
            writer: writer(scenario)?,
            receiver: receiver(scenario)?,
            ..SenderParams::default()
        },
    })
}

fn bursts(scenario: &Scenario) -> BurstLimits {
    let usual = BurstLimits::default();
    BurstLimits {
        least: scenario.min_tso_segs.unwrap_or(usual.least),
        most: scenario.gso_max_segs.unwrap_or(usual.most),
    }
}

fn writer(scenario: &Scenario) -> Result<Option<Writer>, String> {
    let Some(rate) = scenario.write_rate else {
        return Ok(None);
    };
    Ok(Some(Writer {
        rate: mbit(rate)?,
        block: scenario.write_block.unwrap_or(Writer::BLOCK),
    }))
}

/// Linux doubles `SO_RCVBUF`, has half of that for data, and reserves a segment.
fn receiver(scenario: &Scenario) -> Result<ReceiverParams, String> {
    const RESERVED: u32 = 1_460;
    /// `tcp_rmem` of the test bed.
    const USUAL: u32 = 67_108_864;
    let acks = AckPolicy {
        every: if scenario.quickack == 0 { 2 } else { 1 },
        ..AckPolicy::LINUX
    };
    let device = Device {
        merges: scenario.gro.is_some(),
        poll: scenario.gro.map(|(nanos, _)| Duration::from_nanos(nanos)),
    };
    let is_usual = (acks, device) == Default::default();
    Ok(ReceiverParams {
        acks,
        device,
        buffer: match (scenario.rcvbuf, scenario.rmem) {
            (Some(size), _) => ReceiveBuffer::Fixed(size - RESERVED),
            (None, Some(most)) => ReceiveBuffer::Tuned(most),
            (None, None) if is_usual => ReceiveBuffer::Unlimited,
            (None, None) => ReceiveBuffer::Tuned(USUAL),
        },
        reader: Reader {
            rate: scenario.read_rate.map(mbit).transpose()?,
            pause: scenario
                .pause
                .map(|(from, to)| (seconds(from), seconds(to))),
        },
    })
}

fn mbit(rate: f64) -> Result<Rate, String> {
    Rate::from_bits_per_sec((rate * 1e6).round() as u64).ok_or_else(|| "a rate of 0".to_owned())
}

fn seconds(s: f64) -> Duration {
    Duration::from_nanos((s * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_built() {
        let truth = Truth::load();
        for s in &truth.scenarios {
            for draw in draws(&truth, s) {
                config(s, &draw)
                    .and_then(|c| c.check().map_err(|e| e.to_string()))
                    .unwrap_or_else(|e| panic!("{}: {e}", s.name));
            }
        }
    }

    fn spec_of(name: &str, kernel: &str) -> String {
        let truth = Truth::load();
        let mut all = truth.scenarios.iter();
        let found = all.find(|s| s.name == name && s.kernel == kernel);
        spec(found.unwrap(), Direction::Up)
    }

    #[test]
    fn only_the_patched_red_adapts() {
        assert!(spec_of("R1_10m_100ms_ared", "6.1").contains(" adaptive"));
        assert!(!spec_of("R1_10m_100ms_red_asis", "6.1").contains("adaptive"));
    }

    #[test]
    fn a_probability_of_1_is_what_the_kernel_reads() {
        let spec = spec_of("R8_dctcp_10m_100ms_red_step", "6.1");
        assert!(spec.contains("probability 0.61035"), "{spec}");
    }

    #[test]
    fn l4_classifies_by_any_ect() {
        let l4 = spec_of("L4_10m_10ms_1f_ecn", "6.18");
        assert_eq!(l4, "dualpi2 any_ect profile linux");
        let l1 = spec_of("L1_10m_10ms_1f_ecn", "6.18");
        assert_eq!(l1, "dualpi2 profile linux");
    }

    #[test]
    fn the_page_states_how_many_scenarios_have_ten_repetitions() {
        let truth = Truth::load();
        let counted = |kernel: &str, runs: usize| {
            let all = truth.scenarios.iter();
            all.filter(|s| s.kernel == kernel && chance_matters(s) && s.reps.len() == runs)
                .count()
        };
        let (three, ten) = (counted("6.1", 3), counted("6.1", 10));
        let page = include_str!("../../../docs/validation/parity.md").replace('\n', " ");
        let stated = format!(
            "Of the {} scenarios on 6.1 with random outcomes, {ten} have ten repetitions. The other \
             {three} have three",
            three + ten
        );
        assert!(page.contains(&stated), "{stated}");
        assert_eq!((counted("6.12", 10), counted("6.18", 10)), (0, 0));
        let data = include_str!("../data/README.md").replace('\n', " ");
        let stated = format!("{ten} of the {} with random outcomes", three + ten);
        assert!(data.contains(&stated), "{stated}");
        let red_or_bbr = |s: &&Scenario| s.label == "red_asis" || s.controller() == Some("bbr");
        assert!(
            truth
                .scenarios
                .iter()
                .filter(red_or_bbr)
                .all(|s| s.reps.len() <= 3)
        );
    }

    #[test]
    fn a_queue_that_changed_follows_the_kernel_that_was_measured() {
        let name = "R1_10m_100ms_fq";
        assert_eq!(spec_of(name, "6.1"), "fq profile linux");
        assert_eq!(spec_of(name, "6.12"), "fq profile linux-6.12");
        let name = "R1_10m_100ms_fq_codel";
        assert!(spec_of(name, "6.12").ends_with(" profile linux"));
    }

    #[test]
    fn the_first_ping_is_sent_when_the_kernel_sent_it() {
        let truth = Truth::load();
        let mut all = truth.scenarios.iter();
        let scenario = all.find(|s| s.name == "R6_20m_100ms_1f_codel").unwrap();
        let mut starts = Vec::new();
        for draw in draws(&truth, scenario) {
            let config = config(scenario, &draw).unwrap();
            let ping = config.flows.last().unwrap();
            let Traffic::Datagrams(traffic) = &ping.traffic else {
                panic!("pings are datagrams")
            };
            assert_eq!(traffic.phase(&mut Rng::new(1)), Duration::ZERO);
            starts.push(ping.start);
        }
        let recorded = scenario.reps.iter().map(|rep| seconds(rep.ping_start));
        assert_eq!(starts, recorded.collect::<Vec<_>>());
        assert!(starts.iter().all(|&start| start < seconds(scenario.ping)));
    }

    #[test]
    fn further_draws_start_within_the_kernels_spread() {
        let truth = Truth::load();
        let named = |name: &str| truth.scenarios.iter().find(|s| s.name == name).unwrap();
        let many = draws(&truth, named("R6_20m_100ms_4f_codel"));
        assert_eq!(many.len(), 10);
        for draw in &many {
            let (long, finite) = draw.starts.split_at(4);
            assert!(long.iter().all(|s| (5.0..5.05).contains(s)));
            assert!(finite.iter().all(|s| (20.0..20.05).contains(s)));
        }
        assert_eq!(draws(&truth, named("R1_100m_10ms_codel")).len(), 3);
    }
}
