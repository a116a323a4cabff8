//! Counters, declared once, with addition and subtraction field by field.

/// Declares a struct of `u64` counters with `add` and `since`. The fields in `maxima` are maxima.
macro_rules! counters {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $($(#[$field_doc:meta])* $field:ident,)*
        }
        $(maxima { $($(#[$max_doc:meta])* $max:ident,)* })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
            $($($(#[$max_doc])* pub $max: u64,)*)?
        }

        impl $name {
            /// Adds each counter of `more`; of maxima, the larger one remains.
            pub const fn add(&mut self, more: &Self) {
                $(self.$field += more.$field;)*
                $($(if more.$max > self.$max {
                    self.$max = more.$max;
                })*)?
            }

            /// What was counted after `before`, an earlier state of the same counters. Maxima
            /// remain: whoever takes `before` resets them at that time.
            #[must_use]
            pub const fn since(&self, before: &Self) -> Self {
                Self {
                    $($field: self.$field - before.$field,)*
                    $($($max: self.$max,)*)?
                }
            }
        }
    };
}

counters! {
    /// Packets counted at a link.
    pub struct LinkCounters {
        /// Packets sent.
        sent_packets,
        /// Bytes sent, without the link's overhead.
        sent_bytes,
        /// Packets dropped because the queue was full.
        drops_overlimit,
        /// Packets dropped by the AQM.
        drops_aqm,
        /// Packets CE-marked by the AQM.
        marks_aqm,
        /// Packets CE-marked because their sojourn time exceeded `ce_threshold`.
        marks_ce_threshold,
        /// Packets lost on the wire after transmission.
        lost_packets,
        /// Packets that the wire delivered twice.
        duplicated_packets,
    }
}

counters! {
    /// Packets and data counted for a flow.
    pub struct FlowCounters {
        /// Payload handed to the receiving application: no headers, no duplicates.
        delivered_bytes,
        /// Data packets sent, retransmissions included.
        sent_packets,
        /// Data packets that reached the receiver, duplicates included; datagrams and echo replies without.
        received_packets,
        /// Retransmitted segments; of QUIC, packets with data that was sent before.
        retransmits,
        /// Retransmission time-outs; of QUIC, probe time-outs of the sender of data.
        timeouts,
        /// Retransmitted SYNs; of QUIC, packets with a part of the handshake that was sent before.
        syn_retransmits,
        /// RTT samples: acknowledgements of data that was sent once, in order.
        rtt_samples,
        /// Sum of the RTT samples, each from the newest of that data, in µs.
        rtt_micros,
    }
    maxima {
        /// Largest RTT sample, in µs; 0 without samples.
        rtt_max_micros,
    }
}
