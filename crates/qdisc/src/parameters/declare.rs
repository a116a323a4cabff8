//! The macro that declares the parameters of a queue.

use super::field::Field;

/// The parameters of a discipline by key, as [`parameters!`](crate::parameters!) derives them.
pub trait Fields {
    /// The field of a parameter.
    fn field(&mut self, key: &str) -> Option<Field<'_>>;
}

/// Declares the parameters of a discipline, of this crate or another.
///
/// Each line gives a field, its type and default, then its allowed values and where they come from (RFC
/// section, kernel symbol, paper, `ours`, `addition` or `reconstruction`). The doc comment is the
/// description that users read. From this follow the struct, its defaults, access by key ([`Fields`]),
/// the parser, the catalogue, the schema of scenarios and, for the queues of this crate, the generated
/// Python class, documentation table and fuzz seed. [`domain`](crate::parameters::domain) has the allowed
/// values; a type that implements [`Value`](crate::parameters::Value) may be that of a field.
///
/// ```
/// use sojourn_qdisc::{Duration, parameters};
///
/// parameters! {
///     /// Parameters of a queue.
///     #[derive(Clone, Debug)]
///     pub struct CodelParams {
///         /// Acceptable standing delay.
///         pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
///             "RFC 8289 section 4.3: TARGET; include/net/codel.h: codel_params.target";
///     }
/// }
/// assert_eq!(CodelParams::default().target, Duration::from_millis(5));
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident $(<$leaf:ident>)? {
            $(
                $(#[doc = $meaning:literal])+
                pub $key:ident: $type:ty = $default:expr => $domain:expr, $provenance:literal;
            )*
        }
    ) => {
        $(#[$attribute])*
        pub struct $name $(<$leaf>)? {
            $($(#[doc = $meaning])+ pub $key: $type,)*
        }

        impl $(<$leaf>)? $name $(<$leaf>)? {
            /// The declared default of every parameter.
            pub const DEFAULT: Self = Self { $($key: $default,)* };

            /// The declarations, in the order of the canonical text.
            pub(crate) const PARAMETERS: &'static [$crate::parameters::Parameter] = {
                use $crate::parameters::domain::*;
                &[$($domain.declare(stringify!($key), concat!($($meaning),+), $provenance),)*]
            };
        }

        impl $(<$leaf>)? Default for $name $(<$leaf>)? {
            fn default() -> Self {
                Self::DEFAULT
            }
        }

        impl $(<$leaf: $crate::parameters::Leaf>)? $crate::parameters::Fields for $name $(<$leaf>)? {
            fn field(&mut self, key: &str) -> Option<$crate::parameters::Field<'_>> {
                match key {
                    $(stringify!($key) => Some($crate::parameters::Value::lend(&mut self.$key)),)*
                    _ => None,
                }
            }
        }
    };
}

pub use parameters;
