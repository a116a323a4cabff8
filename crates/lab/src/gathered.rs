//! The runs of an outcome as they end: what is large stays in the run store.
//!
//! A run of a minute has 1 MB of tables, almost all of it series. Of the rest, the columns take less than their
//! descriptions, so the small tables of runs that follow each other become one piece.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use sojourn_store::Payload;

use crate::manifest::RunFact;
use crate::piece::Piece;
use crate::stored::{Sections, StoredRows};
use crate::tables::{Rows, TABLES, empty_batches};

/// Pieces with more rows than this stay in the run store, and are never merged.
const MOST_HELD: usize = 64;

/// How many runs that follow each other are merged.
const BLOCK: usize = 64;

/// Where the tables of a run are in the run store.
#[derive(Debug)]
pub(crate) struct InStore {
    pub(crate) payload: Payload,
    pub(crate) sections: Sections,
}

/// What is known of a run that ended.
#[derive(Debug)]
pub(crate) enum Whereabouts {
    /// It is only in memory.
    Memory,
    /// It is in the store, too.
    Store(InStore),
    /// The store has it when it has committed more records than this number.
    Handed(usize, InStore),
}

/// The runs that have ended, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Gathered {
    schemas: [RecordBatch; TABLES],
    /// By the number of the first run of each.
    blocks: BTreeMap<usize, Block>,
    /// Runs that the store has not committed yet.
    uncommitted: Vec<(usize, usize, InStore)>,
    runs: usize,
    /// How many runs of each block are complete.
    complete: BTreeMap<usize, usize>,
}

/// Runs that follow each other.
#[derive(Debug, Default)]
struct Block {
    tables: [Vec<Rows>; TABLES],
    validity: Vec<RunFact>,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            schemas: empty_batches(),
            blocks: BTreeMap::new(),
            uncommitted: Vec::new(),
            runs: 0,
            complete: BTreeMap::new(),
        }
    }
}

impl Gathered {
    /// How many runs there are.
    pub(crate) const fn runs(&self) -> usize {
        self.runs
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, number: usize, piece: Piece, at: Whereabouts) {
        let mut block = Block {
            validity: piece.validity,
            ..Block::default()
        };
        let tables = block.tables.iter_mut().zip(piece.tables);
        for ((rows, batch), of) in tables.zip(&self.schemas) {
            if batch.num_rows() > 0 {
                // The same columns, but not one more description of them per run.
                let shared = batch.clone().with_schema(of.schema()).unwrap_or(batch);
                rows.push(Rows::Held(shared));
            }
        }
        self.blocks.insert(number, block);
        self.runs += 1;
        match at {
            Whereabouts::Memory => self.settle(number),
            Whereabouts::Store(stored) => self.release(number, &stored),
            Whereabouts::Handed(place, stored) => self.uncommitted.push((place, number, stored)),
        }
    }

    /// Drops what the store has of the runs among its first `committed` records.
    pub(crate) fn on_commit(&mut self, committed: usize) {
        let uncommitted = std::mem::take(&mut self.uncommitted);
        for (place, number, stored) in uncommitted {
            if place < committed {
                self.release(number, &stored);
            } else {
                self.uncommitted.push((place, number, stored));
            }
        }
    }

    /// Drops the long pieces of a run, which the store has.
    fn release(&mut self, number: usize, stored: &InStore) {
        if let Some(block) = self.blocks.get_mut(&number) {
            for (rows, section) in block.tables.iter_mut().zip(&stored.sections) {
                for piece in rows.iter_mut().filter(|piece| piece.count() > MOST_HELD) {
                    let payload = stored.payload.clone();
                    let stored = StoredRows::new(payload, section.clone(), piece.count());
                    *piece = Rows::Stored(stored);
                }
            }
        }
        self.settle(number);
    }

    /// Merges the block of a run if all of its runs are there.
    fn settle(&mut self, number: usize) {
        let first = number - number % BLOCK;
        let complete = self.complete.entry(first).or_default();
        *complete += 1;
        if *complete < BLOCK {
            return;
        }
        self.complete.remove(&first);
        let mut merged = Block::default();
        for number in first..first + BLOCK {
            let Some(block) = self.blocks.remove(&number) else {
                continue;
            };
            merged.validity.extend(block.validity);
            for (all, rows) in merged.tables.iter_mut().zip(block.tables) {
                all.extend(rows);
            }
        }
        for (rows, of) in merged.tables.iter_mut().zip(&self.schemas) {
            *rows = joined(std::mem::take(rows), of);
        }
        self.blocks.insert(first, merged);
    }

    /// The pieces of each table, and the facts about the runs.
    pub(crate) fn into_parts(self) -> ([Vec<Rows>; TABLES], Vec<RunFact>) {
        let mut all = Block::default();
        for block in self.blocks.into_values() {
            all.validity.extend(block.validity);
            for (all, rows) in all.tables.iter_mut().zip(block.tables) {
                all.extend(rows);
            }
        }
        (all.tables, all.validity)
    }
}

/// Joins short pieces that follow each other.
fn joined(pieces: Vec<Rows>, of: &RecordBatch) -> Vec<Rows> {
    let mut all = Vec::new();
    let mut short = Vec::new();
    let join = |short: &mut Vec<RecordBatch>, all: &mut Vec<Rows>| {
        match concat_batches(&of.schema(), short.iter()) {
            Ok(batch) if batch.num_rows() > 0 => all.push(Rows::Held(batch)),
            Ok(_) => {}
            Err(_) => all.extend(short.drain(..).map(Rows::Held)),
        }
        short.clear();
    };
    for piece in pieces {
        match piece {
            Rows::Held(batch) if batch.num_rows() <= MOST_HELD => short.push(batch),
            long => {
                join(&mut short, &mut all);
                all.push(long);
            }
        }
    }
    join(&mut short, &mut all);
    all.shrink_to_fit();
    all
}
