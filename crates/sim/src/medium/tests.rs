//! The air, held against Bianchi's model and against sums of times.

use std::num::NonZeroU16;

use sojourn_net::{Bytes, IpVersion, Packet as _};

use super::phy::Mode;
use super::*;
use crate::packet::{Kind, Owner};
use sojourn_scenario::plan::{
    ChannelConfig, DriverLimit, RateControl, Sharing, Standard, StationConfig,
};

const FRAME: Bytes = Bytes(1_514);

fn config(sharing: Sharing, stations: Vec<StationConfig>) -> RadioConfig {
    RadioConfig {
        medium: "air".to_owned(),
        standard: Standard::N,
        driver: DriverLimit::Packets(200),
        stations,
        sharing,
        aggregate_time: RadioConfig::AGGREGATE_TIME,
        aggregate_packets: RadioConfig::AGGREGATE_PACKETS,
        rate_control: RateControl::Fixed,
        channel: ChannelConfig::default(),
    }
}

/// A full-sized packet for client `number`.
fn packet(number: u8) -> Packet {
    let client = sojourn_scenario::plan::Client {
        number,
        receives: true,
    };
    let owner = Owner::new(0, Some(client), IpVersion::V4);
    let pkt = Packet::of_probe(owner, Kind::Udp, Instant::ZERO, 0, NonZeroU16::new(1_472));
    assert_eq!(pkt.size(), FRAME);
    pkt
}

/// Lets `radios` radios, whose drivers always have `waiting` packets for each of `clients`, contend
/// until `end`; returns packets that each radio delivered to each client.
fn saturated(medium: &mut Medium, clients: &[u8], waiting: usize, end: Instant) -> Vec<Vec<u64>> {
    let radios = medium.radios.len();
    let mut under_way = vec![vec![0; clients.len()]; radios];
    let mut delivered = vec![vec![0; clients.len()]; radios];
    let (mut now, mut sent) = (Instant::ZERO, Sent::default());
    while now <= end {
        for (radio, counts) in under_way.iter_mut().enumerate() {
            for (n, count) in counts.iter_mut().enumerate() {
                for _ in *count..waiting {
                    medium.push(radio, now, packet(clients[n]), 0);
                }
                *count = waiting;
            }
        }
        now = medium.next().expect("there is always something to send");
        medium.on_time(now, &mut sent);
        for (n, pkt) in sent
            .arrived
            .drain(..)
            .map(|pkt| (sent.radio, pkt))
            .chain(sent.lost.drain(..))
        {
            let client = clients
                .iter()
                .position(|&c| Some(c) == pkt.owner().client());
            let client = client.expect("one of them");
            under_way[n][client] -= 1;
            delivered[n][client] += 1;
        }
    }
    delivered
}

fn air(radios: u32, config: &RadioConfig, rate: Rate) -> Medium {
    let mut medium = Medium::new("air");
    for link in 0..radios {
        let rng = Rng::new(u64::from(link) + 1);
        medium.add(link, rate, config, rng);
    }
    medium
}

/// The probability of a collision among `n` who always have something to send: the fixed point of
/// G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function" (2000),
/// eq. 7 and 9, with windows from 16 slots, doubled up to six times.
fn bianchi(n: i32) -> f64 {
    let tau = |p: f64| {
        let powers = (2.0 * p).powi(6);
        2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * 17.0 + p * 16.0 * (1.0 - powers))
    };
    let (mut low, mut high) = (0.0_f64, 0.499_f64);
    for _ in 0..60 {
        let p = f64::midpoint(low, high);
        if 1.0 - (1.0 - tau(p)).powi(n - 1) > p {
            low = p;
        } else {
            high = p;
        }
    }
    low
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn share(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

#[test]
fn as_many_collide_as_bianchi_expects() {
    for n in [2, 5, 10, 20] {
        let config = config(Sharing::Turns, Vec::new());
        let mut medium = air(n, &config, Rate::mbit(65));
        saturated(
            &mut medium,
            &[1],
            1,
            Instant::ZERO + Duration::from_secs(20),
        );
        let all = medium.radios.iter().map(|radio| radio.counted);
        let (attempts, collisions) = all.fold((0, 0), |(a, c), counted| {
            (a + counted.attempts, c + counted.collisions)
        });
        let want = bianchi(i32::try_from(n).expect("few"));
        let got = share(collisions, attempts);
        println!("{n} radios: {got:.4} of {attempts} attempts collide, Bianchi {want:.4}");
        // Bianchi counts one slot per transmission of another, as EDCA does, and never gives up.
        assert!((got - want).abs() < 0.015, "{n}: {got}, not {want}");
    }
}

#[test]
fn a_single_radio_sends_what_its_times_add_up_to() {
    let config = config(Sharing::Turns, Vec::new());
    let mut medium = air(1, &config, Rate::mbit(65));
    let end = Duration::from_secs(10);
    let delivered = saturated(&mut medium, &[1], 100, Instant::ZERO + end);
    // 28 subframes of 1,560 B at 65 Mbit/s fill 5.484 ms: 36 µs and 1,345 symbols.
    let aggregate = Mode::of(Standard::N, Rate::mbit(65), None).airtime(28 * 1_560);
    assert_eq!(aggregate, Duration::from_micros(36 + 1_345 * 4));
    // AIFS is 43 µs, the mean backoff 7.5 slots, the acknowledgement 48 µs.
    let cycle = aggregate.as_nanos() + 43_000 + 67_500 + 48_000;
    let want = end.as_nanos() / cycle * 28;
    let got = delivered[0][0];
    assert!((share(got, want) - 1.0).abs() < 0.01, "{got}, not {want}");
    assert_eq!(medium.radios[0].counted.collisions, 0);
}

#[test]
fn a_slow_client_gets_as_many_aggregates_in_turns_and_as_much_air_by_airtime() {
    let slow = vec![StationConfig {
        host: 2,
        rate: Rate::from_bits_per_sec(6_500_000).expect("positive"),
        weight: StationConfig::WEIGHT,
        channel: None,
    }];
    let shares = |sharing| {
        let mut medium = air(1, &config(sharing, slow.clone()), Rate::mbit(65));
        let end = Instant::ZERO + Duration::from_secs(20);
        let delivered = saturated(&mut medium, &[1, 2], 100, end);
        (delivered[0][0], delivered[0][1])
    };
    // In turns both get an aggregate of 5.484 ms: the fast one 28 packets, the slow one 2.
    let (fast, slow_one) = shares(Sharing::Turns);
    assert!(
        (share(fast, slow_one) / 14.0 - 1.0).abs() < 0.02,
        "{fast} {slow_one}"
    );
    let (fast_fair, slow_fair) = shares(Sharing::Airtime);
    let ratio = share(fast_fair, slow_fair);
    println!("turns {fast} {slow_one}, airtime {fast_fair} {slow_fair}");
    // The air of an aggregate and its acknowledgement: 28 packets in 5.464 ms, 2 in 3.932 ms.
    assert!((9.8..10.4).contains(&ratio), "{fast_fair} {slow_fair}");
}

#[test]
fn a_more_urgent_class_goes_first() {
    let config = config(Sharing::Turns, Vec::new());
    let mut medium = air(1, &config, Rate::mbit(65));
    let urgent = sojourn_net::Dscp::new(48).expect("CS6");
    for _ in 0..3 {
        medium.push(0, Instant::ZERO, packet(1), 0);
    }
    medium.push(0, Instant::ZERO, packet(2).in_class(urgent), 0);
    let mut sent = Sent::default();
    let mut order = Vec::new();
    for _ in 0..4 {
        let now = medium.next().expect("something waits");
        medium.on_time(now, &mut sent);
        order.extend(sent.arrived.drain(..).map(|pkt| pkt.owner().client()));
    }
    assert_eq!(order, [Some(2), Some(1), Some(1), Some(1)]);
}

/// A medium with one radio, whose MPDUs are lost with this probability.
fn lossy(mpdu_loss: f64) -> Medium {
    let config = RadioConfig {
        channel: ChannelConfig {
            snr_db: None,
            mpdu_loss,
        },
        ..config(Sharing::Turns, Vec::new())
    };
    air(1, &config, Rate::mbit(65))
}

#[test]
fn what_is_lost_on_the_air_is_sent_again_and_stays_in_order() {
    let mut medium = lossy(0.3);
    let (mut now, mut sent) = (Instant::ZERO, Sent::default());
    let (mut pushed, mut arrived, mut lost, mut before) = (0_u64, 0_u64, 0_u64, Instant::ZERO);
    while arrived + lost < 20_000 {
        while medium.radios[0].has_room() {
            // The stamp tells packets apart.
            pushed += 1;
            let at = Instant::ZERO + Duration::from_nanos(pushed);
            medium.push(0, at, packet(1), 0);
        }
        now = medium.next().expect("something waits");
        medium.on_time(now, &mut sent);
        for pkt in sent.arrived.drain(..) {
            assert!(before < pkt.stamp, "in order");
            before = pkt.stamp;
            arrived += 1;
        }
        lost += sent.lost.drain(..).count() as u64;
    }
    let errors = medium.radios[0].counted.errors;
    // 0.3^7 = 0.02 % are lost after seven losses; a packet is sent 1 / 0.7 times.
    let (again, given_up) = (share(errors, arrived), share(lost, arrived));
    println!("{again:.3} losses per packet, {lost} packets given up, {now:?}");
    assert!((again - 0.3 / 0.7).abs() < 0.02, "{again}");
    assert!((0.000_05..0.000_6).contains(&given_up), "{given_up}");
}

#[test]
fn without_an_acknowledgement_the_window_doubles() {
    let mut medium = lossy(1.0);
    medium.push(0, Instant::ZERO, packet(1), 0);
    let mut sent = Sent::default();
    let mut attempts = 0;
    while let Some(now) = medium.next() {
        medium.on_time(now, &mut sent);
        attempts += u32::from(matches!(medium.state, State::Sending { .. }));
    }
    assert_eq!((attempts, sent.lost.len(), sent.arrived.len()), (7, 1, 0));
}
