//! The metrics of one run as bytes.
//!
//! A row contains the version of the layout, the first bytes of its key, two bits per metric that
//! state whether it has a value, and the values. The key covers the version of Sojourn and the names
//! of the metrics, which a row does not contain.

use sojourn_store::Key;

/// Incremented when the layout changes.
pub(crate) const FORMAT: u8 = 1;

/// Bytes of the key in a row: few, but enough to distinguish rows.
const KEY: usize = 16;

/// A metric of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    /// It does not apply to the run.
    Absent,
    /// It was not measured.
    Missing,
    /// Its value.
    Value(f64),
}

impl Cell {
    /// A metric that applies.
    pub(super) fn of(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Value)
    }

    pub(super) const fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Missing => None,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Missing => 1,
            Self::Value(_) => 2,
        }
    }
}

/// A row, for [`decode`] with the same key.
pub(super) fn encode(cells: &[Cell], key: &Key) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    bytes.extend(&key[..KEY]);
    bytes.extend(cells.chunks(4).map(|four| {
        let codes = four.iter().enumerate();
        codes.fold(0, |byte, (n, cell)| byte | cell.code() << (2 * n))
    }));
    for value in cells.iter().filter_map(|cell| cell.value()) {
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

/// The `count` metrics of a row; `None` if it is damaged or has another key.
pub(super) fn decode(bytes: &[u8], key: &Key, count: usize) -> Option<Vec<Cell>> {
    let rest = bytes.strip_prefix(&[FORMAT])?.strip_prefix(&key[..KEY])?;
    let (codes, values) = rest.split_at_checked(count.div_ceil(4))?;
    let (values, []) = values.as_chunks::<8>() else {
        return None;
    };
    let mut values = values.iter().map(|value| f64::from_le_bytes(*value));
    let cells = (0..count).map(|n| match codes[n / 4] >> (2 * (n % 4)) & 3 {
        0 => Some(Cell::Absent),
        1 => Some(Cell::Missing),
        2 => values.next().map(Cell::Value),
        _ => None,
    });
    let cells = cells.collect::<Option<_>>()?;
    values.next().is_none().then_some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: [Cell; 6] = [
        Cell::Value(0.1),
        Cell::Absent,
        Cell::Missing,
        Cell::Value(-0.0),
        Cell::Value(f64::MAX),
        Cell::Missing,
    ];

    #[test]
    fn a_row_reads_back_and_is_short() {
        let bytes = encode(&CELLS, &[7; 32]);
        assert_eq!(bytes.len(), 1 + KEY + 2 + 3 * 8);
        assert_eq!(decode(&bytes, &[7; 32], 6).as_deref(), Some(&CELLS[..]));
        assert_eq!(encode(&[], &[7; 32]).len(), 1 + KEY);
        assert_eq!(
            decode(&encode(&[], &[7; 32]), &[7; 32], 0),
            Some(Vec::new())
        );
    }

    #[test]
    fn another_row_or_a_damaged_one_is_refused() {
        let bytes = encode(&CELLS, &[7; 32]);
        assert_eq!(decode(&bytes, &[8; 32], 6), None, "another key");
        assert_eq!(decode(&bytes, &[7; 32], 9), None, "more metrics");
        assert_eq!(decode(&bytes, &[7; 32], 3), None, "fewer metrics");
        for length in 0..bytes.len() {
            assert_eq!(
                decode(&bytes[..length], &[7; 32], 6),
                None,
                "{length} bytes"
            );
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(decode(&longer, &[7; 32], 6), None, "a byte more");
        for at in 0..=KEY {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged, &[7; 32], 6), None, "byte {at}");
        }
        let mut damaged = bytes;
        damaged[1 + KEY] |= 3;
        assert_eq!(decode(&damaged, &[7; 32], 6), None, "an unknown code");
    }
}
