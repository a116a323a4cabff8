//! Queues written in Python, their exceptions, and the contract suite for them.
//!
//! A class registers as an external discipline under `python:NAME:HASH`. Each link of each run
//! builds one object of it. The interpreter is attached once per call of the queue; a packet is
//! one small object, made when it arrives and released when it leaves.

mod packet;

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Once};

use pyo3::exceptions::{PyAssertionError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use sojourn_qdisc::parameters::Scalar;
use sojourn_qdisc::testing::{self, Op, TestPacket};
use sojourn_qdisc::{
    FailureCause, Instant, Leaving, LinkFacts, MarkReason, Observer, Origin, PYTHON_PREFIX,
    QdiscSpec, QueueClass, QueueFailure, Rate, Rng, Ticket, TicketQueue, Transport, fail,
};

use crate::errors::{Failure, QueueError};
use packet::{Action, Actions};

pub(crate) use packet::PyPacket;

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
    sojourn_qdisc::register(Arc::new(Registered(Arc::new(class))))
        .map_err(|e| Failure::Scenario(e.to_string().into()))
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

    fn origin(&self) -> Origin {
        Origin {
            text: Some(self.0.source.clone()),
            ..Origin::default()
        }
    }

    fn build(&self, _values: &[Scalar], link: &LinkFacts, mut rng: Rng) -> Box<dyn TicketQueue> {
        let seed = rng.next_u64();
        let made = Python::attach(|py| PythonQueue::new(py, Arc::clone(&self.0), link, seed));
        match made {
            Ok(queue) => Box::new(queue),
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
    /// How many packets it holds.
    waiting: usize,
    /// Name of its link.
    link: Option<Arc<str>>,
    /// The time of the last call, for methods without a time of their own.
    now: Instant,
}

impl fmt::Debug for PythonQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonQueue")
            .field("class", &self.class.label)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
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
            waiting: 0,
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
                    self.waiting -= 1;
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
}

impl TicketQueue for PythonQueue {
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: &Ticket,
        _headers: Option<&Transport>,
        obs: &mut dyn Observer<Ticket>,
    ) {
        self.now = now;
        self.waiting += 1;
        let called = Python::attach(|py| {
            let packet = PyPacket::new(*ticket, now, Arc::clone(&self.actions));
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

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Leaving> {
        self.now = now;
        if self.waiting == 0 {
            return None;
        }
        let called = Python::attach(|py| {
            let object = self.object.bind(py);
            let packet = object.call_method1(intern!(py, "dequeue"), (now.as_secs_f64(),))?;
            if packet.is_none() {
                return Ok(None);
            }
            let Ok(packet) = packet.cast::<PyPacket>() else {
                let kind = packet.get_type();
                let message = format!("expected a packet or None, not {}", kind.name()?);
                return Err(PyTypeError::new_err(message));
            };
            packet.get().leave(&self.actions).map(Some)
        });
        let left = match called {
            Ok(left) => left,
            Err(error) => self.fail("dequeue", error),
        };
        self.report("dequeue", now, obs);
        self.waiting -= usize::from(left.is_some());
        left.map(|ticket| ticket.leaving())
    }

    /// Copies the object with `copy.deepcopy`; packets in the copy report to the copy.
    fn boxed_clone(&self) -> Box<dyn TicketQueue> {
        let actions = Arc::new(Actions::default());
        let copied = Python::attach(|py| {
            let memo = packet::memo(py, &self.actions, &actions)?;
            let copy = py.import("copy")?;
            Ok(copy
                .call_method1("deepcopy", (self.object.bind(py), memo))?
                .unbind())
        });
        match copied {
            Ok(object) => Box::new(Self {
                class: Arc::clone(&self.class),
                object,
                actions,
                waiting: self.waiting,
                link: self.link.clone(),
                now: self.now,
            }),
            Err(error) => self.fail("__deepcopy__", error),
        }
    }

    fn is_timed(&self) -> bool {
        self.class.timed
    }

    fn next_timer(&self) -> Option<Instant> {
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

/// An exception of a queue or a controller, on its way to whoever started the run.
pub(crate) struct Raised {
    /// Class and method.
    place: String,
    at_s: f64,
    link: Option<Arc<str>>,
    error: PyErr,
}

impl Raised {
    /// The exception `error` that the method `place` raised at `now`, at no link.
    pub(crate) fn new(place: String, now: Instant, error: PyErr) -> Self {
        Self {
            place,
            at_s: now.as_secs_f64(),
            link: None,
            error,
        }
    }

    /// As the exception that [`crate::run::run`] raises; its cause has the user's traceback.
    fn into_exception(self, py: Python<'_>, run: Option<String>) -> PyErr {
        let Self {
            place,
            at_s,
            link,
            error,
        } = self;
        let link = link.map(|name| format!("link \"{name}\""));
        let context = in_parentheses(link.into_iter().chain(run));
        let message = format!("{place} failed at {at_s:.6} s of simulated time{context}: {error}");
        let raised = QueueError::new_err(message);
        raised.set_cause(py, Some(error));
        raised
    }
}

/// What a queue ended the runs with; any other panic goes on.
pub(crate) fn queue_failure(py: Python<'_>, panic: Box<dyn Any + Send>) -> Failure {
    let failure = panic
        .downcast::<QueueFailure>()
        .unwrap_or_else(|panic| resume_unwind(panic));
    let QueueFailure { cause, run } = *failure;
    match cause.downcast::<Raised>() {
        Ok(raised) => Failure::Python(raised.into_exception(py, run)),
        Err(cause) => {
            let message = cause.downcast_ref::<String>();
            let message = message.map_or("a queue failed", String::as_str);
            Failure::Queue(format!("{message}{}", in_parentheses(run.into_iter())))
        }
    }
}

/// The parts of a place, ready to follow a message.
fn in_parentheses(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(" ({})", parts.join(", "))
}

/// Calls of the queue in one case, at most.
const CALLS: u64 = 400;

/// Drive a queue with `cases` random sequences of calls; an `AssertionError` names the broken rule.
#[pyfunction]
pub(crate) fn check_qdisc(
    py: Python<'_>,
    text: &str,
    cases: u64,
    seed: u64,
) -> Result<(), Failure> {
    let spec: QdiscSpec = text.parse()?;
    let link = LinkFacts {
        rate: Some(Rate::mbit(10)),
        ..LinkFacts::default()
    };
    for case in 0..cases {
        let rng = Rng::new(seed).fork(&format!("case/{case}"));
        let ops = operations(rng.fork("operations"));
        let build = || spec.build::<TestPacket>(&link, rng.fork("queue"));
        let checked =
            quietly(|| catch_unwind(AssertUnwindSafe(|| testing::check_qdisc(build, &ops))));
        let Err(panic) = checked else {
            continue;
        };
        if panic.is::<QueueFailure>() {
            return Err(queue_failure(py, panic));
        }
        let rule = panic.downcast_ref::<String>().cloned();
        let rule = rule.or_else(|| panic.downcast_ref::<&str>().map(|&rule| rule.to_owned()));
        let rule = rule.unwrap_or_else(|| "a rule".to_owned());
        let message = format!("{text} violates the queue contract in case {case}: {rule}");
        return Err(Failure::Python(PyAssertionError::new_err(message)));
    }
    Ok(())
}

/// Up to [`CALLS`] random operations.
fn operations(mut rng: Rng) -> Vec<Op> {
    let calls = rng.below(CALLS);
    (0..calls).map(|_| Op::decode(rng.next_u64())).collect()
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` without the message that a panic prints: a broken rule is an exception here.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let done = work();
    QUIET.set(false);
    done
}
