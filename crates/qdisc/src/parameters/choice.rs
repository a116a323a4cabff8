//! Parameters whose value is one of a few keywords.

use std::fmt;

/// One of a few words, as `tc` takes them.
pub trait Choice: fmt::Debug {
    /// The word that is chosen.
    fn word(&self) -> &'static str;

    /// Takes another word; says whether there is such a one.
    fn choose(&mut self, word: &str) -> bool;
}

/// Writes an enumeration whose values go by words; the first is the default.
///
/// ```
/// use sojourn_qdisc::{choice, parameters};
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
/// ```
#[macro_export]
macro_rules! choice {
    (
        $(#[doc = $about:literal])*
        $name:ident { $(#[doc = $first_doc:literal])* $first:ident = $first_word:literal,
            $($(#[doc = $doc:literal])* $value:ident = $word:literal,)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = $first_doc])*
            #[default]
            $first,
            $($(#[doc = $doc])* $value,)*
        }

        impl $name {
            /// The words of `tc`, the default first.
            pub(crate) const WORDS: &'static [&'static str] = &[$first_word, $($word,)*];
            const ALL: &'static [Self] = &[Self::$first, $(Self::$value,)*];
        }

        impl $crate::parameters::Value for $name {
            fn lend(&mut self) -> $crate::parameters::Field<'_> {
                $crate::parameters::Field::Choice(self)
            }
        }

        impl $crate::parameters::choice::Choice for $name {
            fn word(&self) -> &'static str {
                match self {
                    Self::$first => $first_word,
                    $(Self::$value => $word,)*
                }
            }

            fn choose(&mut self, word: &str) -> bool {
                let at = Self::WORDS.iter().position(|&known| known == word);
                if let Some(&choice) = at.and_then(|at| Self::ALL.get(at)) {
                    *self = choice;
                }
                at.is_some()
            }
        }
    };
}

pub use choice;
