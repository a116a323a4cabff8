//! `changes` of links, and traces of a value over time.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Duration, Rate};
use sojourn_qdisc::QueueChange;
use sojourn_scenario::Scenario;
use sojourn_scenario::plan::{Jitter, LinkConfig, Loss, Order};

/// A run of 60 s with the link `up`.
fn scenario(up: &str) -> Result<Scenario, String> {
    let text = format!(
        "duration = \"60s\"\nlinks.down = \"unlimited\"\n[links.up]\n{up}\n\
         [[traffic]]\ntype = \"ping\"\ndirection = \"up\"\n"
    );
    Scenario::from_toml(&text).map_err(|error| error.to_string())
}

fn link(up: &str) -> LinkConfig {
    let scenario = scenario(up).unwrap();
    // What is written is read back as the same.
    let again = Scenario::from_saved(scenario.to_json()).unwrap();
    assert_eq!(again, scenario);
    let config = again.plan(0, 0).config;
    assert_eq!(config, scenario.plan(0, 0).config);
    config.links.into_iter().next().unwrap()
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn every_part_of_the_wire_changes() {
    let link = link(
        "rate = \"10mbit\"\nqdisc = \"codel\"\nloss = \"1%\"\nchanges = [\n\
         { at = \"1s\", loss = \"2%\", duplicate = \"3%\", jitter = \"4ms\" },\n\
         { at = \"2s\", loss = \"0%\", duplicate = \"0%\", jitter = \"0s\" },\n\
         { at = \"3s\", jitter = { spread = \"5ms\", order = \"free\" }, delay = \"6ms\", rate = \"7mbit\" },\n\
         { at = \"4s\", loss = { model = \"gilbert-elliott\", to_bad = \"1%\", to_good = \"25%\" } },\n]",
    );
    let [one, two, three, four] = link.changes.as_slice() else {
        panic!("{:?}", link.changes);
    };
    assert_eq!(one.wire.loss, Some(Loss::Random(0.02)));
    assert_eq!(one.wire.duplicate, Some(0.03));
    assert_eq!(
        one.wire.jitter.unwrap().unwrap().spread,
        Duration::from_millis(4)
    );
    assert_eq!((one.rate, one.wire.delay), (None, None));
    assert_eq!(
        (two.wire.loss, two.wire.jitter),
        (Some(Loss::None), Some(None))
    );
    assert_eq!(two.wire.duplicate, Some(0.0));
    let jitter = three.wire.jitter.unwrap();
    assert!(matches!(
        jitter,
        Some(Jitter {
            order: Order::Free,
            ..
        })
    ));
    assert_eq!(three.rate, Some(Rate::mbit(7)));
    assert_eq!(three.wire.delay, Some(Duration::from_millis(6)));
    assert!(matches!(four.wire.loss, Some(Loss::GilbertElliott(_))));
}

#[test]
fn a_queue_changes_or_is_replaced() {
    let link = link(
        "rate = \"10mbit\"\nqdisc = \"codel target 9ms ecn\"\nchanges = [\n\
         { at = \"1s\", qdisc = \"codel limit 7\" },\n\
         { at = \"2s\", qdisc = { kind = \"fq_codel\", limit = 8 } },\n\
         { at = \"3s\", qdisc = { kind = \"fq_codel\", ecn = false } },\n\
         { at = \"4s\", qdisc = \"codel\" },\n]",
    );
    let spec = |text: &str| text.parse().unwrap();
    let changes = link
        .changes
        .iter()
        .map(|change| change.queue.as_deref().unwrap());
    let expected = [
        QueueChange::Parameters(spec("codel limit 7 target 9ms ecn")),
        QueueChange::Replacement(spec("fq_codel limit 8")),
        QueueChange::Parameters(spec("fq_codel limit 8 noecn")),
        QueueChange::Replacement(spec("codel")),
    ];
    assert!(changes.eq(&expected));
}

#[test]
fn an_arm_may_change_the_queue_before_a_change() {
    let text = "duration = \"60s\"\nlinks.down = \"unlimited\"\n\
        arms = [{ name = \"a\" }, { name = \"b\", set.\"links.up.qdisc\" = \"pie\" }]\n\
        [links.up]\nrate = \"10mbit\"\nqdisc = \"codel ecn\"\nchanges = [{ at = \"1s\", qdisc = \"codel limit 5\" }]\n\
        [[traffic]]\ntype = \"ping\"\ndirection = \"up\"\n";
    let scenario = Scenario::from_toml(text).unwrap();
    let queue = |arm| {
        let config = scenario.plan(arm, 0).config;
        config.links[0].changes[0]
            .queue
            .as_deref()
            .cloned()
            .unwrap()
    };
    assert_eq!(
        queue(0),
        QueueChange::Parameters("codel ecn limit 5".parse().unwrap())
    );
    assert_eq!(
        queue(1),
        QueueChange::Replacement("codel limit 5".parse().unwrap())
    );
}

#[test]
fn traces_are_repeated_changes() {
    let link = link(
        "qdisc = \"codel\"\n\
         rate_trace = { points = \"0s 10mbit, 10s 0bit, 11s 30mbit\", period = \"20s\" }\n\
         delay_trace = { points = \"0s 24ms, 15s 31ms\", period = \"25s\" }\n\
         loss_trace = { points = \"0s 1%, 15s 0%\", period = \"30s\" }\n\
         changes = [{ at = \"15s\", duplicate = \"1%\" }]",
    );
    let ms = Duration::from_millis;
    assert_eq!((link.delay, link.line.loss), (ms(24), Loss::Random(0.01)));
    let delays = link
        .changes
        .iter()
        .filter_map(|c| Some((c.at, c.wire.delay?)));
    let delays: Vec<_> = delays.collect();
    let expected = [(15, 31), (25, 24), (40, 31), (50, 24)];
    assert_eq!(delays, expected.map(|(at, delay)| (secs(at), ms(delay))));
    let losses = link
        .changes
        .iter()
        .filter_map(|c| Some((c.at, c.wire.loss?)));
    let expected = [(15, Loss::None), (30, Loss::Random(0.01)), (45, Loss::None)];
    assert!(losses.eq(expected.map(|(at, loss)| (secs(at), loss))));
    assert_eq!(link.changes[0].wire.duplicate, Some(0.01));
    // 10 s at 10 Mbit/s and 9 s at 30.
    assert_eq!(link.rate, Rate::from_bits_per_sec(18_500_000).unwrap());
    assert_eq!(link.capacity(secs(10), secs(20)), Some(27_000_000.0));
    assert_eq!(link.constant_rate(), None);
}

#[test]
fn a_trace_is_read_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "s,ms,mbit\n0,20,5\n10,30,6\n").unwrap();
    let text = "duration = \"60s\"\nlinks.down = \"unlimited\"\n[links.up]\nqdisc = \"codel\"\n\
        delay_trace = { file = \"t.csv\", column = 2 }\nrate_trace = { file = \"t.csv\", column = 3, unit = \"kbit\" }\n\
        [[traffic]]\ntype = \"ping\"\ndirection = \"up\"\n";
    let read = |text: &str| Scenario::from_toml_in(text, folder.path());
    let scenario = read(text).unwrap();
    let up = scenario.plan(0, 0).config.links[0].clone();
    assert_eq!(up.delay, Duration::from_millis(20));
    assert_eq!(up.rate, Rate::from_bits_per_sec(5_500).unwrap());
    std::fs::remove_file(folder.path().join("t.csv")).unwrap();
    assert_eq!(Scenario::from_saved(scenario.to_json()).unwrap(), scenario);
    let error = read(text).unwrap_err().to_string();
    assert!(
        error.starts_with("links.up.delay_trace: cannot read t.csv: "),
        "{error}"
    );
}

#[test]
fn what_does_not_fit_is_refused_at_its_place() {
    const RATE: &str = "rate = \"10mbit\"\n";
    const RATES: &str =
        "qdisc = \"codel\"\nrate_trace = { points = \"0s 1mbit\", period = \"1s\" }\n";
    const DELAYS: &str =
        "qdisc = \"codel\"\ndelay_trace = { points = \"0s 1ms\", period = \"1s\" }\n";
    for (up, wanted) in [
        (
            format!(
                "{RATE}qdisc = \"fq_codel\"\nchanges = [{{ at = \"1s\", qdisc = \"fq_codel flows 9\" }}]"
            ),
            "links.up.changes[0].qdisc: fq_codel: flows cannot change during a run (line 6)",
        ),
        (
            format!(
                "{RATE}qdisc = \"sfq\"\nchanges = [{{ at = \"1s\", qdisc = \"sfq quantum 900b\" }}]"
            ),
            "links.up.changes[0].qdisc: sfq: the parameters of this queue cannot change during a run; \
             expected another kind of queue (line 6)",
        ),
        (
            format!(
                "{RATE}qdisc = \"codel\"\nchanges = [{{ at = \"1s\", qdisc = {{ kind = \"codel\", limit = 0 }} }}]"
            ),
            "links.up.changes[0].qdisc: codel: limit",
        ),
        (
            format!("{RATE}qdisc = \"codel\"\nchanges = [{{ at = \"1s\", qdisc = 3 }}]"),
            "links.up.changes[0].qdisc: 3 is not a queue; expected a string",
        ),
        (
            format!("{RATE}{RATES}"),
            "links.up.rate: cannot be combined with rate_trace; remove rate or rate_trace",
        ),
        (
            format!("{RATE}{DELAYS}delay = \"1ms\""),
            "links.up.delay: cannot be combined with delay_trace; remove delay or delay_trace",
        ),
        (
            format!("{RATE}{DELAYS}changes = [{{ at = \"1s\", delay = \"1ms\" }}]"),
            "links.up.changes[0].delay: cannot be combined with delay_trace; remove delay or delay_trace",
        ),
        (
            RATES.replace("0s 1mbit", "0s 0bit"),
            "links.up.rate_trace: the rate is always zero; expected a rate > 0",
        ),
        (
            RATES.replace("0s 1mbit", "1s 1mbit"),
            "links.up.rate_trace.points: the first point is not at 0s; expected one there",
        ),
        (
            RATES.replace("0s 1mbit", "0s 1mbit, 2s 2mbit"),
            "links.up.rate_trace.points: the last point, at 2s, is not before the end of the period",
        ),
        (
            RATES.replace("0s 1mbit", "0s 1ms"),
            "links.up.rate_trace.points: \"0s 1ms\" is not a point; expected one such as \"0s 20mbit\"",
        ),
        (
            format!("{RATES}changes = [{{ at = \"1s\", rate = \"1mbit\" }}]"),
            "links.up.changes[0].rate: the rate of a link with a trace cannot change",
        ),
        (
            format!("{RATE}qdisc = \"codel\"\ndrop = [3, 3]"),
            "links.up.drop[1]: 3 is not after 3; expected ascending numbers",
        ),
        (
            format!("{RATE}qdisc = \"codel\"\ndrop = [0]"),
            "links.up.drop[0]: 0 is out of range; expected a whole number from 1 to 1000000000000",
        ),
    ] {
        let error = scenario(&up).unwrap_err();
        assert!(error.starts_with(wanted), "{up}\n{error}");
    }
}

#[test]
fn a_controller_changes_a_link_as_the_scenario_does() {
    use sojourn_scenario::{controlled_change, with_controlled_changes};

    let written = "rate = \"10mbit\"\nqdisc = \"codel target 9ms\"\nchanges = [\
                   { at = \"1s\", rate = \"5mbit\", qdisc = \"codel interval 50ms\" }, \
                   { at = \"2s\", loss = \"1%\", qdisc = \"pfifo\" }]";
    let written = scenario(written).unwrap().plan(0, 0);
    let alone = "rate = \"10mbit\"\nqdisc = \"codel target 9ms\"";
    let alone = scenario(alone).unwrap().plan(0, 0);
    let asked = [
        (1, r#"{"rate": "5mbit", "qdisc": "codel interval 50ms"}"#),
        (2, r#"{"loss": "1%", "qdisc": {"kind": "pfifo"}}"#),
    ];
    let mut queue = alone.config.links[0].qdisc.clone();
    let mut texts = Vec::new();
    for ((at, json), expected) in asked.into_iter().zip(&written.config.links[0].changes) {
        let before = (Rate::mbit(10), &queue);
        let changed = controlled_change(json, secs(at), before).unwrap();
        let (change, text) = changed.unwrap();
        assert_eq!(change, *expected);
        queue = change.queue.unwrap().spec().clone();
        texts.push(text);
    }
    assert_eq!(
        texts[0],
        "{qdisc = \"codel interval 50ms\", rate = \"5mbit\"}"
    );
    let recorded = texts.iter().zip(1..);
    let recorded = recorded.map(|(text, at)| (secs(at), 0, text.as_str()));
    let again = with_controlled_changes(&alone, recorded);
    assert_eq!(
        again.config.links[0].changes,
        written.config.links[0].changes
    );
    for (json, problem) in [
        ("{}", "no change; expected rate = \"5mbit\""),
        (r#"{"at": "1s"}"#, "at: \"1s\" cannot be set"),
        (r#"{"rate": 3}"#, "rate: 3 is not"),
        (r#"{"qdisc": "pfifo limit x"}"#, "qdisc: "),
    ] {
        let refused = controlled_change(json, secs(1), (Rate::mbit(10), &queue)).unwrap_err();
        assert!(refused.to_string().starts_with(problem), "{refused}");
    }
    // What is in force already is no change.
    let in_force = r#"{"rate": "10mbit", "qdisc": "pfifo"}"#;
    let unchanged = controlled_change(in_force, secs(3), (Rate::mbit(10), &queue));
    assert_eq!(unchanged, Ok(None));
}

#[test]
fn the_keys_of_a_change_are_read_as_the_same_change() {
    use sojourn_scenario::{changed_keys, controlled_change};

    let before = QUEUE.parse().unwrap();
    for json in [
        r#"{"rate":"5mbit"}"#,
        r#"{"delay":"0s","duplicate":"7%","jitter":"0s","loss":"0.07%"}"#,
        r#"{"duplicate":"0%","loss":{"in_bad":"100%","in_good":"0%","model":"gilbert-elliott","to_bad":"29%","to_good":"57%"}}"#,
        r#"{"jitter":{"distribution":"pareto","order":"free","spread":"5ms"},"qdisc":"pie ecn"}"#,
        r#"{"qdisc":"codel target 20ms"}"#,
    ] {
        let read = |json: &str| {
            let changed = controlled_change(json, secs(1), (Rate::mbit(10), &before));
            changed.unwrap().unwrap().0
        };
        let change = read(json);
        let keys = changed_keys(&change);
        assert_eq!(read(&keys), change, "{keys}");
        if !json.contains("qdisc") {
            assert_eq!(keys, json);
        }
    }
}

const QUEUE: &str = "codel limit 900";
