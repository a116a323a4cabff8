//! A radio: the queues of its driver, and the aggregate that it sends in its turn.

use std::collections::VecDeque;

use sojourn_net::{Bytes, Duration, Instant, Packet as View, Rate, Rng};

use super::edca::{Class, Contender};
use super::phy::{LONGEST, MOST_MPDUS, airtime, max_ampdu, subframe};
use crate::packet::Packet;
use sojourn_records::Histogram;
use sojourn_scenario::plan::{Client, DriverLimit, RadioConfig, Sharing, Standard};

/// Airtime that a client may use in a round, if they share by it.
const QUANTUM: Duration = Duration::from_micros(300);
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
    /// By station.
    rates: Vec<Rate>,
    classes: [ClassQueues; 4],
    pub(super) contenders: [Contender; 4],
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
    /// On the air, with acknowledgements.
    pub(crate) sending: Duration,
}

/// The packets of a class, by station.
#[derive(Clone, Debug)]
struct ClassQueues {
    stations: Vec<Station>,
    /// Stations with packets, in turn.
    turns: VecDeque<u8>,
}

#[derive(Clone, Debug, Default)]
struct Station {
    packets: VecDeque<Packet>,
    /// Airtime it may still use, in nanoseconds.
    deficit: i64,
}

/// What a radio sends at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregate {
    pub(super) class: Class,
    station: u8,
    pub(super) packets: usize,
    /// Of the A-MPDU alone.
    pub(super) time: Duration,
}

impl Radio {
    pub(crate) fn new(link: u32, rate: Rate, config: &RadioConfig, rng: Rng) -> Self {
        let mut rates = vec![rate; STATIONS];
        for &(client, rate) in &config.stations {
            rates[usize::from(client) + 1] = rate;
        }
        let class = ClassQueues {
            stations: vec![Station::default(); STATIONS],
            turns: VecDeque::new(),
        };
        Self {
            link,
            standard: config.standard,
            limit: config.driver,
            sharing: config.sharing,
            rates,
            classes: [class.clone(), class.clone(), class.clone(), class],
            contenders: Class::ALL.map(Contender::new),
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
        }
    }

    /// What a packet takes on the air, but for what an aggregate shares.
    pub(crate) fn airtime(&self, pkt: &Packet) -> Duration {
        self.rates[station(pkt)].serialise(Bytes(subframe(pkt.size())))
    }

    /// The driver takes a packet out of the queue, while somebody sends or not.
    pub(super) fn push(&mut self, now: Instant, pkt: Packet, busy: bool) {
        self.packets += 1;
        self.airtime += self.airtime(&pkt);
        let class = Class::of(pkt.dscp());
        let (n, queues) = (station(&pkt), &mut self.classes[class as usize]);
        if queues.stations[n].packets.is_empty() {
            queues.turns.push_back(u8::try_from(n).unwrap_or(u8::MAX));
        }
        queues.stations[n].packets.push_back(pkt.stamped(now));
        self.contenders[class as usize].activate(now, busy, &mut self.rng);
    }

    /// What a class sends in its turn, no longer than `room` if it is limited.
    pub(super) fn next_aggregate(
        &mut self,
        class: Class,
        room: Option<Duration>,
    ) -> Option<Aggregate> {
        let station = self.next_station(class)?;
        let rate = self.rates[usize::from(station)];
        let queue = &self.classes[class as usize].stations[usize::from(station)].packets;
        let (mut packets, mut bytes) = (0, 0);
        let mut time = Duration::ZERO;
        for pkt in queue.iter().take(MOST_MPDUS) {
            let more = bytes + subframe(pkt.size());
            let longer = airtime(self.standard, more, rate);
            // One goes whatever it takes: there is no smaller unit.
            let fits = more <= max_ampdu(self.standard)
                && longer <= LONGEST
                && room.is_none_or(|room| longer <= room);
            if packets > 0 && !fits {
                break;
            }
            (packets, bytes, time) = (packets + 1, more, longer);
        }
        Some(Aggregate {
            class,
            station,
            packets,
            time,
        })
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

    /// Takes what `aggregate` holds out of the queue; `spent` is the time of the whole exchange.
    pub(super) fn take(&mut self, aggregate: Aggregate, spent: Duration, out: &mut Vec<Packet>) {
        let queues = &mut self.classes[aggregate.class as usize];
        let station = &mut queues.stations[usize::from(aggregate.station)];
        station.deficit -= nanos(spent);
        let taken = out.len();
        out.extend(station.packets.drain(..aggregate.packets));
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
        let empty = queues.turns.is_empty();
        self.contenders[aggregate.class as usize].active = !empty;
        for pkt in &out[taken..] {
            self.packets -= 1;
            let time =
                self.rates[usize::from(aggregate.station)].serialise(Bytes(subframe(pkt.size())));
            self.airtime = self.airtime.saturating_sub(time);
        }
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self) {
        self.below = Histogram::default();
        self.counted = Counted::default();
    }
}

fn station(pkt: &Packet) -> usize {
    pkt.owner()
        .client()
        .map_or(0, |client| usize::from(client) + 1)
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
