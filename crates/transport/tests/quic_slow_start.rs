//! Slow-start exit heuristics over QUIC.
//!
//! `make reference` compares what the tests print with the tables of `docs/validation/quic.md`.

#![expect(clippy::unwrap_used, reason = "a failed test")]

mod quic_path;

use quic_path::connection::{Connection, Transfer};
use quic_path::{Path, To, Way};
use sojourn_net::{Duration, Instant, Rate};
use sojourn_transport::quic::Params;
use sojourn_transport::{CcKind, CcSpec, SlowStart};

use SlowStart::{CarefulResume, HyStart, HyStartPlusPlus, RapidStart, Search, Standard};

const FETCH: Transfer = Transfer {
    request: 400,
    response: 20_000_000,
};

/// 20 MB over this round trip, through a link with a FIFO if there is one.
fn fetch(params: Params, rtt_ms: u64, link: Option<(u64, usize)>) -> Connection {
    let way = Way::of_delay(Duration::from_millis(rtt_ms / 2));
    let mut to_client = way.clone();
    if let Some((mbit, limit)) = link {
        to_client.rate = Some(Rate::mbit(mbit));
        to_client.limit = limit;
    }
    let mut connection = Connection::open(&params, FETCH, Path::new(way, to_client, 1));
    connection.run(Duration::from_secs(600));
    assert!(connection.completed.is_some());
    connection
}

fn params(cc: CcKind, slow_start: Option<SlowStart>) -> Params {
    Params {
        cc: cc.into(),
        slow_start,
        ..Params::default()
    }
}

#[test]
fn a_way_out_of_slow_start_spares_the_queue() {
    println!("\n# quic_slow_start\n| control | `slow_start` | packets dropped |");
    println!("|---|---|---|");
    let dropped = |cc, way: Option<SlowStart>| {
        let connection = fetch(params(cc, way), 50, Some((100, 400)));
        connection.path.dropped[To::Client as usize]
    };
    let shown = |cc, way: SlowStart| {
        let packets = dropped(cc, Some(way));
        println!("| `{cc}` | `{way}` | {packets} |");
        packets
    };
    for cc in [CcKind::Cubic, CcKind::Reno, CcKind::HighSpeed] {
        let standard = shown(cc, Standard);
        assert!(standard > 300, "{cc}: {standard}");
        let leaves_early = |way: &&SlowStart| [HyStart, HyStartPlusPlus].contains(*way);
        for &way in cc.slow_starts().iter().filter(leaves_early) {
            let fewer = shown(cc, way);
            assert!(
                3 * fewer < 2 * standard,
                "{cc}, {way}: {fewer} of {standard}"
            );
        }
    }
    let usual = dropped(CcKind::Cubic, None);
    assert_eq!(usual, dropped(CcKind::Cubic, Some(HyStartPlusPlus)));
    assert_ne!(usual, dropped(CcKind::Cubic, Some(HyStart)));
    assert_eq!(
        dropped(CcKind::Reno, None),
        dropped(CcKind::Reno, Some(Standard))
    );
}

#[test]
fn the_constants_of_hystart_plus_plus_apply() {
    let dropped = |cc: &str| {
        let params = Params {
            cc: cc.parse().unwrap(),
            slow_start: Some(HyStartPlusPlus),
            ..Params::default()
        };
        fetch(params, 50, Some((100, 400))).path.dropped[To::Client as usize]
    };
    let [usual, standard] = [HyStartPlusPlus, Standard].map(|way| {
        let connection = fetch(params(CcKind::Reno, Some(way)), 50, Some((100, 400)));
        connection.path.dropped[To::Client as usize]
    });
    assert_eq!(dropped("reno hystartpp_css_rounds 5"), usual);
    let never = "reno hystartpp_min_rtt_thresh 10s hystartpp_max_rtt_thresh 10s";
    assert_eq!(dropped(never), standard);
    // Growth by a tenth, not by a quarter, for at most two rounds.
    let careful = dropped("reno hystartpp_css_growth_divisor 10 hystartpp_css_rounds 2");
    assert!(careful < usual, "{careful} of {usual}");
}

#[test]
fn a_path_without_a_queue_ends_no_slow_start() {
    // Acknowledgements of what is paced come over four fifths of a round trip: no train to be taken
    // for a full link, though longer than half of it.
    for way in SlowStart::ALL {
        let connection = fetch(params(CcKind::Cubic, Some(way)), 100, None);
        assert_eq!(connection.server.ssthresh(), None, "{way}");
    }
}

#[test]
fn search_ends_slow_start_in_a_long_queue_and_its_constants_apply() {
    let dropped = |cc: &str| {
        let params = Params {
            cc: cc.parse().unwrap(),
            slow_start: Some(Search),
            ..Params::default()
        };
        // Six bandwidth-delay products; SEARCH fills 4.3 of them.
        fetch(params, 50, Some((100, 2_600))).path.dropped[To::Client as usize]
    };
    assert_eq!(dropped("reno"), 0);
    // Nothing of what was sent must arrive.
    assert!(dropped("reno search_thresh 1") > 0);
}

/// Round trips from the request to the last byte of this transfer in bytes, without a queue.
fn rounds(cc: &str, way: SlowStart, response: u64) -> f64 {
    let params = Params {
        cc: cc.parse().unwrap(),
        slow_start: Some(way),
        ..Params::default()
    };
    let transfer = Transfer {
        request: 400,
        response,
    };
    let one_way = Way::of_delay(Duration::from_millis(300));
    let mut to_client = one_way.clone();
    to_client.rate = Some(Rate::mbit(50));
    let mut connection = Connection::open(&params, transfer, Path::new(one_way, to_client, 1));
    connection.run(Duration::from_secs(600));
    let completed = connection.completed.unwrap();
    completed.since(Instant::ZERO).as_secs_f64() / 0.6
}

#[test]
fn a_jump_or_tripling_saves_round_trips_on_a_satellite_path() {
    // RFC 9959 section 1.4: 5.3 MB over a geostationary satellite took 9 s, and 4 s with Careful Resume.
    println!("\n# quic_rounds\n| `cc` | `slow_start` | round trips |\n|---|---|---|");
    let seen = |cc: &str, way| {
        let rounds = rounds(cc, way, 5_300_000);
        println!("| `{cc}` | `{way}` | {rounds:.1} |");
        rounds
    };
    let standard = seen("cubic", Standard);
    let tripled = seen("cubic", RapidStart);
    // The window of 50 Mbit/s and 600 ms is 2582 packets of 1452 B.
    let resumed = seen("cubic saved_cwnd 2582 saved_rtt 600ms", CarefulResume);
    // 3651 packets: 10 (2^n - 1) and 10 (3^n - 1) / 2 packets are sent in n rounds.
    assert!((8.0..12.0).contains(&standard), "{standard}");
    assert!((1.0..3.5).contains(&(standard - tripled)), "{tripled}");
    assert!(resumed < 0.6 * standard, "{resumed}");
}

#[test]
fn initial_ssthresh_ends_slow_start_unless_a_heuristic_does() {
    let limited: CcSpec = "cubic initial_ssthresh 40".parse().unwrap();
    for (way, ssthresh) in [
        (Some(Standard), Some(40)),
        (Some(HyStartPlusPlus), None),
        (None, None),
    ] {
        let params = Params {
            cc: limited,
            slow_start: way,
            ..Params::default()
        };
        let connection = fetch(params, 100, None);
        assert_eq!(connection.server.ssthresh(), ssthresh, "{way:?}");
    }
}
