//! The simulator as a backend.

use sojourn_backend::{
    Backend, BackendError, Cancellation, Completion, Fingerprint, Properties, Unsupported,
};
use sojourn_records::RecordSink;
use sojourn_scenario::Plan;

use crate::unsupported::unsupported;
use crate::world::run_captured;

/// Runs plans in simulated time: deterministic, and as many at once as there are processors.
#[derive(Clone, Debug, Default)]
pub struct Simulator {
    /// Git commit of the build; `None`: unknown.
    pub commit: Option<String>,
}

impl Backend for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn properties(&self) -> Properties {
        Properties {
            deterministic: true,
            max_concurrency: None,
            fingerprint: Fingerprint {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: self.commit.clone(),
                kernel: None,
            },
        }
    }

    /// Every feature of a plan is supported, except programs.
    fn check(&self, plan: &Plan) -> Result<(), Unsupported> {
        let features: Vec<_> = unsupported(&plan.config).collect();
        if features.is_empty() {
            return Ok(());
        }
        Err(Unsupported {
            backend: self.name(),
            features,
        })
    }

    fn can_capture(&self) -> bool {
        true
    }

    fn run(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        sink: &mut dyn RecordSink,
    ) -> Result<Completion, BackendError> {
        self.check(plan)?;
        let mut keep_going = |time| !cancellation.is_requested_at(time);
        let records = run_captured(&plan.config, sink.capture(), &mut keep_going)?;
        let Some(records) = records else {
            return Ok(Completion::Cancelled);
        };
        records.send(sink);
        Ok(Completion::Finished)
    }
}
