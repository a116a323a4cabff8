//! A flow from its start to its record.

use std::num::NonZeroU16;

use sojourn_apps::{Bulk, DatagramConfig, DatagramKind, PingSample};
use sojourn_backend::kind_of;
use sojourn_net::{Bytes, Dscp, Duration, Instant, Packet as View, Rate, Rng};
use sojourn_records::{AppRecord, Datagrams as Counted, FlowKind, FlowRecord, FlowSample};
use sojourn_scenario::plan::{FlowConfig, Traffic};
use sojourn_transport::{SenderParams, quic as transport};

use super::ahead::{Ahead, Recorded};
use super::application::Application;
use super::bulk::{BulkFlow, BulkRecord};
use super::connection::Connection;
use super::quic::End;
use super::tcp::TcpConnection;
use super::{Hosts, Pending, User};
use crate::packet::{Kind, Owner, Packet, Template};

/// A flow. Before its start and after its end it takes a few dozen bytes, so that a million fit.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) forward: u16,
    pub(crate) reverse: u16,
    /// How far its receiver is ahead of the network: an index into `World::leads`.
    pub(crate) lead: u16,
    pub(crate) stopped: bool,
    /// Of all its packets, in both directions.
    pub(crate) class: Dscp,
    pub(crate) owner: Owner,
    /// The pending timer events.
    pub(crate) sender_event: Pending,
    pub(crate) receiver_event: Pending,
    pub(crate) source: Source,
}

/// What a flow is made of.
#[derive(Debug)]
pub(crate) enum Source {
    /// It has not started, or it is a slot without a connection.
    None,
    /// A bulk transfer, or in a slot a connection of an application.
    Connection(Connection),
    /// Datagrams without a connection.
    Datagrams(Box<Datagrams>),
    /// An application, whose connections are in slots.
    App(Box<Application>),
    /// A bulk transfer that has ended.
    Finished(Box<BulkRecord>),
}

/// A one-way TCP connection and the pending timer events of its flow.
pub(crate) struct OneWay<'a> {
    pub(crate) tcp: &'a mut TcpConnection,
    sender_event: &'a mut Pending,
    pub(crate) receiver_event: &'a mut Pending,
}

impl OneWay<'_> {
    /// When to schedule an event for the timer of the sender, if one is needed.
    #[inline]
    pub(crate) fn advance_sender(&mut self, now: Instant) -> Option<Instant> {
        let limit = self.sender_event.limit();
        let due = self.tcp.data.sender.next_timer_before(limit)?;
        self.sender_event.advance(due, now)
    }

    /// When to schedule an event for the timer of the receiver, if one is needed.
    #[inline]
    pub(crate) fn advance_receiver(&mut self, now: Instant) -> Option<Instant> {
        let due = self.tcp.next_data_timer()?;
        self.receiver_event.advance(due, now)
    }
}

impl Flow {
    /// Its connection: that of a bulk transfer, or of a slot.
    #[inline]
    pub(crate) const fn connection(&self) -> Option<&Connection> {
        match &self.source {
            Source::Connection(connection) => Some(connection),
            _ => None,
        }
    }

    #[inline]
    pub(crate) const fn connection_mut(&mut self) -> Option<&mut Connection> {
        match &mut self.source {
            Source::Connection(connection) => Some(connection),
            _ => None,
        }
    }

    /// The pacing rate of the end that sends packets of `kind`, if it is of TCP.
    pub(crate) fn pacing_rate(&self, kind: Kind) -> Option<Rate> {
        let bytes = self.connection()?.tcp()?.sender_of(kind)?.pacing_rate()?;
        Rate::from_bits_per_sec(bytes.get().saturating_mul(8))
    }

    /// Its connection if it is of TCP and its data flows one way: for the short path of such connections.
    #[inline]
    pub(crate) fn one_way(&mut self) -> Option<OneWay<'_>> {
        let Source::Connection(connection) = &mut self.source else {
            return None;
        };
        Some(OneWay {
            tcp: connection.one_way_mut()?,
            sender_event: &mut self.sender_event,
            receiver_event: &mut self.receiver_event,
        })
    }

    /// The fields that all packets of `kind` share that an endpoint of this flow sends at one instant.
    #[inline]
    pub(crate) const fn template(&self, kind: Kind) -> Template {
        let step = match kind {
            Kind::Data | Kind::RequestAck | Kind::QuicData => self.forward,
            _ => self.reverse,
        };
        Template {
            owner: self.owner,
            kind,
            step,
            class: self.class,
        }
    }

    /// A flow that has not started.
    pub(crate) const fn new(paths: (u16, u16), class: Dscp, owner: Owner) -> Self {
        Self {
            forward: paths.0,
            reverse: paths.1,
            lead: 0,
            stopped: false,
            class,
            owner,
            sender_event: Pending::NONE,
            receiver_event: Pending::NONE,
            source: Source::None,
        }
    }

    /// Gets its source. An application is to be notified, and the first datagram is due.
    ///
    /// `lead`: how far the receiver of TCP is ahead of the network; `recorded`: when the run records the flow.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        config: &FlowConfig,
        hosts: Hosts,
        lead: Duration,
        recorded: Recorded,
        rng: &Rng,
    ) {
        let seed = || rng.fork("congestion control").next_u64();
        match config.traffic {
            Traffic::Tcp { bytes, params } => {
                let seed = seed();
                let params = SenderParams { seed, ..params };
                let mut transfer = Bulk::new(bytes, None);
                if let Some(writer) = params.writer {
                    transfer = transfer.written_by(writer);
                }
                let flow = BulkFlow::new(now, FlowKind::Tcp, transfer);
                let user = User::Bulk(Box::new(flow));
                let stop = config.stop.map(|stop| Instant::ZERO + stop);
                let is_ahead = lead > Duration::ZERO;
                let ahead = is_ahead.then(|| Ahead::new(lead, now, stop, recorded));
                let connection = Connection::one_way_tcp(user, &params, hosts, ahead);
                self.source = Source::Connection(connection);
            }
            Traffic::Quic {
                bytes,
                request,
                params,
            } => {
                let seed = seed();
                let params = transport::Params { seed, ..params };
                let flow = BulkFlow::new(now, FlowKind::Quic, Bulk::new(bytes, request));
                let client = request.map_or(End::Near, |_| End::Far);
                let user = User::Bulk(Box::new(flow));
                let connection = Connection::quic(user, &params, client);
                self.source = Source::Connection(connection);
            }
            Traffic::App(ref app) => {
                let application = Application::new(now, self.owner.flow(), app, rng);
                self.source = Source::App(Box::new(application));
            }
            Traffic::Datagrams(ref config) => {
                let datagrams = Datagrams::new(now, &**config, rng);
                self.source = Source::Datagrams(Box::new(datagrams));
            }
            // `run` rejects programs.
            Traffic::Program(_) | Traffic::Bridged => {}
        }
    }

    /// The application of a flow of the configuration; `None`: it has none, or has ended.
    pub(crate) fn application(&mut self) -> Option<&mut dyn sojourn_apps::Application> {
        match &mut self.source {
            Source::App(application) => Some(&mut *application.app),
            Source::Connection(connection) => Some(&mut connection.bulk_mut()?.transfer),
            Source::None | Source::Datagrams(_) | Source::Finished(_) => None,
        }
    }

    /// Where the connection is that its application knows by this number. That of a bulk transfer
    /// is in the flow itself: a slot would cost it memory and instructions.
    pub(crate) fn slot(&self, number: u32) -> Option<u32> {
        match &self.source {
            Source::App(application) => application.slot(number),
            Source::Connection(_) => Some(self.owner.flow()),
            Source::None | Source::Datagrams(_) | Source::Finished(_) => None,
        }
    }

    /// The scenario stops the flow: its packets in flight are discarded on arrival.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.stopped = true;
        if let Some(connection) = self.connection_mut() {
            connection.stop();
        }
        self.release(now);
    }

    /// Frees the memory of a bulk transfer that has ended.
    #[inline]
    pub(crate) fn release(&mut self, now: Instant) {
        if let Some(connection) = self.connection()
            && connection.is_over()
        {
            self.release_ended(now);
        }
    }

    #[cold]
    fn release_ended(&mut self, now: Instant) {
        if let Some(connection) = self.connection_mut()
            && let Some(record) = connection.record(now)
        {
            self.stopped = true;
            self.source = Source::Finished(Box::new(record));
        }
    }

    /// An interval of the series ends.
    pub(crate) fn sample(&mut self, at: Instant) {
        match &mut self.source {
            Source::Connection(connection) => connection.sample(at),
            Source::Datagrams(datagrams) => datagrams.counted.sample(at),
            Source::App(application) => application.sample(at),
            Source::Finished(record) => record.sample(at),
            Source::None => {}
        }
    }

    /// The series so far.
    pub(crate) fn series(&self) -> &[FlowSample] {
        match &self.source {
            Source::Connection(connection) => connection.bulk().map_or(&[], BulkFlow::series),
            Source::Datagrams(datagrams) => datagrams.counted.series(),
            Source::App(application) => application.series(),
            Source::Finished(record) => record.series(),
            Source::None => &[],
        }
    }

    /// The echo requests so far.
    pub(crate) fn pings(&self) -> &[PingSample] {
        match &self.source {
            Source::Datagrams(datagrams) => datagrams.counted.pings(),
            _ => &[],
        }
    }

    /// The warm-up has ended.
    pub(crate) fn begin_measuring(&mut self) {
        match &mut self.source {
            Source::Connection(connection) => connection.begin_measuring(),
            Source::Datagrams(datagrams) => datagrams.counted.begin_measuring(),
            Source::App(application) => application.begin_measuring(),
            Source::Finished(record) => record.begin_measuring(),
            Source::None => {}
        }
    }

    /// The record of the connections of an application, or of a call.
    pub(crate) fn application_record(&self, end: Instant) -> Option<AppRecord> {
        match &self.source {
            Source::App(application) => Some(AppRecord {
                player: application.app.player(),
                responsiveness: application.app.responsiveness(),
                ..application.record
            }),
            Source::Datagrams(datagrams) => {
                let call = datagrams.counted.call(end);
                let media = datagrams.counted.media();
                (call.is_some() || media.is_some()).then(|| AppRecord {
                    flow: self.owner.flow(),
                    call,
                    media,
                    ..AppRecord::default()
                })
            }
            _ => None,
        }
    }

    /// The record of the flow.
    pub(crate) fn finish(self, now: Instant, config: &FlowConfig) -> FlowRecord {
        let blank = || FlowRecord::blank(kind_of(&config.traffic));
        let mut record = match self.source {
            Source::Connection(mut connection) => {
                let record = connection.record(now);
                record.map_or_else(blank, BulkRecord::finish)
            }
            Source::Datagrams(datagrams) => datagrams.counted.record(),
            Source::App(application) => application.record(),
            Source::Finished(record) => record.finish(),
            Source::None => blank(),
        };
        record.name.clone_from(&config.name);
        record
    }
}

/// A source of datagrams, its receiver, and what is recorded of them.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// Payload of its packets; `None`: ICMP.
    payload: Option<NonZeroU16>,
    pub(crate) counted: Counted,
}

impl Datagrams {
    pub(crate) fn new(now: Instant, config: &dyn DatagramConfig, rng: &Rng) -> Self {
        let counted = Counted::new(now, config, rng);
        Self {
            payload: counted.kind().payload().and_then(payload_field),
            counted,
        }
    }

    /// The packet to send now, if one may be sent, of a flow whose packets feedback or replies pace; and when the next
    /// one is due.
    pub(crate) fn next_paced(&mut self, owner: Owner, now: Instant) -> (Option<Packet>, Instant) {
        if !matches!(self.counted.kind(), DatagramKind::Media(_)) {
            let (pkt, due) = self.next(owner, now);
            return (Some(pkt), due);
        }
        let Some(outgoing) = self.counted.outgoing(now) else {
            let due = self.counted.paced_by_replies();
            return (None, due.unwrap_or(Instant::MAX));
        };
        let (number, due) = self.counted.send(now);
        let payload = payload_field(outgoing.payload);
        let mut pkt = Packet::of_probe(owner, Kind::Udp, now, number, payload);
        pkt.set_ecn(outgoing.ecn);
        (Some(pkt), due)
    }

    /// The packet to send now, and when the next one is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let (number, due) = self.counted.send(now);
        let kind = if self.counted.kind().is_echo() {
            Kind::Ping
        } else {
            Kind::Udp
        };
        let pkt = Packet::of_probe(owner, kind, now, number, self.payload);
        (pkt, due)
    }

    /// A packet arrived; returns the reply, if there is one.
    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) -> Option<Packet> {
        if pkt.kind() == Kind::Ping {
            return Some(*pkt);
        }
        let probe = pkt.probe();
        if let DatagramKind::Media(_) = self.counted.kind() {
            return self.on_media(now, pkt);
        }
        self.counted.on_arrival(probe.number, now.since(probe.sent));
        None
    }

    /// A packet of media arrived, or a report on such packets; returns the report that its receiver sends.
    fn on_media(&mut self, now: Instant, pkt: &Packet) -> Option<Packet> {
        let probe = pkt.probe();
        if pkt.kind() == Kind::Pong {
            self.counted.on_report(now, probe.number);
            return None;
        }
        let payload = probe.payload.map_or(0, |payload| u64::from(payload.get()));
        let packet = (probe.number, payload);
        let elapsed = now.since(probe.sent);
        let (number, payload) = self.counted.on_media(now, packet, elapsed, pkt.ecn())?;
        let report = Packet::of_probe(pkt.owner(), Kind::Pong, now, number, payload_field(payload));
        Some(report.in_class(pkt.dscp()))
    }
}

fn payload_field(payload: Bytes) -> Option<NonZeroU16> {
    NonZeroU16::new(u16::try_from(payload.0).unwrap_or(u16::MAX))
}
