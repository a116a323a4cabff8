//! The QUIC handshake, packet by packet.

mod quic_path;

use quic_path::connection::{Connection, Entry, Transfer};
use quic_path::{Path, To, Way};
use sojourn_net::{Bytes, Duration, Instant, Rate};
use sojourn_transport::CcKind;
use sojourn_transport::quic::{AckPolicy, Params, State};

const MS: fn(u64) -> Duration = Duration::from_millis;
const AT: fn(u64) -> Instant = Instant::from_millis;

fn way() -> Way {
    Way::of_delay(MS(50))
}

/// A request of 400 B and a response of `response`, over 100 ms.
fn fetch(params: &Params, response: u64, to_server: Way, to_client: Way) -> Connection {
    let transfer = Transfer {
        request: 400,
        response,
    };
    let path = Path::new(to_server, to_client, 1);
    let mut connection = Connection::open(params, transfer, path);
    connection.run(Duration::from_secs(600));
    assert_eq!(connection.server.delivered_bytes(), 400);
    assert_eq!(connection.client.delivered_bytes(), response);
    connection
}

fn sent(connection: &Connection, to: To, ms: u64) -> Vec<Entry> {
    let log = connection.log.iter();
    log.filter(|e| e.to == to && e.at == AT(ms))
        .copied()
        .collect()
}

#[test]
fn one_round_trip_precedes_the_request_and_one_follows_it() {
    let connection = fetch(&Params::default(), 1_000, way(), way());
    let first = sent(&connection, To::Server, 0);
    assert_eq!(first.len(), 1);
    assert!(first[0].long && first[0].payload == 1_200);
    // Hello and certificates: 3000 B in three datagrams, 3600 B being allowed.
    let flight = sent(&connection, To::Client, 50);
    assert_eq!(flight.len(), 3);
    assert!(flight[0].payload == 1_200 && flight.iter().all(|e| e.long));
    assert_eq!(connection.connected, Some(AT(100)));
    assert_eq!(connection.completed, Some(AT(200)));
}

#[test]
fn early_data_saves_the_first_round_trip() {
    let params = Params {
        zero_rtt: true,
        ..Params::default()
    };
    let connection = fetch(&params, 1_000, way(), way());
    let first = sent(&connection, To::Server, 0);
    assert!(first.len() == 1 && first[0].data, "{first:?}");
    assert_eq!(connection.completed, Some(AT(100)));
}

#[test]
fn the_initial_window_is_ten_of_the_datagrams_that_a_handshake_has() {
    let params = Params {
        zero_rtt: true,
        pacing: false,
        max_datagram: 1_472,
        ..Params::default()
    };
    let transfer = Transfer {
        request: 200_000,
        response: 1,
    };
    let path = Path::new(way(), way(), 1);
    let mut connection = Connection::open(&params, transfer, path);
    connection.run(Duration::from_secs(600));
    let first = sent(&connection, To::Server, 0);
    assert_eq!(first.len(), 10);
    assert!(first.iter().all(|e| e.payload == 1_200));
    // From the confirmation on, the window is the same number of large ones.
    assert!(connection.log.iter().any(|e| e.payload == 1_472));
    assert!(connection.completed.is_some());
}

#[test]
fn early_data_is_no_loss_with_any_control_though_no_round_trip_was_measured() {
    for cc in CcKind::ALL {
        let end = |zero_rtt, response| {
            let params = Params {
                cc: cc.into(),
                zero_rtt,
                ..Params::default()
            };
            let end = fetch(&params, response, way(), way()).completed.unwrap();
            end.as_nanos() / 1_000_000
        };
        // The certificates, which are not sent again, and what a server may send at once.
        for response in [3_000, 10_000, 100_000] {
            let (early, late) = (end(true, response), end(false, response));
            assert!(
                early <= late,
                "{cc}: {early} ms, {late} ms for {response} B"
            );
        }
    }
}

#[test]
fn early_data_that_is_lost_is_sent_again_once_that_is_known() {
    let early = Params {
        zero_rtt: true,
        ..Params::default()
    };
    let fetch = |drop: std::ops::Range<u32>| {
        let transfer = Transfer {
            request: 5_000,
            response: 1_000,
        };
        let mut lossy = way();
        lossy.drop.push(drop);
        let mut connection = Connection::open(&early, transfer, Path::new(lossy, way(), 1));
        connection.run(Duration::from_secs(60));
        (connection.completed.unwrap(), connection)
    };
    // Five datagrams, the first with the hello.
    let (at, _) = fetch(100..100);
    assert_eq!(at, AT(100));
    // The third is known to be lost an eighth of a round trip after what follows is acknowledged.
    let (at, connection) = fetch(2..3);
    assert_eq!(at, AT(100) + Duration::from_micros(12_500) + MS(100));
    assert_eq!(connection.client.counters().resent, 1);
    // All but the hello: nothing follows that would reveal the loss, so a probe time-out does, once the handshake is
    // confirmed: from 0, 100 ms, 4 times 37.5 ms of variation, 25 ms of delay of acknowledgements.
    let (at, connection) = fetch(1..5);
    assert_eq!(connection.probes, [(AT(275), To::Client)]);
    // It sends two; the others are lost when those are acknowledged, at 375 ms.
    assert_eq!(at, AT(475));
    // And the hello too: as any Initial, after 999 ms.
    let (at, connection) = fetch(0..5);
    assert_eq!(connection.probes[0], (AT(999), To::Client));
    assert!(at < AT(1_600), "{at:?}");
}

#[test]
fn a_server_sends_no_more_than_three_times_what_it_received() {
    let params = Params {
        certificate: 9_000,
        ..Params::default()
    };
    let connection = fetch(&params, 1_000, way(), way());
    let bytes = |ms| -> u64 {
        let sent = sent(&connection, To::Client, ms);
        sent.iter().map(|e| u64::from(e.payload)).sum()
    };
    assert!(bytes(50) > 3_000 && bytes(50) <= 3_600, "{}", bytes(50));
    // The client's acknowledgements validate its address: the rest follows a round trip later.
    assert!(bytes(150) > 5_000, "{}", bytes(150));
    assert_eq!(connection.connected, Some(AT(200)));
    assert_eq!(connection.completed, Some(AT(300)));
}

#[test]
fn a_lost_initial_is_sent_again_after_999_ms_and_then_twice_as_long() {
    let mut lossy = way();
    // A probe time-out sends two packets.
    lossy.drop.push(0..3);
    let connection = fetch(&Params::default(), 1_000, lossy, way());
    let first = [(AT(999), To::Client), (AT(2_997), To::Client)];
    assert_eq!(connection.probes, first);
    assert_eq!(connection.completed, Some(AT(2_997 + 200)));
}

#[test]
fn a_lost_flight_of_the_server_is_sent_again() {
    let mut lossy = way();
    lossy.drop.push(0..3);
    let connection = fetch(&Params::default(), 1_000, way(), lossy);
    // Both sides wait 999 ms: the client from 0, the server from 50 ms.
    assert_eq!(connection.probes[0], (AT(999), To::Client));
    assert!(connection.completed.unwrap() < AT(1_500));
}

#[test]
fn a_client_probes_when_a_server_may_not_speak() {
    // The client's acknowledgements of a flight cut off by the limit are lost.
    let params = Params {
        certificate: 9_000,
        ..Params::default()
    };
    let mut lossy = way();
    lossy.drop.push(1..6);
    let connection = fetch(&params, 1_000, lossy, way());
    // No packet is in flight at 100 ms; the RTT is 100 ms, its variation 50 ms.
    assert_eq!(connection.probes[0], (AT(400), To::Client));
    assert!(connection.completed.is_some());
}

#[test]
fn a_server_that_is_gone_is_given_up() {
    let mut dark = way();
    dark.loss = 1_000;
    let transfer = Transfer {
        request: 400,
        response: 1_000,
    };
    let path = Path::new(dark, way(), 1);
    let mut connection = Connection::open(&Params::default(), transfer, path);
    connection.run(Duration::from_secs(600));
    assert_eq!(connection.client.state(), State::Aborted);
    assert_eq!(connection.now, AT(30_000));
    let sent: Vec<_> = connection.log.iter().map(|e| e.at).collect();
    assert_eq!(sent[0], AT(0));
    assert_eq!(*sent.last().unwrap(), AT(999 * 15));
}

#[test]
fn a_packet_is_sent_again_once_the_third_after_it_is_acknowledged() {
    let params = Params {
        pacing: false,
        ..Params::default()
    };
    let rate = Rate::mbit(10);
    let mut link = way();
    link.rate = Some(rate);
    // The fourth of nine packets with data, all of one window.
    link.drop.push(7..8);
    let connection = fetch(&params, 12_500, way(), link);
    let to_client = || connection.log.iter().filter(|e| e.to == To::Client);
    let flight = to_client().find(|e| e.data).unwrap().at;
    let sent: Vec<_> = to_client().filter(|e| e.at == flight).collect();
    let lost = sent.iter().position(|e| !e.arrives).unwrap();
    // Up to the third after it, which arrives 50 ms after it was sent; its acknowledgement takes 50 ms
    // too.
    let before = sent[..=lost + 3].iter().filter(|e| e.arrives);
    let frames = before.map(|e| rate.serialise(Bytes(u64::from(e.payload) + 42)));
    let expected = frames.fold(flight + MS(100), |at, frame| at + frame);
    let again: Vec<_> = to_client()
        .filter(|e| e.at > flight)
        .map(|e| e.at)
        .collect();
    assert_eq!(again, [expected]);
    assert_eq!(connection.server.counters().lost, 1);
}

#[test]
fn a_lone_packet_waits_for_the_acknowledgement_delay() {
    let policy = AckPolicy {
        every: 10,
        delay: MS(80),
        ..AckPolicy::default()
    };
    for (ack, pure) in [(AckPolicy::default(), 70), (policy, 14)] {
        let params = Params {
            ack,
            pacing: false,
            cc: CcKind::Reno.into(),
            initial_window: 200,
            ..Params::default()
        };
        let connection = fetch(&params, 200_000, way(), way());
        let acks = connection
            .log
            .iter()
            .filter(|e| e.to == To::Server && !e.data && !e.long);
        let acks = acks.count();
        assert!(acks.abs_diff(pure) <= 4, "{ack:?}: {acks}");
    }
}
