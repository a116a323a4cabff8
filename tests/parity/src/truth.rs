//! What the kernel did, as `data/linux.json` has it; `data/README.md` says how it was measured.

use std::collections::BTreeMap;

use serde::Deserialize;

/// All that was measured.
#[derive(Debug, Deserialize)]
pub(crate) struct Truth {
    /// Which kernel.
    pub(crate) kernel: String,
    /// Spacing of the diagnostic series.
    pub(crate) series_step_s: f64,
    pub(crate) scenarios: Vec<Scenario>,
}

impl Truth {
    /// The measurements this crate carries.
    pub(crate) fn load() -> Self {
        serde_json::from_str(include_str!("../data/linux.json"))
            .expect("linux.json is what compact.py writes")
    }
}

/// One scenario and its repetitions.
#[derive(Debug, Deserialize)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) suite: String,
    /// What the tables call the queue.
    pub(crate) label: String,
    /// Mbit/s at layer 2 towards the server.
    pub(crate) rate_up: f64,
    /// Mbit/s at layer 2 towards the client; 0: no bottleneck there.
    pub(crate) rate_down: f64,
    /// In the syntax passed to `tc`.
    pub(crate) qdisc: String,
    /// The same for the way down; empty: as up.
    pub(crate) qdisc_down: String,
    /// ECN was negotiated.
    #[serde(default)]
    pub(crate) ecn: bool,
    /// Base RTT in milliseconds, of pings and datagrams.
    pub(crate) rtt: f64,
    /// Seconds.
    pub(crate) duration: f64,
    /// When the steady window begins, in seconds.
    pub(crate) warm: f64,
    /// Interval of the pings, in seconds.
    pub(crate) ping: f64,
    /// When they end, in seconds.
    pub(crate) ping_stop: f64,
    /// When the first of the two counter readings was taken, in seconds.
    pub(crate) drops_from: f64,
    /// The second.
    pub(crate) drops_to: f64,
    /// Windows of pings besides the steady one, in seconds.
    pub(crate) windows: BTreeMap<String, (f64, f64)>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) udp: Vec<Udp>,
    pub(crate) reps: Vec<Repetition>,
}

impl Scenario {
    /// Whom the scenario measures, where it has TCP flows.
    pub(crate) fn controller(&self) -> Option<&str> {
        self.flows.first().map(|flow| flow.cc.as_str())
    }

    /// The name as the report prints it: `R1 10m 100ms codel`.
    pub(crate) fn title(&self) -> String {
        match self.name.strip_suffix(&self.label) {
            Some(rest) => format!("{}{}", rest.replace('_', " "), self.label),
            None => self.name.replace('_', " "),
        }
    }
}

/// One TCP connection.
#[derive(Debug, Deserialize)]
pub(crate) struct Flow {
    pub(crate) dir: Direction,
    pub(crate) cc: String,
    /// Base RTT in milliseconds.
    pub(crate) rtt: f64,
    /// When it was aborted, in seconds.
    pub(crate) stop: f64,
    /// What it had to transfer; `None`: no end.
    pub(crate) bytes: Option<u64>,
}

/// Which way the data goes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

impl Direction {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// One stream of datagrams, from the client to the server.
#[derive(Debug, Deserialize)]
pub(crate) struct Udp {
    /// Of the payload.
    pub(crate) rate_mbps: f64,
    /// Payload of a datagram in bytes.
    pub(crate) size: u64,
    /// Seconds.
    pub(crate) start: f64,
    /// Seconds.
    pub(crate) stop: f64,
}

/// What one run of a scenario gave. Vectors are in the order of the flows that have the metric:
/// `goodput`, `srtt_*` and `cwnd_mean` those without end, `fct_s` the finite ones, the series all.
#[derive(Debug, Deserialize)]
pub(crate) struct Repetition {
    /// When each flow started, in seconds.
    pub(crate) starts: Vec<f64>,
    #[serde(default)]
    pub(crate) goodput: Vec<f64>,
    #[serde(default)]
    pub(crate) srtt_mean_ms: Vec<f64>,
    #[serde(default)]
    pub(crate) srtt_p95_ms: Vec<f64>,
    #[serde(default)]
    pub(crate) fct_s: Vec<Option<f64>>,
    pub(crate) ping: Ping,
    /// Mean of each further window.
    #[serde(default)]
    pub(crate) windows: BTreeMap<String, f64>,
    /// By direction.
    pub(crate) drops: BTreeMap<String, f64>,
    /// Packets marked in the whole run, by direction.
    #[serde(default)]
    pub(crate) marks: BTreeMap<String, f64>,
    pub(crate) udp: Vec<UdpMeasured>,
    #[serde(default)]
    pub(crate) cwnd: Vec<Series>,
    #[serde(default)]
    pub(crate) srtt_ms: Vec<Series>,
}

/// Round trips of the steady window, in milliseconds.
#[derive(Debug, Deserialize)]
pub(crate) struct Ping {
    pub(crate) mean: f64,
    pub(crate) p95: f64,
}

/// What became of a stream of datagrams.
#[derive(Debug, Deserialize)]
pub(crate) struct UdpMeasured {
    pub(crate) goodput_mbps: f64,
    pub(crate) owd_mean_ms: f64,
    pub(crate) owd_p95_ms: f64,
}

/// A series for diagnosis, one value each [`Truth::series_step_s`].
#[derive(Debug, Deserialize)]
pub(crate) struct Series {
    /// Time of the first value, in seconds.
    pub(crate) from: f64,
    pub(crate) values: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repetition_has_what_its_flows_promise() {
        let truth = Truth::load();
        assert_eq!(truth.scenarios.len(), 159);
        for s in &truth.scenarios {
            let finite = s.flows.iter().filter(|f| f.bytes.is_some()).count();
            assert_eq!(s.reps.len(), 3, "{}", s.name);
            for rep in &s.reps {
                assert_eq!(rep.starts.len(), s.flows.len(), "{}", s.name);
                assert_eq!(rep.goodput.len(), s.flows.len() - finite, "{}", s.name);
                assert_eq!(rep.fct_s.len(), finite, "{}", s.name);
                assert_eq!(rep.udp.len(), s.udp.len(), "{}", s.name);
            }
        }
    }

    #[test]
    fn titles_keep_the_underscores_of_labels() {
        let truth = Truth::load();
        let titles: Vec<_> = truth.scenarios.iter().map(Scenario::title).collect();
        assert!(titles.contains(&"R1 10m 100ms fq_codel".to_owned()));
        assert!(titles.contains(&"V idle 10m".to_owned()));
    }
}
