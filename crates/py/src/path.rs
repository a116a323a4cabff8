//! A bottleneck for test suites in Python. Times are in seconds, as elsewhere in the API.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sojourn_path::{
    Bottleneck, Direction, Duration, Ecn, EcnRewrite, Event, Headers, Instant, LatePoll,
    LinkCounters, Path, PathError, Rate, Trace, WireChange, udp_flow,
};
use sojourn_qdisc::Number;

use crate::errors::{Failure, Invalid};

/// Two directions of a bottleneck and a wire, driven by the caller's clock.
/// One thread at a time uses it.
#[pyclass(name = "PacketPath", module = "sojourn._core")]
#[derive(Debug)]
pub(crate) struct PyPath(Mutex<Path>);

impl PyPath {
    /// The path, also after a panic in a queue, which has already been reported.
    fn path(&self) -> MutexGuard<'_, Path> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Number, time, direction, bytes, ECN, DSCP, flow, time in the queue.
type Arrived<'py> = (
    u64,
    f64,
    &'static str,
    Bound<'py, PyBytes>,
    &'static str,
    u8,
    u32,
    f64,
);

/// Time, direction, packet, size, kind, reason, time since the packet was offered.
type Happened = (
    f64,
    &'static str,
    u64,
    u64,
    &'static str,
    Option<&'static str>,
    Option<f64>,
);

/// Name, list and place, value.
type Statistic = (&'static str, Option<(&'static str, usize)>, f64);

#[pymethods]
impl PyPath {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (forward, reverse=None, *, forward_trace=None, reverse_trace=None, seed=0, events=false, strict=false, capture=None))]
    fn new(
        forward: &str,
        reverse: Option<&str>,
        forward_trace: Option<&str>,
        reverse_trace: Option<&str>,
        seed: i64,
        events: bool,
        strict: bool,
        capture: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let seed = u64::try_from(seed).map_err(|_| out_of_range("seed", seed, i64::MAX))?;
        let mut builder = Path::builder().seed(seed);
        builder = builder.forward(bottleneck(Direction::Forward, forward, forward_trace)?);
        if reverse.is_some() || reverse_trace.is_some() {
            let reverse = reverse.unwrap_or_default();
            builder = builder.reverse(bottleneck(Direction::Reverse, reverse, reverse_trace)?);
        }
        if events {
            builder = builder.events();
        }
        if strict {
            builder = builder.strict();
        }
        if let Some(name) = capture {
            let file = File::create(&name)
                .map_err(|error| Failure::Result(format!("{}: {error}", name.display())))?;
            builder = builder.capture(BufWriter::new(file));
        }
        let path = builder.build().map_err(|error| wrong(None, error))?;
        Ok(Self(Mutex::new(path)))
    }

    /// Offer the payload of a UDP datagram; return its number.
    fn push(
        &mut self,
        now: f64,
        direction: &str,
        payload: &[u8],
        ecn: &str,
        flow: i64,
    ) -> Result<u64, Failure> {
        let mut path = self.path();
        let direction = way(direction)?;
        let field = FIELDS.into_iter().find(|one| name(*one) == ecn);
        let field = field.ok_or_else(|| {
            let problem =
                format!("unknown ECN field \"{ecn}\"; expected not-ect, ect0, ect1 or ce");
            invalid("ecn", &problem)
        })?;
        let flow = u16::try_from(flow).map_err(|_| out_of_range("flow", flow, 65_535))?;
        let headers = Headers::udp(field, udp_flow(flow));
        let now = time(&path, now)?;
        let id = path.push_with(now, direction, payload.to_vec(), &headers);
        Ok(id.0)
    }

    /// Offer an IP packet; return its number.
    fn push_ip(&mut self, now: f64, direction: &str, packet: &[u8]) -> Result<u64, Failure> {
        let mut path = self.path();
        let direction = way(direction)?;
        let now = time(&path, now)?;
        let id = path.push_ip(now, direction, packet.to_vec());
        let id = id.map_err(|bytes| {
            let size = bytes.len();
            let problem = format!("{size} bytes are not a complete IPv4 or IPv6 packet");
            invalid("packet", &problem)
        })?;
        Ok(id.0)
    }

    /// Return the packets that have arrived.
    fn poll<'py>(&mut self, py: Python<'py>, now: f64) -> Result<Vec<Arrived<'py>>, Failure> {
        let mut path = self.path();
        let now = time(&path, now)?;
        let mut all = Vec::new();
        let late = |late: LatePoll| invalid("now", &late.to_string());
        while let Some(delivery) = path.try_poll(now).map_err(late)? {
            all.push((
                delivery.id.0,
                delivery.at.as_secs_f64(),
                delivery.direction.name(),
                PyBytes::new(py, &delivery.bytes),
                name(delivery.ecn),
                delivery.dscp.number(),
                delivery.flow.ports >> 16,
                delivery.waited.as_secs_f64(),
            ));
        }
        Ok(all)
    }

    /// Return when to poll next; None while no packet is inside.
    fn deadline(&self) -> Option<f64> {
        let path = self.path();
        path.deadline().map(Instant::as_secs_f64)
    }

    /// Remove and return the events.
    fn events(&mut self) -> Vec<Happened> {
        let mut path = self.path();
        path.events().map(|event| happened(&event)).collect()
    }

    /// Return the counters of a direction.
    fn counters(&self, direction: &str) -> Result<Vec<(&'static str, u64)>, Failure> {
        let path = self.path();
        Ok(counters(path.counters(way(direction)?)))
    }

    /// Return a quantile of the time in the queue of a direction; None if no packet departed.
    fn sojourn(&self, direction: &str, quantile: f64) -> Result<Option<f64>, Failure> {
        let path = self.path();
        let direction = way(direction)?;
        if !(0.0..=1.0).contains(&quantile) {
            let problem = format!("{quantile} is out of range; expected 0 to 1");
            return Err(invalid("quantile", &problem));
        }
        let nanos = path.sojourn(direction).quantile(quantile);
        Ok(nanos.map(|nanos| Instant::from_nanos(nanos).as_secs_f64()))
    }

    /// Return the statistics of the queue of a direction.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    fn statistics(&self, direction: &str) -> Result<Vec<Statistic>, Failure> {
        let path = self.path();
        let all = path.statistics(way(direction)?);
        let all = all.into_iter().map(|one| {
            let value = match one.value {
                Number::Count(count) => count as f64,
                Number::Real(real) => real,
                Number::Flag(flag) => f64::from(u8::from(flag)),
            };
            (one.name, one.part, value)
        });
        Ok(all.collect())
    }

    /// Change the rate of a bottleneck.
    fn set_rate(&mut self, now: f64, direction: &str, rate: &str) -> Result<(), Failure> {
        let mut path = self.path();
        let (direction, rate) = (way(direction)?, rate.parse::<Rate>()?);
        let now = time(&path, now)?;
        path.set_rate(now, direction, rate);
        Ok(())
    }

    /// Change a wire.
    fn set_wire(&mut self, now: f64, direction: &str, change: &str) -> Result<(), Failure> {
        let mut path = self.path();
        let direction = way(direction)?;
        let change = change
            .parse::<WireChange>()
            .map_err(|error| wrong(Some(direction), error))?;
        let now = time(&path, now)?;
        path.set_wire(now, direction, &change)
            .map_err(|error| wrong(None, error))
    }

    /// End the capture.
    fn finish_capture(&mut self) -> Result<(), Failure> {
        let mut path = self.path();
        let done = path.finish_capture();
        done.map_err(|error| Failure::Result(format!("the capture cannot be written: {error}")))
    }
}

fn invalid(path: &str, problem: &str) -> Failure {
    Failure::Scenario(Invalid::at(path.to_owned(), problem.to_owned()))
}

fn wrong(direction: Option<Direction>, error: PathError) -> Failure {
    let PathError { place, rule } = error;
    let place = direction.map_or(place.clone(), |direction| format!("{direction}.{place}"));
    Failure::Scenario(Invalid::at(place, rule))
}

fn bottleneck(
    direction: Direction,
    text: &str,
    trace: Option<&str>,
) -> Result<Bottleneck, Failure> {
    let trace = trace
        .map(Trace::parse)
        .transpose()
        .map_err(|error| invalid(&format!("{direction}_trace"), &error.to_string()))?;
    Bottleneck::parse(text, trace.as_ref()).map_err(|error| wrong(Some(direction), error))
}

fn out_of_range(name: &str, value: i64, most: i64) -> Failure {
    let problem = format!("{value} is out of range; expected 0 to {most}");
    invalid(name, &problem)
}

fn way(name: &str) -> Result<Direction, Failure> {
    let direction = Direction::BOTH.into_iter().find(|one| one.name() == name);
    direction.ok_or_else(|| {
        let problem = format!("unknown direction \"{name}\"; expected forward or reverse");
        invalid("direction", &problem)
    })
}

/// A time in seconds, to the nearest nanosecond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the range"
)]
fn time(path: &Path, now: f64) -> Result<Instant, Failure> {
    /// Below it, a nanosecond can be represented.
    const MOST: f64 = 4e6;
    if !(0.0..=MOST).contains(&now) {
        let problem = format!("{now} is out of range; expected 0 to {MOST} s");
        return Err(invalid("now", &problem));
    }
    let (now, before) = (
        Instant::from_nanos((now * 1e9).round() as u64),
        path.last_call(),
    );
    if now < before {
        let problem = format!("{now} precedes the time of an earlier call, {before}");
        return Err(invalid("now", &problem));
    }
    Ok(now)
}

const FIELDS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

/// What scenarios call an ECN field.
const fn name(ecn: Ecn) -> &'static str {
    EcnRewrite::All(ecn).name()
}

fn counters(of: &LinkCounters) -> Vec<(&'static str, u64)> {
    vec![
        ("sent_packets", of.sent_packets),
        ("sent_bytes", of.sent_bytes),
        ("drops_overlimit", of.drops_overlimit),
        ("drops_aqm", of.drops_aqm),
        ("drops_ack_filter", of.drops_ack_filter),
        ("marks_aqm", of.marks_aqm),
        ("marks_ce_threshold", of.marks_ce_threshold),
        ("lost_packets", of.lost_packets),
        ("duplicated_packets", of.duplicated_packets),
    ]
}

fn happened(event: &Event) -> Happened {
    (
        event.at.as_secs_f64(),
        event.direction.name(),
        event.packet.0,
        event.size.0,
        event.kind.name(),
        event.kind.reason(),
        event.kind.waited().map(Duration::as_secs_f64),
    )
}
