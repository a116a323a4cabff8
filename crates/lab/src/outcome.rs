//! The outcome of a scenario: the tables of all runs, and the manifest.

use arrow_array::RecordBatch;

use crate::manifest::{Manifest, Provenance, RunFact};
use crate::tables::{Cell, TABLES, Table, TableKind, batches, empty_batches};
use sojourn_scenario::Scenario;

/// The tables of a scenario's runs, and where they come from.
#[derive(Clone, Debug)]
pub struct Outcome {
    manifest: Manifest,
    /// In the order of [`TableKind::ALL`].
    tables: Vec<Table>,
    /// The digest of the manifest that it was loaded with.
    loaded: Option<String>,
}

/// What one run adds to an outcome.
#[derive(Debug)]
pub(crate) struct Piece {
    /// In the order of [`TableKind::ALL`].
    pub(crate) tables: [RecordBatch; TABLES],
    pub(crate) validity: Vec<RunFact>,
}

impl Piece {
    pub(crate) fn of(cell: Cell<'_>) -> Self {
        let facts = cell.records.validity.iter();
        Self {
            tables: batches(cell),
            validity: facts
                .map(|fact| RunFact {
                    arm: cell.arm.to_owned(),
                    replication: cell.replication,
                    name: fact.name.to_owned(),
                    value: fact.value.clone(),
                    passed: fact.passed,
                })
                .collect(),
        }
    }
}

impl Outcome {
    /// Of the pieces of the runs finished so far, in the order of the runs.
    pub(crate) fn of(
        scenario: Scenario,
        provenance: Provenance,
        finished: Vec<Piece>,
        total: usize,
    ) -> Self {
        let mut manifest = Manifest::of(scenario, provenance, finished.len(), total);
        let mut tables = empty_batches().map(|batch| (batch.schema(), Vec::new()));
        for piece in finished {
            manifest.validity.extend(piece.validity);
            for (batch, (_, batches)) in piece.tables.into_iter().zip(&mut tables) {
                batches.push(batch);
            }
        }
        let tables = tables.map(|(schema, batches)| Table::new(schema, batches));
        Self {
            manifest,
            tables: tables.into(),
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
