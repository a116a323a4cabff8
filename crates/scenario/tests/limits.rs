//! Scenarios that no memory holds are refused while they are read.

use sojourn_scenario::Scenario;

fn read(text: &str) -> Result<Scenario, String> {
    let text = format!("duration = \"1s\"\nrtt = \"9ms\"\n{text}");
    Scenario::from_toml(&text).map_err(|e| e.to_string())
}

fn traced(links: usize, gaps: &str) -> String {
    let link =
        |n| format!("links.l{n} = {{ trace = {{ gaps_ms = \"{gaps}\" }}, qdisc = \"pfifo\" }}\n");
    (0..links).map(link).collect()
}

const PING: &str = "traffic = [{ type = \"ping\", path = [\"l0\"] }]\n";

#[test]
fn the_traces_of_all_links_count() {
    let two = traced(2, "1x9999999");
    assert!(read(&format!("{two}{PING}")).is_ok());
    let refused = read(&format!("{}{PING}", traced(3, "1x9999999"))).unwrap_err();
    assert_eq!(
        refused,
        "links.l2: too many opportunities in all traces; expected at most 20000000 (line 5)"
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t"), "1\n".repeat(9_999_999)).unwrap();
    let link = |n| format!("links.l{n} = {{ trace = \"t\", qdisc = \"pfifo\" }}\n");
    let links: String = (0..3).map(link).collect();
    let text = format!("duration = \"1s\"\nrtt = \"9ms\"\n{links}{PING}");
    let refused = Scenario::from_toml_in(&text, folder.path()).unwrap_err();
    let rule = "too many opportunities in all traces; expected at most 20000000";
    assert_eq!(
        (refused.path.as_str(), refused.rule.as_str()),
        ("links.l2.trace", rule)
    );
}

#[test]
fn each_arm_takes_a_copy_of_the_scenario() {
    let arms = |n: usize| -> String {
        let arm = |n| format!("[[arms]]\nname = \"{n}\"\n");
        (0..n).map(arm).collect()
    };
    let links = traced(1, "1x9999999");
    let refused = read(&format!("{links}{PING}{}", arms(21))).unwrap_err();
    let rule = "arms: 21 arms are too many for a scenario of this size; expected at most 19";
    assert_eq!(refused, rule);
    let links = traced(1, "1x999");
    assert!(read(&format!("{links}{PING}{}", arms(500))).is_ok());
}

#[test]
fn the_flows_of_all_blocks_count() {
    let link = "links.l0 = { rate = \"1mbit\", qdisc = \"pfifo\" }\n";
    let block = |count| {
        format!("{{ type = \"ping\", path = [\"l0\"], count = {count}, interval = \"1s\" }}")
    };
    let traffic = |a, b| format!("{link}traffic = [{}, {}]\n", block(a), block(b));
    assert!(read(&traffic(99_999, 1)).is_ok());
    assert_eq!(
        read(&traffic(99_999, 2)).unwrap_err(),
        "traffic[1].count: too many flows: 100001; expected at most 100000 (line 4)"
    );
}

#[test]
fn thousands_of_blocks_without_a_name_are_named_at_once() {
    let block = "{ type = \"ping\", path = [\"l0\"], interval = \"1s\" },";
    let link = "links.l0 = { rate = \"1mbit\", qdisc = \"pfifo\" }\n";
    let scenario = read(&format!("{link}traffic = [{}]\n", block.repeat(30_000))).unwrap();
    let last = scenario.config(0, 0).flows.pop().unwrap();
    assert_eq!(last.name, "ping 30000");
}
