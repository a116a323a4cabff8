//! Events of links that share a medium.

use sojourn_link::{Taken, Watcher};
use sojourn_net::{Duration, Packet as View, Rng};
use sojourn_qdisc::{Qdisc, Statistic};
use sojourn_records::LinkRecord;

use super::World;
use crate::agenda::Event;
use crate::medium::{Medium, Radio};

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
        let place = medium.map(|(m, medium)| (m, medium.add(n, config.rate, radio, rng)));
        self.radios.push(place);
    }

    /// The driver takes out of the queue what it has room for.
    pub(super) fn fill_driver(&mut self, id: u32) {
        let n = id as usize;
        let Some((m, radio)) = self.radios[n] else {
            return;
        };
        while self.media[m as usize].radios[radio].has_room() {
            let mut watch = self.observed.watch(id);
            if self.links[n].paces_sockets {
                watch.senders = Some(&self.flows);
            }
            let Some(pkt) = self.links[n].dequeue(self.now, &mut watch) else {
                break;
            };
            let others = self.links[n].qdisc.backlog().packets > 0;
            let medium = &mut self.media[m as usize];
            let busy = if others {
                medium.radios[radio].airtime(&pkt)
            } else {
                Duration::ZERO
            };
            let taken = Taken {
                waited: self.now.since(pkt.stamp),
                size: pkt.size(),
                busy,
            };
            watch.on_taken(self.now, &pkt, &taken);
            medium.push(radio, self.now, pkt);
        }
        if self.links[n].packets_affect_timer {
            self.follow_queue_timer(id);
        }
        self.follow_medium(m);
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
    LinkRecord {
        sending: radio.counted.sending,
        driver: Some(Box::new(radio.below.clone())),
        statistics,
        ..record
    }
}
