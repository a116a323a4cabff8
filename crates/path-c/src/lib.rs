//! sojourn-path for C: the functions of `include/sojourn_path.h`, which explains them.
//!
//! The same library is a WebAssembly module: `cargo build --target wasm32-unknown-unknown`. A panic there ends the
//! module, since WebAssembly cannot unwind.

pub mod abi;
#[expect(unsafe_code, reason = "its functions are called with raw pointers")]
mod functions;
mod handle;

pub use functions::*;
pub use handle::Handle;
