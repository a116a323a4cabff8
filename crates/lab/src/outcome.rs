//! The outcome of a scenario: the tables of all runs, and the manifest.

use arrow_schema::ArrowError;
use sojourn_scenario::Scenario;

use crate::gathered::{Gathered, Whereabouts};
use crate::keys::Keys;
use crate::manifest::{Build, Manifest, Provenance};
use crate::piece::Piece;
use crate::stored::damaged;
use crate::tables::{Table, TableKind, empty_batches};

/// The tables of a scenario's runs, and where they come from.
#[derive(Clone, Debug)]
pub struct Outcome {
    manifest: Manifest,
    /// In the order of [`TableKind::ALL`].
    tables: Vec<Table>,
    /// The digest of the manifest that it was loaded with.
    loaded: Option<String>,
}

impl Outcome {
    /// Of the runs finished so far.
    pub(crate) fn of(
        scenario: Scenario,
        provenance: Provenance,
        finished: Gathered,
        total: usize,
    ) -> Self {
        let mut manifest = Manifest::of(scenario, provenance, finished.runs(), total);
        let (tables, validity) = finished.into_parts();
        manifest.validity.extend(validity);
        let schemas = empty_batches().map(|batch| batch.schema());
        let tables = schemas.into_iter().zip(tables);
        Self {
            manifest,
            tables: tables
                .map(|(schema, pieces)| Table::of_runs(schema, pieces))
                .collect(),
            loaded: None,
        }
    }

    /// Of what was read: a table for each of [`TableKind::ALL`], and the digest of the manifest if
    /// it was loaded.
    pub(crate) fn from_parts(
        manifest: Manifest,
        loaded: Option<String>,
        tables: Vec<Table>,
    ) -> Self {
        Self {
            manifest,
            tables,
            loaded,
        }
    }

    /// The digest of the manifest that it was loaded with; `None`: it was not loaded.
    pub fn loaded_digest(&self) -> Option<&str> {
        self.loaded.as_deref()
    }

    /// Whether every run finished.
    pub fn is_complete(&self) -> bool {
        self.finished() == self.total()
    }

    /// How many runs finished.
    pub fn finished(&self) -> usize {
        self.manifest.finished
    }

    /// How many runs the scenario asks for.
    pub fn total(&self) -> usize {
        self.manifest.total
    }

    /// What was run.
    pub fn scenario(&self) -> &Scenario {
        &self.manifest.scenario
    }

    /// Version, commit, scenario, seed and hash.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// One of the tables.
    pub fn table(&self, kind: TableKind) -> &Table {
        &self.tables[kind as usize]
    }
}

impl Outcome {
    /// Puts runs of `scenario` together: their numbers, counted arm by arm, and what
    /// [`crate::run_one`] returned; `provenance` is that of all of them.
    ///
    /// # Errors
    /// If a part is not that run of this scenario in the same build.
    pub fn assemble<'a>(
        scenario: &Scenario,
        provenance: Provenance,
        parts: impl Iterator<Item = (usize, &'a [u8])>,
    ) -> Result<Self, ArrowError> {
        let keys = Keys::of(scenario, &provenance, &Build::current(), None).runs;
        let mut gathered = Gathered::default();
        for (number, bytes) in parts {
            let key = keys.get(number).ok_or_else(damaged)?;
            gathered.add(number, Piece::from_bytes(bytes, key)?, Whereabouts::Memory);
        }
        Ok(Self::of(scenario.clone(), provenance, gathered, keys.len()))
    }
}
