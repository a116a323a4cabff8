//! Metrics: declared and computed, one row per metric, from the tables of a result or from the
//! records of a run as soon as it ends.

mod applications;
mod cells;
mod classes;
mod formulas;
mod groups;
mod latency;
mod links;
mod measurements;
mod meter;
mod parts;
mod rows;
mod runs;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::tables::{TABLES, Table, TableKind};
use rows::Window;

pub use formulas::jain;
pub use latency::averaged_pings;
pub use measurements::{Measurements, OnThread, Row};
pub use meter::Meter;
pub use parts::{Means, Parts, RunMeans, Stretch, load_means, part_means, replies, stuck};
pub use rows::read_stream;

impl Outcome {
    /// The metrics of every finished run: `arm`, `replication`, `group` unless by run, the metrics.
    ///
    /// # Errors
    /// If a loaded table lacks a column.
    pub fn metrics(&self, by: Scope) -> Result<Table, ArrowError> {
        let scenario = self.scenario();
        let window = Window::of(scenario.warmup(), scenario.duration());
        let mut held: [Vec<RecordBatch>; TABLES] = Default::default();
        for &kind in by.tables() {
            held[kind as usize] = if (by, kind) == (Scope::Run, TableKind::Pings) {
                self.table(kind).split().0
            } else {
                self.table(kind).batches()?
            };
        }
        let tables = |kind| held[kind as usize].as_slice();
        if by == Scope::Run {
            let pings = self.table(TableKind::Pings);
            let (_, stored) = pings.split();
            let later = stored.into_iter().map(|rows| rows.read(&pings.schema()));
            return runs::metrics(&tables, later, window);
        }
        of_tables(by, &tables, window)
    }
}

/// The metrics of every run of some tables; times are in seconds.
///
/// # Errors
/// If a table lacks a column, or a column has another type.
pub fn metrics<'a>(
    by: Scope,
    tables: &dyn Fn(TableKind) -> &'a [RecordBatch],
    warmup_s: f64,
    measured_s: f64,
) -> Result<Table, ArrowError> {
    let window = Window {
        warmup: warmup_s,
        length: measured_s,
    };
    of_tables(by, tables, window)
}

fn of_tables<'a>(
    by: Scope,
    tables: &dyn Fn(TableKind) -> &'a [RecordBatch],
    window: Window,
) -> Result<Table, ArrowError> {
    match by {
        Scope::Run => runs::metrics(tables, std::iter::empty(), window),
        Scope::Group => groups::metrics(tables, window),
        Scope::Class => classes::metrics(tables, window),
        Scope::Application => applications::metrics(tables, window),
        Scope::Link => links::metrics(tables, window),
    }
}

/// What a metric is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A run.
    Run,
    /// A group of flows.
    Group,
    /// A class of a queue.
    Class,
    /// A group of applications.
    Application,
    /// A link.
    Link,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [
        Self::Run,
        Self::Group,
        Self::Class,
        Self::Application,
        Self::Link,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Group => "group",
            Self::Class => "class",
            Self::Application => "application",
            Self::Link => "link",
        }
    }

    /// The scope of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// The tables from which its metrics are computed.
    const fn tables(self) -> &'static [TableKind] {
        match self {
            Self::Run => &[TableKind::Links, TableKind::Flows, TableKind::Pings],
            Self::Group => &[TableKind::Flows, TableKind::Links],
            Self::Class => &[TableKind::Classes],
            Self::Application => &[TableKind::Applications, TableKind::Transactions],
            Self::Link => &[TableKind::Links],
        }
    }

    /// Its metrics, in the order of their columns.
    pub fn declarations(self) -> Vec<Declaration> {
        fn declared<F>(metrics: &[Metric<F>]) -> Vec<Declaration> {
            metrics.iter().map(|metric| metric.declared).collect()
        }
        match self {
            Self::Run => runs::METRICS.iter().map(|metric| metric.declared).collect(),
            Self::Group => declared(groups::METRICS),
            Self::Class => declared(classes::METRICS),
            Self::Application => declared(applications::METRICS),
            Self::Link => declared(links::METRICS),
        }
    }
}

/// How important a metric is in tables and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Always shown first.
    Headline,
    /// Shown in comparisons.
    Compared,
    /// Shown in complete tables.
    Detail,
    /// Shown if there is space.
    Minor,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Headline => "headline",
            Self::Compared => "compared",
            Self::Detail => "detail",
            Self::Minor => "minor",
        }
    }
}

/// A metric, as documents and tables describe it.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Name of its column; of a run with a placeholder for the direction or the link.
    pub name: &'static str,
    /// What it is called in tables and figures.
    pub label: &'static str,
    /// Its unit; empty for numbers without one.
    pub unit: &'static str,
    /// Decimals that tables show if the uncertainty is unknown.
    pub digits: u8,
    /// Its definition, in Markdown.
    pub description: &'static str,
    /// How important it is.
    pub role: Role,
    /// Whether summaries contain it.
    pub shown: bool,
    /// Whether it is a whole number.
    pub whole: bool,
}

impl Declaration {
    /// Declares a metric that complete tables show.
    const fn new(
        name: &'static str,
        label: &'static str,
        (digits, unit): (u8, &'static str),
        description: &'static str,
    ) -> Self {
        Self {
            name,
            label,
            unit,
            digits,
            description,
            role: Role::Detail,
            shown: true,
            whole: false,
        }
    }
}

/// A metric and its formula.
#[derive(Clone, Copy, Debug)]
struct Metric<F> {
    declared: Declaration,
    value: F,
}

impl<F: Copy> Metric<F> {
    const fn new(
        name: &'static str,
        label: &'static str,
        unit: (u8, &'static str),
        description: &'static str,
        value: F,
    ) -> Self {
        Self {
            declared: Declaration::new(name, label, unit, description),
            value,
        }
    }

    const fn role(mut self, role: Role) -> Self {
        self.declared.role = role;
        self
    }

    /// Summaries do not contain it.
    const fn hidden(mut self) -> Self {
        self.declared.shown = false;
        self
    }

    /// It is a whole number.
    const fn whole(mut self) -> Self {
        self.declared.whole = true;
        self
    }
}

/// Every metric, by scope, in the order of the columns.
///
/// ```text
/// [{name, scope, label, unit, digits, role, shown, description}]
/// ```
pub fn metric_catalogue_json() -> String {
    let rows = Scope::ALL.into_iter().flat_map(|scope| {
        let declared = scope.declarations().into_iter();
        declared.map(move |metric| {
            json!({
                "column": metric.name,
                "scope": scope.name(),
                "label": metric.label,
                "unit": metric.unit,
                "digits": metric.digits,
                "role": metric.role.name(),
                "shown": metric.shown,
                "description": metric.description,
            })
        })
    });
    Value::Array(rows.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_declared_once_and_described() {
        for scope in Scope::ALL {
            assert_eq!(Scope::named(scope.name()), Some(scope));
            let mut names = BTreeSet::new();
            for metric in scope.declarations() {
                assert!(names.insert(metric.name), "{}", metric.name);
                assert!(metric.description.ends_with('.'), "{}", metric.name);
                assert!(!metric.label.is_empty(), "{}", metric.name);
            }
        }
    }
}
