//! Flows: a source of traffic, its peer, and what is recorded of them.

use sojourn_net::{Duration, Ecn, Instant, Rng};
use sojourn_transport::{Receiver, Segment, Sender, SenderParams, State, Ticks};

use crate::config::{FlowConfig, Traffic};
use crate::histogram::Histogram;
use crate::packet::{Kind, Packet};
use crate::records::{FlowCounters, FlowKind, FlowRecord, FlowSample, PingSample};

/// A flow at work.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) forward: u16,
    pub(crate) reverse: u16,
    pub(crate) stopped: bool,
    /// What its pending timer events are for; [`Instant::MAX`]: none is pending.
    pub(crate) sender_due: Instant,
    pub(crate) receiver_due: Instant,
    started: Option<Instant>,
    pub(crate) source: Source,
}

/// What a flow is made of. What grows with the run is boxed, so that an idle flow stays small.
#[derive(Debug)]
pub(crate) enum Source {
    Tcp(Box<Tcp>),
    Udp(Box<Udp>),
    Ping(Box<Ping>),
}

#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    bytes: Option<u64>,
    connected: Option<Instant>,
    completed: Option<Instant>,
    /// Bytes delivered up to the last sample.
    sampled_bytes: u64,
    series: Vec<FlowSample>,
    before: FlowCounters,
}

#[derive(Debug)]
pub(crate) struct Udp {
    gap: Duration,
    payload: u16,
    spread: f64,
    rng: Rng,
    sent: u32,
    received: u64,
    sampled: u64,
    one_way_delay: Histogram,
    series: Vec<FlowSample>,
    before: FlowCounters,
}

#[derive(Debug)]
pub(crate) struct Ping {
    interval: Duration,
    requests: Vec<PingSample>,
}

impl Flow {
    /// The flow, and when it starts.
    pub(crate) fn new(
        config: &FlowConfig,
        ways: (u16, u16),
        hosts: (Ticks, Ticks),
        rng: &Rng,
    ) -> (Self, Instant) {
        let mut rng = rng.fork(&config.name);
        let jitter = scale(config.start_jitter, rng.uniform());
        let mut start = Instant::ZERO + config.start + jitter;
        let source = match config.traffic {
            Traffic::Tcp {
                cc,
                bytes,
                ecn,
                initial_window,
            } => {
                let params = SenderParams {
                    cc,
                    initial_window,
                    ecn,
                };
                Source::Tcp(Box::new(Tcp {
                    sender: Sender::new(&params, hosts.0),
                    receiver: Receiver::new(hosts.1, ecn),
                    bytes,
                    connected: None,
                    completed: None,
                    sampled_bytes: 0,
                    series: Vec::new(),
                    before: FlowCounters::default(),
                }))
            }
            Traffic::Udp {
                rate,
                payload,
                spread,
            } => Source::Udp(Box::new(Udp {
                gap: rate.serialise(payload),
                payload: u16::try_from(payload.0).unwrap_or(u16::MAX),
                spread,
                rng: rng.fork("spacing"),
                sent: 0,
                received: 0,
                sampled: 0,
                one_way_delay: Histogram::default(),
                series: Vec::new(),
                before: FlowCounters::default(),
            })),
            Traffic::Ping { interval } => {
                let first = scale(interval, rng.uniform());
                start += first;
                Source::Ping(Box::new(Ping {
                    interval,

                    requests: Vec::new(),
                }))
            }
        };
        let flow = Self {
            forward: ways.0,
            reverse: ways.1,
            stopped: false,
            sender_due: Instant::MAX,
            receiver_due: Instant::MAX,
            started: None,
            source,
        };
        (flow, start)
    }

    /// Begins; returns when the next packet is due, if the flow is paced by the clock.
    pub(crate) fn start(&mut self, now: Instant, out: &mut Vec<Segment>) -> Option<Instant> {
        self.started = Some(now);
        match &mut self.source {
            Source::Tcp(tcp) => {
                tcp.sender.write(now, tcp.bytes.unwrap_or(u64::MAX), out);
                if tcp.bytes.is_some() {
                    tcp.sender.close(now, out);
                }
                tcp.sender.connect(now, out);
                None
            }
            Source::Udp(_) | Source::Ping(_) => Some(now),
        }
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        if let Source::Tcp(tcp) = &mut self.source {
            tcp.sender.abort();
        }
    }

    /// The next datagram or request of a flow paced by the clock, and when one follows.
    pub(crate) fn next_probe(&mut self, id: u32, now: Instant) -> Option<(Packet, Instant)> {
        match &mut self.source {
            Source::Tcp(_) => None,
            Source::Udp(udp) => {
                let pkt = Packet::probe(id, Kind::Udp, now, udp.sent, udp.payload);
                udp.sent += 1;
                let factor = 1.0 + udp.spread * (2.0 * udp.rng.uniform() - 1.0);
                Some((pkt, now + scale(udp.gap, factor)))
            }
            Source::Ping(ping) => {
                let number = u32::try_from(ping.requests.len()).unwrap_or(u32::MAX);
                let pkt = Packet::probe(id, Kind::Ping, now, number, 0);
                ping.requests.push(PingSample {
                    sent: now,
                    rtt: None,
                });
                Some((pkt, now + ping.interval))
            }
        }
    }

    /// A packet reached the end of its way. TCP's answers go to `out`; a reply to a request is
    /// returned.
    pub(crate) fn deliver(
        &mut self,
        now: Instant,
        pkt: &Packet,
        out: &mut Vec<Segment>,
    ) -> Option<Packet> {
        match (&mut self.source, pkt.kind) {
            (Source::Tcp(tcp), Kind::Data) => {
                let ce = pkt.ecn == Ecn::Ce;
                tcp.receiver.on_segment(now, &pkt.segment, ce, out);
                if tcp.completed.is_none() && tcp.receiver.finished() {
                    tcp.completed = Some(now);
                }
            }
            (Source::Tcp(tcp), Kind::Ack) => {
                tcp.sender.on_segment(now, &pkt.segment, out);
                if tcp.connected.is_none() && tcp.sender.state() == State::Established {
                    tcp.connected = Some(now);
                }
            }
            (Source::Udp(udp), Kind::Udp) => {
                udp.received += 1;
                udp.one_way_delay.record(now.since(pkt.sent()).as_nanos());
            }
            (Source::Ping(_), Kind::Ping) => {
                let mut pong = *pkt;
                pong.kind = Kind::Pong;
                return Some(pong);
            }
            (Source::Ping(ping), Kind::Pong) => {
                let rtt = now.since(pkt.sent());
                if let Some(request) = ping.requests.get_mut(pkt.segment.seq as usize) {
                    request.rtt.get_or_insert(rtt);
                }
            }
            (_, kind) => debug_assert!(false, "a {kind:?} packet reached the wrong flow"),
        }
        None
    }

    pub(crate) fn sample(&mut self, at: Instant) {
        if self.started.is_none() {
            return;
        }
        match &mut self.source {
            Source::Tcp(tcp) => tcp.sample(at),
            Source::Udp(udp) => {
                let received = udp.received - udp.sampled;
                udp.sampled = udp.received;
                udp.series.push(FlowSample {
                    at,
                    delivered_bytes: received * u64::from(udp.payload),
                    cwnd: 0,
                    ssthresh: None,
                    srtt: None,
                    in_flight: 0,
                });
            }
            Source::Ping(_) => {}
        }
    }

    pub(crate) fn begin_measuring(&mut self) {
        let counters = self.counters();
        match &mut self.source {
            Source::Tcp(tcp) => tcp.before = counters,
            Source::Udp(udp) => {
                udp.before = counters;
                udp.one_way_delay = Histogram::default();
            }
            Source::Ping(_) => {}
        }
    }

    fn counters(&self) -> FlowCounters {
        match &self.source {
            Source::Tcp(tcp) => {
                let sender = tcp.sender.counters();
                FlowCounters {
                    delivered_bytes: tcp.receiver.delivered_bytes(),
                    sent_packets: sender.sent,
                    received_packets: tcp.receiver.received_segments(),
                    retransmits: sender.resent,
                    timeouts: u64::from(sender.timeouts),
                    syn_retransmits: u64::from(sender.syn_resent),
                }
            }
            Source::Udp(udp) => FlowCounters {
                delivered_bytes: udp.received * u64::from(udp.payload),
                sent_packets: u64::from(udp.sent),
                received_packets: udp.received,
                ..FlowCounters::default()
            },
            Source::Ping(ping) => FlowCounters {
                sent_packets: ping.requests.len() as u64,
                received_packets: ping.requests.iter().filter(|p| p.rtt.is_some()).count() as u64,
                ..FlowCounters::default()
            },
        }
    }

    pub(crate) fn finish(self, name: String) -> FlowRecord {
        let all = self.counters();
        let mut record = FlowRecord {
            name,
            kind: FlowKind::Ping,
            started: self.started,
            connected: None,
            completed: None,
            series: Vec::new(),
            totals: all,
            one_way_delay: Histogram::default(),
            pings: Vec::new(),
        };
        match self.source {
            Source::Tcp(tcp) => {
                record.kind = FlowKind::Tcp;
                record.connected = tcp.connected;
                record.completed = tcp.completed;
                record.series = tcp.series;
                record.totals = since(&all, &tcp.before);
            }
            Source::Udp(udp) => {
                record.kind = FlowKind::Udp;
                record.series = udp.series;
                record.totals = since(&all, &udp.before);
                record.one_way_delay = udp.one_way_delay;
            }
            Source::Ping(ping) => record.pings = ping.requests,
        }
        record
    }
}

impl Tcp {
    fn sample(&mut self, at: Instant) {
        let delivered = self.receiver.delivered_bytes();
        let finished = matches!(self.sender.state(), State::Done | State::Aborted);
        if finished && delivered == self.sampled_bytes {
            return;
        }
        self.series.push(FlowSample {
            at,
            delivered_bytes: delivered - self.sampled_bytes,
            cwnd: self.sender.cwnd(),
            ssthresh: self.sender.ssthresh(),
            srtt: self.sender.srtt(),
            in_flight: self.sender.in_flight(),
        });
        self.sampled_bytes = delivered;
    }
}

fn since(all: &FlowCounters, before: &FlowCounters) -> FlowCounters {
    FlowCounters {
        delivered_bytes: all.delivered_bytes - before.delivered_bytes,
        sent_packets: all.sent_packets - before.sent_packets,
        received_packets: all.received_packets - before.received_packets,
        retransmits: all.retransmits - before.retransmits,
        timeouts: all.timeouts - before.timeouts,
        syn_retransmits: all.syn_retransmits - before.syn_retransmits,
    }
}

/// `factor` of `d`, rounded down.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a factor of 0 to 2 of a duration below 104 days"
)]
fn scale(d: Duration, factor: f64) -> Duration {
    Duration::from_nanos((d.as_nanos() as f64 * factor) as u64)
}
