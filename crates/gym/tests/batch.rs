//! Steps do not change a run, threads do not change a batch, and actions take effect.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_gym::{Action, Batch, FLOW_COLUMNS, LINK_COLUMNS, Setup};
use sojourn_net::Duration;
use sojourn_scenario::Scenario;
use sojourn_scenario::plan::Config;
use sojourn_sim::{Simulation, run};

const STEP: Duration = Duration::from_millis(10);

/// Four flows on a link of 20 Mbit/s.
fn config(queue: &str) -> Config {
    let text = format!(
        r#"
        rtt = "40ms"
        duration = "6s"
        warmup = "1s"
        [links.up]
        rate = "20mbit"
        qdisc = "{queue}"
        [links.down]
        rate = "20mbit"
        qdisc = "pfifo"
        [[traffic]]
        type = "tcp"
        direction = "up"
        count = 4
        cc = "reno"
        "#
    );
    Scenario::from_toml(&text).unwrap().plan(0, 0).config
}

fn setup(queue: &str, action: Action) -> Setup {
    Setup {
        configs: vec![config(queue)],
        link: "up".to_owned(),
        step: STEP,
        action,
    }
}

/// The numbers of each step of `size` simulations with one action for all.
fn episode(setup: Setup, size: usize, threads: usize, action: f64) -> Vec<Vec<f64>> {
    let (actions, columns) = (setup.actions(), setup.columns());
    let mut batch = Batch::new(setup, size, threads).unwrap();
    let mut numbers = vec![0.0; columns * size];
    for n in 0..size {
        let to = &mut numbers[n * columns..(n + 1) * columns];
        batch.reset(n, 0, 7 + n as u64, to).unwrap();
    }
    let steps = (0..400).map(|_| {
        batch.step(&vec![action; actions * size], &mut numbers);
        numbers.clone()
    });
    steps.collect()
}

fn mean(steps: &[Vec<f64>], column: &str) -> f64 {
    let place = LINK_COLUMNS
        .iter()
        .position(|name| *name == column)
        .unwrap();
    let values: Vec<f64> = steps
        .iter()
        .map(|step| step[place])
        .filter(|v| !v.is_nan())
        .collect();
    values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap())
}

#[test]
fn a_run_in_steps_has_the_records_of_the_whole_run() {
    for queue in ["fq_codel", "pie"] {
        let config = config(queue);
        let whole = run(&config, &mut |_| true).unwrap().unwrap();
        let mut steps = Simulation::new(config).unwrap();
        while steps.now() < steps.end() {
            steps.advance(steps.now() + Duration::from_micros(1_700));
            steps.measure_flow(0);
        }
        assert_eq!(steps.finish(), whole, "{queue}");
    }
}

#[test]
fn a_batch_does_not_depend_on_its_threads() {
    let setup = || setup("codel", Action::Time("target".to_owned()));
    let one = episode(setup(), 5, 1, 0.002);
    let three = episode(setup(), 5, 3, 0.002);
    // NaN is not equal to itself.
    assert_eq!(format!("{one:?}"), format!("{three:?}"));
    assert_ne!(
        one[399][..9],
        one[399][one[0].len() / 5..][..9],
        "seeds differ"
    );
}

#[test]
fn the_queue_drops_with_the_probability() {
    let setup = || setup("pfifo limit 100", Action::DropProbability(100_000));
    let [never, often] = [0.0, 0.05].map(|probability| episode(setup(), 1, 1, probability));
    assert!(mean(&never, "drops") < 1e-9);
    let (drops, sent) = (mean(&often, "drops"), mean(&often, "sent_packets"));
    let share = drops / (drops + sent);
    assert!((0.03..0.07).contains(&share), "{share}");
    // What waited at the end of the warm-up has left by then.
    let [never, often] = [&never, &often].map(|steps| mean(&steps[300..], "sojourn_s_mean"));
    assert!(often < 0.5 * never, "{often} {never}");
}

#[test]
fn the_queue_has_the_target() {
    let setup = || setup("codel", Action::Time("target".to_owned()));
    let [short, long] = [0.001, 0.05].map(|target| episode(setup(), 1, 1, target));
    let delay = |steps: &[Vec<f64>]| mean(steps, "sojourn_s_mean");
    assert!(
        2.0 * delay(&short) < delay(&long),
        "{} {}",
        delay(&short),
        delay(&long)
    );
}

#[test]
fn flows_have_the_windows() {
    let setup = setup("pfifo limit 100", Action::Windows(4));
    let steps = episode(setup, 1, 1, 10.0);
    let place = |column: &str| {
        FLOW_COLUMNS
            .iter()
            .position(|name| *name == column)
            .unwrap()
    };
    for flow in 0..4 {
        let numbers = &steps[399][LINK_COLUMNS.len() + FLOW_COLUMNS.len() * flow..];
        // Reno adds at most a segment in a step, and what it sent then is in flight in the next one.
        assert!(
            (10.0..=11.0).contains(&numbers[place("cwnd")]),
            "{numbers:?}"
        );
        assert!(numbers[place("in_flight")] <= 12.0);
    }
    // Four windows of 10 segments take less than the 66 segments of 20 Mbit/s and 40 ms.
    assert!(mean(&steps, "sojourn_s_mean") < 0.002);
    assert!(steps[399][LINK_COLUMNS.len() - 1] == 0.0);
}

#[test]
fn a_setup_that_cannot_be_steered_is_an_error() {
    let error = |setup: &Setup| setup.check().unwrap_err().to_string();
    let known = setup("codel", Action::None);
    assert!(known.check().is_ok());
    let other = Setup {
        link: "uplink".to_owned(),
        ..known.clone()
    };
    assert_eq!(
        error(&other),
        r#"link: unknown link "uplink"; expected one of down, up"#
    );
    let fifo = setup("pfifo", Action::Time("target".to_owned()));
    assert_eq!(
        error(&fifo),
        r#"action: pfifo has no time "target" that can be changed"#
    );
    let five = setup("codel", Action::Windows(5));
    assert_eq!(
        error(&five),
        "agents: expected at most 4, the number of flows over TCP"
    );
}
