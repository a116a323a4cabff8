//! Tables of a scenario whose keys are declared once each: field, type, form, presence and meaning.

use sojourn_apps::{Amount, Http, Transport, Wait};
use sojourn_net::{Bytes, Duration, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_transport::{AfterIdle, CcSpec, OnCe, PeerEcn, SenderProfile, SlowStart};

use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::{Fields, Place};
use crate::specification::qdisc;
use crate::value::{Node, Table, Value, size, time};
use crate::{amount, wait};

/// A type of values of keys.
pub(crate) trait KeyValue: Sized {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError>;

    /// The value in canonical units; `None`: the key is left out.
    fn write(&self) -> Option<Node>;
}

/// A table whose keys are declared by [`keys!`].
pub(crate) trait Keys: Sized {
    const KEYS: &'static [Key];

    /// Reads all keys; those that are not given have their defaults.
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError>;

    /// Writes all keys in canonical units.
    fn write(&self, fields: &mut Table);
}

/// Declares a struct and, for each field, the key of the same name: its form and what stands for it where it is not
/// given. `default` is a value that is always written, `usual` one that is not; `required` is an example for the
/// message about a missing key; `formerly` has the name that older scenarios write. Without either, the type is an `Option`.
macro_rules! keys {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty = $form:expr
                $(, $presence:ident $value:literal $(formerly $older:literal)?)?;
            )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $(#[doc = concat!($($doc),+)] $vis $field: $type,)*
        }

        impl $crate::declare::Keys for $name {
            const KEYS: &'static [$crate::key::Key] = &[
                $($crate::declare::keys!(
                    @key $crate::declare::bare(stringify!($field)), $form, concat!($($doc),+).trim_ascii()
                    $(, $presence $value $(formerly $older)?)?
                ),)*
            ];

            fn read(fields: &$crate::place::Fields<'_>) -> Result<Self, $crate::error::ScenarioError> {
                Ok(Self {
                    $($field: $crate::declare::keys!(@read fields, $crate::declare::bare(stringify!($field)) $(, $presence $value)?)?,)*
                })
            }

            fn write(&self, fields: &mut $crate::value::Table) {
                $($crate::declare::keys!(@write fields, self.$field, $crate::declare::bare(stringify!($field)) $(, $presence $value)?);)*
            }
        }
    };
    (@key $key:expr, $form:expr, $meaning:expr) => {
        $crate::key::Key::optional($key, $form, $meaning)
    };
    (@key $key:expr, $form:expr, $meaning:expr, required $example:literal) => {
        $crate::key::Key::required($key, $form, $meaning)
    };
    (@key $key:expr, $form:expr, $meaning:expr, $presence:ident $value:literal $(formerly $older:literal)?) => {
        $crate::key::Key::optional($key, $form, $meaning).or($value)$(.formerly($older))?
    };
    (@read $fields:ident, $key:expr) => {
        $fields.option($key, $crate::declare::KeyValue::read)
    };
    (@read $fields:ident, $key:expr, required $example:literal) => {
        $fields.need($key, $example).and_then(|place| $crate::declare::KeyValue::read(&place))
    };
    (@read $fields:ident, $key:expr, $presence:ident $value:literal) => {
        $fields.value($key, $crate::declare::KeyValue::read)
    };
    (@write $fields:ident, $value:expr, $key:expr, usual $usual:literal) => {
        if let Some(node) = $crate::declare::KeyValue::write(&$value) {
            $crate::key::insert_changed($fields, Self::KEYS, $key, node);
        }
    };
    (@write $fields:ident, $value:expr, $key:expr $(, $presence:ident $default:literal)?) => {
        $crate::value::insert($fields, $key, $crate::declare::KeyValue::write(&$value));
    };
}

pub(crate) use keys;

/// The key of a field: `type` of `r#type`.
pub(crate) const fn bare(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Implements [`KeyValue`] for types that [`keys!`] declares and that are the value of a key.
macro_rules! tables {
    ($($type:ty)+) => {
        $(impl $crate::declare::KeyValue for $type {
            fn read(place: &$crate::place::Place<'_>) -> Result<Self, $crate::error::ScenarioError> {
                let fields = place.fields(<$type as $crate::declare::Keys>::KEYS)?;
                $crate::declare::Keys::read(&fields)
            }

            fn write(&self) -> Option<$crate::value::Node> {
                let mut fields = $crate::value::Table::new();
                $crate::declare::Keys::write(self, &mut fields);
                Some($crate::value::Value::Table(fields).into())
            }
        })+
    };
}

pub(crate) use tables;

/// Declares a type whose values are words; a message calls an unknown one by the text after its name.
macro_rules! words {
    ($(#[$meta:meta])* enum $name:ident: $what:literal { $($value:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $($value,)+
        }

        impl $name {
            const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        $crate::declare::choices! {
            $name: $what;
        }
    };
}

pub(crate) use words;

impl<T: KeyValue> KeyValue for Option<T> {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        T::read(place).map(Some)
    }

    fn write(&self) -> Option<Node> {
        self.as_ref().and_then(T::write)
    }
}

impl<T: KeyValue> KeyValue for Vec<T> {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        place.list()?.iter().map(T::read).collect()
    }

    fn write(&self) -> Option<Node> {
        Some(written(self))
    }
}

/// The values of a list as they are written.
pub(crate) fn written<T: KeyValue>(values: &[T]) -> Node {
    Value::List(values.iter().filter_map(T::write).collect()).into()
}

/// Implements [`KeyValue`] by a method of `Place` and a function of the value.
macro_rules! values {
    ($($type:ty: $read:expr, $write:expr;)+) => {
        $(impl KeyValue for $type {
            fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
                $read(place)
            }

            fn write(&self) -> Option<Node> {
                Some($write(*self))
            }
        })+
    };
}

values! {
    bool: Place::flag, Node::from;
    u8: Place::integer, |n| u32::from(n).into();
    u16: Place::integer, |n| u32::from(n).into();
    u32: Place::integer, Node::from;
    i64: Place::integer, |n| Value::Int(n).into();
    f64: Place::number, |x| Value::Float(x).into();
    Bytes: Place::size, size;
    Duration: Place::time, time;
    Percent: |place: &Place<'_>| place.percent().map(Percent), |Percent(share)| format!("{share}%").into();
    Rate: Place::rate, |rate: Rate| rate.to_string().into();
    Amount: amount::read, amount::write;
    Wait: wait::read, wait::write;
}

/// The number before the `%` of a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percent(pub(crate) f64);

/// A text that names something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

impl KeyValue for Name {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        place.name().map(Self)
    }

    fn write(&self) -> Option<Node> {
        self.0.write()
    }
}

/// A type whose values have names, which are the texts of its keys.
pub(crate) trait Choice: Copy + 'static {
    /// What a message calls an unknown name.
    const WHAT: &'static str;
    const ALL: &'static [Self];

    fn name(self) -> &'static str;

    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|value| value.name()).collect()
    }
}

/// The form of the names of a type.
pub(crate) const fn one_of<T: Choice>() -> Form {
    Form::Choice(T::names)
}

/// Implements [`Choice`] and [`KeyValue`] for types with `ALL` and `name`.
macro_rules! choices {
    ($($type:ty: $what:literal;)+) => {
        $(impl $crate::declare::Choice for $type {
            const WHAT: &'static str = $what;
            const ALL: &'static [Self] = &<$type>::ALL;

            fn name(self) -> &'static str {
                <$type>::name(self)
            }
        }

        impl $crate::declare::KeyValue for $type {
            fn read(place: &$crate::place::Place<'_>) -> Result<Self, $crate::error::ScenarioError> {
                use $crate::declare::Choice;
                place.one_of(<$type as Choice>::WHAT, <$type as Choice>::ALL)
            }

            fn write(&self) -> Option<$crate::value::Node> {
                Some($crate::declare::Choice::name(*self).into())
            }
        })+
    };
}

pub(crate) use choices;

choices! {
    AfterIdle: "after_idle policy";
    Http: "HTTP version";
    OnCe: "on_ce policy";
    PeerEcn: "peer ECN";
    SenderProfile: "profile";
    SlowStart: "slow_start heuristic";
    Transport: "transport";
}

impl KeyValue for String {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        place.text().map(str::to_owned)
    }

    fn write(&self) -> Option<Node> {
        Some(self.as_str().into())
    }
}

impl KeyValue for QdiscSpec {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        qdisc(place)
    }

    fn write(&self) -> Option<Node> {
        Some(self.to_string().into())
    }
}

/// A congestion control with its parameters.
impl KeyValue for CcSpec {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let spec = place.text()?.parse::<Self>();
        spec.map_err(|error| place.fail(error.to_string()))
    }

    fn write(&self) -> Option<Node> {
        Some(self.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    keys! {
        /// A table of this test.
        #[derive(Clone, Debug)]
        struct Sample {
            /// A word of Rust.
            r#type: String = Form::Def("text"), required "\"a\"";
            /// Always written.
            wait: Duration = Form::TIME, default "5ms";
            /// Written where it is not the usual value.
            share: Percent = Form::PERCENT, usual "1%";
            /// Once called pause.
            work: Duration = Form::TIME, default "0s" formerly "pause";
            /// Left out where it is not given.
            host: Option<u8> = Form::Integer(0, 9);
        }
    }

    /// The canonical text of a table, or what is wrong with it.
    fn canonical(text: &str) -> Result<String, ScenarioError> {
        let tree = Node::from_toml(text)?;
        let sample = Sample::read(&Place::root(&tree).fields(Sample::KEYS)?)?;
        let mut table = Table::new();
        sample.write(&mut table);
        Ok(text::json(&Value::Table(table).into()))
    }

    #[test]
    fn a_row_is_the_field_the_key_its_default_and_its_text() {
        let written = |text| canonical(text).unwrap();
        assert_eq!(
            written("type = \"a\""),
            r#"{"type":"a","wait":"5ms","work":"0s"}"#
        );
        assert_eq!(
            written("type = \"a\"\nwait = \"0.001s\"\nshare = \"2%\"\npause = \"1s\"\nhost = 9"),
            r#"{"host":9,"share":"2%","type":"a","wait":"1ms","work":"1s"}"#
        );
        let meaning = Sample::KEYS.iter().find(|key| key.name == "share");
        assert_eq!(
            meaning.map(|key| key.meaning),
            Some("Written where it is not the usual value.")
        );
    }

    #[test]
    fn a_wrong_table_is_refused_with_its_key() {
        for (text, wanted) in [
            ("", "type: missing; set it, for example type = \"a\""),
            (
                "type = \"a\"\nhost = 10",
                "host: 10 is out of range; expected a whole number from 0 to 9",
            ),
            (
                "type = \"a\"\nwat = \"1s\"",
                "wat: unknown key; did you mean \"wait\"?",
            ),
        ] {
            let error = canonical(text).unwrap_err();
            assert_eq!(format!("{}: {}", error.path, error.rule), wanted);
        }
    }
}
