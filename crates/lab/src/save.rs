//! Saves results as directories: `manifest.json` and a Parquet file for each table.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, json};
use sha2::{Digest as _, Sha256};
use sojourn_scenario::digest::hex;
use sojourn_store::{Disk, Files, Folder, Output, Staging, read_regular};

use crate::frame::{MANIFEST, MOST_MANIFEST, Present, ResultError, present};
use crate::outcome::Outcome;
use crate::tables::{Table, TableKind};

/// Which existing results a save may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// Only a result with the same manifest.
    Nothing,
    /// Any result, but never a complete one by an incomplete one.
    Result,
}

/// A directory that is reserved for a result: no other process writes to it until this value is
/// dropped.
#[derive(Debug)]
pub struct Claim {
    folder: Folder,
    replace: Replace,
}

impl Claim {
    /// Reserves a directory, which is created if needed, and performs the operations of a save, so that
    /// errors appear before the runs.
    ///
    /// A directory created for this purpose is removed with the claim if nothing was saved.
    ///
    /// `continued` is the hash of a scenario whose result may be replaced in any case, because its
    /// runs are being continued. It is compared after an interrupted commit was finished, when no other
    /// process can change the directory.
    ///
    /// # Errors
    /// If it contains what may not be replaced, another process has it, or it cannot be written.
    pub fn new(
        directory: &Path,
        replace: Replace,
        continued: Option<&str>,
    ) -> Result<Self, ResultError> {
        let mut claim = Self::unchecked(Arc::new(Disk), directory, replace)?;
        if let Some(present) = claim.present()? {
            if continued.is_some() && present.scenario.as_deref() == continued {
                claim.replace = Replace::Result;
            }
            if claim.replace == Replace::Nothing {
                return Err(occupied(directory, &present));
            }
        }
        let tables = TableKind::ALL.map(TableKind::file_name);
        let mut names = tables.iter().map(String::as_str).chain([MANIFEST]);
        names
            .try_for_each(|name| claim.folder.check_place(Path::new(name)))
            .and_then(|()| claim.folder.probe())
            .map_err(|e| unwritable(directory, &e))?;
        Ok(claim)
    }

    /// Reserves a directory; what it contains is checked when the result is saved.
    fn unchecked(
        files: Arc<dyn Files>,
        directory: &Path,
        replace: Replace,
    ) -> Result<Self, ResultError> {
        let folder = Folder::claim(files, directory);
        let folder = folder.map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory if !directory.is_dir() => {
                let rule = "cannot be written: not a directory; expected an empty or new directory";
                ResultError::new(directory, rule)
            }
            ErrorKind::ResourceBusy => ResultError::new(directory, e.to_string()),
            _ => unwritable(directory, &e),
        })?;
        Ok(Self { folder, replace })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether other processes cannot write to the directory; false on a file system without locks.
    pub const fn is_exclusive(&self) -> bool {
        self.folder.is_exclusive()
    }

    /// The existing result; `None` if there is none.
    fn present(&self) -> Result<Option<Present>, ResultError> {
        let path = self.folder.path();
        let text = read_regular(&path.join(MANIFEST), MOST_MANIFEST);
        let found = text.ok().and_then(|text| present(&text));
        let vacant = || self.folder.is_vacant().map_err(|e| unwritable(path, &e));
        if found.is_none() && !vacant()? {
            let rule = "is not empty and not a Sojourn result; expected an empty or new directory";
            return Err(ResultError::new(path, rule));
        }
        Ok(found)
    }
}

/// Why nothing was committed.
enum NotSaved {
    Occupied(ResultError),
    Unwritable(io::Error),
}

impl From<io::Error> for NotSaved {
    fn from(error: io::Error) -> Self {
        Self::Unwritable(error)
    }
}

/// The error of a directory whose result may be replaced on request only.
fn occupied(directory: &Path, present: &Present) -> ResultError {
    let rule = format!(
        "contains a result ({} of {} runs); expected an empty or new directory",
        present.finished, present.total
    );
    ResultError {
        is_occupied: true,
        ..ResultError::new(directory, rule)
    }
}

fn unwritable(directory: &Path, error: &io::Error) -> ResultError {
    ResultError::new(directory, format!("cannot be written: {error}"))
}

impl Outcome {
    /// Writes the result to `directory`, which is created if needed: whole or not at all.
    ///
    /// Files that are not part of a result stay, but reports and figures of a result that is
    /// replaced are removed. Returns the digest of the manifest.
    ///
    /// # Errors
    /// If something is there that may not be replaced, or the directory cannot be written.
    pub fn save(&self, directory: &Path, replace: Replace) -> Result<String, ResultError> {
        self.save_through(Arc::new(Disk), directory, replace)
    }

    /// As [`Outcome::save`], with another implementation of the file operations.
    ///
    /// # Errors
    /// As [`Outcome::save`].
    pub fn save_through(
        &self,
        files: Arc<dyn Files>,
        directory: &Path,
        replace: Replace,
    ) -> Result<String, ResultError> {
        self.save_to(&Claim::unchecked(files, directory, replace)?)
    }

    /// As [`Outcome::save`], to a directory that was reserved.
    ///
    /// # Errors
    /// As [`Outcome::save`].
    pub fn save_to(&self, claim: &Claim) -> Result<String, ResultError> {
        let directory = claim.folder.path();
        let present = claim.present()?;
        if let Some(present) = &present
            && present.is_complete()
            && !self.is_complete()
        {
            let rule = format!(
                "contains a complete result ({} runs), which an incomplete one ({} of {} runs) \
                 does not replace",
                present.total,
                self.finished(),
                self.total()
            );
            return Err(ResultError::new(directory, rule));
        }
        let committed = claim.folder.commit(|staging| {
            let digest = self.write_to(staging)?;
            match present {
                Some(present)
                    if claim.replace == Replace::Nothing
                        && present.digest.as_ref() != Some(&digest) =>
                {
                    Err(NotSaved::Occupied(occupied(directory, &present)))
                }
                _ => Ok(digest),
            }
        });
        committed.map_err(|e| match e {
            NotSaved::Occupied(error) => error,
            NotSaved::Unwritable(e) => unwritable(directory, &e),
        })
    }

    /// Returns the digest of the manifest.
    fn write_to(&self, staging: &Staging<'_>) -> io::Result<String> {
        let mut digests = Map::new();
        for kind in TableKind::ALL {
            let table = self.table(kind);
            let file = Digested::new(staging.create(&kind.file_name())?);
            let sha256 = write_table(table, file)?;
            let entry = json!({ "rows": table.rows(), "sha256": sha256 });
            digests.insert(kind.name().to_owned(), entry);
        }
        let (text, digest) = self.manifest().to_json_with(digests);
        staging.write(MANIFEST, text.as_bytes())?;
        staging.remove(Vec::new(), &digest)?;
        Ok(digest)
    }
}

/// Size of a row group in bytes: the writer keeps one in memory.
const ROW_GROUP: usize = 16 << 20;

/// Writes a table; returns the SHA-256 of the file.
fn write_table(table: &Table, mut file: Digested) -> io::Result<String> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_bytes(Some(ROW_GROUP))
        .build();
    let write = || {
        let mut writer = ArrowWriter::try_new(&mut file, table.schema(), Some(properties))?;
        for batch in table.each() {
            writer.write(&batch?)?;
        }
        // Unlike `into_inner`, it returns the error of the operating system.
        writer.close()
    };
    write().map_err(io_error)?;
    file.flush()?;
    file.finish()
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

/// A file that is digested as it is written.
#[derive(Debug)]
pub(crate) struct Digested {
    output: Box<dyn Output>,
    digest: Sha256,
}

impl Digested {
    pub(crate) fn new(output: Box<dyn Output>) -> Self {
        Self {
            output,
            digest: Sha256::new(),
        }
    }

    /// Syncs the file to disk; returns the SHA-256 of its content.
    pub(crate) fn finish(mut self) -> io::Result<String> {
        self.output.sync()?;
        Ok(hex(&self.digest.finalize()))
    }
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
