//! Scenarios as Python objects.

use std::path::PathBuf;

use pyo3::prelude::*;
use sojourn_lab::{Part, Scenario};

use crate::errors::Failure;

/// A valid scenario: links, traffic, duration, replications and arms.
///
/// Two scenarios are equal if their canonical JSON is.
#[pyclass(name = "Scenario", module = "sojourn._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyScenario(pub(crate) Scenario);

#[pymethods]
impl PyScenario {
    /// Read TOML; the message of a `ScenarioError` names the key and what is accepted.
    ///
    /// Names of files in it are relative to `directory`, by default the working directory.
    #[staticmethod]
    #[pyo3(signature = (text, directory=None))]
    fn from_toml(py: Python<'_>, text: &str, directory: Option<PathBuf>) -> Result<Self, Failure> {
        let directory = directory.unwrap_or_else(|| PathBuf::from("."));
        Ok(Self(
            py.detach(|| Scenario::from_toml_in(text, &directory))?,
        ))
    }

    /// Read JSON of the same shape as the TOML.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> Result<Self, Failure> {
        Ok(Self(py.detach(|| Scenario::from_json(text))?))
    }

    /// Read the JSON of a saved result, which is untrusted: no file that it names is read.
    #[staticmethod]
    fn from_saved(py: Python<'_>, text: &str) -> Result<Self, Failure> {
        Ok(Self(py.detach(|| Scenario::from_saved(text))?))
    }

    /// All keys of the scenario as TOML, defaults included; reading it gives an equal one.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// Canonical JSON: sorted keys, canonical units, defaults included.
    fn to_json(&self) -> &str {
        self.0.to_json()
    }

    /// Return a copy with some values changed: pairs of a path and a value as JSON.
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn changed(&self, py: Python<'_>, changes: Vec<(String, String)>) -> Result<Self, Failure> {
        Ok(Self(py.detach(|| self.0.changed(&changes))?))
    }

    /// Return the names of the arms that set the value at `path`, or a part of it.
    fn arms_that_set(&self, path: &str) -> Vec<&str> {
        self.0.arms_that_set(path)
    }

    /// SHA-256 of the canonical JSON, in hexadecimal.
    #[getter]
    fn hash(&self) -> &str {
        self.0.hash()
    }

    /// Name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Names of the arms; `default` alone if the scenario has none.
    #[getter]
    fn arms(&self) -> Vec<&str> {
        self.0.arms().collect()
    }

    /// Names of its queues and controllers that are not part of Sojourn, sorted.
    #[getter]
    fn external_queues(&self) -> Vec<String> {
        self.0.external_queues()
    }

    /// Limitations that are known before the runs: pairs of a severity, `warning` or `note`, and a text.
    #[getter]
    fn concerns(&self, py: Python<'_>) -> Vec<(&'static str, String)> {
        let concerns = py.detach(|| self.0.concerns()).into_iter();
        concerns
            .map(|concern| (concern.severity.name(), concern.text))
            .collect()
    }

    /// Probable mistakes, such as a link that no traffic crosses, one line each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    /// Number of runs per arm; replication k of every arm has the same seed.
    #[getter]
    fn replications(&self) -> u32 {
        self.0.replications()
    }

    /// Duration of a run in simulated seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.0.duration().as_secs_f64()
    }

    /// Duration of the warm-up, excluded from totals, in simulated seconds.
    #[getter]
    fn warmup_s(&self) -> f64 {
        self.0.warmup().as_secs_f64()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<Self>()
            .is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        // Half of the SHA-256 would do; 16 digits of it fit.
        u64::from_str_radix(&self.0.hash()[..15], 16).unwrap_or(0)
    }

    fn __repr__(&self) -> String {
        let (name, hash) = (self.0.name(), &self.0.hash()[..12]);
        let (arms, replications) = (self.0.arms().len(), self.0.replications());
        format!("Scenario({name:?}, arms={arms}, replications={replications}, hash={hash:?})")
    }
}

/// Check one link, traffic block, page or arm, given as JSON, by the rules of scenario files.
///
/// Rules that depend on the rest of the scenario are not checked.
#[pyfunction]
pub(crate) fn check_part(kind: &str, text: &str) -> Result<(), Failure> {
    let part = Part::named(kind).ok_or_else(|| {
        Failure::Other(format!(
            "kind: unknown part {kind:?}; expected link, traffic, page or arm"
        ))
    })?;
    Ok(sojourn_lab::check_part(part, text)?)
}
