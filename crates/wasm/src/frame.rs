//! Tables as bytes: the values of each column as numpy has them.

use serde_json::{Value, json};
use sojourn_records::{Column, Get};
use sojourn_tables::{Cell, Frame, TableKind, tables};

/// The columns of a table.
struct Columns(Vec<Encoded>);

/// A column.
struct Encoded {
    name: &'static str,
    /// As polars names it.
    kind: &'static str,
    /// For each row 1 if the value is missing, else 0.
    missing: Vec<u8>,
    /// Without those that are missing. Texts are a JSON array.
    values: Vec<u8>,
}

impl Encoded {
    fn of<T>(
        name: &'static str,
        kind: &'static str,
        rows: impl Iterator<Item = Option<T>>,
        encode: impl Fn(T, &mut Vec<u8>),
    ) -> Self {
        let (mut missing, mut values) = (Vec::new(), Vec::new());
        for value in rows {
            missing.push(value.is_none().into());
            if let Some(value) = value {
                encode(value, &mut values);
            }
        }
        Self {
            name,
            kind,
            missing,
            values,
        }
    }

    fn texts<'r>(name: &'static str, rows: impl Iterator<Item = Option<&'r str>>) -> Self {
        let (mut missing, mut texts) = (Vec::new(), Vec::new());
        for text in rows {
            missing.push(text.is_none().into());
            texts.extend(text.map(Value::from));
        }
        Self {
            name,
            kind: "String",
            missing,
            values: Value::Array(texts).to_string().into_bytes(),
        }
    }

    fn column<R>(rows: &[R], column: &Column<R>) -> Self {
        let (name, rows) = (column.info.name, rows.iter());
        let count = |n: u64, to: &mut Vec<u8>| to.extend(n.to_le_bytes());
        let real = |x: f64, to: &mut Vec<u8>| to.extend(x.to_le_bytes());
        match column.get {
            Get::Text(get) => Self::texts(name, rows.map(|row| Some(get(row)))),
            Get::OptionalText(get) => Self::texts(name, rows.map(get)),
            Get::Count(get) => Self::of(name, "UInt64", rows.map(|row| Some(get(row))), count),
            Get::OptionalCount(get) => Self::of(name, "UInt64", rows.map(get), count),
            Get::Real(get) => Self::of(name, "Float64", rows.map(|row| Some(get(row))), real),
            Get::OptionalReal(get) => Self::of(name, "Float64", rows.map(get), real),
            Get::OptionalFlag(get) => Self::of(name, "Boolean", rows.map(get), |flag, to| {
                to.push(flag.into());
            }),
        }
    }
}

impl Frame for Columns {
    fn of<R>(cell: Cell<'_>, rows: &[R], columns: &[Column<R>]) -> Self {
        let replication = rows.iter().map(|_| Some(cell.replication));
        let mut encoded = vec![
            Encoded::texts("arm", rows.iter().map(|_| Some(cell.arm))),
            Encoded::of("replication", "UInt32", replication, |n, to| {
                to.extend(n.to_le_bytes());
            }),
        ];
        encoded.extend(columns.iter().map(|column| Encoded::column(rows, column)));
        Self(encoded)
    }
}

/// All tables of a run: the length of a header (4 bytes), the header as JSON, and the bytes of the columns in its order.
///
/// ```text
/// [[table, [{name, type, rows, bytes}]]]     each column: a byte for each row, then the values, in that many bytes
/// ```
#[expect(clippy::missing_panics_doc, reason = "a header has a few kilobytes")]
pub fn encoded(cell: Cell<'_>) -> Vec<u8> {
    let mut header = Vec::new();
    let mut content = Vec::new();
    for (kind, Columns(columns)) in TableKind::ALL.into_iter().zip(tables(cell)) {
        let described = columns.into_iter().map(|column| {
            content.extend_from_slice(&column.missing);
            content.extend_from_slice(&column.values);
            let (rows, bytes) = (column.missing.len(), column.values.len());
            json!({ "name": column.name, "type": column.kind, "rows": rows, "bytes": bytes })
        });
        let described: Vec<_> = described.collect();
        header.push(json!([kind.name(), described]));
    }
    let header = Value::Array(header).to_string();
    let length = u32::try_from(header.len()).expect("a header is short");
    let mut all = length.to_le_bytes().to_vec();
    all.extend(header.into_bytes());
    all.append(&mut content);
    all
}
