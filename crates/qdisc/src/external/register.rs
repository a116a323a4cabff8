//! The disciplines that this process registered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock, RwLockReadGuard};

use super::queue::Ticket;
use super::spec::{ExternalSpec, Maker, PYTHON_PREFIX, QueueClass};
use crate::parameters::{Entry, Params, TcStatistics};

/// Why a discipline was not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterError {
    /// The name is empty or has a character that a specification cannot hold.
    Name(String),
    /// A discipline of the catalogue has this name.
    Taken(String),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "invalid queue name {name:?}; expected letters, digits, '_', ':' and '.'"
            ),
            Self::Taken(name) => {
                write!(
                    f,
                    "the queue name {name:?} is already in use; expected another name"
                )
            }
        }
    }
}

impl std::error::Error for RegisterError {}

/// The registered disciplines by name, at their defaults.
static REGISTERED: LazyLock<RwLock<BTreeMap<String, ExternalSpec>>> =
    LazyLock::new(RwLock::default);

fn registered() -> RwLockReadGuard<'static, BTreeMap<String, ExternalSpec>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the discipline with the parameters `T`, under each of its names, for the rest of the process;
/// one of the same name is replaced. `taken` tells which names belong to this crate.
pub(crate) fn register<T>(taken: fn(&str) -> bool) -> Result<(), RegisterError>
where
    T: Params + Clone + fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe,
    T::Queue<Ticket>: Clone + fmt::Debug + 'static,
{
    for kind in T::KINDS {
        let entry = Entry {
            // Both belong to the documentation and the package of this repository.
            class: None,
            ..kind.entry(None, T::TC_STATISTICS)
        };
        let maker = Maker::Declared(Box::new((kind.start)()));
        add(ExternalSpec { entry, maker }, taken)?;
    }
    Ok(())
}

/// Adds a class for the rest of the process; one of the same name is replaced. `taken` tells which
/// names belong to this crate.
pub(crate) fn register_class(
    class: Arc<dyn QueueClass>,
    taken: fn(&str) -> bool,
) -> Result<(), RegisterError> {
    let entry = entry_of_class(class.name());
    let maker = Maker::Class(class);
    add(ExternalSpec { entry, maker }, taken)
}

fn add(spec: ExternalSpec, taken: fn(&str) -> bool) -> Result<(), RegisterError> {
    let name = spec.entry.name.to_owned();
    let valid = |c: char| c.is_ascii_alphanumeric() || "_:.".contains(c);
    if name.is_empty() || !name.chars().all(valid) {
        return Err(RegisterError::Name(name));
    }
    if taken(&name) {
        return Err(RegisterError::Taken(name));
    }
    let mut all = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(name, spec);
    Ok(())
}

/// Whether `name` is that of a registered discipline, or of a class of Python.
pub fn is_external(name: &str) -> bool {
    name.starts_with(PYTHON_PREFIX) || registered().contains_key(name)
}

/// The program text of a registered class.
pub fn source_of(name: &str) -> Option<String> {
    match &registered().get(name)?.maker {
        Maker::Class(class) => Some(class.source().to_owned()),
        Maker::Declared(_) | Maker::NotLoaded => None,
    }
}

/// The registered disciplines by name; classes of Python, which have no name to type, are left out.
pub(super) fn entries() -> Vec<Entry> {
    let registered = registered();
    let entries = registered.values().map(|spec| spec.entry);
    entries
        .filter(|entry| !entry.name.starts_with(PYTHON_PREFIX))
        .collect()
}

/// The discipline called `name` at its defaults; one that cannot be built if it is a class of Python
/// that this process does not have.
pub(super) fn at_defaults(name: &str) -> Option<ExternalSpec> {
    let known = registered().get(name).cloned();
    known.or_else(|| {
        name.starts_with(PYTHON_PREFIX).then(|| ExternalSpec {
            entry: entry_of_class(name),
            maker: Maker::NotLoaded,
        })
    })
}

fn entry_of_class(name: &str) -> Entry {
    Entry {
        name: intern(name),
        page: None,
        class: None,
        summary: "A class",
        source: "external",
        reconstruction: None,
        profiles: &[],
        parameters: &[],
        tc_statistics: TcStatistics::default(),
    }
}

/// One copy of each name for the rest of the process: their number is that of the queues that
/// the program has ever named.
fn intern(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = name.to_owned().leak();
    names.insert(name);
    name
}
