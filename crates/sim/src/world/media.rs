//! Events of links that share a medium.

use sojourn_net::{Duration, Instant, Packet as View, Rng};
use sojourn_path::links::{Taken, Watcher};
use sojourn_qdisc::{Qdisc, Statistic};
use sojourn_records::LinkRecord;

use super::World;
use crate::agenda::Event;
use crate::medium::{AirtimeReport, Medium, Radio};
use crate::packet::Packet;
use crate::probe::Watch;

impl World<'_> {
    /// The media that links name; returns how many there are.
    pub(super) fn add_media(&mut self) -> usize {
        for radio in self.config.links.iter().filter_map(|l| l.radio.as_ref()) {
            if self.media.iter().all(|medium| medium.name != radio.medium) {
                self.media.push(Medium::new(&radio.medium));
            }
        }
        self.media.len()
    }

    /// Gives link `n` its radio, if it is wireless.
    pub(super) fn add_radio(&mut self, n: u32) {
        let config = &self.config.links[n as usize];
        let Some(radio) = &config.radio else {
            self.radios.push(None);
            return;
        };
        let rng = Rng::new(self.config.seed).fork("radio").fork(&config.name);
        let mut media = (0..).zip(&mut self.media);
        let medium = media.find(|(_, medium)| medium.name == radio.medium);
        let queue = self.links[n as usize].qdisc.as_mac80211();
        let place = medium.map(|(m, medium)| {
            let place = medium.add(n, config.rate, radio, rng);
            if let Some(queue) = queue {
                medium.radios[place].attach(queue);
            }
            (m, place)
        });
        self.radios.push(place);
    }

    /// The driver takes out of the queue what it has room for.
    pub(super) fn fill_driver(&mut self, id: u32) {
        let n = id as usize;
        let Some((m, radio)) = self.radios[n] else {
            return self.fill_ring(id);
        };
        if self.media[m as usize].radios[radio].serves_stations {
            self.fill_from_stations(id, m, radio);
        }
        while !self.media[m as usize].radios[radio].serves_stations
            && self.media[m as usize].radios[radio].has_room()
        {
            let mut watch = self.observed.watch(id);
            if self.links[n].paces_sockets {
                watch.senders = Some(&self.flows);
            }
            let Some(pkt) = self.links[n].dequeue(self.now, &mut watch) else {
                break;
            };
            let others = self.links[n].qdisc.backlog().packets > 0;
            let medium = &mut self.media[m as usize];
            hand_over(self.now, &mut watch, (medium, radio), (pkt, 0), others);
        }
        if self.links[n].packets_affect_timer {
            self.follow_queue_timer(id);
        }
        self.follow_medium(m);
    }

    /// The same for the ring of a link that is not wireless.
    fn fill_ring(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        let mut watch = self.observed.watch(id);
        if link.paces_sockets {
            watch.senders = Some(&self.flows);
        }
        if let Some(at) = link.fill_ring(self.now, &mut watch) {
            self.agenda.schedule(at, Event::Link(id));
        }
        if link.packets_affect_timer {
            self.follow_queue_timer(id);
        }
    }

    /// The driver takes packets from the stations that `mac80211` chooses, for each access category.
    #[inline(never)]
    fn fill_from_stations(&mut self, id: u32, m: u32, radio: usize) {
        let link = &mut self.links[id as usize];
        let medium = &mut self.media[m as usize];
        for class in (0..4).rev() {
            while medium.radios[radio].has_room_for(class) {
                let queue = link.qdisc.as_mac80211();
                let Some(txq) = queue.and_then(|queue| queue.next_txq(self.now, class)) else {
                    break;
                };
                let radios = &mut medium.radios;
                radios[radio].begin_turn(class, txq.station());
                while medium.radios[radio].goes_on(class) {
                    let mut watch = self.observed.watch(id);
                    let Some(pkt) = link.dequeue_from(self.now, txq, &mut watch) else {
                        break;
                    };
                    let others = link.qdisc.backlog().packets > 0;
                    let expected = link.qdisc.as_mac80211().map_or(0, |queue| {
                        let time = queue.expected_airtime(txq.station(), class, pkt.size());
                        u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
                    });
                    let place = (&mut *medium, radio);
                    hand_over(self.now, &mut watch, place, (pkt, expected), others);
                }
                medium.radios[radio].end_turn(class);
            }
        }
    }

    /// Tells the queues that serve stations of the airtime of what was sent.
    fn report_airtime(&mut self, m: u32, reports: &mut Vec<AirtimeReport>) {
        for report in reports.drain(..) {
            let link = self.media[m as usize].radios[report.radio].link;
            if let Some(queue) = self.links[link as usize].qdisc.as_mac80211() {
                queue.complete(report.station, report.class, report.expected);
                queue.charge(self.now, report.station, report.class, report.airtime);
            }
        }
        for radio in &mut self.media[m as usize].radios {
            for (station, rate, success) in radio.changed.drain(..) {
                let link = &mut self.links[radio.link as usize];
                if let Some(queue) = link.qdisc.as_mac80211() {
                    queue.set_rate(station, rate, success);
                }
            }
        }
    }

    /// Sees to it that an event is pending for what happens next on a medium.
    fn follow_medium(&mut self, m: u32) {
        let medium = &mut self.media[m as usize];
        let next = medium.next();
        if let Some(at) = next
            && next != medium.due
        {
            medium.due = next;
            self.agenda.schedule(at.max(self.now), Event::Medium(m));
        }
    }

    pub(super) fn on_medium(&mut self, m: u32) {
        let medium = &mut self.media[m as usize];
        medium.due = None;
        let mut sent = std::mem::take(&mut self.sent);
        medium.on_time(self.now, &mut sent);
        self.report_airtime(m, &mut sent.reports);
        let (n, delivered) = (sent.radio, !sent.arrived.is_empty());
        for pkt in sent.arrived.drain(..) {
            self.forward(&pkt);
        }
        for (radio, pkt) in sent.lost.drain(..) {
            let link = self.media[m as usize].radios[radio].link;
            self.observed.watch(link).on_lost(self.now, &pkt);
            self.fill_driver(link);
        }
        self.sent = sent;
        if delivered {
            let link = self.media[m as usize].radios[n].link;
            self.fill_driver(link);
        }
        self.follow_medium(m);
    }
}

/// A packet that left its queue goes to the driver; `expected` is its airtime by the estimate of AQL in µs, and `others`
/// whether more packets wait.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "once per packet; otherwise the compiler copies the packet to pass it"
)]
fn hand_over(
    now: Instant,
    watch: &mut Watch<'_, '_>,
    (medium, radio): (&mut Medium, usize),
    (pkt, expected): (Packet, u32),
    others: bool,
) {
    let busy = if others {
        medium.radios[radio].airtime(&pkt)
    } else {
        Duration::ZERO
    };
    let taken = Taken {
        waited: now.since(pkt.stamp),
        size: pkt.size(),
        busy,
    };
    watch.on_taken(now, &pkt, &taken);
    medium.push(radio, now, pkt, expected);
}

/// The radio of a link, the one at `place` if it is wireless.
fn radio_at(place: Option<(u32, usize)>, media: &[Medium]) -> Option<&Radio> {
    place.map(|(m, radio)| &media[m as usize].radios[radio])
}

/// What the radio of a link has counted, if the link is wireless.
pub(super) fn counters(place: Option<(u32, usize)>, media: &[Medium]) -> Option<[Statistic; 4]> {
    radio_at(place, media).map(|radio| {
        [
            Statistic::count("wifi_attempts", radio.counted.attempts),
            Statistic::count("wifi_collisions", radio.counted.collisions),
            Statistic::count("wifi_aggregates", radio.counted.aggregates),
            Statistic::count("wifi_packets", radio.counted.sent),
        ]
    })
}

/// What the radio of a link, the one at `place` if it is wireless, adds to its record.
pub(super) fn with_radio_counters(
    record: LinkRecord,
    place: Option<(u32, usize)>,
    media: &[Medium],
) -> LinkRecord {
    let Some(radio) = radio_at(place, media) else {
        return record;
    };
    let mut statistics = record.statistics;
    statistics.extend(counters(place, media).into_iter().flatten());
    if radio.has_channels {
        statistics.push(Statistic::count("wifi_errors", radio.counted.errors));
    }
    LinkRecord {
        sending: radio.counted.sending,
        driver: Some(Box::new(radio.below.clone())),
        statistics,
        ..record
    }
}
