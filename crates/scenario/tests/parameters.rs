//! Parameters of queues and congestion controls by path, in arms and in changes of a scenario.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_scenario::plan::Traffic;
use sojourn_scenario::{Scenario, ScenarioError, parameters_at};

const BASE: &str = r#"
duration = "1s"
links.up = { rate = "1mbit", qdisc = "codel" }
links.down = { rate = "1mbit", qdisc = "pfifo" }
"#;
/// Two controls with the parameter `beta`.
const TRAFFIC: &str = r#"
[[traffic]]
type = "tcp"
name = "a"
direction = "up"
cc = "cubic beta 0.5 fast_convergence off"

[[traffic]]
type = "quic"
name = "b"
direction = "up"
cc = "reno"
"#;

fn read(more: &str) -> Scenario {
    Scenario::from_toml(&format!("{BASE}{TRAFFIC}{more}")).unwrap()
}

fn changed(scenario: &Scenario, path: &str, value: &str) -> Result<Scenario, ScenarioError> {
    scenario.changed(&[(path.to_owned(), value.to_owned())])
}

/// The congestion controls of an arm, one per group.
fn controls(scenario: &Scenario, arm: usize) -> Vec<String> {
    let flows = scenario.config(arm, 0).flows;
    flows
        .iter()
        .map(|flow| match &flow.traffic {
            Traffic::Tcp { params, .. } => params.cc.to_string(),
            Traffic::Quic { params, .. } => params.cc.to_string(),
            _ => panic!("{} has no control", flow.name),
        })
        .collect()
}

#[test]
fn a_parameter_of_a_control_is_changed_by_path() {
    let base = read("");
    for (path, value, expected) in [
        (
            "traffic.a.cc.beta",
            "0.75",
            ["cubic beta 3/4 fast_convergence off", "reno"],
        ),
        (
            "traffic[0].cc.fast_convergence",
            "true",
            ["cubic beta 1/2", "reno"],
        ),
        (
            "traffic.1.cc.beta",
            "\"3/4\"",
            ["cubic beta 1/2 fast_convergence off", "reno beta 3/4"],
        ),
        (
            "traffic[*].cc.beta",
            "0.75",
            ["cubic beta 3/4 fast_convergence off", "reno beta 3/4"],
        ),
    ] {
        let scenario = changed(&base, path, value).unwrap();
        assert_eq!(controls(&scenario, 0), expected, "{path}");
        let whole = expected.map(|text| format!("\"{text}\""));
        let at = |n: usize| (format!("traffic[{n}].cc"), whole[n].clone());
        assert_eq!(scenario, base.changed(&[at(0), at(1)]).unwrap(), "{path}");
    }
}

#[test]
fn arms_set_parameters_of_controls() {
    let arms = r#"
[[arms]]
name = "plain"

[[arms]]
name = "dotted"
[arms.set]
traffic.a.cc.beta = 0.75
links.up.qdisc.target = "9ms"

[[arms]]
name = "quoted"
set = { "traffic[*].cc.beta" = "3/4" }
"#;
    let scenario = read(arms);
    let first = "cubic beta 1/2 fast_convergence off";
    let second = "cubic beta 3/4 fast_convergence off";
    assert_eq!(controls(&scenario, 0), [first, "reno"]);
    assert_eq!(controls(&scenario, 1), [second, "reno"]);
    assert_eq!(controls(&scenario, 2), [second, "reno beta 3/4"]);
    assert_eq!(Scenario::from_toml(&scenario.to_toml()).unwrap(), scenario);
    assert_eq!(Scenario::from_json(scenario.to_json()).unwrap(), scenario);
    assert_eq!(
        scenario.arms_that_set("traffic.a.cc.beta"),
        ["dotted", "quoted"]
    );
    assert_eq!(scenario.arms_that_set("traffic[1].cc.beta"), ["quoted"]);
    assert_eq!(scenario.arms_that_set("traffic[0].cc.hystart"), [""; 0]);
}

#[test]
fn a_change_that_every_arm_undoes_is_refused() {
    let scenario = read("[[arms]]\nname = \"one\"\nset.\"traffic.a.cc\" = \"reno\"");
    let refused = changed(&scenario, "traffic[0].cc.beta", "0.75").unwrap_err();
    assert!(
        refused.to_string().contains("every arm sets this value"),
        "{refused}"
    );
}

#[test]
fn a_wrong_parameter_is_refused_at_its_path() {
    let base = read("");
    for (path, value, rule) in [
        (
            "traffic.a.cc.betta",
            "0.7",
            "cubic: unknown parameter \"betta\"; did you mean \"beta\"?",
        ),
        (
            "traffic.a.cc.beta",
            "7",
            "cubic: beta 7 is out of range; expected 1/1024 to 1023/1024",
        ),
        (
            "traffic.a.cc.beta",
            "true",
            "cubic: beta \"true\" is not a number; expected 1/1024 to 1023/1024",
        ),
        (
            "traffic[*].cc.fast_convergence",
            "true",
            "reno: unknown parameter \"fast_convergence\"; expected one of alpha, beta, \
             hystartpp_min_rtt_thresh, hystartpp_max_rtt_thresh, hystartpp_min_rtt_divisor, hystartpp_n_rtt_sample, \
             hystartpp_css_growth_divisor, hystartpp_css_rounds, hystartpp_l, hystartpp_l_paced, search_window_factor, \
             search_bins, search_extra_bins, search_thresh, search_drain, saved_cwnd, saved_rtt, rapid_rtt_increase, \
             rapid_rtt_factor (traffic[1])",
        ),
        (
            "traffic.a.cc.beta.x",
            "7",
            "a parameter has no keys; set traffic[0].cc.beta as a whole",
        ),
    ] {
        let refused = changed(&base, path, value).unwrap_err();
        assert_eq!((refused.path.as_str(), refused.rule.as_str()), (path, rule));
    }
}

#[test]
fn parameters_are_listed_where_a_path_leads_to_a_specification() {
    let value = |path: &str, text: &str, key: &str| {
        let all = parameters_at(path, text).unwrap();
        all.into_iter().find(|(known, _)| *known == key)
    };
    for path in ["traffic[0].cc", "traffic.*.cc", "traffic.links.cc"] {
        assert_eq!(
            value(path, "cubic beta 0.5", "beta"),
            Some(("beta", Some("1/2".to_owned()))),
            "{path}"
        );
    }
    let path = "links.cc.qdisc";
    assert_eq!(value(path, "pfifo", "beta"), None);
    assert!(value(path, "pfifo", "limit").is_some());
    for path in ["links.qdisc", "links.up.rate", "cc", "traffic.cc", "a..b"] {
        assert_eq!(parameters_at(path, "cubic"), Ok(Vec::new()), "{path}");
    }
    let refused = parameters_at("traffic[0].cc", "cubci").unwrap_err();
    assert!(
        refused.to_string().starts_with("traffic[0].cc: unknown"),
        "{refused}"
    );
}
