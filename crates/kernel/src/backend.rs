//! The kernel as a backend.

use std::sync::Mutex;
use std::{fmt, io};

use sojourn_backend::{
    Backend, BackendError, Cancellation, Completion, Fingerprint, Properties, Unsupported, locked,
};
use sojourn_records::RecordSink;
use sojourn_scenario::Plan;

use crate::folder::{Folder, Kernel};
use crate::instructions;
use crate::machine::{self, End, NO_PTRACE};
use crate::network::Paths;
use crate::results;
use crate::run_folder::RunFolder;
use crate::support;

/// The kernels that always have a name; others have one when they were built.
const VERSIONS: [&str; 2] = ["6.1", "6.12"];
/// What the names of kernels begin with.
const PREFIX: &str = "linux-";

/// Runs plans in User-Mode Linux, in virtual time.
pub struct LinuxKernel {
    name: &'static str,
    folder: Folder,
    commit: Option<String>,
}

impl fmt::Debug for LinuxKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinuxKernel")
            .field("name", &self.name)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl LinuxKernel {
    /// Whether this build can run User-Mode Linux: it needs Linux on x86-64.
    pub const IS_AVAILABLE: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

    /// The backend of a kernel in `folder`; `version` is its version, such as `6.12`.
    pub fn new(version: &str, folder: Folder, commit: Option<String>) -> Self {
        Self {
            name: interned(&format!("{PREFIX}{version}")),
            folder,
            commit,
        }
    }

    /// The backends of the kernels in `folder`: those with a fixed name, and others that were built.
    pub fn all(folder: &Folder, commit: Option<&str>) -> Vec<Self> {
        if !Self::IS_AVAILABLE {
            return Vec::new();
        }
        let mut versions: Vec<_> = VERSIONS.map(str::to_owned).to_vec();
        let built = folder.versions().into_iter();
        versions.extend(built.filter(|version| !VERSIONS.contains(&version.as_str())));
        let backend =
            |version: &String| Self::new(version, folder.clone(), commit.map(str::to_owned));
        versions.iter().map(backend).collect()
    }

    fn version(&self) -> &'static str {
        self.name.strip_prefix(PREFIX).unwrap_or(self.name)
    }

    /// The kernel, if it was built.
    pub fn kernel(&self) -> Option<Kernel> {
        self.folder.find(self.version())
    }

    fn failed(&self, reason: String) -> BackendError {
        BackendError::Failed {
            backend: self.name,
            reason,
        }
    }
}

/// The only copy of a name, which lives as long as the program.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = locked(&NAMES);
    let known = names.iter().find(|known| **known == name).copied();
    known.unwrap_or_else(|| {
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        names.push(name);
        name
    })
}

impl Backend for LinuxKernel {
    fn name(&self) -> &'static str {
        self.name
    }

    fn properties(&self) -> Properties {
        let kernel = self.kernel();
        Properties {
            deterministic: kernel.as_ref().is_some_and(|kernel| kernel.is_seeded),
            max_concurrency: None,
            fingerprint: Fingerprint {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: self.commit.clone(),
                kernel: kernel.map(|kernel| kernel.release),
            },
        }
    }

    fn check(&self, plan: &Plan) -> Result<(), Unsupported> {
        // A kernel that is not built yet will have them.
        let has_modules = self.kernel().is_none_or(|kernel| kernel.has_modules);
        support::check(self.name, plan, has_modules)
    }

    fn run(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        sink: &mut dyn RecordSink,
    ) -> Result<Completion, BackendError> {
        plan.config.check()?;
        self.check(plan)?;
        let Some(kernel) = self.kernel() else {
            let version = self.version();
            let folder = self.folder.path().display();
            return Err(BackendError::Environment(format!(
                "no kernel {version} in {folder}; to build it: sojourn kernel build {version}"
            )));
        };
        let paths = Paths::of(plan).map_err(|(_, _, what)| self.failed(what.to_owned()))?;
        let of_files = |error: io::Error| self.failed(error.to_string());
        let folder = RunFolder::create().map_err(of_files)?;
        instructions::write(plan, &paths, folder.path()).map_err(of_files)?;
        let end = machine::run(&kernel, folder.path(), plan.config.seed, cancellation);
        match end.map_err(of_files)? {
            End::Cancelled => Ok(Completion::Cancelled),
            End::Failed(reason) if reason == NO_PTRACE => Err(BackendError::Environment(reason)),
            End::Failed(reason) => Err(self.failed(reason)),
            End::Finished => {
                results::emit(plan, &paths, folder.path(), sink).map_err(of_files)?;
                Ok(Completion::Finished)
            }
        }
    }
}
