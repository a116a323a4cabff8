//! Links that are not simulated: an explicit choice, except in saved results of older versions.

use sojourn_scenario::Scenario;

fn read(links: &str, traffic: &str) -> Result<Scenario, String> {
    let text = format!("duration = \"5s\"\nrtt = \"9ms\"\n{links}\ntraffic = [{traffic}]\n");
    Scenario::from_toml(&text).map_err(|e| e.to_string())
}

const UP: &str = "links.up = { rate = \"1mbit\", qdisc = \"codel\" }\n";
const TCP: &str = "{ type = \"tcp\", direction = \"up\" }";

#[test]
fn an_unlimited_link_is_no_hop_and_survives_the_file() {
    let scenario = read(&format!("{UP}links.down = \"unlimited\""), TCP).unwrap();
    let config = scenario.config(0, 0);
    assert_eq!((config.links.len(), config.flows[0].reverse.len()), (1, 1));
    let again = Scenario::from_toml(&scenario.to_toml()).unwrap();
    assert_eq!(
        (again.hash(), again.config(0, 0)),
        (scenario.hash(), config)
    );
    assert!(scenario.to_json().contains("\"down\":\"unlimited\""));
}

#[test]
fn a_missing_link_is_refused_where_packets_would_cross_it() {
    let missing = read(UP, TCP).unwrap_err();
    assert_eq!(
        missing,
        "traffic[0].direction: responses cross the link \"down\", which is not defined; define links.down, or set \
         links.down = \"unlimited\" (defined links: up) (line 5)"
    );
    let data = read(
        UP,
        "{ type = \"udp\", direction = \"down\", rate = \"1mbit\" }",
    )
    .unwrap_err();
    assert!(
        data.starts_with("traffic[0].direction: data cross the link \"down\""),
        "{data}"
    );
    for one_way in ["udp\", rate = \"1mbit", "voip"] {
        let traffic = format!("{{ direction = \"up\", type = \"{one_way}\" }}");
        assert!(read(UP, &traffic).is_ok(), "{one_way}");
    }
    let wrong = read(&format!("{UP}links.down = \"none\""), TCP).unwrap_err();
    assert_eq!(
        wrong,
        "links.down: \"none\" is not a link; expected a table or \"unlimited\" (line 4)"
    );
}

#[test]
fn a_saved_scenario_of_an_older_version_keeps_its_meaning() {
    let now = read(&format!("{UP}links.down = \"unlimited\""), TCP).unwrap();
    let older = now.to_json().replace("\"down\":\"unlimited\",", "");
    assert_ne!(older, now.to_json());
    let read = Scenario::from_saved_before_unlimited(&older).unwrap();
    assert_eq!(read.config(0, 0), now.config(0, 0));
    assert!(Scenario::from_saved(&older).is_err());
    assert!(Scenario::from_json(&older).is_err());
}

#[test]
fn a_saved_scenario_names_no_file() {
    let json = read(&format!("{UP}links.down = \"unlimited\""), TCP).unwrap();
    let named = json
        .to_json()
        .replace("\"rate\":\"1mbit\"", "\"trace\":\"/etc/hostname\"");
    assert_ne!(named, json.to_json());
    let refused = Scenario::from_saved(&named).unwrap_err().to_string();
    assert_eq!(
        refused,
        "links.up.trace: \"/etc/hostname\" is not a table; expected keys with values"
    );
}

#[test]
fn probable_mistakes_are_noted() {
    let links = format!(
        "{UP}links.down = \"unlimited\"\nlinks.a = {{ rate = \"1mbit\", qdisc = \"pfifo\" }}\n"
    );
    assert_eq!(
        read(&links, TCP).unwrap().notes(),
        ["links.a: no traffic crosses this link"]
    );
    let path = "{ type = \"tcp\", path = [\"a\"], return = [\"up\"] }";
    assert!(read(&links, path).unwrap().notes().is_empty());
    let immediate =
        "{ type = \"tcp\", path = [\"a\"], return = [\"up\"], rtt = \"0s\", bytes = \"1kb\" }";
    assert_eq!(
        read(&links, immediate).unwrap().notes(),
        ["rtt: the base RTT is 0 s for tcp"]
    );
    let delayed = links.replace("\"pfifo\" }", "\"pfifo\", delay = \"1ms\" }");
    assert!(read(&delayed, immediate).unwrap().notes().is_empty());
}
