//! NQB traffic (RFC 9956) in the low-latency queue of dualpi2, and its protection (RFC 9957).

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::Duration;
use sojourn_records::{ClassRecord, LinkRecord};
use sojourn_scenario::Scenario;
use sojourn_sim::run;

/// A call with the DSCP of NQB beside this traffic, at 20 Mbit/s: the record of the link.
fn call_beside(traffic: &str, qdisc: &str) -> LinkRecord {
    let text = format!(
        "duration = \"22s\"\nwarmup = \"2s\"\nrtt = \"20ms\"\n\
         links.up = {{rate = \"20mbit\", qdisc = \"{qdisc}\"}}\n\
         links.down = {{rate = \"100mbit\", qdisc = \"pfifo\"}}\n\
         traffic = [\n\
         {{type = \"voip\", direction = \"up\", dscp = \"NQB\"}},\n\
         {traffic},\n\
         ]\n"
    );
    let config = Scenario::from_toml(&text).unwrap().config(0, 0);
    let links = run(&config, &mut |_| true).unwrap().unwrap().links;
    links.into_iter().find(|link| link.name == "up").unwrap()
}

fn class<'a>(link: &'a LinkRecord, name: &str) -> &'a ClassRecord {
    let mut classes = link.classes.iter();
    classes
        .find(|class| class.class.to_string() == name)
        .unwrap()
}

fn p99(class: &ClassRecord) -> Duration {
    Duration::from_nanos(class.sojourn.quantile(0.99).unwrap())
}

fn count(link: &LinkRecord, name: &str) -> u64 {
    let found = link.statistics.iter().find(|each| each.name == name);
    match found.unwrap().value {
        sojourn_qdisc::Number::Count(n) => n,
        other => panic!("{name}: {other:?}"),
    }
}

/// A call sends a packet every 20 ms: 1000 in 20 s.
const CALL: u64 = 1_000;

#[test]
fn a_call_marked_nqb_does_not_wait_for_cubic() {
    let cubic = "{type = \"tcp\", direction = \"up\", count = 2}";
    for profile in ["linux", "rfc"] {
        let link = call_beside(cubic, &format!("dualpi2 nqb profile {profile}"));
        let (l4s, classic) = (class(&link, "L"), class(&link, "C"));
        assert!(
            (l4s.totals.sent_packets + l4s.totals.drops_aqm).abs_diff(CALL) <= 1,
            "{:?}",
            l4s.totals
        );
        // Without queue protection, RFC 9332 section 2.5.1.1 drops with the square of the probability.
        let most_drops = if profile == "rfc" { CALL / 100 } else { 0 };
        assert!(l4s.totals.drops_aqm <= most_drops, "{:?}", l4s.totals);
        assert_eq!(l4s.totals.marks_aqm + l4s.totals.marks_ce_threshold, 0);
        // A packet of CUBIC that is being sent takes 0.6 ms; the weight of C lets one more pass.
        assert!(
            p99(l4s) < Duration::from_millis(2),
            "{profile}: {:?}",
            p99(l4s)
        );
        assert!(
            p99(classic) > Duration::from_millis(15),
            "{profile}: {:?}",
            p99(classic)
        );
        let without = call_beside(cubic, &format!("dualpi2 profile {profile}"));
        assert_eq!(class(&without, "L").totals.sent_packets, 0);
    }
}

#[test]
fn queue_protection_keeps_a_flood_out_of_the_queue_of_the_call() {
    let flood = "{type = \"udp\", direction = \"up\", rate = \"25mbit\", dscp = \"NQB\"}";
    for profile in ["linux", "rfc"] {
        let with = call_beside(
            flood,
            &format!("dualpi2 nqb queue_protection profile {profile}"),
        );
        let without = call_beside(flood, &format!("dualpi2 nqb profile {profile}"));
        let wait = p99(class(&with, "L"));
        assert!(wait < Duration::from_millis(5), "{profile}: {wait:?}");
        // Without it, the kernel's class 3 forwards all, and the RFC drops up to a quarter.
        let unprotected = class(&without, "L");
        if profile == "linux" {
            assert!(p99(unprotected) > Duration::from_millis(100));
        } else {
            assert!(unprotected.totals.drops_aqm > 1_000);
        }
        assert!(count(&with, "qp_sanctioned") > 1_000, "{profile}");
    }
}
