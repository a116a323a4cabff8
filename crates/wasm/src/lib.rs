//! The simulator as WebAssembly: a scenario in, samples of a run in steps out, at the end its tables.
//!
//! An instance of the module runs one arm of one scenario once. A host starts another run in another instance, and
//! discards this one with its memory. Texts are UTF-8; numbers in the memory are little-endian.
//!
//! ```text
//! ptr = input(length)      the host writes a scenario there: JSON, or TOML if it does not begin with {
//! start(arm, replication)  1: an error, whose text is the output
//! advance(milliseconds)    runs until that time
//! samples()                output: JSON of what was sampled since the last call (`session::samples`)
//! tables()                 output: all tables of the finished run (`frame`)
//! output(), output_length()
//! ```

pub mod exports;
mod frame;
mod session;

pub use frame::encoded;
pub use session::{Session, catalogue, described, read};
