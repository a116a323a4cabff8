//! The parameters of CoDel.

use sojourn_net::Duration;

use crate::parameters::{Profile, parameters};

parameters! {
    /// Parameters of [`Codel`](super::Codel).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CodelParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "net/sched/sch_codel.c: DEFAULT_CODEL_LIMIT";
        /// Acceptable standing delay.
        pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "RFC 8289 section 4.3: TARGET; include/net/codel.h: codel_params.target";
        /// CoDel interval: slightly more than the longest expected round-trip time.
        pub interval: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "RFC 8289 section 4.2: INTERVAL; include/net/codel.h: codel_params.interval";
        /// Mark every ECN-capable packet that waited longer than this.
        pub ce_threshold: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "include/net/codel.h: codel_params.ce_threshold";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "include/net/codel.h: codel_params.ecn";
        /// RFC or version of Linux to follow.
        pub profile: Profile = Profile::Rfc => profile(),
            "Sojourn parameter";
    }
}
