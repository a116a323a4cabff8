//! Where what does not go together is said to stand.

use sojourn_scenario::Scenario;

#[test]
fn errors_of_the_plan_name_the_line_and_the_arm_if_there_are_arms() {
    let text = "duration = \"5s\"\n[links.up]\nrate = \"1mbit\"\nqdisc = \"pfifo\"\n\
                burst = \"9kb\"\nmedium = { type = \"wifi\" }\n\
                [[traffic]]\ntype = \"ping\"\npath = [\"up\"]\nrtt = \"9ms\"\n";
    let message = |text: &str| Scenario::from_toml(text).unwrap_err().to_string();
    assert_eq!(
        message(text),
        "links.up.burst: a wireless link cannot have a token bucket; remove burst (line 5)"
    );
    let arms =
        format!("{text}[[arms]]\nname = \"long\"\nset = {{ \"links.up.delay\" = \"1s\" }}\n");
    assert_eq!(
        message(&arms),
        "links.up.burst: a wireless link cannot have a token bucket; remove burst (arm \"long\") (line 5)"
    );
}

#[test]
fn a_wireless_link_has_no_ring() {
    let text = "duration = \"5s\"\n[links.up]\nrate = \"1mbit\"\nqdisc = \"pfifo\"\n\
                tx_ring = 9\nmedium = { type = \"wifi\" }\n\
                [[traffic]]\ntype = \"ping\"\npath = [\"up\"]\nrtt = \"9ms\"\n";
    assert_eq!(
        Scenario::from_toml(text).unwrap_err().to_string(),
        "links.up.tx_ring: a wireless link has the driver of its medium; \
         remove tx_ring and set medium.driver (line 5)"
    );
}

#[test]
fn traces_have_at_most_a_million_points_until_the_end_of_a_run() {
    let text = |duration: &str| {
        format!(
            "duration = \"{duration}\"\n[links.up]\nrate = \"1mbit\"\nqdisc = \"pfifo\"\n\
             delay_trace = {{ points = \"0ms 5ms, 1ms 6ms\", period = \"2ms\" }}\n\
             [[traffic]]\ntype = \"ping\"\npath = [\"up\"]\nrtt = \"9ms\"\n"
        )
    };
    assert!(Scenario::from_toml(&text("10s")).is_ok());
    assert_eq!(
        Scenario::from_toml(&text("3600s")).unwrap_err().to_string(),
        "links.up.delay_trace: 3600000 points until the end of the run; expected at most 1000000, \
         by a longer interval between points or a shorter duration"
    );
}

#[test]
fn a_table_in_place_of_a_list_of_tables_names_the_brackets() {
    let text = "duration = \"5s\"\n[links.up]\nrate = \"1mbit\"\nqdisc = \"pfifo\"\n[traffic]\ntype = \"ping\"\n";
    let message = Scenario::from_toml(text).unwrap_err().to_string();
    let expected = "traffic: a table is not a list; expected [[traffic]] (line 5)";
    assert_eq!(message, expected);
}
