//! The names of a discipline, each with its own defaults.

use super::parameter::Parameter;
use super::profile::Profile;

/// The profiles of a discipline that follows Linux 6.1 alone.
pub(crate) const LINUX: &[Profile] = &[Profile::Linux];
/// The profiles of a discipline that has all three.
pub(crate) const ALL_PROFILES: &[Profile] = &[Profile::Rfc, Profile::Linux, Profile::Linux314];

/// One name of a discipline with parameters `T`, and the defaults it stands for.
#[derive(Debug)]
pub(crate) struct Kind<T> {
    pub(crate) name: &'static str,
    /// The generated Python class; `None` for a second name of the same defaults.
    pub(crate) class: Option<&'static str>,
    /// What it does, in one line.
    pub(crate) summary: &'static str,
    /// Where it is specified.
    pub(crate) source: &'static str,
    /// What no source gives and this implementation supplies; `None`: nothing.
    pub(crate) reconstruction: Option<&'static str>,
    /// What it can follow; the first is the default.
    pub(crate) profiles: &'static [Profile],
    /// The parameters at the defaults of this name.
    pub(crate) start: fn() -> T,
    /// The parameters that this name accepts.
    pub(crate) parameters: &'static [Parameter],
}

/// A [`Kind`] of any discipline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// The first name of the discipline, under which it is documented.
    pub(crate) page: &'static str,
    pub(crate) class: Option<&'static str>,
    pub(crate) summary: &'static str,
    pub(crate) source: &'static str,
    pub(crate) reconstruction: Option<&'static str>,
    pub(crate) profiles: &'static [Profile],
    pub(crate) parameters: &'static [Parameter],
}

impl<T> Kind<T> {
    /// This name, documented on `page`.
    pub(crate) const fn entry(&self, page: &'static str) -> Entry {
        Entry {
            name: self.name,
            page,
            class: self.class,
            summary: self.summary,
            source: self.source,
            reconstruction: self.reconstruction,
            profiles: self.profiles,
            parameters: self.parameters,
        }
    }
}
