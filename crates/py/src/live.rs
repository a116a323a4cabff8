//! Live runs that last as long as their program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::{Value, json};
use sojourn_backend::Cancellation;
use sojourn_lab::Build;
use sojourn_live::{BUFFER_BYTES, FlowView, Interfaces, LinkView, Live, Options, Reach};
use sojourn_net::Duration;

use crate::backends::PyCapture;
use crate::errors::Failure;
use crate::outcome::PyOutcome;
use crate::scenario::PyScenario;

/// Become root of a user namespace, unless the process may create network namespaces anyway.
///
/// Raises `UnavailableError` if the kernel does not permit it, or the process has several threads.
#[pyfunction]
pub(crate) fn enter_user_namespace() -> Result<(), Failure> {
    sojourn_live::enter_user_namespace().map_err(|e| Failure::Unavailable(e.to_string()))
}

/// Return the bytes of the packet buffers of a live run.
#[pyfunction]
pub(crate) const fn live_buffer_bytes() -> usize {
    BUFFER_BYTES
}

/// Run the program of a scenario, which has the terminal of this process, until it ends.
///
/// `watch`, if not None, is called once per second, on the main thread, with the links in the last second, as
/// JSON; with `flows` also the transport flows of each link.
/// `capture` receives the packets. With `internet`, the program reaches the network of the machine.
/// `bridge` names two interfaces of the machine, whose packets cross the links in place of those of a program; with
/// `force`, also interfaces with the default route of the machine.
/// Return the outcome, whose scenario has the duration that the run took, the exit code of the program (None if it was
/// still running), and whether a signal ended the run.
#[pyfunction]
#[pyo3(signature = (
    scenario, *, ecn=false, watch=None, flows=false, capture=None, internet=false, bridge=None, force=false
))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "keywords in Python"
)]
pub(crate) fn run_program(
    py: Python<'_>,
    scenario: &Bound<'_, PyScenario>,
    ecn: bool,
    watch: Option<Py<PyAny>>,
    flows: bool,
    capture: Option<&Bound<'_, PyCapture>>,
    internet: bool,
    bridge: Option<[String; 2]>,
    force: bool,
) -> Result<(PyOutcome, Option<i32>, bool), Failure> {
    let scenario = &scenario.get().0;
    let options = Options {
        in_foreground: true,
        ecn,
        shows_flows: flows,
        reach: match bridge {
            Some(names) => Reach::Bridge(Interfaces { names, force }),
            None if internet => Reach::Internet,
            None => Reach::Hosts,
        },
    };
    let live = Live::new(Build::current().commit, options);
    let interrupted = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&interrupted);
    let live = match watch {
        Some(watch) => live.watched(Box::new(move |links| {
            seen.fetch_or(show(&watch, links), Ordering::Relaxed);
        })),
        None => live,
    };
    let capture = capture.map(|capture| &capture.get().0);
    let asked = || {
        let signal = Python::attach(|py| py.check_signals().is_err());
        interrupted.fetch_or(signal, Ordering::Relaxed);
        interrupted.load(Ordering::Relaxed)
    };
    let outcome = py.detach(|| {
        let taken = || live.last().map_or(Duration::ZERO, |ended| ended.duration);
        sojourn_lab::run_while_it_lasts(&live, scenario, &Cancellation::new(&asked), capture, taken)
    })?;
    let status = live.last().and_then(|ended| ended.status);
    Ok((
        PyOutcome(outcome),
        status,
        interrupted.load(Ordering::Relaxed),
    ))
}

/// Calls `watch`; an exception of it is printed, and the run goes on. Returns whether a signal arrived meanwhile.
fn show(watch: &Py<PyAny>, links: &[LinkView]) -> bool {
    let links: Vec<_> = links.iter().map(document).collect();
    Python::attach(|py| {
        let Err(error) = watch.call1(py, (Value::Array(links).to_string(),)) else {
            return false;
        };
        let is_signal = error.is_instance_of::<PyKeyboardInterrupt>(py);
        if !is_signal {
            error.print(py);
        }
        is_signal
    })
}

fn document(link: &LinkView) -> Value {
    let quantiles = link
        .sojourn
        .map(|quantiles| quantiles.map(Duration::as_millis_f64));
    json!({
        "link": link.name,
        "time_s": link.at.as_secs_f64(),
        "bits_per_s": link.bits_per_s,
        "backlog_packets": link.backlog_packets,
        "backlog_bytes": link.backlog_bytes,
        "sojourn_ms": quantiles,
        "drops": link.drops,
        "marks": link.marks,
        "sent_packets": link.sent_packets,
        "sent_bytes": link.sent_bytes,
        "flows": link.flows.iter().map(of_flow).collect::<Vec<_>>(),
    })
}

fn of_flow(flow: &FlowView) -> Value {
    json!({
        "protocol": flow.protocol,
        "ports": flow.ports,
        "bits_per_s": flow.bits_per_s,
        "sojourn_ms": flow.sojourn.map(|values| values.map(Duration::as_millis_f64)),
        "drops": flow.drops,
        "marks": flow.marks,
    })
}
