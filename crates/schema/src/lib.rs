//! Parameters of queues and congestion controls: one row declares key, type, default, range and source.
//!
//! [`parameters!`] turns rows into a struct with defaults and a table of [`Parameter`]s. From the table follow
//! reading and writing text ([`Parameter::set`], [`Parameter::text`]), the messages about wrong values
//! ([`ParameterError`]), the catalogue ([`ParameterInfo`]) and JSON Schema. [`domain`] has the allowed values, and
//! [`Value`] connects a type with its text; [`choice!`] declares types whose values are words.
//!
//! ```
//! use sojourn_net::Duration;
//! use sojourn_schema::{Parameters, parameters};
//!
//! parameters! {
//!     /// Parameters of a queue.
//!     #[derive(Clone, Debug)]
//!     pub struct CodelParams {
//!         /// Acceptable standing delay.
//!         pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
//!             "RFC 8289 section 4.3: TARGET; include/net/codel.h: codel_params.target";
//!     }
//! }
//!
//! let mut params = CodelParams::default();
//! let target = &params.table()[0];
//! let value = params.value("target").unwrap();
//! assert_eq!(target.text(value).as_deref(), Some("5ms"));
//! assert!(target.set(value, "20ms").is_ok());
//! assert_eq!(params.target, Duration::from_millis(20));
//! ```

mod declare;
pub mod domain;
mod entries;
mod error;
#[cfg(feature = "json")]
pub mod json;
mod nested;
mod parameter;
mod value;

pub use declare::Parameters;
pub use entries::{Entries, Word, split_entries};
pub use error::{Flaw, ParameterError};
pub use nested::{Nested, split_leaves};
pub use parameter::{Parameter, ParameterInfo, Unit, Value, gcd, time_text};
pub use value::Scalar;
