//! Each rule of a profile by the smallest case in which another rule does something else.

use sojourn_net::{Duration, Instant};

use crate::cc::BurstSize;
use crate::clock::Ticks;
use crate::profile::SenderProfile::{Linux, Linux314, Linux419, Linux2634, Ns2};
use crate::profile::{Bound, SenderProfile};
use crate::segment::{Flags, SackBlock, Segment};
use crate::sender::state::recovery::{Phase, Recovery};
use crate::sender::state::timer::Kind;
use crate::sender::{Sender, SenderParams};

/// A connection whose peer is the test.
struct Peer {
    sender: Sender,
    now: Instant,
    /// What the sender has sent since it was last looked at.
    out: Vec<Segment>,
}

impl Peer {
    /// A connection after a handshake of `rtt`, with `segments` written, and the initial window sent.
    fn with(params: &SenderParams, rtt: Duration, segments: u64) -> Self {
        let mut peer = Self {
            sender: Sender::new(params, Ticks::default()),
            now: Instant::ZERO,
            out: Vec::new(),
        };
        peer.sender.connect(peer.now, &mut peer.out);
        peer.out.clear();
        peer.now += rtt;
        let syn_ack = Segment {
            flags: Flags::SYN | Flags::ACK,
            ..Peer::blank(0)
        };
        peer.sender.on_segment(peer.now, &syn_ack, &mut peer.out);
        peer.out.clear();
        let bytes = segments * u64::from(params.mss);
        peer.sender.write(peer.now, bytes, &mut peer.out);
        peer
    }

    /// With an initial window of 10 segments and a round trip of 100 ms.
    fn of(profile: SenderProfile) -> Self {
        let params = SenderParams {
            profile,
            ..SenderParams::default()
        };
        Self::with(&params, Duration::from_millis(100), 1_000)
    }

    const fn blank(ack: u32) -> Segment {
        Segment {
            ack,
            ts_ecr: 0,
            window: 1 << 24,
            flags: Flags::ACK,
            ..Segment::EMPTY
        }
    }

    fn wait_micros(&mut self, micros: u64) -> &mut Self {
        self.now += Duration::from_micros(micros);
        self
    }

    /// An acknowledgement with SACK blocks arrives; returns what the sender sends.
    fn ack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        let mut segment = Self::blank(ack);
        for (n, &(start, end)) in blocks.iter().enumerate() {
            segment.sacks[n] = SackBlock { start, end };
        }
        segment.set_sack_count(u8::try_from(blocks.len()).unwrap());
        self.deliver(&segment)
    }

    fn deliver(&mut self, segment: &Segment) -> Vec<u32> {
        self.out.clear();
        self.sender.on_segment(self.now, segment, &mut self.out);
        self.out.iter().map(|sent| sent.seq).collect()
    }

    /// The timer expires.
    fn expire(&mut self) -> Vec<u32> {
        self.out.clear();
        self.now = self.sender.next_timer().unwrap();
        self.sender.on_timer(self.now, &mut self.out);
        self.out.iter().map(|sent| sent.seq).collect()
    }

    fn lost(&self) -> u32 {
        self.sender.board.lost()
    }
}

/// The same of each profile.
fn each<T>(of: impl Fn(SenderProfile) -> T) -> [T; 5] {
    SenderProfile::ALL.map(of)
}

#[test]
fn names_are_those_of_scenarios_and_the_default_is_linux() {
    let names = each(SenderProfile::name);
    assert_eq!(
        names,
        ["linux", "linux-4.19", "linux-3.14", "linux-2.6.34", "ns-2"]
    );
    assert_eq!(SenderProfile::default(), Linux);
    assert_eq!(each(SenderProfile::is_default)[1..], [false; 4]);
}

#[test]
fn the_initial_window_is_that_of_the_kernel() {
    assert_eq!(each(SenderProfile::initial_window), [10, 10, 10, 3, 10]);
}

#[test]
fn the_first_syn_is_repeated_after_one_or_three_seconds() {
    let timeout = |profile| {
        let params = SenderParams {
            profile,
            ..SenderParams::default()
        };
        let mut sender = Sender::new(&params, Ticks::default());
        sender.connect(Instant::ZERO, &mut Vec::new());
        sender.next_timer().unwrap().as_nanos() / 1_000_000_000
    };
    assert_eq!(each(timeout), [1, 1, 1, 3, 3]);
}

#[test]
fn bursts_end_with_a_push_in_linux_5_4_and_later() {
    let pushes = |profile| {
        let peer = Peer::of(profile);
        assert_eq!(peer.out.len(), 10);
        let pushed = peer.out.iter().filter(|seg| seg.flags.has(Flags::PSH));
        pushed.count()
    };
    // Bursts of two.
    assert_eq!(each(pushes), [5, 0, 0, 0, 0]);
}

/// Segments that the second of two acknowledgements releases, 0.5 ms after the first, 100 ms less `early_ms` after the
/// first segments were sent; each advances by one segment, and the window does not grow.
fn released(profile: SenderProfile, early_ms: u64) -> usize {
    let params = SenderParams {
        profile,
        cc: "cubic hystart off initial_ssthresh 10".parse().unwrap(),
        ..SenderParams::default()
    };
    let mut peer = Peer::with(&params, Duration::from_millis(100), 1_000);
    peer.wait_micros(100_000 - 1_000 * early_ms);
    peer.ack(1, &[]);
    peer.wait_micros(500).ack(2, &[]).len()
}

#[test]
fn segments_leave_one_by_one_without_offloads() {
    assert_eq!(each(|profile| released(profile, 0)), [0, 0, 1, 1, 1]);
}

#[test]
fn linux_4_19_defers_a_burst_for_half_a_round_trip() {
    // The next acknowledgement is expected in about 20 ms: more than 1 ms, less than half a round trip.
    assert_eq!(
        [Linux, Linux419].map(|profile| released(profile, 20)),
        [1, 0]
    );
}

#[test]
fn bursts_are_longer_on_short_paths_since_linux_5_18() {
    let size = |profile| {
        let params = SenderParams {
            profile,
            ..SenderParams::default()
        };
        let peer = Peer::with(&params, Duration::from_micros(600), 1_000);
        peer.sender.burst_segments::<false>(BurstSize::DEFAULT)
    };
    // 2 windows of 10 segments per 0.6 ms make 34 segments per 1/1024 s; half of 65 kB more exceeds the maximum.
    assert_eq!([Linux, Linux419].map(size), [45, 32]);
}

#[test]
fn pacing_is_at_2_and_1_2_windows_per_round_trip_or_2_or_1() {
    let percent = |profile| {
        let mut peer = Peer::of(profile);
        [100, 15].map(|ssthresh| {
            peer.sender.window.ssthresh = crate::cc::Threshold::of_segments(ssthresh);
            // 10 segments per 100 ms.
            peer.sender.window_rate::<false>() * 100 / 144_800
        })
    };
    assert_eq!([Linux, Linux419].map(percent), [[200, 120]; 2]);
    assert_eq!(percent(Linux314), [200, 200]);
    assert_eq!(percent(Ns2), [100, 100]);
    assert!(!Linux2634.paces() && Linux314.paces());
    assert_eq!(
        each(SenderProfile::supports_models),
        [true, true, false, false, false]
    );
}

#[test]
fn only_bbr_of_4_19_counts_headers_in_the_rate_for_queues() {
    let rate_for_queues = |profile, cc: &str| {
        let params = SenderParams {
            profile,
            cc: cc.parse().unwrap(),
            ..SenderParams::default()
        };
        let peer = Peer::with(&params, Duration::from_millis(100), 1_000);
        let own = peer.sender.pacing.rate();
        peer.sender
            .pacing_rate()
            .map(|rate| (rate.get() * 1_448 + own / 2) / own)
    };
    assert_eq!(
        [Linux, Linux419].map(|profile| rate_for_queues(profile, "bbr")),
        [Some(1_448), Some(1_500)]
    );
    assert_eq!(
        [Linux419, Linux314].map(|profile| rate_for_queues(profile, "cubic")),
        [Some(1_448); 2]
    );
    // It has no pacing rate.
    assert_eq!(rate_for_queues(Linux2634, "cubic"), None);
}

#[test]
fn a_paced_ns_2_spreads_the_first_window_over_the_round_trip() {
    let departures = |profile| {
        let params = SenderParams {
            profile,
            pacing: true,
            ..SenderParams::default()
        };
        let mut peer = Peer::with(&params, Duration::from_millis(100), 1_000);
        let begin = peer.now;
        let mut at = vec![0; peer.out.len()];
        while at.len() < 10 {
            let sent = peer.expire();
            at.extend(sent.iter().map(|_| peer.now.since(begin).as_micros()));
        }
        at
    };
    assert_eq!(departures(Linux), [0; 10]);
    assert_eq!(departures(Linux314), [0; 10]);
    let spread: Vec<u64> = (0..10).map(|n| 10_000 * n).collect();
    assert_eq!(departures(Ns2), spread);
    // Internal pacing of 4.19: bursts of two at 2 windows per round trip.
    assert_eq!(departures(Linux419)[..4], [0, 0, 10_000, 10_000]);
}

#[test]
fn round_trips_are_measured_in_microseconds_ticks_or_by_timestamps() {
    let srtt = |profile| {
        let mut peer = Peer::of(profile);
        // Sent at 100 ms, acknowledged at 200.7 ms with the echo of a segment sent at 70 ms.
        peer.wait_micros(100_700);
        let before = peer.sender.srtt().unwrap().as_micros();
        let ack = Segment {
            ts_ecr: 70,
            ..Peer::blank(2)
        };
        peer.deliver(&ack);
        (8 * (peer.sender.srtt().unwrap().as_micros() - before) + 50) / 100
    };
    assert_eq!(each(srtt), [7, 7, 0, 300, 7]);
}

#[test]
fn only_newer_kernels_take_rtt_samples_from_sack_blocks() {
    let sampled = |profile| {
        let mut peer = Peer::of(profile);
        peer.wait_micros(180_000).ack(0, &[(1, 2)]);
        peer.sender.srtt() != Some(Duration::from_millis(100))
    };
    assert_eq!(each(sampled), [true, true, true, false, false]);
}

#[test]
fn fack_counts_what_is_below_the_highest_sack_and_sack1_counts_acknowledgements() {
    let marked = |profile, acks: &[&[(u32, u32)]]| {
        let mut peer = Peer::of(profile);
        peer.wait_micros(100_000);
        for blocks in acks {
            peer.ack(0, blocks);
        }
        peer.lost()
    };
    // One block four segments ahead.
    let ahead = each(|profile| marked(profile, &[&[(3, 4)]]));
    assert_eq!(ahead, [0, 0, 1, 1, 0]);
    // Three acknowledgements, and holes between them: by RACK all, by FACK those three below the highest.
    let holes: [&[(u32, u32)]; 3] = [&[(1, 2)], &[(3, 4), (1, 2)], &[(5, 6), (3, 4), (1, 2)]];
    assert_eq!(each(|profile| marked(profile, &holes)), [3, 3, 2, 2, 3]);
}

#[test]
fn with_reordering_fack_gives_way_to_counting_sacks() {
    let mut peer = Peer::of(Linux314);
    peer.wait_micros(100_000);
    peer.sender.rack.on_reordering(5);
    peer.ack(0, &[(2, 3)]);
    peer.ack(0, &[(4, 7), (2, 3)]);
    assert_eq!(peer.lost(), 0);
    // Five are sacked above 0 and 1, four above 3.
    peer.ack(0, &[(4, 8), (2, 3)]);
    assert_eq!(peer.lost(), 2);
}

/// A connection in recovery: segment 0 is repeated at 200 ms, segments 10 and later are sent then.
fn recovering(profile: SenderProfile) -> (Peer, Vec<u32>) {
    let mut peer = Peer::of(profile);
    peer.wait_micros(100_000);
    let mut sent = Vec::new();
    for high in 2..=10 {
        sent.extend(peer.ack(0, &[(1, high)]));
    }
    assert_eq!(peer.sender.recovery.phase(), Phase::Recovery);
    (peer, sent)
}

#[test]
fn fack_repeats_a_lost_retransmission_and_sack1_does_not() {
    let again = |profile| {
        let (mut peer, sent) = recovering(profile);
        assert!(sent.contains(&0) && sent.contains(&10), "{sent:?}");
        peer.wait_micros(100_000).ack(0, &[(1, 11)]).contains(&0)
    };
    assert_eq!([Linux314, Linux2634, Ns2].map(again), [true, true, false]);
}

#[test]
fn older_senders_repeat_everything_after_a_time_out() {
    let spared = |profile| {
        let mut peer = Peer::of(profile);
        // Acknowledged after 100 ms; what this releases is 60 ms old at the time-out.
        let released = peer.wait_micros(100_000).ack(2, &[]).len();
        peer.sender.enter_loss(peer.now + Duration::from_millis(60));
        assert!(released > 0);
        peer.sender.board.outstanding() - peer.lost() == u32::try_from(released).unwrap()
    };
    assert_eq!(each(spared), [true, true, false, false, false]);
}

#[test]
fn linux_3_14_retransmits_early_when_three_duplicates_cannot_come() {
    let timer = |profile| {
        let params = SenderParams {
            profile,
            ..SenderParams::default()
        };
        let mut peer = Peer::with(&params, Duration::from_millis(100), 3);
        peer.wait_micros(100_000).ack(0, &[(1, 2)]);
        let kind = peer.sender.timer.kind();
        let wait = peer.sender.next_timer().unwrap().since(peer.now);
        (kind, wait.as_micros() / 1_000, peer)
    };
    let (kind, ms, mut peer) = timer(Linux314);
    assert_eq!((kind, ms), (Some(Kind::Reordering), 26));
    assert_eq!(peer.expire(), [0]);
    assert_eq!(peer.sender.recovery.phase(), Phase::Recovery);
    assert_eq!([timer(Linux2634).0, timer(Ns2).0], [Some(Kind::Rto); 2]);
}

#[test]
fn a_probe_waits_10_ms_in_linux_3_14_and_is_unknown_before() {
    let timer = |profile| {
        let params = SenderParams {
            profile,
            ..SenderParams::default()
        };
        let peer = Peer::with(&params, Duration::from_millis(2), 10);
        let wait = peer.sender.next_timer().unwrap().since(peer.now);
        (
            peer.sender.timer.is(Kind::Probe),
            wait.as_nanos() / 1_000_000,
        )
    };
    let [new, _, draft, old, ns2] = each(timer);
    assert_eq!([new, draft], [(true, 7), (true, 11)]);
    assert!(!old.0 && !ns2.0);
    let may = |profile| {
        let mut peer = Peer::of(profile);
        peer.sender.recovery.set_phase(Phase::Cwr);
        peer.sender.may_probe::<false>()
    };
    assert_eq!(each(may), [true, true, false, false, false]);
}

#[test]
fn below_the_threshold_the_bounds_of_the_reduction_differ() {
    // 20 in flight, threshold 30, 4 delivered before of which 1 was made up for, 2 delivered now.
    let sent = |bound, one_more| {
        let mut recovery = Recovery::new();
        recovery.begin_reduction(100, 40);
        recovery.set_phase(Phase::Recovery);
        recovery.reduced_cwnd(4, 20, 30, (bound, false));
        recovery.on_sent(1);
        recovery.reduced_cwnd(2, 20, 30, (bound, one_more)).unwrap() - 20
    };
    let both = |bound| [false, true].map(|one_more| sent(bound, one_more));
    assert_eq!(both(Bound::NoNewLoss), [5, 6]);
    assert_eq!(both(Bound::Repaired), [2, 6]);
    assert_eq!(sent(Bound::SlowStart, true), 6);
}

#[test]
fn each_profile_reduces_by_its_own_law() {
    let windows = |profile| {
        let mut peer = Peer::of(profile);
        peer.wait_micros(100_000);
        let mut windows = Vec::new();
        for high in 2..=8 {
            peer.ack(0, &[(1, high)]);
            windows.push(peer.sender.cwnd());
        }
        assert_eq!(peer.sender.ssthresh(), Some(7), "{profile}");
        windows
    };
    // In recovery from the third on: the window is what is in flight and may be sent.
    assert_eq!(windows(Ns2)[2..], [7; 5]);
    // One segment less on each second acknowledgement, down to the threshold.
    assert_eq!(windows(Linux2634)[2..], [9, 8, 8, 7, 7]);
    assert_ne!(windows(Linux314)[2..], windows(Linux2634)[2..]);
}

#[test]
fn sack1_counts_lost_segments_as_in_flight_and_sends_the_first_at_once() {
    let sent = |profile| {
        let mut peer = Peer::of(profile);
        peer.wait_micros(100_000);
        // Five of ten are lost.
        let mut sent = Vec::new();
        for high in 6..=10 {
            sent.push(peer.ack(0, &[(5, high)]));
        }
        sent
    };
    // Two segments by limited transmit; then the fast retransmit. 12 - 3 > 7: the rest waits for acknowledgements.
    let ns2 = sent(Ns2);
    assert_eq!(ns2[2], [0]);
    assert!(ns2[3..].iter().all(Vec::is_empty), "{ns2:?}");
    let linux = sent(Linux2634);
    assert!(linux[3..].iter().any(|sent| !sent.is_empty()), "{linux:?}");
}

#[test]
fn ns_2_does_not_undo_a_reduction() {
    let restored = |profile| {
        let (mut peer, _) = recovering(profile);
        // The original of segment 0 arrives late, with the timestamp of its transmission.
        let ack = Segment {
            ts_ecr: 100,
            ..Peer::blank(10)
        };
        peer.wait_micros(10_000).deliver(&ack);
        peer.sender.ssthresh() != Some(7)
    };
    assert_eq!(each(restored), [true, true, true, true, false]);
    let mut peer = Peer::of(Ns2);
    peer.expire();
    assert!(!peer.sender.recovery.frto());
}

#[test]
fn slow_start_of_linux_2_6_34_counts_acknowledgements() {
    let grown = |profile| {
        let mut peer = Peer::of(profile);
        peer.wait_micros(100_000).ack(2, &[]);
        peer.sender.cwnd() - 10
    };
    assert_eq!(each(grown), [2, 2, 2, 1, 2]);
}

#[test]
fn reordering_spans_at_most_127_segments_before_linux_3_18() {
    let params = SenderParams {
        profile: Linux314,
        initial_window: 200,
        ..SenderParams::default()
    };
    let mut peer = Peer::with(&params, Duration::from_millis(100), 1_000);
    peer.sender.rack.on_reordering(300);
    peer.wait_micros(100_000).ack(0, &[(1, 127)]);
    assert_eq!(peer.lost(), 0);
    peer.ack(0, &[(1, 128)]);
    assert_eq!(peer.lost(), 1);
}

#[test]
fn after_rate_halving_the_window_stays_below_the_threshold() {
    let window = |profile| {
        let (mut peer, _) = recovering(profile);
        peer.sender.window.cwnd = 3;
        peer.sender.end_reduction();
        peer.sender.cwnd()
    };
    assert_eq!([Linux, Linux314, Linux2634].map(window), [7, 7, 3]);
}
