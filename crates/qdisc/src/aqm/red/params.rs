//! The parameters of RED.

use sojourn_net::{Bytes, Rate};

use crate::parameters::parameters;

parameters! {
    /// Parameters of [`Red`](super::Red); unset ones are derived as iproute2 does.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RedParams<L> {
        /// Maximum number of bytes in the buffer.
        pub limit: Bytes = Bytes(1_514_000) => size(1, 1 << 32),
            "include/uapi/linux/pkt_sched.h: tc_red_qopt.limit; mandatory in tc; Sojourn default";
        /// Average backlog above which packets are signalled at random.
        pub min: Option<Bytes> = None => size(1, 1 << 32).unset("max / 3"),
            "Floyd and Jacobson 1993: min_th; include/net/red.h: red_parms.qth_min; default of iproute2 tc/q_red.c";
        /// Average backlog above which every packet is signalled.
        pub max: Option<Bytes> = None => size(1, 1 << 32).unset("3 * min if min is set, else limit / 4"),
            "Floyd and Jacobson 1993: max_th; include/net/red.h: red_parms.qth_max; default of iproute2 tc/q_red.c";
        /// Average packet size; the weight and the idle decay of the average backlog derive from it.
        pub avpkt: Bytes = Bytes(1_000) => size(1, 65_536),
            "iproute2 tc/q_red.c: avpkt; mandatory in tc; Sojourn default";
        /// Number of packets in a burst that pass without a signal.
        pub burst: Option<u32> = None => count(1, 1 << 24).in_packets().unset("(2 * min + max) / (3 * avpkt)"),
            "iproute2 tc/q_red.c: burst, for tc_red_eval_ewma";
        /// Probability of a signal at max; with adaptive, its initial value.
        pub probability: f64 = 0.02 => fraction(0, 1),
            "Floyd and Jacobson 1993: max_p; include/net/red.h: red_parms.max_P; default of iproute2 tc/q_red.c";
        /// Link rate for the decay of the average while idle.
        pub bandwidth: Option<Rate> = None => rate().unset("the link's rate, else 10mbit"),
            "iproute2 tc/q_red.c: bandwidth, for tc_red_eval_idle_damping; Sojourn defaults to the link rate";
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = false => flag(),
            "include/uapi/linux/pkt_sched.h: TC_RED_ECN";
        /// Drop every packet above max, ECN-capable or not.
        pub harddrop: bool = false => flag(),
            "include/uapi/linux/pkt_sched.h: TC_RED_HARDDROP";
        /// Queue packets that cannot be marked instead of dropping them; requires ecn.
        pub nodrop: bool = false => flag(),
            "include/uapi/linux/pkt_sched.h: TC_RED_NODROP";
        /// Adapt the probability to the load.
        pub adaptive: bool = false => flag(),
            "Floyd, Gummadi and Shenker 2001; include/uapi/linux/pkt_sched.h: TC_RED_ADAPTATIVE";
        /// Raise the probability linearly to 1 between max and 2 * max.
        pub gentle: bool = false => flag(),
            "Floyd 2000; absent from Linux";
        /// Inner queue; by default a FIFO of limit bytes.
        pub leaf: Vec<L> = Vec::new() => leaves(1).unset("a FIFO of limit bytes"),
            "net/sched/sch_red.c: red_sched_data.qdisc";
    }
}
