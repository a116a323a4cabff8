//! Queues that pace by the sockets of the senders (`pacing` of fq and cocoa).

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_records::Records;
use sojourn_scenario::Scenario;
use sojourn_sim::run;

fn records(down: &str, traffic: &str) -> Records {
    let text = format!(
        "duration = \"8s\"\nwarmup = \"0s\"\nrtt = \"100ms\"\n\
         links.down = {{rate = \"100mbit\", qdisc = \"{down}\"}}\nlinks.up = \"unlimited\"\n\
         traffic = [{{name = \"a\", direction = \"down\", {traffic}}}]\n"
    );
    let config = Scenario::from_toml(&text).unwrap().config(0, 0);
    run(&config, &mut |_| true).unwrap().unwrap()
}

/// When a transfer of 10 segments is complete, in ms.
fn completion(down: &str, traffic: &str) -> u64 {
    let flow = &records(down, &format!("bytes = \"14480B\", {traffic}")).flows[0];
    let time = flow.completed.unwrap().since(flow.started.unwrap());
    time.as_micros() / 1_000
}

const QUANTUM: &str = "quantum 3028 initial_quantum 3028";

#[test]
fn a_queue_paces_the_initial_window_of_tcp_that_does_not_pace_itself() {
    let tcp = "type = \"tcp\", cc = \"cubic\"";
    for queue in [
        "fq",
        "fq profile linux-6.12",
        "cocoa",
        "drr leaf fq",
        "prio leaf fq",
    ] {
        let plain = completion(&format!("{queue} {QUANTUM}"), tcp);
        let paced = completion(&format!("{queue} {QUANTUM} pacing"), tcp);
        // A round trip for the handshake, half of one for the data, and 4 gaps of 3028 bytes at 20 segments per round trip.
        assert_eq!(plain, 151, "{queue}");
        assert_eq!(paced, 192, "{queue}");
        let faster = format!("{queue} {QUANTUM} maxrate 1gbit pacing");
        if queue.starts_with("fq") {
            assert_eq!(completion(&faster, tcp), paced, "{queue}");
        }
    }
}

#[test]
fn only_sockets_of_tcp_have_a_rate() {
    for traffic in [
        "type = \"quic\", bytes = \"100kB\"",
        "type = \"udp\", rate = \"20mbit\"",
    ] {
        let [plain, paced] = ["", " pacing"].map(|pacing| {
            let records = records(&format!("fq {QUANTUM}{pacing}"), traffic);
            (records.flows[0].totals, records.links[0].totals)
        });
        assert_eq!(plain, paced, "{traffic}");
    }
}

#[test]
fn requests_and_responses_are_paced_both() {
    let web = "type = \"web\", page = \"small\", http = \"1.1\"";
    let [plain, paced] = ["", " pacing"].map(|pacing| {
        let records = records(&format!("fq {QUANTUM}{pacing}"), web);
        let times = records
            .transactions
            .iter()
            .map(|one| one.completed.unwrap().since(one.started).as_micros());
        times.sum::<u64>()
    });
    assert!(paced > plain + 10_000, "{plain} {paced}");
}
