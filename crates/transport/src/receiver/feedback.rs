//! Congestion feedback to the sender.
//!
//! # Source
//!
//! RFC 3168 §6.1.3; RFC 8257 §3.2 as Linux 6.1; RFC 9768 (AccECN): the handshake §3.1.1 to §3.1.3, the
//! counters and their initial values §3.2 and §3.2.1, when to acknowledge §3.2.2.5.1, the option
//! §3.2.3. The text read was that of the last draft, draft-ietf-tcpm-accurate-ecn.
//!
//! # Law of AccECN
//!
//! ```text
//! SYN            offers it with AE, CWR and ECE; the SYN-ACK reports the SYN's ECN field with them:
//!                CWR Not-ECT, CWR ECE ECT(1), AE ECT(0), AE CWR CE; ECE alone: RFC 3168
//! CE arrives     r.cep += 1, r.ceb += payload;  r.cep starts at 5
//! every ACK      r.cep modulo 8 in AE, CWR, ECE; r.ceb modulo 2^24 in an option of 8 bytes, if three
//!                SACK blocks leave room
//! an ACK immediately when a packet is marked and the last one was not or the reverse, and at the second
//! mark since the last ACK
//! ```
//!
//! # Differences from RFC 9768
//!
//! | here | RFC 9768 | effect |
//! |---|---|---|
//! | counters of CE alone | an option counts ECT(0) and ECT(1) too | mangling of the field is not detected |
//! | the option on every ACK with room | when a counter changed, and a few times more | 8 bytes more per ACK |
//! | two marks, whatever is unacknowledged | two, or three if nothing is | – |
//! | an immediate ACK of the first unmarked packet after marks, as in Linux 7.3 | not required | an ACK more for each run of marks |
//! | no second order of the fields of the option | kinds 172 and 174 | – |
//! | SYNs are retransmitted twice, the first time unchanged | the fallback is left to the host | – |

use crate::segment::{Flags, Segment};
use crate::sender::SenderParams;

/// How a receiver reports CE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// On every ACK until the sender confirms with CWR (RFC 3168).
    Latched,
    /// Whether the last packet was marked; when that changes, earlier packets are acknowledged
    /// first (RFC 8257).
    Mirrored,
    /// How many packets and bytes were marked (RFC 9768).
    Counted(Counters),
}

/// The counters of AccECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counters {
    /// Packets marked, modulo 8.
    cep: u8,
    /// Bytes of payload marked.
    ceb: u32,
    /// Packets marked since the last ACK.
    since_ack: u8,
    /// The last packet was marked.
    marked: bool,
}

impl Counters {
    const START: Self = Self {
        cep: 5,
        ceb: 0,
        since_ack: 0,
        marked: false,
    };
}

/// Marks since the last ACK that cause an immediate one.
const IMMEDIATE_MARKS: u8 = 2;

/// What the schedule of ACKs must do for a data segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    /// Acknowledge immediately.
    pub(super) immediate: bool,
    /// Acknowledge the next segments immediately.
    pub(super) quick: bool,
}

/// The ECN state of a receiver.
#[derive(Clone, Debug)]
pub(super) struct EcnFeedback {
    /// ECN is accepted, then negotiated.
    on: bool,
    /// The state of the echo (RFC 3168, RFC 8257).
    ece: bool,
    mode: Mode,
    /// The IP ECN field of acknowledgements.
    ect: Flags,
    /// IP ECN field of the SYN, and whether it was marked.
    syn: (Flags, bool),
}

impl EcnFeedback {
    /// The feedback of a listener that accepts ECN if `on`.
    pub(super) const fn new(on: bool) -> Self {
        Self {
            on,
            ece: false,
            mode: Mode::Latched,
            ect: Flags::NONE,
            syn: (Flags::NONE, false),
        }
    }

    /// The feedback of the listener for a sender with these parameters.
    pub(super) const fn answering(params: &SenderParams) -> Self {
        let mut feedback = Self::new(params.offers_ecn());
        if params.cc.kind().needs_ecn() {
            feedback.mode = Mode::Mirrored;
            feedback.ect = params.ect();
        }
        if params.wants_accurate_ecn() {
            feedback.mode = Mode::Counted(Counters::START);
        }
        feedback
    }

    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// A SYN arrived with these flags, CE-marked or not.
    pub(super) const fn on_syn(&mut self, syn: Flags, ce: bool) {
        self.syn = (syn, ce);
    }

    /// Accepts what the first SYN offers and this end supports. One that counts takes any combination of the bits for
    /// an offer of AccECN but none and that of RFC 3168 (RFC 9768 §3.1.3).
    pub(super) fn negotiate(&mut self, syn: &Segment) {
        let counts = matches!(self.mode, Mode::Counted(_));
        let (offer, classic) = (syn.flags.ace(), Flags::CWR.with(Flags::ECE));
        self.on &= syn.flags.has(classic) || counts && offer != 0;
        if counts && offer == classic.ace() {
            self.mode = if self.ect.has(Flags::ECT0) {
                Mode::Mirrored
            } else {
                Mode::Latched
            };
        }
    }

    /// The sending half of this end has negotiated.
    pub(super) const fn join(&mut self, negotiated: bool) {
        self.on = negotiated;
    }

    /// Control bits of the SYN-ACK.
    pub(super) fn syn_ack_flags(&self) -> Flags {
        let (syn, ce) = self.syn;
        match self.mode {
            _ if !self.on => Flags::NONE,
            Mode::Latched | Mode::Mirrored => Flags::ECE,
            Mode::Counted(_) if ce => Flags::AE | Flags::CWR | self.ect,
            Mode::Counted(_) if syn.has(Flags::ECT1) => Flags::CWR | Flags::ECE | self.ect,
            Mode::Counted(_) if syn.has(Flags::ECT0) => Flags::AE | self.ect,
            Mode::Counted(_) => Flags::CWR | self.ect,
        }
    }

    /// Whether this data segment changes the echo, so that earlier ones are to be acknowledged
    /// before it; `is_new`: it is not below what was received.
    pub(super) fn changes_with(&self, ce: bool, is_new: bool) -> bool {
        matches!(self.mode, Mode::Mirrored) && ce != self.ece && is_new
    }

    /// The flags of a data segment that may call for a response; [`Flags::NONE`] if it changes the feedback.
    #[inline]
    pub(super) fn flags_of_interest(&self, flags: Flags, ce: bool) -> Flags {
        match &self.mode {
            _ if ce => Flags::NONE,
            Mode::Counted(counters) if !counters.marked => {
                flags.without(Flags::IP_ECN.with(Flags::of_ace(7)))
            }
            Mode::Mirrored if !self.ece => flags.without(Flags::IP_ECN),
            Mode::Latched => flags.without(Flags::IP_ECN),
            Mode::Counted(_) | Mode::Mirrored => Flags::NONE,
        }
    }

    /// A data segment arrived, CE-marked or not.
    pub(super) fn on_data(&mut self, seg: &Segment, ce: bool, is_new: bool) -> Response {
        let cwr = seg.flags.has(Flags::CWR);
        let mut response = Response::default();
        match &mut self.mode {
            Mode::Counted(counters) => {
                response.immediate = ce != counters.marked;
                if ce {
                    counters.cep = (counters.cep + 1) % 8;
                    counters.ceb = counters.ceb.wrapping_add(u32::from(seg.len));
                    counters.since_ack = counters.since_ack.saturating_add(1);
                    response.immediate |= counters.since_ack >= IMMEDIATE_MARKS;
                }
                counters.marked = ce;
            }
            Mode::Mirrored => {
                response.immediate = cwr;
                if ce != self.ece && is_new {
                    response.immediate = true;
                    self.ece = ce;
                }
            }
            Mode::Latched => {
                if cwr {
                    self.ece = false;
                    response.immediate = true;
                }
                if ce {
                    response.quick = !self.ece;
                    self.ece = true;
                }
            }
        }
        response
    }

    /// Writes the report into an acknowledgement that has its SACK blocks.
    #[inline]
    pub(super) fn write_to(&mut self, ack: &mut Segment) {
        if !self.on {
            return;
        }
        ack.flags |= self.ect;
        match &mut self.mode {
            Mode::Counted(counters) => {
                ack.flags |= Flags::of_ace(counters.cep);
                if ack.sack_count() < ack.sacks.len() {
                    ack.set_marked_bytes(counters.ceb);
                }
                counters.since_ack = 0;
            }
            Mode::Latched | Mode::Mirrored => {
                if self.ece {
                    ack.flags |= Flags::ECE;
                }
            }
        }
    }
}
