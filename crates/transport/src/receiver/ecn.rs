//! Telling the sender of congestion.
//!
//! # Source
//!
//! RFC 3168 §6.1.3; RFC 8257 §3.2 as Linux 6.1.

use sojourn_net::Instant;

use super::Receiver;
use crate::segment::{Flags, Segment};

impl Receiver {
    /// RFC 3168: echo CE on every ACK until the sender says that it has reacted. RFC 8257: echo
    /// whether the last packet was marked; when that changes, first acknowledge what came before.
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
        if self.mirrors {
            self.ack_now |= seg.flags.has(Flags::CWR);
            if ce != self.ece && seg.seq >= self.next {
                if self.delayed_ack_at.is_some() {
                    let ack = self.acknowledgement(now);
                    out.push(ack);
                    self.acked = self.next;
                    self.since_ack = 0;
                }
                self.ack_now = true;
                self.ece = ce;
            }
            return;
        }
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
