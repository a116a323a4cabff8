//! Columns are what their declaration says.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use sojourn_lab::{ColumnKind, RunOptions, Scenario, TableKind, run};
use sojourn_sim::Simulator;

/// The end of a name and the unit it stands for; names end in the unit, then in the statistic.
const UNITS: [(&str, &str); 4] = [
    ("_ms", "ms"),
    ("_s", "s"),
    ("_mbit_per_s", "Mbit/s"),
    ("_percent", "%"),
];

#[test]
fn the_tables_have_the_declared_columns() {
    let text = "duration = \"1s\"\nlinks.up = { rate = \"1mbit\", qdisc = \"codel\" }\n\
                traffic = [{ type = \"udp\", direction = \"up\", rate = \"1mbit\" }]";
    let options = RunOptions {
        jobs: None,
        cancel: &AtomicBool::new(true),
        progress: &|_, _| {},
        ..RunOptions::default()
    };
    let scenario = Scenario::from_toml(text).unwrap();
    let outcome = run(&Simulator::default(), &scenario, options).unwrap();
    for table in TableKind::ALL {
        let schema = outcome.table(table).schema();
        let columns = table.columns();
        assert_eq!(schema.fields().len(), columns.len(), "{table}");
        for (field, column) in schema.fields().iter().zip(columns) {
            assert_eq!(field.name(), column.name);
            assert_eq!(field.is_nullable(), column.nullable, "{}", column.name);
            let types: &[&str] = match column.kind {
                ColumnKind::Text => &["Utf8"],
                ColumnKind::Count => &["UInt32", "UInt64"],
                ColumnKind::Real => &["Float64"],
                ColumnKind::Flag => &["Boolean"],
            };
            let found = field.data_type().to_string();
            assert!(types.contains(&&*found), "{}: {found}", column.name);
        }
    }
}

#[test]
fn every_column_is_described_and_named_after_its_unit() {
    for table in TableKind::ALL {
        assert!(table.description().ends_with('.'), "{table}");
        let mut names = BTreeSet::new();
        for column in table.columns() {
            let name = column.name;
            assert!(names.insert(name), "{table} has two columns {name}");
            assert!(column.description.ends_with('.'), "{table}.{name}");
            let stem = ["_mean", "_median", "_p50", "_p95", "_p99", "_max", "_min"]
                .iter()
                .find_map(|statistic| name.strip_suffix(statistic))
                .unwrap_or(name);
            let unit = UNITS.iter().rev().find(|(end, _)| stem.ends_with(end));
            if let Some((_, unit)) = unit {
                assert_eq!(column.unit, *unit, "{table}.{name}");
            }
        }
    }
}
