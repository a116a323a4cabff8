//! What limits a flow: for each cause a scenario in which it does so.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::cast_precision_loss, reason = "times of seconds")]

use sojourn_records::FlowRecord;
use sojourn_scenario::Scenario;
use sojourn_sim::run;

/// The shares of time: loss recovery, application, receive window, pacing, link, congestion window.
type Shares = [f64; 6];

const LOSS: usize = 0;
const APPLICATION: usize = 1;
const RECEIVE_WINDOW: usize = 2;
const PACING: usize = 3;
const LINK: usize = 4;
const CWND: usize = 5;

fn flow(settings: &str, down: &str, traffic: &str) -> FlowRecord {
    let text = format!(
        "{settings}\nlinks.down = {{{down}}}\nlinks.up = \"unlimited\"\n\
         traffic = [{{direction = \"down\", {traffic}}}]\n"
    );
    let config = Scenario::from_toml(&text).unwrap().config(0, 0);
    let mut records = run(&config, &mut |_| true).unwrap().unwrap();
    records.flows.remove(0)
}

/// The time in seconds for which a connection was established, and the shares of it.
fn shares(record: &FlowRecord) -> (f64, Shares) {
    let totals = record.totals;
    let times = [
        totals.limited_loss,
        totals.limited_application,
        totals.limited_receive_window,
        totals.limited_pacing,
        totals.limited_link,
        totals.limited_cwnd,
    ];
    let all: u64 = times.iter().sum();
    (
        all as f64 / 1e9,
        times.map(|time| time as f64 / all.max(1) as f64),
    )
}

/// Over TCP and over QUIC.
fn both(settings: &str, down: &str, keys: &str) -> [(f64, Shares); 2] {
    ["tcp", "quic"].map(|kind| {
        let traffic = format!("type = \"{kind}\"{keys}");
        shares(&flow(settings, down, &traffic))
    })
}

#[test]
fn a_link_limits_a_flow_that_always_has_a_packet_in_its_queue() {
    let settings = "duration = \"8s\"\nwarmup = \"3s\"\nrtt = \"20ms\"";
    let down = "rate = \"10mbit\", qdisc = \"pfifo limit 10000\"";
    for (time, shares) in both(settings, down, ", cc = \"cubic\"") {
        assert!((time - 5.0).abs() < 1e-9, "{time}");
        // All but the gap between the last packet and the end of the run.
        assert!(shares[LINK] > 1.0 - 1e-4, "{shares:?}");
    }
}

#[test]
fn the_congestion_window_limits_a_flow_in_an_empty_network() {
    let settings = "duration = \"600ms\"\nwarmup = \"0s\"\nrtt = \"100ms\"";
    let down = "rate = \"10gbit\", qdisc = \"pfifo limit 10000\"";
    for (time, shares) in both(settings, down, ", pacing = false") {
        // The handshake takes a round trip.
        assert!((0.39..0.51).contains(&time), "{time}");
        assert!(shares[CWND] > 0.95, "{shares:?}");
    }
}

#[test]
fn the_receive_window_limits_tcp_and_flow_control_limits_quic() {
    let fat = "rate = \"1gbit\", qdisc = \"pfifo limit 10000\"";
    // In the first round trip after the handshake, the receive window of 64 kB is smaller than the congestion window.
    let tcp = flow(
        "duration = \"200ms\"\nwarmup = \"0s\"\nrtt = \"100ms\"",
        fat,
        "type = \"tcp\", initial_window = 100",
    );
    let quic = flow(
        "duration = \"4s\"\nwarmup = \"1s\"\nrtt = \"40ms\"",
        fat,
        "type = \"quic\", max_data = \"100kB\"",
    );
    for record in [tcp, quic] {
        let (_, shares) = shares(&record);
        assert!(shares[RECEIVE_WINDOW] > 0.9, "{shares:?}");
    }
}

#[test]
fn pacing_limits_bbr() {
    let settings = "duration = \"9s\"\nwarmup = \"3s\"\nrtt = \"40ms\"";
    let down = "rate = \"10mbit\", qdisc = \"pfifo limit 1000\"";
    for (_, shares) in both(settings, down, ", cc = \"bbr\"") {
        assert!(shares[PACING] > 0.85, "{shares:?}");
    }
}

#[test]
fn loss_recovery_limits_a_flow_with_frequent_losses() {
    let settings = "duration = \"20s\"\nwarmup = \"2s\"\nrtt = \"40ms\"";
    let down = "rate = \"100mbit\", qdisc = \"pfifo\", loss = \"10%\"";
    for (_, shares) in both(settings, down, ", cc = \"reno\"") {
        assert!(shares[LOSS] > 0.3 && shares[LINK] < 0.1, "{shares:?}");
    }
}

#[test]
fn marks_of_quic_are_no_loss_recovery() {
    let settings = "duration = \"8s\"\nwarmup = \"2s\"\nrtt = \"20ms\"";
    let down = "rate = \"10mbit\", qdisc = \"codel ecn\"";
    for (_, shares) in both(settings, down, ", cc = \"cubic\", ecn = true") {
        assert!(shares[LOSS] < 1e-12, "{shares:?}");
    }
}

#[test]
fn an_application_limits_its_connections_while_it_has_nothing_to_send() {
    let settings = "duration = \"10s\"\nwarmup = \"1s\"\nrtt = \"20ms\"";
    let down = "rate = \"100mbit\", qdisc = \"pfifo\"";
    for transport in ["tcp", "quic"] {
        let traffic = format!(
            "type = \"dash\", transport = \"{transport}\", ladder = [\"1mbit\"], segment = \"2s\", phase = \"0s\""
        );
        let (time, shares) = shares(&flow(settings, down, &traffic));
        assert!((time - 9.0).abs() < 1e-9, "{time}");
        assert!(shares[APPLICATION] > 0.9, "{shares:?}");
    }
}

#[test]
fn nothing_counts_before_the_connection_and_after_the_end_of_the_transfer() {
    let settings = "duration = \"10s\"\nwarmup = \"0s\"\nrtt = \"100ms\"";
    let down = "rate = \"10mbit\", qdisc = \"pfifo\"";
    for kind in ["tcp", "quic"] {
        let traffic = format!("type = \"{kind}\", bytes = \"100kB\"");
        let record = flow(settings, down, &traffic);
        let (time, _) = shares(&record);
        let completed = record.completed.unwrap().as_secs_f64();
        assert!(
            (0.1..completed).contains(&time),
            "{kind}: {time} of {completed}"
        );
        let stopped = flow(settings, down, &format!("type = \"{kind}\", stop = \"4s\""));
        let (time, _) = shares(&stopped);
        assert!((3.8..4.0).contains(&time), "{kind}: {time}");
    }
    let datagrams = flow(settings, down, "type = \"udp\", rate = \"1mbit\"");
    assert!(shares(&datagrams).0 < 1e-12);
}
