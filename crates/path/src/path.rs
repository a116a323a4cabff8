//! The façade: two directions of links and wires, driven by packets and time.

mod bottleneck_link;
mod builder;
mod capture;
mod event;
mod packet;
mod text;

use std::collections::VecDeque;
use std::{fmt, io, iter};

use sojourn_capture::Verdict as Captured;
use sojourn_net::{Bytes, Dscp, Duration, Ecn, FlowKey, Instant, Packet, Rate, Rng, Transport};
use sojourn_qdisc::{Backlog, DropReason, LinkFacts, MarkReason, Observer, Qdisc, Statistic};

use crate::config::WireChange;
use crate::ip::write_tos;
use crate::links::{Carried, Events, Line, Taken, Verdict, Watcher, count_drop, count_mark};
use crate::records::{Histogram, LinkCounters};
use bottleneck_link::{AnyLink, with_link};
use capture::{At, Capture};
use packet::{Handle, Queued, Store, Stored};

pub use builder::{Bottleneck, PathBuilder, PathError};
pub use event::{Event, EventKind};
pub use packet::{Headers, Layer, PacketId, flow_between, udp_flow};

/// A direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Of packets that [`Path::push`] offers.
    Forward,
    /// The opposite one.
    Reverse,
}

impl Direction {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];

    /// Its name: `forward` or `reverse`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A packet that has arrived.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Delivery<B = Vec<u8>> {
    /// The packet; a duplicate has the number of its original.
    pub id: PacketId,
    /// When it arrived: the time of the [`Path::poll`] that returns it, or before.
    pub at: Instant,
    /// Its direction.
    pub direction: Direction,
    /// Its bytes as they were offered. In those of [`Path::push_ip`], DSCP and ECN are the ones below.
    pub bytes: B,
    /// The ECN field on arrival.
    pub ecn: Ecn,
    /// The DSCP on arrival.
    pub dscp: Dscp,
    /// Its flow.
    pub flow: FlowKey,
    /// Its sojourn time: how long it waited in the queue.
    pub waited: Duration,
}

/// A packet that a [strict](PathBuilder::strict) path was not asked for when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatePoll {
    /// The packet.
    pub packet: PacketId,
    /// When it arrived.
    pub arrived: Instant,
    /// The time of the call.
    pub polled: Instant,
}

impl fmt::Display for LatePoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PacketId(packet) = self.packet;
        write!(
            f,
            "packet {packet} arrived at {} and was polled at {}; call poll at each deadline",
            self.arrived, self.polled
        )
    }
}

impl std::error::Error for LatePoll {}

/// Two directions of a path, each with a bottleneck and a wire.
///
/// `B` is the bytes of a packet, such as `Vec<u8>` or `bytes::Bytes`; they are returned as they came. The methods with
/// a time panic if it precedes the time of an earlier call, because every delay would be wrong.
///
/// ```
/// use sojourn_path::{Bottleneck, Direction, Duration, Ecn, EventKind, Instant, Path, Rate, udp_flow};
///
/// # fn main() -> Result<(), sojourn_path::PathError> {
/// // 1 Mbit/s and room for two packets.
/// let mut path = Path::builder()
///     .forward(Bottleneck::new(Rate::mbit(1), "pfifo limit 2")?.delay(Duration::from_millis(5)))
///     .events()
///     .build()?;
/// for _ in 0..4 {
///     path.push(Instant::ZERO, [0; 1_000], Ecn::NotEct, udp_flow(1));
/// }
/// // One is being sent, two wait, one was dropped.
/// assert_eq!(path.backlog(Direction::Forward).packets, 2);
/// let dropped = |kind| matches!(kind, EventKind::Dropped { .. });
/// assert_eq!(path.events().filter(|event| dropped(event.kind)).count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Path<B = Vec<u8>> {
    /// The time of the last event, or of the last call.
    now: Instant,
    /// The time of the last call.
    called: Instant,
    /// By direction.
    ways: [Way; 2],
    /// When each timer is due, in the order of [`Timer`] and of directions; [`Instant::MAX`]: never.
    due: [Instant; TIMERS],
    store: Store<B>,
    /// Packets so far.
    offered: u64,
    arrived: VecDeque<Delivery<B>>,
    /// Whether a packet that is returned late is an error.
    is_strict: bool,
    observed: Observed,
}

/// One direction.
#[derive(Debug)]
struct Way {
    /// The bottleneck, if there is one.
    link: Option<AnyLink>,
    line: Line<Handle>,
}

/// What happens next in a direction.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The link may send.
    Link,
    /// A packet arrives.
    Line,
    /// The timer of the queue expires.
    Queue,
}

impl Timer {
    const ALL: [Self; 3] = [Self::Link, Self::Line, Self::Queue];

    const fn place(self, direction: Direction) -> usize {
        self as usize * Direction::BOTH.len() + direction.index()
    }
}

const TIMERS: usize = Timer::ALL.len() * Direction::BOTH.len();

/// What is observed of a path.
#[derive(Debug)]
struct Observed {
    /// By direction.
    totals: [Totals; 2],
    events: Option<Vec<Event>>,
    capture: Option<Capture>,
}

#[derive(Debug, Default)]
struct Totals {
    counters: LinkCounters,
    sojourn: Histogram,
}

impl Path {
    /// Sets the parameters of a path.
    pub fn builder() -> PathBuilder {
        PathBuilder::default()
    }
}

impl<B: AsRef<[u8]> + Clone> Path<B> {
    fn new(mut builder: PathBuilder, bottlenecks: &[Bottleneck; 2]) -> Self {
        let capture = builder.capture.take();
        let capture = capture.map(|out| Capture::new(out, bottlenecks));
        let root = Rng::new(builder.seed);
        let ways = Direction::BOTH.map(|direction| {
            let Bottleneck { link, delay, line } = &bottlenecks[direction.index()];
            let rng = |what| root.fork(what).fork(direction.name());
            let link = link.as_ref().map(|(transmitter, queue)| {
                let facts = LinkFacts {
                    // The future capacity of a trace is unknown to the queue.
                    rate: (!transmitter.follows_trace()).then_some(transmitter.rate),
                    name: Some(direction.name().into()),
                    ..LinkFacts::default()
                };
                AnyLink::new(queue, (&facts, rng("link")), transmitter)
            });
            let number = u32::from(direction == Direction::Reverse);
            Way {
                link,
                line: Line::new(number, *delay, line, &rng("line")),
            }
        });
        let mut path = Self {
            now: Instant::ZERO,
            called: Instant::ZERO,
            ways,
            due: [Instant::MAX; TIMERS],
            store: Store::new(),
            offered: 0,
            arrived: VecDeque::new(),
            is_strict: builder.is_strict,
            observed: Observed {
                totals: Default::default(),
                events: builder.records_events.then(Vec::new),
                capture,
            },
        };
        for direction in Direction::BOTH {
            path.follow_queue_timer(direction);
        }
        path
    }

    /// Offers the payload of a UDP datagram to the forward direction at `now`, as QUIC stacks produce it. Over IPv4,
    /// its size is that of the payload and 42 bytes of headers. Returns its number in [events](Path::events).
    ///
    /// # Panics
    /// If `now` precedes the time of an earlier call.
    pub fn push(&mut self, now: Instant, bytes: B, ecn: Ecn, flow: FlowKey) -> PacketId {
        self.push_with(now, Direction::Forward, bytes, &Headers::udp(ecn, flow))
    }

    /// The same in the reverse direction.
    ///
    /// # Panics
    /// As [`Path::push`].
    pub fn push_reverse(&mut self, now: Instant, bytes: B, ecn: Ecn, flow: FlowKey) -> PacketId {
        self.push_with(now, Direction::Reverse, bytes, &Headers::udp(ecn, flow))
    }

    /// Offers a packet with these headers.
    ///
    /// # Panics
    /// As [`Path::push`].
    pub fn push_with(
        &mut self,
        now: Instant,
        direction: Direction,
        bytes: B,
        headers: &Headers,
    ) -> PacketId {
        self.offer(now, direction, bytes, *headers, None)
    }

    /// Offers an IP packet, whose headers are read. A mark is written into its bytes, and the checksum of IPv4 is
    /// updated.
    ///
    /// # Errors
    /// The bytes, if they are not a complete IPv4 or IPv6 packet.
    ///
    /// # Panics
    /// As [`Path::push`].
    pub fn push_ip(&mut self, now: Instant, direction: Direction, bytes: B) -> Result<PacketId, B>
    where
        B: AsMut<[u8]>,
    {
        match Headers::of_ip(bytes.as_ref()) {
            Some(headers) => {
                let write = |bytes: &mut B, tos| write_tos(bytes.as_mut(), tos);
                Ok(self.offer(now, direction, bytes, headers, Some(write)))
            }
            None => Err(bytes),
        }
    }

    fn offer(
        &mut self,
        now: Instant,
        direction: Direction,
        bytes: B,
        mut headers: Headers,
        write: Option<fn(&mut B, u8)>,
    ) -> PacketId {
        /// A long header of QUIC: the form and the fixed bit (RFC 9000 §17.2).
        const LONG: u8 = 0xC0;
        self.advance(now);
        let data = bytes.as_ref();
        if headers.layer == Layer::UdpPayload
            && headers.transport == Transport::Udp
            && data.first().is_some_and(|first| first & LONG == LONG)
        {
            headers.transport = Transport::QuicLong;
        }
        let size = headers.size(data.len());
        let id = PacketId(self.offered);
        self.offered += 1;
        let mut handle = Handle::new(now, 0, size, &headers);
        handle.slot = self.store.insert(Stored {
            bytes,
            id,
            layer: headers.layer,
            tos: handle.tos,
            write,
            waited: Duration::ZERO,
            mark: None,
            queue: None,
            copies: 1,
        });
        self.note_offered(direction, &handle, headers.transport);
        self.enter(direction, &handle, headers.transport);
        id
    }

    /// A packet enters the queue, or the wire if there is no bottleneck.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once per packet")]
    fn enter(&mut self, direction: Direction, handle: &Handle, transport: Transport) {
        let (link, mut watch) = self.parts(direction);
        let Some(link) = link else {
            return self.leave(direction, handle);
        };
        let (follows, awaited, has_ring) = with_link!(link, link => {
            link.enqueue(watch.now, Queued::new(*handle, transport), &mut watch);
            (link.packets_affect_timer, link.awaited, link.has_ring())
        });
        if has_ring {
            self.fill_ring(direction);
        } else if !awaited {
            return self.run_link(direction);
        }
        if follows {
            self.follow_queue_timer(direction);
        }
    }

    /// The next packet that has arrived by `now`. Call it until it returns `None`.
    ///
    /// # Panics
    /// As [`Path::push`], and with [`PathBuilder::strict`] if the packet arrived before `now`.
    pub fn poll(&mut self, now: Instant) -> Option<Delivery<B>> {
        self.try_poll(now).unwrap_or_else(|late| panic!("{late}"))
    }

    /// [`Path::poll`] whose refusal of a late call is a value.
    ///
    /// # Errors
    /// With [`PathBuilder::strict`], if the packet arrived before `now`. The packet is not returned again.
    ///
    /// # Panics
    /// As [`Path::push`].
    pub fn try_poll(&mut self, now: Instant) -> Result<Option<Delivery<B>>, LatePoll> {
        self.note_call(now);
        let first = self.arrived.pop_front();
        let Some(delivery) = first.or_else(|| self.next_arrival(now)) else {
            return Ok(None);
        };
        if self.is_strict && delivery.at != now {
            return Err(LatePoll {
                packet: delivery.id,
                arrived: delivery.at,
                polled: now,
            });
        }
        Ok(Some(delivery))
    }

    /// The time of the last call, before which no call may be; time zero at the beginning.
    pub const fn last_call(&self) -> Instant {
        self.called
    }

    /// When to call [`Path::poll`] next: the time of the next event in either direction, timers of queues included; if
    /// a packet has arrived and was not polled yet, the time of the last call. It never precedes an earlier call.
    ///
    /// `None` while no packet is inside the path, so that a test may end. Timers of empty queues that pass meanwhile
    /// are processed, in order, before the next packet.
    pub fn deadline(&self) -> Option<Instant> {
        if !self.arrived.is_empty() {
            return Some(self.called);
        }
        (!self.store.is_empty()).then(|| self.next().max(self.called))
    }

    /// When the first timer is due.
    #[inline]
    fn next(&self) -> Instant {
        let [sent, arrived, timed] = [0, 2, 4].map(|n| self.due[n].min(self.due[n + 1]));
        sent.min(arrived).min(timed)
    }

    #[inline]
    fn note_call(&mut self, now: Instant) {
        assert!(
            now >= self.called,
            "time {now} precedes that of an earlier call, {}",
            self.called
        );
        self.called = now;
    }

    /// Processes all events up to and including `now`, each at its own time.
    #[inline]
    fn advance(&mut self, now: Instant) {
        self.note_call(now);
        while let Some(delivery) = self.next_arrival(now) {
            self.arrived.push_back(delivery);
        }
    }

    /// Processes events up to and including `now` until a packet arrives.
    #[inline]
    fn next_arrival(&mut self, now: Instant) -> Option<Delivery<B>> {
        loop {
            let due = self.next();
            if due > now {
                self.now = now;
                return None;
            }
            let first = self.due.iter().position(|&other| other == due);
            let place = first.expect("the first timer is one of them");
            self.now = due;
            self.due[place] = Instant::MAX;
            let direction = Direction::BOTH[place % Direction::BOTH.len()];
            match Timer::ALL[place / Direction::BOTH.len()] {
                Timer::Link => self.run_link(direction),
                Timer::Line => {
                    if let Some(delivery) = self.arrive(direction) {
                        return Some(delivery);
                    }
                }
                Timer::Queue => self.on_queue_timer(direction),
            }
        }
    }

    fn set(&mut self, timer: Timer, direction: Direction, at: Option<Instant>) {
        self.due[timer.place(direction)] = at.unwrap_or(Instant::MAX);
    }

    /// The bottleneck of a direction, and what observes it.
    #[inline]
    fn parts(&mut self, direction: Direction) -> (Option<&mut AnyLink>, Watch<'_, B>) {
        let watch = Watch {
            now: self.now,
            direction,
            store: &mut self.store,
            observed: &mut self.observed,
        };
        (self.ways[direction.index()].link.as_mut(), watch)
    }

    /// Sends what the link may send now.
    #[inline]
    fn run_link(&mut self, direction: Direction) {
        loop {
            let (Some(link), mut watch) = self.parts(direction) else {
                return;
            };
            let (again, follows) = with_link!(link, link => {
                let mut left = None;
                let again = link.turn(watch.now, &mut watch, &mut left);
                link.awaited = again.is_some();
                let follows = link.packets_affect_timer;
                if let Some(packet) = &left {
                    self.leave(direction, Queued::handle(packet));
                }
                (again, follows)
            });
            // A bucket with remaining credit sends at once.
            if again.is_none_or(|at| at > self.now) {
                self.set(Timer::Link, direction, again);
                if follows {
                    self.follow_queue_timer(direction);
                }
                return;
            }
        }
    }

    /// The ring of a device takes the packets that it has room for.
    fn fill_ring(&mut self, direction: Direction) {
        let (Some(link), mut watch) = self.parts(direction) else {
            return;
        };
        if let Some(at) = with_link!(link, link => link.fill_ring(watch.now, &mut watch)) {
            self.set(Timer::Link, direction, Some(at));
        }
    }

    /// Puts a packet on the wire.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per packet; otherwise the handle is copied once more"
    )]
    fn leave(&mut self, direction: Direction, handle: &Handle) {
        let line = &mut self.ways[direction.index()].line;
        match line.push(self.now, *handle) {
            Verdict::Lost => self.lose(direction, handle),
            Verdict::Arrives(copies) => {
                let next = line.next();
                if copies != 1 {
                    self.store.get(handle.slot).copies = copies;
                    let duplicates = u64::from(copies - 1);
                    let totals = &mut self.observed.totals[direction.index()];
                    totals.counters.duplicated_packets += duplicates;
                }
                self.set(Timer::Line, direction, next);
            }
        }
    }

    #[cold]
    fn lose(&mut self, direction: Direction, handle: &Handle) {
        let stored = self.store.remove(handle.slot);
        let (now, observed) = (self.now, &mut self.observed);
        observed.totals[direction.index()].counters.lost_packets += 1;
        observed.note(now, direction, handle, stored.id, EventKind::Lost);
        let at = (direction, At::Gone);
        observed.write(now, at, handle, &stored, Captured::Lost);
    }

    /// The first packet on the wire arrives.
    #[inline]
    fn arrive(&mut self, direction: Direction) -> Option<Delivery<B>> {
        let line = &mut self.ways[direction.index()].line;
        let handle = line.pop()?;
        let next = line.next();
        self.set(Timer::Line, direction, next);
        let stored = self.store.get(handle.slot);
        let (id, tos, waited, write) = (stored.id, stored.tos, stored.waited, stored.write);
        let mut bytes = if stored.copies > 1 {
            stored.copies -= 1;
            stored.bytes.clone()
        } else {
            self.store.remove(handle.slot).bytes
        };
        if let Some(write) = write.filter(|_| tos != handle.tos) {
            write(&mut bytes, handle.tos);
        }
        let (at, observed) = (self.now, &mut self.observed);
        observed.note(at, direction, &handle, id, EventKind::Arrived);
        Some(Delivery {
            id,
            at,
            direction,
            bytes,
            ecn: handle.ecn(),
            dscp: handle.dscp(),
            flow: handle.flow(),
            waited,
        })
    }

    fn on_queue_timer(&mut self, direction: Direction) {
        let now = self.now;
        let Some(link) = &mut self.ways[direction.index()].link else {
            return;
        };
        let (has_ring, holds_packets) = with_link!(link, link => {
            if link.qdisc.next_timer().is_some_and(|due| due <= now) {
                link.qdisc.on_timer(now);
            }
            let waits = link.qdisc.backlog().packets > 0;
            (link.has_ring(), !link.awaited && waits)
        });
        // Packets that the queue held back.
        if has_ring {
            self.fill_ring(direction);
        } else if holds_packets {
            self.run_link(direction);
        }
        self.follow_queue_timer(direction);
    }

    /// Sets the timer of a queue.
    fn follow_queue_timer(&mut self, direction: Direction) {
        if let Some(link) = &self.ways[direction.index()].link {
            let due = with_link!(link, link => link.qdisc.next_timer());
            let due = due.map(|due| due.max(self.now));
            self.set(Timer::Queue, direction, due);
        }
    }

    fn note_offered(&mut self, direction: Direction, handle: &Handle, transport: Transport) {
        if self.observed.events.is_none() && self.observed.capture.is_none() {
            return;
        }
        let link = self.ways[direction.index()].link.as_ref();
        let stored = self.store.get(handle.slot);
        stored.queue = link.and_then(|link| match link {
            AnyLink::Brief(link) => link.qdisc.queue_of(handle),
            AnyLink::Full(link) => link.qdisc.queue_of(&Queued::new(*handle, transport)),
        });
        let (now, observed) = (self.now, &mut self.observed);
        observed.note(now, direction, handle, stored.id, EventKind::Offered);
        let at = (direction, At::Offered);
        observed.write(now, at, handle, stored, Captured::Passed);
    }

    /// Removes and returns the events so far, in their order; none unless [`PathBuilder::events`] was called. Events
    /// that are not taken stay in memory.
    pub fn events(&mut self) -> impl Iterator<Item = Event> {
        let events = self.observed.events.as_mut();
        let mut events = events.map(|events| events.drain(..));
        iter::from_fn(move || events.as_mut()?.next())
    }

    /// What waits in the queue of a direction, without the packet in transmission.
    pub fn backlog(&self, direction: Direction) -> Backlog {
        let link = self.ways[direction.index()].link.as_ref();
        link.map_or_else(
            Backlog::default,
            |link| with_link!(link, link => link.qdisc.backlog()),
        )
    }

    /// Packets that a direction sent, dropped by reason, marked by reason and lost so far. With no bottleneck, only
    /// losses and duplicates are counted.
    pub const fn counters(&self, direction: Direction) -> &LinkCounters {
        &self.observed.totals[direction.index()].counters
    }

    /// Sojourn times in the queue of a direction, in ns, of the packets that departed so far.
    pub const fn sojourn(&self, direction: Direction) -> &Histogram {
        &self.observed.totals[direction.index()].sojourn
    }

    /// Statistics of the queue of a direction, with the names of `tc -s`, such as the drop probability of `pie`.
    pub fn statistics(&self, direction: Direction) -> Vec<Statistic> {
        let link = self.ways[direction.index()].link.as_ref();
        link.map_or_else(
            Vec::new,
            |link| with_link!(link, link => link.qdisc.statistics()),
        )
    }

    /// From `now` on, the bottleneck of a direction sends at `rate`; the packet in transmission completes at the old
    /// rate. Parameters that the queue derived from the old rate stay, as in Linux. Without effect if there is no
    /// bottleneck, or if it follows a trace.
    ///
    /// # Panics
    /// As [`Path::push`].
    pub fn set_rate(&mut self, now: Instant, direction: Direction, rate: Rate) {
        self.advance(now);
        let Some(link) = &mut self.ways[direction.index()].link else {
            return;
        };
        if let Some(at) = with_link!(link, link => link.change_rate(now, rate)) {
            self.set(Timer::Link, direction, Some(at.max(now)));
        }
        self.follow_queue_timer(direction);
    }

    /// From `now` on, packets that enter the wire of a direction meet this delay, loss, duplication or jitter.
    ///
    /// # Errors
    /// If a value is out of its range.
    ///
    /// # Panics
    /// As [`Path::push`].
    pub fn set_wire(
        &mut self,
        now: Instant,
        direction: Direction,
        change: &WireChange,
    ) -> Result<(), PathError> {
        if let Some((key, rule)) = change.fault() {
            let place = format!("{direction}.{key}");
            return Err(PathError { place, rule });
        }
        self.advance(now);
        let line = &mut self.ways[direction.index()].line;
        line.change(change);
        let next = line.next();
        self.set(Timer::Line, direction, next);
        Ok(())
    }

    /// Ends the capture with statistics of each point. Later packets are not captured.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        let capture = self.observed.capture.take();
        capture.map_or(Ok(()), Capture::finish)
    }
}

impl Observed {
    #[inline]
    fn note(
        &mut self,
        at: Instant,
        direction: Direction,
        handle: &Handle,
        packet: PacketId,
        kind: EventKind,
    ) {
        if let Some(events) = &mut self.events {
            events.push(Event {
                at,
                direction,
                packet,
                flow: handle.flow(),
                size: handle.size(),
                kind,
            });
        }
    }

    #[inline]
    fn write<B: AsRef<[u8]>>(
        &mut self,
        now: Instant,
        at: (Direction, At),
        handle: &Handle,
        stored: &Stored<B>,
        verdict: Captured,
    ) {
        if let Some(capture) = &mut self.capture {
            capture.write(now, at, handle, stored, verdict);
        }
    }
}

/// Observes the bottleneck of a direction.
struct Watch<'a, B> {
    now: Instant,
    direction: Direction,
    store: &'a mut Store<B>,
    observed: &'a mut Observed,
}

impl<B: AsRef<[u8]>, P: Queued> Observer<P> for Watch<'_, B> {
    fn on_drop(&mut self, now: Instant, pkt: P, reason: DropReason) {
        let handle = *pkt.handle();
        let (direction, observed) = (self.direction, &mut *self.observed);
        count_drop(&mut observed.totals[direction.index()].counters, reason);
        let stored = self.store.remove(handle.slot);
        let waited = now.saturating_since(handle.stamp());
        let kind = EventKind::Dropped { reason, waited };
        observed.note(now, direction, &handle, stored.id, kind);
        let at = (direction, At::Gone);
        observed.write(now, at, &handle, &stored, Captured::Dropped(reason));
    }

    fn on_mark(&mut self, now: Instant, pkt: &P, reason: MarkReason) {
        let handle = pkt.handle();
        let (direction, observed) = (self.direction, &mut *self.observed);
        count_mark(&mut observed.totals[direction.index()].counters, reason);
        let stored = self.store.get(handle.slot);
        stored.mark = Some(reason);
        let waited = now.saturating_since(handle.stamp());
        let kind = EventKind::Marked { reason, waited };
        observed.note(now, direction, handle, stored.id, kind);
    }
}

impl<B: AsRef<[u8]>, P: Queued> Watcher<P> for Watch<'_, B> {
    #[inline]
    fn on_taken(&mut self, now: Instant, pkt: &P, taken: &Taken) {
        let handle = pkt.handle();
        let (direction, observed) = (self.direction, &mut *self.observed);
        let totals = &mut observed.totals[direction.index()];
        let (waited, Bytes(size)) = (taken.waited, taken.size);
        totals.counters.sent_packets += 1;
        totals.counters.sent_bytes += size;
        totals.sojourn.record(waited.as_nanos());
        let stored = self.store.get(handle.slot);
        stored.waited = waited;
        let (id, mark) = (stored.id, stored.mark);
        observed.note(now, direction, handle, id, EventKind::Departed { waited });
        let verdict = mark.map_or(Captured::Passed, Captured::Marked);
        observed.write(now, (direction, At::Taken), handle, stored, verdict);
    }

    fn on_held(&mut self, _time: Duration) {}

    fn events(&mut self) -> Option<&mut Events> {
        None
    }
}
