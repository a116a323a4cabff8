//! A packet, as a queue written in Python sees it.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_backend::locked;
use sojourn_qdisc::{DropReason, Ecn, Instant, Packet as View, Ticket};

/// What a queue did to packets since it was last asked.
#[derive(Debug, Default)]
pub(super) struct Actions(Mutex<Vec<Action>>);

/// Something a queue did to a packet.
#[derive(Debug)]
pub(super) enum Action {
    Mark(Ticket),
    Drop(Ticket, DropReason),
    /// The last reference to a waiting packet is gone.
    Lost,
}

impl Actions {
    fn push(&self, action: Action) {
        locked(&self.0).push(action);
    }

    pub(super) fn take(&self) -> Vec<Action> {
        std::mem::take(&mut *locked(&self.0))
    }
}

/// A packet in a queue.
///
/// A queue keeps it, returns it from `dequeue` or drops it.
#[pyclass(name = "Packet", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyPacket {
    arrival: Instant,
    /// `None` once the packet has left the queue.
    ticket: Mutex<Option<Ticket>>,
    actions: Arc<Actions>,
}

impl PyPacket {
    pub(super) fn new(ticket: Ticket, arrival: Instant, actions: Arc<Actions>) -> Self {
        Self {
            arrival,
            ticket: Mutex::new(Some(ticket)),
            actions,
        }
    }

    /// Takes the packet out of the queue whose actions these are.
    pub(super) fn leave(&self, of: &Arc<Actions>) -> PyResult<Ticket> {
        if !Arc::ptr_eq(&self.actions, of) {
            return Err(PyValueError::new_err("the packet belongs to another queue"));
        }
        self.take()
    }

    fn take(&self) -> PyResult<Ticket> {
        locked(&self.ticket).take().ok_or_else(gone)
    }

    fn ticket(&self) -> PyResult<Ticket> {
        locked(&self.ticket).ok_or_else(gone)
    }
}

fn gone() -> PyErr {
    PyValueError::new_err("the packet has left the queue")
}

impl Drop for PyPacket {
    fn drop(&mut self) {
        if locked(&self.ticket).is_some() {
            self.actions.push(Action::Lost);
        }
    }
}

#[pymethods]
impl PyPacket {
    /// Length on the wire in bytes, Ethernet header included.
    #[getter]
    fn size(&self) -> PyResult<u64> {
        Ok(self.ticket()?.size().0)
    }

    /// A 32-bit hash of addresses, ports and protocol: equal for the packets of one flow.
    #[getter]
    fn flow_hash(&self) -> PyResult<u32> {
        Ok(self.ticket()?.flow().digest(0))
    }

    /// The ECN field: "not-ect", "ect0", "ect1" or "ce".
    #[getter]
    fn ecn(&self) -> PyResult<&'static str> {
        Ok(match self.ticket()?.ecn() {
            Ecn::NotEct => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
        })
    }

    /// The Differentiated Services code point, 0 to 63.
    #[getter]
    fn dscp(&self) -> PyResult<u8> {
        Ok(self.ticket()?.dscp().number())
    }

    /// When the packet entered the queue, in seconds of simulated time.
    #[getter]
    fn arrival(&self) -> f64 {
        self.arrival.as_secs_f64()
    }

    /// Set Congestion Experienced; False, and no mark, if the packet is not ECN-capable.
    fn mark(&self) -> PyResult<bool> {
        let mut held = locked(&self.ticket);
        let ticket = held.as_mut().ok_or_else(gone)?;
        let marked = ticket.mark_ce();
        if marked {
            self.actions.push(Action::Mark(*ticket));
        }
        Ok(marked)
    }

    /// Discard the packet; `reason` is "aqm" (a congestion signal) or "overlimit" (a full queue).
    #[pyo3(signature = (reason = "aqm"))]
    fn drop(&self, reason: &str) -> PyResult<()> {
        let reason = match reason {
            "aqm" => DropReason::Aqm,
            "overlimit" => DropReason::Overlimit,
            _ => {
                let message =
                    format!("unknown drop reason \"{reason}\"; expected aqm or overlimit");
                return Err(PyValueError::new_err(message));
            }
        };
        let ticket = self.take()?;
        self.actions.push(Action::Drop(ticket, reason));
        Ok(())
    }

    /// Copy the packet into a copy of its queue.
    fn __deepcopy__(&self, memo: &Bound<'_, PyDict>) -> PyResult<Self> {
        let copied: PyRef<'_, Copied> = memo
            .get_item(MEMO)?
            .ok_or_else(|| PyValueError::new_err("a packet cannot be copied"))?
            .extract()?;
        let actions = if Arc::ptr_eq(&self.actions, &copied.from) {
            &copied.to
        } else {
            &self.actions
        };
        Ok(Self {
            arrival: self.arrival,
            ticket: Mutex::new(*locked(&self.ticket)),
            actions: Arc::clone(actions),
        })
    }

    fn __repr__(&self) -> String {
        match *locked(&self.ticket) {
            Some(ticket) => format!("Packet(size={}, id={})", ticket.size().0, ticket.id()),
            None => "Packet(left the queue)".to_owned(),
        }
    }
}

/// Where `copy.deepcopy` keeps what [`PyPacket::__deepcopy__`] needs to know.
const MEMO: &str = "sojourn queue";

/// The queue that is copied, and the copy.
#[pyclass(frozen)]
struct Copied {
    from: Arc<Actions>,
    to: Arc<Actions>,
}

/// What `copy.deepcopy` is to be given, so that packets join the copy of their queue.
pub(super) fn memo<'py>(
    py: Python<'py>,
    from: &Arc<Actions>,
    to: &Arc<Actions>,
) -> PyResult<Bound<'py, PyDict>> {
    let memo = PyDict::new(py);
    let copied = Copied {
        from: Arc::clone(from),
        to: Arc::clone(to),
    };
    memo.set_item(MEMO, Py::new(py, copied)?)?;
    Ok(memo)
}
