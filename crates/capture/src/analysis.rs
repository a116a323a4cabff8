//! Analysis of a capture: connections, and what each of their packets shows.
//!
//! TCP and UDP packets with the same addresses and ports, in either direction, and ICMP echoes with the same
//! identifier form a *connection*. Its direction 0 is that of its opener: the sender of the SYN or, if the capture begins
//! later, the endpoint with the larger port number; else the sender of the first packet.
//!
//! A packet that is seen at several points of a file, such as the devices of a router, counts once: the points of a
//! connection are those at which the first packet of each direction was seen. In captures of Sojourn these are the
//! points `LINK.enq`; `LINK.deq` and `LINK.drop` show what the queue did to the packet.

mod tcp;

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::headers::{Headers, Transport, Unread};
use crate::reader::{Captured, Damage, Reader, Source};

use tcp::Conversation;
pub use tcp::kind;

/// Packets of a capture: each takes about 80 bytes.
pub const MOST_PACKETS: usize = 10_000_000;
/// Connections of a capture: each takes about 1 kB.
const MOST_CONNECTIONS: usize = 1_000_000;

/// An address and a port; of an echo, the identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Endpoint {
    address: IpAddr,
    port: u16,
}

/// Protocol and endpoints, the smaller endpoint first.
type Key = (Protocol, Endpoint, Endpoint);

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP echo.
    Ping,
}

impl Protocol {
    /// Its name in the tables of a result.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Ping => "ping",
        }
    }
}

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its protocol.
    pub protocol: Protocol,
    /// Address and port of the opener and of the other endpoint.
    pub endpoints: [(IpAddr, u16); 2],
    /// TCP: time of the first SYN, if the capture has it.
    pub opened_at: Option<i64>,
    /// TCP: time of the ACK that completes the handshake.
    pub connected_at: Option<i64>,
    /// TCP: both sides sent FIN.
    pub is_closed: bool,
    /// TCP: one side sent RST.
    pub is_reset: bool,
    /// The points at which the packets of each direction are analysed.
    points: [Option<(usize, Option<u32>)>; 2],
    tcp: Conversation,
}

/// What a point shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Point {
    /// Packets on their way.
    #[default]
    Passing = 0,
    /// Packets that leave a queue (`LINK.deq`).
    Leaving = 1,
    /// Packets that were dropped or lost (`LINK.drop`).
    Dropped = 2,
}

impl Point {
    /// The link of a point of Sojourn, and what the point shows.
    pub fn of(name: &str) -> Option<(&str, Self)> {
        let (link, point) = name.rsplit_once('.')?;
        let point = match point {
            "enq" => Self::Passing,
            "deq" => Self::Leaving,
            "drop" => Self::Dropped,
            _ => return None,
        };
        Some((link, point))
    }
}

/// What Sojourn's comment on a packet states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Nothing.
    #[default]
    None = 0,
    /// Dropped because the queue was full.
    Overlimit = 1,
    /// Dropped by the AQM.
    Aqm = 2,
    /// Dropped by an ACK filter.
    AckFilter = 3,
    /// Lost on the wire.
    Wire = 4,
    /// Marked by the AQM.
    MarkAqm = 5,
    /// Marked above `ce_threshold`.
    MarkThreshold = 6,
}

impl Reason {
    fn of(comment: &str) -> Self {
        let last = comment.rsplit(' ').next();
        match (comment.split_once(':').map(|parts| parts.0), last) {
            (Some("dropped"), Some("overlimit")) => Self::Overlimit,
            (Some("dropped"), Some("aqm")) => Self::Aqm,
            (Some("dropped"), Some("ack_filter")) => Self::AckFilter,
            (Some("marked CE"), Some("aqm")) => Self::MarkAqm,
            (Some("marked CE"), Some("ce_threshold")) => Self::MarkThreshold,
            _ if comment == "lost on the wire" => Self::Wire,
            _ => Self::None,
        }
    }
}

/// The packets of an analysis, by column.
#[derive(Debug, Default)]
pub struct Packets {
    /// Time since the first packet of the file, in ns.
    pub at: Vec<i64>,
    /// The index of the source.
    pub source: Vec<u32>,
    /// The index of the connection.
    pub connection: Vec<u32>,
    /// 0: sent by the opener, 1: by the other endpoint.
    pub direction: Vec<u8>,
    /// A [`Point`].
    pub point: Vec<u8>,
    /// Bytes of the IP packet.
    pub bytes: Vec<u32>,
    /// Bytes after the transport header.
    pub payload: Vec<u32>,
    /// The ECN field.
    pub ecn: Vec<u8>,
    /// TCP: a bit set of [`kind`].
    pub kind: Vec<u8>,
    /// TCP: payload of the other direction that this packet acknowledges for the first time.
    pub acked: Vec<u32>,
    /// TCP: time in ns since the segment that this packet acknowledges; −1: none. Of an echo reply, since the request.
    pub rtt: Vec<i64>,
    /// TCP: payload bytes of the direction before the packet; else −1.
    pub offset: Vec<i64>,
    /// TCP: payload bytes of the other direction that the packet acknowledges; else −1.
    pub acked_until: Vec<i64>,
    /// Time in ns since the packet entered the queue; −1: unknown.
    pub sojourn: Vec<i64>,
    /// A [`Reason`].
    pub reason: Vec<u8>,
}

/// Echo requests, by column.
#[derive(Debug, Default)]
pub struct Pings {
    /// Time of the request since the first packet of the file, in ns.
    pub at: Vec<i64>,
    /// The index of the connection.
    pub connection: Vec<u32>,
    /// Time in ns until the reply was seen for the last time; −1: no reply.
    pub rtt: Vec<i64>,
}

/// Packets that the analysis left out, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// No IP packets.
    pub not_ip: u64,
    /// IP packets other than TCP, UDP and ICMP echo.
    pub other: u64,
    /// Cut within the headers.
    pub cut: u64,
    /// Fragments.
    pub fragments: u64,
    /// With contradictory headers.
    pub malformed: u64,
    /// Of a link type that is not supported.
    pub link_type: u64,
    /// One of these link types.
    pub unsupported: Option<u16>,
    /// Seen at a further point.
    pub repeated: u64,
    /// Without a time stamp.
    pub timeless: u64,
}

impl LeftOut {
    fn count(&mut self, unread: Unread) {
        *match unread {
            Unread::LinkType(number) => {
                self.unsupported = Some(number);
                &mut self.link_type
            }
            Unread::NotIp => &mut self.not_ip,
            Unread::Cut => &mut self.cut,
            Unread::Fragment => &mut self.fragments,
            Unread::Malformed => &mut self.malformed,
        } += 1;
    }
}

/// The analysis of a capture that is read in parts.
#[derive(Debug, Default)]
pub struct Analysis {
    reader: Reader,
    /// The rest, apart from the reader that calls it.
    found: Found,
}

/// What an analysis found.
#[derive(Debug, Default)]
pub struct Found {
    /// Every packet of a connection.
    pub packets: Packets,
    /// Every connection.
    pub connections: Vec<Connection>,
    /// Every echo request.
    pub pings: Pings,
    /// What was left out.
    pub left_out: LeftOut,
    /// Time of the first packet since 1970 in ns.
    pub first_at: Option<i64>,
    /// The names of the sources.
    pub sources: Vec<String>,
    /// The file ends within a packet.
    pub ends_early: bool,
    by_key: BTreeMap<Key, u32>,
    /// When numbered packets entered a queue: by number and link.
    entered: BTreeMap<(u64, usize), i64>,
    /// Requests by connection and sequence number.
    requests: BTreeMap<(u32, u16), usize>,
    /// What each source shows, and the source at which packets enter the same link.
    points: Vec<(Point, usize)>,
    /// Whether there are too many packets or connections.
    excess: Option<String>,
}

impl Analysis {
    /// Analyses the next part of a file.
    ///
    /// # Errors
    /// If the content is invalid, or there is too much of it.
    pub fn feed(&mut self, part: &[u8]) -> Result<(), Damage> {
        let Self { reader, found } = self;
        reader.feed(part, &mut |sources, captured| found.add(sources, &captured))?;
        found.excess.take().map_or(Ok(()), |problem| {
            let at = 0;
            Err(Damage { at, problem })
        })
    }

    /// Ends the analysis.
    ///
    /// # Errors
    /// If the file is no capture.
    pub fn finish(mut self) -> Result<Found, Damage> {
        self.found.ends_early = self.reader.finish()?;
        self.found.left_out.timeless = self.reader.timeless();
        let sources = self.reader.sources().iter();
        self.found.sources = sources.map(|source| source.name.clone()).collect();
        Ok(self.found)
    }
}

impl Found {
    fn add(&mut self, sources: &[Source], captured: &Captured<'_>) {
        let link_type = sources[captured.source].link_type;
        let headers = match Headers::of(link_type, captured.data, captured.length) {
            Ok(headers) => headers,
            Err(unread) => return self.left_out.count(unread),
        };
        let at = captured
            .at
            .saturating_sub(*self.first_at.get_or_insert(captured.at));
        let (protocol, ports) = match headers.transport {
            Transport::Tcp(header) => (Protocol::Tcp, header.ports),
            Transport::Udp { ports, .. } => (Protocol::Udp, ports),
            Transport::Echo { identifier, .. } => (Protocol::Ping, [identifier; 2]),
            Transport::Other => {
                self.left_out.other += 1;
                return;
            }
        };
        if self.packets.at.len() >= MOST_PACKETS || self.connections.len() >= MOST_CONNECTIONS {
            self.excess.get_or_insert(format!(
                "too large; expected at most {MOST_PACKETS} packets and {MOST_CONNECTIONS} \
                 connections"
            ));
            return;
        }
        let (point, entry) = self.point(sources, captured.source);
        let Some((connection, direction)) = self.connection(protocol, &headers, ports, point)
        else {
            self.left_out.other += 1;
            return;
        };
        let place = (captured.source, headers.device);
        let points = &mut self.connections[connection as usize].points;
        if point == Point::Passing && *points[direction].get_or_insert(place) != place {
            self.left_out.repeated += 1;
            return;
        }
        let sojourn = self.sojourn(captured.id, entry, point, at);
        let mut seen = tcp::Seen::default();
        let payload = match headers.transport {
            Transport::Tcp(header) => {
                if point == Point::Passing {
                    let of = &mut self.connections[connection as usize];
                    seen = of.tcp.add(at, direction, &header);
                    of.note(at, direction, &header);
                }
                header.payload
            }
            Transport::Udp { payload, .. } => payload,
            Transport::Echo {
                payload,
                is_request,
                sequence,
                ..
            } => {
                if point != Point::Dropped {
                    seen.rtt = self.echo(at, connection, is_request, sequence);
                } else if let Some(&row) = self.requests.get(&(connection, sequence)) {
                    // A reply was seen where it entered the queue that dropped it.
                    self.pings.rtt[row] = -1;
                }
                payload
            }
            Transport::Other => 0,
        };
        let packets = &mut self.packets;
        packets.at.push(at);
        packets
            .source
            .push(u32::try_from(captured.source).unwrap_or(u32::MAX));
        packets.connection.push(connection);
        packets.direction.push(u8::from(direction == 1));
        packets.point.push(point as u8);
        packets.bytes.push(headers.length);
        packets.payload.push(payload);
        packets.ecn.push(headers.ecn);
        packets.kind.push(seen.kind);
        packets.acked.push(seen.acked);
        packets.rtt.push(seen.rtt.unwrap_or(-1));
        packets.offset.push(seen.offset.unwrap_or(-1));
        packets.acked_until.push(seen.acked_until.unwrap_or(-1));
        packets.sojourn.push(sojourn.unwrap_or(-1));
        packets
            .reason
            .push(captured.comment.map_or(Reason::None, Reason::of) as u8);
    }

    /// What a source shows, and the source at which packets enter the same link.
    fn point(&mut self, sources: &[Source], source: usize) -> (Point, usize) {
        for number in self.points.len()..sources.len() {
            let found = Point::of(&sources[number].name).map_or((Point::Passing, number), |of| {
                let name = format!("{}.enq", of.0);
                let entry = sources.iter().rposition(|source| source.name == name);
                (of.1, entry.unwrap_or(number))
            });
            self.points.push(found);
        }
        self.points[source]
    }

    /// The connection of a packet and its direction there; `None`: only a queue shows the packet.
    fn connection(
        &mut self,
        protocol: Protocol,
        headers: &Headers,
        ports: [u16; 2],
        point: Point,
    ) -> Option<(u32, usize)> {
        let [source, destination] = [(headers.source, ports[0]), (headers.destination, ports[1])]
            .map(|(address, port)| Endpoint { address, port });
        let key = (protocol, source.min(destination), source.max(destination));
        let known = self.by_key.get(&key).copied().filter(|&number| {
            let starts_anew = match headers.transport {
                Transport::Tcp(header) if point == Point::Passing => self.connections
                    [number as usize]
                    .tcp
                    .is_followed_by(&header),
                _ => false,
            };
            !starts_anew
        });
        let number = match known {
            Some(number) => number,
            None if point != Point::Passing => return None,
            None => {
                let number = u32::try_from(self.connections.len()).ok()?;
                self.by_key.insert(key, number);
                let opener = opener(headers, source, destination);
                let other = if opener == source {
                    destination
                } else {
                    source
                };
                self.connections.push(Connection {
                    protocol,
                    endpoints: [opener, other].map(|of| (of.address, of.port)),
                    opened_at: None,
                    connected_at: None,
                    is_closed: false,
                    is_reset: false,
                    points: [None; 2],
                    tcp: Conversation::default(),
                });
                number
            }
        };
        let [opener, _] = self.connections[number as usize].endpoints;
        let direction = usize::from(opener != (source.address, source.port));
        // Of an echo, both endpoints may have the same address: then requests have direction 0.
        let direction = match headers.transport {
            Transport::Echo { is_request, .. } if source == destination => usize::from(!is_request),
            _ => direction,
        };
        Some((number, direction))
    }

    /// The time that a numbered packet spent in the queue of a link.
    fn sojourn(&mut self, id: Option<u64>, entry: usize, point: Point, at: i64) -> Option<i64> {
        let key = (id?, entry);
        if point == Point::Passing {
            self.entered.insert(key, at);
            return None;
        }
        // A packet that is lost on the wire has left the queue before.
        Some(at.saturating_sub(self.entered.remove(&key)?))
    }

    /// Notes an echo; returns the time since the request of a reply.
    fn echo(&mut self, at: i64, of: u32, is_request: bool, sequence: u16) -> Option<i64> {
        let pings = &mut self.pings;
        let key = (of, sequence);
        let known = self.requests.get(&key).copied();
        if is_request {
            // The request at a further point, unless the number has come round.
            if known.is_some_and(|row| pings.rtt[row] < 0) {
                return None;
            }
            self.requests.insert(key, pings.at.len());
            pings.at.push(at);
            pings.connection.push(of);
            pings.rtt.push(-1);
            return None;
        }
        let row = known?;
        let rtt = at.saturating_sub(pings.at[row]).max(0);
        pings.rtt[row] = rtt;
        Some(rtt)
    }
}

/// The endpoint that opened a connection, as far as its first packet shows.
fn opener(headers: &Headers, source: Endpoint, destination: Endpoint) -> Endpoint {
    use crate::headers::TcpHeader;
    let is_source = match headers.transport {
        Transport::Tcp(header) if header.has(TcpHeader::SYN) => !header.has(TcpHeader::ACK),
        Transport::Tcp(_) => source.port >= destination.port,
        Transport::Echo { is_request, .. } => is_request,
        Transport::Udp { .. } | Transport::Other => true,
    };
    if is_source { source } else { destination }
}
