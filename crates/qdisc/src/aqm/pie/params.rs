//! The parameters of PIE.

use sojourn_net::Duration;

use crate::parameters::{Profile, parameters};

parameters! {
    /// Parameters of [`Pie`](super::Pie).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PieParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "include/net/pie.h: pie_params.limit";
        /// Target queueing delay.
        pub target: Option<Duration> = None => time(1, LONGEST).unset("15ms; linux-3.14: 20ms"),
            "RFC 8033 section 4.2: QDELAY_REF; include/net/pie.h: pie_params.target";
        /// Time between updates of the probability.
        pub tupdate: Option<Duration> = None => time(1_000, LONGEST).unset("15ms; linux-3.14: 30ms"),
            "RFC 8033 section 4.2: T_UPDATE; include/net/pie.h: pie_params.tupdate";
        /// Gain on the deviation from target, in sixteenths of 1/s.
        pub alpha: u32 = 2 => count(0, 32),
            "RFC 8033 section 4.2 and appendix A: alpha; include/net/pie.h: pie_params.alpha";
        /// Gain on the change of the delay, in sixteenths of 1/s.
        pub beta: u32 = 20 => count(0, 32),
            "RFC 8033 section 4.2 and appendix A: beta; include/net/pie.h: pie_params.beta";
        /// Mark ECN-capable packets while the probability is low.
        pub ecn: bool = false => flag(),
            "RFC 8033 section 5.1; include/net/pie.h: pie_params.ecn";
        /// Scale the probability with the packet size.
        pub bytemode: bool = false => flag(),
            "include/net/pie.h: pie_params.bytemode";
        /// Estimate the delay from the backlog and the departure rate.
        pub dq_rate_estimator: bool = false => flag(),
            "RFC 8033 section 5.2; include/net/pie.h: pie_params.dq_rate_estimator";
        /// Space the drops evenly; profile rfc.
        pub derandomise: bool = true => flag(),
            "RFC 8033 section 5.4";
        /// Limit the increase of the probability to 2 % per update; profile rfc.
        pub cap: bool = true => flag(),
            "RFC 8033 section 5.5";
        /// RFC or version of Linux to follow.
        pub profile: Profile = Profile::Rfc => profile(),
            "Sojourn parameter";
    }
}

impl PieParams {
    /// The delay that is held.
    pub fn target(&self) -> Duration {
        self.target.unwrap_or(match self.profile {
            Profile::Rfc | Profile::Paper | Profile::Linux | Profile::Linux612 => {
                Duration::from_millis(15)
            }
            Profile::Linux314 => Duration::from_millis(20),
        })
    }

    /// The time between updates.
    pub fn tupdate(&self) -> Duration {
        self.tupdate.unwrap_or(match self.profile {
            Profile::Rfc | Profile::Paper | Profile::Linux | Profile::Linux612 => {
                Duration::from_millis(15)
            }
            Profile::Linux314 => Duration::from_millis(30),
        })
    }
}
