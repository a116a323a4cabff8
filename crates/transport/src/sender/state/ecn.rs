//! ECN state: negotiation, the reports of the peer, and pending reports to it.
//!
//! # Source
//!
//! RFC 3168 §6.1; RFC 9768 §3.1.2 and §3.1.3 (the answers of a server), §3.1.5 (the response), §3.2 (AccECN).
//!
//! # Law
//!
//! The counter in AE, CWR and ECE counts packets modulo 8. If the option reports the number of
//! marked bytes, the multiple of 8 that comes nearest to them is added; without it, an
//! acknowledgement of more than seven segments counts as many marks as are possible (§3.2.2.5.2).
//!
//! A server that answers with ECE alone supports classic ECN only: a connection that offered
//! AccECN then uses RFC 3168, or no ECN if its controller requires AccECN.
//!
//! ```text
//! SYN-ACK        if it reports a field that no router may make of that of the SYN, packets are Not-ECT from then on
//!                (§3.2.2.3)
//! first ACK      a counter of 0, with no marked bytes in the option: no ECN from then on (§3.2.2.4)
//! ACK of the     reports the field of the SYN-ACK (§3.2.2.1); if that was CE, the own counter starts at 6
//! SYN-ACK
//! ```
//!
//! "The TCP Client still triggers the congestion control actions necessary to respond to the CE feedback" in a SYN-ACK,
//! and so does a server on that in the acknowledgement of its SYN-ACK (§3.2.2.2). §3.1.5 does not say which: it refers to
//! RFC 3168 §6.1, as updated by RFC 8311. Here, whatever [`OnCe`], the initial window is one segment, which is the
//! response of RFC 5562 to a mark on the SYN-ACK; RFC 8311 and RFC 6928 §2 also permit a milder one. The slow-start
//! threshold stays, and Careful Resume does not jump.
//!
//! # Differences from RFC 9768
//!
//! | here | RFC 9768 | effect |
//! |---|---|---|
//! | CE on the SYN or SYN-ACK does not reduce the initial windows of BBR and Copa, whose windows follow a model, of Hybla, which the RTT sets, and of Prague, which agrees with TCP Prague 0.7 in 224 of 232 cells without this response and in 222 with it | triggers the response to congestion (§3.2.2.2) | these begin as without the mark |
//! | CE on every packet is congestion, however long it lasts | advises a check for continuous CE (§3.2.2.3), not how | the window stays at its minimum on a path that marks every packet; an overloaded AQM does that too |
//! | a counter of 0 with marked bytes in the option is valid | only the counter is tested | the first ACK may cover three marks |

use sojourn_net::Ecn as Field;

use crate::handshake::Handshake;
use crate::segment::{Flags, Segment, is_mangled};
use crate::sender::params::{OnCe, SenderParams};

/// The bits of the counter of RFC 9768 and its option.
const COUNTER: Flags = Flags::of_ace(7).with(Flags::ACE_OPTION);

/// Most segments whose marks a counter modulo 8 reports without doubt.
const SURE: u32 = 7;

/// What the handshake has decided.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// No ECN.
    Off,
    /// Offered in the SYN; the SYN-ACK will decide.
    Offered,
    /// The peer echoes CE (RFC 3168, RFC 8257).
    Classic,
    /// The peer counts marks (RFC 9768).
    Accurate(PeerCounts),
}

/// The marks the peer has reported.
#[derive(Clone, Copy, Debug)]
struct PeerCounts {
    /// Packets marked, modulo 8.
    cep: u8,
    /// Bytes marked, modulo 2^24.
    ceb: u32,
    /// Packets counted as marked since an option last reported bytes: its bytes include them.
    assumed: u32,
}

impl PeerCounts {
    /// The values a connection starts with.
    const START: Self = Self {
        cep: 5,
        ceb: 0,
        assumed: 0,
    };

    /// Those after a handshake whose SYN-ACK was CE-marked or not.
    const fn after(syn_ack_marked: bool) -> Self {
        Self {
            cep: Self::START.cep + syn_ack_marked as u8,
            ..Self::START
        }
    }

    /// Packets newly marked, by the counter and, if present, the option with the bytes of packets of `mss`.
    fn newly_marked(&mut self, cep: u8, ceb: Option<u32>, mss: u32) -> u32 {
        let some = u32::from(cep.wrapping_sub(self.cep) % 8);
        let Some(ceb) = ceb else {
            self.cep = cep;
            self.assumed += some;
            return some;
        };
        let bytes = ceb.wrapping_sub(self.ceb) % (1 << 24);
        if bytes >= 1 << 23 {
            // An older acknowledgement, overtaken.
            return 0;
        }
        self.cep = cep;
        self.ceb = ceb;
        let assumed = std::mem::take(&mut self.assumed);
        let packets = bytes.div_ceil(mss).saturating_sub(assumed);
        some + (packets.saturating_sub(some) + 4) / 8 * 8
    }
}

/// The ECN state of a sender.
#[derive(Clone, Debug)]
pub(crate) struct Ecn {
    mode: Mode,
    /// Echoes of CE below this have been answered.
    answered: u32,
    /// The IP ECN field of ECN-capable segments.
    ect: Flags,
    /// The counter in every segment, with AccECN.
    own_count: Flags,
    /// AccECN is offered.
    offers_accurate: bool,
    /// Every segment is ECN-capable, not only new data.
    ect_always: bool,
    on_ce: OnCe,
    /// The next new segment is to carry CWR.
    cwr_pending: bool,
}

impl Ecn {
    pub(crate) const fn new(params: &SenderParams) -> Self {
        Self {
            mode: if params.offers_ecn() {
                Mode::Offered
            } else {
                Mode::Off
            },
            answered: 0,
            ect: params.ect(),
            own_count: Flags::NONE,
            offers_accurate: params.wants_accurate_ecn(),
            ect_always: params.cc.kind().needs_ecn(),
            on_ce: params.on_ce,
            cwr_pending: false,
        }
    }

    /// Whether segments may be ECN-capable.
    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        !matches!(self.mode, Mode::Off)
    }

    /// Whether the peer counts marks.
    #[inline]
    pub(crate) const fn is_accurate(&self) -> bool {
        matches!(self.mode, Mode::Accurate(_))
    }

    pub(crate) const fn on_ce(&self) -> OnCe {
        self.on_ce
    }

    /// Whether the SYN that was sent after `syn_resent` others offers ECN: the first does, and the
    /// second if AccECN is offered.
    fn syn_offers(&self, syn_resent: u32) -> bool {
        self.is_on() && syn_resent <= u32::from(self.offers_accurate)
    }

    /// The control bits of a SYN sent after `syn_resent` others.
    pub(crate) fn syn_flags(&self, syn_resent: u32) -> Flags {
        let mut flags = self.ect_if_always();
        if self.syn_offers(syn_resent) {
            flags |= Flags::ECE | Flags::CWR;
            if self.offers_accurate {
                flags |= Flags::AE;
            }
        }
        flags
    }

    /// Reads from the SYN-ACK which ECN the peer accepts. Returns whether it reports that the SYN was marked.
    pub(crate) fn on_syn_ack(&mut self, syn_ack: Flags, syn_resent: u32) -> bool {
        let answer = syn_ack.ace();
        let offered = self.syn_offers(syn_resent);
        // 5 is reserved and counts as the SYN unchanged (§3.1.3). All three bits are set by a peer that copies bits it
        // does not know.
        let counts = self.offers_accurate && matches!(answer, 2..=6);
        // An L4S controller must not send ECT(1) to a peer that only echoes CE.
        let classic = if self.offers_accurate {
            answer == 1 && !self.ect.has(Flags::ECT1)
        } else {
            syn_ack.has(Flags::ECE)
        };
        let sent = self.ect_if_always().ecn();
        self.mode = if offered && counts {
            Mode::Accurate(PeerCounts::START)
        } else if offered && classic {
            Mode::Classic
        } else {
            Mode::Off
        };
        if !self.is_accurate() {
            return false;
        }
        let reported = syn_ack.reported();
        if reported.is_some_and(|arrived| is_mangled(sent, arrived)) {
            self.ect = Flags::NONE;
        }
        self.begin_counting(syn_ack.ecn() == Field::Ce);
        reported == Some(Field::Ce)
    }

    /// The other half of a two-way connection has negotiated with the same peer. Returns whether that reports that the
    /// SYN-ACK was marked.
    pub(crate) const fn join(&mut self, handshake: &Handshake) -> bool {
        self.mode = match (handshake.ecn, self.offers_accurate) {
            (false, _) => Mode::Off,
            (true, false) => Mode::Classic,
            (true, true) => Mode::Accurate(PeerCounts::after(handshake.syn_ack_marked)),
        };
        if handshake.is_mangled {
            self.ect = Flags::NONE;
        }
        if !self.is_accurate() {
            return false;
        }
        self.begin_counting(false);
        handshake.syn_ack_marked
    }

    const fn begin_counting(&mut self, syn_ack_marked: bool) {
        self.own_count = Flags::of_ace(PeerCounts::after(syn_ack_marked).cep);
    }

    /// The bits of the acknowledgement of this SYN-ACK.
    pub(crate) const fn confirmation(&self, syn_ack: Flags) -> Flags {
        if self.is_accurate() {
            Flags::reporting(syn_ack.ecn())
        } else {
            self.own_count
        }
    }

    /// Whether this end counts the SYN-ACK as marked, which its acknowledgements report.
    pub(crate) fn has_marked_syn_ack(&self) -> bool {
        self.own_count == Flags::of_ace(PeerCounts::after(true).cep)
    }

    /// ECT for segments other than new data.
    #[inline]
    pub(crate) const fn ect_if_always(&self) -> Flags {
        if self.is_on() && self.ect_always {
            self.ect
        } else {
            Flags::NONE
        }
    }

    /// The marks this end has counted, in every segment after the handshake. They stay at their
    /// start: marks on acknowledgements are not counted, since no one would respond to them.
    #[inline]
    pub(crate) const fn own_count(&self) -> Flags {
        self.own_count
    }

    /// With ECN: ECT, and CWR if it is due, for a new segment with or without data.
    #[inline]
    pub(crate) fn new_segment_flags(&mut self, has_data: bool) -> Flags {
        if !(has_data || self.ect_always) {
            return Flags::NONE;
        }
        if self.cwr_pending && !self.is_accurate() {
            self.cwr_pending = false;
            return self.ect | Flags::CWR;
        }
        self.ect
    }

    /// The flags of new segments with data, if all of them have the same ones until something is received.
    #[inline]
    pub(crate) fn data_flags(&self) -> Option<Flags> {
        match self.mode {
            Mode::Off => Some(Flags::NONE),
            Mode::Accurate(_) => Some(self.ect),
            Mode::Offered | Mode::Classic => (!self.cwr_pending).then_some(self.ect),
        }
    }

    /// Whether `seg` is an acknowledgement without SACK blocks that reports neither marks nor anything else that
    /// changes the counts of marks.
    #[inline]
    pub(crate) fn is_plain(&self, seg: &Segment) -> bool {
        match &self.mode {
            Mode::Off | Mode::Offered | Mode::Classic => {
                seg.flags.without(Flags::IP_ECN) == Flags::ACK
            }
            Mode::Accurate(peer) => {
                seg.flags.without(Flags::IP_ECN.with(COUNTER)) == Flags::ACK
                    && seg.flags.ace() == peer.cep
                    && seg
                        .marked_bytes()
                        .is_none_or(|ceb| ceb == peer.ceb && peer.assumed == 0)
            }
        }
    }

    /// Whether the `delivered` segments of an acknowledgement that is [plain](Self::is_plain) count as unmarked:
    /// the counter has not come full circle.
    #[inline]
    pub(crate) fn may_presume_unmarked(&self, seg: &Segment, delivered: u32) -> bool {
        !self.is_accurate() || delivered <= SURE || seg.marked_bytes().is_some()
    }

    /// The window was reduced: with ECN the next new segment carries CWR.
    pub(crate) const fn request_cwr(&mut self) {
        self.cwr_pending = self.is_on();
    }

    /// The reduction was undone.
    pub(crate) const fn cancel_cwr(&mut self) {
        self.cwr_pending = false;
    }

    /// Whether an echo of CE in an acknowledgement up to `una` has been answered.
    pub(crate) const fn is_answered(&self, una: u32) -> bool {
        una <= self.answered
    }

    /// Echoes of CE below `next` count as answered.
    pub(crate) const fn answer_through(&mut self, next: u32) {
        self.answered = next;
        self.cwr_pending = true;
    }

    /// The first acknowledgement of data arrived, with a counter that no receiver of AccECN begins with.
    fn is_zeroed(&self, seg: &Segment) -> bool {
        self.is_accurate() && seg.flags.ace() == 0 && seg.marked_bytes().is_none_or(|ceb| ceb == 0)
    }

    /// The packets of `mss` bytes that `seg` reports as newly marked, and whether it reports congestion at
    /// all. `overtaken`: a later segment has arrived before; `first`: nothing was acknowledged before.
    #[inline]
    pub(crate) fn read_echo(
        &mut self,
        seg: &Segment,
        (overtaken, first): (bool, bool),
        mss: u32,
    ) -> (u32, bool) {
        if first && self.is_zeroed(seg) {
            self.mode = Mode::Off;
            return (0, false);
        }
        let Mode::Accurate(peer) = &mut self.mode else {
            return (0, seg.flags.has(Flags::ECE));
        };
        if overtaken {
            return (0, false);
        }
        let marked = peer.newly_marked(seg.flags.ace(), seg.marked_bytes(), mss);
        (marked, marked > 0)
    }

    /// How many of `delivered` segments count as marked if the acknowledgement reported `marked`.
    pub(crate) fn presumed_marked(&mut self, seg: &Segment, delivered: u32, marked: u32) -> u32 {
        let Mode::Accurate(peer) = &mut self.mode else {
            // RFC 8257: the echo applies to everything that is acknowledged.
            return if seg.flags.has(Flags::ECE) {
                delivered
            } else {
                0
            };
        };
        if seg.marked_bytes().is_some() || delivered <= SURE {
            return marked;
        }
        let possible = delivered.saturating_sub(marked) / 8 * 8;
        peer.assumed += possible;
        marked + possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::MSS;

    const FULL: u32 = MSS as u32;

    #[test]
    fn the_option_resolves_the_counter_modulo_8() {
        let mut peer = PeerCounts::START;
        let mss = FULL;
        let (mut packets, mut bytes) = (5_u32, 0);
        for marked in [0, 1, 7, 8, 9, 15, 16, 40, 3] {
            packets += marked;
            bytes += marked * mss;
            let cep = u8::try_from(packets % 8).unwrap();
            assert_eq!(peer.newly_marked(cep, Some(bytes), FULL), marked);
        }
        // A short packet among them, and one without payload.
        assert_eq!(
            peer.newly_marked(
                u8::try_from((packets + 9) % 8).unwrap(),
                Some(bytes + 8 * mss + 1),
                FULL
            ),
            9
        );
        assert_eq!(
            peer.newly_marked(
                u8::try_from((packets + 10) % 8).unwrap(),
                Some(bytes + 8 * mss + 1),
                FULL
            ),
            1
        );
    }

    #[test]
    fn without_the_option_it_counts_modulo_8_and_an_older_one_counts_nothing() {
        let mut peer = PeerCounts::START;
        assert_eq!(
            [6, 0, 0, 7].map(|cep| peer.newly_marked(cep, None, FULL)),
            [1, 2, 0, 7]
        );
        let mut peer = PeerCounts::START;
        assert_eq!(peer.newly_marked(7, Some(3_000), FULL), 2);
        assert_eq!(peer.newly_marked(6, Some(1_500), FULL), 0);
        assert_eq!(peer.newly_marked(0, Some(4_448), FULL), 1);
        // Across the wrap of 2^24 bytes.
        let mut peer = PeerCounts {
            cep: 0,
            ceb: (1 << 24) - 1_448,
            assumed: 0,
        };
        assert_eq!(peer.newly_marked(2, Some(1_448), FULL), 2);
    }

    #[test]
    fn marks_counted_without_the_option_are_not_counted_again_with_it() {
        let mss = FULL;
        let mut peer = PeerCounts::START;
        assert_eq!(peer.newly_marked(2, None, FULL), 5);
        assert_eq!(peer.newly_marked(2, Some(5 * mss), FULL), 0);
        // Of thirteen the counter reports five, the bytes the other eight.
        assert_eq!(peer.newly_marked(7, None, FULL), 5);
        assert_eq!(peer.newly_marked(0, Some(19 * mss), FULL), 9);
        assert_eq!(peer.newly_marked(1, Some(20 * mss), FULL), 1);
    }
}
