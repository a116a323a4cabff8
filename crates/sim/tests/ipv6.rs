//! Traffic over IPv6: sizes of packets, goodput, and filters of versions.
//!
//! RFC 8200 §3: the header has 40 bytes, that of IPv4 20 (RFC 791 §3.1). RFC 9293 §3.7.1, RFC 6691: the MSS option is
//! the MTU without IP and TCP headers, and what a segment carries is less its options.

#![expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../capture/tests/reading/mod.rs"]
mod reading;

use reading::blocks;
use sojourn_records::{CaptureOutput, FlowRecord, LinkCounters, Records};
use sojourn_scenario::Scenario;
use sojourn_sim::{run, run_captured};

/// The type of the block of a packet in a capture.
const PACKET: u32 = 6;

const MTU: u32 = 1_500;
const ETHERNET: u32 = 14;
const TCP: u32 = 20;
const TIMESTAMPS: u32 = 12;

const fn header(version: u32) -> u32 {
    if version == 6 { 40 } else { 20 }
}

/// A link of 10 Mbit/s each way, 40 ms, and this traffic for 22 s, measured from 2 s on.
fn scenario(queue: &str, traffic: &str) -> String {
    format!(
        "duration = \"22s\"\nwarmup = \"2s\"\nrtt = \"40ms\"\n\
         [links.up]\nrate = \"10mbit\"\nqdisc = \"{queue}\"\n\
         [links.down]\nrate = \"10mbit\"\nqdisc = \"pfifo\"\n{traffic}"
    )
}

fn records(queue: &str, traffic: &str) -> Records {
    let text = scenario(queue, traffic);
    let config = Scenario::from_toml(&text).unwrap().plan(0, 0).config;
    run(&config, &mut |_| true).unwrap().unwrap()
}

fn block(keys: &str) -> String {
    format!("[[traffic]]\ndirection = \"up\"\n{keys}\n")
}

/// The counters of the links for data and for what returns.
fn both(records: &Records) -> [&LinkCounters; 2] {
    ["up", "down"].map(|name| {
        let link = records.links.iter().find(|link| link.name == name);
        &link.unwrap().totals
    })
}

/// Mean size of the packets of a link.
fn mean(totals: &LinkCounters) -> f64 {
    totals.sent_bytes as f64 / totals.sent_packets as f64
}

#[test]
fn a_bulk_flow_gets_the_rate_without_the_headers() {
    for version in [4, 6] {
        // The window fills the link and loses nothing, so that acknowledgements have no SACK blocks.
        let traffic = format!("type = \"tcp\"\nreceive_window = \"100kb\"\nip = {version}");
        let records = records("pfifo limit 100", &block(&traffic));
        let headers = header(version) + TCP + TIMESTAMPS;
        let mss = MTU - headers;
        assert_eq!(mss, if version == 6 { 1_428 } else { 1_448 });
        let expected = 10e6 * f64::from(mss) / f64::from(mss + headers + ETHERNET);
        let goodput = records.flows[0].totals.delivered_bytes as f64 * 8.0 / 20.0;
        assert!(
            (goodput / expected - 1.0).abs() < 0.001,
            "{version}: {goodput} {expected}"
        );
        let [data, acks] = both(&records).map(mean);
        assert!((data - 1_514.0).abs() < 0.1, "{version}: {data}");
        assert!(
            (acks - f64::from(headers + ETHERNET)).abs() < 1e-9,
            "{version}: {acks}"
        );
    }
}

#[test]
fn each_packet_without_a_window_is_20_bytes_larger() {
    let sizes = |traffic: &str| {
        [4, 6].map(|version| {
            let records = records("pfifo", &block(&format!("{traffic}\nip = {version}")));
            both(&records).map(|totals| totals.sent_bytes / totals.sent_packets.max(1))
        })
    };
    // UDP: 14 + 20 + 8 + 1,448; ICMP: 14 + 84, both ways.
    let udp = sizes("type = \"udp\"\nrate = \"1mbit\"\nspread = 0.0");
    assert_eq!(udp, [[1_490, 0], [1_510, 0]]);
    let icmp = sizes("type = \"ping\"\ninterval = \"20ms\"");
    assert_eq!(icmp, [[98, 98], [118, 118]]);
    let echo = sizes("type = \"ping\"\nprotocol = \"udp\"\npayload = \"60b\"\ninterval = \"20ms\"");
    assert_eq!(echo, [[102, 102], [122, 122]]);
    let voip = sizes("type = \"voip\"");
    assert_eq!(voip[1][0], voip[0][0] + 20);
}

#[test]
fn transports_of_every_kind_run_and_send_no_packet_above_the_mtu() {
    for traffic in [
        "type = \"quic\"\nmax_datagram = \"1452b\"",
        "type = \"web\"\npage = \"small\"\nthink = \"100ms\"",
        "type = \"web\"\npage = \"small\"\nhttp = \"3\"\nthink = \"100ms\"",
        "type = \"request\"\nthink = \"100ms\"\nbytes = \"60kb\"",
        "type = \"media\"",
        "type = \"tcp\"\ncc = \"prague\"",
        "type = \"tcp\"\ncc = \"bbr\"\nprofile = \"linux-4.19\"",
        "type = \"tcp\"\ngro = true\ngro_flush_timeout = \"5ms\"",
    ] {
        let text = scenario("pfifo limit 50", &block(&format!("{traffic}\nip = 6")));
        let config = Scenario::from_toml(&text).unwrap().plan(0, 0).config;
        let mut bytes = Vec::new();
        let output = CaptureOutput {
            out: &mut bytes,
            comment: "",
            with_state: false,
        };
        run_captured(&config, Some(output), &mut |_| true).unwrap();
        let packets = blocks(&bytes);
        let packets: Vec<_> = packets
            .iter()
            .filter(|block| block.kind == PACKET)
            .collect();
        assert!(packets.len() > 300, "{traffic}: {}", packets.len());
        assert!(packets.iter().all(|packet| packet.data()[0] >> 4 == 6));
        let largest = packets.iter().map(|packet| packet.field(16)).max();
        let full = if traffic.contains("media") {
            40 + 8 + 1_200
        } else {
            MTU
        };
        assert_eq!(largest, Some(full), "{traffic}");
    }
}

#[test]
fn filters_ask_for_the_version_and_for_addresses_as_captures_show_them() {
    let tree = |filter: &str| {
        format!(
            "htb default rest classes (name all rate 10mbit) (name own parent all rate 2mbit ceil 2mbit) \
             (name rest parent all rate 8mbit ceil 8mbit) filters (to own {filter})"
        )
    };
    let traffic = block("type = \"udp\"\nname = \"old\"\nrate = \"5mbit\"")
        + &block("type = \"udp\"\nname = \"new\"\nrate = \"5mbit\"\nip = 6");
    // Mbit/s that each flow gets, to the nearest.
    let rates = |filter: &str| {
        let records = records(&tree(filter), &traffic);
        [0, 1]
            .map(|flow| (records.flows[flow].totals.delivered_bytes * 8 + 10_000_000) / 20_000_000)
    };
    assert_eq!(rates("ip 4"), [2, 5]);
    assert_eq!(rates("ip 6"), [5, 2]);
    assert_eq!(rates("source 198.18.0.1"), [2, 5]);
    assert_eq!(rates("source 2001:2::1"), [5, 2]);
    // Neither matches, and the two share 8 Mbit/s.
    assert_eq!(rates("destination 2001:2::1").iter().sum::<u64>(), 8);
}

#[test]
fn hosts_share_alike_over_both_versions() {
    // Host 1 has one flow over IPv6, host 2 four over IPv4.
    let traffic = block("type = \"udp\"\nhost = 1\nrate = \"8mbit\"\nip = 6")
        + &block("type = \"udp\"\nhost = 2\ncount = 4\nrate = \"4mbit\"");
    let records = records("cake bandwidth 10mbit dual-srchost", &traffic);
    let rate = |flows: &[FlowRecord]| {
        let bytes: u64 = flows.iter().map(|flow| flow.totals.delivered_bytes).sum();
        bytes as f64 * 8.0 / 20e6
    };
    let [one, four] = [&records.flows[..1], &records.flows[1..]].map(rate);
    assert!((one - four).abs() < 0.2, "{one} {four}");
}
