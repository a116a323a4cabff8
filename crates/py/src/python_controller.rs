//! Controllers of links written in Python.
//!
//! A class registers under a name as that of a queue, `python:NAME:HASH`. Each run starts one object of it, whose method
//! `_call` gets the measurements of an interval as tuples and returns the changes as JSON.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use sojourn_net::{Duration, Instant, Rate, Rng};
use sojourn_qdisc::{FailureCause, fail};
use sojourn_scenario::plan::{
    Config, Controller, ControllerClass, LinkMeasured, Measured, Reply, Request,
    register_controller as register,
};

use crate::errors::Failure;
use crate::python_queue::Raised;

/// Make a class usable as a controller under `name`, called every `interval`; a class of the same name is replaced.
///
/// `changes_wires`: it may change delay, jitter, loss and duplication.
#[pyfunction]
pub(crate) fn register_controller(
    py: Python<'_>,
    name: String,
    controller: Py<PyAny>,
    source: String,
    interval: &str,
    changes_wires: bool,
) -> Result<(), Failure> {
    let interval: Duration = interval.parse()?;
    if interval == Duration::ZERO {
        let message = "must be > 0".to_owned();
        return Err(Failure::Scenario(message.into()));
    }
    register(Arc::new(Registered(Arc::new(Class {
        label: controller.getattr(py, "__name__")?.extract(py)?,
        object: AssertUnwindSafe(controller),
        name,
        source,
        interval,
        changes_wires,
    }))));
    Ok(())
}

/// A class of Python that is a controller.
#[derive(Debug)]
struct Class {
    /// What scenarios call it.
    name: String,
    source: String,
    /// What Python calls it.
    label: String,
    interval: Duration,
    changes_wires: bool,
    object: AssertUnwindSafe<Py<PyAny>>,
}

#[derive(Debug)]
struct Registered(Arc<Class>);

impl ControllerClass for Registered {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn source(&self) -> &str {
        &self.0.source
    }

    fn interval(&self) -> Duration {
        self.0.interval
    }

    fn changes_wires(&self) -> bool {
        self.0.changes_wires
    }

    fn start(&self, config: &Config, mut rng: Rng) -> Box<dyn Controller> {
        let seed = rng.next_u64();
        match Python::attach(|py| PythonController::new(py, Arc::clone(&self.0), config, seed)) {
            Ok(controller) => Box::new(controller),
            Err(error) => self.0.fail("__init__", Instant::ZERO, error),
        }
    }
}

impl Class {
    /// Ends the run: `method` raised `error` at `now`.
    fn fail(&self, method: &str, now: Instant, error: PyErr) -> ! {
        let place = format!("{}.{method}", self.label);
        fail(FailureCause::new(Raised::new(place, now, error)))
    }
}

/// An object of the class.
struct PythonController {
    class: Arc<Class>,
    object: Py<PyAny>,
}

impl fmt::Debug for PythonController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonController")
            .field("class", &self.class.label)
            .finish_non_exhaustive()
    }
}

impl PythonController {
    fn new(py: Python<'_>, class: Arc<Class>, config: &Config, seed: u64) -> PyResult<Self> {
        let object = class.object.bind(py);
        let random = py.import("random")?.call_method1("Random", (seed,))?;
        // Set before __init__, which may use them.
        let object = object.call_method1("__new__", (object,))?;
        object.setattr("random", random)?;
        let links: Vec<_> = config.links.iter().map(|link| link.name.as_str()).collect();
        object.setattr("_links", links)?;
        let flows: Vec<_> = config.flows.iter().map(|flow| flow.name.as_str()).collect();
        object.setattr("_flows", flows)?;
        object.call_method0("__init__")?;
        Ok(Self {
            object: object.unbind(),
            class,
        })
    }

    fn call(&self, py: Python<'_>, measured: &Measured) -> PyResult<Vec<Request>> {
        let links: Vec<_> = measured.links.iter().map(of_link).collect();
        let replies: Vec<_> = measured.replies.iter().map(of_reply).collect();
        let arguments = (measured.at.as_secs_f64(), links, replies);
        let object = self.object.bind(py);
        let asked = object.call_method1(intern!(py, "_call"), arguments)?;
        let asked: Vec<(usize, String)> = asked.extract()?;
        let requests = asked.into_iter();
        Ok(requests
            .map(|(link, change)| Request { link, change })
            .collect())
    }
}

impl Controller for PythonController {
    fn control(&mut self, measured: &Measured) -> Vec<Request> {
        let called = Python::attach(|py| self.call(py, measured));
        called.unwrap_or_else(|error| self.class.fail("control", measured.at, error))
    }

    fn refuse(&self, now: Instant, problem: String) -> ! {
        self.class
            .fail("control", now, PyValueError::new_err(problem))
    }
}

/// The fields of `LinkInterval` after the name, in their order: settings and backlog, times and counts.
type OfLink<'l> = (
    Option<u64>,
    &'l str,
    Option<f64>,
    (u64, u64),
    (Option<f64>, Option<f64>),
    (u64, u64),
    (u64, u64, u64),
);

fn of_link(link: &LinkMeasured) -> OfLink<'_> {
    let ms = |time: Option<Duration>| time.map(Duration::as_millis_f64);
    (
        link.rate.map(Rate::bits_per_sec),
        &link.queue,
        link.utilisation,
        (link.backlog_packets, link.backlog_bytes.0),
        (ms(link.sojourn_mean), ms(link.sojourn_max)),
        (link.sent_packets, link.sent_bytes),
        (link.drops, link.marks, link.lost),
    )
}

/// Number of the flow, time of the request, and the delays of request and reply in ms.
fn of_reply(reply: &Reply) -> (usize, f64, f64, f64) {
    let delays = [reply.there, reply.back].map(Duration::as_millis_f64);
    (reply.flow, reply.sent.as_secs_f64(), delays[0], delays[1])
}
