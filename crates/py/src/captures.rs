//! The analysis of packet captures for Python.

use std::sync::{Arc, Mutex};

use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array,
    UInt32Array,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use sojourn_backend::locked;
use sojourn_capture::analysis::{Analysis, Connection, Found, LeftOut, Packets, Pings};
use sojourn_lab::Table;

use crate::errors::Failure;
use crate::outcome::PyTable;

/// Whether a file that begins with these bytes is a packet capture.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
pub(crate) fn is_capture(begin: PyBackedBytes) -> bool {
    sojourn_capture::reader::is_capture(&begin)
}

/// Analyses a packet capture that is read in parts.
#[pyclass(name = "CaptureAnalysis", module = "sojourn._core", frozen)]
#[derive(Debug, Default)]
pub(crate) struct PyCaptureAnalysis(Mutex<Analysis>);

/// Tables by name, counts by name, the names of the sources, the time of the first packet, and whether the file ends
/// within a packet.
type Tables = (
    Vec<(&'static str, PyTable)>,
    Vec<(&'static str, u64)>,
    Vec<String>,
    Option<i64>,
    bool,
);

#[pymethods]
impl PyCaptureAnalysis {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Analyse the next part of the file.
    #[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
    fn feed(&self, py: Python<'_>, part: PyBackedBytes) -> Result<(), Failure> {
        py.detach(|| locked(&self.0).feed(&part))
            .map_err(|damage| Failure::Damaged(damage.to_string()))
    }

    /// End the analysis, and return what it found.
    fn finish(&self, py: Python<'_>) -> Result<Tables, Failure> {
        py.detach(|| {
            let analysis = std::mem::take(&mut *locked(&self.0));
            let found = analysis
                .finish()
                .map_err(|damage| Failure::Damaged(damage.to_string()))?;
            tables(found)
        })
    }
}

fn tables(found: Found) -> Result<Tables, Failure> {
    let counts = counts(&found.left_out);
    let tables = vec![
        ("packets", packets(found.packets)?),
        ("connections", connections(&found.connections)?),
        ("pings", pings(found.pings)?),
    ];
    Ok((
        tables,
        counts,
        found.sources,
        found.first_at,
        found.ends_early,
    ))
}

fn counts(of: &LeftOut) -> Vec<(&'static str, u64)> {
    vec![
        ("not_ip", of.not_ip),
        ("other", of.other),
        ("cut", of.cut),
        ("fragments", of.fragments),
        ("malformed", of.malformed),
        ("link_type", of.link_type),
        ("unsupported", of.unsupported.unwrap_or_default().into()),
        ("repeated", of.repeated),
        ("timeless", of.timeless),
    ]
}

/// A table of these columns.
fn table(columns: impl IntoIterator<Item = (&'static str, ArrayRef)>) -> Result<PyTable, Failure> {
    let batch = RecordBatch::try_from_iter(columns);
    let batch = batch.map_err(|error| Failure::Damaged(error.to_string()))?;
    Ok(PyTable(Table::of(batch)))
}

fn packets(of: Packets) -> Result<PyTable, Failure> {
    let times = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let numbers = |values: Vec<u32>| -> ArrayRef { Arc::new(UInt32Array::from(values)) };
    let codes = |values: Vec<u8>| -> ArrayRef { Arc::new(UInt8Array::from(values)) };
    table([
        ("at", times(of.at)),
        ("source", numbers(of.source)),
        ("connection", numbers(of.connection)),
        ("direction", codes(of.direction)),
        ("point", codes(of.point)),
        ("bytes", numbers(of.bytes)),
        ("payload", numbers(of.payload)),
        ("ecn", codes(of.ecn)),
        ("kind", codes(of.kind)),
        ("acked", numbers(of.acked)),
        ("rtt", times(of.rtt)),
        ("offset", times(of.offset)),
        ("acked_until", times(of.acked_until)),
        ("sojourn", times(of.sojourn)),
        ("reason", codes(of.reason)),
    ])
}

fn pings(of: Pings) -> Result<PyTable, Failure> {
    table([
        ("at", Arc::new(Int64Array::from(of.at)) as ArrayRef),
        ("connection", Arc::new(UInt32Array::from(of.connection))),
        ("rtt", Arc::new(Int64Array::from(of.rtt))),
    ])
}

fn connections(of: &[Connection]) -> Result<PyTable, Failure> {
    let address = |side: usize| {
        let texts = of.iter().map(|one| one.endpoints[side].0.to_string());
        Arc::new(StringArray::from_iter_values(texts)) as ArrayRef
    };
    let port = |side: usize| {
        let numbers = of.iter().map(|one| one.endpoints[side].1);
        Arc::new(UInt16Array::from_iter_values(numbers)) as ArrayRef
    };
    let names = of.iter().map(|one| one.protocol.name());
    let times = |time: fn(&Connection) -> Option<i64>| {
        Arc::new(of.iter().map(time).collect::<Int64Array>()) as ArrayRef
    };
    let flags = |flag: fn(&Connection) -> bool| {
        let values: Vec<bool> = of.iter().map(flag).collect();
        Arc::new(BooleanArray::from(values)) as ArrayRef
    };
    table([
        (
            "protocol",
            Arc::new(StringArray::from_iter_values(names)) as ArrayRef,
        ),
        ("address", address(0)),
        ("port", port(0)),
        ("other_address", address(1)),
        ("other_port", port(1)),
        ("opened_at", times(|one| one.opened_at)),
        ("connected_at", times(|one| one.connected_at)),
        ("is_closed", flags(|one| one.is_closed)),
        ("is_reset", flags(|one| one.is_reset)),
    ])
}
