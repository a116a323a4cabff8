//! The event loop: links with queues, wires, hosts with TCP, QUIC, UDP, ping and applications, and probes.
//!
//! [`run`] turns a [`Config`] into
//! [`Records`](sojourn_records::Records) and is a pure function of it: the same configuration gives
//! the same records, to the bit, on any machine.
//!
//! # Speed
//!
//! The gain is in having few events. A wire keeps its packets in a ring and only its head in the
//! agenda; a timer that moves is looked at when it fires, not cancelled; an event that is next
//! anyway never enters the agenda. A packet is 64 bytes and moves by value.

mod agenda;
mod capture;
mod host;
mod medium;
mod packet;
mod probe;
mod world;

use sojourn_backend::{
    Backend, BackendError, Cancellation, Completion, Feature, Fingerprint, Properties, Unsupported,
};
use sojourn_net::Rng;
use sojourn_records::RecordSink;
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{Config, ConfigError, Traffic, controller};

pub use agenda::{Agenda, Event};
pub use packet::Packet;
#[doc(hidden)]
pub use world::run_on_wires;
pub use world::{
    FlowStep, LinkStep, Simulation, TimedController, run, run_captured, run_controlled,
};

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

    /// Every feature of a plan is supported, except programs and packets of other machines.
    fn check(&self, plan: &Plan) -> Result<(), Unsupported> {
        Unsupported::unless_empty(self.name(), unsupported(&plan.config).collect())
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
        let controller = controller_of(plan)?;
        let records = run_controlled(&plan.config, controller, sink.capture(), &mut keep_going)?;
        let Some(records) = records else {
            return Ok(Completion::Cancelled);
        };
        records.send(sink);
        Ok(Completion::Finished)
    }
}

/// The controller of a plan, and the time between its calls.
fn controller_of(plan: &Plan) -> Result<Option<TimedController>, ConfigError> {
    let Some(name) = &plan.controller else {
        return Ok(None);
    };
    let class = controller(name).ok_or_else(|| ConfigError {
        place: "controller".to_owned(),
        rule: format!("{name} is not loaded in this process; define the class first"),
    })?;
    let rng = Rng::new(plan.config.seed).fork("controller");
    Ok(Some((class.start(&plan.config, rng), class.interval())))
}

/// The features of `config` that cannot be simulated.
pub(crate) fn unsupported(config: &Config) -> impl Iterator<Item = Feature> {
    let flows = config.flows.iter().enumerate();
    flows.filter_map(|(n, flow)| {
        let what = match flow.traffic {
            Traffic::Program(_) => "a program (only live runs start programs)",
            Traffic::Bridged => {
                "packets of other machines (only `sojourn bridge` and `sojourn interop` pass them)"
            }
            _ => return None,
        };
        Some(Feature {
            place: format!("flows[{n}].type"),
            what: what.into(),
        })
    })
}
