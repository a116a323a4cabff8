//! Every congestion control over QUIC on networks that break implementations.
//!
//! A transfer that stalls does not end, or ends with the idle time-out, and is found here.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod quic_path;

use quic_path::connection::{Connection, Transfer};
use quic_path::{Path, To, Way};
use sojourn_net::{Duration, Instant, Rate};
use sojourn_transport::CcKind;
use sojourn_transport::quic::{AckPolicy, FlowControl, Params, State};

const MS: Duration = Duration::from_millis(1);
const SEEDS: u64 = 8;
/// Longer than any back-off that is not a stall.
const PATIENCE: Duration = Duration::from_secs(100_000);
const FETCH: Transfer = Transfer {
    request: 2_000,
    response: 400_000,
};

/// 20 ms each way.
fn plain() -> Way {
    Way::of_delay(MS.times(20))
}

/// Several configurations of each control, with several seeds.
fn params() -> impl Iterator<Item = (u64, Params)> {
    let runs = CcKind::ALL
        .into_iter()
        .flat_map(|cc| (0..SEEDS).map(move |seed| (cc, seed)));
    runs.map(|(cc, seed)| {
        let ways = cc.slow_starts();
        let params = Params {
            cc: cc.into(),
            slow_start: ways.get(usize::try_from(seed % 4).unwrap()).copied(),
            pacing: seed % 2 == 1,
            ecn: seed % 4 > 1,
            zero_rtt: seed > 4,
            ack: AckPolicy {
                every: if seed == 3 { 10 } else { 2 },
                ..AckPolicy::default()
            },
            // A stall ends here too, and is found.
            idle_timeout: Duration::from_secs(36_000),
            seed,
            ..Params::default()
        };
        (seed, params)
    })
}

/// Runs a transfer; checks that each byte arrives once unless an end gives up.
fn run(params: &Params, transfer: Transfer, ways: (Way, Way), seed: u64) -> Connection {
    let mut connection = Connection::open(params, transfer, Path::new(ways.0, ways.1, seed));
    finish(&mut connection, transfer, params);
    connection
}

fn finish(connection: &mut Connection, transfer: Transfer, params: &Params) {
    connection.run(PATIENCE);
    let (client, server) = (&connection.client, &connection.server);
    assert!(client.delivered_bytes() <= transfer.response, "{params:?}");
    assert!(server.delivered_bytes() <= transfer.request, "{params:?}");
    if connection.completed.is_some() {
        assert_eq!(client.delivered_bytes(), transfer.response, "{params:?}");
        assert_eq!(server.delivered_bytes(), transfer.request, "{params:?}");
    } else {
        let gave_up = [client.state(), server.state()].contains(&State::Aborted);
        assert!(gave_up, "it stalled: {params:?}");
    }
}

/// All arrive, each within this time.
fn all_arrive(way: &Way, within: Duration) {
    for (seed, params) in params() {
        let connection = run(&params, FETCH, (way.clone(), way.clone()), seed);
        let end = connection.completed;
        let in_time = end.is_some_and(|end| end < Instant::ZERO + within);
        assert!(in_time, "{end:?}: {params:?}");
    }
}

#[test]
fn half_of_all_packets_lost() {
    let mut way = plain();
    way.loss = 500;
    let transfer = Transfer {
        request: 400,
        response: 30_000,
    };
    let (mut done, mut all) = (0, 0);
    for (seed, params) in params() {
        let ways = || (way.clone(), way.clone());
        assert!(
            run(&params, transfer, ways(), seed).completed.is_some(),
            "{params:?}"
        );
        // With the usual idle time-out some are given up; their number is printed.
        let usual = Params {
            idle_timeout: Params::default().idle_timeout,
            ..params
        };
        all += 1;
        done += u32::from(run(&usual, transfer, ways(), seed).completed.is_some());
    }
    println!("{done} of {all} arrived within an idle time-out of 30 s");
    assert!(2 * done > all, "only {done} of {all}");
}

#[test]
fn packets_overtake_each_other() {
    let mut way = plain();
    way.jitter = MS.times(60);
    all_arrive(&way, MS.times(60_000));
}

#[test]
fn half_of_all_packets_come_twice() {
    let mut way = plain();
    (way.duplication, way.jitter) = (500, MS.times(5));
    all_arrive(&way, MS.times(30_000));
}

#[test]
fn every_packet_is_marked() {
    let mut way = plain();
    way.marking = 1_000;
    all_arrive(&way, MS.times(60_000));
}

#[test]
fn a_reader_that_pauses_for_ten_seconds() {
    for (loss, seconds) in [(0, 12), (300, 200)] {
        for (seed, usual) in params() {
            let params = Params {
                flow: FlowControl {
                    data: 1 << 20,
                    stream_data: 20_000,
                },
                ..usual
            };
            let mut there = plain();
            there.loss = loss;
            let path = Path::new(there, plain(), seed);
            let mut connection = Connection::open(&params, FETCH, path);
            connection.pause(Instant::from_millis(50), Instant::from_millis(10_000));
            finish(&mut connection, FETCH, &params);
            let end = connection.completed.unwrap();
            let times = Instant::from_millis(10_000)..Instant::from_millis(1_000 * seconds);
            assert!(times.contains(&end), "{end:?}: {params:?}");
        }
    }
}

#[test]
fn a_queue_of_one_packet() {
    for mbit in [1, 10] {
        let mut way = plain();
        (way.rate, way.limit) = (Some(Rate::mbit(mbit)), 1);
        for (seed, params) in params() {
            let connection = run(&params, FETCH, (plain(), way.clone()), seed);
            let end = connection.completed.unwrap();
            assert!(
                end < Instant::from_millis(120_000),
                "{end:?} at {mbit} Mbit/s: {params:?}"
            );
            assert!(connection.path.dropped[To::Client as usize] > 0);
        }
    }
}

#[test]
fn a_round_trip_of_ten_seconds() {
    all_arrive(&Way::of_delay(MS.times(5_000)), MS.times(300_000));
}

#[test]
fn a_client_that_dies_is_given_up_after_the_idle_time_out() {
    for (seed, usual) in params() {
        let params = Params {
            idle_timeout: Params::default().idle_timeout,
            ..usual
        };
        let mut dark = plain();
        dark.dark = Some(Instant::from_millis(100)..Instant::MAX);
        let connection = run(&params, FETCH, (dark, plain()), seed);
        assert_eq!(connection.server.state(), State::Aborted, "{params:?}");
        // From the client's last datagram, or the first one sent after it.
        let end = connection.now.as_nanos() / 1_000_000;
        assert!((30_050..30_300).contains(&end), "{end} ms: {params:?}");
        assert!(connection.server.counters().probe_timeouts >= 5);
    }
}
