//! The tables of `docs/validation/parity.md`.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::cell::Cell;
use crate::report::{Score, Tests, controllers, number, share, subtotals, within};

/// Every table under a heading that names its section; `tools/measured.py` fills the page with them.
///
/// `yardstick` are the cells of one kernel against another.
pub(crate) fn sections(cells: &[Cell], yardstick: &Yardstick) -> String {
    let sections = [
        ("scores", scores(cells, yardstick)),
        ("totals", totals(cells)),
        ("metrics", by_metric(cells)),
        ("controls", by_control(cells)),
        ("queues", by_queue(cells)),
        ("misses", misses(cells)),
    ];
    let mut text = String::new();
    for (name, table) in sections {
        let _ = writeln!(text, "# {name}\n\n{table}");
    }
    text
}

/// What two kernels score against each other.
#[derive(Debug)]
pub(crate) struct Yardstick {
    pub(crate) one: &'static str,
    pub(crate) other: &'static str,
    pub(crate) cells: Vec<Cell>,
}

/// The scores by kernel, and what two kernels score on the scenarios that both ran.
fn scores(cells: &[Cell], yardstick: &Yardstick) -> String {
    let mut rows = vec![
        [
            "compared",
            "cells",
            "agree",
            "%",
            "within half of the tolerance",
            "%",
            "tested",
            "p ≤ 5 %",
            "rejected",
            "of these within half",
        ]
        .map(str::to_owned),
    ];
    let mut add = |name: String, chosen: Vec<&Cell>| {
        let score = Score::of(chosen.iter().copied());
        let tests = Tests::of(chosen);
        rows.push([
            name,
            score.cells.to_string(),
            score.agreeing.to_string(),
            percent(score.share()),
            score.close.to_string(),
            percent(score.close_share()),
            tests.cells.to_string(),
            tests.low.to_string(),
            tests.rejected.to_string(),
            tests.rejected_close.to_string(),
        ]);
    };
    add("**Sojourn and Linux**".to_owned(), cells.iter().collect());
    let mut kernels: Vec<&str> = cells.iter().map(|cell| cell.kernel.as_str()).collect();
    kernels.dedup();
    for kernel in kernels {
        let on = cells.iter().filter(|cell| cell.kernel == kernel);
        add(format!("Sojourn and Linux {kernel}"), on.collect());
    }
    let Yardstick {
        one,
        other,
        cells: theirs,
    } = yardstick;
    let both = |cell: &&Cell| {
        let same = |c: &Cell| c.scenario == cell.scenario && c.metric == cell.metric;
        cell.kernel == *other && theirs.iter().any(same)
    };
    add(
        format!("Sojourn and Linux {other}, cells also measured on {one}"),
        cells.iter().filter(both).collect(),
    );
    add(
        format!("**Linux {one} and Linux {other}**, the same cells"),
        theirs.iter().collect(),
    );
    rows_of_text(&rows)
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// How many cells agree, and how sharp the comparison is.
fn totals(cells: &[Cell]) -> String {
    let limited: Vec<&Cell> = cells
        .iter()
        .filter(|c| c.is_limited_by_deviation())
        .collect();
    let weak = limited.iter().filter(|c| c.tolerance > c.linux / 4.0);
    let saved = limited.iter().filter(|c| c.agrees_by_deviation());
    let all = Score::of(cells);
    let with_tcp = cells.iter().filter(|c| c.cc.is_some()).count();
    rows_of_text(&[
        ["quantity".to_owned(), "cells".to_owned()],
        ["all".to_owned(), all.cells.to_string()],
        ["from scenarios with TCP".to_owned(), with_tcp.to_string()],
        ["**agree**".to_owned(), format!("**{}**", share(all))],
        [
            "within half of the tolerance".to_owned(),
            within(cells, 0.5).to_string(),
        ],
        [
            "within a quarter of the tolerance".to_owned(),
            within(cells, 0.25).to_string(),
        ],
        [
            "within a tenth of the tolerance".to_owned(),
            within(cells, 0.1).to_string(),
        ],
        [
            "where twice the kernel's standard deviation is the larger limit".to_owned(),
            limited.len().to_string(),
        ],
        [
            "agree only because of that limit".to_owned(),
            saved.count().to_string(),
        ],
        [
            "where that limit exceeds a quarter of the value".to_owned(),
            weak.count().to_string(),
        ],
    ])
}

/// By metric and suite, the metrics in full.
fn by_metric(cells: &[Cell]) -> String {
    let mut rows = subtotals(cells);
    for row in rows.iter_mut().skip(1) {
        if let Some(cell) = cells.iter().find(|c| c.metric == row[0]) {
            cell.described.clone_into(&mut row[0]);
        }
    }
    rows_of_text(&rows)
}

fn by_control(cells: &[Cell]) -> String {
    let mut rows = vec![["congestion control", "agreeing cells", "%"].map(str::to_owned)];
    for (cc, score) in controllers(cells) {
        rows.push([format!("`{cc}`"), share(score), percent(score.share())]);
    }
    rows_of_text(&rows)
}

fn by_queue(cells: &[Cell]) -> String {
    let mut rows = vec![["queue", "agreeing cells", "%"].map(str::to_owned)];
    let names: BTreeSet<&str> = cells.iter().map(|cell| cell.queue.as_str()).collect();
    for name in names {
        let score = Score::of(cells.iter().filter(|cell| cell.queue == name));
        rows.push([format!("`{name}`"), share(score), percent(score.share())]);
    }
    rows_of_text(&rows)
}

/// The cells that disagree, the farthest first.
fn misses(cells: &[Cell]) -> String {
    let mut missed: Vec<&Cell> = cells.iter().filter(|c| !c.agrees()).collect();
    missed.sort_by(|a, b| b.distance().total_cmp(&a.distance()));
    let mut rows = vec![
        [
            "Linux",
            "scenario",
            "metric",
            "Sojourn",
            "kernel",
            "tolerance",
            "difference in tolerances",
        ]
        .map(str::to_owned),
    ];
    for cell in missed {
        let with_deviation =
            |value, deviation| format!("{} ± {}", number(value), number(deviation));
        rows.push([
            cell.kernel.clone(),
            cell.title.clone(),
            cell.described.to_owned(),
            cell.ours.map_or_else(
                || "none".to_owned(),
                |ours| with_deviation(ours, cell.ours_deviation),
            ),
            with_deviation(cell.linux, cell.linux_deviation),
            number(cell.tolerance),
            format!("{:.2}", cell.distance()),
        ]);
    }
    rows_of_text(&rows)
}

/// A table; the first row is its head.
fn rows_of_text<R: AsRef<[String]>>(rows: &[R]) -> String {
    let mut text = String::new();
    for (n, row) in rows.iter().enumerate() {
        let row = row.as_ref();
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if n == 0 {
            let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;

    use regex_lite::Regex;

    use super::*;

    fn docs() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    }

    /// The rows of the table by queue in `docs/validation/parity.md`.
    fn agreement_by_queue() -> BTreeMap<String, String> {
        let page = fs::read_to_string(docs().join("validation/parity.md")).unwrap();
        let (_, table) = page.split_once("<!-- begin measured: queues").unwrap();
        let (table, _) = table.split_once("<!-- end measured").unwrap();
        let row = Regex::new(r"\| `(\w+)` \| (\d+)/(\d+) ").unwrap();
        let rows = row.captures_iter(table);
        rows.map(|row| {
            (
                row[1].to_owned(),
                format!("{} of {} cells", &row[2], &row[3]),
            )
        })
        .collect()
    }

    #[test]
    fn the_pages_of_queues_count_the_cells_that_the_table_counts() {
        let rows = agreement_by_queue();
        let count = Regex::new(r"\d+\s+of\s+\d+\s+cells").unwrap();
        let mut stated = 0;
        for file in fs::read_dir(docs().join("qdiscs")).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            let name = path.file_stem().unwrap().to_str().unwrap();
            let page = fs::read_to_string(&path).unwrap();
            for found in count.find_iter(&page) {
                let words: Vec<&str> = found.as_str().split_whitespace().collect();
                assert_eq!(Some(&words.join(" ")), rows.get(name), "{name}.md");
                stated += 1;
            }
        }
        assert!(stated > 0);
    }

    #[test]
    fn the_first_row_is_the_head() {
        let rows = [["a", "b"], ["1", "2"]].map(|row| row.map(str::to_owned));
        assert_eq!(rows_of_text(&rows), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
