//! What queues with classes report of each class.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::Duration;
use sojourn_records::{LinkCounters, LinkRecord};
use sojourn_scenario::Scenario;
use sojourn_sim::run;

/// The record of link up with this queue: CUBIC, Prague and a stream of another DSCP on 10 Mbit/s.
fn record(qdisc: &str) -> LinkRecord {
    let text = format!(
        "duration = \"12s\"\nwarmup = \"2s\"\nrtt = \"20ms\"\n\
         links.up = {{rate = \"10mbit\", qdisc = \"{qdisc}\"}}\n\
         links.down = {{rate = \"100mbit\", qdisc = \"pfifo\"}}\n\
         traffic = [\n\
         {{type = \"tcp\", direction = \"up\"}},\n\
         {{type = \"tcp\", direction = \"up\", cc = \"prague\"}},\n\
         {{type = \"udp\", direction = \"up\", rate = \"200kbit\", dscp = 4}},\n\
         ]\n"
    );
    let config = Scenario::from_toml(&text).unwrap().config(0, 0);
    let links = run(&config, &mut |_| true).unwrap().unwrap().links;
    links.into_iter().find(|link| link.name == "up").unwrap()
}

#[test]
fn classes_add_up_to_their_link() {
    for (qdisc, names) in [
        ("dualpi2", &["L", "C"][..]),
        ("cake", &["tin 0", "tin 1", "tin 2"]),
        ("cake bandwidth 5mbit besteffort", &["tin 0"]),
        (
            "prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1",
            &["band 0", "band 1"],
        ),
        ("prio", &["band 0", "band 1", "band 2"]),
        (
            "prio leaf dualpi2 / cake / pfifo limit 20",
            &["band 0", "band 1", "band 2"],
        ),
        ("pfifo_fast", &["band 0", "band 1", "band 2"]),
        ("sfb leaf prio", &["band 0", "band 1", "band 2"]),
        ("red leaf dualpi2", &["L", "C"]),
        ("fq_codel", &[]),
    ] {
        let link = record(qdisc);
        let found: Vec<_> = link.classes.iter().map(|c| c.class.to_string()).collect();
        assert_eq!(found, names, "{qdisc}");
        if names.is_empty() {
            continue;
        }
        let mut sum = LinkCounters::default();
        let mut packets = 0;
        for class in &link.classes {
            sum.add(&class.totals);
            packets += class.sojourn.count();
        }
        // SFB drops and marks before its leaf puts the packet into a class.
        if qdisc.starts_with("sfb") {
            assert_eq!(sum.sent_bytes, link.totals.sent_bytes);
        } else {
            assert_eq!(sum, link.totals, "{qdisc}");
        }
        assert_eq!(packets, link.sojourn.count(), "{qdisc}");
    }
}

#[test]
fn a_class_without_packets_counts_none() {
    for (qdisc, name) in [("cake", "tin 0"), ("prio", "band 2")] {
        let link = record(qdisc);
        let idle = link.classes.iter().find(|c| c.class.to_string() == name);
        let idle = idle.unwrap();
        assert_eq!(idle.totals, LinkCounters::default(), "{qdisc}");
        assert_eq!(idle.sojourn.mean(), None, "{qdisc}");
    }
}

#[test]
fn drr_reports_a_class_per_flow() {
    let link = record("drr classes 64 leaf codel");
    assert_eq!(link.classes.len(), 3);
    let sent: u64 = link
        .classes
        .iter()
        .map(|class| class.totals.sent_packets)
        .sum();
    assert_eq!(sent, link.totals.sent_packets);
    let dropped: u64 = link
        .classes
        .iter()
        .map(|class| class.totals.drops_aqm)
        .sum();
    assert_eq!(dropped, link.totals.drops_aqm);
}

#[test]
fn the_queue_for_l4s_is_the_shorter_one() {
    let link = record("dualpi2");
    let p99 =
        |place: usize| Duration::from_nanos(link.classes[place].sojourn.quantile(0.99).unwrap());
    assert!(p99(0) < Duration::from_millis(3), "{:?}", p99(0));
    assert!(p99(1) > Duration::from_millis(10), "{:?}", p99(1));
    assert_eq!(link.classes[0].totals.drops_aqm, 0);
    assert!(link.classes[0].totals.marks_aqm + link.classes[0].totals.marks_ce_threshold > 100);
}
