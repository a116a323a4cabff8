//! Runs both and sets their numbers side by side.

use std::fmt;

use sojourn_net::{Duration, Instant};
use sojourn_transport::SlowStart;
use sojourn_transport::quic::Params;

use crate::network::{Network, To};
use crate::outcome::Outcome;
use crate::scenarios::{Off, Scenario};
use crate::{ours, theirs};

/// A row of the table: a number of both.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    scenario: &'static str,
    what: String,
    ours: f64,
    theirs: f64,
    /// What the RFC asks for, where it does not ask for what theirs does.
    by_rfc: Option<f64>,
    tolerance: f64,
}

impl Row {
    pub(crate) fn agrees(&self) -> bool {
        let right = self.by_rfc.unwrap_or(self.theirs);
        (self.ours - right).abs() <= self.tolerance
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scenario,
            what,
            ours,
            theirs,
            by_rfc,
            tolerance,
        } = self;
        let verdict = match (self.agrees(), by_rfc) {
            (false, _) => "**no**".to_owned(),
            (true, None) => "yes".to_owned(),
            (true, Some(right)) => format!("yes, with the RFC: {right:.1}"),
        };
        write!(
            f,
            "| {scenario} | {what} | {ours:.1} | {theirs:.1} | {tolerance:.1} | {verdict} |"
        )
    }
}

const LIMIT: Duration = Duration::from_secs(600);

/// The runs of both.
fn run(scenario: &Scenario) -> (Vec<Outcome>, Vec<Outcome>) {
    let params = Params {
        cc: scenario.cc.into(),
        // As quinn-proto's, which nothing but congestion ends.
        slow_start: Some(SlowStart::Standard),
        max_datagram: 1_200,
        flow: scenario.flow,
        ..Params::default()
    };
    let Scenario {
        to_server,
        to_client,
        transfer,
        ..
    } = scenario;
    let here = (0..scenario.runs).map(|seed| {
        let network = Network::new(to_server, to_client, seed);
        ours::run(&params, *transfer, network, LIMIT)
    });
    let there = (0..scenario.runs).map(|seed| {
        let network = Network::new(to_server, to_client, seed);
        theirs::run(&params, *transfer, network, LIMIT)
    });
    (here.collect(), there.collect())
}

fn ms(at: Option<Instant>) -> f64 {
    at.map_or(f64::INFINITY, |at| at.as_secs_f64() * 1e3)
}

#[expect(clippy::cast_precision_loss, reason = "some dozens")]
fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
}

/// The head of the table.
pub(crate) const HEAD: &str = "\
| scenario | quantity | Sojourn | quinn-proto | tolerance | agrees |
|---|---|---|---|---|---|";

/// Every number of a scenario.
pub(crate) fn rows(scenario: &Scenario) -> Vec<Row> {
    let (here, there) = run(scenario);
    let row = |what: &str, of: &dyn Fn(&Outcome) -> f64, tolerance: &dyn Fn(f64) -> f64| {
        let (ours, theirs) = (mean(&here, of), mean(&there, of));
        Row {
            scenario: scenario.name,
            what: what.to_owned(),
            ours,
            theirs,
            by_rfc: None,
            tolerance: tolerance(theirs),
        }
    };
    let round = scenario.rtt.as_millis_f64();
    let time = move |theirs: f64| match scenario.completion {
        Off::Rounds(rounds) => rounds * round,
        Off::Part(part) => part * theirs,
    };
    let mut completed = row("completed, ms", &|o| ms(o.completed), &time);
    completed.by_rfc = scenario.by_rfc;
    let mut rows = vec![
        row("connected, ms", &|o| ms(o.connected), &time),
        completed,
        row(
            "datagrams the server sent",
            &|o| o.count(To::Client),
            &|n| 0.03 * n + 6.0,
        ),
    ];
    for &(to, after, part) in &scenario.instants {
        let of = move |o: &Outcome| {
            o.first_after(to, Duration::from_millis(after))
                .unwrap_or(f64::INFINITY)
        };
        let tolerance = move |at: f64| if part > 0.0 { part * at } else { 1.0 };
        let sender = if to == To::Server { "client" } else { "server" };
        rows.push(row(
            &format!("{sender} sends after {after} ms, ms"),
            &of,
            &tolerance,
        ));
    }
    if scenario.bulk {
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        rows.push(row("packets declared lost", &|o| o.lost as f64, &|n| {
            0.25 * n + 10.0
        }));
        rows.push(row(
            "mean congestion window, datagrams",
            &Outcome::mean_window,
            &|w| 0.1 * w,
        ));
    }
    rows
}
