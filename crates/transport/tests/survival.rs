//! Every congestion control over TCP on networks that break implementations.
//!
//! The network checks each acknowledgement against what arrived, each byte against its order, and the
//! sender's pauses against its time-out.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod network;

use network::{End, Network, Transfer, World};
use sojourn_net::{Duration, Rate};
use sojourn_transport::{CcKind, MSS, SenderParams, State};

const MS: Duration = Duration::from_millis(1);
const SEEDS: u64 = 8;
/// 20 ms each way.
const PLAIN: Network = Network {
    data_loss: 0,
    ack_loss: 0,
    duplication: 0,
    marking: 0,
    delay: Duration::from_millis(20),
    jitter: Duration::ZERO,
    window_closed: None,
    peer_dies: None,
    bottleneck: None,
};

/// Transfers of `segments` segments with each control over `network`, with and without pacing.
fn transfers(network: Network, segments: u64) -> impl Iterator<Item = (Transfer, End)> {
    let runs = CcKind::ALL
        .into_iter()
        .flat_map(|cc| (0..SEEDS).map(move |seed| (cc, seed)));
    runs.map(move |(cc, seed)| {
        let ways = cc.slow_starts();
        let params = SenderParams {
            cc: cc.into(),
            slow_start: ways.get(usize::try_from(seed % 4).unwrap()).copied(),
            pacing: seed % 2 == 1,
            ecn: seed % 4 > 1,
            accurate_ecn: seed % 8 > 5,
            seed,
            ..SenderParams::default()
        };
        let transfer = Transfer {
            seed,
            network,
            params,
            writes: vec![(Duration::ZERO, segments * u64::from(MSS))],
        };
        let run = std::panic::catch_unwind(|| World::new(transfer.clone()).run());
        let end = run.unwrap_or_else(|_| panic!("{transfer:#?}"));
        (transfer, end)
    })
}

/// All arrive, each within this time.
fn all_arrive(network: Network, within: Duration) {
    for (transfer, end) in transfers(network, 300) {
        assert_eq!(end.state, State::Done, "{transfer:#?}\n{end:?}");
        let took = end.at.as_nanos();
        assert!(took < within.as_nanos(), "{transfer:#?}\n{end:?}");
    }
}

#[test]
fn half_of_all_packets_lost() {
    let network = Network {
        data_loss: 500,
        ack_loss: 500,
        ..PLAIN
    };
    let (mut done, mut all) = (0, 0);
    // A retransmission is answered with a probability of 1/4, so one in a hundred series of sixteen is
    // not, and more than some dozens of segments are rarely delivered.
    for (transfer, end) in transfers(network, 20) {
        all += 1;
        match end.state {
            State::Done => done += 1,
            // Seven SYNs or sixteen time-outs unanswered.
            State::Aborted => assert!(end.counters.timeouts >= 6, "{transfer:#?}\n{end:?}"),
            state => panic!("{state:?}: {transfer:#?}"),
        }
    }
    println!("\n# half_lost\n| transfers | complete |\n|---|---|\n| {all} | {done} |");
    assert!(2 * done > all, "only {done} of {all}");
}

#[test]
fn packets_overtake_each_other() {
    let network = Network {
        jitter: MS.times(60),
        ..PLAIN
    };
    all_arrive(network, MS.times(60_000));
}

#[test]
fn half_of_all_packets_come_twice_or_more() {
    let network = Network {
        duplication: 500,
        jitter: MS.times(5),
        ..PLAIN
    };
    all_arrive(network, MS.times(30_000));
}

#[test]
fn every_packet_is_marked() {
    let network = Network {
        marking: 1_000,
        ..PLAIN
    };
    all_arrive(network, MS.times(60_000));
}

#[test]
fn a_window_that_closes_for_ten_seconds_is_asked_for_until_it_opens() {
    // The interval of window probes doubles, so each lost answer doubles the wait for the next.
    for (ack_loss, seconds) in [(0, 25), (300, 200)] {
        let network = Network {
            ack_loss,
            window_closed: Some((MS.times(100), MS.times(10_000))),
            ..PLAIN
        };
        for (transfer, end) in transfers(network, 300) {
            assert_eq!(end.state, State::Done, "{transfer:#?}\n{end:?}");
            let ms = end.at.as_nanos() / 1_000_000;
            assert!(
                (10_000..1_000 * seconds).contains(&ms),
                "{transfer:#?}\n{end:?}"
            );
        }
    }
}

#[test]
fn a_queue_of_one_packet() {
    for mbit in [1, 10] {
        let network = Network {
            bottleneck: Some((Rate::mbit(mbit), 1)),
            ..PLAIN
        };
        all_arrive(network, MS.times(120_000));
    }
}

#[test]
fn a_round_trip_of_ten_seconds() {
    let network = Network {
        delay: MS.times(5_000),
        ..PLAIN
    };
    all_arrive(network, MS.times(1_500_000));
}

#[test]
fn a_peer_that_dies_is_given_up_after_sixteen_time_outs() {
    let network = Network {
        peer_dies: Some(MS.times(100)),
        ..PLAIN
    };
    for (transfer, end) in transfers(network, 300) {
        assert_eq!(end.state, State::Aborted, "{transfer:#?}\n{end:?}");
        assert_eq!(end.counters.timeouts, 15, "{transfer:#?}\n{end:?}");
        // 0.2 s doubled nine times, then two minutes each.
        let seconds = end.at.as_nanos() / 1_000_000_000;
        assert!(
            (800..1_300).contains(&seconds),
            "{seconds} s: {transfer:#?}"
        );
    }
}
