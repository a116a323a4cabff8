//! The records of a run, from the files that the guest wrote.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;

use sojourn_apps::DatagramConfig;
use sojourn_backend::kind_of;
use sojourn_net::{Bytes, Duration, Instant, Rate};
use sojourn_records::{
    AppRecord, Datagrams, FlowCounters, FlowRecord, FlowSample, LinkCounters, LinkRecord,
    LinkSample, RecordSink,
};
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{Config, FlowConfig, LinkConfig, Traffic};

use crate::instructions::{queue_device, schedule, start, wire_device};
use crate::network::{Paths, Shaped, Toward};
use crate::queues::{self, Row};
use crate::tap::{Passed, passed};

/// The slow-start threshold of a connection that has none yet.
const NO_THRESHOLD: u32 = 0x7FFF_FFFF;
/// `TCP_SYN_SENT`: the handshake is not over.
const SYN_SENT: u32 = 2;

/// Passes the records of a run to `sink`.
///
/// # Errors
/// If a file of the guest is missing or unreadable.
pub(crate) fn emit(
    plan: &Plan,
    paths: &Paths,
    folder: &Path,
    sink: &mut dyn RecordSink,
) -> io::Result<()> {
    let config = &plan.config;
    let has_links = !config.links.is_empty() && folder.join("queues").exists();
    let rows = if has_links {
        queues::read(folder)?
    } else {
        Vec::new()
    };
    let mut lost = vec![0; config.flows.len()];
    for (n, link) in config.links.iter().enumerate() {
        let toward = Toward::BOTH
            .into_iter()
            .find(|toward| *paths.links.of(*toward) == Some(n));
        let Some(toward) = toward else {
            sink.link(unused(config, link));
            continue;
        };
        let at_link: Vec<&Row> = (rows.iter())
            .filter(|row| row.device == queue_device(toward) && row.is_under_test())
            .collect();
        let waiting = at_link.last().map_or(0, |row| row.backlog_packets);
        let passed = passed(
            folder,
            config,
            toward,
            usize::try_from(waiting).unwrap_or(0),
        )?;
        for (sum, more) in lost.iter_mut().zip(&passed.lost) {
            *sum += more;
        }
        let on_wire: Vec<&Row> = if link.has_wire() {
            let device = wire_device(toward).1;
            rows.iter().filter(|row| row.device == device).collect()
        } else {
            Vec::new()
        };
        sink.link(of_link(config, link, &at_link, &on_wire, passed));
    }
    let wires_lose = config.links.iter().any(|link| {
        let changes = link.changes.iter().any(|change| change.wire.loss.is_some());
        changes || link.line.loss != sojourn_scenario::plan::Loss::None
    });
    let mut applications = Vec::new();
    for (n, flow) in config.flows.iter().enumerate() {
        let mut record = match &flow.traffic {
            Traffic::Datagrams(datagrams) => {
                let counted = datagrams_of(config, n, flow, &**datagrams, folder)?;
                let end = Instant::ZERO + config.duration;
                if let Some(counted) = counted {
                    applications.extend(counted.call(end).map(|call| AppRecord {
                        flow: u32::try_from(n).unwrap_or(u32::MAX),
                        call: Some(call),
                        ..AppRecord::default()
                    }));
                    let record = counted.record();
                    // What the wire loses is not known by flow.
                    let lost = record.missing_packets.map(|missing| missing.min(lost[n]));
                    FlowRecord {
                        lost_packets: lost.filter(|_| !wires_lose),
                        ..record
                    }
                } else {
                    FlowRecord::blank(kind_of(&flow.traffic))
                }
            }
            traffic => of_connection(config, n, traffic, folder)?,
        };
        record.name.clone_from(&flow.name);
        sink.flow(record);
    }
    for record in applications {
        sink.application(record);
    }
    Ok(())
}

/// The ends of the intervals of the series.
fn ends(config: &Config) -> impl Iterator<Item = Instant> {
    let sample = config.sample.as_nanos().max(1);
    let count = config.duration.as_nanos() / sample;
    (1..=count).map(move |n| Instant::from_nanos(n * sample))
}

/// The record of a link that no traffic passes.
fn unused(config: &Config, link: &LinkConfig) -> LinkRecord {
    LinkRecord {
        name: link.name.clone(),
        series: ends(config)
            .map(|at| LinkSample {
                at,
                backlog_packets: 0,
                backlog_bytes: 0,
                sojourn_mean: None,
                sojourn_max: None,
                counters: LinkCounters::default(),
            })
            .collect(),
        states: Vec::new(),
        totals: LinkCounters::default(),
        sojourn: sojourn_records::Histogram::default(),
        sending: Duration::ZERO,
        busy: Duration::ZERO,
        driver: None,
        classes: Vec::new(),
        statistics: Vec::new(),
    }
}

/// What a link has counted by each time, from the statistics of its queue and of its wire.
fn counted(row: &Row, on_wire: Option<&Row>) -> LinkCounters {
    LinkCounters {
        lost_packets: on_wire.map_or(0, |wire| wire.drops),
        ..row.counters()
    }
}

/// The kernel reads its own statistics and those of a kind of queue one after the other, and a packet may be dropped
/// between: then the division of the drops by reason, but no sum, is one packet early.
fn no_less(now: LinkCounters, before: &LinkCounters) -> LinkCounters {
    LinkCounters {
        drops_overlimit: now.drops_overlimit.max(before.drops_overlimit),
        drops_aqm: now.drops_aqm.max(before.drops_aqm),
        ..now
    }
}

fn of_link(
    config: &Config,
    link: &LinkConfig,
    rows: &[&Row],
    wire: &[&Row],
    passed: Passed,
) -> LinkRecord {
    let record = unused(config, link);
    let measure = Instant::ZERO + config.measure_from;
    let at = |time: Instant| rows.iter().position(|row| row.at == time);
    let counters = |place: usize| counted(rows[place], wire.get(place).copied());
    let mut before = LinkCounters::default();
    let mut series = record.series;
    for (sample, times) in series.iter_mut().zip(&passed.series) {
        let Some(place) = at(sample.at) else { continue };
        let now = no_less(counters(place), &before);
        sample.counters = now.since(&before);
        before = now;
        sample.backlog_packets = rows[place].backlog_packets;
        sample.backlog_bytes = rows[place].backlog_bytes;
        sample.sojourn_mean = times.map(|(mean, _)| mean);
        sample.sojourn_max = times.map(|(_, max)| max);
    }
    let all = rows.len().checked_sub(1).map(&counters).unwrap_or_default();
    let warm = at(measure).map(&counters).unwrap_or_default();
    LinkRecord {
        series,
        totals: no_less(all, &warm).since(&warm),
        sojourn: passed.sojourn,
        sending: sending(link, rows, measure),
        busy: passed.busy,
        ..record
    }
}

/// Time since `from` for which a link was sending.
fn sending(link: &LinkConfig, rows: &[&Row], from: Instant) -> Duration {
    let rate_at = |time: Instant| -> Rate {
        let past = link
            .changes
            .iter()
            .take_while(|c| Instant::ZERO + c.at <= time);
        past.filter_map(|c| c.rate).last().unwrap_or(link.rate)
    };
    let pairs = rows.windows(2).filter(|pair| pair[0].at >= from);
    pairs.fold(Duration::ZERO, |sum, pair| {
        let bytes = pair[1].bytes.saturating_sub(pair[0].bytes);
        sum + rate_at(pair[0].at).serialise(Bytes(bytes))
    })
}

/// Runs the source of datagrams again and gives it the arrivals that the guest wrote; `None`: it did not start.
fn datagrams_of(
    config: &Config,
    n: usize,
    flow: &FlowConfig,
    source: &dyn DatagramConfig,
    folder: &Path,
) -> io::Result<Option<Datagrams>> {
    let times = schedule(config, flow, source);
    if times.is_empty() {
        return Ok(None);
    }
    let (started, rng) = start(config, flow);
    let text = read(folder, "arrivals", n)?;
    let arrivals = text.lines().map(|line| {
        let (number, at) = line.split_once(' ')?;
        Some((
            number.parse::<u32>().ok()?,
            at.parse().ok().map(Instant::from_nanos)?,
        ))
    });
    let arrivals: Option<Vec<_>> = arrivals.collect();
    let mut arrivals = arrivals
        .ok_or_else(|| unreadable("arrivals", n))?
        .into_iter()
        .peekable();
    let mut sends = times.iter().peekable();
    let mut counted = Datagrams::new(started, source, &rng);
    let measure = Instant::ZERO + config.measure_from;
    let end = Instant::ZERO + config.duration;
    let mut samples = ends(config).filter(|at| *at > started).peekable();
    let mut measured = measure == Instant::ZERO;
    if measured {
        counted.begin_measuring();
    }
    loop {
        let next = [
            sends.peek().map(|at| **at),
            arrivals.peek().map(|(_, at)| *at),
        ];
        let next = next.into_iter().flatten().min().unwrap_or(end);
        // What happens at the end of an interval belongs to the next one.
        let due = samples.peek().copied().unwrap_or(end).min(end);
        if !measured && measure <= next.min(due) {
            measured = true;
            if due == measure && samples.next().is_some() {
                counted.sample(due);
            }
            counted.begin_measuring();
        } else if due <= next {
            if samples.next().is_none() {
                break;
            }
            counted.sample(due);
        } else if sends.peek().is_some_and(|at| **at <= next) {
            counted.send(next);
            sends.next();
        } else if let Some((number, at)) = arrivals.next() {
            let sent = times.get(number as usize);
            let sent = sent.ok_or_else(|| unreadable("arrivals", n))?;
            counted.on_arrival(number, at.saturating_since(*sent));
        }
    }
    Ok(Some(counted))
}

/// A line of the state of a connection.
#[derive(Clone, Copy, Debug)]
struct State {
    at: Instant,
    /// In the order of `write_state` of the guest.
    numbers: [u64; 15],
}

impl State {
    fn of(words: &str) -> Option<Self> {
        let mut words = words.split(' ');
        let at = Instant::from_nanos(words.next()?.parse().ok()?);
        let mut numbers = [0; 15];
        for number in &mut numbers {
            *number = words.next()?.parse().ok()?;
        }
        Some(Self { at, numbers })
    }

    fn word(&self, place: usize) -> u32 {
        u32::try_from(self.numbers[place]).unwrap_or(u32::MAX)
    }

    const fn retransmits(&self) -> u64 {
        self.numbers[6]
    }

    const fn segments(&self) -> u64 {
        self.numbers[7]
    }

    fn sample(&self, delivered_bytes: u64) -> FlowSample {
        let plain = FlowSample::without_connection(self.at, delivered_bytes);
        if self.word(0) == SYN_SENT {
            return plain;
        }
        let (threshold, rtt) = (self.word(3), self.word(4));
        FlowSample {
            cwnd: NonZeroU32::new(self.word(2)),
            ssthresh: (threshold < NO_THRESHOLD).then_some(threshold),
            srtt: (rtt > 0).then(|| Duration::from_micros(rtt.into())),
            in_flight: self.word(5),
            receive_window: Some(self.word(12)),
            ..plain
        }
    }
}

/// The record of a TCP connection.
fn of_connection(
    config: &Config,
    n: usize,
    traffic: &Traffic,
    folder: &Path,
) -> io::Result<FlowRecord> {
    let blank = FlowRecord {
        counts_recovery: false,
        ..FlowRecord::blank(kind_of(traffic))
    };
    let at_source = read(folder, "source", n)?;
    let time = |key: &str| {
        let mut lines = at_source.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find_map(|(known, rest)| (known == key).then_some(rest))?;
        found.parse().ok().map(Instant::from_nanos)
    };
    let end = Instant::ZERO + config.duration;
    let Some(started) = time("started").filter(|at| *at < end) else {
        return Ok(blank);
    };
    let states = at_source
        .lines()
        .filter_map(|line| line.strip_prefix("state "));
    let states: Option<Vec<_>> = states.map(State::of).collect();
    let states = states.ok_or_else(|| unreadable("source", n))?;
    let at_sink = read(folder, "sink", n)?;
    let mut lines = at_sink.lines();
    let summary: Vec<i64> = (lines.next().unwrap_or_default().split(' '))
        .filter_map(|word| word.parse().ok())
        .collect();
    let [_first, _last, completed, delivered, received] = summary[..] else {
        return Err(unreadable("sink", n));
    };
    let delivered_in: Vec<u64> = lines.filter_map(|line| line.parse().ok()).collect();
    let sample = config.sample.as_nanos().max(1);
    let series = states
        .iter()
        .filter(|state| state.at.as_nanos() % sample == 0);
    let series = series.map(|state| {
        let interval = usize::try_from(state.at.as_nanos() / sample).unwrap_or(0);
        state.sample(
            delivered_in
                .get(interval.wrapping_sub(1))
                .copied()
                .unwrap_or(0),
        )
    });
    let mut series: Vec<_> = series.collect();
    series.dedup_by_key(|sample| sample.at);
    let measure = Instant::ZERO + config.measure_from;
    let before = states.iter().take_while(|state| state.at <= measure).last();
    let since = |count: fn(&State) -> u64| {
        let all = states.last().map_or(0, count);
        all.saturating_sub(before.map_or(0, count))
    };
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok(FlowRecord {
        started: Some(started),
        connected: time("connected"),
        completed: u64::try_from(completed).ok().map(Instant::from_nanos),
        aborted: at_source.lines().any(|line| line.starts_with("failed")),
        series,
        totals: FlowCounters {
            delivered_bytes: count(delivered),
            sent_packets: since(State::segments),
            received_packets: count(received),
            retransmits: since(State::retransmits),
            ..FlowCounters::default()
        },
        ..blank
    })
}

fn read(folder: &Path, name: &str, n: usize) -> io::Result<String> {
    fs::read_to_string(folder.join(format!("{name}.{n}")))
}

fn unreadable(name: &str, n: usize) -> io::Error {
    io::Error::other(format!("unreadable results of the guest in {name}.{n}"))
}
