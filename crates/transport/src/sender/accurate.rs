//! Hearing how many packets were marked.
//!
//! # Source
//!
//! RFC 9768 §3.1.2 (which answers of a server mean what), §3.2 (AccECN).
//!
//! # Law
//!
//! The counter in AE, CWR and ECE counts packets modulo 8. Where the option tells how many bytes
//! were marked, as many eights are added as come nearest to them; where there is none and an
//! acknowledgement covers more than seven segments, all that may be are taken for marked (§3.2.2.5.2).
//!
//! A server that answers ECE alone knows ECN, but not to count: a connection that asked for counts and can
//! do without them goes on as RFC 3168 has it, one for L4S without ECN.

use super::Sender;
use crate::clock::before;
use crate::segment::{Flags, MSS, Segment};

/// What the peer has told so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// Packets marked, modulo 8.
    cep: u8,
    /// Bytes marked, modulo 2^24.
    ceb: u32,
    /// Packets taken for marked since an option told the bytes: those are among its bytes again.
    ahead: u32,
}

impl Heard {
    /// Of a connection whose handshake is over.
    const START: Self = Self {
        cep: 5,
        ceb: 0,
        ahead: 0,
    };

    /// How many packets were marked since, by a counter and the option, if there is one.
    fn marks(&mut self, cep: u8, ceb: Option<u32>) -> u32 {
        let some = u32::from(cep.wrapping_sub(self.cep) % 8);
        let Some(ceb) = ceb else {
            self.cep = cep;
            self.ahead += some;
            return some;
        };
        let bytes = ceb.wrapping_sub(self.ceb) % (1 << 24);
        if bytes >= 1 << 23 {
            // An older acknowledgement, overtaken.
            return 0;
        }
        self.cep = cep;
        self.ceb = ceb;
        let ahead = std::mem::take(&mut self.ahead);
        let packets = bytes.div_ceil(u32::from(MSS)).saturating_sub(ahead);
        some + (packets.saturating_sub(some) + 4) / 8 * 8
    }
}

impl Sender {
    /// Reads from the SYN-ACK which ECN the peer accepts.
    pub(super) fn conclude_ecn(&mut self, syn_ack: Flags) {
        let answer = syn_ack.ace();
        let offered = self.ecn && self.counters.syn_resent <= u32::from(self.wants_accurate);
        // All three bits come back from a peer that copies what it does not know.
        let counts = self.wants_accurate && matches!(answer, 2 | 3 | 4 | 6);
        self.accurate = (offered && counts).then_some(Heard::START);
        // A control for L4S may not send ECT(1) to a peer that only tells whether.
        let classic = if self.wants_accurate {
            answer == 1 && !self.ect.has(Flags::ECT1)
        } else {
            syn_ack.has(Flags::ECE)
        };
        self.ecn = offered && (counts || classic);
        if self.accurate.is_some() {
            // Marks on what came back are not told: nobody there would answer them.
            self.own_count = Flags::of_ace(5);
        }
    }

    /// What the other half of this end has negotiated holds for this one: both have the same peer.
    pub(super) fn join_ecn(&mut self, negotiated: bool) {
        self.ecn = negotiated;
        if negotiated && self.wants_accurate {
            self.accurate = Some(Heard::START);
            self.own_count = Flags::of_ace(5);
        }
    }

    /// How many packets the peer says were marked since the last acknowledgement.
    #[inline]
    pub(super) fn newly_marked(&mut self, seg: &Segment, old: bool) -> u32 {
        let Some(heard) = &mut self.accurate else {
            return 0;
        };
        if old || before(seg.ts_val, self.peer_stamp) {
            return 0;
        }
        let option = seg.flags.has(Flags::ACE_OPTION).then_some(seg.seq);
        heard.marks(seg.flags.ace(), option)
    }

    /// Of `delivered` segments, how many were marked, when the acknowledgement showed `marked`.
    pub(super) fn surely_marked(&mut self, seg: &Segment, delivered: u32, marked: u32) -> u32 {
        let Some(heard) = &mut self.accurate else {
            // RFC 8257: the echo is that of all it acknowledges.
            return if seg.flags.has(Flags::ECE) {
                delivered
            } else {
                0
            };
        };
        if seg.flags.has(Flags::ACE_OPTION) || delivered <= 7 {
            return marked;
        }
        let feared = delivered.saturating_sub(marked) / 8 * 8;
        heard.ahead += feared;
        marked + feared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eights_are_told_by_the_bytes() {
        let mut heard = Heard::START;
        let mss = u32::from(MSS);
        let (mut packets, mut bytes) = (5_u32, 0);
        for marked in [0, 1, 7, 8, 9, 15, 16, 40, 3] {
            packets += marked;
            bytes += marked * mss;
            let cep = u8::try_from(packets % 8).unwrap();
            assert_eq!(heard.marks(cep, Some(bytes)), marked);
        }
        // A short packet among them, and one without payload.
        assert_eq!(
            heard.marks(
                u8::try_from((packets + 9) % 8).unwrap(),
                Some(bytes + 8 * mss + 1)
            ),
            9
        );
        assert_eq!(
            heard.marks(
                u8::try_from((packets + 10) % 8).unwrap(),
                Some(bytes + 8 * mss + 1)
            ),
            1
        );
    }

    #[test]
    fn without_the_option_it_counts_modulo_8_and_an_older_one_counts_nothing() {
        let mut heard = Heard::START;
        assert_eq!([6, 0, 0, 7].map(|cep| heard.marks(cep, None)), [1, 2, 0, 7]);
        let mut heard = Heard::START;
        assert_eq!(heard.marks(7, Some(3_000)), 2);
        assert_eq!(heard.marks(6, Some(1_500)), 0);
        assert_eq!(heard.marks(0, Some(4_448)), 1);
        // Across the wrap of 2^24 bytes.
        let mut heard = Heard {
            cep: 0,
            ceb: (1 << 24) - 1_448,
            ahead: 0,
        };
        assert_eq!(heard.marks(2, Some(1_448)), 2);
    }

    #[test]
    fn what_was_told_without_the_option_is_not_heard_again_with_it() {
        let mss = u32::from(MSS);
        let mut heard = Heard::START;
        assert_eq!(heard.marks(2, None), 5);
        assert_eq!(heard.marks(2, Some(5 * mss)), 0);
        // Of thirteen, the counter tells five; the bytes the eight others.
        assert_eq!(heard.marks(7, None), 5);
        assert_eq!(heard.marks(0, Some(19 * mss)), 9);
        assert_eq!(heard.marks(1, Some(20 * mss)), 1);
    }
}
