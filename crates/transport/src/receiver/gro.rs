//! Generic receive offload: a device that merges segments, which TCP then acknowledges together (stretch ACKs).
//!
//! # Source
//!
//! Linux 6.1, from facts about `net/ipv4/tcp_offload.c`, `net/core/gro.c` and `napi_complete_done` in `net/core/dev.c`.
//!
//! # Law
//!
//! ```text
//! merge     a segment is merged with the one before if it is the next in order, no longer than the first, and has the
//!           same acknowledgement, timestamps, window, flags and ECN field; up to 64 kB with headers
//! end       PSH, FIN, a short segment and one that cannot be merged end a merged one
//! poll      without a timeout at each arrival, and everything is handed over; with one, at the first arrival and then
//!           at this interval, until a poll finds nothing (`napi_defer_hard_irqs` 1)
//! flush     with a timeout, a merged segment may grow in the next poll; the last poll, and one in a later ms
//!           (`jiffies`, HZ 1000) than that of its first segment, hand it over
//! ```
//!
//! Linux ends each burst with PSH, so a receiver of Linux's data acknowledges at most a burst at once.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | each connection has a device queue | connections share queues | a poll for one connection hands over nothing of another |
//! | polls take no time | up to 64 packets each, in a softirq | none at the rates of an access link |

use sojourn_net::{Duration, Instant, IpVersion};

use crate::clock::Ticks;
use crate::reception::Device;
use crate::segment::{Flags, Segment, headers};

/// `gro_max_size`.
const MAX_SIZE: u32 = 65_536;
/// Flags in which merged segments may differ.
const ENDS: Flags = Flags::PSH.with(Flags::FIN);

/// What the device has received and not handed over.
#[derive(Clone, Debug)]
pub(super) struct Gro {
    merges: bool,
    poll: Option<Duration>,
    /// Bytes of the headers of IP and TCP, which count.
    headers: u32,
    /// What has arrived since the last poll.
    ring: Vec<(Segment, bool)>,
    /// What may still grow, and the tick of its first segment.
    held: Option<(Merged, u64)>,
    /// The next poll; `None`: the next arrival causes one.
    polls_at: Option<Instant>,
}

/// Segments that TCP takes as one.
#[derive(Clone, Debug)]
pub(super) struct Merged {
    /// The first, with PSH or FIN if the last has it.
    pub(super) first: Segment,
    /// The length of the last.
    pub(super) last_len: u16,
    /// How many they are.
    pub(super) count: u32,
    /// They have a CE mark.
    pub(super) ce: bool,
}

impl Merged {
    pub(super) const fn of(segment: &Segment, ce: bool) -> Self {
        Self {
            first: *segment,
            last_len: segment.len,
            count: 1,
            ce,
        }
    }

    /// Segment number `n`, from 0 on.
    pub(super) fn segment(&self, n: u32) -> Segment {
        let is_last = n + 1 == self.count;
        Segment {
            seq: self.first.seq + n,
            len: if is_last {
                self.last_len
            } else {
                self.first.len
            },
            flags: if is_last {
                self.first.flags
            } else {
                self.first.flags.without(ENDS)
            },
            ..self.first
        }
    }

    /// Adds a segment; returns whether it did. All have one header with `headers` bytes.
    fn add(&mut self, segment: &Segment, ce: bool, headers: u32) -> bool {
        let first = &self.first;
        let bytes = headers + self.count * u32::from(first.len);
        let fits = segment.seq == first.seq + self.count
            && (1..=first.len).contains(&segment.len)
            && bytes + u32::from(segment.len) < MAX_SIZE
            && (segment.ack, segment.window) == (first.ack, first.window)
            && (segment.ts_val, segment.ts_ecr) == (first.ts_val, first.ts_ecr)
            && (ce, segment.flags.without(ENDS)) == (self.ce, first.flags);
        if fits {
            self.last_len = segment.len;
            self.first.flags = segment.flags;
            self.count += 1;
        }
        fits
    }

    /// Whether nothing can be added.
    fn is_over(&self) -> bool {
        self.first.flags != self.first.flags.without(ENDS) || self.last_len < self.first.len
    }
}

impl Gro {
    /// `None`: the device hands over each packet by itself.
    pub(super) fn new(device: &Device, ip: IpVersion) -> Option<Box<Self>> {
        (*device != Device::default()).then(|| {
            Box::new(Self {
                merges: device.merges,
                poll: device.poll,
                headers: headers(ip).into(),
                ring: Vec::new(),
                held: None,
                polls_at: None,
            })
        })
    }

    /// When the device is polled next.
    pub(super) const fn polls_at(&self) -> Option<Instant> {
        self.polls_at
    }

    /// A packet arrives; returns whether the device is to be polled now.
    pub(super) fn arrive(&mut self, segment: &Segment, ce: bool, more: bool) -> bool {
        self.ring.push((*segment, ce));
        self.polls_at.is_none() && !more
    }

    /// Whether something waits for the end of a burst.
    pub(super) const fn waits(&self) -> bool {
        self.polls_at.is_none() && !self.ring.is_empty()
    }

    /// The device is polled; returns what it hands over.
    pub(super) fn poll(&mut self, now: Instant, ticks: Ticks) -> Vec<Merged> {
        let (mut ready, tick) = (Vec::new(), ticks.at(now));
        let timeout = self.poll.filter(|_| !self.ring.is_empty());
        for (segment, ce) in std::mem::take(&mut self.ring) {
            self.take(&segment, ce, tick, &mut ready);
        }
        if timeout.is_none() || self.held.as_ref().is_some_and(|&(_, since)| since != tick) {
            ready.extend(self.held.take().map(|(merged, _)| merged));
        }
        self.polls_at = timeout.map(|timeout| now + timeout);
        ready
    }

    fn take(&mut self, segment: &Segment, ce: bool, tick: u64, ready: &mut Vec<Merged>) {
        if let Some((mut merged, since)) = self.held.take() {
            let added = merged.add(segment, ce, self.headers);
            if added && !merged.is_over() {
                self.held = Some((merged, since));
            } else {
                ready.push(merged);
            }
            if added {
                return;
            }
        }
        let merged = Merged::of(segment, ce);
        if !self.merges || merged.is_over() || segment.len == 0 {
            ready.push(merged);
        } else {
            self.held = Some((merged, tick));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::MSS;

    const TICKS: Ticks = Ticks::new(Duration::ZERO);

    fn gro(poll: Option<u64>) -> Gro {
        let device = Device {
            merges: true,
            poll: poll.map(Duration::from_micros),
        };
        *Gro::new(&device, IpVersion::V4).unwrap()
    }

    fn segment(seq: u32) -> Segment {
        Segment {
            seq,
            len: MSS,
            flags: Flags::ACK,
            ..Segment::EMPTY
        }
    }

    /// What is handed over of these segments, which arrive at once.
    fn merged(segments: &[Segment]) -> Vec<u32> {
        let mut gro = gro(None);
        let (last, others) = segments.split_last().unwrap();
        for other in others {
            assert!(!gro.arrive(other, false, true));
        }
        assert!(gro.arrive(last, false, false));
        let ready = gro.poll(Instant::from_millis(5), TICKS);
        assert!(gro.polls_at().is_none() && gro.held.is_none());
        for merged in &ready {
            for n in 0..merged.count {
                let seq = merged.first.seq + n;
                let sent = segments.iter().find(|sent| sent.seq == seq).unwrap();
                assert_eq!(merged.segment(n), *sent);
            }
        }
        ready.iter().map(|merged| merged.count).collect()
    }

    #[test]
    fn segments_that_differ_only_in_their_number_are_merged() {
        let run = |count| (0..count).map(segment).collect::<Vec<_>>();
        assert_eq!(merged(&run(3)), [3]);
        // 64 kB with headers.
        assert_eq!(merged(&run(100)), [45, 45, 10]);
        let changed = |change: fn(&mut Segment)| {
            let mut segments = run(4);
            change(&mut segments[1]);
            merged(&segments)
        };
        assert_eq!(changed(|s| s.flags |= Flags::PSH), [2, 2]);
        assert_eq!(changed(|s| s.len = 100), [2, 2]);
        assert_eq!(changed(|s| s.ts_val = 7), [1, 1, 2]);
        assert_eq!(changed(|s| s.flags |= Flags::ECE), [1, 1, 2]);
        assert_eq!(merged(&[segment(0), segment(2), segment(3)]), [1, 2]);
        assert_eq!(merged(&[segment(2), segment(1), segment(0)]), [1, 1, 1]);
    }

    #[test]
    fn a_device_with_a_timeout_is_polled_until_nothing_arrives() {
        let mut gro = gro(Some(2_000));
        let at = Instant::from_millis;
        let counts = |ready: Vec<Merged>| ready.iter().map(|m| m.count).collect::<Vec<_>>();
        // The first packet is polled at once, and may grow.
        assert!(gro.arrive(&segment(0), false, false));
        assert!(gro.poll(at(10), TICKS).is_empty());
        assert_eq!(gro.polls_at(), Some(at(12)));
        // The next ones wait for the poll. It is in a later ms, so that what has grown is handed over.
        assert!(!gro.arrive(&segment(1), false, false));
        assert!(!gro.arrive(&segment(2), false, false));
        assert_eq!(counts(gro.poll(at(12), TICKS)), [3]);
        assert!(!gro.arrive(&segment(3), false, false));
        assert!(gro.poll(at(14), TICKS).is_empty());
        // Nothing has arrived: the last poll.
        assert_eq!(counts(gro.poll(at(16), TICKS)), [1]);
        assert_eq!(gro.polls_at(), None);
        assert!(gro.arrive(&segment(4), false, false));
    }
}
