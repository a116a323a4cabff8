//! The façade: exact times, impairments, signals of queues, polling at any times, captures.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use sojourn_capture::reader::Reader;
use sojourn_net::Rng;
use sojourn_path::{
    Bottleneck, Bytes, Delivery, Direction, Distribution, DropReason, Duration, Ecn, EcnRewrite,
    Encapsulation, Event, EventKind, Framing, Headers, Instant, Jitter, Layer, Loss, Order, Path,
    PathBuilder, PathError, Rate, RateTrace, RingConfig, Shaper, Trace, WireChange, ip, udp_flow,
};

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Bytes of a payload whose frame has 1,250 B: 10 ms at 1 Mbit/s.
const PAYLOAD: usize = 1_250 - 42;

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

fn forward(bottleneck: Bottleneck) -> PathBuilder {
    Path::builder().forward(bottleneck).events()
}

fn mbit(rate: u64, qdisc: &str) -> Bottleneck {
    Bottleneck::new(Rate::mbit(rate), qdisc).unwrap()
}

/// Polls at every deadline until nothing is inside.
fn drain(path: &mut Path) -> Vec<Delivery> {
    let mut all = Vec::new();
    while let Some(due) = path.deadline() {
        while let Some(delivery) = path.poll(due) {
            all.push(delivery);
        }
    }
    all
}

fn numbered(n: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAYLOAD];
    bytes[1..9].copy_from_slice(&n.to_be_bytes());
    bytes
}

#[test]
fn packets_arrive_at_the_rate_after_the_delay_with_their_bytes() {
    let mut path = forward(mbit(1, "pfifo").delay(MS(30))).build().unwrap();
    for n in 0..5 {
        let id = path.push(at(7), numbered(n), Ecn::NotEct, udp_flow(1));
        assert_eq!(id.0, n);
    }
    assert_eq!(path.backlog(Direction::Forward).packets, 4);
    for (n, delivery) in (0..).zip(drain(&mut path)) {
        assert_eq!(delivery.at, at(7 + 30_000 + 10_000 * (n + 1)));
        assert_eq!(delivery.bytes, numbered(n));
        assert_eq!(delivery.waited, MS(10).times(n));
        assert_eq!((delivery.id.0, delivery.ecn), (n, Ecn::NotEct));
    }
    let counters = path.counters(Direction::Forward);
    assert_eq!((counters.sent_packets, counters.sent_bytes), (5, 5 * 1_250));
    assert_eq!(path.sojourn(Direction::Forward).max(), Some(40_000_000));
    assert_eq!(path.deadline(), None);
}

#[test]
fn the_layer_decides_what_a_packet_counts() {
    let mut path = forward(mbit(1, "pfifo")).build().unwrap();
    let udp = Headers::udp(Ecn::NotEct, udp_flow(1));
    let layers = [Layer::UdpPayload, Layer::Ip, Layer::Ethernet];
    for layer in layers {
        let headers = Headers { layer, ..udp };
        path.push_with(Instant::ZERO, Direction::Forward, vec![0; 1_000], &headers);
    }
    let sizes: Vec<_> = path
        .events()
        .filter(|e| e.kind == EventKind::Offered)
        .collect();
    let sizes: Vec<_> = sizes.iter().map(|event| event.size).collect();
    assert_eq!(sizes, [1_042, 1_014, 1_000].map(Bytes));
    // ATM cells, of 53 B each with 48 of payload.
    let layer = Encapsulation {
        framing: Framing::Atm,
        ..Encapsulation::ETHERNET
    };
    let dsl = mbit(1, "pfifo").encapsulation(layer);
    let mut path = forward(dsl).build().unwrap();
    path.push(
        Instant::ZERO,
        vec![0; 48 - 42 + 1],
        Ecn::NotEct,
        udp_flow(1),
    );
    assert_eq!(drain(&mut path)[0].at, at(2 * 53 * 8));
}

#[test]
fn a_drop_list_names_packets_and_the_other_direction_loses_none() {
    let lossy = mbit(100, "pfifo").drop_list([5, 2, 3]);
    let mut path = forward(lossy).build().unwrap();
    for n in 0..6 {
        path.push(Instant::ZERO, numbered(n), Ecn::NotEct, udp_flow(1));
        path.push_reverse(Instant::ZERO, numbered(n), Ecn::NotEct, udp_flow(1));
    }
    let all = drain(&mut path);
    let of = |direction| {
        let of = all
            .iter()
            .filter(move |delivery| delivery.direction == direction);
        of.map(|delivery| delivery.bytes[8]).collect::<Vec<_>>()
    };
    assert_eq!(of(Direction::Forward), [0, 3, 5]);
    assert_eq!(of(Direction::Reverse), [0, 1, 2, 3, 4, 5]);
    let lost = path.events().filter(|event| event.kind == EventKind::Lost);
    assert_eq!(lost.count(), 3);
    assert_eq!(path.counters(Direction::Forward).lost_packets, 3);
}

#[test]
fn a_strict_path_takes_polls_at_each_deadline() {
    let mut path = forward(mbit(1, "pie").delay(MS(30)))
        .strict()
        .build()
        .unwrap();
    for n in 0..5 {
        path.push(at(7), numbered(n), Ecn::NotEct, udp_flow(1));
    }
    assert_eq!(drain(&mut path).len(), 5);
}

#[test]
#[should_panic(expected = "packet 0 arrived at 40.000000ms and was polled at 50.000000ms")]
fn a_strict_path_refuses_a_late_poll() {
    let mut path = forward(mbit(1, "pie").delay(MS(30)))
        .strict()
        .build()
        .unwrap();
    path.push(Instant::ZERO, numbered(0), Ecn::NotEct, udp_flow(1));
    path.poll(at(50_000));
}

#[test]
fn a_path_may_move_to_another_thread() {
    let mut path = forward(mbit(1, "fq_codel")).build().unwrap();
    path.push(Instant::ZERO, numbered(0), Ecn::NotEct, udp_flow(1));
    let arrived = std::thread::spawn(move || drain(&mut path).len());
    assert_eq!(arrived.join().unwrap(), 1);
}

#[test]
fn directions_have_bottlenecks_of_their_own() {
    let mut path = forward(mbit(1, "pfifo"))
        .reverse(mbit(2, "pfifo").delay(MS(1)))
        .build()
        .unwrap();
    for n in 0..2 {
        path.push(Instant::ZERO, numbered(n), Ecn::NotEct, udp_flow(1));
        path.push_reverse(Instant::ZERO, numbered(n), Ecn::NotEct, udp_flow(1));
    }
    assert_eq!(path.deadline(), Some(at(5_000)));
    let all = drain(&mut path);
    let times: Vec<_> = all.iter().map(|d| (d.at, d.direction)).collect();
    let (there, back) = (Direction::Forward, Direction::Reverse);
    assert_eq!(
        times,
        [
            (at(6_000), back),
            (at(10_000), there),
            (at(11_000), back),
            (at(20_000), there)
        ]
    );
}

/// Offers twice the rate for two seconds.
fn overload(qdisc: &str, ecn: [Ecn; 2]) -> (Path, Vec<Delivery>) {
    let mut path = forward(mbit(10, qdisc).delay(MS(5))).build().unwrap();
    let mut all = Vec::new();
    for n in 0..4_000 {
        let now = at(500 * n);
        while let Some(delivery) = path.poll(now) {
            all.push(delivery);
        }
        let place = usize::from(n % 2 == 1);
        let flow = udp_flow(u16::from(place == 1));
        path.push(now, numbered(n), ecn[place], flow);
    }
    all.extend(drain(&mut path));
    (path, all)
}

#[test]
fn queues_mark_ecn_capable_packets_and_drop_the_others() {
    let (mut path, all) = overload("fq_codel", [Ecn::Ect0, Ecn::NotEct]);
    let marked = all.iter().filter(|delivery| delivery.ecn == Ecn::Ce);
    let marked: Vec<_> = marked.map(|delivery| delivery.id).collect();
    let counters = *path.counters(Direction::Forward);
    assert!(
        counters.marks_aqm > 10 && counters.drops_aqm > 10,
        "{counters:?}"
    );
    assert_eq!(marked.len() as u64, counters.marks_aqm);
    let events: Vec<_> = path.events().collect();
    let mut noted = Vec::new();
    for event in &events {
        match event.kind {
            EventKind::Marked { waited, .. } => {
                assert!(event.flow == udp_flow(0) && waited > MS(5));
                noted.push(event.packet);
            }
            EventKind::Dropped { reason, .. } => {
                assert!(event.flow == udp_flow(1) && reason == DropReason::Aqm);
            }
            _ => {}
        }
    }
    noted.sort_unstable();
    let mut marked = marked;
    marked.sort_unstable();
    assert_eq!(noted, marked);
    assert_eq!(all.len() as u64 + counters.drops_aqm, 4_000);
}

#[test]
fn dualpi2_keeps_the_delay_of_l4s_packets_short() {
    let (path, all) = overload("dualpi2", [Ecn::Ect1, Ecn::Ect0]);
    assert!(path.counters(Direction::Forward).marks_aqm > 100);
    let longest = |flow| {
        let of = all
            .iter()
            .filter(|d| d.flow == udp_flow(flow) && d.at > at(1_000_000));
        of.map(|delivery| delivery.waited).max().unwrap()
    };
    let [l4s, classic] = [0, 1].map(longest);
    assert!(l4s < classic, "{l4s} {classic}");
}

/// Random packets of both directions at a load around 1, with pauses; `polls` says when to poll beside.
fn history(qdisc: &str, shaper: Shaper, polls: fn(&mut Path, Instant)) -> Vec<Event> {
    let bottleneck = || mbit(10, qdisc).shaper(shaper).delay(MS(3));
    let mut path = forward(bottleneck())
        .reverse(bottleneck())
        .seed(7)
        .build()
        .unwrap();
    let mut rng = Rng::new(1).fork("traffic");
    let (mut now, mut flow) = (0, 0);
    for n in 0..6_000 {
        // A second without packets, then bursts.
        now += if n % 2_000 == 0 {
            1_000_000
        } else {
            rng.next_u64() % 1_000
        };
        flow = (flow + (rng.next_u64() % 3)) % 5;
        polls(&mut path, at(now));
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][usize::try_from(flow % 3).unwrap()];
        let flow = udp_flow(u16::try_from(flow).unwrap());
        if rng.next_u64().is_multiple_of(2) {
            path.push(at(now), numbered(n), ecn, flow);
        } else {
            path.push_reverse(at(now), numbered(n), ecn, flow);
        }
    }
    while path.poll(at(now + 10_000_000)).is_some() {}
    path.events().collect()
}

/// Polls at every deadline up to `now`.
fn exactly(path: &mut Path, now: Instant) {
    while let Some(due) = path.deadline().filter(|due| *due <= now) {
        while path.poll(due).is_some() {}
    }
}

/// Polls once every 300 ms.
fn seldom(path: &mut Path, now: Instant) {
    if now.as_nanos() / 1_000 % 300_000 < 500 {
        while path.poll(now).is_some() {}
    }
}

#[test]
fn results_do_not_depend_on_when_the_path_is_polled() {
    let tbf = Shaper::Tbf {
        burst: Bytes(5_000),
    };
    let ring = Shaper::Ring(RingConfig {
        packets: 64,
        bql: true,
        coalesce: Duration::from_micros(100),
    });
    let bucket = Shaper::Bucket {
        burst: Bytes(3_000),
    };
    for qdisc in [
        "pie",
        "fq_pie",
        "dualpi2",
        "codel",
        "fq_codel",
        "cake bandwidth 8mbit",
        "ared limit 400kb bandwidth 10mbit",
        "pfifo",
        "fq",
        "cobalt",
        "htb default a classes (name a rate 5mbit ceil 8mbit)",
    ] {
        for shaper in [Shaper::Serial, tbf, ring, bucket] {
            let exact = history(qdisc, shaper, exactly);
            assert!(exact.len() > 15_000, "{qdisc}: {}", exact.len());
            for polls in [seldom, |_: &mut Path, _| {}] {
                let other = history(qdisc, shaper, polls);
                let first = exact.iter().zip(&other).find(|(a, b)| a != b);
                assert!(exact == other, "{qdisc} {shaper:?}: {first:?}");
            }
        }
    }
}

#[test]
fn pie_drops_though_nobody_asks_for_its_timer() {
    let drops = |qdisc| {
        let mut path = forward(mbit(10, qdisc)).build().unwrap();
        for n in 0..4_000 {
            path.push(at(500 * n), numbered(n), Ecn::NotEct, udp_flow(1));
        }
        (
            path.counters(Direction::Forward).drops_aqm,
            path.statistics(Direction::Forward),
        )
    };
    let (dropped, statistics) = drops("pie limit 10000");
    assert!(dropped > 500, "{dropped} {statistics:?}");
    assert_eq!(drops("pfifo limit 10000").0, 0);
}

#[test]
fn the_seed_decides_all_random_numbers() {
    let run = |seed| {
        let jitter = Jitter {
            spread: MS(2),
            distribution: Distribution::Normal,
            order: Order::Free,
        };
        let bottleneck = mbit(10, "red limit 200kb avpkt 1250")
            .delay(MS(10))
            .jitter(jitter)
            .loss(Loss::Random(0.1))
            .duplicate(0.05);
        let mut path = forward(bottleneck).seed(seed).build().unwrap();
        for n in 0..500 {
            path.push(at(900 * n), numbered(n), Ecn::NotEct, udp_flow(1));
        }
        let all = drain(&mut path);
        assert!(all.is_sorted_by_key(|delivery| delivery.at));
        let counters = path.counters(Direction::Forward);
        let (lost, twice) = (counters.lost_packets, counters.duplicated_packets);
        assert_eq!(all.len() as u64, counters.sent_packets - lost + twice);
        assert!(lost > 20 && twice > 5, "{lost} {twice}");
        let lines: Vec<_> = path.events().map(|event| event.to_string()).collect();
        lines
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn traces_give_the_times_of_packets() {
    let trace = Trace::parse("1\n1\n5\n").unwrap();
    let mut path = forward(Bottleneck::following(&trace, "pfifo").unwrap())
        .build()
        .unwrap();
    // An opportunity is 1,504 B; three packets of 1,250 B need three.
    for n in 0..3 {
        path.push(Instant::ZERO, numbered(n), Ecn::NotEct, udp_flow(1));
    }
    let times: Vec<_> = drain(&mut path).iter().map(|d| d.at).collect();
    assert_eq!(times, [at(1_000), at(1_000), at(5_000)]);

    let rates = [(MS(0), 1_000_000), (MS(15), 10_000_000)];
    let rates = RateTrace::new(&rates, MS(100)).unwrap();
    let mut path = forward(Bottleneck::varying(&rates, "pfifo").unwrap())
        .build()
        .unwrap();
    for n in 0..3 {
        path.push(Instant::ZERO, numbered(n), Ecn::NotEct, udp_flow(1));
    }
    let times: Vec<_> = drain(&mut path).iter().map(|d| d.at).collect();
    // Half of the second packet is sent at each rate.
    assert_eq!(times, [at(10_000), at(15_500), at(16_500)]);

    let refused = Trace::parse("1\nx\n").map_err(PathError::from);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "trace: line 2: not a time; expected whole milliseconds below 2^32, one time per line"
    );
    for wrong in [
        &[(MS(1), 1)][..],
        &[],
        &[(MS(0), 1), (MS(0), 2)],
        &[(MS(0), 1), (MS(9), 2)],
    ] {
        assert!(RateTrace::new(wrong, MS(9)).is_err(), "{wrong:?}");
    }
}

/// An IPv4 packet with an ECN-capable TCP segment.
fn segment() -> Vec<u8> {
    let mut packet = vec![0x45, 0x02, 0x04, 0xD4, 0, 1, 0x40, 0, 64, 6, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    let sum: u32 = packet
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let sum = !u16::try_from((sum & 0xFFFF) + (sum >> 16)).unwrap();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.resize(0x4D4, 0);
    packet[32] = 0x50;
    packet
}

#[test]
fn a_mark_is_written_into_an_ip_packet() {
    let mut path = forward(mbit(1, "codel ecn target 1ms interval 1ms"))
        .build()
        .unwrap();
    for _ in 0..20 {
        path.push_ip(Instant::ZERO, Direction::Forward, segment())
            .unwrap();
    }
    let refused = path.push_ip(Instant::ZERO, Direction::Forward, vec![1, 2]);
    assert_eq!(refused, Err(vec![1, 2]));
    let mut marked = 0;
    for delivery in drain(&mut path) {
        let parsed = ip::Parsed::of(&delivery.bytes).unwrap();
        assert_eq!(Ecn::from_bits(parsed.tos), delivery.ecn);
        let header = delivery.bytes[..20].chunks(2);
        let sum: u32 = header.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
        marked += u32::from(delivery.ecn == Ecn::Ce);
        if delivery.ecn == Ecn::Ect0 {
            assert_eq!(delivery.bytes, segment());
        }
    }
    assert!((1..20).contains(&marked), "{marked}");
}

#[test]
fn an_ack_filter_reads_tcp_headers() {
    let mut path = forward(mbit(1, "cake ack-filter")).build().unwrap();
    for n in 0..20_u8 {
        let mut ack = segment();
        ack.truncate(40);
        ack[2..4].copy_from_slice(&40_u16.to_be_bytes());
        (ack[31], ack[33]) = (n, 16);
        path.push_ip(Instant::ZERO, Direction::Forward, ack)
            .unwrap();
    }
    let arrived = drain(&mut path).len() as u64;
    let filtered = path.counters(Direction::Forward).drops_ack_filter;
    assert!(filtered > 10, "{filtered}");
    assert_eq!(arrived + filtered, 20);
}

#[test]
fn a_middlebox_clears_ecn() {
    let clears = mbit(10, "pfifo").rewrite_ecn(EcnRewrite::All(Ecn::NotEct));
    let mut path = forward(clears).build().unwrap();
    path.push(Instant::ZERO, numbered(1), Ecn::Ect1, udp_flow(1));
    assert_eq!(drain(&mut path)[0].ecn, Ecn::NotEct);
}

#[test]
fn the_rate_and_the_wire_change_while_packets_wait() {
    let mut path = forward(mbit(1, "pfifo")).build().unwrap();
    for n in 0..3 {
        path.push(Instant::ZERO, numbered(n), Ecn::NotEct, udp_flow(1));
    }
    path.set_rate(at(15_000), Direction::Forward, Rate::mbit(10));
    let change = WireChange {
        delay: Some(MS(7)),
        ..WireChange::default()
    };
    path.set_wire(at(15_000), Direction::Forward, &change)
        .unwrap();
    let times: Vec<_> = drain(&mut path).iter().map(|d| d.at).collect();
    assert_eq!(times, [at(10_000), at(27_000), at(28_000)]);
    let wrong = WireChange {
        duplicate: Some(2.0),
        ..WireChange::default()
    };
    let error = path
        .set_wire(at(30_000), Direction::Reverse, &wrong)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "reverse.duplicate: must be between 0 and 1"
    );
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |bottleneck: Bottleneck| -> String {
        let built: Result<Path, PathError> = forward(bottleneck).build();
        built.unwrap_err().to_string()
    };
    let fine = mbit(1, "pfifo");
    assert_eq!(
        refused(fine.clone().loss(Loss::Random(1.5))),
        "forward.loss: probabilities must be between 0 and 1"
    );
    let small = Shaper::Tbf { burst: Bytes(100) };
    assert_eq!(
        refused(fine.clone().shaper(small)),
        "forward.shaper: a tbf bucket of 100 B never lets a full frame pass; expected at least 1514 B"
    );
    assert_eq!(
        refused(fine.drop_list([0])),
        "forward.drop_list: numbers must be >= 1"
    );
    assert!(Bottleneck::new(Rate::mbit(1), "fq_coddle").is_err());
}

#[test]
#[should_panic(expected = "precedes that of an earlier call")]
fn time_does_not_go_back() {
    let mut path: Path = Path::builder().build().unwrap();
    path.poll(at(2));
    path.poll(at(1));
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_has_each_packet_where_it_passes_with_the_reasons() {
    let out = Shared::default();
    let mut path = forward(mbit(1, "fq_codel limit 3").drop_list([1]))
        .reverse(mbit(1, "pfifo"))
        .capture(out.clone())
        .build()
        .unwrap();
    for n in 0..6 {
        path.push(at(n), numbered(n), Ecn::Ect0, udp_flow(1));
    }
    let (ipv6, frame) = (Layer::UdpPayload, Layer::Ethernet);
    let mut headers = Headers {
        ip: sojourn_path::IpVersion::V6,
        layer: ipv6,
        ..Headers::udp(Ecn::Ect1, udp_flow(2))
    };
    path.push_with(at(9), Direction::Reverse, numbered(9), &headers);
    headers.layer = frame;
    let whole = [vec![0; 14], segment()].concat();
    path.push_with(at(10), Direction::Reverse, whole, &headers);
    path.push_ip(at(11), Direction::Reverse, segment()).unwrap();
    drain(&mut path);
    path.finish_capture().unwrap();
    path.push(at(9_000_000), numbered(1), Ecn::Ect0, udp_flow(1));

    let bytes = out.0.lock().unwrap().clone();
    let mut seen = Vec::new();
    let mut reader = Reader::default();
    reader
        .feed(&bytes, &mut |sources, packet| {
            let parsed = ip::Parsed::of(packet.data).unwrap();
            assert_eq!(usize::from(parsed.len), packet.data.len());
            let name = sources[packet.source].name.clone();
            let comment = packet.comment.unwrap_or_default().to_owned();
            seen.push((packet.id.unwrap(), name, comment));
        })
        .unwrap();
    assert_eq!(reader.finish(), Ok(false));
    let count = |name: &str, with: &str| {
        let of = seen
            .iter()
            .filter(|(_, point, comment)| point == name && comment.contains(with));
        of.count()
    };
    assert_eq!(count("forward.enq", ""), 6);
    assert_eq!(count("forward.drop", "dropped: fq_codel overlimit"), 2);
    assert_eq!(count("forward.drop", "lost on the wire"), 1);
    assert_eq!(count("forward.deq", ""), 4);
    assert_eq!(count("reverse.enq", ""), 3);
    assert_eq!(count("reverse.deq", ""), 3);
    assert!(bytes.windows(2).any(|pair| pair == [0xFD, 0]));
}
