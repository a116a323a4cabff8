//! Slow-start exit heuristics over QUIC.
//!
//! `make reference` compares what the tests print with the tables of `docs/validation/quic.md`.

mod quic_path;

use quic_path::connection::{Connection, Transfer};
use quic_path::{Path, To, Way};
use sojourn_net::{Duration, Rate};
use sojourn_transport::quic::Params;
use sojourn_transport::{CcKind, CcSpec, SlowStart};

use SlowStart::{HyStart, HyStartPlusPlus, Standard};

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
        for &way in cc.slow_starts().iter().filter(|&&way| way != Standard) {
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
