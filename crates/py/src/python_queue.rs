//! Queues written in Python.
//!
//! A class registers as an external discipline under `python:NAME:HASH`. Each link of each run
//! builds one object of it. The interpreter is attached once per call of the queue; a packet is
//! one small object, made when it arrives and released when it leaves.

mod contract;
mod failure;
mod packet;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use sojourn_qdisc::{
    Backlog, BoxedQueue, FailureCause, Instant, LinkFacts, MarkReason, Observer, PYTHON_PREFIX,
    Packet as View, Qdisc, QueueClass, Rate, Rng, Ticket, fail,
};

use crate::errors::Failure;
pub(crate) use contract::check_qdisc;
use failure::Raised;
pub(crate) use failure::queue_failure;
pub(crate) use packet::PyPacket;
use packet::{Action, Actions};

/// The prefix of the names of queues written in Python.
#[pyfunction]
pub(crate) const fn python_prefix() -> &'static str {
    PYTHON_PREFIX
}

/// Make a class usable as a queue under `name`; a class of the same name is replaced.
#[pyfunction]
pub(crate) fn register_python_queue(
    py: Python<'_>,
    name: String,
    queue: Py<PyAny>,
    source: String,
) -> Result<(), Failure> {
    let class = Class {
        label: queue.getattr(py, "__name__")?.extract(py)?,
        timed: queue.bind(py).hasattr("next_timer")?,
        object: AssertUnwindSafe(queue),
        name,
        source,
    };
    sojourn_qdisc::register_class(Arc::new(Registered(Arc::new(class))))
        .map_err(|e| Failure::Scenario(e.to_string()))
}

/// A class of Python that is a queue.
#[derive(Debug)]
struct Class {
    /// What specifications call it.
    name: String,
    /// The text of the class, for the manifest of a result.
    source: String,
    /// What Python calls it.
    label: String,
    /// Whether its objects have a timer.
    timed: bool,
    object: AssertUnwindSafe<Py<PyAny>>,
}

#[derive(Debug)]
struct Registered(Arc<Class>);

impl QueueClass for Registered {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn source(&self) -> &str {
        &self.0.source
    }

    fn build(&self, link: &LinkFacts, mut rng: Rng) -> BoxedQueue {
        let seed = rng.next_u64();
        let made = Python::attach(|py| PythonQueue::new(py, Arc::clone(&self.0), link, seed));
        match made {
            Ok(queue) => BoxedQueue::new(queue),
            Err(error) => self
                .0
                .fail("__init__", Instant::ZERO, link.name.clone(), error),
        }
    }
}

impl Class {
    /// Ends the run: `method` raised `error` at `now`, serving `link`.
    fn fail(&self, method: &'static str, now: Instant, link: Option<Arc<str>>, error: PyErr) -> ! {
        fail(FailureCause::new(Raised {
            place: format!("{}.{method}", self.label),
            at_s: now.as_secs_f64(),
            link,
            error,
        }))
    }
}

/// An object of the class, and what it holds.
struct PythonQueue {
    class: Arc<Class>,
    object: Py<PyAny>,
    actions: Arc<Actions>,
    backlog: Backlog,
    /// Name of its link.
    link: Option<Arc<str>>,
    /// The time of the last call, for methods without a time of their own.
    now: Instant,
}

impl fmt::Debug for PythonQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonQueue")
            .field("class", &self.class.label)
            .field("backlog", &self.backlog)
            .finish_non_exhaustive()
    }
}

impl Clone for PythonQueue {
    /// Copies the object with `copy.deepcopy`; packets in the copy report to the copy.
    fn clone(&self) -> Self {
        let actions = Arc::new(Actions::default());
        let copied = Python::attach(|py| {
            let memo = packet::memo(py, &self.actions, &actions)?;
            let copy = py.import("copy")?;
            Ok(copy
                .call_method1("deepcopy", (self.object.bind(py), memo))?
                .unbind())
        });
        match copied {
            Ok(object) => Self {
                class: Arc::clone(&self.class),
                object,
                actions,
                backlog: self.backlog,
                link: self.link.clone(),
                now: self.now,
            },
            Err(error) => self.fail("__deepcopy__", error),
        }
    }
}

impl PythonQueue {
    fn new(py: Python<'_>, class: Arc<Class>, link: &LinkFacts, seed: u64) -> PyResult<Self> {
        let object = class.object.bind(py);
        let random = py.import("random")?.call_method1("Random", (seed,))?;
        // Set before __init__, which may use them.
        let object = object.call_method1("__new__", (object,))?;
        object.setattr("random", random)?;
        object.setattr("rate", link.rate.map(Rate::bits_per_sec))?;
        object.setattr("mtu", link.mtu.0)?;
        object.call_method0("__init__")?;
        Ok(Self {
            object: object.unbind(),
            actions: Arc::default(),
            backlog: Backlog::default(),
            link: link.name.clone(),
            now: Instant::ZERO,
            class,
        })
    }

    /// Ends the run: `method` raised `error` in the last call.
    fn fail(&self, method: &'static str, error: PyErr) -> ! {
        self.class.fail(method, self.now, self.link.clone(), error)
    }

    /// Passes on what the object did to packets in the last call.
    fn report(&mut self, method: &'static str, now: Instant, obs: &mut dyn Observer<Ticket>) {
        for action in self.actions.take() {
            match action {
                Action::Mark(ticket) => obs.on_mark(now, &ticket, MarkReason::Aqm),
                Action::Drop(ticket, reason) => {
                    self.removed(&ticket);
                    obs.on_drop(now, ticket, reason);
                }
                Action::Lost => {
                    let message = "a packet was not kept, returned or dropped; \
                                   call packet.drop() to discard it";
                    self.fail(method, PyValueError::new_err(message));
                }
            }
        }
    }

    fn removed(&mut self, ticket: &Ticket) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= ticket.size();
    }
}

impl Qdisc<Ticket> for PythonQueue {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, pkt: Ticket, obs: &mut dyn Observer<Ticket>) {
        self.now = now;
        self.backlog.packets += 1;
        self.backlog.bytes += pkt.size();
        let called = Python::attach(|py| {
            let packet = PyPacket::new(pkt, now, Arc::clone(&self.actions));
            let packet = Py::new(py, packet)?;
            let arguments = (now.as_secs_f64(), packet);
            let object = self.object.bind(py);
            object.call_method1(intern!(py, "enqueue"), arguments)?;
            Ok(())
        });
        if let Err(error) = called {
            self.fail("enqueue", error);
        }
        self.report("enqueue", now, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Ticket> {
        self.now = now;
        if self.backlog.packets == 0 {
            return None;
        }
        let called = Python::attach(|py| {
            let object = self.object.bind(py);
            let packet = object.call_method1(intern!(py, "dequeue"), (now.as_secs_f64(),))?;
            if packet.is_none() {
                return Ok(None);
            }
            let Ok(packet) = packet.cast::<PyPacket>() else {
                let message = format!("expected a packet or None, not {packet}");
                return Err(PyTypeError::new_err(message));
            };
            packet.get().leave(&self.actions).map(Some)
        });
        let left = match called {
            Ok(left) => left,
            Err(error) => self.fail("dequeue", error),
        };
        self.report("dequeue", now, obs);
        if let Some(ticket) = &left {
            self.removed(ticket);
        }
        left
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn next_timer(&self) -> Option<Instant> {
        if !self.class.timed {
            return None;
        }
        let called = Python::attach(|py| {
            let due = self
                .object
                .bind(py)
                .call_method0(intern!(py, "next_timer"))?;
            due.extract::<Option<f64>>()
        });
        match called {
            Ok(due) => due.map(instant),
            Err(error) => self.fail("next_timer", error),
        }
    }

    fn on_timer(&mut self, now: Instant) {
        self.now = now;
        let called = Python::attach(|py| {
            let object = self.object.bind(py);
            object.call_method1(intern!(py, "on_timer"), (now.as_secs_f64(),))?;
            Ok(())
        });
        if let Err(error) = called {
            self.fail("on_timer", error);
        }
        // Else simulated time would stand still.
        if self.next_timer().is_some_and(|due| due <= now) {
            let message = "after on_timer, next_timer returned a time that is not after now; \
                           expected None or a later time";
            let error = PyValueError::new_err(message);
            self.fail("next_timer", error);
        }
    }
}

/// The first instant that Python would not find to be before `seconds`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, as a timer far away may"
)]
fn instant(seconds: f64) -> Instant {
    let at = (seconds * 1e9).ceil() as u64;
    // The product may be rounded down; a queue that compares times would then wait indefinitely.
    if Instant::from_nanos(at).as_secs_f64() < seconds {
        return Instant::from_nanos(at.saturating_add(1));
    }
    Instant::from_nanos(at)
}
