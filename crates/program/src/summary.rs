//! The summary of a result: the main metrics of each arm, with their confidence intervals.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, RecordBatch};
use sojourn_lab::{Bootstrap, Outcome, Role, Scope};

/// The tables: what their rows are about, and how it is called.
const TABLES: [(Scope, &str); 4] = [
    (Scope::Run, ""),
    (Scope::Group, "group"),
    (Scope::Application, "application"),
    (Scope::Link, "link"),
];
/// The column of metrics with the name of a row, which those of runs do not have.
const NAME: &str = "group";

/// The values of a metric in the runs of an arm.
type Values = BTreeMap<&'static str, Vec<f64>>;

/// Writes a table for each kind of metric that the result has.
pub(crate) fn of(outcome: &Outcome) -> String {
    let runs = (outcome.finished() / outcome.scenario().arms().len().max(1)).max(1);
    let mut text = match runs {
        1 => format!("{}: one run\n", outcome.scenario().name()),
        _ => format!(
            "{}: means of {runs} runs ± half the 95 % interval\n",
            outcome.scenario().name()
        ),
    };
    let arms: Vec<&str> = outcome.scenario().arms().collect();
    for (scope, names) in TABLES {
        // A result that was just made has all columns.
        let Ok(batches) = outcome.metrics(scope).and_then(|table| table.batches()) else {
            continue;
        };
        let mut rows: BTreeMap<(usize, String), Values> = BTreeMap::new();
        for batch in &batches {
            collect(batch, scope, &arms, &mut rows);
        }
        text += &written(scope, names, &arms, &rows);
    }
    text
}

/// Adds the values of a batch to those of its rows.
fn collect(
    batch: &RecordBatch,
    scope: Scope,
    arms: &[&str],
    rows: &mut BTreeMap<(usize, String), Values>,
) {
    let text = |column: &str| batch.column_by_name(column)?.as_string_opt::<i32>();
    let Some(of_arm) = text("arm") else { return };
    let of_row = text(NAME);
    for metric in scope.declarations() {
        if !matches!(metric.role, Role::Headline | Role::Compared) {
            continue;
        }
        let column = batch.column_by_name(metric.name);
        let Some(values) = column.and_then(|c| c.as_primitive_opt::<Float64Type>()) else {
            continue;
        };
        for row in (0..batch.num_rows()).filter(|&row| values.is_valid(row)) {
            let arm = arms.iter().position(|&arm| arm == of_arm.value(row));
            let name = of_row.map_or("", |names| names.value(row));
            let key = (arm.unwrap_or(arms.len()), name.to_owned());
            let of_metric = rows.entry(key).or_default().entry(metric.name).or_default();
            of_metric.push(values.value(row));
        }
    }
}

/// Writes the rows as an aligned table; empty if there are none.
fn written(
    scope: Scope,
    names: &str,
    arms: &[&str],
    rows: &BTreeMap<(usize, String), Values>,
) -> String {
    let metrics: Vec<_> = scope
        .declarations()
        .into_iter()
        .filter(|metric| rows.values().any(|values| values.contains_key(metric.name)))
        .collect();
    if metrics.is_empty() {
        return String::new();
    }
    let mut table = vec![vec!["arm".to_owned(), names.to_owned()]];
    table[0].extend(metrics.iter().map(|metric| match metric.unit {
        "" => metric.label.to_owned(),
        unit => format!("{} [{unit}]", metric.label),
    }));
    for ((arm, name), values) in rows {
        let mut row = vec![
            arms.get(*arm).copied().unwrap_or_default().to_owned(),
            name.clone(),
        ];
        row.extend(metrics.iter().map(|metric| {
            let digits = usize::from(metric.digits);
            values
                .get(metric.name)
                .map_or(String::new(), |values| mean(values, digits))
        }));
        table.push(row);
    }
    aligned(&table)
}

/// The mean and half its interval.
fn mean(values: &[f64], digits: usize) -> String {
    match Bootstrap::default().mean(values) {
        Ok(found) if found.low.is_nan() => format!("{:.digits$}", found.mean),
        Ok(found) => {
            let half = (found.high - found.low) / 2.0;
            format!("{:.digits$} ±{half:.digits$}", found.mean)
        }
        Err(_) => String::new(),
    }
}

/// Columns of equal width, two spaces apart; names to the left, numbers to the right.
fn aligned(table: &[Vec<String>]) -> String {
    const NAMES: usize = 2;
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..table[0].len()).filter_map(width).collect();
    let mut text = String::from("\n");
    for row in table {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(n, (cell, &width))| {
                if n < NAMES {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}
