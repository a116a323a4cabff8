//! Upper bounds on the packets that a plan offers to its links, computed before a run.
//!
//! Traffic without a closed loop (UDP, pings) sends at its own rate. A closed loop (TCP, QUIC, applications) sends at
//! most 1.25 times what the slowest link of its path carries, which allows for retransmissions, and what it loses in
//! slow start and at its smallest window; flows with the same slowest link share it. There is one acknowledgement per
//! data packet. A program counts as two closed loops, one in each direction.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sojourn_apps::{ApplicationConfig, Demand, Opportunity, Volume};
use sojourn_net::{Bytes, Duration};
use sojourn_qdisc::QdiscSpec;
use sojourn_transport::{CcSpec, quic};

use crate::plan::{
    Config, ConfigError, FULL_FRAME, FlowConfig, Hop, LinkConfig, MAX_WINDOW, Traffic,
};

/// Packets of a closed loop per drop, if the queue does not mark.
const PACKETS_PER_DROP: u64 = 4;
/// Maximum burst of one flow, in packets, although its mean rate is below that of the link.
const BURST: u64 = 1_000;
/// Packets that a closed loop sends regardless of the link, besides its initial window: handshakes and probes.
const STARTED: u64 = 10;
/// Initial window of a program's connections.
const USUAL_WINDOW: u64 = 10;
/// Smallest window of a program's connections while packets are lost: that of BBR.
const USUAL_LEAST_WINDOW: u64 = 4;
/// Packets per acknowledgement (RFC 5681 section 4.2, RFC 9000 section 13.2.2), if the profile of TCP says nothing else.
const PACKETS_PER_ACK: u64 = 2;
/// Events of the hosts per packet: the time to send it, or timers, which are fewer.
const EVENTS_OF_HOSTS: u64 = 1;
/// Packets of the handshake and the end of a connection, from each end.
const TCP_HANDSHAKE: u64 = 3;
const QUIC_HANDSHAKE: u64 = 8;
/// Bytes of a QUIC packet that are not data.
const QUIC_OVERHEAD: u64 = 60;
/// Payload of an echo request of ICMP, as `ping` sends it; its header has the size of that of UDP.
const ECHO: Bytes = Bytes(56);

/// Maximum number of packets that wait or are on wires at the same time: about 10 GB.
const MOST_AT_ONCE: u64 = 100_000_000;
/// Maximum number of events that a run keeps, and of rows of the state of queues: about 10 GB.
const MOST_EVENTS: u64 = 50_000_000;
/// Statistics of the radio of a wireless link.
const RADIO_STATISTICS: u64 = 4;

/// The load of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// One for each link.
    pub links: Vec<LinkLoad>,
    /// Data packets and datagrams that hosts send, echo replies included.
    pub packets: u64,
    /// Maximum number of packets on wires at the same time.
    pub in_flight: u64,
    /// Maximum number of unacknowledged packets at senders.
    pub unacknowledged: u64,
    /// Echo requests.
    pub pings: u64,
    /// Connections of applications that are open at the same time.
    pub connections: u64,
    /// Transactions of applications.
    pub transactions: u64,
    /// Events of the simulator.
    pub events: u64,
    /// Datagrams without a reply, whose arrivals are recorded with one bit each.
    pub datagrams: u64,
}

/// The load of one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLoad {
    /// Packets that arrive in the run.
    pub arrivals: u64,
    /// Packets that leave.
    pub departures: u64,
    /// Bytes of the largest packet.
    pub largest: u64,
    /// Maximum number of packets that wait at the same time.
    pub waiting: u64,
    /// Drops, marks and losses.
    pub signals: u64,
}

/// The traffic that crosses a link.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// Datagrams, and the time that the link takes for them, in ns.
    open: u64,
    open_nanos: u128,
    /// Packets of closed loops.
    closed: u64,
    /// Packets that leave the link, copies included.
    passing: u64,
    /// Packets of closed loops that may wait, limited by their windows.
    windows: u64,
    /// Of `closed`, those that may be marked.
    markable: bool,
    /// The smallest and the largest packet, in bytes.
    least: u64,
    most: u64,
}

impl Crossing {
    const NONE: Self = Self {
        open: 0,
        open_nanos: 0,
        passing: 0,
        closed: 0,
        windows: 0,
        markable: false,
        least: u64::MAX,
        most: FULL_FRAME.0,
    };
}

/// Closed loops with the same slowest link, and the links that they cross.
struct Shared {
    packets: u64,
    /// Packets that they send as they start, regardless of the link.
    started: u64,
    /// Packets of their least windows, and the largest of these.
    least: u64,
    least_window: u64,
    /// Whether any of them reduces its window by steps.
    by_steps: bool,
    /// The most packets that one of its controls loses after slow start, as a multiple of the excess of the window.
    excess_losses: u64,
    windows: u64,
    /// The least number of packets per acknowledgement.
    packets_per_ack: u64,
    delay: u64,
    /// Delays that no link has, on the way of a packet and on that of its acknowledgement.
    wires: (u64, u64),
    /// The smallest of their full-sized packets.
    frame: Bytes,
    /// The smallest of their acknowledgements.
    ack: Bytes,
    markable: bool,
    /// Whether data, and whether acknowledgements cross the link.
    links: BTreeMap<usize, (bool, bool)>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            packets: 0,
            started: 0,
            least: 0,
            least_window: 0,
            by_steps: false,
            excess_losses: 1,
            windows: 0,
            packets_per_ack: PACKETS_PER_ACK,
            delay: 0,
            wires: (0, 0),
            frame: FULL_FRAME,
            ack: FULL_FRAME,
            markable: false,
            links: BTreeMap::new(),
        }
    }
}

/// The most that one end of a flow sends.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its packets if nothing but its data limits them, with retransmissions.
    packets: u64,
    /// Closed loops at the same time.
    loops: u64,
    /// The initial window of each.
    window: u64,
    /// Their congestion control; `None`: it is unknown.
    cc: Option<CcSpec>,
}

impl Sent {
    /// A transfer in packets of `payload` bytes; `None`: without end.
    fn transfer(bytes: Option<u64>, payload: u16, window: u64, cc: Option<CcSpec>) -> Self {
        let packets = bytes.map_or(u64::MAX, |bytes| {
            let packets = bytes.div_ceil(u64::from(payload));
            packets.saturating_add(packets / PACKETS_PER_DROP + 10)
        });
        Self {
            packets,
            loops: 1,
            window,
            cc,
        }
    }

    /// One end of all connections of an application.
    fn by_application(app: &dyn ApplicationConfig, demand: &Demand, volume: Volume) -> Self {
        let (payload, handshake) = if app.quic().is_some() {
            (
                u64::from(quic::SMALLEST_DATAGRAM) - QUIC_OVERHEAD,
                QUIC_HANDSHAKE,
            )
        } else {
            (u64::from(app.exchange().tcp.mss), TCP_HANDSHAKE)
        };
        let handshakes = demand.connections.saturating_mul(handshake);
        let packets = volume.packets(payload).saturating_add(handshakes);
        Self {
            packets: packets.saturating_add(packets / PACKETS_PER_DROP),
            loops: demand.open.max(1),
            window: app.exchange().tcp.initial_window.into(),
            cc: Some(app.exchange().tcp.cc),
        }
    }
}

/// The least number of data packets per acknowledgement of a flow.
fn packets_per_ack(traffic: &Traffic) -> u64 {
    let params = match traffic {
        Traffic::Tcp { params, .. } => *params,
        Traffic::App(app) if app.quic().is_none() => app.exchange().tcp,
        _ => return PACKETS_PER_ACK,
    };
    if params.profile.acknowledges_each() || params.receiver.acks.every == 1 {
        1
    } else {
        PACKETS_PER_ACK
    }
}

/// The same flow with its data the other way.
fn turned(flow: &FlowConfig) -> FlowConfig {
    FlowConfig {
        forward: flow.reverse.clone(),
        reverse: flow.forward.clone(),
        ..flow.clone()
    }
}

impl Config {
    /// The load of the run.
    pub fn load(&self) -> Load {
        let mut crossing = vec![Crossing::NONE; self.links.len()];
        let mut shared: BTreeMap<Option<usize>, Shared> = BTreeMap::new();
        let mut load = Load {
            links: Vec::new(),
            packets: 0,
            in_flight: 0,
            unacknowledged: 0,
            pings: 0,
            connections: 0,
            transactions: 0,
            events: 0,
            datagrams: 0,
        };
        for flow in &self.flows {
            let end = flow.stop.unwrap_or(self.duration).min(self.duration);
            let time = end.saturating_sub(flow.start);
            match &flow.traffic {
                Traffic::Datagrams(config) => {
                    let count = config.most_datagrams(time, Self::least_rtt(flow));
                    let kind = config.kind();
                    let frame = flow.datagram(kind.payload().unwrap_or(ECHO));
                    let ways = if kind.is_answered() {
                        load.pings = load.pings.saturating_add(count);
                        vec![&flow.forward, &flow.reverse]
                    } else {
                        load.datagrams = load.datagrams.saturating_add(count);
                        vec![&flow.forward]
                    };
                    let mut sent = count;
                    for way in ways {
                        load.packets = load.packets.saturating_add(sent);
                        load.in_flight += self.on_wires(way, sent);
                        let (arrived, wires) = self.offer(way, sent, frame, &mut crossing);
                        load.events = load.events.saturating_add(wires);
                        // Each request that arrives is answered.
                        sent = arrived;
                    }
                }
                Traffic::Tcp { bytes, params } => {
                    let window = params.initial_window.into();
                    let sent = Sent::transfer(*bytes, params.mss, window, Some(params.cc));
                    self.join(flow, sent, params.ecn, &mut shared);
                }
                Traffic::Quic { bytes, params, .. } => {
                    let window = params.initial_window.into();
                    let sent =
                        Sent::transfer(*bytes, quic::SMALLEST_DATAGRAM, window, Some(params.cc));
                    self.join(flow, sent, true, &mut shared);
                }
                // Responses are data one way, requests the other way.
                Traffic::App(app) => {
                    let demand = app.demand(&self.opportunity(flow, time));
                    load.connections = load.connections.saturating_add(demand.open);
                    load.transactions = load.transactions.saturating_add(demand.transactions);
                    let ways = [
                        (demand.server, Cow::Borrowed(flow)),
                        (demand.client, Cow::Owned(turned(flow))),
                    ];
                    for (volume, way) in ways {
                        let sent = Sent::by_application(&**app, &demand, volume);
                        self.join(&way, sent, true, &mut shared);
                    }
                }
                Traffic::Program(_) | Traffic::Bridged => {
                    // Without a link on its way, nothing limits a loop and no link sees it.
                    let is_limited = |flow: &&FlowConfig| {
                        let mut hops = flow.forward.iter();
                        hops.any(|hop| matches!(hop, Hop::Link(_)))
                    };
                    for way in [flow, &turned(flow)].into_iter().filter(is_limited) {
                        self.join(
                            way,
                            Sent::transfer(None, flow.mss(), USUAL_WINDOW, None),
                            true,
                            &mut shared,
                        );
                    }
                }
            }
        }
        for (slowest, group) in &shared {
            self.settle(*slowest, group, &mut load, &mut crossing);
        }
        load.links = (self.links.iter().zip(&crossing))
            .map(|(link, crossing)| self.of_link(link, crossing))
            .collect();
        load.events = load.events.saturating_add(self.events(&load));
        load
    }

    /// Events of the simulator: of hosts, of links and of clocks, without those of delays that no link has.
    fn events(&self, load: &Load) -> u64 {
        let samples = self.duration.as_nanos() / self.sample.as_nanos().max(1);
        let hosts = load.packets.saturating_mul(EVENTS_OF_HOSTS);
        let clocks = samples.saturating_add(4 * self.flows.len() as u64);
        let links = self.links.iter().zip(&load.links).map(|(link, load)| {
            let timed = u64::from(link.queues().any(QdiscSpec::delays_packets));
            let leaving = link.events_per_packet(Bytes(load.largest));
            let timers = link.queues().map(|queue| queue.footprint().timers_per_s);
            let timers = u128::from(timers.max().unwrap_or(0))
                * u128::from(self.duration.as_nanos())
                / 1_000_000_000;
            let timers = u64::try_from(timers).unwrap_or(u64::MAX);
            let changes = link.changes.len() as u64;
            let packets = (load.arrivals.saturating_mul(timed))
                .saturating_add(load.departures.saturating_mul(leaving));
            packets.saturating_add(timers).saturating_add(changes)
        });
        links.fold(hosts.saturating_add(clocks), u64::saturating_add)
    }

    /// Rows of the state of queues that a run records, at most.
    pub fn state_rows(&self) -> u64 {
        if !self.sample_state {
            return 0;
        }
        let rows = self.links.iter().map(|link| {
            let radio = link.radio.as_ref().map_or(0, |_| RADIO_STATISTICS);
            let queues = link.queues().map(|queue| queue.footprint().statistics);
            queues.max().unwrap_or(0).saturating_add(radio)
        });
        let samples = self.duration.as_nanos() / self.sample.as_nanos().max(1);
        rows.fold(0, u64::saturating_add).saturating_mul(samples)
    }

    /// The part of the RTT of a flow that does not depend on links.
    fn least_rtt(flow: &FlowConfig) -> Duration {
        let hops = flow.forward.iter().chain(&flow.reverse);
        hops.fold(Duration::ZERO, |rtt, hop| match *hop {
            Hop::Link(_) => rtt,
            Hop::Delay(delay) => rtt + delay,
        })
    }

    /// What the network lets an application do in `time`.
    fn opportunity(&self, flow: &FlowConfig, time: Duration) -> Opportunity {
        let payload = u64::from(flow.mss());
        Opportunity {
            time,
            rtt: self.least_round_trip(flow, flow.pure_ack()),
            carried: self.carried(flow).saturating_mul(payload),
        }
    }

    /// Packets of `count` that are on the wires of `way` at once.
    fn on_wires(&self, way: &[Hop], count: u64) -> u64 {
        share_of_time(count, self.delay(way), self.duration)
    }

    /// The time that a packet spends on the wires of `way`, in ns.
    fn delay(&self, way: &[Hop]) -> u64 {
        let delays = way.iter().map(|hop| match *hop {
            Hop::Link(n) => self.links[n].greatest_delay().as_nanos(),
            Hop::Delay(delay) => delay.as_nanos(),
        });
        delays.fold(0, u64::saturating_add)
    }

    /// Datagrams on their way: each link passes on at most what it carries, and its copies. Returns how many arrive,
    /// and the events of delays that no link has.
    fn offer(
        &self,
        way: &[Hop],
        count: u64,
        frame: Bytes,
        crossing: &mut [Crossing],
    ) -> (u64, u64) {
        let (mut left, mut wires) = (count, 0_u64);
        for hop in way {
            let Hop::Link(n) = *hop else {
                wires = wires.saturating_add(left);
                continue;
            };
            let link = &self.links[n];
            let seen = &mut crossing[n];
            seen.open = seen.open.saturating_add(left);
            let nanos = u128::from(left) * u128::from(link.initial_serialisation(frame));
            seen.open_nanos = seen.open_nanos.saturating_add(nanos);
            seen.least = seen.least.min(frame.0);
            seen.most = seen.most.max(frame.0);
            left = left.min(link.carries(self.duration, frame).saturating_add(1));
            left = left.saturating_add(link.copies(left));
            seen.passing = seen.passing.saturating_add(left);
        }
        (left, wires)
    }

    /// Adds a closed loop to those with the same slowest link.
    fn join(
        &self,
        flow: &FlowConfig,
        sent: Sent,
        markable: bool,
        shared: &mut BTreeMap<Option<usize>, Shared>,
    ) {
        let unit = if matches!(flow.traffic, Traffic::Quic { .. }) {
            quic::SMALLEST_DATAGRAM
        } else {
            flow.mss()
        };
        let window = MAX_WINDOW / u64::from(unit);
        let links = |way: &[Hop]| -> Vec<usize> {
            let links = way.iter().filter_map(|hop| match *hop {
                Hop::Link(n) => Some(n),
                Hop::Delay(_) => None,
            });
            links.collect()
        };
        let (there, back) = (links(&flow.forward), links(&flow.reverse));
        let wires = |way: &[Hop], links: &[usize]| (way.len() - links.len()) as u64;
        let wires = (wires(&flow.forward, &there), wires(&flow.reverse, &back));
        let frame = flow.full_frame();
        let slowest = there
            .iter()
            .copied()
            .min_by_key(|&n| self.links[n].carries(self.duration, frame));
        let trips = self.round_trips(flow);
        let paths = trips.saturating_mul(window);
        let group = shared.entry(slowest).or_default();
        // The initial window may be lost, and is sent again then.
        let started = sent.loops.saturating_mul(2 * sent.window + STARTED);
        group.started = group.started.saturating_add(started.min(sent.packets));
        let smallest = (sent.cc).map_or(USUAL_LEAST_WINDOW, |cc| cc.least_window().into());
        let least = trips.saturating_mul(sent.loops.saturating_mul(smallest));
        group.least = group.least.saturating_add(least);
        group.least_window = group.least_window.max(smallest);
        group.packets_per_ack = group.packets_per_ack.min(packets_per_ack(&flow.traffic));
        group.by_steps |= sent.cc.is_some_and(|cc| cc.reduces_by_steps());
        let losses = sent.cc.map_or(1, |cc| cc.excess_losses().into());
        group.excess_losses = group.excess_losses.max(losses);
        let packets = (sent.packets).min(if slowest.is_none() { paths } else { u64::MAX });
        group.packets = group.packets.saturating_add(packets);
        let windows = window.saturating_mul(sent.loops).min(sent.packets);
        group.windows = group.windows.saturating_add(windows);
        let delay = self
            .delay(&flow.forward)
            .saturating_add(self.delay(&flow.reverse));
        group.delay = group.delay.max(delay);
        group.wires.0 = group.wires.0.max(wires.0);
        group.wires.1 = group.wires.1.max(wires.1);
        group.frame = group.frame.min(frame);
        group.ack = group.ack.min(flow.pure_ack());
        group.markable |= markable;
        for n in there {
            let seen = group.links.entry(n).or_default();
            seen.0 = true;
        }
        for n in back {
            let seen = group.links.entry(n).or_default();
            seen.1 = true;
        }
    }

    /// Adds the closed loops with one slowest link to what crosses the links.
    fn settle(
        &self,
        slowest: Option<usize>,
        group: &Shared,
        load: &mut Load,
        crossing: &mut [Crossing],
    ) {
        let carried = slowest.map_or(u64::MAX, |n| {
            self.links[n].carries(self.duration, group.frame)
        });
        let arriving = carried.min(group.packets);
        // Least windows that the link carries are not lost for lack of room. Of each other, one packet arrives, and
        // half of the rest is lost: no more was in 11,000 random scenarios.
        let of_least = arriving.saturating_mul(group.least_window.saturating_sub(1)) / 2;
        let of_least = group.least.saturating_sub(carried).min(of_least);
        let (held, overshoot) = self.slow_start(carried, group);
        let parts = [
            carried,
            carried / PACKETS_PER_DROP,
            overshoot,
            group.started,
            of_least,
        ];
        let by_link = parts.into_iter().fold(0, u64::saturating_add);
        // What links and queues hold at once is not lost.
        let by_demand = (group.packets.saturating_add(of_least))
            .saturating_add(overshoot.min(arriving).saturating_sub(held));
        let packets = by_demand.min(by_link);
        load.packets = load.packets.saturating_add(packets);
        let flying = share_of_time(packets, group.delay, self.duration).min(group.windows);
        load.in_flight = load.in_flight.saturating_add(flying);
        let mut outstanding = flying;
        // Packets that are lost for lack of room leave no link.
        let passing = carried.saturating_add(group.started);
        let passing = packets.min(passing);
        let copies = group.links.keys().map(|&n| self.links[n].copies(passing));
        let passing = copies.fold(passing, u64::saturating_add);
        let acks = passing / group.packets_per_ack;
        let (there, back) = group.wires;
        let wires = (passing.saturating_mul(there)).saturating_add(acks.saturating_mul(back));
        load.events = load.events.saturating_add(wires);
        for (&n, &(data, is_way_back)) in &group.links {
            let seen = &mut crossing[n];
            let ways = u64::from(data) + u64::from(is_way_back);
            seen.closed = seen.closed.saturating_add(packets.saturating_mul(ways));
            seen.passing = (seen.passing)
                .saturating_add(u64::from(data) * passing)
                .saturating_add(u64::from(is_way_back) * acks);
            if data {
                seen.windows = seen.windows.saturating_add(group.windows.min(packets));
                let room = self.links[n].room(group.frame);
                outstanding = outstanding.saturating_add(room.min(packets));
            } else {
                seen.windows = seen.windows.saturating_add(group.windows.min(packets) / 2);
            }
            seen.markable |= group.markable;
            seen.least = seen.least.min(group.ack.0);
        }
        load.unacknowledged = load
            .unacknowledged
            .saturating_add(outstanding.min(group.windows));
    }

    /// What the links and queues of closed loops hold, and the packets that are lost because slow start exceeds it. The
    /// acknowledgements that wait let a window grow further: they stand for packets that have arrived.
    fn slow_start(&self, carried: u64, group: &Shared) -> (u64, u64) {
        let mut held = share_of_time(carried, group.delay, self.duration);
        let mut acknowledged = 0_u64;
        for (&n, &(data, acks)) in &group.links {
            if data {
                held = held.saturating_add(self.links[n].room(group.frame));
            }
            if acks {
                let room = self.links[n].room(group.ack);
                acknowledged = acknowledged.saturating_add(room.saturating_mul(PACKETS_PER_ACK));
            }
        }
        let window = held.saturating_add(acknowledged).min(carried);
        if !group.by_steps {
            return (held, window.saturating_mul(group.excess_losses));
        }
        // A window grows and falls by a packet per arrival, so it is at most half of what the link carries. Falling, it
        // is sent once per round trip, in which `held` packets arrive.
        let most = u128::from(window.min(carried / 2));
        let lost = u64::try_from(most * most / (2 * u128::from(held.max(1))));
        (held, window.max(lost.unwrap_or(u64::MAX)))
    }

    fn of_link(&self, link: &LinkConfig, crossing: &Crossing) -> LinkLoad {
        let time = u128::from(self.duration.as_nanos());
        // Assumption: closed loops leave half of the link to datagrams. A varying link may carry nothing for a while.
        let open_time = if crossing.closed > 0 {
            time / 2
        } else {
            time * 9 / 10
        };
        let sent = if link.is_steady() && crossing.open_nanos > 0 {
            u128::from(crossing.open) * open_time / crossing.open_nanos.max(open_time)
        } else {
            0
        };
        let excess = u128::from(crossing.open).saturating_sub(sent);
        let excess = u64::try_from(excess)
            .unwrap_or(u64::MAX)
            .max(crossing.open.min(BURST));
        let room = link.room(Bytes(crossing.least.max(1)));
        let signals = if crossing.markable {
            crossing.closed
        } else {
            crossing.closed / PACKETS_PER_DROP
        };
        LinkLoad {
            arrivals: crossing.open.saturating_add(crossing.closed),
            largest: crossing.most,
            departures: crossing.passing,
            waiting: excess.saturating_add(crossing.windows).min(room),
            signals: crossing.open.saturating_add(signals),
        }
    }
}

/// The place and the message if the load of `config` exceeds a limit of this module.
pub(crate) fn check(config: &Config) -> Result<(), ConfigError> {
    let fail = |place: String, rule: String| Err(ConfigError { place, rule });
    let load = config.load();
    for (n, link) in load.links.iter().enumerate() {
        if link.waiting > MOST_AT_ONCE {
            let waiting = link.waiting;
            return fail(
                format!("links[{n}].qdisc"),
                format!(
                    "too large for the load: {waiting} packets could wait at once; expected at most {MOST_AT_ONCE}"
                ),
            );
        }
    }
    if load.in_flight > MOST_AT_ONCE {
        let flying = load.in_flight;
        return fail(
            "rtt".to_owned(),
            format!(
                "too long for the rates: {flying} packets could be on the way at once; expected at most {MOST_AT_ONCE}"
            ),
        );
    }
    let signals = load.links.iter().map(|link| link.signals);
    let signals = signals.fold(0, u64::saturating_add);
    if config.keep_events && signals > MOST_EVENTS {
        return fail(
            "keep_events".to_owned(),
            format!(
                "too many events: up to {signals} drops, marks and losses; expected at most {MOST_EVENTS}, with a shorter duration or lower rates"
            ),
        );
    }
    let rows = config.state_rows();
    if rows > MOST_EVENTS {
        return fail(
            "sample_state".to_owned(),
            format!(
                "too many rows: up to {rows} in queue_series; expected at most {MOST_EVENTS}, with a shorter duration or a longer sample"
            ),
        );
    }
    Ok(())
}

/// Number of packets that exist at the same time, if `count` are sent in a run and each stays for `nanos`.
fn share_of_time(count: u64, nanos: u64, run: Duration) -> u64 {
    let run = u128::from(run.as_nanos().max(1));
    let there = u128::from(count) * u128::from(nanos).min(run);
    u64::try_from(there.div_ceil(run)).unwrap_or(u64::MAX)
}
