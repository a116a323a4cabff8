//! Programs in scenarios: what is read, what is refused, and the load that is assumed.

use sojourn_scenario::plan::Traffic;
use sojourn_scenario::{Load, Scenario};

const RUN: &str = "duration = \"10s\"\nrtt = \"20ms\"\n\
     [links]\nup = { rate = \"10mbit\", qdisc = \"pfifo\" }\n\
     down = { rate = \"100mbit\", qdisc = \"pfifo\" }\n";

fn read(traffic: &str) -> Scenario {
    let text = format!("{RUN}{traffic}");
    Scenario::from_toml(&text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refused(traffic: &str) -> String {
    let error = Scenario::from_toml(&format!("{RUN}{traffic}")).expect_err(traffic);
    error.to_string()
}

fn block(more: &str) -> String {
    format!("[[traffic]]\ntype = \"program\"\ndirection = \"down\"\n{more}\n")
}

#[test]
fn a_program_and_its_server_are_in_the_plan_as_written() {
    let text = block(
        "command = [\"iperf3\", \"--client\", \"$SOJOURN_SERVER\"]\n\
         server = [\"iperf3\", \"--server\"]\nstart = \"1s\"",
    );
    let plan = read(&text).plan(0, 0);
    assert_eq!(plan.flows[0].group, "program down");
    let flow = &plan.config.flows[0];
    assert!(flow.is_program());
    let Traffic::Program(program) = &flow.traffic else {
        panic!("{:?}", flow.traffic);
    };
    assert_eq!(program.command, ["iperf3", "--client", "$SOJOURN_SERVER"]);
    let server = program.server.as_ref().expect("a server");
    assert_eq!(*server, ["iperf3", "--server"]);
}

#[test]
fn commands_that_cannot_be_started_are_refused() {
    let long = "x".repeat(100_001);
    for (settings, wanted) in [
        (
            "",
            "traffic[0].command: missing; set it, for example command = [\"ping\", \"$SOJOURN_SERVER\"]",
        ),
        (
            "command = \"ping\"",
            "traffic[0].command: \"ping\" is not a list; expected values between [ and ]",
        ),
        (
            "command = [\"ping\", 5]",
            "traffic[0].command[1]: 5 is not a string; expected a quoted string",
        ),
        (
            "command = []",
            "traffic[0].command: names no program; expected a list such as [\"iperf3\", \"--version\"]",
        ),
        (
            "command = [\"\", \"a\"]",
            "traffic[0].command: names no program",
        ),
        (
            "command = [\"a\", \"b\\u0000\"]",
            "traffic[0].command: string 2 contains a NUL character",
        ),
        (
            &format!("command = [\"{long}\"]"),
            "traffic[0].command: too long: 100001 bytes; expected at most 100000",
        ),
        (
            &format!("command = [{}]", "\"x\", ".repeat(1_001)),
            "traffic[0].command: 1001 strings are too many; expected at most 1000",
        ),
        (
            "command = [\"a\"]\nserver = []",
            "traffic[0].server: names no program",
        ),
        (
            "command = [\"a\"]\ncount = 2",
            "traffic[0].count: too many programs: 2; expected 1, since a scenario has at most one program",
        ),
        (
            "command = [\"a\"]\nservers = [\"a\"]",
            "traffic[0].servers: unknown key; did you mean \"server\"?",
        ),
    ] {
        let message = refused(&block(settings));
        assert!(message.starts_with(wanted), "{message}\nnot {wanted}");
    }
}

#[test]
fn a_second_program_is_refused_by_its_place() {
    let one = block("command = [\"a\"]");
    let other = "[[traffic]]\ntype = \"udp\"\ndirection = \"up\"\nrate = \"1mbit\"\ncount = 3\n";
    assert_eq!(
        refused(&format!("{one}{other}{one}")),
        "traffic[2].type: a second program; expected at most one, since packets of no other flow are \
         attributed to it (line 16)"
    );
    assert!(read(&format!("{other}{one}")).plan(0, 0).config.flows[3].is_program());
}

#[test]
fn responses_of_a_program_need_their_link() {
    let one_way = RUN.replace("up = {", "wan = {");
    let text = format!("{one_way}{}", block("command = [\"a\"]"));
    let error = Scenario::from_toml(&text).unwrap_err();
    assert_eq!(error.path, "traffic[0].direction");
    assert!(error.rule.starts_with("responses cross the link \"up\""));
}

#[test]
fn an_arm_replaces_a_command() {
    let text = block("command = [\"a\"]")
        + "[[arms]]\nname = \"one\"\nset = { \"traffic[0].command\" = [\"b\", \"c\"] }\n";
    let scenario = read(&text);
    assert!(scenario.arm_json(0).contains("\"command\":[\"b\",\"c\"]"));
    let refused = refused(&text.replace("[\"b\", \"c\"]", "[]"));
    assert!(
        refused.starts_with("arms[0].set.traffic[0].command: names no program"),
        "{refused}"
    );
}

#[test]
fn a_program_is_assumed_to_fill_the_links_of_both_directions() {
    let load = |traffic: &str| -> Load { read(traffic).plan(0, 0).config.load() };
    let all = load(&block("command = [\"a\"]"));
    // Links in the order of their names; in 10 s they carry 82562 and 8256 frames of 1514 B.
    let (down, up) = (all.links[0].arrivals, all.links[1].arrivals);
    let data = 82_562 + 8_256;
    assert!((data..data * 3 / 2 + 1_000).contains(&down), "{all:?}");
    assert_eq!(down, up, "each direction acknowledges the other");
    assert_eq!((all.links[0].waiting, all.links[1].waiting), (1_000, 1_000));
    assert_eq!((all.connections, all.pings, all.datagrams), (0, 0, 0));
    let app = "[[traffic]]\ntype = \"dash\"\ndirection = \"down\"\n";
    assert!(load(app).packets < 82_562, "limited by what it plays");
    let one_way = "[[traffic]]\ntype = \"program\"\npath = [\"up\"]\ncommand = [\"a\"]\n";
    let one_way = load(one_way);
    assert_eq!(one_way.links[0].arrivals, 0);
    assert!((8_256..8_256 * 3 / 2 + 1_000).contains(&one_way.links[1].arrivals));
}
