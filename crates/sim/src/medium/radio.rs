//! A radio: the queues of its driver, and the aggregate that it sends in its turn.

use std::collections::VecDeque;

use sojourn_net::{Bytes, Duration, Instant, Packet as View, Rate, Rng};

use super::channel::Channel;
use super::edca::{Class, Contender, MOST_ATTEMPTS};
use super::phy::{Mode, subframe};
use crate::packet::Packet;
use sojourn_qdisc::Mac80211;
use sojourn_records::Histogram;
use sojourn_scenario::plan::{Client, DriverLimit, RadioConfig, Sharing, Standard, StationConfig};

/// Airtime that a client may use in a round, if they share by it.
const QUANTUM: Duration = Duration::from_micros(300);
/// Packet for which a driver that builds aggregates keeps room.
const FULL_FRAME: Bytes = Bytes(1_514);
/// Clients, and one for who has no number.
const STATIONS: usize = Client::MOST as usize + 2;

/// A link's radio.
#[derive(Debug)]
pub(crate) struct Radio {
    /// Number of the link.
    pub(crate) link: u32,
    standard: Standard,
    limit: DriverLimit,
    sharing: Sharing,
    /// Whether its queue is `mac80211`, which serves stations and receives reports of airtime.
    pub(crate) serves_stations: bool,
    longest: Duration,
    most_packets: usize,
    /// By station.
    modes: Vec<Mode>,
    weights: Vec<u32>,
    /// By station, where packets are lost or the rate is controlled.
    channels: Vec<Option<Box<Channel>>>,
    /// Whether one of them is.
    pub(crate) has_channels: bool,
    /// Stations whose best rate has changed, with it and its success.
    pub(crate) changed: Vec<(u8, Rate, f64)>,
    classes: [ClassQueues; 4],
    pub(super) contenders: [Contender; 4],
    /// Before this time the air is not idle for this radio: it waits after a collision.
    pub(super) resumes: Instant,
    pub(super) rng: Rng,
    packets: u32,
    airtime: Duration,
    /// Of packets that have been sent: their time in the driver's queue and on the air.
    pub(crate) below: Histogram,
    pub(crate) counted: Counted,
}

/// What a radio did since the warm-up ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) attempts: u64,
    pub(crate) collisions: u64,
    pub(crate) aggregates: u64,
    pub(crate) sent: u64,
    /// MPDUs that did not arrive.
    pub(crate) errors: u64,
    /// On the air, with acknowledgements.
    pub(crate) sending: Duration,
}

/// The packets of a class, by station.
#[derive(Clone, Debug)]
struct ClassQueues {
    stations: Vec<Station>,
    /// Stations with packets, in turn.
    turns: VecDeque<u8>,
    /// Aggregates that are built, instead of turns, if the driver is limited to a number of them: station and packets.
    built: VecDeque<(u8, usize)>,
}

/// A packet in the driver.
#[derive(Clone, Copy, Debug)]
struct Queued {
    pkt: Packet,
    /// Airtime by the estimate of AQL, in µs.
    expected: u32,
    /// Transmissions that have failed.
    failures: u32,
    /// What it counts in the limit of the driver.
    time: Duration,
    state: State,
}

/// Where a packet in the driver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// At the receiver, which holds it back until those before it have arrived or are given up.
    Received,
    GivenUp,
}

#[derive(Clone, Debug, Default)]
struct Station {
    packets: VecDeque<Queued>,
    /// Airtime it may still use, in nanoseconds.
    deficit: i64,
}

/// What a radio sends at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregate {
    pub(super) class: Class,
    pub(super) station: u8,
    pub(super) packets: usize,
    /// Of the A-MPDU alone.
    pub(super) time: Duration,
    /// Of SIFS and the acknowledgement.
    acknowledgement: Duration,
    /// The rate, if a channel chose it.
    mcs: usize,
}

impl Aggregate {
    /// How long it takes with its acknowledgement.
    pub(super) fn exchange(&self) -> Duration {
        self.time + self.acknowledgement
    }
}

/// The outcome of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is sent, without a collision.
    Sent,
    /// It was tried as often as it may be.
    GivenUp,
}

/// What an aggregate left behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// Airtime in µs that AQL expected of the packets that have left the driver.
    pub(super) expected: u64,
    /// Whether at least one packet arrived, so that there was an acknowledgement.
    pub(super) acknowledged: bool,
}

impl Radio {
    pub(crate) fn new(link: u32, rate: Rate, config: &RadioConfig, rng: Rng) -> Self {
        let mut rates = vec![rate; STATIONS];
        let mut weights = vec![StationConfig::WEIGHT; STATIONS];
        for station in &config.stations {
            let place = usize::from(station.host) + 1;
            (rates[place], weights[place]) = (station.rate, station.weight);
        }
        let mut ways = vec![config.channel; STATIONS];
        for station in &config.stations {
            if let Some(channel) = station.channel {
                ways[usize::from(station.host) + 1] = channel;
            }
        }
        let standard = config.standard;
        let channels = ways.iter().zip(&rates).zip(0_u32..);
        let channels: Vec<_> = channels
            .map(|((way, &rate), n)| {
                let rng = rng.fork("channel").fork(&n.to_string());
                let channel = Channel::new(way, config.rate_control, standard, rate, rng);
                channel.map(Box::new)
            })
            .collect();
        let class = ClassQueues {
            stations: vec![Station::default(); STATIONS],
            turns: VecDeque::new(),
            built: VecDeque::new(),
        };
        Self {
            link,
            standard,
            limit: config.driver,
            sharing: config.sharing,
            serves_stations: false,
            longest: config.aggregate_time,
            most_packets: config.aggregate_packets as usize,
            modes: rates
                .into_iter()
                .map(|rate| Mode::of(standard, rate, None))
                .collect(),
            weights,
            has_channels: channels.iter().any(Option::is_some),
            channels,
            changed: Vec::new(),
            classes: [class.clone(), class.clone(), class.clone(), class],
            contenders: Class::ALL.map(Contender::new),
            resumes: Instant::ZERO,
            rng,
            packets: 0,
            airtime: Duration::ZERO,
            below: Histogram::default(),
            counted: Counted::default(),
        }
    }

    /// Whether the driver takes another packet out of the queue.
    pub(crate) fn has_room(&self) -> bool {
        match self.limit {
            DriverLimit::Packets(most) => self.packets < most,
            DriverLimit::Airtime(most) => self.airtime < most,
            DriverLimit::Aggregates(_) => false,
        }
    }

    /// Whether the driver takes another packet of access category `class` out of the queue.
    pub(crate) fn has_room_for(&self, class: usize) -> bool {
        match self.limit {
            DriverLimit::Aggregates(most) => self.classes[class].built.len() < most as usize,
            DriverLimit::Packets(_) | DriverLimit::Airtime(_) => self.has_room(),
        }
    }

    /// The driver begins to take packets for a station, as an aggregate if it builds them.
    pub(crate) fn begin_turn(&mut self, class: usize, station: u8) {
        if self.builds() {
            self.classes[class].built.push_back((station, 0));
        }
    }

    /// Whether the driver takes another packet in this turn, which the aggregate, if it builds one, has room for.
    pub(crate) fn goes_on(&self, class: usize) -> bool {
        if !self.builds() {
            return self.has_room();
        }
        let Some(&(station, packets)) = self.classes[class].built.back() else {
            return false;
        };
        let queued = &self.classes[class].stations[usize::from(station)].packets;
        let mine = queued.iter().rev().take(packets);
        let bytes: u64 = mine.map(|queued| subframe(queued.pkt.size())).sum();
        let total = bytes + subframe(FULL_FRAME);
        let mode = &self.modes[usize::from(station)];
        let fits = total <= mode.max_ampdu() && mode.airtime(total) <= self.longest;
        packets == 0 || packets < self.most_packets && fits
    }

    /// The turn has ended.
    pub(crate) fn end_turn(&mut self, class: usize) {
        let built = &mut self.classes[class].built;
        built.pop_back_if(|&mut (_, packets)| packets == 0);
    }

    fn builds(&self) -> bool {
        matches!(self.limit, DriverLimit::Aggregates(_))
    }

    /// Makes this radio the one that serves `queue`.
    pub(crate) fn attach(&mut self, queue: &mut Mac80211<Packet>) {
        self.serves_stations = true;
        queue.attach(self.standard == Standard::N);
        for (station, (mode, &weight)) in (0..).zip(self.modes.iter().zip(&self.weights)) {
            queue.set_weight(station, weight);
            queue.set_rate(station, mode.rate, 1.0);
        }
    }

    /// What a packet takes on the air, but for what an aggregate shares.
    pub(crate) fn airtime(&self, pkt: &Packet) -> Duration {
        let mode = &self.modes[usize::from(pkt.station())];
        mode.rate.serialise(Bytes(subframe(pkt.size())))
    }

    /// The driver takes a packet out of the queue, while somebody sends or not.
    pub(super) fn push(&mut self, now: Instant, pkt: Packet, expected: u32, busy: bool) {
        let time = self.airtime(&pkt);
        self.packets += 1;
        self.airtime += time;
        let class = Class::of(pkt.dscp());
        let (n, builds) = (pkt.station(), self.builds());
        let queues = &mut self.classes[class as usize];
        let station = &mut queues.stations[usize::from(n)];
        if builds {
            if let Some((_, packets)) = queues.built.back_mut() {
                *packets += 1;
            }
        } else if station.packets.is_empty() {
            queues.turns.push_back(n);
        }
        let pkt = pkt.stamped(now);
        station.packets.push_back(Queued {
            pkt,
            expected,
            failures: 0,
            time,
            state: State::Waiting,
        });
        let busy = busy || now < self.resumes;
        self.contenders[class as usize].activate(now, busy, &mut self.rng);
    }

    /// What a class sends in its turn, with its acknowledgement no longer than `room` if it is limited.
    pub(super) fn next_aggregate(
        &mut self,
        now: Instant,
        class: Class,
        room: Option<Duration>,
    ) -> Option<Aggregate> {
        let (station, most) = if self.builds() {
            *self.classes[class as usize].built.front()?
        } else {
            (self.next_station(class)?, self.most_packets)
        };
        let (mcs, mode, is_sample) = self.choose(now, class, station);
        let most = if is_sample {
            1
        } else {
            most.min(self.most_packets)
        };
        let queue = &self.classes[class as usize].stations[usize::from(station)].packets;
        let (mut packets, mut bytes) = (0, 0);
        let mut time = Duration::ZERO;
        // A block acknowledgement covers as many packets from the first one that is missing.
        let window = queue.iter().take(RadioConfig::AGGREGATE_PACKETS as usize);
        let waiting = window.filter(|queued| queued.state == State::Waiting);
        for queued in waiting.take(most) {
            let size = queued.pkt.size();
            let total = bytes + subframe(size);
            let longer = if packets == 0 {
                mode.single(size)
            } else {
                mode.airtime(total)
            };
            let exchange = longer + mode.acknowledgement(packets + 1);
            // One goes whatever it takes: there is no smaller unit.
            let fits = total <= mode.max_ampdu()
                && longer <= self.longest
                && room.is_none_or(|room| exchange <= room);
            if packets > 0 && !fits {
                break;
            }
            (packets, bytes, time) = (packets + 1, total, longer);
        }
        Some(Aggregate {
            class,
            station,
            packets,
            time,
            acknowledgement: mode.acknowledgement(packets),
            mcs,
        })
    }

    /// The rate for a station, and whether it is a sample.
    fn choose(&mut self, now: Instant, class: Class, station: u8) -> (usize, Mode, bool) {
        let n = usize::from(station);
        let Some(channel) = &mut self.channels[n] else {
            return (0, self.modes[n], false);
        };
        let failures = self.contenders[class as usize].attempts;
        let chosen = channel.choose(now, failures);
        if let Some((best, success)) = channel.best()
            && best != self.modes[n]
        {
            self.modes[n] = best;
            self.changed.push((station, best.rate, success));
        }
        chosen
    }

    fn next_station(&mut self, class: Class) -> Option<u8> {
        let queues = &mut self.classes[class as usize];
        // Ends: every round gives each more.
        loop {
            let first = *queues.turns.front()?;
            let station = &mut queues.stations[usize::from(first)];
            if self.sharing == Sharing::Turns || station.deficit > 0 {
                return Some(first);
            }
            station.deficit += nanos(QUANTUM);
            queues.turns.rotate_left(1);
        }
    }

    /// Takes the packets of `aggregate` out of the queue that arrive or are given up; `spent` is the time of the whole
    /// exchange. Those that the receiver passes on go to `arrived`.
    pub(super) fn take(
        &mut self,
        aggregate: Aggregate,
        outcome: Outcome,
        spent: Duration,
        arrived: &mut Vec<Packet>,
        lost: &mut Vec<Packet>,
    ) -> Left {
        let class = aggregate.class as usize;
        let n = usize::from(aggregate.station);
        let station = &mut self.classes[class].stations[n];
        station.deficit -= nanos(spent);
        let waiting = station
            .packets
            .iter_mut()
            .filter(|q| q.state == State::Waiting);
        let (mut expected, mut successes, mut gone) = (0, 0, 0);
        for queued in waiting.take(aggregate.packets) {
            let channel = self.channels[n].as_mut();
            let bytes = subframe(queued.pkt.size());
            let fails = channel.is_some_and(|channel| channel.loses(aggregate.mcs, bytes));
            if outcome == Outcome::GivenUp {
                queued.state = State::GivenUp;
            } else if !fails {
                queued.state = State::Received;
                successes += 1;
            } else {
                self.counted.errors += 1;
                queued.failures += 1;
                if queued.failures < MOST_ATTEMPTS {
                    continue;
                }
                queued.state = State::GivenUp;
            }
            if queued.state == State::GivenUp {
                lost.push(queued.pkt);
            }
            gone += 1;
            expected += u64::from(queued.expected);
            self.packets -= 1;
            self.airtime = self.airtime.saturating_sub(queued.time);
        }
        while let Some(queued) = station.packets.pop_front_if(|q| q.state != State::Waiting) {
            if queued.state == State::Received {
                arrived.push(queued.pkt);
            }
        }
        if outcome == Outcome::Sent
            && let Some(channel) = &mut self.channels[n]
            && let Some(control) = &mut channel.control
        {
            let packets = u32::try_from(aggregate.packets).unwrap_or(u32::MAX);
            control.report(aggregate.mcs, packets, successes);
        }
        self.end_aggregate(aggregate, gone);
        Left {
            expected,
            acknowledged: successes > 0,
        }
    }

    /// It is the turn of the next station or aggregate, after `gone` packets of `aggregate` have left.
    fn end_aggregate(&mut self, aggregate: Aggregate, gone: usize) {
        let builds = self.builds();
        let queues = &mut self.classes[aggregate.class as usize];
        let station = &mut queues.stations[usize::from(aggregate.station)];
        let is_empty = if builds {
            if let Some((_, packets)) = queues.built.front_mut() {
                *packets -= aggregate.packets;
            }
            queues.built.pop_front_if(|&mut (_, packets)| packets == 0);
            // What failed joins the next aggregate of the station.
            let again = aggregate.packets - gone;
            let next = queues
                .built
                .iter_mut()
                .find(|&&mut (n, _)| n == aggregate.station);
            match next {
                Some((_, packets)) => *packets += again,
                None if again > 0 => queues.built.push_back((aggregate.station, again)),
                None => {}
            }
            queues.built.is_empty()
        } else {
            let first = queues.turns.pop_front();
            debug_assert_eq!(first, Some(aggregate.station), "it was its turn");
            if station.packets.is_empty() {
                // Who has nothing to send keeps no claim.
                station.deficit = station.deficit.min(0);
            } else if self.sharing == Sharing::Turns {
                queues.turns.push_back(aggregate.station);
            } else {
                queues.turns.push_front(aggregate.station);
            }
            queues.turns.is_empty()
        };
        self.contenders[aggregate.class as usize].active = !is_empty;
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self) {
        self.below = Histogram::default();
        self.counted = Counted::default();
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
