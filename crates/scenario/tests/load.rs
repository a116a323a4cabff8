//! The load of a plan: upper bounds on packets before anything runs.

use sojourn_scenario::{Load, Scenario};

const RUN: &str = "duration = \"10s\"\nrtt = \"20ms\"\n\
     [links.down]\nrate = \"1gbit\"\nqdisc = \"pfifo\"\n\
     [links.up]\nrate = \"10mbit\"\n";

fn load(rest: &str) -> Load {
    let text = format!("{RUN}{rest}");
    let scenario = Scenario::from_toml(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    scenario.plan(0, 0).config.load()
}

fn refused(rest: &str) -> String {
    let refused = Scenario::from_toml(&format!("{RUN}{rest}")).expect_err(rest);
    refused.to_string()
}

#[test]
fn a_closed_loop_offers_what_its_slowest_link_carries() {
    let one = load("qdisc = \"pfifo\"\n[[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\n");
    // 10 Mbit/s for 10 s in frames of 1514 B are 8256.
    assert!(
        (8_256..8_256 * 3 / 2 + 1_000).contains(&one.packets),
        "{one:?}"
    );
    let many = "qdisc = \"pfifo\"\n[[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\ncount = 100\n";
    // Their initial windows and their smallest windows, which the link cannot carry.
    assert!((one.packets..4 * one.packets).contains(&load(many).packets));
    assert_eq!(one.links[1].waiting, 1_000);
    // Frames of 602 B are 2.5 times as many.
    let small = "qdisc = \"pfifo\"\n[[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\nmss = 536\n";
    assert!((20_763..20_763 * 3 / 2 + 1_000).contains(&load(small).packets));
    let short =
        "qdisc = \"pfifo\"\n[[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\nbytes = \"14480b\"\n";
    assert!((10..30).contains(&load(short).packets));
}

#[test]
fn datagrams_offer_what_they_send_and_the_excess_waits() {
    let udp = |qdisc: &str, rate: &str| {
        load(&format!(
            "qdisc = \"{qdisc}\"\n[[traffic]]\ntype = \"udp\"\ndirection = \"up\"\nrate = \"{rate}\"\npayload = \"1250b\"\n"
        ))
    };
    let half = udp("pfifo limit 100000000", "5mbit");
    assert!((5_000..5_100).contains(&half.packets), "{half:?}");
    assert!(half.links[1].waiting <= 1_000, "{half:?}");
    // 100 Mbit/s are 100000 packets, of which 9675 leave.
    let flood = udp("pfifo limit 100000000", "100mbit");
    assert!(
        (90_000..93_000).contains(&flood.links[1].waiting),
        "{flood:?}"
    );
    assert_eq!(udp("pfifo limit 500", "100mbit").links[1].waiting, 500);
}

#[test]
fn back_to_back_requests_are_at_least_a_round_trip_or_a_timeout_apart() {
    let requests = |timeout: &str| {
        load(&format!(
            "qdisc = \"pfifo\"\n[[traffic]]\ntype = \"ping\"\ndirection = \"up\"\nprotocol = \"udp\"\n\
             interval = \"back-to-back\"\ntimeout = \"{timeout}\"\n"
        ))
        .pings
    };
    // 10 s and an RTT of 20 ms.
    assert_eq!(requests("5s"), 501);
    assert_eq!(requests("1ms"), 10_001);
}

#[test]
fn more_than_any_memory_holds_is_refused() {
    let flood = |qdisc: &str, more: &str| {
        refused(&format!(
            "qdisc = \"{qdisc}\"\n[[traffic]]\ntype = \"udp\"\ndirection = \"up\"\nrate = \"900mbit\"\npayload = \"1b\"\n{more}"
        ))
    };
    let drr = flood("drr classes 4 leaf pfifo limit 100000000", "");
    assert!(
        drr.starts_with("links.up.qdisc: too large for the load"),
        "{drr}"
    );
    let far = flood("pfifo", "rtt = \"100s\"\n");
    assert!(
        far.starts_with("rtt: too long for the rates") || far.contains("duration"),
        "{far}"
    );
    let endless = refused(
        "qdisc = \"pfifo\"\n[[traffic]]\ntype = \"udp\"\ndirection = \"up\"\nrate = \"10gbit\"\npayload = \"1b\"\n",
    );
    assert!(endless.contains("2^32 packets"), "{endless}");
}

#[test]
fn more_events_than_a_table_holds_are_refused() {
    let text = "qdisc = \"pfifo\"\n[[traffic]]\ntype = \"udp\"\ndirection = \"up\"\nrate = \"900mbit\"\npayload = \"1b\"\n";
    let text = format!("keep_events = true\n{RUN}{text}");
    let refused = Scenario::from_toml(&text).expect_err("events").to_string();
    assert!(
        refused.starts_with("keep_events: too many events"),
        "{refused}"
    );
}

#[test]
fn rows_of_the_state_of_queues_are_bounded() {
    let of = |keys: &str, queue: &str| {
        let traffic = "[[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\n";
        Scenario::from_toml(&format!("{keys}{RUN}qdisc = \"{queue}\"\n{traffic}"))
    };
    let rows = |keys: &str, queue: &str| of(keys, queue).unwrap().plan(0, 0).config.state_rows();
    // 100 samples; the link down has a FIFO, which has none.
    assert_eq!(rows("sample_state = true\n", "pie"), 1_600);
    assert_eq!(rows("sample_state = true\n", "pfifo"), 0);
    assert_eq!(rows("", "pie"), 0);
    let refused = of(
        "sample_state = true\nsample = \"10us\"\n",
        "drr classes 64 leaf pie",
    );
    let refused = refused.expect_err("rows").to_string();
    assert!(
        refused.starts_with("sample_state: too many rows: up to"),
        "{refused}"
    );
}

/// The load of one application on a cable line, 1 Gbit/s down and 20 Mbit/s up, for 20 s.
fn of_application(keys: &str) -> Load {
    let text = format!(
        "duration = \"20s\"\nrtt = \"20ms\"\n[links.down]\nrate = \"1gbit\"\nqdisc = \"pfifo\"\n\
         [links.up]\nrate = \"20mbit\"\nqdisc = \"pfifo\"\n[[traffic]]\ndirection = \"down\"\n{keys}"
    );
    let scenario = Scenario::from_toml(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    scenario.plan(0, 0).config.load()
}

#[test]
fn the_slow_link_of_the_acknowledgements_does_not_limit_a_download() {
    // What they sent when they ran.
    for (keys, sent) in [
        ("type = \"responsiveness\"\n", 1_519_763),
        ("type = \"request\"\nbytes = \"1gb\"\n", 1_483_073),
        ("type = \"dash\"\nladder = [\"500mbit\"]\n", 1_409_433),
    ] {
        let load = of_application(keys);
        assert!((sent..4 * sent).contains(&load.packets), "{keys}: {load:?}");
    }
}

/// The load of connections with this control on 10 Mbit/s for 10 s.
fn of_control(cc: &str, up: &str, more: &str) -> Load {
    load(&format!(
        "qdisc = \"{up}\"\n[[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\ncc = \"{cc}\"\n{more}"
    ))
}

#[test]
fn a_profile_that_acknowledges_each_segment_has_twice_the_acknowledgements() {
    let acks = |profile: &str| {
        let more = format!("profile = \"{profile}\"\ninitial_window = 10\n");
        of_control("cubic", "pfifo", &more).links[0].departures
    };
    let linux = acks("linux");
    assert_eq!(acks("linux-4.19"), linux);
    // Also those that acknowledge each segment above a hole.
    for profile in ["linux-3.14", "linux-2.6.34", "ns-2"] {
        assert!(
            (2 * linux..=2 * linux + 1).contains(&acks(profile)),
            "{profile}"
        );
    }
}

#[test]
fn smallest_windows_may_be_lost() {
    let packets = |cc: &str| of_control(cc, "pfifo", "count = 100\n").packets;
    // Windows of 4 segments instead of 2: of 8,256 packets, 12,384 and 4,128 more.
    assert_eq!(packets("bbr") - packets("reno"), 8_256);
    assert_eq!(packets("bbr3"), packets("bbr"));
    assert_eq!(packets("bbr cwnd_min_target 2"), packets("reno"));
    // The link carries them.
    let one = |cc: &str| of_control(cc, "pfifo", "").packets;
    assert_eq!(one("bbr"), one("reno"));
    // They may be lost from a short transfer too.
    let short = |cc: &str| of_control(cc, "pfifo", "count = 100\nbytes = \"10kb\"\n").packets;
    assert!(short("bbr") > short("reno"));
}

#[test]
fn slow_start_loses_what_links_and_queues_hold() {
    let packets = |cc: &str, up: &str| of_control(cc, up, "").packets;
    // 1,000 acknowledgements that wait stand for 2,000 packets.
    let shallow = packets("cubic", "pfifo limit 10");
    assert!(
        (8_256 * 5 / 4 + 2_010..8_256 * 5 / 4 + 2_100).contains(&shallow),
        "{shallow}"
    );
    assert_eq!(packets("cubic", "pfifo limit 110"), shallow + 100);
    // From 2,030 packets, the window falls by one per packet, and 30 arrive per round trip.
    assert!(packets("prague", "pfifo limit 10") > 10 * shallow / 2);
    assert_eq!(
        packets("prague", "pfifo limit 10000"),
        packets("cubic", "pfifo limit 10000")
    );
    // The driver of a radio has a queue of 1,000 packets.
    let radio = |more: &str| {
        let rest = format!(
            "qdisc = \"pfifo limit 10\"\nmedium = {{ type = \"wifi\"{more} }}\n\
             [[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\n"
        );
        load(&rest).packets
    };
    let driver = radio("") - radio(", driver = \"100p\"");
    assert_eq!(driver, 900);
}

#[test]
fn packets_that_are_dropped_leave_no_link() {
    let udp = |rate: &str| {
        load(&format!(
            "qdisc = \"codel\"\n[[traffic]]\ntype = \"udp\"\ndirection = \"up\"\nrate = \"{rate}\"\npayload = \"1250b\"\n"
        ))
    };
    // Each is sent, leaves its link and arrives.
    let half = udp("5mbit");
    assert!(
        (3 * half.packets..3 * half.packets + 300).contains(&half.events),
        "{half:?}"
    );
    let flood = udp("100mbit");
    assert!(
        (100_000 + 2 * 9_675..120_000).contains(&flood.events),
        "{flood:?}"
    );
    // Copies are answered.
    let pings = |duplicate: &str| {
        load(&format!(
            "qdisc = \"codel\"\nduplicate = \"{duplicate}\"\n[[traffic]]\ntype = \"ping\"\ndirection = \"up\"\ninterval = \"20ms\"\n"
        ))
        .packets
    };
    assert_eq!(pings("0%"), 2 * 501);
    assert!((2 * 501 + 150..2 * 501 + 250).contains(&pings("30%")));
}

#[test]
fn an_application_gets_no_more_than_its_link_carries() {
    let transactions = |keys: &str| {
        load(&format!(
            "qdisc = \"pfifo\"\n[[traffic]]\ndirection = \"up\"\n{keys}"
        ))
        .transactions
    };
    // 11,954,688 bytes of 8,256 packets.
    let request = "type = \"request\"\nbytes = \"1mb\"\nthink = \"0s\"\n";
    assert_eq!(transactions(request), 11 + 1);
    let dash = "type = \"dash\"\nladder = [\"80mbit\"]\nsegment = \"1s\"\n";
    assert_eq!(transactions(dash), 1 + 1);
    let page = "type = \"web\"\npage = \"objects50\"\nthink = \"0s\"\n";
    assert!(transactions(page) < 100);
}

#[test]
fn an_application_sends_at_most_what_its_parameters_ask_for() {
    let packets = |keys: &str| of_application(keys).packets;
    // 1,000 rounds of 20 ms, a packet each way, each sent twice at most.
    let requests = "type = \"request\"\nbytes = \"1kb\"\nthink = \"0s\"\n";
    assert!((2_000..7_000).contains(&packets(requests)));
    let think = "type = \"request\"\nbytes = \"1kb\"\nthink = \"180ms\"\n";
    assert!((200..700).contains(&packets(think)));
    let incast = "type = \"incast\"\nservers = 8\nbytes = \"10kb\"\nthink = \"180ms\"\n";
    assert!((800 * 8..2 * 900 * 9).contains(&packets(incast)));
    // 100 in 20 s, 14 packets there and one back.
    let sessions = "type = \"sessions\"\nbytes = \"20kb\"\nevery = \"200ms\"\n";
    assert!((1_500..5_000).contains(&packets(sessions)));
    assert_eq!(of_application(sessions).transactions, 101);
    // 1 Mbit/s for 20 s and a buffer of 10 s are 2,590 full packets.
    let dash = "type = \"dash\"\nladder = [\"1mbit\"]\nsegment = \"1s\"\nbuffer = \"10s\"\n";
    assert!((2_590..6_500).contains(&packets(dash)));
    let probes = "type = \"responsiveness\"\nload = false\n";
    assert!(packets(probes) < 60_000);
}

#[test]
fn the_timers_of_queues_are_events() {
    let events = |qdisc: &str| {
        let text =
            format!("qdisc = \"{qdisc}\"\n[[traffic]]\ntype = \"ping\"\ndirection = \"up\"\n");
        load(&text).events
    };
    assert!(events("pie tupdate 1us") > 10_000_000);
    assert!(events("pie") < 20_000);
}
