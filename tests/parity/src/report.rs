//! The comparison as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

use serde::Serialize;

use crate::cell::Cell;
use crate::compare::Comparison;
use crate::sample::{DISCOVERY_RATE, rejected};

/// Share of the cells that agree.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Score {
    pub(crate) agreeing: usize,
    /// Within half of the tolerance.
    pub(crate) close: usize,
    pub(crate) cells: usize,
}

impl Score {
    pub(crate) fn of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Self {
        let mut score = Self::default();
        for cell in cells {
            score.count(cell);
        }
        score
    }

    pub(crate) fn count(&mut self, cell: &Cell) {
        self.cells += 1;
        self.agreeing += usize::from(cell.agrees());
        self.close += usize::from(cell.distance() <= 0.5);
    }

    /// 0 of nothing: an empty comparison is no success.
    pub(crate) fn share(self) -> f64 {
        self.agreeing as f64 / self.cells.max(1) as f64
    }

    /// The same within half of the tolerance.
    pub(crate) fn close_share(self) -> f64 {
        self.close as f64 / self.cells.max(1) as f64
    }
}

/// Outcome of the two-sample tests of a set of cells.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Tests {
    /// Cells with enough repetitions on both sides.
    pub(crate) cells: usize,
    /// Those with a p-value of at most [`DISCOVERY_RATE`].
    pub(crate) low: usize,
    pub(crate) rejected: usize,
    /// Of the rejected, those whose means are within half of the tolerance.
    pub(crate) rejected_close: usize,
}

impl Tests {
    /// Samples of the same sizes on one kernel are one family of tests: where a few repetitions make all p-values
    /// large, they would lower the level that tests of more repetitions have to reach.
    pub(crate) fn of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Self {
        let mut families: BTreeMap<_, Vec<(&Cell, f64)>> = BTreeMap::new();
        for cell in cells {
            if let Some(p) = cell.p_value {
                let family = (&cell.kernel, cell.ours_runs, cell.linux_runs);
                families.entry(family).or_default().push((cell, p));
            }
        }
        let mut tests = Self::default();
        for tested in families.values() {
            let p_values: Vec<f64> = tested.iter().map(|&(_, p)| p).collect();
            let (number, level) = rejected(&p_values, DISCOVERY_RATE);
            let of_them = tested.iter().filter(|&&(_, p)| number > 0 && p <= level);
            tests.cells += tested.len();
            tests.low += p_values.iter().filter(|&&p| p <= DISCOVERY_RATE).count();
            tests.rejected += number;
            tests.rejected_close += of_them.filter(|(cell, _)| cell.distance() <= 0.5).count();
        }
        tests
    }
}

/// A line a cell, grouped by scenario; with `misses_only` those that disagree.
pub(crate) fn lines(cells: &[Cell], misses_only: MissesOnly) -> String {
    let shown: Vec<&Cell> = cells
        .iter()
        .filter(|c| misses_only == MissesOnly::No || !c.agrees())
        .collect();
    let width = shown.iter().map(|c| c.title.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut last = ("", "");
    for cell in shown {
        let of = (cell.kernel.as_str(), cell.title.as_str());
        if !last.0.is_empty() && last != of {
            text.push('\n');
        }
        last = of;
        let ours = cell.ours.map_or_else(|| "-".to_owned(), number);
        let verdict = match cell.ours {
            _ if cell.agrees() => "ok".to_owned(),
            None => "MISS".to_owned(),
            Some(_) => format!("MISS x{:.1}", cell.distance()),
        };
        let _ = writeln!(
            text,
            "{:4} {:width$}  {:14} ours {ours:>8}  linux {:>8} ±{:<7} tol {:<7} {verdict}",
            cell.kernel,
            cell.title,
            cell.metric,
            number(cell.linux),
            number(cell.linux_deviation),
            number(cell.tolerance),
        );
    }
    text
}

/// Whether agreeing cells are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissesOnly {
    Yes,
    No,
}

/// How many cells agree, by suite and by metric: a row of suites, then a row of scores for each
/// metric, the sums last.
pub(crate) fn subtotals(cells: &[Cell]) -> Vec<Vec<String>> {
    let mut suites: BTreeMap<&str, BTreeMap<&str, Score>> = BTreeMap::new();
    let mut metrics: Vec<&str> = Vec::new();
    for cell in cells {
        let by_metric = suites.entry(&cell.suite).or_default();
        by_metric.entry(cell.metric).or_default().count(cell);
        by_metric.entry("all").or_default().count(cell);
        if !metrics.contains(&cell.metric) {
            metrics.push(cell.metric);
        }
    }
    metrics.push("all");
    let names = suites.keys().copied();
    let mut rows = vec![
        ["agreeing cells"]
            .into_iter()
            .chain(names)
            .chain(["all"])
            .map(str::to_owned)
            .collect(),
    ];
    for metric in metrics {
        let mut row = vec![metric.to_owned()];
        let mut sum = Score::default();
        for by_metric in suites.values() {
            let score = by_metric.get(metric).copied().unwrap_or_default();
            sum.agreeing += score.agreeing;
            sum.close += score.close;
            sum.cells += score.cells;
            row.push(share(score));
        }
        row.push(share(sum));
        rows.push(row);
    }
    rows
}

/// The same, in columns.
pub(crate) fn subtotal_lines(cells: &[Cell]) -> String {
    let mut text = String::new();
    for row in subtotals(cells) {
        let _ = write!(text, "{:16}", row[0]);
        for score in &row[1..] {
            let _ = write!(text, "{score:>10}");
        }
        text.push('\n');
    }
    text
}

/// How many cells agree, by congestion control.
pub(crate) fn controllers(cells: &[Cell]) -> BTreeMap<&str, Score> {
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    for cell in cells {
        if let Some(cc) = &cell.cc {
            scores.entry(cc).or_default().count(cell);
        }
    }
    scores
}

/// A line for each congestion control.
pub(crate) fn by_controller(cells: &[Cell]) -> String {
    let mut text = String::new();
    for (cc, score) in controllers(cells) {
        let percent = 100.0 * score.share();
        let _ = writeln!(text, "{cc:16}{:>10}{percent:>7.1} %", share(score));
    }
    text
}

pub(crate) fn share(score: Score) -> String {
    match score.cells {
        0 => String::new(),
        n => format!("{}/{n}", score.agreeing),
    }
}

/// How many cells are within this part of their tolerance.
pub(crate) fn within(cells: &[Cell], part: f64) -> usize {
    cells.iter().filter(|c| c.distance() <= part).count()
}

/// How many cells would agree if less were tolerated: where all agree, this still tells progress.
pub(crate) fn stricter(cells: &[Cell]) -> String {
    format!(
        "within half the tolerance {}, a quarter {}, a tenth {} of {}",
        within(cells, 0.5),
        within(cells, 0.25),
        within(cells, 0.1),
        cells.len()
    )
}

/// How many cells of the same kernel are where its repetitions were.
pub(crate) fn in_range_line(cells: &[Cell]) -> String {
    let count = |part| cells.iter().filter(|cell| cell.is_in_range(part)).count();
    format!(
        "between the recorded repetitions {}, at most 1 % of their mean outside {}, 3 % {} of {}",
        count(0.0),
        count(0.01),
        count(0.03),
        cells.len()
    )
}

/// What the two-sample tests say.
pub(crate) fn tests_line(tests: Tests) -> String {
    format!(
        "two-sample tests: {} cells, {} with p of at most {rate:.0} %, {} rejected at a false discovery rate of \
         {rate:.0} %, {} of them within half the tolerance",
        tests.cells,
        tests.low,
        tests.rejected,
        tests.rejected_close,
        rate = 100.0 * DISCOVERY_RATE,
    )
}

/// What two kernels score against each other.
pub(crate) fn kernels_line(one: &str, other: &str, score: Score) -> String {
    format!(
        "for comparison, Linux {one} against Linux {other}: {:.3} ({} of {} cells), within half the tolerance {:.3}",
        score.share(),
        score.agreeing,
        score.cells,
        score.close_share()
    )
}

/// The line that ends the report.
pub(crate) fn last_line(score: Score) -> String {
    format!(
        "parity score {:.3} ({} of {} cells), within half the tolerance {:.3}",
        score.share(),
        score.agreeing,
        score.cells,
        score.close_share()
    )
}

/// Four significant digits or two decimals, whichever is shorter.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1_000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Writes everything that was compared.
pub(crate) fn write_json(path: &Path, comparison: &Comparison) -> io::Result<()> {
    #[derive(Serialize)]
    struct Report<'a> {
        score: Score,
        tests: Tests,
        failures: &'a [String],
        cells: &'a [Cell],
    }
    let report = Report {
        score: Score::of(&comparison.cells),
        tests: Tests::of(&comparison.cells),
        failures: &comparison.failures,
        cells: &comparison.cells,
    };
    write_text(path, &(serde_json::to_string_pretty(&report)? + "\n"))
}

/// Writes a file so that readers never see half of it.
pub(crate) fn write_text(path: &Path, text: &str) -> io::Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, text)?;
    fs::rename(partial, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::kernels;
    use crate::truth::Truth;

    #[test]
    fn a_rejection_is_close_if_the_means_are() {
        let truth = Truth::load();
        let mut cells = kernels(&truth, "6.1", "6.1");
        let tests = Tests::of(&cells);
        assert!(tests.cells > 300, "{tests:?}");
        assert_eq!((tests.rejected, tests.rejected_close), (0, 0));
        let tested = cells.iter_mut().filter(|cell| cell.p_value.is_some());
        for (n, cell) in tested.take(2).enumerate() {
            cell.p_value = Some(1e-6);
            cell.ours = Some(cell.linux + [0.4, 0.6][n] * cell.tolerance);
        }
        let tests = Tests::of(&cells);
        assert_eq!((tests.rejected, tests.rejected_close), (2, 1));
        let score = Score::of(&cells);
        assert_eq!(score.agreeing, score.cells);
        assert_eq!(score.close, score.cells - 1);
    }

    #[test]
    fn tests_of_few_repetitions_do_not_lower_the_level_of_others() {
        let truth = Truth::load();
        let mut cells = kernels(&truth, "6.1", "6.1");
        let many = |cell: &&mut Cell| cell.linux_runs == 10;
        for cell in cells.iter_mut().filter(many).take(5) {
            cell.p_value = Some(2e-4);
        }
        let alone = Tests::of(cells.iter().filter(|cell| cell.linux_runs == 10));
        assert_eq!((alone.rejected, alone.low), (5, 5));
        for cell in cells.iter_mut().filter(|cell| cell.linux_runs == 3) {
            cell.p_value = Some(0.5);
        }
        let all = Tests::of(&cells);
        assert!(all.cells > alone.cells);
        assert_eq!(all.rejected, 5);
    }
}
