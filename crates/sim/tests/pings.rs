//! Requests in datagrams, by the clock and one at a time.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_apps::{Phase, PingConfig, PingPace, PingSample};
use sojourn_net::{Bytes, Dscp, Duration, Instant, IpVersion, Rate};
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LineConfig, LinkConfig, Loss, Traffic};
use sojourn_sim::run;

const MS: Duration = Duration::from_millis(1);

/// Pings over a link of 1 Mbit/s with 20 ms of round trip besides, for 20 s.
fn records(traffic: Traffic, loss: f64) -> Records {
    let link = LinkConfig::new("up".to_owned(), Rate::mbit(1), "pfifo".parse().unwrap());
    let config = Config {
        seed: 1,
        duration: Duration::from_secs(20),
        measure_from: Duration::ZERO,
        sample: Duration::from_secs(1),
        links: vec![LinkConfig {
            line: LineConfig {
                loss: Loss::Random(loss),
                ..LineConfig::default()
            },
            ..link
        }],
        flows: vec![FlowConfig {
            name: "ping".to_owned(),
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
    };
    run(&config, &mut |_| true).unwrap().unwrap()
}

fn back_to_back(timeout: Duration) -> Traffic {
    Traffic::datagrams(PingConfig {
        pace: PingPace::BackToBack { timeout },
        payload: Some(Bytes(1)),
    })
}

/// What a datagram of 1 B takes: 43 B at 1 Mbit/s, and the way back.
const ROUND_TRIP: Duration = Duration::from_micros(43 * 8 + 20_000);

fn gap(pair: &[PingSample]) -> Duration {
    pair[1].sent.since(pair[0].sent)
}

#[test]
fn a_request_follows_the_reply_to_the_one_before() {
    let records = records(back_to_back(MS.times(1_000)), 0.0);
    let pings = &records.flows[0].pings;
    // 20 s of round trips, the last of which the end overtakes.
    let whole = 20_000_000 / 20_344;
    assert_eq!(pings.len(), whole + 1);
    assert!(pings[..whole].iter().all(|p| p.rtt == Some(ROUND_TRIP)));
    assert!(pings.windows(2).all(|pair| gap(pair) == ROUND_TRIP));
    assert_eq!(pings[whole].rtt, None);
}

#[test]
fn a_request_that_is_lost_is_given_up_after_the_time_out() {
    let records = records(back_to_back(MS.times(300)), 0.1);
    let pings = &records.flows[0].pings;
    let lost = pings.iter().filter(|p| p.rtt.is_none()).count();
    assert!(lost > 10, "{lost}");
    for pair in pings.windows(2) {
        let wanted = pair[0].rtt.unwrap_or(MS.times(300));
        assert_eq!(gap(pair), wanted);
    }
}

#[test]
fn a_reply_after_the_timeout_is_recorded() {
    let records = records(back_to_back(MS.times(15)), 0.0);
    let pings = &records.flows[0].pings;
    assert!(pings.windows(2).all(|pair| gap(pair) == MS.times(15)));
    assert!(
        pings[..pings.len() - 2]
            .iter()
            .all(|p| p.rtt == Some(ROUND_TRIP))
    );
}

#[test]
fn datagrams_by_the_clock_are_as_large_as_their_payload() {
    let every = Traffic::datagrams(PingConfig {
        pace: PingPace::Every {
            interval: MS.times(200),
            phase: Phase::Fixed(MS),
        },
        payload: Some(Bytes(60)),
    });
    let records = records(every, 0.2);
    let pings = &records.flows[0].pings;
    assert_eq!(pings.len(), 100);
    assert_eq!(pings[0].sent, Instant::from_millis(1));
    assert!(pings.windows(2).all(|pair| gap(pair) == MS.times(200)));
    assert!(pings.iter().any(|p| p.rtt.is_none()));
    let totals = records.links[0].totals;
    assert_eq!(totals.sent_bytes, totals.sent_packets * (42 + 60));
}
