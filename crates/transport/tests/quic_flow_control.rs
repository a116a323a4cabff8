//! Flow control of QUIC (RFC 9000 §4).
//!
//! `make reference` compares what the tests print with the tables of `docs/validation/quic.md`.

mod quic_path;

use quic_path::connection::{Connection, Transfer};
use quic_path::{Path, To, Way};
use sojourn_net::{Duration, Instant};
use sojourn_transport::quic::{Endpoint, FlowControl, Params, Role};

const MS: fn(u64) -> Instant = Instant::from_millis;
/// 100 ms there and back.
const HALF: Duration = Duration::from_millis(50);

fn params(data: u64, stream_data: u64) -> Params {
    Params {
        flow: FlowControl { data, stream_data },
        ..Params::default()
    }
}

fn open(params: &Params, response: u64, ways: (Way, Way)) -> Connection {
    let transfer = Transfer {
        request: 400,
        response,
    };
    Connection::open(params, transfer, Path::new(ways.0, ways.1, 1))
}

fn ways() -> (Way, Way) {
    (Way::of_delay(HALF), Way::of_delay(HALF))
}

#[test]
fn a_sender_stops_at_the_limit_of_the_stream_or_of_the_connection() {
    for (data, stream_data) in [(100_000, 1 << 30), (1 << 30, 100_000)] {
        let mut connection = open(&params(data, stream_data), 1_000_000, ways());
        connection.pause(MS(0), MS(20_000));
        connection.run(Duration::from_secs(19));
        assert_eq!(connection.client.delivered_bytes(), 100_000);
        assert!(connection.server.counters().blocked > 0);
        connection.run(Duration::from_secs(60));
        assert_eq!(connection.client.delivered_bytes(), 1_000_000);
    }
}

#[test]
fn a_small_limit_allows_one_window_per_round_trip() {
    let seconds = |flow: Params| {
        let mut connection = open(&flow, 5_000_000, ways());
        connection.run(Duration::from_secs(600));
        connection.completed.unwrap().as_secs_f64()
    };
    let free = seconds(Params::default());
    println!(
        "\n# flow_control\n| limit | bytes | completion time, s | one window per round trip, s |"
    );
    println!("|---|---|---|---|\n| default | – | {free:.2} | – |");
    for limit in [100_000, 400_000] {
        for (name, params) in [
            ("max_data", params(limit, 1 << 30)),
            ("max_stream_data", params(1 << 30, limit)),
        ] {
            let (got, want) = (
                seconds(params),
                5_000_000.0 / f64::from(u32::try_from(limit).unwrap()) * 0.1,
            );
            println!("| `{name}` | {limit} | {got:.2} | {want:.2} |");
            assert!((want..want + free).contains(&got), "{got} for {want}");
        }
    }
}

#[test]
fn a_lost_limit_is_sent_again() {
    // Everything the client sends from 1 s to 1.3 s is lost, limits included.
    let clean = {
        let mut connection = open(&params(1 << 30, 50_000), 2_000_000, ways());
        connection.run(Duration::from_secs(600));
        connection.completed.unwrap()
    };
    let (mut there, back) = ways();
    there.dark = Some(MS(1_000)..MS(1_300));
    let mut connection = open(&params(1 << 30, 50_000), 2_000_000, (there, back));
    connection.run(Duration::from_secs(600));
    let took = connection.completed.unwrap().since(clean);
    // The outage, and a probe time-out or two.
    assert!(took > Duration::from_millis(200), "{took}");
    assert!(took < Duration::from_millis(1_300), "{took}");
}

#[test]
fn limits_get_through_when_a_third_of_all_packets_is_lost() {
    for seed in 0..40 {
        let (mut there, mut back) = ways();
        (there.loss, back.loss) = (300, 300);
        let transfer = Transfer {
            request: 20_000,
            response: 200_000,
        };
        let params = Params {
            idle_timeout: Duration::from_secs(36_000),
            ..params(10_000, 4_000)
        };
        let mut connection = Connection::open(&params, transfer, Path::new(there, back, seed));
        connection.run(Duration::from_secs(100_000));
        assert!(connection.completed.is_some(), "seed {seed}");
        assert_eq!(connection.client.delivered_bytes(), 200_000);
    }
}

#[test]
fn a_reader_that_pauses_for_minutes_finds_the_connection_alive() {
    let mut connection = open(&params(1 << 30, 60_000), 500_000, ways());
    connection.pause(MS(300), MS(400_000));
    connection.run(Duration::from_secs(399));
    let before = connection.client.delivered_bytes();
    assert!(before < 200_000, "{before}");
    // Repeated every ten seconds, with an idle time-out of thirty.
    let repeated = connection
        .log
        .iter()
        .filter(|e| e.to == To::Client && e.at > MS(10_000) && !e.data);
    let gaps: Vec<_> = repeated.map(|e| e.at).collect();
    let gaps: Vec<_> = gaps.windows(2).map(|w| w[1].since(w[0])).collect();
    assert!(gaps.len() >= 37, "{gaps:?}");
    assert!(
        gaps.iter().all(|gap| *gap == Duration::from_secs(10)),
        "{gaps:?}"
    );
    connection.run(Duration::from_secs(600));
    assert_eq!(connection.client.delivered_bytes(), 500_000);
    assert!(connection.completed.unwrap() < MS(402_000));
}

#[test]
fn a_stream_that_is_blocked_lets_others_pass() {
    // Two streams of one connection, the first far above its limit; nothing of it is read in time.
    let (mut out, params) = (Vec::new(), params(1 << 30, 10_000));
    let mut client = Endpoint::new(Role::Client, &params);
    let mut server = Endpoint::new(Role::Server, &params);
    client.write(MS(0), 0, 100_000, true, &mut out);
    client.write(MS(0), 1, 9_000, true, &mut out);
    client.write(MS(0), 2, 0, true, &mut out);
    client.connect(MS(0), &mut out);
    server.set_reading(MS(0), false, &mut Vec::new());
    let (mut now, mut back) = (MS(0), Vec::new());
    for _ in 0..20 {
        now += HALF;
        for datagram in out.drain(..) {
            server.on_datagram(now, &datagram, false, &mut back);
        }
        server.on_timer(now, &mut back);
        now += HALF;
        for datagram in back.drain(..) {
            client.on_datagram(now, &datagram, false, &mut out);
        }
        client.on_timer(now, &mut out);
    }
    assert_eq!(server.delivered_of(0), 10_000);
    assert!(server.is_finished(1) && server.is_finished(2));
    assert!(!client.all_acknowledged());
}
