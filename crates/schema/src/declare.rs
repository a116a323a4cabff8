//! The macros that declare parameters and words.

use crate::{Parameter, Value};

/// A struct of parameters, as [`parameters!`](crate::parameters!) declares it.
pub trait Parameters {
    /// The declarations, in the order of canonical texts.
    fn table(&self) -> &'static [Parameter];

    /// The value of parameter `key`.
    fn value(&mut self, key: &str) -> Option<&mut dyn Value>;
}

/// Declares the parameters of a queue or a congestion control, of Sojourn or another crate.
///
/// Each row gives a field, its type and default, then its allowed values and where they come from (RFC
/// section, kernel symbol, paper, `ours`, `addition` or `reconstruction`). The doc comment is the
/// description that users read. From this follow the struct, its defaults, access by key ([`Parameters`]),
/// the parser, the catalogue, the schema of scenarios and, for the models of Sojourn, the generated
/// Python class, documentation table and fuzz seed. [`domain`](crate::domain) has the allowed values; a
/// type that implements [`Value`] may be that of a field. The [crate](crate) has an example.
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
            $(#[doc = concat!($($meaning),+)] pub $key: $type,)*
        }

        impl $(<$leaf>)? $name $(<$leaf>)? {
            /// The declared default of every parameter.
            pub const DEFAULT: Self = Self { $($key: $default,)* };

            /// The declarations, in the order of the canonical text.
            pub(crate) const PARAMETERS: &'static [$crate::Parameter] = {
                use $crate::domain::*;
                &[$($domain.declare(stringify!($key), concat!($($meaning),+), $provenance),)*]
            };
        }

        impl $(<$leaf>)? Default for $name $(<$leaf>)? {
            fn default() -> Self {
                Self::DEFAULT
            }
        }

        impl $(<$leaf: $crate::Nested>)? $crate::Parameters for $name $(<$leaf>)? {
            fn table(&self) -> &'static [$crate::Parameter] {
                Self::PARAMETERS
            }

            fn value(&mut self, key: &str) -> Option<&mut dyn $crate::Value> {
                match key {
                    $(stringify!($key) => Some(&mut self.$key),)*
                    _ => None,
                }
            }
        }
    };
}

/// Declares an enumeration whose values are words; the first is the default.
///
/// ```
/// use sojourn_schema::{choice, parameters};
///
/// choice! {
///     /// Where the queue drops.
///     DropAt {
///         /// The newest packet.
///         Tail = "tail",
///         /// The oldest packet.
///         Head = "head",
///     }
/// }
///
/// parameters! {
///     /// Parameters of a queue.
///     #[derive(Clone, Debug)]
///     pub struct FifoParams {
///         /// Where the queue drops.
///         pub drop: DropAt = DropAt::Tail => choice(DropAt::WORDS), "this example";
///     }
/// }
/// assert_eq!(FifoParams::default().drop, DropAt::Tail);
/// assert_eq!(DropAt::named("head"), Some(DropAt::Head));
/// ```
#[macro_export]
macro_rules! choice {
    (
        $(#[doc = $about:literal])*
        $name:ident { $(#[doc = $first_doc:literal])* $first:ident = $first_word:literal,
            $($(#[doc = $doc:literal])* $value:ident = $word:literal,)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $first_doc])*
            #[default]
            $first,
            $($(#[doc = $doc])* $value,)*
        }

        impl $name {
            /// The words of all values, the default first.
            pub const WORDS: &'static [&'static str] = &[$first_word, $($word,)*];

            /// The word of the value.
            pub const fn word(self) -> &'static str {
                match self {
                    Self::$first => $first_word,
                    $(Self::$value => $word,)*
                }
            }

            /// The value of that word.
            pub fn named(word: &str) -> Option<Self> {
                match word {
                    $first_word => Some(Self::$first),
                    $($word => Some(Self::$value),)*
                    _ => None,
                }
            }
        }

        impl $crate::Value for $name {
            fn text(&self, _unit: $crate::Unit) -> Option<String> {
                Some(self.word().to_owned())
            }

            fn read(&mut self, _: &$crate::Parameter, word: &str) -> Result<(), $crate::Flaw> {
                *self = Self::named(word).ok_or_else(|| $crate::Flaw::unknown(word))?;
                Ok(())
            }
        }
    };
}
