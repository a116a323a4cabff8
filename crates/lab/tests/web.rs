//! Web pages in scenarios: runs follow the scenario, and mistakes are reported.

use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use sojourn_lab::{RunOptions, Scenario, TableKind, run};
use sojourn_sim::Simulator;

fn scenario(pages: &str, traffic: &str) -> String {
    format!(
        r#"
        duration = "20s"
        rtt = "100ms"
        links.up = {{ rate = "100mbit", qdisc = "pfifo" }}
        links.down = {{ rate = "100mbit", qdisc = "pfifo" }}
        {pages}
        [[traffic]]
        type = "web"
        direction = "down"
        {traffic}
        "#
    )
}

const SHOP: &str = r#"
    [[pages.shop.objects]]
    name = "document"
    bytes = "1kb"
    [[pages.shop.objects]]
    name = "picture"
    bytes = { distribution = "exponential", mean = "2kb" }
    count = 3
    after = ["document"]
    origin = "images"
"#;

#[test]
fn a_scenario_with_pages_reads_back_as_itself() {
    let text = scenario(
        SHOP,
        "page = \"shop\"\nhttp = \"1.1\"\ntls = false\ncount = 2\nvisits = 4\n\
         think = { distribution = \"exponential\", mean = \"2s\" }\n",
    );
    let read = Scenario::from_toml(&text).unwrap();
    assert_eq!(Scenario::from_toml(&read.to_toml()).unwrap(), read);
    assert_eq!(Scenario::from_json(read.to_json()).unwrap(), read);
    assert!(
        read.to_json()
            .contains("\"think\":{\"distribution\":\"exponential\",\"mean\":\"2s\"}")
    );
}

#[test]
fn http_3_reads_back_as_itself() {
    let text = scenario(
        "",
        "page = \"large\"\nhttp = \"3\"\ncc = \"reno\"\necn = true\n",
    );
    let read = Scenario::from_toml(&text).unwrap();
    assert_eq!(Scenario::from_toml(&read.to_toml()).unwrap(), read);
    assert!(read.to_json().contains("\"http\":\"3\""));
}

#[test]
fn visits_are_transactions_of_their_user() {
    let text = scenario(
        SHOP,
        "page = \"shop\"\ntls = false\ncount = 2\nvisits = 4\n",
    );
    let scenario = Scenario::from_toml(&text).unwrap();
    let options = RunOptions {
        jobs: None,
        cancel: &AtomicBool::new(false),
        progress: &|_, _| {},
        ..RunOptions::default()
    };
    let outcome = run(&Simulator::default(), &scenario, options).unwrap();
    let transactions = outcome.table(TableKind::Transactions);
    assert_eq!(transactions.rows(), 8);
    let batch = &transactions.batches().unwrap()[0];
    let durations = batch.column_by_name("duration_s").unwrap();
    // The document after two round trips; the pictures are on another server: two more.
    for took in durations.as_primitive::<Float64Type>() {
        let took = took.unwrap();
        assert!((0.4..0.41).contains(&took), "{took}");
    }
    let batch = &outcome.table(TableKind::Applications).batches().unwrap()[0];
    let count = |name| {
        let column = batch.column_by_name(name).unwrap();
        column.as_primitive::<UInt64Type>().values().to_vec()
    };
    assert_eq!(count("connections"), [8, 8]);
    assert_eq!(count("completed"), [4, 4]);
    let kinds = batch.column_by_name("kind").unwrap();
    assert_eq!(kinds.as_string::<i32>().value(0), "web");
}

#[test]
fn errors_name_their_place() {
    for (pages, traffic, wanted) in [
        (
            "",
            "",
            "traffic[0].page: missing; set it, for example page = \"large\"",
        ),
        (
            "",
            "page = \"lage\"",
            "traffic[0].page: unknown page \"lage\"; expected large, objects50 or small (define your own pages",
        ),
        (
            "[[pages.small.objects]]\nname = \"a\"\nbytes = \"1kb\"",
            "page = \"small\"",
            "pages.small: \"small\" is a built-in page; use another name",
        ),
        (
            "[[pages.shop.objects]]\nname = \"a\"\nbytes = \"1kb\"\nafter = [\"b\"]\n\
             [[pages.shop.objects]]\nname = \"b\"\nbytes = \"1kb\"\nafter = [\"a\"]",
            "page = \"shop\"",
            "pages.shop.objects[0].after: circular dependency: \"a\" after \"b\" after \"a\"",
        ),
        (
            "",
            "page = \"large\"\nhttp = \"4\"",
            "traffic[0].http: unknown HTTP version \"4\"; expected 1.1, 2 or 3",
        ),
        (
            "",
            "page = \"large\"\nhttp = \"3\"\npacing = true",
            "traffic[0].pacing: is for TCP only, but HTTP/3 runs over QUIC; remove it, or set http = \"2\"",
        ),
        (
            "",
            "page = \"large\"\nzero_rtt = true",
            "traffic[0].zero_rtt: requires http = \"3\", which runs over QUIC",
        ),
        (
            "",
            "page = \"large\"\nhttp = \"3\"\necn = \"accurate\"",
            "traffic[0].ecn: \"accurate\" is for TCP only; over HTTP/3, expected true or false",
        ),
        (
            "",
            "page = \"large\"\nhttp = \"3\"\ntls = false",
            "traffic[0].tls: must be true over HTTP/3, since QUIC always uses TLS",
        ),
        (
            "",
            "page = \"large\"\nrequest = \"0b\"",
            "traffic[0].request: \"0b\" is out of range",
        ),
        (
            "",
            "page = \"large\"\nvisits = 0",
            "traffic[0].visits: 0 is out of range",
        ),
        (
            "",
            "page = \"large\"\nbytes = \"1kb\"",
            "traffic[0].bytes: unknown key",
        ),
    ] {
        let error = Scenario::from_toml(&scenario(pages, traffic)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with(wanted), "{error}\nnot {wanted}");
    }
}
