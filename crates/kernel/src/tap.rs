//! The times at which packets enter and leave the queues, as the guest saw them in front of and behind the router.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::iter::Peekable;
use std::path::Path;

use sojourn_net::{Duration, Instant};
use sojourn_records::Histogram;
use sojourn_scenario::plan::Config;

use crate::network::Toward;

/// A packet on a device, as `struct packet` of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    at: Instant,
    identity: u64,
    flow: u16,
    is_outgoing: bool,
    is_from_source: bool,
}

/// Bytes of a packet in the file.
const LENGTH: usize = 24;

impl Packet {
    fn of(bytes: &[u8; LENGTH]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Self {
            at: Instant::from_nanos(word(0)),
            identity: word(8),
            flow: u16::from_le_bytes([bytes[18], bytes[19]]),
            is_outgoing: bytes[20] == 1,
            is_from_source: bytes[22] == 1,
        }
    }
}

/// Reads the packets of one device in one direction.
struct Packets {
    file: BufReader<File>,
    is_outgoing: bool,
}

impl Packets {
    fn open(folder: &Path, device: &str, is_outgoing: bool) -> io::Result<Peekable<Self>> {
        let file =
            BufReader::with_capacity(1 << 16, File::open(folder.join(format!("tap.{device}")))?);
        Ok(Self { file, is_outgoing }.peekable())
    }
}

impl Iterator for Packets {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        loop {
            let mut bytes = [0; LENGTH];
            self.file.read_exact(&mut bytes).ok()?;
            let packet = Packet::of(&bytes);
            if packet.is_outgoing == self.is_outgoing {
                return Some(packet);
            }
        }
    }
}

/// What was seen of one link.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// Time in the queue of each packet that left since the end of the warm-up, in nanoseconds.
    pub(crate) sojourn: Histogram,
    /// Mean and longest time in the queue of the packets that left in each interval; `None`: none did.
    pub(crate) series: Vec<Option<(Duration, Duration)>>,
    /// Time since the end of the warm-up during which a packet waited that left the queue later.
    pub(crate) busy: Duration,
    /// Packets of each flow that entered after the warm-up and neither left nor wait, with its data.
    pub(crate) lost: Vec<u64>,
}

/// Interval of the series that is being summed up.
#[derive(Clone, Copy, Default)]
struct Interval {
    count: u64,
    sum: u64,
    max: Duration,
}

/// Matches the packets that entered and left the queue of a direction; `waiting` are in it at the end.
///
/// # Errors
/// If the files of the guest cannot be read.
pub(crate) fn passed(
    folder: &Path,
    config: &Config,
    toward: Toward,
    waiting: usize,
) -> io::Result<Passed> {
    let [before, behind] = match toward {
        Toward::Servers => ["r0", "r1"],
        Toward::Clients => ["r1", "r0"],
    };
    let mut entered = Packets::open(folder, before, false)?;
    let mut left = Packets::open(folder, behind, true)?;
    let measure = Instant::ZERO + config.measure_from;
    let end = Instant::ZERO + config.duration;
    let sample = config.sample.as_nanos().max(1);
    let intervals = usize::try_from(config.duration.as_nanos() / sample).unwrap_or(0);
    let mut series = vec![Interval::default(); intervals];
    let mut passed = Passed {
        lost: vec![0; config.flows.len()],
        ..Passed::default()
    };
    // By identity: when it entered, its flow, and whether it travels with the data.
    let mut inside: BTreeMap<u64, Packet> = BTreeMap::new();
    let mut covered = measure;
    loop {
        // A packet may leave in the instant in which it entered.
        let enters = match (entered.peek(), left.peek()) {
            (Some(one), Some(other)) => one.at <= other.at,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => break,
        };
        if enters {
            let packet = entered.next().filter(|packet| packet.at < end);
            if let Some(earlier) = packet.and_then(|packet| inside.insert(packet.identity, packet))
            {
                passed.note_lost(&earlier, measure);
            }
            continue;
        }
        let Some(packet) = left.next().filter(|packet| packet.at < end) else {
            continue;
        };
        let Some(entry) = inside.remove(&packet.identity) else {
            continue;
        };
        let waited = packet.at.saturating_since(entry.at);
        let interval = usize::try_from(packet.at.as_nanos() / sample).unwrap_or(usize::MAX);
        if let Some(interval) = series.get_mut(interval) {
            interval.count += 1;
            interval.sum += waited.as_nanos();
            interval.max = interval.max.max(waited);
        }
        if packet.at >= measure {
            passed.sojourn.record(waited.as_nanos());
            passed.busy += packet.at.saturating_since(entry.at.max(covered));
            covered = covered.max(packet.at);
        }
    }
    // Those that entered last wait; the others were dropped.
    let mut rest: Vec<_> = inside.into_values().collect();
    rest.sort_unstable_by_key(|packet| (packet.at, packet.identity));
    let dropped = rest.len().saturating_sub(waiting);
    for packet in &rest[..dropped] {
        passed.note_lost(packet, measure);
    }
    passed.series = (series.into_iter())
        .map(|interval| {
            let mean = interval.sum.checked_div(interval.count)?;
            Some((Duration::from_nanos(mean), interval.max))
        })
        .collect();
    Ok(passed)
}

impl Passed {
    fn note_lost(&mut self, packet: &Packet, measure: Instant) {
        if packet.is_from_source
            && packet.at >= measure
            && let Some(lost) = self.lost.get_mut(usize::from(packet.flow))
        {
            *lost += 1;
        }
    }
}
