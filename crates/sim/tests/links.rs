//! What links do to packets, held against what their settings say.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_apps::{Phase, PingConfig, PingPace, Spacing, UdpConfig};
use sojourn_net::{Bytes, Dscp, Duration, Instant, IpVersion, Rate};
use sojourn_qdisc::{Framing, QdiscSpec};
use sojourn_records::{Records, Signal};
use sojourn_scenario::plan::{
    Change, Config, Distribution, Encapsulation, FlowConfig, Hop, Jitter, LineConfig, LinkConfig,
    Loss, Order, Shaper, Trace, Traffic, WireChange,
};
use sojourn_sim::run;
use sojourn_transport::SenderParams;

const MS: Duration = Duration::from_millis(1);

fn link(name: &str, mbit: u64) -> LinkConfig {
    let qdisc = QdiscSpec::parse("pfifo limit 100").unwrap();
    LinkConfig::new(name.to_owned(), Rate::mbit(mbit), qdisc)
}

/// `traffic` over `link` and back over a wire of 20 ms.
fn over(link: LinkConfig, traffic: Traffic) -> Config {
    Config {
        seed: 1,
        duration: Duration::from_secs(20),
        measure_from: Duration::ZERO,
        sample: MS.times(100),
        links: vec![link],
        flows: vec![FlowConfig {
            name: "flow".to_owned(),
            forward: vec![Hop::Link(0)],
            reverse: vec![Hop::Delay(MS.times(20))],
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic,
        }],
        keep_events: false,
        sample_state: false,
    }
}

fn records(config: &Config) -> Records {
    run(config, &mut |_| true).unwrap().unwrap()
}

fn pings() -> Traffic {
    Traffic::datagrams(PingConfig {
        pace: PingPace::Every {
            interval: Duration::from_millis(10),
            phase: Phase::Fixed(Duration::ZERO),
        },
        payload: None,
    })
}

#[test]
fn a_packet_takes_as_long_as_its_cells() {
    for shaper in [Shaper::Serial, Shaper::Bucket { burst: Bytes(1) }] {
        let config = over(
            LinkConfig {
                shaper,
                encapsulation: Encapsulation {
                    overhead: 32 - 14,
                    mpu: 0,
                    framing: Framing::Atm,
                },
                ..link("dsl", 1)
            },
            pings(),
        );
        let records = records(&config);
        // 98 B on Ethernet, 84 of IP, 116 with PPPoE: three cells of 53 B, 8 us a byte.
        let time = Duration::from_micros(3 * 53 * 8);
        let sent = records.links[0].totals.sent_packets;
        assert!(sent > 1_900);
        assert_eq!(records.links[0].sending, time.times(sent));
        let wire = if shaper == Shaper::Serial {
            time
        } else {
            Duration::ZERO
        };
        for ping in &records.flows[0].pings[..1_900] {
            assert_eq!(ping.rtt, Some(MS.times(20) + wire));
        }
    }
}

/// Full-sized datagrams at `mbit`.
fn stream(mbit: u64) -> Traffic {
    Traffic::datagrams(UdpConfig {
        phase: Phase::Fixed(Duration::ZERO),
        rate: Rate::mbit(mbit),
        payload: Bytes(1_472),
        spacing: Spacing::CONSTANT,
    })
}

#[test]
fn losses_on_the_wire_are_counted_apart_from_drops_of_the_queue() {
    let mut config = over(
        LinkConfig {
            delay: MS.times(5),
            line: LineConfig {
                loss: Loss::Random(0.1),
                ..LineConfig::PERFECT
            },
            ..link("lossy", 10)
        },
        stream(20),
    );
    config.keep_events = true;
    let all = records(&config);
    let totals = all.links[0].totals;
    assert!(totals.drops_overlimit > 10_000, "{totals:?}");
    let share = ratio(totals.lost_packets, totals.sent_packets);
    assert!((share - 0.1).abs() < 0.01, "{share}");
    let lost = all.events.iter().filter(|e| e.signal == Signal::Lost);
    assert_eq!(lost.count() as u64, totals.lost_packets);
    // What is still on its way are the packets of 5 ms, and one is being sent.
    let arrived = all.flows[0].totals.received_packets;
    let missing = totals.sent_packets - totals.lost_packets - arrived;
    assert!(missing <= 6, "{missing}");
    // Losses have a stream of their own: those of another link differ.
    config.links[0].name = "other".to_owned();
    assert_ne!(
        records(&config).links[0].totals.lost_packets,
        totals.lost_packets
    );
    config.links[0].line.loss = Loss::Random(1.5);
    assert_eq!(config.check().unwrap_err().place, "links[0].loss");
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

#[test]
fn a_connection_survives_a_wire_that_loses_doubles_and_reorders() {
    let mut config = over(
        LinkConfig {
            delay: MS.times(20),
            line: LineConfig {
                loss: Loss::Random(0.02),
                duplicate: 0.05,
                jitter: Some(Jitter {
                    spread: MS.times(5),
                    distribution: Distribution::Pareto,
                    order: Order::Free,
                }),
                drops: Vec::new(),
                ecn: None,
            },
            ..link("bad", 10)
        },
        Traffic::Tcp {
            bytes: Some(1_000_000),
            params: SenderParams::default(),
        },
    );
    config.duration = Duration::from_secs(120);
    let all = records(&config);
    assert_eq!(all.flows[0].totals.delivered_bytes, 1_000_000);
    assert!(all.flows[0].completed.is_some());
    assert!(all.links[0].totals.duplicated_packets > 10);
}

#[test]
fn a_link_changes_at_the_configured_times() {
    for shaper in [
        Shaper::Serial,
        Shaper::Bucket {
            burst: Bytes(15_140),
        },
        Shaper::Tbf {
            burst: Bytes(15_140),
        },
    ] {
        let change = |secs, rate, delay| Change {
            at: Duration::from_secs(secs),
            rate,
            wire: WireChange {
                delay,
                ..WireChange::default()
            },
            ..Change::default()
        };
        let changes = vec![
            change(5, Some(Rate::mbit(2)), None),
            change(10, Some(Rate::mbit(20)), Some(MS.times(30))),
        ];
        let changing = LinkConfig {
            shaper,
            delay: MS.times(10),
            changes,
            ..link("changing", 10)
        };
        let all = records(&over(changing.clone(), stream(40)));
        for (n, sample) in all.links[0].series.iter().enumerate() {
            let mbit = match n {
                0..=49 => 10,
                50..=99 => 2,
                _ => 20,
            };
            // 100 ms of it, and a packet that began before; the bucket has its burst at first.
            let (got, want) = (sample.counters.sent_bytes, mbit * 12_500);
            // Or a packet whose 6 ms at the old rate are 15,140 B at the new one.
            let burst = if n == 0 || n == 100 { 15_140 } else { 0 };
            assert!(
                got.abs_diff(want) <= 1_514 + burst,
                "{shaper:?} {n}: {got} of {want}"
            );
        }
        let used = all.links[0].sending.as_secs_f64() / 20.0;
        assert!((used - 1.0).abs() < 0.001, "{used}");
        let all = records(&over(changing, pings()));
        for ping in &all.flows[0].pings[..1_900] {
            let there = if ping.sent < Instant::ZERO + Duration::from_secs(10) {
                10
            } else {
                30
            };
            let rtt = ping.rtt.unwrap().saturating_sub(MS.times(20 + there));
            assert!(rtt < MS, "{ping:?}");
        }
    }
}

#[test]
fn a_trace_lets_bytes_pass_when_it_says_so() {
    let trace = Trace::new(vec![0, 10, 10, 30]).unwrap();
    let traced = LinkConfig {
        encapsulation: Encapsulation {
            overhead: -10,
            ..Encapsulation::ETHERNET
        },
        rate: trace.mean_rate(),
        trace: Some(trace),
        ..link("cell", 1)
    };
    let all = records(&over(traced.clone(), stream(10)));
    // A packet each opportunity: four in 30 ms for 20 s, but for the one at zero.
    assert_eq!(all.links[0].totals.sent_packets, 4 * 666 + 3 - 1);
    assert!(all.links[0].sending >= Duration::from_millis(19_990));
    // Small packets share one: those that come within a gap leave together at its end.
    let all = records(&over(traced, pings()));
    for ping in &all.flows[0].pings[..1_900] {
        let arrived = (ping.sent + ping.rtt.unwrap()).as_nanos() - 20_000_000;
        let within = arrived % 30_000_000;
        assert!(within == 0 || within == 10_000_000, "{ping:?}");
        assert!(ping.rtt.unwrap() <= MS.times(40));
    }
}

#[test]
fn a_link_is_busy_while_the_shaper_of_its_queue_holds_packets_back() {
    let shaped = |queue: &str, shaper| LinkConfig {
        shaper,
        qdisc: QdiscSpec::parse(queue).unwrap(),
        ..link("fast", 100)
    };
    let trace = Trace::new((0..10).collect()).unwrap();
    let traced = LinkConfig {
        rate: trace.mean_rate(),
        trace: Some(trace),
        ..shaped("cake bandwidth 4mbit", Shaper::Serial)
    };
    let bucket = Shaper::Bucket {
        burst: Bytes(1_514),
    };
    let tbf = Shaper::Tbf {
        burst: Bytes(1_514),
    };
    for link in [
        shaped("cake bandwidth 4mbit", Shaper::Serial),
        shaped("cake bandwidth 4mbit", bucket),
        shaped("cake bandwidth 4mbit", tbf),
        shaped("prio leaf cake bandwidth 4mbit", Shaper::Serial),
        traced,
    ] {
        let name = link.qdisc.to_string();
        // The measured time begins and ends within a hold.
        let busy = |mbit| {
            let mut config = over(link.clone(), stream(mbit));
            config.measure_from = Duration::from_micros(5_000_700);
            let records = records(&config);
            records.links[0].busy.as_secs_f64() / 14.999_3
        };
        let (above, below) = (busy(8), busy(2));
        // On a trace, the time that a packet occupies the link is a mean.
        let most = if link.trace.is_some() { 1.05 } else { 1.001 };
        assert!((0.99..most).contains(&above), "{name}: {above}");
        assert!(below < 0.01, "{name}: {below}");
    }
}

#[test]
fn a_run_with_many_delays_must_be_shorter_than_a_year() {
    let mut config = over(link("link", 1), pings());
    config.duration = Duration::from_secs(365 * 86_400);
    let flow = config.flows[0].clone();
    config.flows = (1..=300)
        .map(|n| FlowConfig {
            name: format!("flow {n}"),
            reverse: vec![Hop::Delay(MS.times(n))],
            ..flow.clone()
        })
        .collect();
    let error = run(&config, &mut |_| true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "duration: too long for 301 links, delays and paced flows; expected at most 5003 hours"
    );
}
