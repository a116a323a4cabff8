//! Tables of a scenario whose keys are declared once each: field, type, form, presence and meaning.

use sojourn_apps::{Amount, Http, Transport, Wait};
use sojourn_net::{Bytes, Duration, Rate};
use sojourn_transport::{AfterIdle, CcSpec, OnCe, SlowStart};

use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::{Fields, Place};
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
/// message about a missing key. Without either, the type is an `Option`.
macro_rules! keys {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $form:expr $(, $presence:ident $value:literal)?;)*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $(#[doc = concat!($($doc),+)] $vis $field: $type,)*
        }

        impl $crate::declare::Keys for $name {
            const KEYS: &'static [$crate::key::Key] = &[
                $($crate::declare::keys!(
                    @key stringify!($field), $form, concat!($($doc),+).trim_ascii() $(, $presence $value)?
                ),)*
            ];

            fn read(fields: &$crate::place::Fields<'_>) -> Result<Self, $crate::error::ScenarioError> {
                Ok(Self {
                    $($field: $crate::declare::keys!(@read fields, stringify!($field) $(, $presence $value)?)?,)*
                })
            }

            fn write(&self, fields: &mut $crate::value::Table) {
                $($crate::declare::keys!(@write fields, self.$field, stringify!($field) $(, $presence $value)?);)*
            }
        }
    };
    (@key $key:expr, $form:expr, $meaning:expr) => {
        $crate::key::Key::optional($key, $form, $meaning)
    };
    (@key $key:expr, $form:expr, $meaning:expr, required $example:literal) => {
        $crate::key::Key::required($key, $form, $meaning)
    };
    (@key $key:expr, $form:expr, $meaning:expr, $presence:ident $value:literal) => {
        $crate::key::Key::optional($key, $form, $meaning).or($value)
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

impl<T: KeyValue> KeyValue for Option<T> {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        T::read(place).map(Some)
    }

    fn write(&self) -> Option<Node> {
        self.as_ref().and_then(T::write)
    }
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
    u16: Place::integer, |n| u32::from(n).into();
    u32: Place::integer, Node::from;
    f64: Place::number, |x| Value::Float(x).into();
    Bytes: Place::size, size;
    Duration: Place::time, time;
    Rate: Place::rate, |rate: Rate| rate.to_string().into();
    Amount: amount::read, amount::write;
    Wait: wait::read, wait::write;
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
