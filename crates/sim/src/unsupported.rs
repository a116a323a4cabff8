//! Features of a configuration that the simulator does not have.

use sojourn_backend::Feature;
use sojourn_scenario::plan::{Config, FlowConfig};

/// The features of `config` that cannot be simulated.
pub(crate) fn unsupported(config: &Config) -> impl Iterator<Item = Feature> {
    let flows = config.flows.iter().enumerate();
    let programs = flows.filter(|(_, flow)| FlowConfig::is_program(flow));
    programs.map(|(n, _)| Feature {
        place: format!("flows[{n}].type"),
        what: "a program (only live runs start programs)".into(),
    })
}
