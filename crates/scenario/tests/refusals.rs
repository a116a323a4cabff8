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
fn a_table_in_place_of_a_list_of_tables_names_the_brackets() {
    let text = "duration = \"5s\"\n[links.up]\nrate = \"1mbit\"\nqdisc = \"pfifo\"\n[traffic]\ntype = \"ping\"\n";
    let message = Scenario::from_toml(text).unwrap_err().to_string();
    let expected = "traffic: a table is not a list; expected [[traffic]] (line 5)";
    assert_eq!(message, expected);
}
