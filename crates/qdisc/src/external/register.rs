//! The external queues that this process registered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock, RwLockReadGuard};

use super::spec::{ExternalSpec, Origin, PREFIXES, QueueClass};
use crate::parameters::{Entry, TcStatistics};

/// The name of an external queue is not one that a specification can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterError(String);

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        let prefixes = PREFIXES.join(" or ");
        write!(
            f,
            "invalid queue name {name:?}; expected {prefixes}, then letters, digits, '_' and ':'"
        )
    }
}

impl std::error::Error for RegisterError {}

/// The registered queues by name.
static REGISTERED: LazyLock<RwLock<BTreeMap<String, Arc<dyn QueueClass>>>> =
    LazyLock::new(RwLock::default);

fn registered() -> RwLockReadGuard<'static, BTreeMap<String, Arc<dyn QueueClass>>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an external queue for the rest of the process; one of the same name is replaced.
///
/// # Errors
/// If the name is not valid.
pub fn register(class: Arc<dyn QueueClass>) -> Result<(), RegisterError> {
    let name = class.name().to_owned();
    let valid = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    if !is_external(&name) || !name.chars().all(valid) {
        return Err(RegisterError(name));
    }
    let mut all = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(name, class);
    Ok(())
}

/// Whether `name` is that of an external queue, registered or not.
pub fn is_external(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Where a registered queue comes from.
pub fn origin_of(name: &str) -> Option<Origin> {
    registered().get(name).map(|class| class.origin())
}

/// The queue called `name` at its defaults; one that cannot be built if this process does not have it.
pub(super) fn at_defaults(name: &str) -> Option<ExternalSpec> {
    if !is_external(name) {
        return None;
    }
    let class = registered().get(name).map(Arc::clone);
    let of = class.as_deref();
    Some(ExternalSpec {
        entry: entry(intern(name), of),
        values: of.map_or_else(Vec::new, QueueClass::defaults),
        class,
        words: String::new(),
    })
}

impl ExternalSpec {
    /// A queue of a class that need not be registered, at its defaults.
    pub fn of(class: Arc<dyn QueueClass>) -> Self {
        let name = intern(class.name());
        Self {
            entry: entry(name, Some(&*class)),
            values: class.defaults(),
            class: Some(class),
            words: String::new(),
        }
    }
}

/// What is known of a class.
fn entry(name: &'static str, class: Option<&dyn QueueClass>) -> Entry {
    Entry {
        name,
        page: None,
        class: None,
        summary: class.map_or("", QueueClass::summary),
        source: class.map_or("", QueueClass::source),
        reconstruction: None,
        profiles: &[],
        parameters: class.map_or(&[], QueueClass::parameters),
        tc_statistics: TcStatistics::default(),
    }
}

/// One copy of each text for the rest of the process, such as a name: their number is that of the queues
/// that the program has ever named.
pub fn intern(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return known;
    }
    let text: &'static str = text.to_owned().leak();
    texts.insert(text);
    text
}
