//! Queues in shared libraries.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use sojourn_plugin::host::Plugin;
use sojourn_qdisc::{PLUGIN_PREFIX, QueueClass as _, origin_of};

use crate::errors::Failure;

/// The prefix of the names of queues in shared libraries.
#[pyfunction]
pub(crate) const fn plugin_prefix() -> &'static str {
    PLUGIN_PREFIX
}

/// Load the queue in a shared library, which runs its code, and return its name in scenarios.
///
/// The name contains the first digits of the SHA-256 of the file.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
pub(crate) fn load_plugin(py: Python<'_>, file: PathBuf) -> Result<String, Failure> {
    let plugin = py.detach(|| Plugin::load(&file)).map_err(|error| {
        let message = format!("{}: {error}", file.display());
        Failure::Scenario(message.into())
    })?;
    let name = plugin.name().to_owned();
    sojourn_qdisc::register(Arc::new(plugin))
        .map_err(|error| Failure::Scenario(error.to_string().into()))?;
    Ok(name)
}

/// Return the version and the SHA-256 of a plug-in that this process has loaded.
#[pyfunction]
pub(crate) fn queue_origin(name: &str) -> (Option<String>, Option<String>) {
    let origin = origin_of(name).unwrap_or_default();
    (origin.version, origin.sha256)
}
