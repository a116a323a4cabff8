//! The statistics of queues, as the kernel reports them through netlink.

use std::fs;
use std::io;
use std::path::Path;

use sojourn_net::Instant;
use sojourn_records::LinkCounters;

/// Handles of queues under test have at least this number; those of shapers are lower.
const FIRST_HANDLE: u32 = 0x10;

/// The statistics of a queue at one time, since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) at: Instant,
    pub(crate) device: String,
    pub(crate) handle: u32,
    pub(crate) kind: String,
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) drops: u64,
    pub(crate) backlog_packets: u64,
    pub(crate) backlog_bytes: u64,
    /// What the kind of queue reports besides.
    own: Vec<u8>,
}

impl Row {
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        Some(Self {
            at: Instant::from_nanos(word()?.parse().ok()?),
            device: word()?.to_owned(),
            handle: u32::from_str_radix(word()?, 16).ok()? >> 16,
            kind: {
                let _parent = word()?;
                word()?.to_owned()
            },
            bytes: word()?.parse().ok()?,
            packets: word()?.parse().ok()?,
            drops: word()?.parse().ok()?,
            backlog_packets: word()?.parse().ok()?,
            backlog_bytes: word()?.parse().ok()?,
            own: bytes(word()?),
        })
    }

    /// Whether it is a queue under test, and no shaper or wire.
    pub(crate) const fn is_under_test(&self) -> bool {
        self.handle >= FIRST_HANDLE
    }

    /// A number of 32 bits in its own statistics; 0 where they are shorter, as those of older kernels are.
    fn word(&self, at: usize) -> u64 {
        let word = self.own.get(at..at + 4);
        word.map_or(0, |word| {
            u32::from_ne_bytes([word[0], word[1], word[2], word[3]]).into()
        })
    }

    /// The same of 64 bits, as modules of Sojourn have them, by its place.
    fn number(&self, place: usize) -> u64 {
        let number = self.own.get(8 * place..8 * place + 8);
        let number = number.and_then(<[u8]>::first_chunk);
        number.map_or(0, |number| u64::from_ne_bytes(*number))
    }

    /// What a link counts. Offsets are those of the structures in `linux/pkt_sched.h`.
    pub(crate) fn counters(&self) -> LinkCounters {
        let (mut overlimit, mut marks, mut threshold, mut acks) = (self.drops, 0, 0, 0);
        match self.kind.as_str() {
            // tc_codel_xstats.
            "codel" => {
                (overlimit, marks, threshold) = (self.word(20), self.word(24), self.word(32));
            }
            // tc_fq_codel_xstats: the type, then tc_fq_codel_qd_stats.
            "fq_codel" => {
                (overlimit, marks, threshold) = (self.word(8), self.word(12), self.word(28));
            }
            // tc_pie_xstats.
            "pie" => (overlimit, marks) = (self.word(28), self.word(36)),
            // tc_fq_pie_xstats.
            "fq_pie" => (overlimit, marks) = (self.word(8), self.word(16)),
            // tc_red_xstats and tc_choke_xstats.
            "red" | "choke" => (overlimit, marks) = (self.word(4), self.word(12)),
            // tc_sfb_xstats: drops of full queues, its own and its child's.
            "sfb" => (overlimit, marks) = (self.word(12) + self.word(16), self.word(20)),
            // tc_fq_qd_stats.
            "fq" => threshold = self.word(80),
            // Its reports do not tell drops of a full buffer from others.
            "cake" => {
                let tins = Tins::of(&self.own);
                (overlimit, marks, acks) = (0, tins.marks, tins.acks);
            }
            // kernel/modules/sch_*.h; cocoa drops at limits only.
            "afcd" => (marks, overlimit) = (self.number(6), self.number(8)),
            "afq" => (marks, overlimit) = (self.number(2), self.number(4)),
            "floq" => (marks, overlimit) = (self.number(0), (9..12).map(|n| self.number(n)).sum()),
            "predict" => (marks, overlimit) = (self.number(5), self.number(7)),
            _ => {}
        }
        let overlimit = overlimit.min(self.drops);
        LinkCounters {
            sent_packets: self.packets,
            sent_bytes: self.bytes,
            drops_overlimit: overlimit,
            drops_aqm: (self.drops - overlimit).saturating_sub(acks),
            drops_ack_filter: acks,
            marks_aqm: marks,
            marks_ce_threshold: threshold,
            ..LinkCounters::default()
        }
    }
}

/// Sums over the tins of `cake`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tins {
    marks: u64,
    acks: u64,
}

impl Tins {
    fn of(own: &[u8]) -> Self {
        // TCA_CAKE_STATS_TIN_STATS, TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS and _ECN_MARKED_PACKETS.
        const TIN_STATS: u16 = 10;
        const ACKS_DROPPED: u16 = 6;
        const MARKED: u16 = 8;
        let mut sum = Self::default();
        let tins = attributes(own).filter(|(kind, _)| *kind == TIN_STATS);
        for (_, tin) in tins.flat_map(|(_, tins)| attributes(tins)) {
            for (kind, value) in attributes(tin) {
                let value = value
                    .first_chunk()
                    .map_or(0, |word| u32::from_ne_bytes(*word));
                match kind {
                    ACKS_DROPPED => sum.acks += u64::from(value),
                    MARKED => sum.marks += u64::from(value),
                    _ => {}
                }
            }
        }
        sum
    }
}

/// The netlink attributes in `bytes`: kind and value.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Flags in the kind.
    const KIND: u16 = 0x3FFF;
    std::iter::from_fn(move || {
        let [a, b, c, d] = *bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & KIND, value))
    })
}

/// Bytes from hexadecimal digits; empty for anything else.
fn bytes(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len() / 2).map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16));
    pairs.collect::<Result<_, _>>().unwrap_or_default()
}

/// The statistics of all queues at all times.
///
/// # Errors
/// If the file of the guest cannot be read.
pub(crate) fn read(folder: &Path) -> io::Result<Vec<Row>> {
    let text = fs::read_to_string(folder.join("queues"))?;
    let rows: Option<Vec<_>> = text.lines().map(Row::of).collect();
    rows.ok_or_else(|| io::Error::other("unreadable statistics of queues"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_divided_by_what_the_kind_of_queue_reports() {
        let words = |words: &[u32]| -> String {
            let digits = words
                .iter()
                .map(|word| format!("{:08x}", word.swap_bytes()));
            digits.collect()
        };
        let row = |kind: &str, own: &str| {
            let line = format!("5000 r1 100000 10001 {kind} 15140 10 7 3 4542 {own}");
            Row::of(&line).expect("a row")
        };
        let codel = row("codel", &words(&[1514, 4, 2, 9, 0, 2, 6, 1, 5]));
        assert!(codel.is_under_test());
        let counted = codel.counters();
        assert_eq!((counted.sent_packets, counted.sent_bytes), (10, 15_140));
        assert_eq!((counted.drops_overlimit, counted.drops_aqm), (2, 5));
        assert_eq!((counted.marks_aqm, counted.marks_ce_threshold), (6, 5));
        let plain = row("pfifo", "-").counters();
        assert_eq!((plain.drops_overlimit, plain.drops_aqm), (7, 0));
        assert_eq!(Row::of("5000 r1"), None);
    }

    #[test]
    fn marks_and_acks_of_all_tins_of_cake_count() {
        let attribute = |kind: u16, value: &[u8]| {
            let length = u16::try_from(4 + value.len()).expect("short");
            let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let tin = |acks: u32, marks: u32| {
            [
                attribute(6, &acks.to_ne_bytes()),
                attribute(8, &marks.to_ne_bytes()),
            ]
            .concat()
        };
        let tins = [attribute(1, &tin(2, 30)), attribute(2, &tin(5, 4))].concat();
        let own = [attribute(4, &[0; 4]), attribute(0x800A, &tins)].concat();
        assert_eq!(Tins::of(&own), Tins { marks: 34, acks: 7 });
        assert_eq!(Tins::of(&own[..7]), Tins::default());
    }
}
