//! The metrics of one run.

use super::columns::Columns;
use super::latency::{above_base, induced};
use super::row::Cell;
use super::run::{Flow, Link, Run, Window};
use crate::stats::quantile_of_sorted;

/// Megabits per byte.
const MBIT: f64 = 8e-6;

impl Run<'_> {
    /// Its metrics, in the order of [`Columns::names`].
    pub(super) fn metrics(&self, columns: &Columns, window: Window) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        let directions = columns.directions.iter();
        cells.extend(directions.map(|direction| self.goodput(direction, window)));
        cells.extend(self.delays(window));
        let links = columns.links.iter();
        cells.extend(links.clone().map(|link| self.sojourn(link)));
        cells.extend(links.map(|link| self.driver(link)));
        cells.push(self.sum(|link| link.drops));
        cells.push(self.sum(|link| link.marks));
        let shared = columns.shared.iter();
        cells.extend(shared.map(|direction| self.jain(direction, columns)));
        cells
    }

    /// The sum of the goodputs of a direction; those of transfers are taken over the measured time.
    fn goodput(&self, direction: &str, window: Window) -> Cell {
        let mut data = self.flows.iter().filter(|f| f.identity.carries_data());
        if data.clone().next().is_none() {
            return Cell::Absent;
        }
        let spread = |bytes: f64| bytes * MBIT / window.length;
        let goodput = |flow: &Flow<'_>| {
            if flow.identity.is_finite {
                flow.delivered_bytes.map(spread)
            } else {
                flow.goodput_mbit_per_s
            }
        };
        let of = data.by_ref().filter(|f| f.identity.direction == direction);
        Cell::Value(of.filter_map(goodput).sum())
    }

    /// Induced latency, latency above base, and two percentiles of the pings after the warm-up.
    fn delays(&self, window: Window) -> [Cell; 4] {
        if self.pings.is_empty() {
            return [Cell::Absent; 4];
        }
        let load = self.flows.iter().filter(|f| f.identity.carries_data());
        let begin = load.filter_map(|f| f.started_s).reduce(f64::min);
        let counted = self.pings.iter().filter(|ping| ping.t_s >= window.warmup);
        let mut times: Vec<f64> = counted.filter_map(|ping| ping.rtt_ms).collect();
        times.sort_by(f64::total_cmp);
        [
            induced(&self.pings, window.warmup, begin),
            above_base(&self.pings, window.warmup),
            quantile_of_sorted(&times, 0.95),
            quantile_of_sorted(&times, 0.99),
        ]
        .map(Cell::of)
    }

    fn sojourn(&self, name: &str) -> Cell {
        let link = self.links.iter().find(|link| link.name == name);
        link.map_or(Cell::Absent, |link| Cell::of(link.sojourn_ms_p95))
    }

    /// The delay below the queue; only links with a driver have one.
    fn driver(&self, name: &str) -> Cell {
        let mut of = self.links.iter().filter(|link| link.name == name);
        of.find_map(|link| link.driver_ms_p95)
            .map_or(Cell::Absent, Cell::Value)
    }

    fn sum(&self, of: impl Fn(&Link<'_>) -> Option<f64>) -> Cell {
        Cell::Value(self.links.iter().filter_map(of).sum())
    }

    /// Jain's index over the goodputs of the connections of a direction.
    fn jain(&self, direction: &str, columns: &Columns) -> Cell {
        let connections = self.flows.iter().filter(|f| f.identity.has_connection());
        if connections.clone().next().is_none() {
            return Cell::Absent;
        }
        let compared = connections
            .filter(|f| columns.is_compared(&f.identity) && f.identity.direction == direction);
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for rate in compared.filter_map(|f| f.goodput_mbit_per_s) {
            count += 1.0;
            sum += rate;
            squares += rate * rate;
        }
        // Without any goodput, fairness is undefined.
        Cell::of((squares > 0.0).then(|| sum * sum / (count * squares)))
    }
}
