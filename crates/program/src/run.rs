//! Running a scenario file.

use std::path::Path;

use sojourn_backend::{Backend, BackendError, Registry};
use sojourn_lab::{Build, Claim, Outcome, Replace, RunOptions, Scenario};
use sojourn_sim::Simulator;

use crate::arguments::{Output, Problem, Run};
use crate::signals::Signals;
use crate::summary;

/// The backend with real packets.
#[cfg(target_os = "linux")]
const LIVE: &str = "live";

/// The version and the commit of the build.
pub(crate) fn version() -> String {
    let build = Build::current();
    format!("sojourn {} ({})\n", build.version, build.commit_text())
}

/// Runs a file and saves the result if asked to; returns the summary and the exit code.
///
/// A signal ends it with the runs that have finished.
pub(crate) fn run(asked: &Run) -> Result<(String, u8), Problem> {
    let file = asked.file.display();
    let text = std::fs::read_to_string(&asked.file)
        .map_err(|error| Problem::environment(format!("{file}: {error}")))?;
    let folder = asked.file.parent().unwrap_or(Path::new("."));
    let mut scenario = Scenario::from_toml_in(&text, folder)
        .map_err(|error| Problem::usage(format!("{file}: {error}")))?;
    if let Some(seed) = asked.seed {
        let change = ("seed".to_owned(), seed.to_string());
        scenario = scenario.changed(&[change]).map_err(Problem::usage)?;
    }
    let registry = registry();
    let backend = registry.get(asked.on.as_deref()).map_err(Problem::usage)?;
    prepare(backend)?;
    let claim = claimed(&asked.output)?;
    let signals = Signals::receive()?;
    let options = RunOptions {
        jobs: asked.jobs,
        cancel: &signals.ended,
        ..RunOptions::default()
    };
    let outcome = sojourn_lab::run(backend, &scenario, options).map_err(of_backend)?;
    let status = signals.status().unwrap_or(0);
    if !outcome.is_complete() {
        let (finished, total) = (outcome.finished(), outcome.total());
        eprintln!("sojourn: interrupted: finished {finished} of {total} runs");
        if finished == 0 {
            return Ok((String::new(), status));
        }
    }
    saved(&outcome, claim.as_ref())?;
    Ok((summary::of(&outcome), status))
}

fn registry() -> Registry {
    let commit = Build::current().commit;
    let registry = Registry::new().with(Box::new(Simulator {
        commit: commit.clone(),
    }));
    #[cfg(target_os = "linux")]
    let registry = registry.with(Box::new(sojourn_live::Live::new(
        commit,
        sojourn_live::Options::default(),
    )));
    registry
}

/// Live runs create network namespaces.
fn prepare(backend: &dyn Backend) -> Result<(), Problem> {
    #[cfg(target_os = "linux")]
    if backend.name() == LIVE {
        sojourn_live::enter_user_namespace().map_err(Problem::environment)?;
    }
    let _ = backend;
    Ok(())
}

/// Reserves the directory of the result, so that errors appear before the runs.
pub(crate) fn claimed(output: &Output) -> Result<Option<Claim>, Problem> {
    let Some(folder) = &output.folder else {
        return Ok(None);
    };
    let replace = if output.force {
        Replace::Result
    } else {
        Replace::Nothing
    };
    let claim = Claim::new(folder, replace, None).map_err(Problem::environment)?;
    Ok(Some(claim))
}

/// Saves a result in its directory.
pub(crate) fn saved(outcome: &Outcome, claim: Option<&Claim>) -> Result<(), Problem> {
    let Some(claim) = claim else { return Ok(()) };
    outcome.save_to(claim).map_err(Problem::environment)?;
    eprintln!("wrote {}: sojourn report {0}", claim.path().display());
    Ok(())
}

/// What the scenario asks for and the backend has not is invalid input; the rest is the machine.
pub(crate) fn of_backend(error: BackendError) -> Problem {
    match error {
        BackendError::Plan(_) | BackendError::Unsupported(_) => Problem::usage(error),
        BackendError::Memory(_) | BackendError::Environment(_) | BackendError::Failed { .. } => {
            Problem::environment(error)
        }
    }
}
