//! Connection tracking: assigns each packet to one of the classes of FLOQ.
//!
//! ```text
//! TCP               responsive; setup from the SYN on
//! QUIC              responsive; setup from the first long header on
//! SCTP, DCCP        responsive; their setup is not recognised
//! the rest          unresponsive
//! ```
//!
//! Setup ends after some packets with data, some time after the last SYN or long header, or with
//! FIN or RST. Both directions of a connection are one. The memory has four places for each value
//! of a hash; a connection that finds them taken gets that which was idle longest. What was never
//! seen to open counts as established.

use sojourn_net::{Duration, FlowKey, Instant, Packet, TcpHeader, Transport};

use super::FloqParams;

/// What a packet is to FLOQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// One of the first packets of a connection.
    Setup,
    /// Of traffic that answers to loss.
    Responsive,
    /// Of traffic that does not.
    Unresponsive,
}

impl Class {
    pub(crate) const ALL: [Self; 3] = [Self::Setup, Self::Responsive, Self::Unresponsive];

    pub(crate) const fn place(self) -> usize {
        self as usize
    }
}

/// Places for each value of the hash.
const WAYS: usize = 4;

/// The connections that are remembered.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    /// The places of one value of the hash lie together.
    places: Box<[Connection]>,
    perturbation: u64,
    setup_packets: u32,
    setup_time: Duration,
    expiry: Duration,
    resume: Option<Duration>,
    quic: bool,
}

/// A place for a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    /// The whole hash of its five-tuple. A neighbour is taken for it with a probability of 2^-32
    /// times the number of places.
    tag: u32,
    phase: Phase,
    /// Packets with data since the setup began.
    packets: u32,
    /// When the last SYN or long header of the setup came.
    opened: Instant,
    /// When its last packet came.
    seen: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Free,
    Setup,
    Established,
}

/// What a packet says of its connection.
#[derive(Clone, Copy, Debug)]
struct Sign {
    opening: Opening,
    /// It has data.
    data: bool,
    /// It ends the connection.
    last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// A connection opens, if need be again.
    Begins,
    /// A connection opens; it may have begun to before.
    Proceeds,
    None,
}

impl Connections {
    pub(crate) fn new(params: &FloqParams, perturbation: u64) -> Self {
        let sets = (params.connections as usize).div_ceil(WAYS).max(1);
        let places = vec![Connection::FREE; WAYS * sets].into_boxed_slice();
        Self::of(places, params, perturbation)
    }

    /// Other parameters for the same connections.
    pub(crate) fn change(&mut self, params: &FloqParams) {
        *self = Self::of(std::mem::take(&mut self.places), params, self.perturbation);
    }

    fn of(places: Box<[Connection]>, params: &FloqParams, perturbation: u64) -> Self {
        Self {
            places,
            perturbation,
            setup_packets: params.setup_packets,
            setup_time: params.setup_time,
            expiry: params.expiry,
            resume: params.resume,
            quic: params.quic,
        }
    }

    /// The class of a packet that arrives now.
    #[inline]
    pub(crate) fn classify<P: Packet>(&mut self, now: Instant, pkt: &P) -> Class {
        const SCTP: u8 = 132;
        const DCCP: u8 = 33;
        let flow = pkt.flow();
        match pkt.transport() {
            Transport::Tcp(header) => {
                let is = |bits: u16| header.flags & bits != 0;
                let sign = Sign {
                    opening: if is(TcpHeader::SYN) {
                        Opening::Begins
                    } else {
                        Opening::None
                    },
                    data: header.payload > 0,
                    last: is(TcpHeader::FIN | TcpHeader::RST),
                };
                let place = self.place_of(now, &flow);
                self.follow(now, place, sign)
            }
            Transport::QuicLong if self.quic => {
                let place = self.place_of(now, &flow);
                self.follow(now, place, Sign::of_quic(Opening::Proceeds))
            }
            Transport::Udp if self.quic => {
                let (set, tag) = self.set_of(&flow);
                match self.find(now, set, tag) {
                    Some(place) => self.follow(now, place, Sign::of_quic(Opening::None)),
                    None => Class::Unresponsive,
                }
            }
            Transport::Other if matches!(flow.protocol, SCTP | DCCP) => Class::Responsive,
            Transport::QuicLong | Transport::Udp | Transport::Other => Class::Unresponsive,
        }
    }

    /// A packet of the connection at this place.
    #[inline]
    fn follow(&mut self, now: Instant, place: usize, sign: Sign) -> Class {
        let it = &mut self.places[place];
        let late = now.saturating_since(it.opened) > self.setup_time;
        if it.phase == Phase::Setup && late {
            it.phase = Phase::Established;
        }
        let idle = now.saturating_since(it.seen);
        let rested = self.resume.is_some_and(|resume| idle > resume);
        it.seen = now;
        match (it.phase, sign.opening) {
            (Phase::Setup, Opening::Begins | Opening::Proceeds) => it.opened = now,
            (_, Opening::Begins) | (Phase::Free, Opening::Proceeds) => it.open(now),
            (Phase::Established, Opening::Proceeds) if late => it.open(now),
            (Phase::Established, _) if rested => it.open(now),
            (Phase::Free, Opening::None) => it.phase = Phase::Established,
            (Phase::Setup | Phase::Established, _) => {}
        }
        if it.phase == Phase::Established {
            return Class::Responsive;
        }
        it.packets += u32::from(sign.data);
        let within = it.packets <= self.setup_packets;
        if sign.last || !within {
            it.phase = Phase::Established;
        }
        if within {
            Class::Setup
        } else {
            Class::Responsive
        }
    }

    /// The place of a connection, taken from another if it has none.
    #[inline]
    fn place_of(&mut self, now: Instant, flow: &FlowKey) -> usize {
        let (set, tag) = self.set_of(flow);
        if let Some(place) = self.find(now, set, tag) {
            return place;
        }
        let ways = &mut self.places[set..set + WAYS];
        let idle = |it: &Connection| (it.phase != Phase::Free).then_some(it.seen);
        let forgotten = ways.iter().position(|it| it.is(tag));
        let way = forgotten
            .or_else(|| (0..WAYS).min_by_key(|&way| idle(&ways[way])))
            .unwrap_or(0);
        ways[way] = Connection {
            tag,
            ..Connection::FREE
        };
        set + way
    }

    /// The place of a connection that is remembered. Where connections may resume, none is
    /// forgotten as long as it has a place.
    #[inline]
    fn find(&self, now: Instant, set: usize, tag: u32) -> Option<usize> {
        let fresh =
            |it: &Connection| self.resume.is_some() || now.saturating_since(it.seen) <= self.expiry;
        let mut ways = self.places[set..set + WAYS].iter();
        ways.position(|it| it.is(tag) && fresh(it))
            .map(|way| set + way)
    }

    /// Where the places for a connection begin, and what it is known by there.
    #[inline]
    fn set_of(&self, flow: &FlowKey) -> (usize, u32) {
        let tag = undirected(flow).digest(self.perturbation);
        let sets = self.places.len() / WAYS;
        (tag as usize % sets * WAYS, tag)
    }
}

impl Sign {
    const fn of_quic(opening: Opening) -> Self {
        Self {
            opening,
            data: true,
            last: false,
        }
    }
}

impl Connection {
    const FREE: Self = Self {
        tag: 0,
        phase: Phase::Free,
        packets: 0,
        opened: Instant::ZERO,
        seen: Instant::ZERO,
    };

    fn is(&self, tag: u32) -> bool {
        self.tag == tag && self.phase != Phase::Free
    }

    fn open(&mut self, now: Instant) {
        self.phase = Phase::Setup;
        self.packets = 0;
        self.opened = now;
    }
}

/// The same for both directions, whether or not the ports of one are exchanged in the other.
const fn undirected(flow: &FlowKey) -> FlowKey {
    let (a, b) = (flow.ports >> 16, flow.ports & 0xFFFF);
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    let (source, destination) = if flow.source <= flow.destination {
        (flow.source, flow.destination)
    } else {
        (flow.destination, flow.source)
    };
    FlowKey {
        source,
        destination,
        ports: low << 16 | high,
        protocol: flow.protocol,
    }
}
