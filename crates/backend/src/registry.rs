//! Backends by name.

use std::fmt;

use crate::contract::Backend;

/// The backends of a program; the first one is the default.
#[derive(Default)]
pub struct Registry {
    backends: Vec<Box<dyn Backend>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Registry {
    /// Without backends.
    pub const fn new() -> Self {
        Self {
            backends: Vec::new(),
        }
    }

    /// Adds `backend`; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, backend: Box<dyn Backend>) -> Self {
        let name = backend.name();
        match self.backends.iter().position(|other| other.name() == name) {
            Some(at) => self.backends[at] = backend,
            None => self.backends.push(backend),
        }
        self
    }

    /// The names, the default first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.backends.iter().map(|backend| backend.name())
    }

    /// The backend called `name`; `None`: the default.
    ///
    /// # Errors
    /// If there is no such backend.
    pub fn get(&self, name: Option<&str>) -> Result<&dyn Backend, UnknownBackend> {
        let found = match name {
            Some(name) => self.backends.iter().find(|b| b.name() == name),
            None => self.backends.first(),
        };
        found.map(Box::as_ref).ok_or_else(|| UnknownBackend {
            name: name.unwrap_or_default().to_owned(),
            known: self.names().collect(),
        })
    }
}

/// A name that no backend has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBackend {
    /// The name.
    pub name: String,
    /// The names of the backends.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.join(", ");
        write!(
            f,
            "unknown backend \"{}\"; expected one of {known}",
            self.name
        )
    }
}

impl std::error::Error for UnknownBackend {}
