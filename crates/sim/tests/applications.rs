//! Sessions, requests, incast and video over paths whose times are known.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use sojourn_apps::{
    Amount, ApplicationConfig, DashConfig, Exchange, JitterBuffer, Phase, RequestsConfig,
    SessionsConfig, Spacing, Transport, UdpConfig, VoipConfig, Wait,
};
use sojourn_net::{Bytes, Dscp, Duration, Instant, IpVersion, Rate};
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::SenderParams;

/// One user behind a link of `mbit` with 100 ms of round trip.
fn config(mbit: u64, packets: u32, seconds: u64, app: Arc<dyn ApplicationConfig>) -> Config {
    let one_way = Hop::Delay(Duration::from_millis(50));
    let qdisc = format!("pfifo limit {packets}").parse().unwrap();
    Config {
        seed: 1,
        duration: Duration::from_secs(seconds),
        measure_from: Duration::ZERO,
        sample: Duration::from_secs(1),
        links: vec![LinkConfig::new("down".to_owned(), Rate::mbit(mbit), qdisc)],
        flows: vec![FlowConfig {
            name: "user".to_owned(),
            forward: vec![one_way, Hop::Link(0)],
            reverse: vec![one_way],
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic: Traffic::App(app),
        }],
        keep_events: false,
        sample_state: false,
    }
}

fn records(config: &Config) -> Records {
    run(config, &mut |_| true).unwrap().unwrap()
}

fn durations_ms(records: &Records) -> Vec<f64> {
    let whole = records.transactions.iter().filter_map(|t| {
        let took = t.completed?.since(t.started);
        Some(took.as_millis_f64())
    });
    whole.collect()
}

fn rounds(servers: u32, bytes: u64, rounds: u32) -> RequestsConfig {
    RequestsConfig {
        exchange: Exchange {
            transport: Transport::Tcp,
            tcp: SenderParams::default(),
            request: Bytes(400),
        },
        servers,
        response: Amount::Fixed(Bytes(bytes)),
        work: Duration::ZERO,
        think: Wait::Fixed(Duration::from_millis(300)),
        rounds: Some(rounds),
    }
}

#[test]
fn a_request_takes_a_round_trip_and_the_first_a_handshake_more() {
    let mut asked = rounds(1, 1_000, 3);
    asked.work = Duration::from_millis(25);
    let app = Arc::new(asked);
    let records = records(&config(1_000, 1_000, 10, app));
    let took = durations_ms(&records);
    assert_eq!(took.len(), 3);
    for (took, wanted) in took.iter().zip([225.0, 125.0, 125.0]) {
        assert!(
            *took >= wanted && *took < wanted + 0.1,
            "{took}: not {wanted}"
        );
    }
    let started: Vec<_> = records.transactions.iter().map(|t| t.started).collect();
    let gap = started[2].since(started[1]).as_millis_f64();
    assert!((gap - 425.0).abs() < 0.1, "{gap}");
    assert_eq!(records.apps[0].connections, 1);
}

#[test]
fn an_incast_ends_with_its_last_response() {
    // 40 responses of 10 segments meet in a link of 100 Mbit/s: 400 segments of 121 us.
    let big = Arc::new(rounds(40, 14_480, 2));
    let took = durations_ms(&records(&config(100, 1_000, 10, big)));
    assert_eq!(took.len(), 2);
    assert!(took[1] > 148.0 && took[1] < 150.0, "{}", took[1]);
    // A queue of 100 packets loses three of four; what is left waits for its time-outs.
    let small = Arc::new(rounds(40, 14_480, 2));
    let lost = records(&config(100, 100, 20, small));
    let took = durations_ms(&lost);
    assert_eq!(took.len(), 2);
    assert!(took[1] > 250.0, "{}", took[1]);
    assert!(lost.links[0].totals.drops_overlimit > 200);
    assert_eq!(lost.flows[0].totals.delivered_bytes, 2 * 40 * 14_480);
}

#[test]
fn sessions_come_as_often_as_they_are_to_and_their_slots_are_used_again() {
    let sessions = SessionsConfig {
        exchange: Exchange {
            transport: Transport::Tcp,
            tcp: SenderParams::default(),
            request: Bytes(400),
        },
        every: Wait::Exponential {
            mean: Duration::from_millis(10),
        },
        response: Amount::Pareto {
            least: Bytes(1_000),
            shape: 1.5,
        },
    };
    let app = Arc::new(sessions);
    let records = records(&config(1_000, 1_000, 200, app));
    // 20,000 arrivals of a Poisson process, whose deviation is 141.
    let opened = records.apps[0].connections;
    assert!(opened.abs_diff(20_000) < 500, "{opened}");
    assert_eq!(records.transactions.len() as u64, opened);
    let took = durations_ms(&records);
    assert!(took.len() as u64 > opened - 100);
    let shortest = took.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(shortest > 200.0 && shortest < 200.1, "{shortest}");
    let whole = records
        .transactions
        .iter()
        .filter(|t| t.completed.is_some());
    let bytes: u64 = whole.map(|t| t.bytes).sum();
    let delivered = records.flows[0].totals.delivered_bytes;
    assert!(delivered >= bytes && delivered < bytes + 10_000_000);
}

fn video(mbit: u64, seconds: u64) -> Records {
    let ladder = [1, 2, 4].map(Rate::mbit).to_vec();
    let dash = DashConfig {
        phase: Phase::Fixed(Duration::ZERO),
        exchange: Exchange {
            transport: Transport::Tcp,
            tcp: SenderParams::default(),
            request: Bytes(400),
        },
        ladder,
        segment: Duration::from_secs(4),
        buffer: Duration::from_secs(20),
        start: Duration::from_secs(4),
    };
    let app = Arc::new(dash);
    records(&config(mbit, 100, seconds, app))
}

#[test]
fn video_takes_the_quality_that_fits_and_pauses_when_its_buffer_is_full() {
    let wide = video(20, 200);
    let player = wide.apps[0].player.unwrap();
    assert_eq!(player.stalls, 0);
    assert!(player.startup.unwrap() < Duration::from_secs(1));
    // Once full, a segment of 2 MB every 4 s: on and off.
    let late: Vec<Instant> = wide.transactions.iter().map(|t| t.started).collect();
    let (last, before) = (late[late.len() - 1], late[late.len() - 2]);
    let gap = last.since(before).as_millis_f64();
    assert!((gap - 4_000.0).abs() < 1.0, "{gap}");
    assert_eq!(wide.transactions.last().unwrap().bytes, 2_000_000);
    // 3 Mbit/s carry 2 at four fifths, not 4.
    let middle = video(3, 200);
    let player = middle.apps[0].player.unwrap();
    let mean = player.bits_per_s_sum / player.segments;
    assert!((1_700_000..=2_000_000).contains(&mean), "{mean}");
    assert_eq!(player.stalls, 0);
}

#[test]
fn a_link_slower_than_the_lowest_quality_stalls_the_video() {
    let ladder = vec![Rate::mbit(2)];
    let dash = DashConfig {
        phase: Phase::Fixed(Duration::ZERO),
        exchange: Exchange {
            transport: Transport::Tcp,
            tcp: SenderParams::default(),
            request: Bytes(400),
        },
        ladder,
        segment: Duration::from_secs(4),
        buffer: Duration::from_secs(20),
        start: Duration::from_secs(4),
    };
    let app = Arc::new(dash);
    let records = records(&config(1, 100, 200, app));
    let player = records.apps[0].player.unwrap();
    // 4 s of video take 8.4 s of the link: it plays for 4 and waits for 4.4 of each.
    assert!(player.stalls >= 20, "{}", player.stalls);
    let stalled = player.stalled.as_secs_f64();
    assert!((95.0..110.0).contains(&stalled), "{stalled}");
}

#[test]
fn a_voice_hears_delay_and_loss() {
    let call = |flood_mbit: u64| {
        let app = Arc::new(rounds(1, 1_000, 1));
        // 4 packets of the flood take 48 ms, less than the jitter buffer.
        let mut config = config(1, 4, 60, app);
        config.flows[0].traffic = Traffic::datagrams(VoipConfig {
            phase: Phase::Fixed(Duration::ZERO),
            jitter_buffer: JitterBuffer::Fixed(Duration::from_millis(60)),
        });
        if flood_mbit > 0 {
            let mut flood = config.flows[0].clone();
            flood.name = "flood".to_owned();
            flood.traffic = Traffic::datagrams(UdpConfig {
                phase: Phase::Fixed(Duration::ZERO),
                rate: Rate::mbit(flood_mbit),
                payload: Bytes(1_448),
                spacing: Spacing::Even { spread: 0.5 },
            });
            config.flows.push(flood);
        }
        records(&config).apps[0].call.unwrap()
    };
    let alone = call(0);
    // 60 s of packets every 20 ms, less those that could not be played; 214 B take 1.712 ms.
    assert!((2_990..=3_000).contains(&alone.spoken), "{}", alone.spoken);
    assert_eq!((alone.lost, alone.late, alone.runs), (0, 0, 0));
    let delay = alone.delay.unwrap().as_millis_f64();
    assert!((delay - 131.712).abs() < 0.01, "{delay}");
    let flooded = call(2);
    assert!(flooded.lost > 800 && flooded.runs > 400, "{flooded:?}");
    assert!(flooded.runs <= flooded.lost + flooded.late && flooded.longest_run >= 2);
}

#[test]
fn datagrams_of_a_poisson_process_have_its_mean_and_its_queue() {
    let delay = |spacing| {
        let app = Arc::new(rounds(1, 1_000, 1));
        let mut config = config(10, 1_000, 200, app);
        config.flows[0].traffic = Traffic::datagrams(UdpConfig {
            phase: Phase::Fixed(Duration::ZERO),
            rate: Rate::mbit(5),
            payload: Bytes(1_208),
            spacing,
        });
        let records = records(&config);
        let sent = records.flows[0].totals.sent_packets;
        // 5 Mbit/s of 1,208 B for 200 s: 103,476, of which the deviation is 322.
        assert!(sent.abs_diff(103_476) < 1_300, "{sent}");
        records.links[0].sojourn.mean().unwrap()
    };
    assert!(delay(Spacing::CONSTANT) < 1.0);
    // M/D/1: packets of 1,250 B take 1 ms; load 0.5174, mean wait rho / (2 (1 - rho)) ms.
    let wait = delay(Spacing::Poisson) / 1e6;
    assert!((wait / 0.5361 - 1.0).abs() < 0.04, "{wait} ms");
}
