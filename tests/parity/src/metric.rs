//! What is compared, taken from the kernel's file and from our records by one definition.

use sojourn_net::Duration;
use sojourn_records::{FlowRecord, FlowSample, LinkSample, Records};

use crate::truth::Direction::{self, Down, Up};
use crate::truth::{Repetition, Scenario};

use Metric::{
    Completion, ControlShare, Drops, Goodput, Marks, OwdMean, OwdP95, PingLater, PingMean, PingP95,
    PingStart, Share, SrttMean, SrttP95, TcpShare, UdpGoodput,
};

/// The flows of R3, by base RTT.
const SHARES: [(&str, &str); 4] = [
    ("share 10 ms", "share of the flow with 10 ms, %"),
    ("share 50 ms", "share of the flow with 50 ms, %"),
    ("share 200 ms", "share of the flow with 200 ms, %"),
    ("share 500 ms", "share of the flow with 500 ms, %"),
];

/// One quantity of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    /// Payload delivered in one direction, all flows, Mbit/s.
    Goodput(Direction),
    /// Part of the goodput that one of the TCP flows gets, in per cent.
    Share(usize),
    /// Part of the goodput that the first flow gets beside CUBIC, in per cent.
    ControlShare,
    /// Part of the goodput that TCP gets beside datagrams, in per cent; the rest is theirs.
    TcpShare,
    /// Mean smoothed RTT, then mean over the flows of one direction, ms.
    SrttMean(Direction),
    /// Its 95th percentile over time, ms.
    SrttP95,
    /// Mean round trip of the pings of the steady window, ms.
    PingMean,
    /// Their 95th percentile, ms.
    PingP95,
    /// Mean of the pings as flows start, ms.
    PingStart,
    /// Mean of the pings later, ms.
    PingLater,
    /// Mean completion time of the finite flows, s.
    Completion,
    /// Packets the queue of one direction dropped in the steady window.
    Drops(Direction),
    /// Packets the queue of one direction marked in the whole run.
    Marks(Direction),
    /// Payload of datagrams delivered, Mbit/s.
    UdpGoodput,
    /// Mean one-way delay of datagrams, ms.
    OwdMean,
    /// Their 95th percentile, ms.
    OwdP95,
}

impl Metric {
    /// What is compared in a scenario.
    pub(crate) fn of(scenario: &Scenario) -> &'static [Self] {
        match scenario.suite.as_str() {
            "R2" => &[
                Goodput(Up),
                Goodput(Down),
                PingMean,
                PingP95,
                SrttMean(Up),
                SrttMean(Down),
                Drops(Up),
                Drops(Down),
            ],
            "R3" => &[
                Goodput(Up),
                Share(0),
                Share(1),
                Share(2),
                Share(3),
                SrttMean(Up),
                PingMean,
                PingP95,
                Drops(Up),
            ],
            "R5" => &[
                Goodput(Up),
                UdpGoodput,
                TcpShare,
                SrttMean(Up),
                SrttP95,
                PingMean,
                PingP95,
                OwdMean,
                OwdP95,
                Drops(Up),
            ],
            "R6" => &[Goodput(Up), Completion, PingStart, PingLater, Drops(Up)],
            "C1" if scenario.flows.len() > 1 => &[
                Goodput(Up),
                ControlShare,
                SrttMean(Up),
                SrttP95,
                PingMean,
                PingP95,
                Drops(Up),
            ],
            "V" if scenario.udp.is_empty() => &[PingMean, PingP95],
            "V" => &[PingMean, UdpGoodput, OwdMean, OwdP95, Drops(Up)],
            _ if scenario.flows.is_empty() => &[UdpGoodput, OwdMean, OwdP95, Drops(Up)],
            _ if scenario.has_marks() => &[
                Goodput(Up),
                SrttMean(Up),
                SrttP95,
                PingMean,
                PingP95,
                Drops(Up),
                Marks(Up),
            ],
            _ => &[
                Goodput(Up),
                SrttMean(Up),
                SrttP95,
                PingMean,
                PingP95,
                Drops(Up),
            ],
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Goodput(Up) => "goodput",
            Goodput(Down) => "goodput down",
            Share(flow) => SHARES[flow].0,
            ControlShare => "share beside cubic",
            TcpShare => "share tcp",
            SrttMean(Up) => "srtt mean",
            SrttMean(Down) => "srtt mean down",
            SrttP95 => "srtt p95",
            PingMean => "ping mean",
            PingP95 => "ping p95",
            PingStart => "ping 5-10 s",
            PingLater => "ping 10-15 s",
            Completion => "fct",
            Drops(Up) => "drops",
            Drops(Down) => "drops down",
            Marks(Up) => "marks",
            Marks(Down) => "marks down",
            UdpGoodput => "udp goodput",
            OwdMean => "owd mean",
            OwdP95 => "owd p95",
        }
    }

    /// The name in full with the unit, for tables.
    pub(crate) const fn described(self) -> &'static str {
        match self {
            Goodput(Up) => "goodput, Mbit/s",
            Goodput(Down) => "goodput down, Mbit/s",
            Share(flow) => SHARES[flow].1,
            ControlShare => "share beside CUBIC, %",
            TcpShare => "share of TCP beside UDP, %",
            SrttMean(Up) => "mean smoothed RTT, ms",
            SrttMean(Down) => "mean smoothed RTT down, ms",
            SrttP95 => "95th percentile of the smoothed RTT, ms",
            PingMean => "mean ping, ms",
            PingP95 => "95th percentile of the pings, ms",
            PingStart => "mean ping from 5 to 10 s, ms",
            PingLater => "mean ping from 10 to 15 s, ms",
            Completion => "completion time, s",
            Drops(Up) => "drops, packets",
            Drops(Down) => "drops down, packets",
            Marks(Up) => "marks, packets",
            Marks(Down) => "marks down, packets",
            UdpGoodput => "UDP goodput, Mbit/s",
            OwdMean => "mean one-way delay, ms",
            OwdP95 => "95th percentile of the one-way delay, ms",
        }
    }

    /// How far from the kernel's value counts as agreement, whatever its spread.
    pub(crate) fn tolerance(self, linux: f64) -> f64 {
        let (part, least) = match self {
            Goodput(_) | UdpGoodput => (0.03, 0.0),
            Completion => (0.05, 0.0),
            // A flow with a small share is not held to a part of it: 1 % of the link tells it apart.
            Share(_) | ControlShare | TcpShare | SrttMean(_) | PingMean | PingStart | PingLater
            | OwdMean => (0.05, 1.0),
            SrttP95 | PingP95 | OwdP95 => (0.10, 2.0),
            Drops(_) | Marks(_) => (0.25, 5.0),
        };
        (part * linux).max(least)
    }

    /// The kernel's value in one repetition; `None` where it has none.
    pub(crate) fn of_linux(self, scenario: &Scenario, rep: &Repetition) -> Option<f64> {
        let endless = |values: &[f64], way: Direction| -> Vec<f64> {
            let flows = scenario.flows.iter().filter(|f| f.bytes.is_none());
            flows
                .zip(values)
                .filter(|(f, _)| f.dir == way)
                .map(|(_, &v)| v)
                .collect()
        };
        let udp = rep.udp.first();
        match self {
            Goodput(way) => Some(endless(&rep.goodput, way).iter().sum()),
            Share(flow) => part_of(flow, &rep.goodput),
            ControlShare => part_of(0, &rep.goodput),
            TcpShare => part_of(0, &[rep.goodput.iter().sum(), udp?.goodput_mbps]),
            SrttMean(way) => mean(&endless(&rep.srtt_mean_ms, way)),
            SrttP95 => mean(&endless(&rep.srtt_p95_ms, Up)),
            PingMean => Some(rep.ping.mean),
            PingP95 => Some(rep.ping.p95),
            PingStart => rep.windows.get("start_5_10").copied(),
            PingLater => rep.windows.get("later_10_15").copied(),
            Completion => mean(&rep.fct_s.iter().copied().flatten().collect::<Vec<_>>()),
            Drops(way) => rep.drops.get(way.name()).copied(),
            Marks(way) => rep.marks.get(way.name()).copied(),
            UdpGoodput => udp.map(|u| u.goodput_mbps),
            OwdMean => udp.map(|u| u.owd_mean_ms),
            OwdP95 => udp.map(|u| u.owd_p95_ms),
        }
    }

    /// Ours, of a run whose flows began at `starts`; `None` where it has none.
    pub(crate) fn of_ours(
        self,
        scenario: &Scenario,
        starts: &[f64],
        records: &Records,
    ) -> Option<f64> {
        let tcp = || scenario.flows.iter().zip(&records.flows).zip(starts);
        let endless =
            |way: Direction| tcp().filter(move |((f, _), _)| f.bytes.is_none() && f.dir == way);
        let udp = || {
            scenario
                .udp
                .first()
                .zip(records.flows.get(scenario.flows.len()))
        };
        let goodputs = |way: Direction| {
            endless(way).map(|((f, r), &s)| goodput(r, s.max(scenario.warm), f.stop))
        };
        match self {
            Goodput(way) => Some(goodputs(way).sum()),
            Share(flow) => part_of(flow, &goodputs(Up).collect::<Vec<_>>()),
            ControlShare => part_of(0, &goodputs(Up).collect::<Vec<_>>()),
            TcpShare => {
                let (stream, record) = udp()?;
                let datagrams = goodput(record, scenario.warm, stream.stop);
                part_of(0, &[goodputs(Up).sum(), datagrams])
            }
            SrttMean(way) => {
                let means =
                    endless(way).map(|((f, r), &s)| mean(&srtt(r, s.max(scenario.warm), f.stop)));
                mean(&means.collect::<Option<Vec<_>>>()?)
            }
            SrttP95 => {
                let parts = endless(Up)
                    .map(|((f, r), &s)| percentile(srtt(r, s.max(scenario.warm), f.stop), 0.95));
                mean(&parts.collect::<Option<Vec<_>>>()?)
            }
            PingMean => mean(&pings(records, scenario.warm, scenario.duration)),
            PingP95 => percentile(pings(records, scenario.warm, scenario.duration), 0.95),
            PingStart => mean(&window(scenario, records, "start_5_10")),
            PingLater => mean(&window(scenario, records, "later_10_15")),
            Completion => {
                let times = tcp()
                    .filter(|((f, _), _)| f.bytes.is_some())
                    .filter_map(|((_, r), s)| Some(r.completed?.as_secs_f64() - s));
                mean(&times.collect::<Vec<_>>())
            }
            Drops(way) => {
                let name = way.name();
                let link = records.links.iter().find(|l| l.name == name)?;
                Some(drops(&link.series, scenario.drops_from, scenario.drops_to))
            }
            Marks(way) => {
                let name = way.name();
                let link = records.links.iter().find(|l| l.name == name)?;
                Some(marks(&link.series))
            }
            UdpGoodput => udp().map(|(u, r)| goodput(r, scenario.warm, u.stop)),
            OwdMean => udp().and_then(|(_, r)| Some(r.one_way_delay.as_ref()?.mean()? / 1e6)),
            OwdP95 => udp()
                .and_then(|(_, r)| Some(r.one_way_delay.as_ref()?.quantile(0.95)? as f64 / 1e6)),
        }
    }
}

/// In per cent of the sum; `None` if there is no such flow or no goodput.
fn part_of(flow: usize, goodputs: &[f64]) -> Option<f64> {
    let sum: f64 = goodputs.iter().sum();
    let own = goodputs.get(flow)?;
    (sum > 0.0).then(|| 100.0 * own / sum)
}

/// Mbit/s from bins of 100 ms, the edges rounded to a bin as the harness rounded them.
pub(crate) fn goodput(flow: &FlowRecord, from: f64, to: f64) -> f64 {
    let bin = |t: f64| (t * 10.0).round_ties_even() as usize;
    let (first, last) = (bin(from), bin(to));
    // A sample is that of the bin it ends; a flow has none before it starts.
    let within = |s: &&FlowSample| (first + 1..=last).contains(&bin(s.at.as_secs_f64()));
    let counted = flow.series.iter().filter(within);
    let bytes: u64 = counted.map(|s| s.delivered_bytes).sum();
    bytes as f64 * 8.0 / ((last - first) as f64 / 10.0) / 1e6
}

/// Samples of the smoothed RTT in milliseconds.
pub(crate) fn srtt(flow: &FlowRecord, from: f64, to: f64) -> Vec<f64> {
    let within = |s: &&FlowSample| (from..=to).contains(&s.at.as_secs_f64());
    flow.series
        .iter()
        .filter(within)
        .filter_map(|s| s.srtt.map(Duration::as_millis_f64))
        .collect()
}

/// Round trips in milliseconds of the requests sent within `[from, to)` that were answered.
pub(crate) fn pings(records: &Records, from: f64, to: f64) -> Vec<f64> {
    let sent = records.flows.iter().flat_map(|f| &f.pings);
    sent.filter(|p| (from..to).contains(&p.sent.as_secs_f64()))
        .filter_map(|p| p.rtt.map(Duration::as_millis_f64))
        .collect()
}

pub(crate) fn window(scenario: &Scenario, records: &Records, name: &str) -> Vec<f64> {
    match scenario.windows.get(name) {
        Some(&(from, to)) => pings(records, from, to),
        None => Vec::new(),
    }
}

/// Drops in the intervals that end within `(from, to]`.
fn drops(series: &[LinkSample], from: f64, to: f64) -> f64 {
    let within = |s: &&LinkSample| s.at.as_secs_f64() > from && s.at.as_secs_f64() <= to;
    let counted = series.iter().filter(within);
    let drops: u64 = counted
        .map(|s| s.counters.drops_aqm + s.counters.drops_overlimit)
        .sum();
    drops as f64
}

fn marks(series: &[LinkSample]) -> f64 {
    let marks: u64 = series
        .iter()
        .map(|s| s.counters.marks_aqm + s.counters.marks_ce_threshold)
        .sum();
    marks as f64
}

/// `None` of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The deviation of a sample; 0 of less than two.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    let Some(mean) = mean(values).filter(|_| values.len() > 1) else {
        return 0.0;
    };
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// With linear interpolation between ranks; `None` of nothing.
pub(crate) fn percentile(mut values: Vec<f64>, part: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = part * values.len().checked_sub(1)? as f64;
    let below = rank as usize;
    let above = (below + 1).min(values.len() - 1);
    Some(values[below] + (values[above] - values[below]) * (rank - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Truth;

    #[test]
    fn percentiles_interpolate_between_ranks() {
        let values = vec![4.0, 1.0, 3.0, 2.0];
        assert_eq!(percentile(values.clone(), 0.5), Some(2.5));
        assert!((percentile(values, 0.95).unwrap() - 3.85).abs() < 1e-12);
        assert_eq!(percentile(Vec::new(), 0.5), None);
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert!((deviation(&[1.0, 2.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!(deviation(&[5.0]).abs() < 1e-12);
    }

    #[test]
    fn shares_are_parts_of_the_sum() {
        assert_eq!(part_of(1, &[1.0, 3.0]), Some(75.0));
        assert_eq!(part_of(0, &[0.0, 0.0]), None);
        assert_eq!(part_of(2, &[1.0, 3.0]), None);
    }

    #[test]
    fn the_shares_of_r3_are_in_the_order_of_its_flows() {
        for s in &Truth::load().scenarios {
            if s.suite == "R3" {
                let named = s.flows.iter().map(|f| format!("share {} ms", f.rtt));
                assert!(
                    named.eq(SHARES.map(|(name, _)| name.to_owned())),
                    "{}",
                    s.name
                );
            }
        }
    }

    #[test]
    fn linux_has_a_value_for_every_metric_but_completions_that_never_came() {
        for s in &Truth::load().scenarios {
            for &metric in Metric::of(s) {
                for rep in &s.reps {
                    let value = metric.of_linux(s, rep);
                    assert!(
                        value.is_some() || metric == Completion,
                        "{} {}",
                        s.name,
                        metric.name()
                    );
                }
            }
        }
    }
}
