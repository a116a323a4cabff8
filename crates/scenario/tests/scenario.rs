//! The schema of scenarios: what is refused and how, and that texts and values agree.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Bytes, Duration, Ecn, Rate};
use sojourn_qdisc::Framing;
use sojourn_scenario::Scenario;
use sojourn_scenario::plan::{
    Change, ChannelConfig, Client, Distribution, DriverLimit, EcnRewrite, Encapsulation,
    GilbertElliott, Hop, Jitter, LineConfig, Loss, Order, RadioConfig, RateControl, Shaper,
    Sharing, Standard, StationConfig, Traffic, WireChange,
};
use sojourn_transport::{
    AckPolicy, AfterIdle, BurstLimits, Device, OnCe, ReceiveBuffer, SenderProfile, SlowStart,
    Writer,
};

/// Uses every key.
const FULL: &str = include_str!("full.toml");

fn full() -> Scenario {
    Scenario::from_toml(FULL).unwrap()
}

#[test]
fn toml_and_json_lead_back_to_the_same_scenario() {
    let scenario = full();
    let from_toml = Scenario::from_toml(&scenario.to_toml()).unwrap();
    let from_json = Scenario::from_json(scenario.to_json()).unwrap();
    assert_eq!(scenario, from_toml, "{}", scenario.to_toml());
    assert_eq!(scenario, from_json);
    assert_eq!(from_toml.to_toml(), scenario.to_toml());
    for arm in 0..2 {
        assert_eq!(scenario.config(arm, 3), from_toml.config(arm, 3));
        assert_eq!(scenario.config(arm, 3), from_json.config(arm, 3));
    }
}

#[test]
fn the_hash_depends_on_what_is_said_not_on_how() {
    let minimal = |text: &str| Scenario::from_toml(text).unwrap().hash().to_owned();
    let one = minimal(
        "duration = \"1s\"\nlinks.up = { rate = \"1mbit\", qdisc = \"codel\" }\n\
         links.down = \"unlimited\"\ntraffic = [{ type = \"tcp\", direction = \"up\" }]",
    );
    let other = minimal(
        "seed = 1 # the default\nduration = \"1000 ms\"\n[[traffic]]\ndirection = \"up\"\n\
         name = \"tcp up\"\ntype = \"tcp\"\n[links]\ndown = \"unlimited\"\n[links.up]\nqdisc = { kind = \"codel\" }\n\
         rate = \"1000kbit\"\ndelay = \"0s\"",
    );
    assert_eq!(one, other);
    // Written down: a hash that moves breaks every result that was ever saved.
    assert_eq!(
        one,
        "b0c048372282d94b12bc816562b74bd6777dff1a43dffcfe0c55c0911eec6ae3"
    );
    assert_ne!(full().hash(), one);
}

#[test]
fn what_a_queue_has_several_of_may_be_a_list() {
    let with = |queue: &str| {
        let text = format!(
            "duration = \"1s\"\nlinks.down = \"unlimited\"\n[links.up]\nrate = \"1mbit\"\nqdisc = {queue}\n\
             [[traffic]]\ntype = \"ping\"\ndirection = \"up\"\n"
        );
        Scenario::from_toml(&text).unwrap()
    };
    let priomap = "[0, 1, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]";
    let leaf = "[\"codel\", { kind = \"drr\", leaf = [\"pie\", \"sfq\"] }, { kind = \"pfifo\", limit = 9 }]";
    let lists = format!("{{ kind = \"prio\", priomap = {priomap}, leaf = {leaf} }}");
    let text = "\"prio priomap 0 1 2 2 1 2 0 0 1 1 1 1 1 1 1 1 \
                leaf codel / (drr leaf pie / sfq) / pfifo limit 9\"";
    assert_eq!(with(&lists), with(text));
    let one = "{ kind = \"drr\", leaf = { kind = \"codel\", target = \"9ms\" } }";
    assert_eq!(with(one), with("\"drr leaf codel target 9ms\""));
}

#[test]
fn flows_pass_the_links_in_the_direction_that_is_said() {
    let config = full().config(0, 0);
    // Links stand in the order of their names.
    let (down, up) = (Hop::Link(0), Hop::Link(1));
    let ms = |n| Hop::Delay(Duration::from_millis(n));
    assert_eq!(config.flows[1].name, "up BE/2");
    assert_eq!(config.flows[1].forward, [up, ms(10)]);
    assert_eq!(config.flows[1].reverse, [ms(10), down]);
    let micros = |n| Hop::Delay(Duration::from_micros(n));
    assert_eq!(config.flows[4].forward, [down, up, micros(5_500)]);
    assert_eq!(config.flows[4].reverse, [micros(5_500), down]);
    // The arm sets the RTT that this traffic inherits to 100 ms.
    assert_eq!(config.flows[5].name, "ping down");
    assert_eq!(config.flows[5].forward, [ms(50), down]);
    assert_eq!(config.flows[5].reverse, [up, ms(50)]);
}

#[test]
fn the_profile_sets_the_initial_window_unless_it_is_given() {
    let window = |keys: &str| {
        let text = format!(
            "duration = \"10s\"\nrtt = \"20ms\"\nlinks = {{ up = \"unlimited\", down = {{ rate = \"1mbit\", qdisc = \"pfifo\" }} }}\n\
             [[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\n{keys}"
        );
        let scenario = Scenario::from_toml(&text).unwrap();
        let again = Scenario::from_toml(&scenario.to_toml()).unwrap();
        assert_eq!(again.to_toml(), scenario.to_toml());
        match again.plan(0, 0).config.flows[0].traffic {
            Traffic::Tcp { params, .. } => params.initial_window,
            _ => unreachable!("it is TCP"),
        }
    };
    assert_eq!(window(""), 10);
    assert_eq!(window("profile = \"linux-2.6.34\"\n"), 3);
    assert_eq!(
        window("profile = \"linux-2.6.34\"\ninitial_window = 10\n"),
        10
    );
    assert_eq!(window("profile = \"ns-2\"\n"), 10);
}

#[test]
fn the_keys_of_a_receiver_reach_the_simulator() {
    let receiver = |keys: &str| {
        let text = format!(
            "duration = \"10s\"\nrtt = \"20ms\"\nlinks = {{ up = \"unlimited\", down = {{ rate = \"1mbit\", qdisc = \"pfifo\" }} }}\n\
             [[traffic]]\ntype = \"tcp\"\ndirection = \"down\"\n{keys}"
        );
        let scenario = Scenario::from_toml(&text)?;
        let again = Scenario::from_toml(&scenario.to_toml())?;
        assert_eq!(again.to_toml(), scenario.to_toml());
        match again.plan(0, 0).config.flows[0].traffic {
            Traffic::Tcp { params, .. } => Ok(params.receiver),
            _ => unreachable!("it is TCP"),
        }
    };
    let rule = |keys| {
        let error: sojourn_scenario::ScenarioError = receiver(keys).unwrap_err();
        format!("{}: {}", error.path, error.rule)
    };
    assert!(receiver("").unwrap().is_usual());
    let fixed = receiver("receive_window = \"65536b\"\nread_pause = [\"2s\", \"3s\"]").unwrap();
    assert_eq!(fixed.buffer, ReceiveBuffer::Fixed(65_536));
    let pause = (Duration::from_secs(2), Duration::from_secs(3));
    assert_eq!(fixed.reader.pause, Some(pause));
    let tuned = receiver("receive_buffer = \"8mb\"\nread_rate = \"2mbit\"").unwrap();
    assert_eq!(tuned.buffer, ReceiveBuffer::Tuned(8 << 20));
    assert_eq!(tuned.reader.rate, Some(Rate::mbit(2)));
    assert_eq!(
        rule("receive_window = \"64kb\"\nreceive_buffer = \"1mb\""),
        "traffic[0].receive_buffer: not allowed with receive_window, which fixes the buffer; expected one of the two"
    );
    assert_eq!(
        rule("cc = \"bbr\"\non_ce = \"abe\""),
        "traffic[0].on_ce: \"abe\" is not supported by \"bbr\"; expected the control \"reno\" or \"cubic\""
    );
}

#[test]
fn the_keys_of_acknowledgements_and_bursts_reach_the_simulator() {
    let params = |keys: &str| {
        let text = format!(
            "duration = \"10s\"\nrtt = \"20ms\"\nlinks = {{ up = \"unlimited\", down = {{ rate = \"1mbit\", qdisc = \"pfifo\" }} }}\n\
             [[traffic]]\ntype = \"tcp\"\ndirection = \"down\"\n{keys}"
        );
        let scenario = Scenario::from_toml(&text)?;
        let again = Scenario::from_toml(&scenario.to_toml())?;
        assert_eq!(again.to_toml(), scenario.to_toml());
        match again.plan(0, 0).config.flows[0].traffic {
            Traffic::Tcp { params, .. } => Ok(params),
            _ => unreachable!("it is TCP"),
        }
    };
    let rule = |keys| {
        let error: sojourn_scenario::ScenarioError = params(keys).unwrap_err();
        format!("{}: {}", error.path, error.rule)
    };
    let acks = "ack_every = 4\nack_delay = \"100ms\"\nquick_acks = false\n";
    let given = params(&format!("{acks}gro = true\ngro_flush_timeout = \"2ms\"")).unwrap();
    let policy = AckPolicy {
        every: 4,
        delay: Some(Duration::from_millis(100)),
        quick: false,
    };
    let device = Device {
        merges: true,
        poll: Some(Duration::from_millis(2)),
    };
    assert_eq!(
        (given.receiver.acks, given.receiver.device),
        (policy, device)
    );
    let given = params("min_tso_segs = 8\ngso_max_segs = 20\nrate = \"5mbit\"").unwrap();
    assert_eq!(given.bursts, BurstLimits { least: 8, most: 20 });
    let writer = Writer {
        rate: Rate::mbit(5),
        block: Writer::BLOCK,
    };
    assert_eq!(given.writer, Some(writer));
    // What is usual is written or not, and costs nothing.
    let usual = params("ack_every = 2\nquick_acks = true\ngro = false\nmin_tso_segs = 2").unwrap();
    assert_eq!(usual, params("").unwrap());
    assert!(usual.receiver.is_usual());
    assert_eq!(
        rule("gro_flush_timeout = \"2ms\""),
        "traffic[0].gro_flush_timeout: needs a device that merges segments; set gro = true"
    );
    assert_eq!(
        rule("cc = \"bbr\"\nmin_tso_segs = 4"),
        "traffic[0].min_tso_segs: not supported by \"bbr\", which has a minimum of its own"
    );
    assert_eq!(
        rule("ack_delay = \"0ms\""),
        "traffic[0].ack_delay: must be > 0"
    );
}

#[test]
fn every_key_reaches_the_simulator() {
    let config = full().config(0, 0);
    assert_eq!(config.duration, Duration::from_secs(70));
    assert_eq!(config.measure_from, Duration::from_secs(15));
    assert!(config.sample_state && !config.keep_events);
    let (down, up) = (&config.links[0], &config.links[1]);
    assert_eq!((up.rate, up.encapsulation.overhead), (Rate::mbit(1), -4));
    let wan = Encapsulation {
        overhead: 32 + 4 - 14,
        mpu: 64,
        framing: Framing::Ptm,
    };
    assert_eq!(config.links[2].encapsulation, wan);
    let line = LineConfig {
        loss: Loss::GilbertElliott(GilbertElliott {
            to_bad: 0.01,
            to_good: 0.25,
            in_bad: 0.5,
            in_good: 0.001,
        }),
        duplicate: 0.005,
        jitter: Some(Jitter {
            spread: Duration::from_millis(2),
            distribution: Distribution::Normal,
            order: Order::Free,
        }),
        drops: Vec::new(),
        ecn: Some(EcnRewrite::All(Ecn::Ect0)),
    };
    assert_eq!(config.links[2].line, line);
    let change = |secs, rate, delay| Change {
        at: Duration::from_secs(secs),
        rate,
        wire: WireChange {
            delay,
            ..WireChange::default()
        },
        ..Change::default()
    };
    let later = Some(Duration::from_millis(30));
    assert_eq!(
        config.links[2].changes,
        [
            change(10, Some(Rate::mbit(20)), None),
            change(20, None, later)
        ]
    );
    let bucket = |burst| Shaper::Bucket {
        burst: Bytes(burst),
    };
    let tbf = Shaper::Tbf {
        burst: Bytes(1_600),
    };
    assert_eq!(up.shaper, tbf);
    // As `tc` reads an htb class of 10 Mbit/s back: 1 ms of the rate and 1600 B.
    assert_eq!(down.shaper, bucket(2_850));
    assert_eq!(
        down.qdisc.to_string(),
        "codel target 10ms".parse_canonically()
    );
    assert_eq!(config.flows[0].stop, Some(Duration::from_secs(65)));
    assert_eq!(config.flows[0].dscp.to_string(), "AF42");
    let client = |number, receives| Some(Client { number, receives });
    assert_eq!(config.flows[0].client, client(3, false));
    assert_eq!(config.flows[4].client, None);
    let Traffic::Tcp { bytes, params } = config.flows[0].traffic else {
        panic!("the first block is TCP")
    };
    assert_eq!(bytes, Some(10 << 20));
    assert_eq!((params.ecn, params.initial_window), (true, 4));
    assert_eq!(params.mss, 1_000);
    assert_eq!(params.on_ce, OnCe::EndSlowStart);
    assert_eq!(params.after_idle, AfterIdle::Restart);
    assert_eq!(params.profile, SenderProfile::Linux314);
    assert!(params.pacing);
    assert_eq!(params.slow_start, Some(SlowStart::HyStartPlusPlus));
}

trait Canonical {
    fn parse_canonically(&self) -> String;
}

impl Canonical for str {
    fn parse_canonically(&self) -> String {
        self.parse::<sojourn_qdisc::QdiscSpec>()
            .unwrap()
            .to_string()
    }
}

#[test]
fn an_arm_changes_what_it_names_and_nothing_else() {
    let scenario = full();
    assert_eq!(scenario.arms().collect::<Vec<_>>(), ["codel", "more flows"]);
    let config = scenario.config(1, 0);
    assert_eq!(
        config.links[1].qdisc.to_string(),
        "fq_codel target 20ms".parse_canonically()
    );
    assert_eq!(
        config.links[0].qdisc.to_string(),
        "codel ecn".parse_canonically()
    );
    let names: Vec<_> = config.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["up BE/1", "up BE/2", "udp", "ping down", "quic up"]);
    assert!(
        config
            .flows
            .iter()
            .all(|f| f.start == Duration::from_secs(1))
    );
}

#[test]
fn nameless_traffic_gets_a_name_of_its_own() {
    let text = r#"
        duration = "1s"
        rtt = "10ms"
        links.up = { rate = "1mbit", qdisc = "codel" }
        links.down = "unlimited"
        traffic = [
            { type = "tcp", direction = "up" },
            { type = "tcp", direction = "up", name = "tcp up 2" },
            { type = "tcp", direction = "up" },
            { type = "tcp", path = [] },
        ]
    "#;
    let config = Scenario::from_toml(text).unwrap().config(0, 0);
    let names: Vec<_> = config.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["tcp up", "tcp up 2", "tcp up 3", "tcp"]);
}

#[test]
fn errors_of_the_plan_name_their_place_in_the_scenario() {
    let message = |traffic: &str, delay: &str| {
        let text = format!(
            r#"
            duration = "1s"
            rtt = "0ms"
            links.up = {{ rate = "1mbit", delay = "{delay}", qdisc = "codel" }}
            traffic = [
                {{ type = "udp", rate = "1mbit", path = [], count = 3 }},
                {traffic},
            ]"#
        );
        Scenario::from_toml(&text).unwrap_err().to_string()
    };
    let endless = message(r#"{ type = "tcp", path = [] }"#, "0ms");
    assert!(endless.starts_with("traffic[1].path: "), "{endless}");
    let far = message(r#"{ type = "ping", path = [] }"#, "100000000s");
    assert!(far.starts_with("links.up.delay: "), "{far}");
}

/// Each case is two lines: a replacement in `FULL`, and how the message about it begins.
const REFUSED: &str = include_str!("refused.txt");

#[test]
fn errors_give_the_place_and_what_is_accepted() {
    let mut lines = REFUSED.lines().skip(1);
    let mut cases = 0;
    while let Some((case, want)) = lines.next().zip(lines.next()) {
        let (right, wrong) = case.split_once(" => ").unwrap();
        let (right, wrong) = (right.replace("\\n", "\n"), wrong.replace("\\n", "\n"));
        assert!(FULL.contains(&right), "{right}");
        let text = FULL.replacen(&right, &wrong, 1);
        match Scenario::from_toml(&text) {
            Ok(_) => panic!("accepted: {wrong}"),
            Err(error) => {
                let (message, want) = (error.to_string(), want.trim());
                assert!(message.starts_with(want), "\n got {message}\nwant {want}");
            }
        }
        cases += 1;
    }
    assert!(cases >= 60, "only {cases} cases");
}

#[test]
fn errors_about_empty_parts_give_an_example() {
    let empties = [
        ("", "duration: missing"),
        (
            "duration = \"1s\"",
            "links: missing; set it, for example links = { up =",
        ),
        (
            "duration = \"1s\"\n[links]",
            "links: empty; expected at least one link",
        ),
        (
            "duration = \"1s\"\nlinks.a = { rate = \"1mbit\", qdisc = \"codel\" }",
            "traffic: missing; set it, for example traffic = [{ type",
        ),
        (
            "duration = \"1s\"\ntraffic = []\nlinks.a = { rate = \"1mbit\", qdisc = \"codel\" }",
            "traffic: empty; expected at least one traffic block",
        ),
        (
            "duration = \"1s\"\ntraffic = [{ type = \"tcp\", direction = \"up\" }]\n\
             links.a = { rate = \"1mbit\", qdisc = \"codel\" }",
            "traffic[0].direction: no link is named \"up\" or \"down\"; set path to a list of links (defined links: a",
        ),
    ];
    for (text, want) in empties {
        let message = Scenario::from_toml(text).unwrap_err().to_string();
        assert!(message.starts_with(want), "\n got {message}\nwant {want}");
    }
}

#[test]
fn json_errors_match_those_of_toml() {
    let json = |text: &str| Scenario::from_json(text).unwrap_err().to_string();
    assert!(json("{").starts_with("invalid JSON: "));
    assert_eq!(
        json("[]"),
        "a list is not a table; expected keys with values"
    );
    assert!(json("{\"seed\": 1e400}").starts_with("invalid JSON"));
    assert_eq!(
        json("{\"seed\": 18446744073709551615}"),
        "seed: the number 18446744073709551615 is out of range; expected -2^63 to 2^63 - 1"
    );
    assert_eq!(
        json("{\"links\": [null]}"),
        "links[0]: null is not supported in a list; remove the item"
    );
    // What is null was not given.
    assert!(json("{\"duration\": null}").starts_with("duration: missing"));
}

#[test]
fn the_transient_of_predict_can_be_run() {
    let scenario = Scenario::from_toml(include_str!("../../../papers/predict/transient.toml"));
    assert_eq!(scenario.unwrap().config(0, 0).check(), Ok(()));
}

#[test]
fn random_transfers_are_each_flows_own_and_the_same_in_all_arms() {
    let amounts = [
        "{ distribution = \"lognormal\", median = \"36kb\", sigma = 1.5 }",
        "{ distribution = \"exponential\", mean = \"36kb\" }",
        "{ distribution = \"pareto\", least = \"4kb\", shape = 1 }",
    ];
    for amount in amounts {
        let scenario = Scenario::from_toml(&format!(
            r#"
            duration = "1s"
            links.up = {{ rate = "1mbit", qdisc = "codel" }}
            links.down = "unlimited"
            traffic = [{{ type = "tcp", direction = "up", count = 5, bytes = {amount} }}]
            arms = [{{ name = "a" }}, {{ name = "b", set = {{ "links.up.qdisc" = "pie" }} }}]
            "#
        ))
        .unwrap();
        let sizes = |scenario: &Scenario, arm, replication| -> Vec<_> {
            let config = scenario.config(arm, replication);
            let size = |flow: &sojourn_scenario::plan::FlowConfig| match flow.traffic {
                Traffic::Tcp { bytes, .. } => bytes.unwrap(),
                _ => panic!("all traffic is TCP"),
            };
            config.flows.iter().map(size).collect()
        };
        let first = sizes(&scenario, 0, 0);
        assert_eq!(first, sizes(&scenario, 1, 0));
        let mut distinct = [first.clone(), sizes(&scenario, 0, 1)].concat();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 10, "{amount}");
        let read = Scenario::from_toml(&scenario.to_toml()).unwrap();
        assert_eq!(sizes(&read, 0, 0), first);
        assert_eq!(Scenario::from_json(scenario.to_json()).unwrap(), scenario);
    }
}

#[test]
fn a_link_layer_by_name_is_what_it_says_in_bytes() {
    let config = |layer: &str| {
        let text = format!(
            r#"
            duration = "1s"
            rtt = "10ms"
            links.up = {{ rate = "1mbit", qdisc = "codel", {layer} }}
            links.down = "unlimited"
            traffic = [{{ type = "tcp", direction = "up" }}]"#
        );
        let scenario = Scenario::from_toml(&text).unwrap();
        // What was written stays, so that an arm may put another name in its place.
        let again = Scenario::from_toml(&scenario.to_toml()).unwrap();
        assert_eq!(scenario, again, "{layer}");
        scenario.config(0, 0).links[0].encapsulation
    };
    for (name, bytes) in [
        (
            r#"overhead = "ethernet""#,
            r#"overhead = "24b", mpu = "84b""#,
        ),
        (
            r#"overhead = "ethernet-l2""#,
            r#"overhead = "4b", mpu = "64b""#,
        ),
        (
            r#"overhead = "docsis ether-vlan""#,
            r#"overhead = "8b", mpu = "64b""#,
        ),
        (
            r#"overhead = "ipoa-vcmux""#,
            r#"overhead = "-6b", framing = "atm""#,
        ),
        (
            r#"overhead = "pppoe-ptm""#,
            r#"overhead = "16b", framing = "ptm""#,
        ),
        (
            r#"overhead = "pppoe-llcsnap", framing = "noatm", mpu = "90b""#,
            r#"overhead = "26b", mpu = "90b""#,
        ),
    ] {
        assert_eq!(config(name), config(bytes), "{name}");
    }
}

#[test]
fn a_trace_is_read_from_its_file_and_kept_in_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("cell.trace", "0\n2\n2\n5\n7\n9\n");
    write("back.trace", "1\n3\n2\n");
    write("words.trace", "1\n\n2\n");
    let text = |trace: &str| {
        format!(
            r#"
            duration = "1s"
            rtt = "10ms"
            links.up = {{ trace = "cell.trace", qdisc = "codel" }}
            links.down = "unlimited"
            traffic = [{{ type = "tcp", direction = "up" }}]
            [[arms]]
            name = "other"
            set = {{ "links.up.trace" = "{trace}" }}"#
        )
    };
    let read = |trace| Scenario::from_toml_in(&text(trace), folder.path());
    let scenario = read("cell.trace").unwrap();
    let link = &scenario.config(0, 0).links[0];
    let times = link.trace.as_ref().unwrap().times_ms().to_vec();
    assert_eq!(times, [0, 2, 2, 5, 7, 9]);
    // 1504 B six times in 9 ms; a frame counts as an IP packet and 4 B.
    assert_eq!(link.rate.to_string(), "8021333bit");
    assert_eq!(link.encapsulation.overhead, -10);
    // What was saved needs the file no longer.
    let hash = scenario.hash().to_owned();
    std::fs::remove_file(folder.path().join("cell.trace")).unwrap();
    for again in [
        Scenario::from_toml(&scenario.to_toml()).unwrap(),
        Scenario::from_json(scenario.to_json()).unwrap(),
    ] {
        assert_eq!(again.config(0, 0), scenario.config(0, 0));
        assert_eq!(again.hash(), hash);
    }
    write("cell.trace", "0\n2\n2\n5\n7\n8\n");
    assert_ne!(read("cell.trace").unwrap().hash(), hash);
    let refused = |trace| read(trace).unwrap_err().to_string();
    let at = "arms[0].set.links.up.trace: ";
    assert_eq!(
        refused("back.trace"),
        format!("{at}back.trace, line 3: 2 follows 3; expected non-decreasing times (line 9)")
    );
    let words = refused("words.trace");
    assert!(
        words.starts_with(&format!(
            "{at}words.trace, line 2: not a time; expected whole"
        )),
        "{words}"
    );
}

#[test]
fn a_wireless_link_survives_the_file() {
    let text = r#"
        duration = "1s"
        rtt = "10ms"
        traffic = [{ type = "tcp", direction = "down", host = 2 }]
        [links.down]
        rate = "300mbit"
        qdisc = "fq_codel"
        medium = { type = "wifi", name = "home", standard = "802.11ac", driver = "8ms", sharing = "airtime", stations = [{ host = 2, rate = "6500kbit" }] }
        [links.up]
        rate = "300mbit"
        qdisc = "pfifo"
        medium = { type = "wifi", name = "home", standard = "802.11ac" }
        [[arms]]
        name = "deep"
        set = { "links.down.medium.driver" = "500p" }
    "#;
    let scenario = Scenario::from_toml(text).unwrap();
    let again = Scenario::from_toml(&scenario.to_toml()).unwrap();
    assert_eq!(again.config(0, 0), scenario.config(0, 0));
    let radio = scenario.config(0, 0).links[0].radio.clone().unwrap();
    let want = RadioConfig {
        medium: "home".to_owned(),
        standard: Standard::Ac,
        driver: DriverLimit::Packets(500),
        stations: vec![StationConfig {
            host: 2,
            rate: Rate::from_bits_per_sec(6_500_000).unwrap(),
            weight: StationConfig::WEIGHT,
            channel: None,
        }],
        sharing: Sharing::Airtime,
        aggregate_time: RadioConfig::AGGREGATE_TIME,
        aggregate_packets: RadioConfig::AGGREGATE_PACKETS,
        rate_control: RateControl::Fixed,
        channel: ChannelConfig::default(),
    };
    assert_eq!(radio, want);
    let mixed = text.replacen("802.11ac", "802.11n", 1);
    let message = Scenario::from_toml(&mixed).unwrap_err().to_string();
    assert!(
        message.starts_with("links.up.medium.standard: differs from the standard of link down"),
        "{message}"
    );
}
