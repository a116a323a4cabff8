//! Live runs that last as long as their program.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::{Value, json};
use sojourn_backend::{Cancellation, locked};
use sojourn_lab::Build;
use sojourn_live::{
    BUFFER_BYTES, Changes, Control, FlowView, Interfaces, Interop, LinkView, Live, Networks,
    Options, Reach, Routing, Shows,
};
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

/// Changes the links of a running live run, from any thread.
#[pyclass(name = "LinkControl", module = "sojourn._core", frozen)]
pub(crate) struct PyLinkControl {
    control: Control,
    /// Until a run has them.
    changes: Mutex<Option<Changes>>,
}

#[pymethods]
impl PyLinkControl {
    #[new]
    fn new() -> Self {
        let (control, changes) = Control::new();
        Self {
            control,
            changes: Mutex::new(Some(changes)),
        }
    }

    /// Change links: pairs of a name and the keys of a change as JSON. All take effect at once, or none.
    ///
    /// Return the time in seconds and the settings of all links afterwards, each as JSON; without changes, the present
    /// ones. Raises `ScenarioError` if a change is not valid or the run has ended.
    fn change(
        &self,
        py: Python<'_>,
        changes: Vec<(String, String)>,
    ) -> Result<(f64, Vec<(String, String)>), Failure> {
        let settings = py.detach(|| self.control.change(changes));
        let settings = settings.map_err(|problem| Failure::Scenario(problem.into()))?;
        Ok((settings.at.as_secs_f64(), settings.links))
    }

    /// From now on, `watch` of the run is called with the links and their flows.
    ///
    /// Raises `ScenarioError` if the run has ended.
    fn watch(&self, py: Python<'_>) -> Result<(), Failure> {
        let settings = py.detach(|| self.control.watch());
        settings.map_err(|problem| Failure::Scenario(problem.into()))?;
        Ok(())
    }
}

/// Run the program of a scenario, which has the terminal of this process, until it ends.
///
/// `watch`, if not None, is called once per second, on the main thread, with the links in the last second, as
/// JSON: from the start if `links` or `flows` is set, otherwise once `control` asks for it; with `flows` also the
/// transport flows of each link.
/// `capture` receives the packets. With `internet`, the program reaches the network of the machine.
/// `interop` has two networks of the machine, and what happens to packets between them.
/// `bridge` names two interfaces of the machine, whose packets cross the links in place of those of a program; with
/// `default_route`, also interfaces with the default route of the machine.
/// `control` changes the links during the run; it is of one run.
/// Return the outcome, whose scenario has the duration that the run took, the exit code of the program (None if it was
/// still running), and whether a signal ended the run.
#[pyfunction]
#[pyo3(signature = (
    scenario, *, ecn=false, watch=None, links=false, flows=false, capture=None, internet=false, bridge=None,
    default_route=false, interop=None, control=None
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
    links: bool,
    flows: bool,
    capture: Option<&Bound<'_, PyCapture>>,
    internet: bool,
    bridge: Option<[String; 2]>,
    default_route: bool,
    interop: Option<&Bound<'_, PyInterop>>,
    control: Option<&Bound<'_, PyLinkControl>>,
) -> Result<(PyOutcome, Option<i32>, bool), Failure> {
    let scenario = &scenario.get().0;
    let options = Options {
        in_foreground: true,
        ecn,
        shows: match (links, flows) {
            (_, true) => Shows::Flows,
            (true, false) => Shows::Links,
            (false, false) => Shows::Nothing,
        },
        reach: match (bridge, interop) {
            (Some(names), _) => Reach::Bridge(Interfaces {
                names,
                takes_default_route: default_route,
            }),
            (None, Some(interop)) => Reach::Router(Box::new(interop.get().routing()?)),
            (None, None) if internet => Reach::Internet,
            (None, None) => Reach::Hosts,
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
    let changes = control.and_then(|control| locked(&control.get().changes).take());
    let live = match changes {
        Some(changes) => live.changed_by(changes),
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

/// A scenario of the QUIC network simulator between two interfaces of the machine.
///
/// `words` are its words, as a shell splits them; `interfaces` are those of the client and of the server. While a run
/// forwards packets, connections to the TCP port `ready` succeed. The directory `logs`, if not None, gets the captures
/// `trace_node_left.pcap` and `trace_node_right.pcap`.
#[pyclass(name = "Interop", module = "sojourn._core", frozen)]
pub(crate) struct PyInterop {
    scenario: Interop,
    networks: Networks,
    logs: Option<PathBuf>,
}

#[pymethods]
impl PyInterop {
    #[new]
    #[pyo3(signature = (words, interfaces, *, ready=None, logs=None))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 passes values")]
    fn new(
        words: Vec<String>,
        interfaces: [String; 2],
        ready: Option<u16>,
        logs: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let scenario = Interop::of(&words).map_err(|e| Failure::Other(e.to_string()))?;
        let networks = Networks {
            names: interfaces,
            ready,
        };
        Ok(Self {
            scenario,
            networks,
            logs,
        })
    }

    /// The rate of the link in bit/s.
    #[getter]
    const fn bits_per_s(&self) -> u64 {
        self.scenario.bandwidth.bits_per_sec()
    }

    /// The one-way delay of the link in ns.
    #[getter]
    const fn delay_ns(&self) -> u64 {
        self.scenario.delay.as_nanos()
    }

    /// The queues for packets to the client and to the server.
    #[getter]
    fn qdiscs(&self) -> (String, String) {
        let [down, up] = self.scenario.qdiscs.clone();
        (down, up)
    }
}

impl PyInterop {
    fn routing(&self) -> Result<Routing, Failure> {
        let traces = self.logs.as_deref().map(traces).transpose();
        let traces = traces.map_err(|e| Failure::Python(e.into()))?;
        Ok(Routing {
            networks: self.networks.clone(),
            impairment: self.scenario.impairment.clone(),
            cross: self.scenario.cross,
            traces: traces.map(Arc::new),
        })
    }
}

/// Creates the captures of both sides in a directory.
fn traces(logs: &Path) -> io::Result<[File; 2]> {
    let create = |side: &str| File::create(logs.join(format!("trace_node_{side}.pcap")));
    Ok([create("left")?, create("right")?])
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
        "dropped": by_reason(&link.dropped),
        "marked": by_reason(&link.marked),
        "lost": link.lost,
        "settings": serde_json::from_str::<Value>(&link.settings).unwrap_or_default(),
        "changes": link.changes.iter().map(|(at, text)| (at.as_secs_f64(), text)).collect::<Vec<_>>(),
        "flows": link.flows.iter().map(of_flow).collect::<Vec<_>>(),
    })
}

/// Counts of the reasons that occurred.
fn by_reason(counts: &[(&'static str, u64)]) -> Value {
    let occurred = counts.iter().filter(|(_, count)| *count > 0);
    occurred
        .map(|&(name, count)| (name.to_owned(), count.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn of_flow(flow: &FlowView) -> Value {
    json!({
        "protocol": flow.protocol,
        "ports": flow.ports,
        "bits_per_s": flow.bits_per_s,
        "sojourn_ms": flow.sojourn.map(|values| values.map(Duration::as_millis_f64)),
        "backlog_bytes": flow.backlog_bytes,
        "drops": flow.drops,
        "marks": flow.marks,
    })
}
