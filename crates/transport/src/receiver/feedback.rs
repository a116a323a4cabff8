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
//! ACK of the     reports the SYN-ACK's ECN field to its sender in the same way (§3.2.2.1)
//! SYN-ACK
//! an ACK immediately when a packet is marked and the last one was not or the reverse, and at the second
//! mark since the last ACK
//! ```
//!
//! # Differences from RFC 9768
//!
//! | here | RFC 9768 | effect |
//! |---|---|---|
//! | counters of CE alone | an option counts ECT(0) and ECT(1) too | mangling of data is not detected, that of SYNs is |
//! | the option on every ACK with room | when a counter changed, and a few times more | 8 bytes more per ACK |
//! | two marks, whatever is unacknowledged | two, or three if nothing is | – |
//! | an immediate ACK of the first unmarked packet after marks, as in Linux 7.3 | not required | an ACK more for each run of marks |
//! | no second order of the fields of the option | kinds 172 and 174 | – |
//! | SYNs are retransmitted twice, the first time unchanged | the fallback is left to the host | – |

use sojourn_net::Ecn;

use crate::handshake::Handshake;
use crate::reception::PeerEcn;
use crate::segment::{Flags, Segment, is_mangled};
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
    /// The control bits of the SYN, and its IP ECN field as it arrived.
    syn: (Flags, Ecn),
    /// The IP ECN field of the SYN-ACK as it arrived at the peer, if the peer reports it.
    syn_ack: Option<Ecn>,
    /// Data segments that arrived CE-marked.
    marked_segments: u64,
    fault: Option<PeerEcn>,
}

impl EcnFeedback {
    /// The feedback of a listener that accepts ECN if `on`.
    pub(super) const fn new(on: bool) -> Self {
        Self {
            on,
            ece: false,
            mode: Mode::Latched,
            ect: Flags::NONE,
            syn: (Flags::NONE, Ecn::NotEct),
            syn_ack: None,
            marked_segments: 0,
            fault: None,
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
        match params.peer_ecn {
            None => feedback,
            Some(peer) => feedback.of(peer),
        }
    }

    /// The feedback of a peer with this ECN.
    const fn of(self, peer: PeerEcn) -> Self {
        match peer {
            PeerEcn::None => Self::new(false),
            PeerEcn::Classic => Self::new(true),
            PeerEcn::Accurate => Self {
                on: true,
                mode: Mode::Counted(Counters::START),
                ..self
            },
            PeerEcn::Reflecting => Self {
                fault: Some(peer),
                ..Self::new(false)
            },
            PeerEcn::Reserved | PeerEcn::Zeroed => Self {
                on: true,
                mode: Mode::Counted(Counters::START),
                fault: Some(peer),
                ..self
            },
        }
    }

    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// A SYN arrived with these flags, CE-marked or not.
    pub(super) const fn on_syn(&mut self, syn: Flags, ce: bool) {
        self.syn = (syn, if ce { Ecn::Ce } else { syn.ecn() });
    }

    /// The segment that completes the handshake arrived. A pure ACK reports how the SYN-ACK arrived (RFC 9768 §3.2.2.1).
    pub(super) fn on_confirmation(&mut self, seg: &Segment) {
        let is_pure = seg.len == 0 && seg.sack_count() == 0 && !seg.flags.has(Flags::FIN);
        if self.on && is_pure && matches!(self.mode, Mode::Counted(_)) {
            self.syn_ack = seg.flags.reported();
        }
    }

    /// Whether the path overwrote the IP ECN field of the SYN-ACK.
    pub(super) fn is_mangled(&self) -> bool {
        self.syn_ack
            .is_some_and(|arrived| is_mangled(self.ect.ecn(), arrived))
    }

    /// Whether the SYN-ACK arrived CE-marked.
    pub(super) fn is_syn_ack_marked(&self) -> bool {
        self.syn_ack == Some(Ecn::Ce)
    }

    /// Data segments that arrived CE-marked.
    pub(super) const fn marked_segments(&self) -> u64 {
        self.marked_segments
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
    pub(super) const fn join(&mut self, handshake: &Handshake) {
        self.on = handshake.ecn;
        if let Mode::Counted(counters) = &mut self.mode {
            counters.cep += handshake.syn_ack_marked as u8;
        }
    }

    /// Control bits of the SYN-ACK.
    pub(super) fn syn_ack_flags(&self) -> Flags {
        let (syn, arrived) = self.syn;
        match (self.fault, self.mode) {
            (Some(PeerEcn::Reflecting), _) => Flags::of_ace(syn.ace()),
            _ if !self.on => Flags::NONE,
            (_, Mode::Latched | Mode::Mirrored) => Flags::ECE,
            (Some(PeerEcn::Reserved), _) => Flags::AE | Flags::ECE | self.ect,
            (_, Mode::Counted(_)) => Flags::reporting(arrived) | self.ect,
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
        self.marked_segments += u64::from(ce);
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
            Mode::Counted(_) if self.fault == Some(PeerEcn::Zeroed) => {}
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
