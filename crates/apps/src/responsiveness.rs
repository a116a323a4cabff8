//! Responsiveness under working conditions: round trips per minute (RPM).
//!
//! # Source
//!
//! draft-ietf-ippm-responsiveness-06, "Measuring Responsiveness" and "Final Algorithm"; names in
//! parentheses are its parameters, at their defaults.
//!
//! # Law
//!
//! Load-generating connections fetch data without end over HTTP/2 and TLS: one at first (INP), one
//! more each second (INC, ID), 16 at most (MNP). Foreign probes open a connection of their own and
//! fetch a byte: the times of the handshakes of TCP and TLS and of the request are measured. Self
//! probes fetch a byte over a load-generating connection, drawn at random. The two take turns, so
//! many that they use 5 % of the goodput of the second before (PTC), 100 a second at most (MPS) and
//! one of each at least.
//!
//! Once the moving averages of goodput over four intervals (MAD) deviate by less than 5 % (SDT) the
//! link is saturated; once the responsiveness of the last four intervals does, that is the result:
//!
//! ```text
//! foreign = 60,000 / ((TM(tcp_f) + TM(tls_f) + TM(http_f)) / 3)      TM: mean of the shortest 95 % (TMP), ms
//! loaded  = 60,000 / TM(http_l)
//! RPM     = (foreign + loaded) / 2
//! ```
//!
//! # Differences
//!
//! | here | draft |
//! |---|---|
//! | load goes on after the result, without probes, until the end | the test ends |
//! | what was measured before the warm-up ended is forgotten | there is no warm-up |
//! | upload: the client is at the other end, so that responses are the load | requests are |
//! | a load-generating connection that fails is replaced by the next one | the test is aborted |
//! | over QUIC, whose handshake contains that of TLS, foreign probes time one handshake less, and self probes have streams of their own | written for TCP |
//! | without load, an idle connection takes the place of the load-generating one | not provided for |
//!
//! A server writes HTTP/2 as that of `web` does, no more than a little ahead of TCP; the response
//! of a self probe waits behind that.

mod load;

use std::sync::Arc;

use sojourn_net::{Duration, Instant, Rng};

use crate::contract::{
    AppEvent, AppOutput, Application, ApplicationConfig, Command, Exchange, FINISHED, FLIGHT,
    HELLO, Side, Timers, Transport,
};
use crate::demand::{Demand, Opportunity, Volume};
use crate::report::{Confidence, ResponsivenessRecord, RoundTrips};
use load::{Load, RESPONSE, Stage, greet};

/// How often the test looks at what it has (ID).
const INTERVAL: Duration = Duration::from_secs(1);
/// Intervals of a moving average (MAD).
const WINDOW: usize = 4;
/// Pairs of probes in an interval, at most: half of MPS.
const MOST_PAIRS: u64 = 50;
/// Part of the capacity that probes may use (PTC), in percent.
const SHARE_PERCENT: u64 = 5;
/// What a foreign and a self probe are taken to exchange.
const PAIR_BYTES: u64 = 5_000 + 1_000;

impl ApplicationConfig for ResponsivenessConfig {
    fn exchange(&self) -> Exchange {
        self.exchange
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        (self.connections == 0).then_some(("connections", "must be >= 1"))
    }

    /// Load without an end to the client, and as many probes as their share of the goodput allows.
    fn demand(&self, opportunity: &Opportunity) -> Demand {
        let intervals = opportunity.time.as_nanos() / INTERVAL.as_nanos() + 1;
        let by_share = opportunity.carried / (PAIR_BYTES * 100 / SHARE_PERCENT);
        let pairs = by_share.min(intervals.saturating_mul(MOST_PAIRS - 1));
        let pairs = pairs.saturating_add(intervals);
        let loads = u64::from(if self.load { self.connections } else { 1 });
        let loads = loads.saturating_add(opportunity.failures(loads));
        let connections = pairs.saturating_add(loads);
        let requests = connections.saturating_add(pairs);
        let client = Volume::of(requests, self.exchange.request.0);
        let server = if self.load {
            Volume::ENDLESS
        } else {
            Volume::of(requests, RESPONSE)
        };
        let demand = Demand {
            connections,
            open: connections,
            transactions: 0,
            client,
            server,
        };
        if self.has_tls_round_trip() {
            demand.with_tls()
        } else {
            demand
        }
    }

    fn build(self: Arc<Self>, rng: &Rng) -> Box<dyn Application> {
        Box::new(Responsiveness::new(self, rng))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Interval,
    Foreign,
    Own,
}

/// A probe on a connection of its own.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    n: u32,
    stage: Stage,
    /// When that began.
    since: Instant,
}

/// A running test.
#[derive(Debug)]
struct Responsiveness {
    config: Arc<ResponsivenessConfig>,
    rng: Rng,
    timers: Timers<Due>,
    opened: u32,
    loads: Vec<Load>,
    foreign: Vec<Foreign>,
    samples: Samples,
    /// Bytes delivered by the end of each interval.
    delivered: Vec<u64>,
    /// Those of load-generating connections that have failed.
    lost: u64,
    /// Load-generating connections that have not reported yet how many bytes they received.
    unread: usize,
    saturated: bool,
    /// Moving averages, in bytes of a window.
    goodputs: Vec<f64>,
    /// One for each interval since the link was saturated and the warm-up over.
    rpms: Vec<f64>,
    result: Option<ResponsivenessRecord>,
}

impl Application for Responsiveness {
    fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput) {
        match event {
            AppEvent::Started => {
                self.add_load(out);
                self.plan_probes(now, 1);
                self.timers.add(now + INTERVAL, Due::Interval);
            }
            AppEvent::Timer => {
                while let Some(due) = self.timers.pop(now) {
                    match due {
                        Due::Interval => self.poll(now, out),
                        Due::Foreign => self.probe_foreign(now, out),
                        Due::Own => self.probe_own(now, out),
                    }
                }
            }
            AppEvent::Connected(n) => self.on_connected(now, n, out),
            AppEvent::ServerReceived(n, bytes) => self.on_server_received(n, bytes, out),
            AppEvent::ClientReceived(n, bytes) => self.on_client_received(now, n, bytes, out),
            AppEvent::Writable(n) => {
                if let Some(load) = self.loads.iter_mut().find(|load| load.n == n) {
                    load.serve(out);
                }
            }
            AppEvent::Failed(n) => self.on_failed(now, n, out),
            AppEvent::RequestReceived(n, stream) => {
                if let Some(load) = self.loads.iter().find(|load| load.n == n) {
                    load.on_stream_request(stream, out);
                }
            }
            AppEvent::ResponseReceived(n, stream) => {
                if let Some(load) = self.loads.iter_mut().find(|load| load.n == n) {
                    load.on_stream_response(now, stream, &mut self.samples);
                }
            }
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The warm-up is over: only what comes now counts.
    fn begin_measuring(&mut self) {
        self.samples.clear();
        self.rpms.clear();
        self.result = None;
    }

    /// What there is, if nothing has settled.
    fn finish(&mut self, now: Instant, _: &mut AppOutput) {
        self.forget(now);
        let confidence = if self.rpms.len() < WINDOW {
            Confidence::Low
        } else {
            Confidence::Medium
        };
        self.conclude(now, confidence);
        self.timers.clear();
    }

    fn responsiveness(&self) -> Option<ResponsivenessRecord> {
        self.result
    }
}

impl Responsiveness {
    fn new(config: Arc<ResponsivenessConfig>, rng: &Rng) -> Self {
        Self {
            rng: rng.fork("responsiveness"),
            timers: Timers::new(),
            opened: 0,
            loads: Vec::new(),
            foreign: Vec::new(),
            samples: Samples::default(),
            delivered: vec![0],
            lost: 0,
            unread: 0,
            saturated: !config.load,
            goodputs: Vec::new(),
            rpms: Vec::new(),
            result: None,
            config,
        }
    }

    fn open(&mut self, out: &mut AppOutput) -> u32 {
        let n = self.opened;
        self.opened += 1;
        out.push(Command::Open(n));
        n
    }

    fn add_load(&mut self, out: &mut AppOutput) {
        let n = self.open(out);
        self.loads.push(Load::new(n));
    }

    /// Schedules `pairs` pairs of probes, one of each kind, evenly over the next interval.
    fn plan_probes(&mut self, now: Instant, pairs: u64) {
        for pair in 0..pairs {
            let at = |half: u64| {
                let nanos = INTERVAL.as_nanos() * (2 * pair + half) / (2 * pairs);
                now + Duration::from_nanos(nanos)
            };
            self.timers.add(at(0), Due::Foreign);
            self.timers.add(at(1), Due::Own);
        }
    }

    fn probe_foreign(&mut self, now: Instant, out: &mut AppOutput) {
        let n = self.open(out);
        self.foreign.push(Foreign {
            n,
            stage: Stage::Connecting,
            since: now,
        });
    }

    fn probe_own(&mut self, now: Instant, out: &mut AppOutput) {
        let open = |load: &Load| load.stage == Stage::Open;
        let ready = self.loads.iter().filter(|load| open(load)).count();
        if ready == 0 {
            return;
        }
        let chosen = self.rng.below(ready as u64);
        let mut candidates = (0..).zip(self.loads.iter_mut().filter(|load| open(load)));
        if let Some((_, load)) = candidates.find(|&(place, _)| place == chosen) {
            let request = self.config.exchange.request.0;
            match self.config.exchange.transport {
                Transport::Tcp => load.ask(request, Some(now), out),
                Transport::Quic => load.ask_on_stream(now, request, out),
            }
        }
    }

    fn on_connected(&mut self, now: Instant, n: u32, out: &mut AppOutput) {
        let config = Arc::clone(&self.config);
        if let Some(load) = self.loads.iter_mut().find(|load| load.n == n) {
            load.on_connected(&config, out);
            return;
        }
        let Some(at) = self.probe(n) else { return };
        let probe = &mut self.foreign[at];
        let took = now.since(probe.since);
        probe.since = now;
        if config.has_tls_round_trip() {
            probe.stage = Stage::Greeting;
            greet(n, out);
        } else {
            probe.stage = Stage::Open;
            let request = config.exchange.request.0;
            out.write(n, Side::Client, request);
            out.push(Command::Expect(n, Side::Server, request));
        }
        self.samples.add(now, Time::Tcp, took);
    }

    fn probe(&self, n: u32) -> Option<usize> {
        self.foreign.binary_search_by_key(&n, |probe| probe.n).ok()
    }

    /// Requests have reached the server.
    fn on_server_received(&mut self, n: u32, bytes: u64, out: &mut AppOutput) {
        if let Some(load) = self.loads.iter_mut().find(|load| load.n == n) {
            load.on_server_received(bytes, out);
            return;
        }
        let Some(at) = self.probe(n) else { return };
        let (bytes, total) = match (self.foreign[at].stage, self.config.has_tls_round_trip()) {
            (Stage::Greeting, _) => (FLIGHT, FLIGHT),
            (_, true) => (RESPONSE, FLIGHT + RESPONSE),
            (_, false) => (RESPONSE, RESPONSE),
        };
        out.write(n, Side::Server, bytes);
        out.push(Command::Expect(n, Side::Client, total));
    }

    /// Responses have reached the client.
    fn on_client_received(&mut self, now: Instant, n: u32, bytes: u64, out: &mut AppOutput) {
        let config = Arc::clone(&self.config);
        if let Some(load) = self.loads.iter_mut().find(|load| load.n == n) {
            load.on_client_received(now, bytes, &config, &mut self.samples, out);
            if load.polled {
                load.polled = false;
                self.read(now, out);
            }
            return;
        }
        let Some(at) = self.probe(n) else { return };
        let probe = &mut self.foreign[at];
        let took = now.since(probe.since);
        if probe.stage == Stage::Greeting {
            probe.stage = Stage::Open;
            probe.since = now;
            out.write(n, Side::Client, FINISHED + config.exchange.request.0);
            let asked = HELLO + FINISHED + config.exchange.request.0;
            out.push(Command::Expect(n, Side::Server, asked));
            self.samples.add(now, Time::Tls, took);
        } else {
            self.foreign.remove(at);
            out.push(Command::Close(n));
            self.samples.add(now, Time::Http, took);
        }
    }

    fn on_failed(&mut self, now: Instant, n: u32, out: &mut AppOutput) {
        if let Some(at) = self.loads.iter().position(|load| load.n == n) {
            let load = self.loads.remove(at);
            self.lost += load.delivered;
            if load.polled {
                self.read(now, out);
            }
        } else if let Some(at) = self.probe(n) {
            self.foreign.remove(at);
        }
    }

    /// An interval ends: asks how much the client has got of each connection.
    fn poll(&mut self, now: Instant, out: &mut AppOutput) {
        self.unread = self.loads.len();
        for load in &mut self.loads {
            load.polled = true;
            out.push(Command::Expect(load.n, Side::Client, 0));
        }
        if self.unread == 0 {
            self.evaluate(now, out);
        }
    }

    /// One of them has reported.
    fn read(&mut self, now: Instant, out: &mut AppOutput) {
        self.unread -= 1;
        if self.unread == 0 {
            self.evaluate(now, out);
        }
    }

    /// An interval has ended: what it brought, and what the next one has.
    fn evaluate(&mut self, now: Instant, out: &mut AppOutput) {
        let before = self.delivered[self.delivered.len() - 1];
        let total = self.lost + self.loads.iter().map(|load| load.delivered).sum::<u64>();
        self.delivered.push(total);
        self.look(now);
        if self.config.load && self.loads.len() < self.config.connections as usize {
            self.add_load(out);
        }
        if self.loads.is_empty() {
            self.add_load(out);
        }
        if self.result.is_none() {
            let pairs = (total - before) * SHARE_PERCENT / 100 / PAIR_BYTES;
            self.plan_probes(now, pairs.clamp(1, MOST_PAIRS));
        }
        self.timers.add(now + INTERVAL, Due::Interval);
    }

    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bytes")]
    fn look(&mut self, now: Instant) {
        if let Some(from) = self.delivered.len().checked_sub(WINDOW + 1) {
            let moved = self.delivered[self.delivered.len() - 1] - self.delivered[from];
            self.goodputs.push(moved as f64);
        }
        self.forget(now);
        if self.result.is_some() {
            return;
        }
        if !self.saturated {
            self.saturated = settled(&self.goodputs, WINDOW);
            return;
        }
        if let Some(times) = self.samples.means(self.config.has_tls_round_trip()) {
            self.rpms.push(times.rpm());
            if settled(&self.rpms, WINDOW) {
                self.conclude(now, Confidence::High);
            }
        }
    }

    /// Forgets the probes of intervals that have left the window.
    fn forget(&mut self, now: Instant) {
        let window = INTERVAL.times(WINDOW as u64).as_nanos();
        let from = now.as_nanos().saturating_sub(window);
        self.samples.forget_before(Instant::from_nanos(from));
    }

    fn conclude(&mut self, now: Instant, confidence: Confidence) {
        if self.result.is_some() {
            return;
        }
        self.result = self
            .samples
            .means(self.config.has_tls_round_trip())
            .map(|times| ResponsivenessRecord {
                times,
                at: now,
                probes: self.samples.probes(),
                connections: u32::try_from(self.loads.len()).unwrap_or(u32::MAX),
                confidence,
            });
    }
}

/// Configuration of a responsiveness test.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponsivenessConfig {
    /// Its connections and requests.
    pub exchange: Exchange,
    /// Load-generating connections, at most.
    pub connections: u32,
    /// They fetch data without end; else there is one, and it is idle.
    pub load: bool,
    /// Connections begin with the handshake of TLS 1.3.
    pub tls: bool,
}

impl ResponsivenessConfig {
    /// Whether the handshake of TLS takes a round trip of its own: in QUIC's it is contained.
    fn has_tls_round_trip(&self) -> bool {
        self.tls && self.exchange.transport == Transport::Tcp
    }
}

/// What is measured of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    /// `tcp_f`: the handshake of TCP on a connection of its own.
    Tcp,
    /// `tls_f`: that of TLS, which is one round trip in version 1.3.
    Tls,
    /// `http_f`: from its request to the whole response.
    Http,
    /// `http_l`: the same over a load-generating connection.
    Own,
}

/// Part of the samples, the longest, that a trimmed mean leaves out: 100 less TMP.
const TRIMMED_PERCENT: usize = 5;
/// Standard deviation of a settled series, as a part of its latest value (SDT).
const TOLERANCE: f64 = 0.05;

/// Times of probes: when each was known, which it is, and how long it took.
#[derive(Debug, Default)]
struct Samples(Vec<(Instant, Time, Duration)>);

impl Samples {
    fn add(&mut self, now: Instant, time: Time, took: Duration) {
        self.0.push((now, time, took));
    }

    /// Forgets what was known before `from`.
    fn forget_before(&mut self, from: Instant) {
        self.0.retain(|&(at, ..)| at >= from);
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    /// The means, if there is a sample of each that is needed.
    fn means(&self, tls: bool) -> Option<RoundTrips> {
        Some(RoundTrips {
            tcp: self.trimmed_mean(Time::Tcp)?,
            tls: if tls {
                Some(self.trimmed_mean(Time::Tls)?)
            } else {
                None
            },
            http: self.trimmed_mean(Time::Http)?,
            own: self.trimmed_mean(Time::Own)?,
        })
    }

    /// Probes whose response is there, of both kinds.
    fn probes(&self) -> u64 {
        let whole = |time: Time| matches!(time, Time::Http | Time::Own);
        self.0.iter().filter(|&&(_, time, _)| whole(time)).count() as u64
    }

    fn trimmed_mean(&self, which: Time) -> Option<Duration> {
        let of_it = self.0.iter().filter(|&&(_, time, _)| time == which);
        let mut took: Vec<u64> = of_it.map(|(.., took)| took.as_nanos()).collect();
        took.sort_unstable();
        took.truncate(took.len() - took.len() * TRIMMED_PERCENT / 100);
        let sum: u64 = took.iter().sum();
        sum.checked_div(took.len() as u64).map(Duration::from_nanos)
    }
}

/// Whether the last values of a series, `window` of them, deviate little from the latest.
fn settled(series: &[f64], window: usize) -> bool {
    let Some(from) = series.len().checked_sub(window) else {
        return false;
    };
    let last = &series[from..];
    let n = f64::from(u32::try_from(window).unwrap_or(u32::MAX));
    let mean = last.iter().sum::<f64>() / n;
    let variance = last.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    last.last()
        .is_some_and(|&latest| variance.sqrt() < TOLERANCE * latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_formulae_are_those_of_the_draft() {
        let times = RoundTrips {
            tcp: ms(60),
            tls: Some(ms(90)),
            http: ms(150),
            own: ms(300),
        };
        // 60,000 / ((60 + 90 + 150) / 3), 60,000 / 300 and the mean of both.
        assert!((times.foreign_rpm() - 600.0).abs() < 1e-9);
        assert!((times.loaded_rpm() - 200.0).abs() < 1e-9);
        assert!((times.rpm() - 400.0).abs() < 1e-9);
        // Without TLS its time is not 0, it is not there.
        let plain = RoundTrips { tls: None, ..times };
        assert!((plain.foreign_rpm() - 60_000.0 / 105.0).abs() < 1e-9);
    }

    #[test]
    fn the_longest_twentieth_is_left_out() {
        let mut samples = Samples::default();
        for n in 1..=40 {
            let took = if n > 38 { ms(10_000) } else { ms(n) };
            for time in [Time::Tcp, Time::Http, Time::Own] {
                samples.add(Instant::from_millis(n), time, took);
            }
        }
        // The mean of 1 to 38 ms.
        let means = samples.means(false).expect("all are there");
        assert_eq!(means.tcp, Duration::from_micros(19_500));
        assert_eq!(samples.means(true), None);
        assert_eq!(samples.probes(), 80);
        samples.forget_before(Instant::from_millis(39));
        assert_eq!(samples.means(false).map(|m| m.own), Some(ms(10_000)));
    }

    #[test]
    fn a_series_settles_when_it_deviates_by_less_than_a_twentieth() {
        assert!(!settled(&[100.0, 100.0, 100.0], 4));
        assert!(settled(&[1.0, 100.0, 100.0, 100.0, 100.0], 4));
        // Deviations of 5 and 4, of a latest value of 95 and 96.
        assert!(!settled(&[105.0, 95.0, 105.0, 95.0], 4));
        assert!(settled(&[104.0, 96.0, 104.0, 96.0], 4));
        assert!(!settled(&[0.0; 4], 4));
    }
}
