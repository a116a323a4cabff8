//! The tables of `docs/validation/parity.md`.

use std::fmt::Write;

use crate::compare::Cell;
use crate::report::{Score, controllers, number, share, subtotals, within};

/// Every table under a heading that names its section; `tools/measured.py` fills the page with them.
pub(crate) fn sections(cells: &[Cell]) -> String {
    let sections = [
        ("totals", totals(cells)),
        ("metrics", by_metric(cells)),
        ("controls", by_control(cells)),
        ("misses", misses(cells)),
    ];
    let mut text = String::new();
    for (name, table) in sections {
        let _ = writeln!(text, "# {name}\n\n{table}");
    }
    text
}

/// How many cells agree, and how sharp the comparison is.
fn totals(cells: &[Cell]) -> String {
    let limited: Vec<&Cell> = cells
        .iter()
        .filter(|c| c.is_limited_by_deviation())
        .collect();
    let weak = limited.iter().filter(|c| c.tolerance > c.linux / 4.0);
    let saved = limited.iter().filter(|c| c.agrees_by_deviation());
    let of_queue = |name: &str| {
        let mut score = Score::default();
        for cell in cells.iter().filter(|c| has_queue(c, name)) {
            score.count(cell);
        }
        score
    };
    let all = Score::of(cells);
    let sfb = of_queue("sfb");
    let without_sfb = Score {
        agreeing: all.agreeing - sfb.agreeing,
        cells: all.cells - sfb.cells,
    };
    let with_tcp = cells.iter().filter(|c| c.cc.is_some()).count();
    rows_of_text(&[
        ["quantity".to_owned(), "cells".to_owned()],
        ["all".to_owned(), all.cells.to_string()],
        ["from scenarios with TCP".to_owned(), with_tcp.to_string()],
        ["**agree**".to_owned(), format!("**{}**", share(all))],
        ["agree, without SFB".to_owned(), share(without_sfb)],
        ["agree, only CAKE".to_owned(), share(of_queue("cake"))],
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

/// Whether the queue of a scenario is this one, with whatever options (`cake`, `cakebw`).
fn has_queue(cell: &Cell, name: &str) -> bool {
    cell.scenario.split('_').any(|word| word.starts_with(name))
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
        rows.push([
            format!("`{cc}`"),
            share(score),
            format!("{:.1}", 100.0 * score.share()),
        ]);
    }
    rows_of_text(&rows)
}

/// The cells that disagree, the farthest first.
fn misses(cells: &[Cell]) -> String {
    let mut missed: Vec<&Cell> = cells.iter().filter(|c| !c.agrees()).collect();
    missed.sort_by(|a, b| b.distance().total_cmp(&a.distance()));
    let mut rows = vec![
        [
            "scenario",
            "metric",
            "Sojourn",
            "Linux",
            "tolerance",
            "difference in tolerances",
        ]
        .map(str::to_owned),
    ];
    for cell in missed {
        let with_deviation =
            |value, deviation| format!("{} ± {}", number(value), number(deviation));
        rows.push([
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
    use super::*;

    #[test]
    fn the_first_row_is_the_head() {
        let rows = [["a", "b"], ["1", "2"]].map(|row| row.map(str::to_owned));
        assert_eq!(rows_of_text(&rows), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
