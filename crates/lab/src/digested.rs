//! A writer that computes the SHA-256 of the bytes written.

use std::io::{self, Write};

use sha2::{Digest as _, Sha256};
use sojourn_scenario::digest::hex;
use sojourn_store::Output;

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
