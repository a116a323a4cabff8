//! What limits the results of a scenario is found before any run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_scenario::{Scenario, Severity};

/// The concerns about a scenario with these lines, as `severity: text`.
fn concerns(lines: &str) -> Vec<String> {
    let scenario = Scenario::from_toml(lines).unwrap();
    let shown = |severity: Severity| severity.name();
    let concerns = scenario.concerns().into_iter();
    concerns
        .map(|concern| format!("{}: {}", shown(concern.severity), concern.text))
        .collect()
}

/// A scenario with this warm-up, queue of link up, and traffic.
fn over(warmup: &str, qdisc: &str, traffic: &str) -> String {
    format!(
        "duration = \"60s\"\nwarmup = \"{warmup}\"\nrtt = \"50ms\"\n\
         links.up = {{rate = \"20mbit\", qdisc = \"{qdisc}\"}}\n\
         links.down = {{rate = \"100mbit\", qdisc = \"pfifo\"}}\n\
         traffic = [{{type = \"tcp\", direction = \"up\", {traffic}}}]\n"
    )
}

#[test]
fn a_tree_of_classes_may_be_faster_than_its_link() {
    let tree = "htb classes (name all rate 1gbit) (name a parent all rate 2mbit ceil 2mbit)";
    assert_eq!(concerns(&over("10s", tree, "")), [""; 0]);
}

#[test]
fn a_response_to_marks_without_ecn_is_found() {
    let expected =
        "warning: on_ce has no effect on the traffic tcp up, which does not use ECN; set ecn.";
    assert_eq!(
        concerns(&over("10s", "pfifo", "on_ce = \"abe\"")),
        [expected]
    );
    for ecn in ["ecn = true, on_ce = \"abe\"", "cc = \"prague\""] {
        let found = concerns(&over("10s", "pfifo", ecn));
        assert!(
            !found.iter().any(|text| text.contains("on_ce")),
            "{found:?}"
        );
    }
}

#[test]
fn stations_without_traffic_and_weights_without_effect_are_found() {
    let wifi = |driver: &str, host: u8| {
        format!(
            "duration = \"60s\"\nwarmup = \"10s\"\nrtt = \"50ms\"\n\
             links.up = \"unlimited\"\n[links.down]\nrate = \"65mbit\"\nqdisc = \"mac80211\"\n\
             medium = {{ type = \"wifi\", driver = \"{driver}\", \
             stations = [{{ host = 2, rate = \"13mbit\", weight = 512 }}] }}\n\
             [[traffic]]\ntype = \"tcp\"\ndirection = \"down\"\nhost = {host}\n"
        )
    };
    let warnings = |text: &str| -> Vec<String> {
        let mut found = concerns(text);
        found.retain(|text| text.starts_with("warning"));
        found
    };
    assert_eq!(
        warnings(&wifi("1000p", 2)),
        [
            "warning: weights of the stations of link down have little effect, since AQL limits each station alike; \
          set driver = \"2 aggregates\"."
        ]
    );
    assert_eq!(
        warnings(&wifi("2 aggregates", 3)),
        ["warning: no traffic has host 2, a station of link down."]
    );
    assert_eq!(warnings(&wifi("2 aggregates", 2)), [""; 0]);
}

#[test]
fn a_shaper_that_is_faster_than_its_link_is_found() {
    assert_eq!(
        concerns(&over("10s", "cake bandwidth 90mbit", "")),
        [
            "warning: the shaper of the queue of link up (90mbit) is faster than the link (20mbit) and \
             has no effect."
        ]
    );
    for fine in ["cake bandwidth 20mbit", "cake", "pfifo"] {
        assert!(concerns(&over("10s", fine, "")).is_empty(), "{fine}");
    }
    let arms = over("10s", "pfifo", "")
        + "arms = [{name = \"a\", set = {\"links.up.qdisc\" = \"cake bandwidth 30mbit\"}},\n\
           {name = \"b\", set = {\"links.up.qdisc\" = \"cake bandwidth 10mbit\"}}]\n";
    assert_eq!(
        concerns(&arms),
        [
            "warning: a: the shaper of the queue of link up (30mbit) is faster than the link (20mbit) \
             and has no effect."
        ]
    );
}

#[test]
fn a_warm_up_without_time_to_settle_is_found() {
    let found = |warmup, traffic| concerns(&over(warmup, "codel profile linux", traffic));
    assert_eq!(
        found("5s", "start = \"5s\""),
        ["warning: still starting up when measuring begins at 5 s. Use warmup=7s."]
    );
    // 20 round trips of 300 ms.
    let far = found("3s", "rtt = \"300ms\"");
    assert!(far[0].contains("warmup=6s"), "{far:?}");
    // All load starts after the warm-up.
    let idle = found("0s", "start = \"30s\"");
    assert!(idle[0].contains("warmup=32s"), "{idle:?}");
    for (warmup, traffic) in [
        ("7s", "start = \"5s\""),
        // All but 3 s of the 57 s that are measured.
        ("3s", "rtt = \"290ms\""),
        // Transfers and flows that have ended are not the load.
        ("0s", "bytes = \"1mb\""),
        ("5s", "start = \"4s\", stop = \"5s\""),
    ] {
        assert!(found(warmup, traffic).is_empty(), "{warmup} {traffic}");
    }
    // A flow that joins in the measured time is part of the experiment.
    let joins = over("10s", "codel profile linux", "").replace(
        "traffic = [",
        "traffic = [{type = \"tcp\", direction = \"up\", start = \"30s\"}, ",
    );
    assert!(concerns(&joins).is_empty());
}

/// Settling times that the warning names, for this queue, path and traffic in both directions.
fn settling(rates: (&str, &str), qdisc: &str, rtt: &str, traffic: &str) -> Vec<String> {
    let text = format!(
        "duration = \"60s\"\nrtt = \"{rtt}\"\n\
         links.up = {{rate = \"{}\", qdisc = \"{qdisc}\"}}\n\
         links.down = {{rate = \"{}\", qdisc = \"{qdisc}\"}}\n\
         traffic = [{traffic}]\n",
        rates.1, rates.0
    );
    let time = |text: &str| {
        let rest = text.split("warmup=").nth(1)?;
        Some(format!("{} s", rest.strip_suffix("s.")?))
    };
    concerns(&text)
        .iter()
        .filter_map(|text| time(text))
        .collect()
}

const BOTH_WAYS: &str = "{type = \"tcp\", direction = \"up\", count = 4}, \
                         {type = \"tcp\", direction = \"down\", count = 4}";

#[test]
fn buffers_without_an_aqm_are_filled_first() {
    let of = |qdisc| settling(("100mbit", "20mbit"), qdisc, "25ms", BOTH_WAYS);
    // 606 ms up and 121 ms down: a window of 1500 packets per flow down.
    assert_eq!(of("pfifo"), ["11.15 s"]);
    assert_eq!(of("bfifo"), of("pfifo"));
    assert_eq!(of("pfifo_fast"), of("pfifo"));
    // A window of 7 packets; 2 s are longer.
    assert_eq!(of("pfifo limit 5"), ["2 s"]);
    for short in [
        "fq_codel",
        "cake",
        "codel",
        "pie",
        "red",
        "dualpi2",
        "pfifo ce_threshold 5ms",
    ] {
        assert_eq!(of(short), ["2 s"], "{short}");
    }
    // A buffer that no load fills: ACKs do not.
    let down = "{type = \"tcp\", direction = \"down\", count = 4}";
    assert_eq!(
        settling(("100mbit", "20mbit"), "pfifo", "25ms", down),
        ["5.87 s"]
    );
    // Controls that keep queues short do not fill it.
    let bbr = "{type = \"tcp\", direction = \"down\", cc = \"bbr\"}";
    assert_eq!(
        settling(("100mbit", "20mbit"), "pfifo", "25ms", bbr),
        ["2 s"]
    );
}

#[test]
fn streams_that_exceed_a_link_fill_its_buffer() {
    let of = |qdisc, rate| {
        let udp = format!("{{type = \"udp\", direction = \"down\", rate = \"{rate}\"}}");
        settling(("20mbit", "20mbit"), qdisc, "20ms", &udp)
    };
    // 24.2 Mbit in the buffer, 1.09 Mbit/s more than the link carries.
    assert_eq!(of("pfifo limit 2000", "20.5mbit"), ["22.13 s"]);
    assert_eq!(of("pfifo limit 2000", "19mbit"), [""; 0]);
    assert_eq!(of("codel", "20.5mbit"), [""; 0]);
}

#[test]
fn the_warm_up_of_the_command_fills_the_default_buffer() {
    for (rates, traffic) in [
        // The first example of the README.
        (
            ("50mbit", "10mbit"),
            "{type = \"tcp\", direction = \"up\", count = 2, start = \"5s\"}".to_owned(),
        ),
        (
            ("10mbit", "10mbit"),
            BOTH_WAYS.replace('}', ", start = \"5s\"}"),
        ),
    ] {
        let text = format!(
            "duration = \"70s\"\nwarmup = \"15s\"\nrtt = \"50ms\"\n\
             links.up = {{rate = \"{}\", qdisc = \"pfifo\"}}\n\
             links.down = {{rate = \"{}\", qdisc = \"pfifo\"}}\n\
             traffic = [{traffic}]\n",
            rates.1, rates.0
        );
        assert_eq!(concerns(&text), [""; 0]);
    }
}

#[test]
fn models_without_a_comparison_are_named() {
    let names = |qdisc, traffic| concerns(&over("10s", qdisc, traffic)).join(" ");
    assert_eq!(
        names("floq", "cc = \"ledbat\""),
        "note: not compared with a real implementation: congestion control ledbat, queue floq (a \
         reconstruction)."
    );
    assert_eq!(
        names("drr leaf cobalt/red_ns2", "cc = \"vegas\""),
        "note: not compared with a real implementation: congestion control vegas, queue red_ns2. \
         note: compared with a real implementation only in part: queue cobalt (with Linux 6.1, as the AQM \
         of CAKE)."
    );
    // Of queues with several profiles, that of Linux was compared.
    assert_eq!(
        names(
            "prio leaf codel profile rfc / pie profile linux-3.14 / dualpi2",
            ""
        ),
        "note: not compared with a real implementation: queue codel (profile rfc), queue pie (profile \
         linux-3.14)."
    );
    for compared in [
        "codel",
        "fq_codel",
        "pie",
        "dualpi2",
        "prio",
        "pfifo_fast",
        "drr",
    ] {
        assert_eq!(names(compared, ""), "", "{compared}");
    }
    assert_eq!(
        names("dualpi2 profile linux drop_enqueue", ""),
        "note: compared with a real implementation only in part: queue dualpi2 (with Linux 6.18, without \
         drop_enqueue and min_qlen_step)."
    );
    let quic = over("10s", "fq_codel", "").replace("\"tcp\"", "\"quic\"");
    let quic = concerns(&quic).join(" ");
    assert!(
        quic.contains("only in part: QUIC (with quinn-proto"),
        "{quic}"
    );
    let web = over("10s", "fq_codel", "").replace(
        "traffic = [",
        "traffic = [{type = \"web\", direction = \"down\", page = \"small\", cc = \"vegas\"}, ",
    );
    let web = concerns(&web).join(" ");
    assert!(web.contains("congestion control vegas"), "{web}");
    let air = over("10s", "fq_codel", "").replace(
        "{rate = \"20mbit\"",
        "{medium = {type = \"wifi\", name = \"air\"}, rate = \"65mbit\"",
    );
    let air = concerns(&air).join(" ");
    assert!(
        air.contains("only in part: wireless links (with ns-3, not measured on hardware)"),
        "{air}"
    );
}

#[test]
fn a_queue_that_assumes_the_rate_of_its_link_is_found() {
    let air = |qdisc: &str| {
        let lines = over("10s", qdisc, "").replace(
            "{rate = \"20mbit\"",
            "{medium = {type = \"wifi\", name = \"air\"}, rate = \"65mbit\"",
        );
        concerns(&lines)
    };
    let trace = |qdisc: &str| {
        let trace = "{trace = {gaps_ms = \"1x40 2x30\"}";
        concerns(&over("10s", qdisc, "").replace("{rate = \"20mbit\"", trace))
    };
    let text = "warning: the queue predict of link up assumes a rate of 10mbit, but the link";
    for (found, why) in [
        (air("predict"), "is wireless"),
        (trace("predict"), "follows a capacity trace"),
    ] {
        let wanted = format!("{text} {why}; set its bandwidth.");
        assert!(found.contains(&wanted), "{found:?}");
    }
    let fine = [
        air("predict bandwidth 40mbit"),
        trace("red"),
        concerns(&over("10s", "predict", "")),
    ];
    for found in fine {
        assert!(
            found.iter().all(|text| !text.contains("assumes")),
            "{found:?}"
        );
    }
}
