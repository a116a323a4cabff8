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
    let found = |warmup, traffic| concerns(&over(warmup, "pfifo", traffic));
    assert_eq!(
        found("5s", "start = \"5s\""),
        [
            "warning: the warm-up ends at 5 s, but the load starts at 5 s and needs 2 s to settle: the \
             results include the start of the flows. Use a warm-up of at least 7 s."
        ]
    );
    // 20 round trips of 300 ms.
    let far = found("5s", "rtt = \"300ms\"");
    assert!(far[0].contains("needs 6 s to settle"), "{far:?}");
    // All load starts after the warm-up.
    let idle = found("0s", "start = \"30s\"");
    assert!(idle[0].contains("at least 32 s"), "{idle:?}");
    for (warmup, traffic) in [
        ("7s", "start = \"5s\""),
        // Transfers and flows that have ended are not the load.
        ("0s", "bytes = \"1mb\""),
        ("5s", "start = \"4s\", stop = \"5s\""),
    ] {
        assert!(found(warmup, traffic).is_empty(), "{warmup} {traffic}");
    }
    // A flow that joins in the measured time is part of the experiment.
    let joins = over("10s", "pfifo", "").replace(
        "traffic = [",
        "traffic = [{type = \"tcp\", direction = \"up\", start = \"30s\"}, ",
    );
    assert!(concerns(&joins).is_empty());
}

#[test]
fn models_without_a_comparison_are_named() {
    let names = |qdisc, traffic| concerns(&over("10s", qdisc, traffic)).join(" ");
    assert_eq!(
        names("floq", "cc = \"bbr3\""),
        "note: not compared with a real implementation: congestion control bbr3, queue floq (a \
         reconstruction)."
    );
    assert_eq!(
        names("drr leaf cobalt", "cc = \"prague\""),
        "note: not compared with a real implementation: congestion control prague, queue drr. \
         note: compared with a real implementation only in part: queue cobalt (with Linux 6.1, as the AQM \
         of CAKE)."
    );
    // Of queues with several profiles, that of Linux was compared.
    assert_eq!(
        names("fq_codel", ""),
        "note: compared with a real implementation in another profile than the one in use: queue fq_codel \
         (profile rfc; profile linux with Linux 6.1)."
    );
    assert_eq!(
        names(
            "prio leaf codel profile linux / pie profile linux-3.14 / dualpi2",
            ""
        ),
        "note: not compared with a real implementation: queue prio. note: compared with a real \
         implementation in another profile than the one in use: queue dualpi2 (profile rfc; profile linux \
         with Linux 6.18), queue pie (profile linux-3.14; profile linux with Linux 6.1)."
    );
    for compared in [
        "codel profile linux",
        "fq_codel profile linux",
        "pie profile linux",
        "dualpi2 profile linux",
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
    assert!(air.contains("wireless links"), "{air}");
}
