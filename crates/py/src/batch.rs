//! Simulations that Python steers step by step.

#![expect(clippy::needless_pass_by_value, reason = "converted from Python")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sojourn_backend::{BackendError, locked};
use sojourn_gym::{Action, Batch, FLOW_COLUMNS, LINK_COLUMNS, Setup};
use sojourn_net::Duration;

use crate::errors::Failure;
use crate::scenario::PyScenario;

/// Simulations of scenarios that are advanced together, step by step.
///
/// `action` is `none`, `drop_probability`, `time` or `windows`; `key` names the time of the queue, and
/// `most` is the limit of the FIFO or the number of flows with a window.
#[pyclass(name = "Batch", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyBatch(
    /// Locked without the interpreter's lock, or for a moment: two threads would wait for each other otherwise.
    Mutex<Batch>,
);

#[pymethods]
impl PyBatch {
    #[new]
    #[pyo3(signature = (scenarios, size, *, link, step, action, key, most, threads))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        scenarios: Vec<Bound<'_, PyScenario>>,
        size: usize,
        link: String,
        step: &str,
        action: &str,
        key: &str,
        most: usize,
        threads: usize,
    ) -> Result<Self, Failure> {
        let step: Duration = step.parse()?;
        let action = match action {
            "drop_probability" => Action::DropProbability(most),
            "time" => Action::Time(key.to_owned()),
            "windows" => Action::Windows(most),
            _ => Action::None,
        };
        let configs = scenarios
            .iter()
            .map(|scenario| scenario.get().0.plan(0, 0).config);
        let setup = Setup {
            configs: configs.collect(),
            link,
            step,
            action,
        };
        let batch = Batch::new(setup, size, threads).map_err(BackendError::from)?;
        Ok(Self(Mutex::new(batch)))
    }

    /// Names of the numbers of the link.
    #[classattr]
    fn link_columns() -> Vec<&'static str> {
        LINK_COLUMNS.to_vec()
    }

    /// Names of the numbers of each flow over TCP, which follow those of the link.
    #[classattr]
    fn flow_columns() -> Vec<&'static str> {
        FLOW_COLUMNS.to_vec()
    }

    /// Number of columns of a simulation.
    #[getter]
    fn columns(&self) -> usize {
        locked(&self.0).setup().columns()
    }

    /// Start an episode and write its numbers, float64, at the end of the warm-up.
    fn reset(
        &self,
        py: Python<'_>,
        number: usize,
        scenario: usize,
        seed: u64,
        to: PyBuffer<f64>,
    ) -> Result<(), Failure> {
        let mut numbers = vec![0.0; to.item_count()];
        let reset = py.detach(|| {
            let mut batch = locked(&self.0);
            let reset = || batch.reset(number, scenario, seed, &mut numbers);
            catch_unwind(AssertUnwindSafe(reset))
        });
        reset.map_err(|_| failed())?.map_err(BackendError::from)?;
        Ok(to.copy_from_slice(py, &numbers)?)
    }

    /// Advance all simulations by a step, with an action each, and write their numbers; float64 both.
    fn step(
        &self,
        py: Python<'_>,
        actions: PyBuffer<f64>,
        to: PyBuffer<f64>,
    ) -> Result<(), Failure> {
        let taken = actions.to_vec(py)?;
        let mut numbers = vec![0.0; to.item_count()];
        let stepped = py.detach(|| {
            let mut batch = locked(&self.0);
            let (of_action, columns) = (batch.setup().actions(), batch.setup().columns());
            if (taken.len(), numbers.len()) != (of_action * batch.size(), columns * batch.size()) {
                return Ok(false);
            }
            catch_unwind(AssertUnwindSafe(|| batch.step(&taken, &mut numbers))).map(|()| true)
        });
        if !stepped.map_err(|_| failed())? {
            let text = "actions and numbers must have the size of the batch";
            return Err(Failure::Python(PyValueError::new_err(text)));
        }
        Ok(to.copy_from_slice(py, &numbers)?)
    }
}

fn failed() -> Failure {
    Failure::Other("a simulation failed".to_owned())
}
