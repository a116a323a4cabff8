//! A run in steps: the same records, and the series that they will have.

use sojourn_net::{Duration, Instant};
use sojourn_scenario::Scenario;
use sojourn_sim::{Simulation, run};

const SCENARIO: &str = r#"
duration = "8.03s"
warmup = "2.5s"
rtt = "30ms"
sample = "100ms"
keep_events = true
sample_state = true

[links.up]
rate = "5mbit"
qdisc = "fq_codel"
changes = [{ at = "3s", rate = "2mbit", delay = "10ms" }]

[links.down]
rate = "20mbit"
qdisc = "pie"

[[traffic]]
type = "tcp"
direction = "up"
count = 2
stop = "6s"

[[traffic]]
type = "tcp"
direction = "down"
bytes = "2mb"

[[traffic]]
type = "quic"
direction = "down"

[[traffic]]
type = "web"
page = "small"
direction = "down"

[[traffic]]
type = "ping"
direction = "up"
interval = "50ms"

[[traffic]]
type = "voip"
direction = "up"
"#;

#[test]
fn steps_do_not_change_the_records_and_show_their_series() {
    let config = Scenario::from_toml(SCENARIO).unwrap().config(0, 0);
    let whole = run(&config, &mut |_| true).unwrap().unwrap();
    assert!(whole.events.len() > 20, "{} events", whole.events.len());

    for step in [Duration::from_millis(7), Duration::from_millis(1_000)] {
        let mut stepped = Simulation::new(config.clone()).unwrap();
        let mut until = Instant::ZERO;
        let mut compared = 0;
        while !stepped.is_finished() {
            until += step;
            stepped.advance(until);
            for (n, link) in whole.links.iter().enumerate() {
                let (series, states) = stepped.link(n);
                assert_eq!(series, &link.series[..series.len()]);
                assert_eq!(states, &link.states[..states.len()]);
                compared += series.len();
            }
            for (n, flow) in whole.flows.iter().enumerate() {
                let series = stepped.flow(n);
                assert_eq!(series, &flow.series[..series.len()], "{}", flow.name);
                let pings = stepped.pings(n);
                for (ping, later) in pings.iter().zip(&flow.pings) {
                    assert_eq!(ping.sent, later.sent);
                    assert!(ping.rtt.is_none() || ping.rtt == later.rtt);
                }
                compared += series.len() + pings.len();
            }
            let events = stepped.events();
            assert_eq!(events, &whole.events[..events.len()]);
        }
        assert!(compared > 1_000, "{compared} samples");
        assert_eq!(stepped.now(), Instant::ZERO + config.duration);
        assert_eq!(stepped.finish(), whole);
    }
}

#[test]
fn a_step_back_does_nothing() {
    let config = Scenario::from_toml(SCENARIO).unwrap().config(0, 0);
    let mut stepped = Simulation::new(config.clone()).unwrap();
    let at = Instant::from_millis(500);
    stepped.advance(at);
    stepped.advance(Instant::from_millis(200));
    assert_eq!(stepped.now(), at);
}
