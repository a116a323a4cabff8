//! Feedback on media packets: the receiver's reports, and what the sender learns from them.
//!
//! # Source
//!
//! RFC 8888: for each packet of a range, whether it arrived, when, and its ECN field. When a report is sent, and the
//! range of the last 32 packets: draft-ietf-ccwg-rfc8298bis-screamv2-01, sections 5 and 6. Loss: section 4.2.1.1.
//!
//! # Differences from RFC 8888
//!
//! Arrival times are exact; reports have a resolution of 1/1024 s. Reports are sent on arrivals only, and a report
//! that is overtaken by a later one is ignored.

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant};

use super::control::{Acked, Feedback};

/// A report is sent after this number of packets at the latest.
const MOST_PACKETS: u32 = 16;
/// A report is sent on the first arrival after this time at the latest.
const LONGEST_INTERVAL: Duration = Duration::from_millis(40);
/// A report covers at least this number of packets up to the highest number.
const COVERED: u32 = 32;
/// RTCP header, two SSRCs, the range, and the time of the report.
const REPORT_BYTES: u64 = 20;

/// How a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    at: Instant,
    marked: bool,
}

/// A report: the arrivals of consecutive packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    first: u32,
    arrivals: Vec<Option<Arrival>>,
}

impl Report {
    /// Payload of the datagram that carries it: 2 bytes per packet, padded to 4.
    pub(super) const fn bytes(&self) -> u64 {
        REPORT_BYTES + (2 * self.arrivals.len() as u64).next_multiple_of(4)
    }
}

/// The receiver: which packets arrived, and when it reports.
#[derive(Debug)]
pub(super) struct Reporter {
    /// `None`: at the end of each frame, after 16 packets and after 40 ms.
    interval: Option<Duration>,
    /// Number of the first packet of `arrivals`.
    first: u32,
    arrivals: VecDeque<Option<Arrival>>,
    /// Lowest number that no report has covered.
    unreported: u32,
    /// Packets received since the last report.
    received: u32,
    last: Option<Instant>,
}

impl Reporter {
    pub(super) const fn new(interval: Option<Duration>) -> Self {
        Self {
            interval,
            first: 0,
            arrivals: VecDeque::new(),
            unreported: 0,
            received: 0,
            last: None,
        }
    }

    /// A packet arrives; `ends_frame`: it has the marker bit. Returns the report to send.
    pub(super) fn on_arrival(
        &mut self,
        now: Instant,
        number: u32,
        marked: bool,
        ends_frame: bool,
    ) -> Option<Report> {
        if number >= self.first {
            let place = (number - self.first) as usize;
            if place >= self.arrivals.len() {
                self.arrivals.resize(place + 1, None);
            }
            self.arrivals[place].get_or_insert(Arrival { at: now, marked });
        }
        self.received += 1;
        let waited = self.last.map(|last| now.since(last));
        let is_due = match (self.interval, waited) {
            (Some(interval), Some(waited)) => waited >= interval,
            (None, Some(waited)) => {
                ends_frame || self.received >= MOST_PACKETS || waited >= LONGEST_INTERVAL
            }
            (_, None) => true,
        };
        is_due.then(|| self.report(now))
    }

    #[expect(clippy::cast_possible_truncation, reason = "numbers are 32 bits")]
    fn report(&mut self, now: Instant) -> Report {
        let end = self.first + self.arrivals.len() as u32;
        let first = self
            .unreported
            .min(end.saturating_sub(COVERED))
            .max(self.first);
        self.arrivals.drain(..(first - self.first) as usize);
        self.first = first;
        self.unreported = end;
        self.received = 0;
        self.last = Some(now);
        Report {
            first,
            arrivals: self.arrivals.iter().copied().collect(),
        }
    }
}

/// What the sender knows of a packet that it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Acked,
    /// Missing in a report that acknowledges a later packet, since this time.
    Missing(Instant),
    /// Considered lost, missing since this time.
    Lost(Instant),
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    bytes: u64,
    known: Known,
}

/// The sender's list of the packets that reports may still speak of.
#[derive(Debug, Default)]
pub(super) struct History {
    first: u32,
    packets: VecDeque<Sent>,
    /// Lowest number above the highest acknowledged.
    next: u32,
    in_flight: u64,
    /// How long a packet must be missing to be considered lost.
    reordering: Duration,
}

impl History {
    /// A packet is sent, with the next number.
    pub(super) fn on_sent(&mut self, at: Instant, bytes: u64) {
        self.in_flight += bytes;
        let known = Known::Nothing;
        self.packets.push_back(Sent { at, bytes, known });
    }

    /// Size of the packets above the highest number acknowledged.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Their number.
    pub(super) fn packets_in_flight(&self) -> usize {
        self.packets.len() - (self.next - self.first) as usize
    }

    /// A report arrives.
    pub(super) fn on_report(&mut self, now: Instant, report: &Report) -> Feedback {
        let mut feedback = Feedback::default();
        #[expect(clippy::cast_possible_truncation, reason = "numbers are 32 bits")]
        let end = (report.first + report.arrivals.len() as u32).max(self.next);
        let places = (self.next - self.first) as usize..(end - self.first) as usize;
        feedback.newly_acked = self.packets.range(places).map(|sent| sent.bytes).sum();
        for (number, arrival) in (report.first..).zip(&report.arrivals) {
            let Some(sent) = number
                .checked_sub(self.first)
                .and_then(|place| self.packets.get_mut(place as usize))
            else {
                continue;
            };
            if number >= self.next && arrival.is_some_and(|arrival| arrival.marked) {
                feedback.newly_acked_ce += sent.bytes;
            }
            match (arrival, sent.known) {
                (Some(_), Known::Acked) | (None, _) => {}
                (Some(arrival), known) => {
                    if let Known::Lost(since) = known {
                        self.reordering = self.reordering.max(now.since(since));
                    }
                    sent.known = Known::Acked;
                    feedback.acked.push(Acked {
                        bytes: sent.bytes,
                        sent: sent.at,
                        arrived: arrival.at,
                        marked: arrival.marked,
                    });
                }
            }
        }
        self.in_flight -= feedback.newly_acked;
        feedback.in_flight = self.in_flight;
        self.next = end;
        feedback.lost = self.detect_losses(now);
        self.forget();
        feedback
    }

    /// Returns how many packets are considered lost from now on.
    fn detect_losses(&mut self, now: Instant) -> u64 {
        let reordering = self.reordering;
        let below = (self.next - self.first) as usize;
        let mut lost = 0;
        for sent in self.packets.iter_mut().take(below) {
            if sent.known == Known::Nothing {
                sent.known = Known::Missing(now);
            }
            if let Known::Missing(since) = sent.known
                && now.since(since) >= reordering
            {
                sent.known = Known::Lost(since);
                lost += 1;
            }
        }
        lost
    }

    /// Forgets packets that no report will speak of.
    fn forget(&mut self) {
        let kept = 2 * COVERED;
        while self.next - self.first > kept
            && let Some(sent) = self.packets.front()
            && !matches!(sent.known, Known::Nothing | Known::Missing(_))
        {
            self.packets.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_report_is_sent_at_the_end_of_a_frame_and_after_16_packets() {
        let mut reporter = Reporter::new(None);
        assert!(reporter.on_arrival(at(0), 0, false, false).is_some());
        assert!(reporter.on_arrival(at(1), 1, false, false).is_none());
        let report = reporter.on_arrival(at(2), 3, true, true).expect("due");
        assert_eq!((report.first, report.arrivals.len()), (0, 4));
        assert_eq!(report.arrivals[2], None);
        // 20 B, and 4 packets of 2 B.
        assert_eq!(report.bytes(), 28);
        let due: Vec<_> = (4..30)
            .filter(|&n| reporter.on_arrival(at(3), n, false, false).is_some())
            .collect();
        assert_eq!(due, [19]);
        assert!(reporter.on_arrival(at(43), 30, false, false).is_some());
    }

    #[test]
    fn a_report_covers_32_packets_and_all_that_no_report_has_covered() {
        let mut reporter = Reporter::new(Some(Duration::from_millis(50)));
        reporter.on_arrival(at(0), 0, false, true);
        for number in 1..100 {
            assert!(reporter.on_arrival(at(49), number, false, true).is_none());
        }
        let long = reporter.on_arrival(at(50), 100, false, false).expect("due");
        assert_eq!((long.first, long.arrivals.len()), (1, 100));
        let short = reporter
            .on_arrival(at(100), 101, false, false)
            .expect("due");
        assert_eq!((short.first, short.arrivals.len()), (70, 32));
    }

    /// The feedback on four packets of 1,000 B sent at 0 to 3 ms, of which these arrive, at 50 ms.
    fn feedback(history: &mut History, now: u64, arrive: &[u32]) -> Feedback {
        let arrival = |n: u32| {
            arrive.contains(&n).then_some(Arrival {
                at: at(50),
                marked: n == 1,
            })
        };
        let arrivals = (0..4).map(arrival).collect();
        history.on_report(at(now), &Report { first: 0, arrivals })
    }

    #[test]
    fn bytes_are_acknowledged_up_to_the_highest_number() {
        let mut history = History::default();
        (0..5).for_each(|n| history.on_sent(at(n), 1_000));
        let got = feedback(&mut history, 100, &[0, 1, 3]);
        assert_eq!(
            (got.newly_acked, got.newly_acked_ce, got.in_flight),
            (4_000, 1_000, 1_000)
        );
        assert_eq!((got.acked.len(), got.lost), (3, 1));
        assert_eq!(history.packets_in_flight(), 1);
        // The same report again tells nothing.
        let same = feedback(&mut history, 110, &[0, 1, 3]);
        let nothing = Feedback {
            in_flight: 1_000,
            ..Feedback::default()
        };
        assert_eq!(same, nothing);
    }

    #[test]
    fn a_late_arrival_sets_the_reordering_window() {
        let mut history = History::default();
        (0..5).for_each(|n| history.on_sent(at(n), 1_000));
        assert_eq!(feedback(&mut history, 100, &[0, 1, 3]).lost, 1);
        assert_eq!(feedback(&mut history, 107, &[0, 1, 2, 3]).acked.len(), 1);
        assert_eq!(history.reordering, Duration::from_millis(7));
        // The next missing packet is lost after 7 ms.
        history.on_sent(at(110), 1_000);
        let report = Report {
            first: 4,
            arrivals: vec![
                None,
                Some(Arrival {
                    at: at(150),
                    marked: false,
                }),
            ],
        };
        assert_eq!(history.on_report(at(200), &report).lost, 0);
        assert_eq!(history.on_report(at(207), &report).lost, 1);
    }
}
