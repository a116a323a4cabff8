//! Telling the sender of congestion.
//!
//! # Source
//!
//! RFC 3168 §6.1.3; RFC 8257 §3.2 as Linux 6.1; RFC 9768 (AccECN): the handshake §3.1.1 and §3.1.2, the
//! counters and what they begin with §3.2 and §3.2.1, when to acknowledge §3.2.2.5.1, the option §3.2.3.
//! The text read was that of the last draft, draft-ietf-tcpm-accurate-ecn.
//!
//! # Law of AccECN
//!
//! ```text
//! SYN            offers it with AE, CWR and ECE; the SYN-ACK tells the SYN's ECN field with them:
//!                CWR Not-ECT, CWR ECE ECT(1), AE ECT(0), AE CWR CE; ECE alone: RFC 3168
//! CE arrives     r.cep += 1, r.ceb += payload;  r.cep starts at 5
//! every ACK      r.cep modulo 8 in AE, CWR, ECE; r.ceb modulo 2^24 in an option of 8 bytes, if three
//!                SACK blocks leave room
//! an ACK at once when CE follows what was not marked; at the second mark since the last one
//! ```
//!
//! # Differences from RFC 9768
//!
//! | here | RFC 9768 | effect |
//! |---|---|---|
//! | counters of CE alone | an option tells ECT(0) and ECT(1) too | mangling of the field goes unnoticed |
//! | the option on every ACK with room | when a counter changed, and a few times more | 8 bytes more of an ACK |
//! | two marks, whatever is unacknowledged | two, or three if nothing is | – |
//! | no second order of the fields of the option | kinds 172 and 174 | – |
//! | SYNs are sent again twice, the first time as before | the fallback is left to the host | – |

use sojourn_net::Instant;

use super::Receiver;
use crate::segment::{Flags, Segment};

/// How a receiver tells of CE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feedback {
    /// On every ACK until the sender says that it has reacted (RFC 3168).
    Latched,
    /// Whether the last packet was marked; when that changes, what came before is acknowledged
    /// first (RFC 8257).
    Mirrored,
    /// How many packets and bytes were (RFC 9768).
    Counted(Counters),
}

/// What AccECN counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counters {
    /// Packets marked, modulo 8.
    cep: u8,
    /// Bytes of payload marked.
    ceb: u32,
    /// Packets marked since the last ACK.
    since_ack: u8,
    /// The last packet was.
    marked: bool,
}

impl Counters {
    pub(super) const START: Self = Self {
        cep: 5,
        ceb: 0,
        since_ack: 0,
        marked: false,
    };
}

/// So many marks are acknowledged at once.
const MARKS_AT_ONCE: u8 = 2;

impl Receiver {
    /// A data segment arrived, marked or not.
    #[inline]
    pub(super) fn hear_congestion(
        &mut self,
        now: Instant,
        seg: &Segment,
        ce: bool,
        out: &mut Vec<Segment>,
    ) {
        if !self.ecn {
            return;
        }
        match &mut self.feedback {
            Feedback::Counted(counters) => {
                if ce {
                    counters.cep = (counters.cep + 1) % 8;
                    counters.ceb = counters.ceb.wrapping_add(u32::from(seg.len));
                    counters.since_ack = counters.since_ack.saturating_add(1);
                    self.ack_now |= !counters.marked || counters.since_ack >= MARKS_AT_ONCE;
                }
                counters.marked = ce;
            }
            Feedback::Mirrored => {
                self.ack_now |= seg.flags.has(Flags::CWR);
                if ce != self.ece && seg.seq >= self.next {
                    if self.delayed_ack_at.is_some() {
                        self.acknowledge(now, out);
                    }
                    self.ack_now = true;
                    self.ece = ce;
                }
            }
            Feedback::Latched => {
                if seg.flags.has(Flags::CWR) {
                    self.ece = false;
                    self.ack_now = true;
                }
                if ce {
                    if !self.ece {
                        self.quick = self.quick.max(2);
                    }
                    self.ece = true;
                }
            }
        }
    }

    /// What the peer's SYN offers and this end can.
    pub(super) fn negotiate(&mut self, syn: &Segment) {
        self.ecn &= syn.flags.has(Flags::ECE | Flags::CWR);
        if matches!(self.feedback, Feedback::Counted(_)) && !syn.flags.has(Flags::AE) {
            let of_dctcp = self.ect.has(Flags::ECT) && !self.ect.has(Flags::ECT1);
            self.feedback = if of_dctcp {
                Feedback::Mirrored
            } else {
                Feedback::Latched
            };
        }
    }

    /// Control bits of the SYN-ACK to a SYN with this ECN field.
    pub(super) fn accepted(&self, syn: Flags, ce: bool) -> Flags {
        match self.feedback {
            _ if !self.ecn => Flags::NONE,
            Feedback::Latched | Feedback::Mirrored => Flags::ECE,
            Feedback::Counted(_) if ce => Flags::AE | Flags::CWR | self.ect,
            Feedback::Counted(_) if syn.has(Flags::ECT1) => Flags::CWR | Flags::ECE | self.ect,
            Feedback::Counted(_) if syn.has(Flags::ECT) => Flags::AE | self.ect,
            Feedback::Counted(_) => Flags::CWR | self.ect,
        }
    }

    /// Writes what an acknowledgement says of CE, its SACK blocks being in place.
    #[inline]
    pub(super) fn tell(&mut self, ack: &mut Segment) {
        if !self.ecn {
            return;
        }
        ack.flags |= self.ect;
        match &mut self.feedback {
            Feedback::Counted(counters) => {
                ack.flags |= Flags::of_ace(counters.cep);
                if ack.sack_count() < ack.sacks.len() {
                    ack.set_marked_bytes(counters.ceb);
                }
                counters.since_ack = 0;
            }
            Feedback::Latched | Feedback::Mirrored => {
                if self.ece {
                    ack.flags |= Flags::ECE;
                }
            }
        }
    }
}
