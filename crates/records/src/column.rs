//! Columns of result tables: one declaration of name, type, unit, description and value.

/// A column of a table whose rows are `R`.
pub struct Column<R> {
    /// What it holds.
    pub info: ColumnInfo,
    /// How it is computed.
    pub get: Get<R>,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name, unique in its table.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
    /// Whether a value may be missing: what was not measured is null, never 0.
    pub nullable: bool,
    /// Unit of its values; empty for texts, counts, flags and ratios.
    pub unit: &'static str,
    /// What it is and how it is computed, in one line.
    pub description: &'static str,
}

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A string.
    Text,
    /// A whole number, unsigned.
    Count,
    /// A number.
    Real,
    /// True or false.
    Flag,
}

impl ColumnKind {
    /// Its name in catalogues.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Count => "count",
            Self::Real => "real",
            Self::Flag => "flag",
        }
    }
}

/// The value of a column in a row.
pub enum Get<R> {
    /// A string that is always there.
    Text(fn(&R) -> &str),
    /// A string.
    OptionalText(fn(&R) -> Option<&str>),
    /// A whole number that is always there.
    Count(fn(&R) -> u64),
    /// A whole number.
    OptionalCount(fn(&R) -> Option<u64>),
    /// A number that is always there.
    Real(fn(&R) -> f64),
    /// A number.
    OptionalReal(fn(&R) -> Option<f64>),
    /// True or false.
    OptionalFlag(fn(&R) -> Option<bool>),
}

impl<R> Get<R> {
    const fn kind(&self) -> (ColumnKind, bool) {
        match self {
            Self::Text(_) => (ColumnKind::Text, false),
            Self::OptionalText(_) => (ColumnKind::Text, true),
            Self::Count(_) => (ColumnKind::Count, false),
            Self::OptionalCount(_) => (ColumnKind::Count, true),
            Self::Real(_) => (ColumnKind::Real, false),
            Self::OptionalReal(_) => (ColumnKind::Real, true),
            Self::OptionalFlag(_) => (ColumnKind::Flag, true),
        }
    }
}

impl<R> Column<R> {
    /// Declares a column; its type follows from `get`.
    pub const fn new(
        name: &'static str,
        unit: &'static str,
        description: &'static str,
        get: Get<R>,
    ) -> Self {
        let (kind, nullable) = get.kind();
        Self {
            info: ColumnInfo {
                name,
                kind,
                nullable,
                unit,
                description,
            },
            get,
        }
    }
}
