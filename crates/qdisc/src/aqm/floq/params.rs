//! The parameters of FLOQ.

use sojourn_net::Duration;

use crate::parameters::parameters;

parameters! {
    /// Parameters of [`Floq`](super::Floq).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct FloqParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "reconstruction";
        /// Fraction of the limit above which arrivals are signalled.
        pub threshold: f64 = 0.5 => fraction(0, 1),
            "reconstruction";
        /// Exponent of the ramp from threshold to limit.
        pub gamma: u32 = 1 => count(1, 8),
            "reconstruction";
        /// Probability of a signal when the buffer is full, before weight and share are applied.
        pub probability: f64 = 1.0 => fraction(0, 1),
            "reconstruction";
        /// Weight of packets during connection setup.
        pub setup_weight: f64 = 0.0 => weight(10),
            "reconstruction";
        /// Weight of other responsive traffic.
        pub responsive_weight: f64 = 1.0 => weight(10),
            "reconstruction";
        /// Weight of unresponsive traffic.
        pub unresponsive_weight: f64 = 1.0 => weight(10),
            "reconstruction";
        /// Exponent of the class's share of the traffic.
        pub exponent: u32 = 2 => count(0, 8),
            "reconstruction";
        /// Weight of 1514 bytes in the moving average of the shares.
        pub gain: f64 = 0.002 => fraction(0, 1),
            "reconstruction";
        /// Number of data packets that count as connection setup.
        pub setup_packets: u32 = 10 => count(0, 1_000_000),
            "reconstruction";
        /// Maximum duration of connection setup, from the last SYN.
        pub setup_time: Duration = Duration::from_secs(3) => time(0, LONGEST),
            "reconstruction";
        /// Size of the connection table, rounded up to a multiple of 4.
        pub connections: u32 = 4_096 => count(1, 1 << 20),
            "reconstruction";
        /// Idle time after which a connection is removed from the table.
        pub expiry: Duration = Duration::from_secs(10) => time(0, LONGEST),
            "reconstruction";
        /// Idle time after which a connection counts as being set up again.
        pub resume: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "reconstruction";
        /// Treat QUIC as responsive traffic with connection setup.
        pub quic: bool = true => flag(),
            "reconstruction";
        /// When the buffer is full, replace the youngest other packet with an arriving setup packet.
        pub pushout: bool = false => flag(),
            "reconstruction";
        /// Mark ECN-capable packets of responsive traffic.
        pub ecn: bool = false => flag(),
            "reconstruction";
    }
}
