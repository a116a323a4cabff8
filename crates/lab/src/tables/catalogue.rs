//! The tables and their columns as JSON.

use serde_json::{Value, json};
use sojourn_records::ColumnInfo;

use super::kind::TableKind;

/// Every table of a result with its columns.
///
/// ```text
/// [{name, description, columns: [{name, type, nullable, unit, description}]}]
/// ```
pub fn column_catalogue_json() -> String {
    let tables = TableKind::ALL.map(|table| {
        let columns: Vec<_> = table.columns().iter().map(column).collect();
        json!({ "name": table.name(), "description": table.description(), "columns": columns })
    });
    Value::Array(tables.into()).to_string()
}

fn column(info: &ColumnInfo) -> Value {
    json!({
        "name": info.name,
        "type": info.kind.name(),
        "nullable": info.nullable,
        "unit": info.unit,
        "description": info.description,
    })
}
