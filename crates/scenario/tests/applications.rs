//! Applications in scenarios: they are read as written, and mistakes are reported.

use std::collections::BTreeSet;

use sojourn_scenario::plan::Traffic;
use sojourn_scenario::{Measured, Scenario, traffic_properties, traffic_types};

fn scenario(traffic: &str) -> String {
    format!(
        r#"
        duration = "20s"
        rtt = "100ms"
        links.up = {{ rate = "100mbit", qdisc = "pfifo" }}
        links.down = {{ rate = "100mbit", qdisc = "pfifo" }}
        [[traffic]]
        direction = "down"
        {traffic}
        "#
    )
}

#[test]
fn every_application_reads_back_as_itself() {
    for traffic in [
        "type = \"sessions\"\nevery = { distribution = \"exponential\", mean = \"200ms\" }\n\
         bytes = { distribution = \"pareto\", least = \"4kb\", shape = 1.2 }",
        "type = \"request\"\nbytes = \"32kb\"\nwork = \"5ms\"\nthink = \"1s\"\nrounds = 3",
        "type = \"incast\"\nservers = 16\nbytes = \"32kb\"",
        "type = \"dash\"\nladder = [\"1mbit\", \"2mbit\"]\nsegment = \"2s\"\nbuffer = \"10s\"",
        "type = \"dash\"",
        "type = \"udp\"\nrate = \"1mbit\"\nspacing = \"poisson\"",
        "type = \"ping\"\ninterval = \"10ms\"",
        "type = \"ping\"\nprotocol = \"udp\"\npayload = \"60b\"",
        "type = \"ping\"\nprotocol = \"udp\"\ninterval = \"back-to-back\"\ntimeout = \"1s\"",
        "type = \"voip\"\ndscp = \"EF\"\njitter_buffer = \"40ms\"",
        "type = \"responsiveness\"\nconnections = 8\ntls = false\ncc = \"reno\"",
        "type = \"responsiveness\"\nload = false",
        "type = \"voip\"\njitter_buffer = \"adaptive\"",
        "type = \"program\"\ncommand = [\"sh\", \"-c\", \"\", \"a \\\"b\\\"\\n\"]",
        "type = \"program\"\ncount = 1\ncommand = [\"a\", \"$SOJOURN_SERVER\"]\nserver = [\"b\"]",
    ] {
        let read = Scenario::from_toml(&scenario(traffic)).unwrap();
        assert_eq!(Scenario::from_toml(&read.to_toml()).unwrap(), read);
    }
}

#[test]
fn errors_name_the_place() {
    for (traffic, wanted) in [
        (
            "type = \"sessions\"\nbytes = \"1kb\"",
            "traffic[0].every: missing; set it, for example every = { distribution = \"exponential\"",
        ),
        (
            "type = \"sessions\"\nevery = \"0s\"\nbytes = \"1kb\"",
            "traffic[0].every: must be > 0",
        ),
        (
            "type = \"sessions\"\nevery = \"1ns\"\nbytes = \"1kb\"",
            "traffic[0].every: too short; expected at least",
        ),
        (
            "type = \"sessions\"\nevery = \"1s\"\nbytes = \"0b\"",
            "traffic[0].bytes: \"0b\" is out of range",
        ),
        (
            "type = \"request\"\nservers = 3\nbytes = \"1kb\"",
            "traffic[0].servers: unknown key",
        ),
        (
            "type = \"incast\"\nservers = 1\nbytes = \"1kb\"",
            "traffic[0].servers: 1 is out of range; expected a whole number from 2 to 10000",
        ),
        (
            "type = \"dash\"\nladder = [\"2mbit\", \"1mbit\"]",
            "traffic[0].ladder[1]: must be greater than the previous rate",
        ),
        (
            "type = \"udp\"\nrate = \"1mbit\"\nspacing = \"poisson\"\nspread = 0.1",
            "traffic[0].spread: not allowed with spacing",
        ),
        (
            "type = \"ping\"\ninterval = \"back-to-back\"",
            "traffic[0].interval: \"back-to-back\" requires protocol = \"udp\"",
        ),
        (
            "type = \"ping\"\npayload = \"60b\"",
            "traffic[0].payload: requires protocol = \"udp\"",
        ),
        (
            "type = \"ping\"\nprotocol = \"udp\"\ntimeout = \"1s\"",
            "traffic[0].timeout: requires interval = \"back-to-back\"",
        ),
        (
            "type = \"ping\"\nprotocol = \"udp\"\ninterval = \"back-to-back\"\ncount = 100",
            "traffic[0].interval: too many requests; expected an interval of at least",
        ),
        (
            "type = \"responsiveness\"\nload = false\nconnections = 8",
            "traffic[0].connections: not allowed with load = false",
        ),
        (
            "type = \"responsiveness\"\nconnections = 0",
            "traffic[0].connections: 0 is out of range; expected a whole number from 1 to 1000",
        ),
        (
            "type = \"voip\"\njitter_buffer = \"none\"",
            "traffic[0].jitter_buffer: \"none\" is not a jitter buffer; expected \"adaptive\" or a time such as \"60ms\"",
        ),
        (
            "type = \"dash\"\nladder = []",
            "traffic[0].ladder: empty; expected at least one rate",
        ),
        (
            "type = \"dash\"\nsegment = \"4s\"\nbuffer = \"3s\"",
            "traffic[0].buffer: must hold at least one segment",
        ),
        (
            "type = \"dash\"\nbuffer = \"8s\"\nbegin = \"9s\"",
            "traffic[0].begin: must not exceed buffer",
        ),
    ] {
        let error = Scenario::from_toml(&scenario(traffic)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with(wanted), "{error}\nnot {wanted}");
    }
}

/// Every application with what it needs.
const APPLICATIONS: [&str; 6] = [
    "type = \"web\"\npage = \"small\"",
    "type = \"sessions\"\nevery = \"1s\"\nbytes = \"1kb\"",
    "type = \"request\"\nbytes = \"1kb\"",
    "type = \"incast\"\nservers = 2\nbytes = \"1kb\"",
    "type = \"dash\"",
    "type = \"responsiveness\"",
];

#[test]
fn every_application_has_a_transport_whose_default_is_not_written() {
    for traffic in APPLICATIONS {
        let read =
            |more: &str| Scenario::from_toml(&scenario(&format!("{traffic}\n{more}"))).unwrap();
        let usual = read("");
        assert_eq!(read("transport = \"tcp\""), usual, "{traffic}");
        assert!(!usual.to_toml().contains("transport"), "{traffic}");
        let quic = read("transport = \"quic\"");
        assert_ne!(quic, usual, "{traffic}");
        let again = Scenario::from_toml(&quic.to_toml()).unwrap();
        assert_eq!(again.to_toml(), quic.to_toml(), "{traffic}");
    }
}

#[test]
fn settings_that_contradict_the_transport_are_refused() {
    let fault = |traffic: &str| {
        let error = Scenario::from_toml(&scenario(traffic)).unwrap_err();
        error.to_string()
    };
    for (more, wanted) in [
        (
            "after_idle = \"keep\"",
            "traffic[0].after_idle: is for TCP only; remove it, or set transport = \"tcp\"",
        ),
        (
            "profile = \"linux\"",
            "traffic[0].profile: is for TCP only; remove it, or set transport = \"tcp\"",
        ),
        (
            "mss = 536",
            "traffic[0].mss: is for TCP only; remove it, or set transport = \"tcp\"",
        ),
        (
            "ecn = \"accurate\"",
            "traffic[0].ecn: \"accurate\" is for TCP only; over QUIC, expected true or false",
        ),
    ] {
        for traffic in &APPLICATIONS[1..] {
            let message = fault(&format!("{traffic}\ntransport = \"quic\"\n{more}"));
            assert!(message.starts_with(wanted), "{message}");
        }
    }
    let message = fault("type = \"responsiveness\"\ntransport = \"quic\"\ntls = false");
    assert!(
        message.starts_with("traffic[0].tls: must be true over QUIC"),
        "{message}"
    );
    for (http, given, needed) in [
        ("3", "tcp", "quic"),
        ("2", "quic", "tcp"),
        ("1.1", "quic", "tcp"),
    ] {
        let message = fault(&format!(
            "type = \"web\"\npage = \"small\"\nhttp = \"{http}\"\ntransport = \"{given}\""
        ));
        let wanted = format!(
            "traffic[0].transport: http = \"{http}\" runs over {needed}; expected transport = \"{needed}\""
        );
        assert!(message.starts_with(&wanted), "{message}");
    }
    let message = fault("type = \"dash\"\ntransport = \"sctp\"");
    assert!(message.starts_with("traffic[0].transport: "), "{message}");
}

#[test]
fn an_older_name_of_a_key_is_read_in_arms_and_changes() {
    let text = |arms: &str| {
        format!(
            "duration = \"1s\"
             traffic = [{{ type = \"web\", direction = \"down\", page = \"a\" }}]
             {arms}
             [links]
             up = {{ rate = \"1mbit\", qdisc = \"codel\" }}
             down = {{ rate = \"1mbit\", qdisc = \"codel\" }}
             [pages.a]
             objects = [{{ name = \"x\", bytes = \"1kb\", think = \"5ms\" }}]"
        )
    };
    let read = |arms: &str| Scenario::from_toml(&text(arms));
    let arm = |set: &str| read(&format!("arms = [{{ name = \"one\", set = {{ {set} }} }}]"));
    let older = arm("\"pages.a.objects[0].think\" = \"9ms\"").unwrap();
    let newer = arm("\"pages.a.objects[0].work\" = \"9ms\"").unwrap();
    assert_eq!(older, newer);
    assert!(
        older
            .to_json()
            .contains("\"pages.a.objects[0].work\":\"9ms\"")
    );
    assert_eq!(older.arms_that_set("pages.a.objects[0].think"), ["one"]);
    // A manifest of an earlier version has the older name everywhere.
    let manifest = older.to_json().replace("work", "think");
    assert_eq!(Scenario::from_json(&manifest).unwrap(), older);
    let change = |name: &str| {
        let path = format!("pages.a.objects[0].{name}");
        read("").unwrap().changed(&[(path, "\"7ms\"".to_owned())])
    };
    assert_eq!(change("think").unwrap(), change("work").unwrap());
    assert!(
        change("think")
            .unwrap()
            .to_json()
            .contains("\"work\":\"7ms\"")
    );
    let both = arm("\"pages.a.objects[0].think\" = \"9ms\", \"pages.a.objects.0.work\" = \"8ms\"");
    let both = both.unwrap_err();
    assert_eq!(both.path, "arms[0].set.pages.a.objects[0].think");
    assert_eq!(
        both.rule,
        "\"think\" was renamed to \"work\"; set only \"work\" (arm \"one\")"
    );
}

#[test]
fn constants_of_slow_start_need_their_heuristic() {
    let page = "type = \"web\"\npage = \"small\"\n";
    let request = "type = \"request\"\nbytes = \"1kb\"\n";
    let cubic = "cc = \"cubic hystartpp_l 3\"";
    for (traffic, used) in [
        (format!("type = \"tcp\"\n{cubic}"), Some("hystart")),
        (
            "type = \"tcp\"\ncc = \"cubic hystart off hystartpp_l 3\"".to_owned(),
            Some("standard"),
        ),
        (
            "type = \"tcp\"\ncc = \"reno hystartpp_l 3\"\nslow_start = \"standard\"".to_owned(),
            Some("standard"),
        ),
        (
            format!("type = \"tcp\"\n{cubic}\nslow_start = \"hystart++\""),
            None,
        ),
        (
            "type = \"tcp\"\ncc = \"cubic hystartpp_l 8\"".to_owned(),
            None,
        ),
        (format!("type = \"quic\"\n{cubic}"), None),
        (
            "type = \"quic\"\ncc = \"reno hystartpp_l 3\"".to_owned(),
            Some("standard"),
        ),
        (format!("{request}{cubic}"), Some("hystart")),
        (format!("{request}{cubic}\ntransport = \"quic\""), None),
        (format!("{page}{cubic}"), Some("hystart")),
        (format!("{page}{cubic}\nhttp = \"3\""), None),
        (
            "type = \"tcp\"\ncc = \"reno search_bins 5\"\nslow_start = \"search\"".to_owned(),
            None,
        ),
        (
            "type = \"tcp\"\ncc = \"reno saved_cwnd 50\"\nslow_start = \"careful-resume\"\npacing = true".to_owned(),
            None,
        ),
        (
            format!("{request}cc = \"cubic saved_cwnd 50\"\nslow_start = \"careful-resume\"\ntransport = \"quic\""),
            None,
        ),
        (format!("{page}{cubic}\nslow_start = \"search\""), Some("search")),
    ] {
        let read = Scenario::from_toml(&scenario(&traffic));
        let Some(used) = used else {
            assert!(read.is_ok(), "{traffic}: {read:?}");
            continue;
        };
        let error = read.unwrap_err();
        assert_eq!(error.path, "traffic[0].cc", "{traffic}");
        let rule = format!(
            "hystartpp_l has no effect with slow_start \"{used}\"; expected slow_start \"hystart++\""
        );
        assert_eq!(error.rule, rule, "{traffic}");
    }
    for (traffic, rule) in [
        (
            "type = \"quic\"\nslow_start = \"careful-resume\"",
            "\"careful-resume\" needs the window of an earlier connection; expected cc such as \"cubic saved_cwnd 400 \
             saved_rtt 50ms\"",
        ),
        (
            "type = \"tcp\"\ncc = \"reno saved_cwnd 400\"\nslow_start = \"careful-resume\"",
            "\"careful-resume\" needs pacing; expected pacing = true",
        ),
        (
            "type = \"tcp\"\nslow_start = \"rapid-start\"",
            "\"rapid-start\" is for QUIC only",
        ),
        (
            "type = \"request\"\nbytes = \"1kb\"\nslow_start = \"rapid-start\"",
            "\"rapid-start\" is for QUIC only",
        ),
    ] {
        let error = Scenario::from_toml(&scenario(traffic)).unwrap_err();
        assert_eq!(error.path, "traffic[0].slow_start");
        assert_eq!(error.rule, rule);
    }
    let unused = scenario("type = \"quic\"\ncc = \"cubic search_thresh 0.35\"");
    let error = Scenario::from_toml(&unused).unwrap_err();
    assert_eq!(
        error.rule,
        "search_thresh has no effect with slow_start \"hystart++\"; expected slow_start \"search\""
    );
}

#[test]
fn the_properties_of_a_type_agree_with_what_its_flows_run() {
    let mut seen = BTreeSet::new();
    for traffic in [
        "type = \"tcp\"",
        "type = \"quic\"",
        "type = \"udp\"\nrate = \"1mbit\"",
        "type = \"ping\"",
        "type = \"web\"\npage = \"large\"",
        "type = \"sessions\"\nevery = \"1s\"\nbytes = \"1kb\"",
        "type = \"request\"\nbytes = \"32kb\"",
        "type = \"incast\"\nservers = 2\nbytes = \"32kb\"",
        "type = \"dash\"",
        "type = \"voip\"",
        "type = \"media\"",
        "type = \"responsiveness\"",
        "type = \"program\"\ncommand = [\"a\"]",
        "type = \"bridged\"",
    ] {
        let read = Scenario::from_toml(&scenario(traffic)).unwrap();
        let plan = read.plan(0, 0);
        let (flow, label) = (&plan.config.flows[0], &plan.flows[0]);
        seen.insert(label.kind);
        let of = traffic_properties(label.kind);
        let is_connection = matches!(flow.traffic, Traffic::Tcp { .. } | Traffic::Quic { .. });
        let (is_datagrams, is_echo) = match &flow.traffic {
            Traffic::Datagrams(config) => (label.kind != "media", config.kind().is_echo()),
            _ => (false, false),
        };
        let of_others = matches!(flow.traffic, Traffic::Program(_) | Traffic::Bridged);
        assert_eq!(of.has_connection, is_connection, "{traffic}");
        assert_eq!(of.constant_rate, is_datagrams, "{traffic}");
        assert_eq!(of.carries_data, !is_echo, "{traffic}");
        let is_measured = of.measured != Measured::Nothing;
        assert_eq!(is_measured, !is_echo && !of_others, "{traffic}");
    }
    assert_eq!(seen, traffic_types().map(|(name, _)| name).collect());
}
