//! What the kernels did, as `data/linux-*.json` have it; `data/README.md` says how it was measured.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The measurements of each kernel, in the order of their versions.
const FILES: [&str; 3] = [
    include_str!("../data/linux-6.1.json"),
    include_str!("../data/linux-6.12.json"),
    include_str!("../data/linux-6.18.json"),
];

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Truth {
    /// Spacing of the diagnostic series, in seconds.
    pub(crate) series_step_s: f64,
    pub(crate) scenarios: Vec<Scenario>,
}

/// What was measured on one kernel.
#[derive(Debug, Deserialize)]
struct Measured {
    /// The full version, such as 6.1.192.
    kernel: String,
    series_step_s: f64,
    scenarios: Vec<Scenario>,
}

impl Truth {
    /// The measurements this crate carries.
    pub(crate) fn load() -> Self {
        let mut scenarios = Vec::new();
        let mut series_step_s = 0.0;
        for text in FILES {
            let measured: Measured =
                serde_json::from_str(text).expect("the files are what compact.py writes");
            series_step_s = measured.series_step_s;
            for mut scenario in measured.scenarios {
                scenario.kernel = short(&measured.kernel);
                scenarios.push(scenario);
            }
        }
        Self {
            series_step_s,
            scenarios,
        }
    }

    /// The measurements of the same scenario with the most repetitions, `scenario` itself among equals.
    pub(crate) fn most_repeated<'a>(&'a self, scenario: &'a Scenario) -> &'a Scenario {
        let others = self.scenarios.iter().filter(|s| s.name == scenario.name);
        others.fold(scenario, |most, other| {
            if other.reps.len() > most.reps.len() {
                other
            } else {
                most
            }
        })
    }

    /// The same scenario on another kernel.
    pub(crate) fn on(&self, kernel: &str, scenario: &Scenario) -> Option<&Scenario> {
        let mut all = self.scenarios.iter();
        all.find(|s| s.kernel == kernel && s.name == scenario.name)
    }
}

/// `6.1` of `6.1.192`.
fn short(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// One scenario and its repetitions.
#[derive(Debug, Deserialize)]
pub(crate) struct Scenario {
    /// The kernel it was measured on, such as `6.12`.
    #[serde(skip)]
    pub(crate) kernel: String,
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
    /// `SO_RCVBUF` of the listener in bytes.
    #[serde(default)]
    pub(crate) rcvbuf: Option<u32>,
    /// The maximum of `tcp_rmem` in bytes, if receivers are limited by it.
    #[serde(default)]
    pub(crate) rmem: Option<u32>,
    /// The server reads at most 16 KiB at a time at this rate, in Mbit/s.
    #[serde(default)]
    pub(crate) read_rate: Option<f64>,
    /// From when to when the server does not read, in seconds.
    #[serde(default)]
    pub(crate) pause: Option<(f64, f64)>,
    /// 1: the server acknowledges each segment.
    #[serde(default)]
    pub(crate) quickack: u8,
    /// `gro_flush_timeout` of the server's device in ns, and `napi_defer_hard_irqs`.
    #[serde(default)]
    pub(crate) gro: Option<(u64, u32)>,
    /// `tcp_min_tso_segs`.
    #[serde(default)]
    pub(crate) min_tso_segs: Option<u8>,
    /// `gso_max_segs` of the client's device.
    #[serde(default)]
    pub(crate) gso_max_segs: Option<u8>,
    /// The client writes at this rate, in Mbit/s.
    #[serde(default)]
    pub(crate) write_rate: Option<f64>,
    /// What it writes at a time, in bytes.
    #[serde(default)]
    pub(crate) write_block: Option<u32>,
    /// Base RTT in milliseconds, of pings and datagrams.
    pub(crate) rtt: f64,
    /// Packets lost at random behind the bottleneck towards the server, in per cent.
    #[serde(default)]
    pub(crate) loss: f64,
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
    /// The queue of one direction, in the syntax passed to `tc`.
    pub(crate) fn qdisc(&self, direction: Direction) -> &str {
        match direction {
            Direction::Down if !self.qdisc_down.is_empty() => &self.qdisc_down,
            Direction::Up | Direction::Down => &self.qdisc,
        }
    }

    /// The name of the queue towards the server.
    pub(crate) fn queue(&self) -> &str {
        let words = self.qdisc.trim_start_matches("root ");
        words.split(' ').next().unwrap_or(words)
    }

    /// Whom the scenario measures, where it has TCP flows.
    pub(crate) fn controller(&self) -> Option<&str> {
        self.flows.first().map(|flow| flow.cc.as_str())
    }

    /// Whether the packets that the queue marked were counted.
    pub(crate) fn has_marks(&self) -> bool {
        self.reps.iter().any(|rep| !rep.marks.is_empty())
    }

    /// The name as the report prints it, without the kernel: `R1 10m 100ms codel`.
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
/// `goodput`, `srtt_*` and `cwnd_mean` those without end, `fct_s` the finite ones, the series all;
/// only the first repetition has the series.
#[derive(Debug, Deserialize)]
pub(crate) struct Repetition {
    /// When each flow started, in seconds.
    pub(crate) starts: Vec<f64>,
    /// When the first ping was sent, in seconds.
    pub(crate) ping_start: f64,
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
        for s in &Truth::load().scenarios {
            let finite = s.flows.iter().filter(|f| f.bytes.is_some()).count();
            assert!([1, 3, 10].contains(&s.reps.len()), "{}", s.name);
            for rep in &s.reps {
                assert_eq!(rep.starts.len(), s.flows.len(), "{}", s.name);
                assert_eq!(rep.goodput.len(), s.flows.len() - finite, "{}", s.name);
                assert_eq!(rep.fct_s.len(), finite, "{}", s.name);
                assert_eq!(rep.udp.len(), s.udp.len(), "{}", s.name);
            }
        }
    }

    #[test]
    fn three_kernels_are_measured() {
        let truth = Truth::load();
        let on = |kernel| truth.scenarios.iter().filter(move |s| s.kernel == kernel);
        let counts = ["6.1", "6.12", "6.18"].map(|kernel| on(kernel).count());
        assert_eq!(counts, [301, 100, 33]);
        assert_eq!(counts.iter().sum::<usize>(), truth.scenarios.len());
    }

    #[test]
    fn flows_start_at_the_same_times_on_both_kernels() {
        let truth = Truth::load();
        // Linux 6.1 did not have the modules.
        let shared = |s: &&Scenario| s.kernel == "6.12" && s.suite != "M";
        for s in truth.scenarios.iter().filter(shared) {
            let older = truth.on("6.1", s).expect("6.12 repeats scenarios of 6.1");
            for (rep, other) in s.reps.iter().zip(&older.reps) {
                assert_eq!(rep.starts, other.starts, "{}", s.name);
            }
            assert!(truth.most_repeated(s).reps.len() >= s.reps.len());
        }
    }

    #[test]
    fn queues_are_named_without_their_place_and_parameters() {
        let truth = Truth::load();
        let of = |name: &str| {
            truth
                .scenarios
                .iter()
                .find(|s| s.name == name)
                .map(Scenario::queue)
        };
        assert_eq!(of("R1_10m_100ms_cakebw"), Some("cake"));
        assert_eq!(of("R1_10m_100ms_ared"), Some("red"));
        assert_eq!(of("R1_10m_100ms_fq"), Some("fq"));
    }

    #[test]
    fn titles_keep_the_underscores_of_labels() {
        let truth = Truth::load();
        let titles: Vec<_> = truth.scenarios.iter().map(Scenario::title).collect();
        assert!(titles.contains(&"R1 10m 100ms fq_codel".to_owned()));
        assert!(titles.contains(&"V idle 10m".to_owned()));
    }
}
