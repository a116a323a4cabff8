//! Connections whose full-sized packets are smaller than the MTU: `mss` of TCP, `max_datagram` of QUIC.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::Rng;
use sojourn_records::Records;
use sojourn_scenario::Scenario;
use sojourn_sim::run;

/// Ethernet, IP and TCP headers with timestamps; Ethernet, IP and UDP headers.
const TCP_HEADERS: u64 = 66;
const UDP_HEADERS: u64 = 42;

fn records(mbit: u64, qdisc: &str, traffic: &str) -> Records {
    let text = format!(
        "duration = \"24s\"\nwarmup = \"4s\"\nrtt = \"20ms\"\n\
         links.down = {{rate = \"{mbit}mbit\", qdisc = \"{qdisc}\"}}\n\
         links.up = \"unlimited\"\ntraffic = [{{{traffic}}}]\n"
    );
    let config = Scenario::from_toml(&text).unwrap().config(0, 0);
    run(&config, &mut |_| true).unwrap().unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

#[test]
fn goodput_is_the_share_of_payload_in_the_rate() {
    let mut rng = Rng::new(7);
    let mut draw = |least: u64, most: u64| least + rng.below(most - least + 1);
    for n in 0..12 {
        let mss = [536, 128, 1_447]
            .get(n)
            .copied()
            .unwrap_or(draw(128, 1_448));
        let mbit = draw(2, 40);
        let cc = ["cubic", "reno", "highspeed"][n % 3];
        // Twice the data on the path, so that the link is busy after a loss too.
        let packets = 2 * mbit * 20_000 / 8 / (mss + TCP_HEADERS) + 20;
        let records = records(
            mbit,
            &format!("pfifo limit {packets}"),
            &format!("type = \"tcp\", direction = \"down\", cc = \"{cc}\", mss = {mss}"),
        );
        let goodput = ratio(records.flows[0].totals.delivered_bytes * 8, 20);
        let wanted = ratio(mbit * 1_000_000 * mss, mss + TCP_HEADERS);
        assert!(
            (goodput / wanted - 1.0).abs() < 0.01,
            "{cc}, {mbit} Mbit/s, MSS {mss}: {goodput} bit/s instead of {wanted}"
        );
        let sent = &records.links[0].totals;
        assert_eq!(
            sent.sent_bytes,
            sent.sent_packets * (mss + TCP_HEADERS),
            "{cc}, MSS {mss}"
        );
    }
}

#[test]
fn a_transfer_has_as_many_segments_as_its_bytes_fill() {
    for (mss, bytes) in [(128, 1), (128, 100_001), (536, 1_000_000), (1_000, 999_999)] {
        for qdisc in ["pfifo limit 1000", "pfifo limit 5", "fq_codel"] {
            let traffic = format!(
                "type = \"tcp\", direction = \"down\", start = \"4s\", mss = {mss}, bytes = \"{bytes}b\""
            );
            let flow = &records(10, qdisc, &traffic).flows[0];
            let totals = flow.totals;
            assert!(flow.completed.is_some(), "{qdisc}: {traffic}");
            assert_eq!(totals.delivered_bytes, bytes, "{qdisc}: {traffic}");
            assert_eq!(
                totals.sent_packets - totals.retransmits,
                u64::div_ceil(bytes, mss),
                "{qdisc}: {traffic}"
            );
        }
    }
}

#[test]
fn applications_send_segments_of_this_size() {
    let traffic =
        "type = \"request\", direction = \"down\", start = \"4s\", mss = 536, bytes = \"536kb\"";
    let records = records(10, "pfifo limit 1000", traffic);
    let totals = records.flows[0].totals;
    // Some of the last response is on the way.
    let mean = ratio(totals.delivered_bytes, totals.sent_packets);
    assert!((530.0..=536.0).contains(&mean), "{mean} bytes per segment");
}

#[test]
fn datagrams_of_quic_have_the_given_size() {
    for size in [1_200, 1_300, 1_472] {
        let traffic = format!("type = \"quic\", direction = \"down\", max_datagram = \"{size}b\"");
        let records = records(10, "pfifo limit 60", &traffic);
        let sent = &records.links[0].totals;
        let mean = ratio(sent.sent_bytes, sent.sent_packets);
        let full = ratio(size + UDP_HEADERS, 1);
        assert!((mean / full - 1.0).abs() < 0.001, "{size} bytes: {mean}");
        let share = ratio(records.flows[0].totals.delivered_bytes, sent.sent_bytes);
        // Of a datagram, 30 to 40 bytes are headers of QUIC and the tag of its encryption.
        let payload = (full - 84.0) / full..(full - 70.0) / full;
        assert!(payload.contains(&share), "{size} bytes: {share}");
    }
}
