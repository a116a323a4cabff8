//! The tins of each Diffserv mode: DSCP assignment, rates and weights.

use sojourn_net::Dscp;

use super::options::Diffserv;
use crate::contract::ClassId;

/// How packets spread over tins.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    /// The tin of each code point.
    pub(super) tins: [u8; 64],
    /// What each tin may use before the others come first, in bytes a second, and its weight where
    /// there is no shaper.
    pub(super) shares: Vec<(u64, i64)>,
    /// The order in which they are shown: the least wanted first.
    pub(super) order: &'static [usize],
    /// What reports call each tin.
    ids: Vec<ClassId>,
}

impl Classes {
    /// Those of `mode` at a rate in bytes per second; 0 is unlimited.
    pub(super) fn of(mode: Diffserv, rate: u64) -> Self {
        let shifted = |shifts: &[(u32, u32)]| -> Vec<(u64, i64)> {
            let share =
                |&(rate_shift, quantum_shift)| (rate >> rate_shift, 1_024_i64 >> quantum_shift);
            shifts.iter().map(share).collect()
        };
        let (tins, shares, order): ([u8; 64], _, &[usize]) = match mode {
            Diffserv::Besteffort => ([0; 64], vec![(rate, 65_535)], &[0]),
            Diffserv::Diffserv3 => (
                table(0, &[(1, &[LE, CS1]), (2, &[TOS4, VA, EF, CS6, CS7])]),
                shifted(&[(0, 0), (4, 4), (2, 2)]),
                &[1, 0, 2],
            ),
            Diffserv::Diffserv4 => (
                table(
                    0,
                    &[
                        (1, &[LE, CS1]),
                        (2, &[TOS4, CS2, 18, 20, 22, CS3, 26, 28, 30, 34, 36, 38]),
                        (3, &[CS4, CS5, VA, EF, CS6, CS7]),
                    ],
                ),
                shifted(&[(0, 0), (4, 4), (1, 1), (2, 2)]),
                &[1, 0, 2, 3],
            ),
            Diffserv::Diffserv8 => (
                table(
                    2,
                    &[
                        (0, &[LE]),
                        (1, &[CS1, 10, 12, 14, TOS2]),
                        (3, &[CS3, 26, 28, 30, 34, 36, 38]),
                        (4, &[TOS4, 18, 20, 22]),
                        (5, &[CS2]),
                        (6, &[CS4, CS5, VA, EF]),
                        (7, &[CS6, CS7]),
                    ],
                ),
                sevenths(rate),
                &[0, 1, 2, 3, 4, 5, 6, 7],
            ),
            Diffserv::Precedence => (
                std::array::from_fn(|n| u8::try_from(n / 8).unwrap_or_default()),
                sevenths(rate),
                &[0, 1, 2, 3, 4, 5, 6, 7],
            ),
        };
        let id = |tin| {
            let place = order.iter().position(|&at| at == tin);
            ClassId::numbered("tin", place.unwrap_or(tin))
        };
        Self {
            ids: (0..order.len()).map(id).collect(),
            tins,
            shares,
            order,
        }
    }

    /// What reports call a tin: its place in the order in which statistics show them.
    #[inline]
    pub(super) fn id(&self, tin: usize) -> ClassId {
        self.ids[tin]
    }

    #[inline]
    pub(super) fn tin(&self, dscp: Dscp) -> usize {
        usize::from(self.tins[usize::from(dscp.number())])
    }
}

const LE: usize = 1;
const TOS2: usize = 2;
const TOS4: usize = 4;
const CS1: usize = 8;
const CS2: usize = 16;
const CS3: usize = 24;
const CS4: usize = 32;
const CS5: usize = 40;
const VA: usize = 44;
const EF: usize = 46;
const CS6: usize = 48;
const CS7: usize = 56;

/// The code points of each tin; the rest go to `rest`.
fn table(rest: u8, tins: &[(u8, &[usize])]) -> [u8; 64] {
    let mut table = [rest; 64];
    for &(tin, points) in tins {
        for &point in points {
            table[point] = tin;
        }
    }
    table
}

/// Eight tins, each with seven eighths of the one before.
fn sevenths(rate: u64) -> Vec<(u64, i64)> {
    let next = |&(rate, quantum): &(u64, i64)| {
        let rate = u128::from(rate) * 7 / 8;
        Some((u64::try_from(rate).unwrap_or(u64::MAX), quantum * 7 / 8))
    };
    std::iter::successors(Some((rate, 256)), next)
        .take(8)
        .collect()
}
