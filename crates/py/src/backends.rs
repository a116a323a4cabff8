//! The backends of this build: one line each.

use pyo3::prelude::*;
use sojourn_backend::Registry;
use sojourn_lab::Build;
use sojourn_sim::Simulator;

/// All backends; the first is the default.
pub(crate) fn registry() -> Registry {
    let commit = Build::current().commit;
    Registry::new().with(Box::new(Simulator { commit }))
}

/// Return the names that `run` takes as `backend`, the default first.
#[pyfunction]
pub(crate) fn backend_names() -> Vec<&'static str> {
    registry().names().collect()
}
