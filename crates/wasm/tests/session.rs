//! A session as the page uses it, on this machine.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use sojourn_wasm::{Session, described};

const SCENARIO: &str = r#"
duration = "6s"
warmup = "1s"
replications = 1
rtt = "30ms"
sample = "50ms"
keep_events = true
sample_state = true

[links.up]
rate = "5mbit"
qdisc = "pfifo limit 30"

[links.down]
rate = "20mbit"
qdisc = "pfifo limit 30"

[[traffic]]
type = "ping"
direction = "up"
interval = "50ms"

[[traffic]]
type = "tcp"
direction = "up"
count = 2

[[arms]]
name = "pfifo"

[[arms]]
name = "codel"
set = { "links.up.qdisc" = "codel" }
"#;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// All samples of a run whose page asks every `step` milliseconds.
fn sampled(step: u32) -> (Session, Vec<Value>) {
    let mut session = Session::new(SCENARIO, 1, 0).unwrap();
    let mut all = Vec::new();
    let mut until = 0;
    while all
        .last()
        .is_none_or(|last: &Value| last["finished"] == false)
    {
        until += step;
        session.advance(until);
        all.push(json(&session.samples()));
    }
    (session, all)
}

/// A column of all samples; the state of a queue has none before the first sample.
fn column(all: &[Value], path: &str) -> Vec<f64> {
    let parts = all.iter().filter_map(|one| one.pointer(path));
    let values = parts.flat_map(|part| part.as_array().unwrap());
    values.map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn samples_of_any_step_are_the_same_series() {
    let (_, fine) = sampled(17);
    let (_, coarse) = sampled(6_000);
    assert_eq!(coarse.len(), 1);
    for path in [
        "/links/1/t_s",
        "/links/1/backlog_packets",
        "/links/1/drops/aqm",
        "/links/1/state/count",
        "/flows/1/mbit_per_s",
        "/flows/2/cwnd_packets",
    ] {
        let whole = column(&coarse, path);
        assert_eq!(column(&fine, path), whole, "{path}");
        assert!(whole.len() >= 100, "{path}: {}", whole.len());
    }
}

#[test]
fn events_are_those_that_the_counters_count() {
    let (session, all) = sampled(50);
    let counted: f64 = [
        "/links/1/drops/overlimit",
        "/links/1/drops/aqm",
        "/links/0/drops/overlimit",
    ]
    .iter()
    .flat_map(|path| column(&all, path))
    .sum();
    let listed: usize = all
        .iter()
        .map(|one| one["events"].as_array().unwrap().len())
        .sum();
    let count = all.last().unwrap()["event_count"].as_u64().unwrap();
    assert!(count > 5, "{count} events");
    assert_eq!(usize::try_from(count).unwrap(), listed);
    let count = f64::from(u32::try_from(count).unwrap());
    assert!(
        (counted - count).abs() < 0.5,
        "{counted} counted, {count} listed"
    );
    let event = json(&session.event(0));
    assert_eq!(
        (&event["action"], &event["reason"]),
        (&"drop".into(), &"aqm".into())
    );
    assert!(event["state"]["delay"].as_f64().unwrap() > 5_000.0);
    assert!(json(&session.event(listed)).is_null());
}

#[test]
fn replies_replace_the_requests_that_waited() {
    let (_, all) = sampled(10);
    let mut rtts: Vec<Value> = Vec::new();
    for one in &all {
        let pings = &one["pings"][0];
        rtts.truncate(usize::try_from(pings["from"].as_u64().unwrap()).unwrap());
        rtts.extend(pings["rtt_ms"].as_array().unwrap().iter().cloned());
    }
    // One request at a random time in each interval of 50 ms.
    assert!((119..=120).contains(&rtts.len()), "{} requests", rtts.len());
    let answered = rtts.iter().filter(|rtt| rtt.as_f64() >= Some(30.0)).count();
    assert!(answered >= 115, "{answered} requests have a reply");
}

#[test]
fn tables_have_a_header_and_the_bytes_of_their_columns() {
    let (mut session, _) = sampled(500);
    let bytes = session.tables();
    let (length, rest) = bytes.split_first_chunk().unwrap();
    let (header, content) = rest.split_at(u32::from_le_bytes(*length) as usize);
    let header = json(std::str::from_utf8(header).unwrap());
    let tables = header.as_array().unwrap();
    let columns = tables.iter().flat_map(|table| table[1].as_array().unwrap());
    let sizes =
        columns.map(|column| column["rows"].as_u64().unwrap() + column["bytes"].as_u64().unwrap());
    assert_eq!(sizes.sum::<u64>(), content.len() as u64);
    assert_eq!(
        (&header[0][0], &header[0][1][0]["rows"]),
        (&"flows".into(), &3.into())
    );
    // After the tables, the session still has its events.
    assert!(!json(&session.event(0)).is_null());
    assert_eq!(json(&session.samples())["finished"], true);
}

#[test]
fn errors_name_the_place() {
    let wrong = SCENARIO.replace("codel\" }", "cobel\" }");
    let error = described(&wrong).unwrap_err();
    assert!(error.contains("did you mean \"codel\"?"), "{error}");
    let error = Session::new(SCENARIO, 2, 0).unwrap_err();
    assert_eq!(error, "the scenario has no arm number 2");
    let known = json(&described(SCENARIO).unwrap());
    assert_eq!(known["arms"], serde_json::json!(["pfifo", "codel"]));
    let again = described(known["toml"].as_str().unwrap()).unwrap();
    assert_eq!(json(&again)["scenario"], known["scenario"]);
}
