//! An external queue and the packets that it holds.

use std::any::Any;
use std::fmt;
use std::num::NonZero;
use std::panic::resume_unwind;

use sojourn_net::{Bytes, Dscp, Ecn, FlowKey, Instant, Packet, Rate, Transport};

use crate::contract::{Backlog, ClassId, DropReason, MarkReason, Observer, Peek, Qdisc, Statistic};

/// A queue of tickets, as [`Qdisc`] is one of packets.
pub trait TicketQueue: fmt::Debug + Send {
    /// As [`Qdisc::enqueue`]. `headers` is what [`Packet::transport`] says, if [`TicketQueue::reads_headers`].
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: &Ticket,
        headers: Option<&Transport>,
        obs: &mut dyn Observer<Ticket>,
    );

    /// As [`Qdisc::dequeue`].
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Leaving>;

    /// A copy with the same state.
    fn boxed_clone(&self) -> Box<dyn TicketQueue>;

    /// Whether it needs more of a packet than its ticket has. The answer never changes.
    fn reads_headers(&self) -> bool {
        false
    }

    /// Whether [`TicketQueue::next_timer`] may ever return a time. The answer never changes.
    fn is_timed(&self) -> bool {
        false
    }

    /// As [`Qdisc::peek`].
    fn peek(&self) -> Peek {
        Peek::Dequeues
    }

    /// As [`Qdisc::next_timer`].
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// As [`Qdisc::on_timer`].
    fn on_timer(&mut self, _now: Instant) {}

    /// As [`Qdisc::on_link_rate`].
    fn on_link_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// As [`Qdisc::statistics`].
    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }

    /// As [`Qdisc::state`].
    fn state(&self, _now: Instant) -> Vec<Statistic> {
        Vec::new()
    }

    /// As [`Qdisc::classes`].
    fn classes(&self) -> Vec<ClassId> {
        Vec::new()
    }
}

/// An external queue and the packets that wait in it.
#[derive(Debug)]
pub struct External<P> {
    queue: Box<dyn TicketQueue>,
    held: Held<P>,
    reads_headers: bool,
    is_timed: bool,
}

impl<P> External<P> {
    /// `queue`, which is empty, for packets.
    pub(super) fn new(queue: Box<dyn TicketQueue>) -> Self {
        Self {
            reads_headers: queue.reads_headers(),
            is_timed: queue.is_timed(),
            queue,
            held: Held {
                packets: Vec::new(),
                free: Vec::new(),
                bytes: Bytes(0),
            },
        }
    }
}

impl<P: Packet> External<P> {
    #[inline]
    fn offer(
        &mut self,
        now: Instant,
        pkt: P,
        headers: Option<&Transport>,
        obs: &mut dyn Observer<P>,
    ) {
        let ticket = self.held.keep(pkt);
        let mut relay = Relay {
            held: &mut self.held,
            obs,
        };
        self.queue.enqueue(now, &ticket, headers, &mut relay);
    }
}

impl<P: Clone> Clone for External<P> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.boxed_clone(),
            held: self.held.clone(),
            ..*self
        }
    }
}

impl<P: Packet> Qdisc<P> for External<P> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.reads_headers {
            let headers = pkt.transport();
            self.offer(now, pkt, Some(&headers), obs);
        } else {
            self.offer(now, pkt, None, obs);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let mut relay = Relay {
            held: &mut self.held,
            obs,
        };
        let leaving = self.queue.dequeue(now, &mut relay)?;
        Some(self.held.redeem(leaving))
    }

    fn peek(&self) -> Peek {
        self.queue.peek()
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.held.packets.len() - self.held.free.len(),
            bytes: self.held.bytes,
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        if self.is_timed {
            self.queue.next_timer()
        } else {
            None
        }
    }

    fn on_timer(&mut self, now: Instant) {
        self.queue.on_timer(now);
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.queue.on_link_rate(now, rate);
    }

    fn statistics(&self) -> Vec<Statistic> {
        self.queue.statistics()
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        self.queue.state(now)
    }

    fn classes(&self) -> Vec<ClassId> {
        self.queue.classes()
    }
}

/// The packets that wait in a queue of their tickets.
#[derive(Clone, Debug)]
struct Held<P> {
    packets: Vec<Option<P>>,
    /// The places without a packet.
    free: Vec<u32>,
    bytes: Bytes,
}

impl<P: Packet> Held<P> {
    /// Keeps a packet and returns its ticket.
    #[inline]
    fn keep(&mut self, pkt: P) -> Ticket {
        let id = self.free.pop().unwrap_or_else(|| self.grow());
        // Moved whole and read where it lies.
        let kept = self.packets[id as usize].insert(pkt);
        let ticket = Ticket::of(id, kept);
        self.bytes += ticket.size();
        ticket
    }

    /// Adds a place and returns its number.
    #[cold]
    fn grow(&mut self) -> u32 {
        let id = u32::try_from(self.packets.len());
        self.packets.push(None);
        id.unwrap_or_else(|_| fail("the queue holds more than 2^32 packets"))
    }

    /// The packet that leaves.
    #[inline]
    fn redeem(&mut self, leaving: Leaving) -> P {
        let id = leaving.id();
        let slot = self.packets.get_mut(id as usize);
        // Changed where it lies, so that it moves once.
        if let Some(slot) = slot
            && let Some(pkt) = slot
        {
            self.free.push(id);
            self.bytes -= pkt.size();
            if pkt.ecn() != leaving.ecn() {
                pkt.set_ecn(leaving.ecn());
            }
            if pkt.dscp() != leaving.dscp() {
                pkt.set_dscp(leaving.dscp());
            }
            if let Some(pkt) = slot.take() {
                return pkt;
            }
        }
        fail("the queue returned or dropped a packet that it does not hold");
    }
}

/// Passes drops and marks of tickets on as drops and marks of packets.
struct Relay<'a, P> {
    held: &'a mut Held<P>,
    obs: &'a mut dyn Observer<P>,
}

impl<P: Packet> Observer<Ticket> for Relay<'_, P> {
    fn on_class(&mut self, class: ClassId) {
        self.obs.on_class(class);
    }

    fn on_decision(&mut self, numbers: &dyn Fn() -> Vec<Statistic>) {
        self.obs.on_decision(numbers);
    }

    fn on_drop(&mut self, now: Instant, ticket: Ticket, reason: DropReason) {
        let pkt = self.held.redeem(ticket.leaving());
        self.obs.on_drop(now, pkt, reason);
    }

    fn on_mark(&mut self, now: Instant, ticket: &Ticket, reason: MarkReason) {
        let held = self.held.packets.get_mut(ticket.id() as usize);
        let Some(pkt) = held.and_then(Option::as_mut) else {
            fail("the queue marked a packet that it does not hold");
        };
        pkt.set_ecn(ticket.ecn());
        self.obs.on_mark(now, pkt, reason);
    }
}

/// The payload of the panic with which an external queue ends its run.
pub struct QueueFailure {
    /// The cause: a `String`, or a type that whoever started the run knows.
    pub cause: Box<dyn Any + Send>,
    /// The run that it ended, such as `arm "codel", replication 0`, once that is known.
    pub run: Option<String>,
}

impl fmt::Debug for QueueFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueFailure")
            .field("cause", &self.cause.downcast_ref::<String>())
            .field("run", &self.run)
            .finish()
    }
}

/// Ends the run from inside a queue.
///
/// Unwinds with a [`QueueFailure`], without the message that a panic prints. Whoever started the
/// run catches it and reports the cause.
pub fn fail(cause: impl Into<FailureCause>) -> ! {
    resume_unwind(Box::new(QueueFailure {
        cause: cause.into().0,
        run: None,
    }))
}

/// Why a queue cannot go on, of any type.
pub struct FailureCause(Box<dyn Any + Send>);

impl fmt::Debug for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailureCause")
    }
}

impl FailureCause {
    /// A cause of a type that whoever started the run knows.
    pub fn new(cause: impl Any + Send) -> Self {
        Self(Box::new(cause))
    }
}

impl From<String> for FailureCause {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for FailureCause {
    fn from(message: &str) -> Self {
        Self::new(message.to_owned())
    }
}

/// The fields of a packet that an external queue may read.
///
/// It reads sizes and headers from the ticket, marks it with [`Packet::mark_ce`] and hands the
/// same ticket back, to the observer or as the next packet to send.
///
/// The layout is part of the binary interface of plug-ins: `struct sojourn_packet` of `include/sojourn_queue.h`. The
/// smaller fields are written as whole words, because a processor waits when it reads a word of which the parts were
/// just written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ticket {
    source: u64,
    destination: u64,
    /// Size and ports.
    lengths: Pair,
    /// The place of the packet in [`External`](super::External), and [`Marks`].
    place: Pair,
}

/// Two numbers, the first at the lower address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
struct Pair(u64);

impl Pair {
    const SHIFTS: [u32; 2] = if cfg!(target_endian = "little") {
        [0, 32]
    } else {
        [32, 0]
    };

    #[inline]
    const fn new(first: u32, second: u32) -> Self {
        Self((first as u64) << Self::SHIFTS[0] | (second as u64) << Self::SHIFTS[1])
    }

    #[expect(clippy::cast_possible_truncation, reason = "the other one is cut off")]
    #[inline]
    const fn first(self) -> u32 {
        (self.0 >> Self::SHIFTS[0]) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the other one is cut off")]
    #[inline]
    const fn second(self) -> u32 {
        (self.0 >> Self::SHIFTS[1]) as u32
    }
}

/// Protocol; the two bits of the ECN field; the number of a [`Dscp`], of which those above 63 mean 0; not 0 for the
/// traffic of the box.
type Marks = [u8; 4];

impl Ticket {
    /// The number of the packet among those that wait in the same queue.
    #[inline]
    pub const fn id(&self) -> u32 {
        self.place.first()
    }

    #[inline]
    const fn marks(&self) -> Marks {
        self.place.second().to_ne_bytes()
    }

    #[inline]
    const fn set_marks(&mut self, marks: Marks) {
        self.place = Pair::new(self.id(), u32::from_ne_bytes(marks));
    }

    /// The packet as it leaves the queue.
    #[inline]
    pub fn leaving(&self) -> Leaving {
        let [_, ecn, dscp, _] = self.marks();
        let word = u64::from(self.id()) | u64::from(ecn) << 32 | u64::from(dscp) << 40;
        Leaving(Leaving::SET | word)
    }

    #[inline]
    fn of<P: Packet>(id: u32, pkt: &P) -> Self {
        let flow = pkt.flow();
        let marks = [
            flow.protocol,
            pkt.ecn().bits(),
            pkt.dscp().number(),
            u8::from(pkt.is_control()),
        ];
        // There are no longer packets.
        let size = u32::try_from(pkt.size().0).unwrap_or(u32::MAX);
        Self {
            source: flow.source,
            destination: flow.destination,
            lengths: Pair::new(size, flow.ports),
            place: Pair::new(id, u32::from_ne_bytes(marks)),
        }
    }
}

/// A packet that leaves an external queue, with the ECN field and class that the queue gave it: one word, from the
/// lowest byte up the id, the ECN field, the DSCP, and a bit that is always set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving(NonZero<u64>);

impl Leaving {
    const SET: NonZero<u64> = match NonZero::new(1 << 63) {
        Some(set) => set,
        None => NonZero::<u64>::MIN,
    };

    /// The packet of a word that [`Leaving::word`] returned, perhaps in a plug-in; `None` for 0.
    #[inline]
    pub fn read(word: u64) -> Option<Self> {
        NonZero::new(word).map(Self)
    }

    /// The word.
    #[inline]
    pub const fn word(self) -> u64 {
        self.0.get()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the id is in the lower half"
    )]
    const fn id(self) -> u32 {
        self.word() as u32
    }

    const fn ecn(self) -> Ecn {
        let [_, _, _, _, ecn, ..] = self.word().to_le_bytes();
        Ecn::from_bits(ecn)
    }

    fn dscp(self) -> Dscp {
        let [_, _, _, _, _, dscp, ..] = self.word().to_le_bytes();
        Dscp::new(dscp).unwrap_or_default()
    }
}

impl Packet for Ticket {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes(self.lengths.first().into())
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.marks()[1])
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        let [protocol, _, dscp, control] = self.marks();
        self.set_marks([protocol, ecn.bits(), dscp, control]);
    }

    #[inline]
    fn dscp(&self) -> Dscp {
        Dscp::new(self.marks()[2]).unwrap_or_default()
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        let [protocol, ecn, _, control] = self.marks();
        self.set_marks([protocol, ecn, dscp.number(), control]);
    }

    fn is_control(&self) -> bool {
        self.marks()[3] != 0
    }

    /// A ticket has no headers behind that of IP; it ends the run.
    fn transport(&self) -> Transport {
        fail("the queue reads headers behind the IP header, which it does not declare")
    }

    #[inline]
    fn flow(&self) -> FlowKey {
        FlowKey {
            source: self.source,
            destination: self.destination,
            ports: self.lengths.second(),
            protocol: self.marks()[0],
        }
    }
}
