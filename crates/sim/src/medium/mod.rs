//! Wireless media: radios that share one medium.
//!
//! # Source
//!
//! IEEE 802.11 as [`phy`] and [`edca`] have it; the queue of the driver below the queue discipline,
//! its limits in packets or airtime and turns by airtime as in T. Høiland-Jørgensen et al., "Ending
//! the Anomaly: Achieving Low Latency and Airtime Fairness in `WiFi`" (USENIX ATC 2017), and
//! Linux's airtime queue limits.
//!
//! # Law
//!
//! Each class of each radio that has something to send waits until the air has been idle for its
//! AIFS, then for the slots it has drawn. A class that waits while another radio sends keeps its
//! remaining slots. The winner sends an A-MPDU of packets for one client and receives a block acknowledgement; a
//! class with a TXOP limit goes on until that is used up. If several classes of a radio are due at the
//! same time, the most urgent one sends and the others draw again. Radios that start at the same time
//! collide: everything they send is lost and sent again after a longer wait, at most seven times. They wait for the
//! acknowledgement first; other radios wait for EIFS.
//!
//! Where the channel has errors, each MPDU is lost by chance and sent again in the next aggregate, seven times at most;
//! the receiver holds back those behind it. Without any that arrives there is no acknowledgement, and the next wait
//! is longer.
//!
//! # Not modelled
//!
//! Hidden stations and capture, RTS/CTS, A-MSDU, multi-user transmissions, power saving, beacons, legacy stations,
//! virtual carrier sense beyond the acknowledgement.

mod channel;
mod edca;
mod minstrel;
mod phy;
mod radio;

use sojourn_net::{Duration, Instant, Rate, Rng};

use crate::packet::Packet;
use edca::Class;
use phy::{ACK_TIMEOUT, EXTENDED, SIFS};
pub(crate) use radio::Radio;
use radio::{Aggregate, Outcome};
use sojourn_scenario::plan::RadioConfig;

/// What the air is doing.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Nobody has sent since then.
    Idle(Instant),
    /// A radio sends until then; what is left of its opportunity afterwards.
    Sending {
        radio: usize,
        aggregate: Aggregate,
        until: Instant,
        room: Duration,
    },
    /// Several did, until then.
    Collided { until: Instant },
}

/// A medium and its radios.
#[derive(Debug)]
pub(crate) struct Medium {
    pub(crate) name: String,
    pub(crate) radios: Vec<Radio>,
    state: State,
    /// The radios that collide, each with its aggregate.
    colliding: Vec<(usize, Aggregate)>,
    /// When the next event is due.
    pub(crate) due: Option<Instant>,
}

/// The packets of a transmission.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// The radio that sent them.
    pub(crate) radio: usize,
    pub(crate) arrived: Vec<Packet>,
    /// Given up, each with its radio.
    pub(crate) lost: Vec<(usize, Packet)>,
    /// For radios whose queues serve stations.
    pub(crate) reports: Vec<AirtimeReport>,
}

/// What a radio reports to its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AirtimeReport {
    pub(crate) radio: usize,
    pub(crate) station: u8,
    pub(crate) class: usize,
    /// What AQL expected of the packets that have left the driver, in µs.
    pub(crate) expected: u64,
    /// What was sent to the station or received from it.
    pub(crate) airtime: Duration,
}

impl Medium {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            radios: Vec::new(),
            state: State::Idle(Instant::ZERO),
            colliding: Vec::new(),
            due: None,
        }
    }

    /// Adds the radio of link number `link`; returns its number.
    pub(crate) fn add(&mut self, link: u32, rate: Rate, config: &RadioConfig, rng: Rng) -> usize {
        self.radios.push(Radio::new(link, rate, config, rng));
        self.radios.len() - 1
    }

    /// The driver of a radio takes a packet out of its queue.
    pub(crate) fn push(&mut self, radio: usize, now: Instant, pkt: Packet, expected: u32) {
        let busy = !matches!(self.state, State::Idle(_));
        self.radios[radio].push(now, pkt, expected, busy);
    }

    /// When something happens next, unless a packet comes before.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self.state {
            State::Sending { until, .. } | State::Collided { until } => Some(until),
            State::Idle(since) => {
                let starts = self.radios.iter().flat_map(|radio| {
                    let idle = since.max(radio.resumes);
                    let active = radio.contenders.iter().filter(|contender| contender.active);
                    active.map(move |contender| contender.start(idle))
                });
                starts.min()
            }
        }
    }

    /// Processes what is due at `now`.
    pub(crate) fn on_time(&mut self, now: Instant, sent: &mut Sent) {
        match self.state {
            State::Idle(since) => self.begin(since, now, sent),
            State::Sending {
                radio,
                aggregate,
                room,
                ..
            } => self.arrive(now, radio, aggregate, room, sent),
            State::Collided { .. } => self.part(now, sent),
        }
    }

    /// Someone sends, or several do.
    fn begin(&mut self, since: Instant, now: Instant, sent: &mut Sent) {
        self.colliding.clear();
        for (n, radio) in self.radios.iter_mut().enumerate() {
            let idle = since.max(radio.resumes);
            let mut winner: Option<Class> = None;
            for class in Class::ALL.into_iter().rev() {
                let contender = &mut radio.contenders[class as usize];
                let due = contender.active && contender.start(idle) <= now;
                match (due, winner) {
                    (true, None) => winner = Some(class),
                    // A collision within the radio: the less urgent one draws anew, or gives up.
                    (true, Some(_)) => {
                        if contender.fail(&mut radio.rng)
                            && let Some(aggregate) = radio.next_aggregate(now, class, room(class))
                        {
                            give_up(radio, n, aggregate, Duration::ZERO, sent);
                        }
                    }
                    (false, _) => contender.freeze(idle, now, &mut radio.rng),
                }
            }
            if let Some(class) = winner
                && let Some(aggregate) = radio.next_aggregate(now, class, room(class))
            {
                radio.counted.attempts += 1;
                self.colliding.push((n, aggregate));
            }
        }
        self.state = match self.colliding.as_slice() {
            [] => State::Idle(since),
            &[(radio, aggregate)] => {
                let takes = aggregate.exchange();
                State::Sending {
                    radio,
                    aggregate,
                    until: now + takes,
                    room: aggregate.class.limit().saturating_sub(takes),
                }
            }
            several => {
                let longest = several.iter().map(|(_, aggregate)| aggregate.time).max();
                let takes = longest.unwrap_or(Duration::ZERO);
                // The others cannot decode what they receive.
                for radio in &mut self.radios {
                    radio.resumes = now + takes + EXTENDED;
                }
                for &(n, aggregate) in several {
                    let radio = &mut self.radios[n];
                    // It waits for an acknowledgement that does not come.
                    radio.resumes = now + aggregate.time + ACK_TIMEOUT;
                    radio.counted.collisions += 1;
                    radio.counted.sending += takes;
                    if radio.serves_stations {
                        sent.reports.push(aggregate.report(n, 0, takes));
                    }
                }
                State::Collided { until: now + takes }
            }
        };
    }

    fn arrive(
        &mut self,
        now: Instant,
        n: usize,
        aggregate: Aggregate,
        room: Duration,
        sent: &mut Sent,
    ) {
        let radio = &mut self.radios[n];
        let took = aggregate.exchange();
        sent.radio = n;
        let mut lost = Vec::new();
        let left = radio.take(aggregate, Outcome::Sent, took, &mut sent.arrived, &mut lost);
        sent.lost.extend(lost.into_iter().map(|pkt| (n, pkt)));
        for pkt in &sent.arrived {
            radio.below.record(now.since(pkt.stamp).as_nanos());
        }
        radio.counted.aggregates += 1;
        radio.counted.sent += sent.arrived.len() as u64;
        radio.counted.sending += took;
        for (other, radio) in self.radios.iter().enumerate() {
            if radio.serves_stations {
                let expected = if other == n { left.expected } else { 0 };
                sent.reports.push(aggregate.report(other, expected, took));
            }
        }
        let radio = &mut self.radios[n];
        if !left.acknowledged {
            radio.contenders[aggregate.class as usize].fail(&mut radio.rng);
            self.state = State::Idle(now);
            return;
        }
        // The opportunity goes on after SIFS, if another aggregate fits.
        if room > SIFS
            && let Some(next) =
                radio.next_aggregate(now, aggregate.class, Some(room.saturating_sub(SIFS)))
            && SIFS + next.exchange() <= room
        {
            let takes = SIFS + next.exchange();
            self.state = State::Sending {
                radio: n,
                aggregate: next,
                until: now + takes,
                room: room.saturating_sub(takes),
            };
            return;
        }
        radio.contenders[aggregate.class as usize].succeed(&mut radio.rng);
        self.state = State::Idle(now);
    }

    /// Radios that collided draw again, or give up.
    fn part(&mut self, now: Instant, sent: &mut Sent) {
        for &(n, aggregate) in &self.colliding {
            let radio = &mut self.radios[n];
            if radio.contenders[aggregate.class as usize].fail(&mut radio.rng) {
                give_up(radio, n, aggregate, aggregate.time, sent);
            }
        }
        self.state = State::Idle(now);
    }
}

impl Aggregate {
    fn report(&self, radio: usize, expected: u64, airtime: Duration) -> AirtimeReport {
        AirtimeReport {
            radio,
            station: self.station,
            class: self.class as usize,
            expected,
            airtime,
        }
    }
}

/// How long the first aggregate of an opportunity may take with its acknowledgement.
fn room(class: Class) -> Option<Duration> {
    let limit = class.limit();
    (limit > Duration::ZERO).then_some(limit)
}

/// An aggregate was tried as often as it may be, and took so much of the air: it is lost.
fn give_up(radio: &mut Radio, n: usize, aggregate: Aggregate, took: Duration, sent: &mut Sent) {
    let mut lost = Vec::new();
    let left = radio.take(
        aggregate,
        Outcome::GivenUp,
        took,
        &mut sent.arrived,
        &mut lost,
    );
    let expected = left.expected;
    if radio.serves_stations {
        // The collisions have been reported.
        sent.reports
            .push(aggregate.report(n, expected, Duration::ZERO));
    }
    sent.lost.extend(lost.into_iter().map(|pkt| (n, pkt)));
}

#[cfg(test)]
mod tests;
