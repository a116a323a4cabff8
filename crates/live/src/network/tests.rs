//! The datapath in virtual time.

use proptest::prelude::*;
use sojourn_net::{Duration, FlowKey, IpVersion, Transport};
use sojourn_scenario::Scenario;

use super::*;
use sojourn_path::ip::Parsed;
use sojourn_scenario::plan::Controlled;

use crate::view::{Shared, Shows, Views};

/// A network of one flow from server to client, over `down` and back over `up`.
fn network(down: &str) -> Network<'static> {
    let text = format!(
        "duration = \"20s\"\nwarmup = \"0s\"\nrtt = \"20ms\"\nsample_state = true\n\
         [links.down]\n{down}\n[links.up]\nrate = \"100mbit\"\nqdisc = \"pfifo\"\n\
         [[traffic]]\ntype = \"tcp\"\ndirection = \"down\"\n"
    );
    let plan = Scenario::from_toml(&text).unwrap().plan(0, 0);
    Network::new(Arc::new(plan.config), Observers::default(), 2_048, 4_096).unwrap()
}

/// The same network for a run that its user may change.
fn changeable(down: &str) -> Network<'static> {
    let mut network = network(down);
    let mut config = (*network.config).clone();
    for link in &mut config.links {
        link.controlled = Controlled::All;
    }
    network = Network::new(Arc::new(config), Observers::default(), 2_048, 4_096).unwrap();
    network
}

/// Gives the network a packet of `len` bytes from the server to the client.
fn send(network: &mut Network<'_>, now: Instant, packet: (u64, u16, u8)) {
    send_in(network, now, packet, (0, true));
}

/// The same for a packet of a flow, with or against the direction of its data.
fn send_in(
    network: &mut Network<'_>,
    now: Instant,
    (id, len, tos): (u64, u16, u8),
    (flow, forward): (u32, bool),
) {
    let slot = network.pool.take().unwrap();
    let packet = network.pool.bytes_mut(slot);
    packet[..2].copy_from_slice(&[0x45, tos]);
    let parsed = Parsed {
        ip: IpVersion::V4,
        len,
        tos,
        flow: FlowKey {
            ports: 1,
            protocol: 17,
            ..FlowKey::default()
        },
        transport: Transport::Udp,
        payload: len - 28,
        is_multicast: false,
    };
    network.on_packet(now, Frame::new(parsed, slot, id, now), flow, forward);
}

/// What arrives when the network is called at its own times: id and time.
fn arrivals(network: &mut Network<'_>, until: Instant) -> Vec<(u64, Instant)> {
    arrivals_and_calls(network, until).0
}

/// The same, and the number of calls.
fn arrivals_and_calls(network: &mut Network<'_>, until: Instant) -> (Vec<(u64, Instant)>, usize) {
    let (mut all, mut lateness) = (Vec::new(), Histogram::default());
    for calls in 0.. {
        let call = network.next_call().min(until);
        network.on_timer(call, &mut lateness);
        while let Some((at, frame)) = network.next_delivered() {
            assert_eq!(at, call, "it is called when a packet is delivered");
            all.push((frame.id, at));
            network.pool.release(frame.slot);
        }
        if call == until {
            return (all, calls);
        }
    }
    unreachable!("time passes")
}

const AT_10_MBIT: &str = "rate = \"10mbit\"\nqdisc = \"pfifo\"";

#[test]
fn a_packet_takes_its_serialisation_and_half_the_rtt() {
    let mut network = network(AT_10_MBIT);
    send(&mut network, Instant::from_millis(1), (1, 1_236, 0));
    send(&mut network, Instant::from_millis(1), (2, 1_236, 0));
    // 1,250 bytes with the Ethernet header take 1 ms each.
    let expected = [(1, Instant::from_millis(12)), (2, Instant::from_millis(13))];
    assert_eq!(arrivals(&mut network, Instant::from_millis(100)), expected);
    assert_eq!(network.pool.used(), 0, "every buffer is free again");
}

#[test]
fn a_late_call_delays_packets_but_not_the_times_of_the_link() {
    let mut network = network(AT_10_MBIT);
    for id in 0..100 {
        send(&mut network, Instant::ZERO, (id, 1_236, 0));
    }
    // Nobody calls for a second.
    let mut lateness = Histogram::default();
    network.on_timer(Instant::from_millis(1_000), &mut lateness);
    let mut times = Vec::new();
    while let Some((at, frame)) = network.next_delivered() {
        times.push(at);
        network.pool.release(frame.slot);
    }
    let expected = (1..=100).map(|n| Instant::from_millis(n + 10));
    assert!(times.into_iter().eq(expected), "one per millisecond");
    let latest = lateness.max().unwrap();
    assert!(
        (900_000_000..1_000_000_000).contains(&latest),
        "{latest} ns"
    );
}

#[test]
fn a_busy_link_needs_one_call_per_packet() {
    // Packets that take 1 ms are sent every 0.7 ms.
    for (delay, last) in [("", 110), ("\ndelay = \"5ms\"", 115)] {
        let mut network = network(&format!("{AT_10_MBIT}{delay}"));
        let mut calls = 0;
        let mut arrived = Vec::new();
        for id in 0..100 {
            let now = Instant::from_nanos(id * 700_000);
            let (some, until_then) = arrivals_and_calls(&mut network, now);
            arrived.extend(some);
            // Without the last one, which is the time of the next packet.
            calls += until_then;
            send(&mut network, now, (id, 1_236, 0));
        }
        let (rest, until_then) = arrivals_and_calls(&mut network, Instant::from_millis(120));
        arrived.extend(rest);
        calls += until_then;
        assert_eq!(arrived.len(), 100);
        assert_eq!(arrived[99], (99, Instant::from_millis(last)));
        // The first packet reaches an idle link, and an interval ends.
        assert!(calls <= 102, "{calls} calls");
    }
}

proptest! {
    #[test]
    fn no_packet_is_delivered_between_two_calls(
        packets in prop::collection::vec((0_u64..3_000, 0_u32..3, any::<bool>(), 40_u16..1_500), 1..200),
        (down, up) in (1_u32..20, 1_u32..20),
        delays in prop::collection::vec(0_u32..3, 2),
        queue in prop::sample::select(vec!["pfifo", "fq_codel", "pie", "fq maxrate 2mbit"]),
        shaper in prop::sample::select(vec!["", "burst = \"3000b\"", "tx_ring = 2\nbql = false", "jitter = \"1ms\""]),
    ) {
        // Flows in both directions share a wire in front of the links.
        let link = |name: &str, rate: u32, delay: u32| format!(
            "[links.{name}]\nrate = \"{rate}mbit\"\nqdisc = \"{queue}\"\ndelay = \"{delay}ms\"\n{shaper}\n"
        );
        let flow = |direction: &str| format!("[[traffic]]\ntype = \"tcp\"\ndirection = \"{direction}\"\n");
        let text = format!(
            "duration = \"20s\"\nwarmup = \"0s\"\nrtt = \"6ms\"\n{}{}{}{}{}",
            link("down", down, delays[0]), link("up", up, delays[1]), flow("down"), flow("up"), flow("down"),
        );
        let plan = Scenario::from_toml(&text).unwrap().plan(0, 0);
        let mut network =
            Network::new(Arc::new(plan.config), Observers::default(), 2_048, 4_096).unwrap();
        let (mut now, mut arrived) = (Instant::ZERO, 0);
        for (id, (gap, flow, forward, len)) in (0..).zip(packets.iter().copied()) {
            now += Duration::from_micros(gap);
            arrived += arrivals(&mut network, now).len();
            send_in(&mut network, now, (id, len, 0), (flow, forward));
        }
        arrived += arrivals(&mut network, now + Duration::from_secs(10)).len();
        prop_assert!(arrived > 0);
        prop_assert_eq!(network.pool.used(), 0);
    }
}

#[test]
fn packets_that_the_queue_or_the_wire_discards_free_their_buffers_and_are_counted() {
    let mut network = network(
        "rate = \"10mbit\"\nqdisc = \"pfifo limit 10\"\nloss = \"30%\"\nduplicate = \"20%\"",
    );
    for round in 0..50 {
        for id in 0..20 {
            send(
                &mut network,
                Instant::from_millis(round * 100),
                (id, 1_236, 0),
            );
        }
        arrivals(&mut network, Instant::from_millis(round * 100 + 99));
    }
    assert_eq!(network.pool.used(), 0);
    let (links, observed) = network.finish(Instant::from_millis(5_000));
    let totals = links[0].totals;
    // Ten wait while one is sent.
    assert_eq!((totals.sent_packets, totals.drops_overlimit), (550, 450));
    assert!((120..210).contains(&totals.lost_packets), "{totals:?}");
    assert!((50..110).contains(&totals.duplicated_packets), "{totals:?}");
    let flow = &observed.flows[0];
    assert_eq!(flow.lost, totals.drops_overlimit + totals.lost_packets);
    let received = totals.sent_packets - totals.lost_packets + totals.duplicated_packets;
    assert_eq!(flow.totals.received_packets, received);
}

#[test]
fn a_mark_is_written_to_the_packet() {
    let mut network = network("rate = \"10mbit\"\nqdisc = \"fq_codel ce_threshold 1ms\"");
    for id in 0..20 {
        send(&mut network, Instant::ZERO, (id, 1_236, 2));
    }
    let mut lateness = Histogram::default();
    network.on_timer(Instant::from_millis(100), &mut lateness);
    let mut marked = 0;
    while let Some((_, frame)) = network.next_delivered() {
        marked += u32::from(network.pool.packet(&frame)[1] & 0b11 == 0b11);
        network.pool.release(frame.slot);
    }
    // A packet takes 1 ms. CoDel of Linux counts in 1024 ns, so that its threshold is 0.9994 ms.
    assert_eq!(
        marked, 19,
        "all but the first wait for more than the threshold"
    );
}

#[test]
fn the_rate_changes_when_the_scenario_says_so() {
    let changes =
        "changes = [{ at = \"100ms\", rate = \"1mbit\" }, { at = \"1s\", rate = \"10mbit\" }]";
    let mut network = network(&format!("{AT_10_MBIT}\n{changes}"));
    for (id, ms) in [(1, 0), (2, 200), (3, 1_100)] {
        send(&mut network, Instant::from_millis(ms), (id, 1_236, 0));
        let arrived = arrivals(&mut network, Instant::from_millis(ms + 90));
        let took = if id == 2 { 20 } else { 11 };
        assert_eq!(arrived, [(id, Instant::from_millis(ms + took))]);
    }
    let expected = Duration::from_millis(1);
    assert_eq!(
        network.finish(Instant::from_millis(2_000)).0[0].sending,
        expected + Duration::from_millis(11)
    );
}

#[test]
fn a_queue_with_a_periodic_update_is_updated_while_packets_pass() {
    for qdisc in ["pie", "dualpi2", "fq_pie"] {
        let mut network = network(&format!("rate = \"10mbit\"\nqdisc = \"{qdisc}\""));
        // Twice the rate of the link.
        for ms in 0..2_000 {
            for id in [2 * ms, 2 * ms + 1] {
                send(&mut network, Instant::from_millis(ms), (id, 1_236, 0));
            }
            arrivals(&mut network, Instant::from_millis(ms));
        }
        let (links, _) = network.finish(Instant::from_millis(2_000));
        let drops = links[0].totals.drops_aqm;
        assert!(drops > 50, "{qdisc}: {drops}");
    }
}

#[test]
fn the_state_of_queues_is_sampled() {
    let mut network = network("rate = \"10mbit\"\nqdisc = \"red limit 60000\"");
    for id in 0..20 {
        send(&mut network, Instant::ZERO, (id, 1_236, 0));
    }
    arrivals(&mut network, Instant::from_millis(999));
    let (links, _) = network.finish(Instant::from_millis(1_000));
    let down = &links[0];
    let times = down.states.iter().map(|state| state.at);
    assert!(times.eq(down.series.iter().map(|sample| sample.at)));
    let last = &down.states.last().unwrap().statistics;
    assert_eq!(last[..down.statistics.len()], down.statistics);
    let names: Vec<_> = last.iter().map(|statistic| statistic.name).collect();
    assert_eq!(names, ["average", "max_prob", "overlimits", "prob"]);
}

#[test]
fn a_replaced_queue_drops_its_packets_and_frees_their_buffers() {
    let change = "changes = [{ at = \"20ms\", qdisc = \"codel\" }, { at = \"30ms\", qdisc = \"codel limit 1\" }]";
    let mut network = network(&format!("{AT_10_MBIT}\n{change}"));
    for id in 0..100 {
        send(&mut network, Instant::ZERO, (id, 1_236, 0));
    }
    // They come after half the RTT. One per millisecond, and the one in transmission.
    assert_eq!(arrivals(&mut network, Instant::from_millis(100)).len(), 11);
    assert_eq!(network.pool.used(), 0, "every buffer is free again");
    let (links, _) = network.finish(Instant::from_millis(1_000));
    assert_eq!(links[0].totals.drops_replaced, 89);
}

#[test]
fn the_wire_changes_at_its_times() {
    let change = "changes = [{ at = \"100ms\", loss = \"100%\" }, \
                  { at = \"200ms\", loss = \"0%\", duplicate = \"100%\" }, \
                  { at = \"300ms\", duplicate = \"0%\", jitter = { spread = \"5ms\", order = \"free\" }, delay = \"20ms\" }]";
    let mut network = network(&format!("{AT_10_MBIT}\n{change}"));
    let mut ids = Vec::new();
    for (id, at) in [(0, 50), (1, 150), (2, 250), (3, 350)] {
        let until = Instant::from_millis(at);
        ids.extend(arrivals(&mut network, until));
        send(&mut network, until, (id, 1_236, 0));
    }
    ids.extend(arrivals(&mut network, Instant::from_millis(1_000)));
    let of: Vec<_> = ids.iter().map(|(id, _)| *id).collect();
    assert_eq!(of, [0, 2, 2, 3]);
    let late = ids[3].1.as_nanos() / 1_000_000;
    assert!((376..=386).contains(&late), "{late} ms");
}

#[test]
fn packets_in_a_ring_wait_below_the_queue_and_leave_at_the_rate() {
    let through = |ring: &str, held: usize| {
        let mut network = network(&format!("{AT_10_MBIT}\n{ring}"));
        for id in 0..10 {
            send(&mut network, Instant::from_millis(1), (id, 1_236, 0));
        }
        // Half the RTT lies before the link.
        assert_eq!(arrivals(&mut network, Instant::from_millis(11)), []);
        assert_eq!(network.links[0].qdisc.backlog().packets, 10 - held);
        let arrived = arrivals(&mut network, Instant::from_millis(1_000));
        let (links, _) = network.finish(Instant::from_millis(1_000));
        assert_eq!(links[0].driver.is_some(), !ring.is_empty());
        arrived
    };
    let wire = through("", 1);
    assert_eq!(wire.len(), 10);
    assert_eq!(through("tx_ring = 64\nbql = false", 10), wire);
    assert_eq!(through("tx_ring = 4\nbql = false", 4), wire);
    // At first, BQL permits one packet.
    assert_eq!(through("tx_ring = 64", 1), wire);
}

#[test]
fn traces_of_rate_and_delay_are_followed() {
    let down = "qdisc = \"pfifo\"\nrate_trace = { points = \"0s 10mbit, 100ms 0bit, 200ms 100mbit\", period = \"1s\" }\n\
                delay_trace = { points = \"0s 0ms, 150ms 30ms\", period = \"1s\" }";
    let mut network = network(down);
    send(&mut network, Instant::from_millis(50), (1, 1_236, 0));
    let first = arrivals(&mut network, Instant::from_millis(100));
    assert_eq!(first, [(1, Instant::from_millis(61))]);
    // 1,250 B at 100 Mbit/s take 100 us after the outage; half the RTT lies before the link.
    send(&mut network, Instant::from_millis(150), (2, 1_236, 0));
    let second = arrivals(&mut network, Instant::from_millis(1_000));
    assert_eq!(
        second,
        [(2, Instant::from_millis(230) + Duration::from_micros(100))]
    );
}

/// Changes of links, each by its name with the keys as JSON.
fn asked(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = changes
        .iter()
        .map(|(link, keys)| ((*link).to_owned(), (*keys).to_owned()));
    owned.collect()
}

#[test]
fn a_change_that_is_asked_for_is_one_of_the_scenario() {
    let at = [
        (300_300, r#"{"rate": "20mbit", "qdisc": "pfifo limit 3"}"#),
        (500_300, r#"{"delay": "30ms", "qdisc": "codel"}"#),
        (
            700_300,
            r#"{"loss": "50%", "duplicate": "20%", "jitter": "5ms"}"#,
        ),
    ];
    let written = at.map(|(us, keys)| keys.replacen('{', &format!("{{\"at\": \"{us}us\", "), 1));
    let written = written.join(", ").replace("\": ", "\" = ");
    let run = |network: &mut Network<'_>, asks: bool| {
        let fill = |network: &mut Network<'_>, ms: u64| {
            for id in 0..30 {
                send(network, Instant::from_millis(ms), (ms * 100 + id, 1_236, 0));
            }
        };
        let mut arrived = Vec::new();
        for (us, keys) in at {
            fill(network, us / 1_000 - 20);
            let before = Instant::from_nanos(us * 1_000 - 1);
            arrived.extend(arrivals(network, before));
            if asks {
                let now = Instant::from_nanos(us * 1_000);
                let settings = network.change(now, &asked(&[("down", keys)]));
                assert_eq!(settings.unwrap().at, now);
            }
        }
        fill(network, 720);
        arrived.extend(arrivals(network, Instant::from_millis(2_000)));
        arrived
    };
    let mut planned = network(&format!("{AT_10_MBIT}\nchanges = [{written}]"));
    let expected = run(&mut planned, false);
    let mut changed = changeable(AT_10_MBIT);
    let found = run(&mut changed, true);
    assert!(expected.len() > 60, "{}", expected.len());
    assert_eq!(found, expected);
    let records = changed.take_changes();
    assert_eq!(records.len(), 3);
    assert_eq!(records[1].delay, Some(Duration::from_millis(30)));
    let end = Instant::from_millis(2_000);
    let totals = |network: Network<'_>| network.finish(end).0[0].totals;
    assert_eq!(totals(changed), totals(planned));
}

#[test]
fn parameters_that_change_keep_the_packets_and_another_queue_drops_them() {
    let mut network = changeable("rate = \"1mbit\"\nqdisc = \"codel\"");
    for id in 0..21 {
        send(&mut network, Instant::from_millis(1), (id, 1_236, 0));
    }
    arrivals(&mut network, Instant::from_millis(12));
    let now = Instant::from_millis(12);
    let settings = network.change(
        now,
        &asked(&[("down", r#"{"qdisc": "codel target 20ms"}"#)]),
    );
    let (name, keys) = &settings.unwrap().links[0];
    assert_eq!(name, "down");
    assert!(keys.contains("target 20ms"), "{keys}");
    assert_eq!(network.links[0].qdisc.backlog().packets, 20);
    let other = asked(&[("down", r#"{"qdisc": "pie"}"#)]);
    network.change(now, &other).unwrap();
    assert_eq!(network.links[0].qdisc.backlog().packets, 0);
    let (links, _) = network.finish(Instant::from_millis(100));
    assert_eq!(links[0].totals.drops_replaced, 20);
}

#[test]
fn of_changes_that_are_asked_for_together_all_are_made_or_none() {
    let mut network = changeable(AT_10_MBIT);
    let now = Instant::from_millis(1);
    let before = network.change(now, &[]).unwrap();
    for (changes, problem) in [
        (
            &[("down", r#"{"rate": "1mbit"}"#), ("up", r#"{"rate": 3}"#)],
            "links.up.rate: 3 is not",
        ),
        (
            &[
                ("down", r#"{"rate": "1mbit"}"#),
                ("pu", r#"{"rate": "1mbit"}"#),
            ],
            "links.pu: unknown link; did you mean \"up\"?",
        ),
        (
            &[("up", r#"{"loss": "1%"}"#), ("down", r#"{"qdisc": "foo"}"#)],
            "links.down.qdisc: unknown queue",
        ),
    ] {
        let refused = network.change(now, &asked(changes)).unwrap_err();
        assert!(refused.starts_with(problem), "{refused}");
        assert_eq!(network.change(now, &[]).unwrap(), before);
    }
    assert_eq!(network.take_changes(), []);
    // What is in force already is not recorded.
    network
        .change(now, &asked(&[("down", r#"{"rate": "10mbit"}"#)]))
        .unwrap();
    assert_eq!(network.take_changes(), []);
}

#[test]
fn the_number_of_changes_is_limited() {
    let mut network = changeable(AT_10_MBIT);
    let rates =
        ["1mbit", "2mbit"].map(|rate| asked(&[("up", &format!(r#"{{"rate": "{rate}"}}"#))]));
    for n in 0..MOST_CHANGES {
        network
            .change(Instant::from_millis(1), &rates[n % 2])
            .unwrap();
    }
    let refused = network
        .change(Instant::from_millis(1), &rates[0])
        .unwrap_err();
    assert_eq!(refused, "a run can be changed 10000 times");
    assert!(network.change(Instant::from_millis(1), &[]).is_ok());
    assert_eq!(network.take_changes().len(), MOST_CHANGES);
}

#[test]
fn views_begin_when_somebody_watches_and_have_each_change_once() {
    let shared = Shared::default();
    let config = Arc::clone(&changeable(AT_10_MBIT).config);
    let names = ["down", "up"].into_iter();
    let observers = Observers {
        capture: None,
        views: Some(Views::new(names, Arc::clone(&shared), Shows::Nothing)),
        traces: None,
    };
    let mut network = Network::new(config, observers, 2_048, 64).unwrap();
    send(&mut network, Instant::from_millis(1), (1, 1_236, 0));
    arrivals(&mut network, Instant::from_millis(2_500));
    assert_eq!(*shared.lock().unwrap(), []);
    network.watch();
    let now = Instant::from_millis(2_600);
    let loss = asked(&[("down", r#"{"loss": "2.5%"}"#)]);
    network.change(now, &loss).unwrap();
    send(&mut network, now, (2, 1_236, 0));
    arrivals(&mut network, Instant::from_millis(4_000));
    let view = shared.lock().unwrap().clone();
    assert_eq!(view[0].at, Instant::from_millis(3_500));
    assert_eq!(view[0].changes, [(now, "{loss = \"2.5%\"}".to_owned())]);
    assert!(
        view[0].settings.contains("\"loss\":\"2.5%\""),
        "{}",
        view[0].settings
    );
    assert_eq!(view[0].flows.len(), 1);
    arrivals(&mut network, Instant::from_millis(5_000));
    assert_eq!(shared.lock().unwrap()[0].changes, []);
}
