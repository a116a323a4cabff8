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
    assert_eq!(load(many).packets, one.packets);
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
