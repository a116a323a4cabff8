//! Web pages over an idle path: each page load time is known to the millisecond.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use sojourn_apps::{Amount, Http, Object, Page, Wait, WebConfig};
use sojourn_net::{Bytes, Dscp, Duration, IpVersion, Rate};
use sojourn_records::{FlowKind, Records};
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::SenderParams;
use sojourn_transport::quic::FlowControl;

const ONE_WAY: Duration = Duration::from_millis(50);

fn object(name: &str, bytes: u64, after: &[u32]) -> Object {
    Object {
        name: name.to_owned(),
        bytes: Amount::Fixed(Bytes(bytes)),
        after: after.to_vec(),
        delay: Duration::ZERO,
        work: Duration::ZERO,
        origin: 0,
    }
}

fn web(http: Http, objects: Vec<Object>) -> WebConfig {
    WebConfig {
        tcp: SenderParams::default(),
        http,
        tls: false,
        zero_rtt: false,
        flow: FlowControl::default(),
        request: Bytes(400),
        page: Page::new(objects).unwrap(),
        think: Wait::Fixed(Duration::from_secs(1)),
        visits: Some(1),
    }
}

/// Users behind a link of `rate` with a queue `qdisc` and 100 ms of round trip.
fn config(rate: &str, qdisc: &str, users: u32, web: WebConfig) -> Config {
    let web = Arc::new(web);
    Config {
        seed: 1,
        duration: Duration::from_secs(20),
        measure_from: Duration::ZERO,
        sample: Duration::from_millis(100),
        links: vec![LinkConfig::new(
            "down".to_owned(),
            rate.parse::<Rate>().unwrap(),
            qdisc.parse().unwrap(),
        )],
        flows: (0..users)
            .map(|n| FlowConfig {
                name: format!("user {n}"),
                forward: vec![Hop::Delay(ONE_WAY), Hop::Link(0)],
                reverse: vec![Hop::Delay(ONE_WAY)],
                start: Duration::from_secs(1),
                start_jitter: Duration::ZERO,
                stop: None,
                dscp: Dscp::DEFAULT,
                client: None,
                ip: IpVersion::V4,
                traffic: Traffic::App(web.clone()),
            })
            .collect(),
        keep_events: true,
        sample_state: false,
    }
}

fn records(config: &Config) -> Records {
    run(config, &mut |_| true).unwrap().unwrap()
}

/// Load times of all visits, in ms.
fn load_times(records: &Records) -> Vec<f64> {
    let times = records.transactions.iter();
    times
        .map(|t| t.completed.unwrap().since(t.started).as_millis_f64())
        .collect()
}

/// The load time of one visit on an idle gigabit, in round trips.
fn round_trips(web: WebConfig) -> f64 {
    let times = load_times(&records(&config("1gbit", "pfifo limit 1000", 1, web)));
    assert_eq!(times.len(), 1);
    times[0] / 100.0
}

/// `wanted` round trips, and no more than the serialisation of the page beyond.
fn near(got: f64, wanted: f64) {
    assert!(got >= wanted && got < wanted + 0.02, "{got}: not {wanted}");
}

#[test]
fn a_page_of_one_segment_takes_a_handshake_and_a_request() {
    let page = vec![object("html", 1_000, &[])];
    near(round_trips(web(Http::One, page.clone())), 2.0);
    near(round_trips(web(Http::Two, page)), 2.0);
}

#[test]
fn tls_takes_one_round_trip_more() {
    let page = vec![object("html", 1_000, &[])];
    let config = WebConfig {
        tls: true,
        ..web(Http::Two, page)
    };
    near(round_trips(config), 3.0);
}

#[test]
fn http_3_takes_one_round_trip_less_than_http_2_with_tls() {
    let page = vec![object("html", 1_000, &[])];
    let config = WebConfig {
        tls: true,
        ..web(Http::Three, page.clone())
    };
    near(round_trips(config), 2.0);
    let chain = vec![
        page[0].clone(),
        object("a", 500, &[0]),
        object("b", 500, &[1]),
    ];
    near(round_trips(web(Http::Three, chain)), 4.0);
}

#[test]
fn a_user_who_was_there_before_waits_one_round_trip_less_for_each_connection() {
    let resumed = |objects: Vec<Object>| {
        let first = web(Http::Three, objects);
        let again = WebConfig {
            zero_rtt: true,
            ..first.clone()
        };
        (round_trips(first), round_trips(again))
    };
    let page = vec![object("html", 1_000, &[])];
    let (first, again) = resumed(page.clone());
    near(first, 2.0);
    near(again, 1.0);
    // A chain over three servers, each of which takes a handshake.
    let mut chain = page;
    for n in 1..3 {
        let mut next = object(&format!("of server {n}"), 1_000, &[n - 1]);
        next.origin = n;
        chain.push(next);
    }
    let (first, again) = resumed(chain);
    near(first, 6.0);
    near(again, 3.0);
    // Before the client's address is validated a server sends three times what it got: about five
    // thousand bytes go at once, the rest when the client has answered.
    let (first, again) = resumed(vec![object("html", 9_000, &[])]);
    near(first, 2.0);
    near(again, 2.0);
}

#[test]
fn streams_of_http_3_bring_all_objects_at_once() {
    let mut page = vec![object("html", 500, &[])];
    page.extend((0..13).map(|k| object(&format!("leaf {k}"), 500, &[0])));
    near(round_trips(web(Http::Three, page)), 3.0);
}

#[test]
fn a_large_object_takes_the_round_trips_of_slow_start() {
    // Windows of 10, 20, 40 and 80 segments hold 14,480, 43,440, 101,360 and 217,200 B in all.
    for (bytes, rounds) in [(14_480, 1.0), (14_481, 2.0), (43_440, 2.0), (101_360, 3.0)] {
        let page = vec![object("html", bytes, &[])];
        near(round_trips(web(Http::One, page)), 1.0 + rounds);
    }
}

#[test]
fn dependencies_take_a_round_trip_each() {
    let chain = |n: u32| {
        let after = |k: u32| k.checked_sub(1).into_iter().collect::<Vec<_>>();
        let objects = (0..n).map(|k| object(&k.to_string(), 500, &after(k)));
        objects.collect::<Vec<_>>()
    };
    for n in 1..6 {
        near(round_trips(web(Http::One, chain(n))), 1.0 + f64::from(n));
        near(round_trips(web(Http::Two, chain(n))), 1.0 + f64::from(n));
    }
}

#[test]
fn six_connections_bring_six_objects_a_round_trip_and_one_brings_all() {
    let star = |n: u32| {
        let leaves = (0..n).map(|k| object(&format!("leaf {k}"), 500, &[0]));
        let html = std::iter::once(object("html", 500, &[]));
        html.chain(leaves).collect::<Vec<_>>()
    };
    // HTML: 2 round trips. Its connection brings one object a round trip; the other five bring
    // their first after two, for they have to be opened.
    near(round_trips(web(Http::One, star(1))), 3.0);
    near(round_trips(web(Http::One, star(7))), 4.0);
    near(round_trips(web(Http::One, star(8))), 5.0);
    near(round_trips(web(Http::One, star(13))), 5.0);
    near(round_trips(web(Http::Two, star(13))), 3.0);
}

#[test]
fn clients_and_servers_work() {
    let mut page = vec![object("html", 500, &[]), object("script", 500, &[0])];
    page[0].work = Duration::from_millis(40);
    page[1].delay = Duration::from_millis(30);
    for http in Http::ALL {
        near(round_trips(web(http, page.clone())), 3.7);
    }
}

#[test]
fn each_origin_has_connections_of_its_own() {
    let mut page = vec![object("html", 500, &[]), object("image", 500, &[0])];
    near(round_trips(web(Http::Two, page.clone())), 3.0);
    page[1].origin = 1;
    near(round_trips(web(Http::Two, page)), 4.0);
}

#[test]
fn responses_of_http_2_share_the_connection() {
    // Two objects of 200 kB at 10 Mbit/s are 278 segments of 1.21 ms each. The first is asked for
    // after a round trip and begins to arrive after two; windows of 10, 20 and 40 leave the link
    // idle until 500 ms, then 208 segments arrive back to back: all is there at 752 ms.
    let page = vec![
        object("a", 200_000, &[]),
        object("b", 200_000, &[]),
        object("after a", 500, &[0]),
    ];
    let config = config("10mbit", "pfifo limit 1000", 1, web(Http::Two, page));
    let time = load_times(&records(&config))[0];
    // One after the other, "a" would be there at 584 ms and its dependent before all is. In turn
    // "a" ends a few frames before "b", and its dependent is asked for then.
    assert!(time > 800.0 && time < 852.0, "{time}");
}

#[test]
fn visits_follow_one_another_until_the_last() {
    let page = vec![object("html", 500, &[])];
    let records = |visits| {
        let users = WebConfig {
            visits,
            ..web(Http::One, page.clone())
        };
        records(&config("1gbit", "pfifo limit 1000", 1, users))
    };
    let three = records(Some(3));
    assert_eq!(load_times(&three).len(), 3);
    assert_eq!(three.apps[0].connections, 3);
    // 19 s of visits that take 1.2 s with the pause; the last is cut short.
    let all = records(None);
    let whole = all.transactions.iter().filter(|t| t.completed.is_some());
    assert_eq!((whole.count(), all.transactions.len()), (16, 16));
    assert_eq!(all.flows[0].totals.delivered_bytes, 16 * 500);
    assert_eq!(all.flows[0].kind, FlowKind::App);
    let series: u64 = all.flows[0].series.iter().map(|s| s.delivered_bytes).sum();
    assert_eq!(series, 16 * 500);
}

#[test]
fn a_visit_that_does_not_end_within_the_run_says_so() {
    let page = vec![object("html", 10_000_000, &[])];
    let records = records(&config("1mbit", "pfifo limit 100", 1, web(Http::One, page)));
    assert_eq!(records.transactions.len(), 1);
    assert_eq!(records.transactions[0].completed, None);
    assert_eq!(records.transactions[0].bytes, 10_000_000);
}

#[test]
fn a_crowd_at_a_small_queue_loads_every_page_whole() {
    let page = vec![
        object("html", 30_000, &[]),
        object("a", 20_000, &[0]),
        object("b", 5_000, &[0]),
        object("c", 40_000, &[1, 2]),
    ];
    for http in Http::ALL {
        let config = Config {
            duration: Duration::from_secs(200),
            ..config("20mbit", "pfifo limit 20", 40, web(http, page.clone()))
        };
        let records = records(&config);
        assert_eq!(load_times(&records).len(), 40, "{http:?}");
        let drops = records.links[0].totals.drops_overlimit;
        assert!(drops > 500, "{http:?}: only {drops} drops");
        let hit: u64 = records.apps.iter().map(|a| a.initial_hit).sum();
        assert!(
            hit > 20,
            "{http:?}: only {hit} connections lost of their beginning"
        );
        // Every drop belongs to a flow of the configuration.
        assert!(records.events.iter().all(|e| e.flow < 40));
        assert_eq!(records.events.len() as u64, drops);
        // Each byte of each page once; frames of HTTP/2 have headers.
        let framed = if http == Http::Two { 9 * 8 } else { 0 };
        for flow in &records.flows {
            assert_eq!(flow.totals.delivered_bytes, 95_000 + framed);
        }
    }
}

#[test]
fn a_stopped_user_reports_what_was_not_whole() {
    let page = vec![object("html", 10_000_000, &[])];
    let mut config = config("1mbit", "pfifo limit 100", 2, web(Http::One, page));
    config.flows[0].stop = Some(Duration::from_secs(5));
    let records = records(&config);
    assert_eq!(records.transactions.len(), 2);
    let bytes = |n: usize| records.flows[n].totals.delivered_bytes;
    assert!(bytes(1) > 3 * bytes(0), "{} {}", bytes(0), bytes(1));
}
