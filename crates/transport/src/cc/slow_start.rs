//! Slow-start exit heuristics; HyStart++. SEARCH is in [`search`], Careful Resume in [`careful_resume`], Rapid Start in
//! [`rapid_start`].
//!
//! # Source
//!
//! RFC 9406 §4.2 and §4.3.
//!
//! # Law
//!
//! With the recommended constants, which are the defaults:
//!
//! ```text
//! slow start        when 8 samples of a round are in and the least exceeds that of the round before
//!                   by an eighth of it (4 to 16 ms): conservative slow start
//! conservative      growth is a quarter;
//!                   back to slow start if 8 samples of a round are all below those that began it;
//!                   after 5 rounds ssthresh = cwnd
//! both              without pacing, at most 8 segments per acknowledgement count
//! ```
//!
//! After the first congestion slow start is the standard one.
//!
//! # Differences from RFC 9406
//!
//! | here | RFC 9406 | effect |
//! |---|---|---|
//! | whole segments, with a remainder | bytes | – |

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};

use sojourn_schema::{Unit, parameters};

use super::{Ack, Window};
use careful_resume::CarefulResume;
use rapid_start::RapidStart;
use search::Search;

mod careful_resume;
mod rapid_start;
mod search;

/// Slow-start exit heuristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlowStart {
    /// None: slow start ends by congestion (RFC 5681).
    Standard,
    /// A long ACK train or a grown delay, as in Linux's CUBIC.
    HyStart,
    /// A grown delay that persists (RFC 9406).
    HyStartPlusPlus,
    /// Fewer deliveries than were sent one RTT before (draft-chung-ccwg-search).
    Search,
    /// As standard, after a jump to half of the window of an earlier connection (RFC 9959).
    CarefulResume,
    /// As standard, but three times per round while the queue is empty (draft-kazuho-ccwg-rapid-start); over QUIC.
    RapidStart,
}

impl SlowStart {
    /// Every heuristic.
    pub const ALL: [Self; 6] = [
        Self::Standard,
        Self::HyStart,
        Self::HyStartPlusPlus,
        Self::Search,
        Self::CarefulResume,
        Self::RapidStart,
    ];

    /// Those of a control whose own slow start is the standard one, the default first.
    pub(super) const WITH_STANDARD: &'static [Self] = &[
        Self::Standard,
        Self::HyStartPlusPlus,
        Self::Search,
        Self::CarefulResume,
        Self::RapidStart,
    ];

    /// The name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::HyStart => "hystart",
            Self::HyStartPlusPlus => "hystart++",
            Self::Search => "search",
            Self::CarefulResume => "careful-resume",
            Self::RapidStart => "rapid-start",
        }
    }

    /// How the keys of its parameters begin; `None`: it has none that controls share.
    const fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Standard | Self::HyStart => None,
            Self::HyStartPlusPlus => Some("hystartpp_"),
            Self::Search => Some("search_"),
            Self::CarefulResume => Some("saved_"),
            Self::RapidStart => Some("rapid_"),
        }
    }

    /// The heuristic that has the shared parameter `key`.
    pub(super) fn of_parameter(key: &str) -> Option<Self> {
        let has = |way: &Self| way.prefix().is_some_and(|prefix| key.starts_with(prefix));
        Self::ALL.into_iter().find(has)
    }
}

impl fmt::Display for SlowStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

parameters! {
    /// The constants of HyStart++, SEARCH and Rapid Start, and what Careful Resume has saved: parameters of each control
    /// that offers them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SlowStartParams {
        /// With slow_start hystart++: minimum RTT increase that starts conservative slow start.
        pub hystartpp_min_rtt_thresh: u32 = 4_000 => micros(0, 10_000_000),
            "RFC 9406 section 4.3, MIN_RTT_THRESH";
        /// With slow_start hystart++: RTT increase that always starts conservative slow start.
        pub hystartpp_max_rtt_thresh: u32 = 16_000 => micros(0, 10_000_000),
            "RFC 9406 section 4.3, MAX_RTT_THRESH";
        /// With slow_start hystart++: between the two thresholds, the RTT divided by this is the threshold.
        pub hystartpp_min_rtt_divisor: u16 = 8 => count(1, 1_000),
            "RFC 9406 section 4.3, MIN_RTT_DIVISOR";
        /// With slow_start hystart++: minimum number of RTT samples per round.
        pub hystartpp_n_rtt_sample: u16 = 8 => count(1, 1_000).of("samples"),
            "RFC 9406 section 4.3, N_RTT_SAMPLE";
        /// With slow_start hystart++: factor by which conservative slow start is slower than slow start.
        pub hystartpp_css_growth_divisor: u16 = 4 => count(2, 1_000),
            "RFC 9406 section 4.3, CSS_GROWTH_DIVISOR: at least 2";
        /// With slow_start hystart++: duration of conservative slow start.
        pub hystartpp_css_rounds: u16 = 5 => count(1, 1_000).of("rounds"),
            "RFC 9406 section 4.3, CSS_ROUNDS";
        /// With slow_start hystart++ and without pacing: maximum number of segments per ACK that count for
        /// growth.
        pub hystartpp_l: u16 = 8 => count(1, 65_535).of("segments"),
            "RFC 9406 section 4.3, L";
        /// With slow_start hystart++ and pacing: maximum number of segments per ACK that count for growth.
        pub hystartpp_l_paced: Option<NonZeroU16> = None => count_or_off("segments", 1, 65_535),
            "RFC 9406 section 4.3, L: infinity if paced";
        /// With slow_start search: length of the window of deliveries, in initial RTTs.
        pub search_window_factor: u16 = 350 => decimal(2, 100, 10_000),
            "draft-chung-ccwg-search-09, WINDOW_SIZE_FACTOR";
        /// With slow_start search: number of bins per window.
        pub search_bins: u8 = 10 => count(1, 100).of("bins"),
            "draft-chung-ccwg-search-09, W";
        /// With slow_start search: number of bins by which an RTT may reach back; SEARCH does not look at longer
        /// RTTs.
        pub search_extra_bins: u8 = 15 => count(1, 200).of("bins"),
            "draft-chung-ccwg-search-09, EXTRA_BINS";
        /// With slow_start search: fraction of the sent data that is missing among the deliveries when slow start
        /// ends.
        pub search_thresh: u8 = 26 => decimal(2, 1, 100),
            "draft-chung-ccwg-search-09, THRESH";
        /// With slow_start search: lower the window to the deliveries of an initial RTT when slow start ends.
        pub search_drain: bool = true => flag(),
            "draft-chung-ccwg-search-09 section 3.2, drain phase";
        /// With slow_start careful-resume: window of an earlier connection; the connection starts with half of it.
        pub saved_cwnd: Option<NonZeroU32> = None => count_or_off("segments", 1, 1_000_000),
            "RFC 9959 section 3.1, saved_cwnd";
        /// With slow_start careful-resume: smallest RTT of that connection.
        pub saved_rtt: u32 = 100_000 => micros(1, 60_000_000),
            "RFC 9959 section 3.1, saved_rtt";
        /// With slow_start rapid-start: RTT increase up to which the queue counts as empty.
        pub rapid_rtt_increase: u32 = 4_000 => micros(0, 10_000_000),
            "draft-kazuho-ccwg-rapid-start-02, queue_buildup_thresh";
        /// With slow_start rapid-start: multiple of the smallest RTT up to which the queue counts as empty.
        pub rapid_rtt_factor: u16 = 110 => decimal(2, 100, 10_000),
            "draft-kazuho-ccwg-rapid-start-02, queue_buildup_thresh";
    }
}

impl SlowStartParams {
    /// Why these values contradict each other, if they do.
    pub(super) fn conflict(&self) -> Option<String> {
        let [min, max] = [self.hystartpp_min_rtt_thresh, self.hystartpp_max_rtt_thresh];
        (min > max).then(|| {
            let [min, max] = [min, max].map(|micros| Unit::Micros.text(micros.into()));
            format!(
                "hystartpp_min_rtt_thresh {min} exceeds hystartpp_max_rtt_thresh {max}; expected \
                 hystartpp_min_rtt_thresh <= hystartpp_max_rtt_thresh"
            )
        })
    }

    /// The RTT increase from `last` that starts conservative slow start, in µs.
    fn rtt_thresh(&self, last: u32) -> u32 {
        let part = last / u32::from(self.hystartpp_min_rtt_divisor);
        part.clamp(self.hystartpp_min_rtt_thresh, self.hystartpp_max_rtt_thresh)
    }
}

/// The heuristic in the first slow start of a connection, if it is not one of the control's own.
#[derive(Clone, Debug)]
pub(crate) enum SlowStartExit {
    HyStartPlusPlus(HyStartPlusPlus),
    Search(Box<Search>),
    CarefulResume(Box<CarefulResume>),
    RapidStart(Box<RapidStart>),
}

/// What an acknowledgement showed, in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    pub(crate) delivered: u32,
    /// Needed over QUIC only.
    pub(crate) lost: u32,
}

impl SlowStartExit {
    /// The heuristic `in_use` of a connection that has sent nothing; `None`: it needs no state here.
    pub(super) fn new(params: &SlowStartParams, in_use: SlowStart, paced: bool) -> Option<Self> {
        match in_use {
            SlowStart::Standard | SlowStart::HyStart => None,
            SlowStart::HyStartPlusPlus => {
                Some(Self::HyStartPlusPlus(HyStartPlusPlus::new(params, paced)))
            }
            SlowStart::Search => Some(Self::Search(Box::new(Search::new(params)))),
            SlowStart::CarefulResume => {
                Some(Self::CarefulResume(Box::new(CarefulResume::new(params))))
            }
            SlowStart::RapidStart => Some(Self::RapidStart(Box::new(RapidStart::new(params)))),
        }
    }

    /// An acknowledgement arrived; slow start may end here. Returns whether the rest is left to the control.
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Ack, settled: Settled) -> bool {
        match self {
            Self::HyStartPlusPlus(hystart) => hystart.on_ack(window, ack),
            Self::Search(search) => search.on_ack(window, ack),
            Self::CarefulResume(resume) => {
                resume.on_ack(window, ack, settled.delivered);
                return resume.is_done();
            }
            Self::RapidStart(rapid) => {
                rapid.on_ack(window, ack, settled.delivered, settled.lost);
                return rapid.is_done();
            }
        }
        window.ssthresh.is_set()
    }

    /// A loss, mark or time-out; the control has set the threshold. Returns the window with which recovery begins, if it
    /// is not the threshold.
    pub(crate) fn on_congestion(&mut self, window: &mut Window) -> Option<u32> {
        match self {
            Self::HyStartPlusPlus(_) | Self::Search(_) => None,
            Self::CarefulResume(resume) => {
                resume.on_congestion(window);
                None
            }
            Self::RapidStart(rapid) => rapid.on_congestion(window),
        }
    }

    /// How many of `acked` segments count for growth.
    pub(crate) fn counts(&mut self, acked: u32) -> u32 {
        match self {
            Self::HyStartPlusPlus(hystart) => hystart.counts(acked),
            Self::Search(search) => search.counts(acked),
            Self::CarefulResume(resume) => resume.counts(acked),
            Self::RapidStart(rapid) => rapid.counts(acked),
        }
    }
}

/// HyStart++ in the first slow start of a connection.
#[derive(Clone, Debug)]
pub(crate) struct HyStartPlusPlus {
    /// Constants that are not the defaults. Connections are many, and most have the defaults.
    params: Option<Box<SlowStartParams>>,
    paced: bool,
    /// The round ends when this segment is acknowledged.
    window_end: u32,
    /// Smallest RTTs, in µs; `None` without a sample.
    last_round_min_rtt: Option<u32>,
    current_round_min_rtt: Option<u32>,
    rtt_sample_count: u32,
    /// Conservative slow start, if it has begun.
    css: Option<Css>,
    /// Segments acknowledged towards the next one of conservative slow start.
    remainder: u32,
}

#[derive(Clone, Copy, Debug)]
struct Css {
    baseline_min_rtt: u32,
    rounds: u32,
}

impl HyStartPlusPlus {
    /// A connection that has sent nothing. With pacing an acknowledgement causes no burst, however much it
    /// covers, so that all of it counts.
    fn new(params: &SlowStartParams, paced: bool) -> Self {
        let changed = *params != SlowStartParams::default();
        Self {
            params: changed.then(|| Box::new(*params)),
            paced,
            window_end: 0,
            last_round_min_rtt: None,
            current_round_min_rtt: None,
            rtt_sample_count: 0,
            css: None,
            remainder: 0,
        }
    }

    fn params(&self) -> SlowStartParams {
        self.params.as_deref().copied().unwrap_or_default()
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let params = self.params();
        if ack.snd_una > self.window_end {
            self.begin_round(ack.snd_nxt);
            if let Some(css) = &mut self.css {
                css.rounds += 1;
                if css.rounds > params.hystartpp_css_rounds.into() {
                    window.end_slow_start();
                    return;
                }
            }
        }
        let Some(rtt) = ack.rtt_micros else { return };
        let current = self.current_round_min_rtt.map_or(rtt, |min| min.min(rtt));
        self.current_round_min_rtt = Some(current);
        self.rtt_sample_count += 1;
        if self.rtt_sample_count < params.hystartpp_n_rtt_sample.into() {
            return;
        }
        match (self.css, self.last_round_min_rtt) {
            (Some(css), _) if current < css.baseline_min_rtt => self.css = None,
            (None, Some(last)) if current >= last + params.rtt_thresh(last) => {
                self.css = Some(Css {
                    baseline_min_rtt: current,
                    rounds: 1,
                });
                self.remainder = 0;
            }
            _ => {}
        }
    }

    const fn begin_round(&mut self, snd_nxt: u32) {
        self.window_end = snd_nxt;
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = None;
        self.rtt_sample_count = 0;
    }

    fn counts(&mut self, acked: u32) -> u32 {
        let params = self.params();
        let limit = if self.paced {
            params.hystartpp_l_paced
        } else {
            NonZeroU16::new(params.hystartpp_l)
        };
        let acked = limit.map_or(acked, |limit| acked.min(limit.get().into()));
        if self.css.is_none() {
            return acked;
        }
        let divisor = u32::from(params.hystartpp_css_growth_divisor);
        let sum = self.remainder + acked;
        self.remainder = sum % divisor;
        sum / divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Instant;
    use sojourn_schema::Parameters;

    /// A connection in slow start, a round at a time.
    struct Rounds {
        hystart: HyStartPlusPlus,
        window: Window,
        una: u32,
    }

    impl Rounds {
        fn new() -> Self {
            Self::with(&SlowStartParams::default())
        }

        fn with(params: &SlowStartParams) -> Self {
            Self {
                hystart: HyStartPlusPlus::new(params, false),
                window: Window::new(16, 1_448),
                una: 0,
            }
        }

        /// A round whose acknowledgements each cover one segment and have this RTT in ms; by how
        /// much the window grew, in hundredths.
        fn pass(&mut self, rtt_ms: u32) -> u32 {
            let before = self.window.cwnd;
            for _ in 0..before {
                self.una += 1;
                let ack = Ack {
                    now: Instant::ZERO,
                    tick: 0,
                    rtt_micros: Some(1_000 * rtt_ms),
                    echo: None,
                    acked: 0,
                    srtt8: 0,
                    snd_una: self.una,
                    snd_nxt: self.una + self.window.cwnd,
                    prior_in_flight: 0,
                    pacing_rate: 0,
                };
                if self.window.in_slow_start() {
                    self.hystart.on_ack(&mut self.window, &ack);
                }
                if self.window.in_slow_start() {
                    self.window.cwnd += self.hystart.counts(1);
                }
            }
            100 * self.window.cwnd / before - 100
        }
    }

    #[test]
    fn growth_of_an_eighth_that_lasts_ends_slow_start_after_five_rounds() {
        let mut rounds = Rounds::new();
        assert_eq!([40, 40, 44].map(|ms| rounds.pass(ms)), [100; 3]);
        // 44 is less than 40 + 5, 50 more than 44 + 5.5: from its 8th sample on a quarter.
        assert!((25..=35).contains(&rounds.pass(50)));
        let rest = [50; 5].map(|ms| rounds.pass(ms));
        assert!(rest[..4].iter().all(|n| (24..=25).contains(n)), "{rest:?}");
        assert!(rest[4] <= 2, "{rest:?}");
        assert_eq!(rounds.window.ssthresh.segments(), Some(rounds.window.cwnd));
    }

    #[test]
    fn growth_that_does_not_last_is_forgotten() {
        let mut rounds = Rounds::new();
        for (rtt, slow) in [(40, false), (60, true), (41, false)] {
            let grown = rounds.pass(rtt);
            assert_eq!(grown < 99, slow, "{grown} % at {rtt} ms");
        }
        assert!(!rounds.window.ssthresh.is_set());
    }

    #[test]
    fn the_threshold_is_4_to_16_ms() {
        for (base, enough) in [(8, 4), (80, 10), (400, 16)] {
            for (more, conservative) in [(enough - 1, false), (enough, true)] {
                let mut rounds = Rounds::new();
                rounds.pass(base);
                rounds.pass(base + more);
                assert_eq!(
                    rounds.hystart.css.is_some(),
                    conservative,
                    "{base} + {more}"
                );
            }
        }
    }

    #[test]
    fn at_most_eight_segments_of_an_acknowledgement_count_unless_they_are_paced() {
        let params = SlowStartParams::default();
        assert_eq!(HyStartPlusPlus::new(&params, false).counts(44), 8);
        assert_eq!(HyStartPlusPlus::new(&params, true).counts(44), 44);
    }

    /// The constants with these changed.
    fn changed(values: &[(&str, u32)]) -> SlowStartParams {
        let mut params = SlowStartParams::default();
        for &(key, kept) in values {
            let parameter = params.table().iter().find(|p| p.key == key).expect(key);
            let value = params.value(key).expect(key);
            assert_eq!(
                parameter.set(value, &parameter.unit.text(kept.into())),
                Ok(())
            );
        }
        params
    }

    #[test]
    fn constants_take_no_memory_until_they_change() {
        assert!(size_of::<HyStartPlusPlus>() <= 56);
        let defaults = SlowStartParams::default();
        assert!(HyStartPlusPlus::new(&defaults, true).params.is_none());
    }

    #[test]
    fn l_limits_what_counts_without_and_with_pacing() {
        let params = changed(&[("hystartpp_l", 3), ("hystartpp_l_paced", 20)]);
        assert_eq!(HyStartPlusPlus::new(&params, false).counts(44), 3);
        assert_eq!(HyStartPlusPlus::new(&params, true).counts(44), 20);
    }

    /// Whether an increase from `base` to `base + more` ms starts conservative slow start.
    fn is_conservative(params: &SlowStartParams, base: u32, more: u32) -> bool {
        let mut rounds = Rounds::with(params);
        rounds.pass(base);
        rounds.pass(base + more);
        rounds.hystart.css.is_some()
    }

    #[test]
    fn the_thresholds_and_the_divisor_set_the_increase_that_counts() {
        let thresh = |min, max| {
            changed(&[
                ("hystartpp_min_rtt_thresh", min),
                ("hystartpp_max_rtt_thresh", max),
                ("hystartpp_min_rtt_divisor", 4),
            ])
        };
        for (params, base, enough) in [
            (thresh(4_000, 16_000), 40, 10),
            (thresh(12_000, 16_000), 40, 12),
            (thresh(1_000, 16_000), 8, 2),
            (thresh(4_000, 7_000), 40, 7),
            (thresh(4_000, 100_000), 200, 50),
        ] {
            assert!(!is_conservative(&params, base, enough - 1), "{params:?}");
            assert!(is_conservative(&params, base, enough), "{params:?}");
        }
    }

    #[test]
    fn a_round_counts_from_n_rtt_sample_samples_on() {
        // 15 of the last 16 acknowledgements belong to the second round.
        for (samples, conservative) in [(15, true), (16, false)] {
            let mut rounds = Rounds::with(&changed(&[("hystartpp_n_rtt_sample", samples)]));
            rounds.pass(40);
            rounds.window.cwnd = 16;
            rounds.pass(80);
            assert_eq!(rounds.hystart.css.is_some(), conservative, "{samples}");
        }
    }

    #[test]
    fn conservative_slow_start_lasts_css_rounds_and_grows_by_its_divisor() {
        for (css_rounds, divisor) in [(1, 2), (3, 10)] {
            let mut rounds = Rounds::with(&changed(&[
                ("hystartpp_css_rounds", css_rounds),
                ("hystartpp_css_growth_divisor", divisor),
            ]));
            rounds.pass(40);
            // The round in which it begins counts.
            rounds.pass(80);
            for round in 1..css_rounds {
                let grown = rounds.pass(80);
                assert!(grown.abs_diff(100 / divisor) <= 1, "{grown} in {round}");
                assert!(!rounds.window.ssthresh.is_set(), "{round}");
            }
            rounds.pass(80);
            assert!(rounds.window.ssthresh.is_set(), "{css_rounds}");
        }
    }

    #[test]
    fn the_smaller_threshold_must_not_exceed_the_larger_one() {
        let conflict = |min| changed(&[("hystartpp_min_rtt_thresh", min)]).conflict();
        assert_eq!(conflict(16_000), None);
        assert_eq!(
            conflict(16_001).unwrap(),
            "hystartpp_min_rtt_thresh 16001us exceeds hystartpp_max_rtt_thresh 16ms; expected \
             hystartpp_min_rtt_thresh <= hystartpp_max_rtt_thresh"
        );
    }
}
