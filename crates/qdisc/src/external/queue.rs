//! A boxed external queue and the packets that it holds.

use std::any::Any;
use std::fmt;
use std::panic::resume_unwind;

use sojourn_net::{Bytes, Dscp, Ecn, FlowKey, Instant, Packet, Rate, Transport};

use crate::contract::{Backlog, ClassId, DropReason, MarkReason, Observer, Peek, Qdisc, Statistic};

/// A queue of tickets behind a pointer.
#[derive(Debug)]
pub struct BoxedQueue(Box<dyn TicketQueue>);

impl BoxedQueue {
    /// Boxes `queue`.
    pub fn new(queue: impl Qdisc<Ticket> + Clone + fmt::Debug + 'static) -> Self {
        Self(Box::new(queue))
    }

    /// The same queue for packets, of which there are none yet.
    pub(super) fn into_external<P>(self) -> External<P> {
        External {
            queue: self.0,
            packets: Vec::new(),
            free: Vec::new(),
        }
    }
}

/// What [`Qdisc`], which has a constant, cannot be: a trait object.
trait TicketQueue: fmt::Debug {
    fn enqueue(&mut self, now: Instant, pkt: Ticket, obs: &mut dyn Observer<Ticket>);
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Ticket>;
    fn peek(&self) -> Peek;
    fn backlog(&self) -> Backlog;
    fn next_timer(&self) -> Option<Instant>;
    fn on_timer(&mut self, now: Instant);
    fn on_link_rate(&mut self, now: Instant, rate: Rate);
    fn statistics(&self) -> Vec<Statistic>;
    fn state(&self, now: Instant) -> Vec<Statistic>;
    fn classes(&self) -> Vec<ClassId>;
    fn boxed_clone(&self) -> Box<dyn TicketQueue>;
}

impl<Q: Qdisc<Ticket> + Clone + fmt::Debug + 'static> TicketQueue for Q {
    fn enqueue(&mut self, now: Instant, pkt: Ticket, obs: &mut dyn Observer<Ticket>) {
        Qdisc::enqueue(self, now, pkt, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Ticket> {
        Qdisc::dequeue(self, now, obs)
    }

    fn peek(&self) -> Peek {
        Qdisc::peek(self)
    }

    fn backlog(&self) -> Backlog {
        Qdisc::backlog(self)
    }

    fn next_timer(&self) -> Option<Instant> {
        Qdisc::next_timer(self)
    }

    fn on_timer(&mut self, now: Instant) {
        Qdisc::on_timer(self, now);
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        Qdisc::on_link_rate(self, now, rate);
    }

    fn statistics(&self) -> Vec<Statistic> {
        Qdisc::statistics(self)
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        Qdisc::state(self, now)
    }

    fn classes(&self) -> Vec<ClassId> {
        Qdisc::classes(self)
    }

    fn boxed_clone(&self) -> Box<dyn TicketQueue> {
        Box::new(self.clone())
    }
}

/// An external queue and the packets that wait in it.
#[derive(Debug)]
pub struct External<P> {
    queue: Box<dyn TicketQueue>,
    packets: Vec<Option<P>>,
    free: Vec<u32>,
}

impl<P: Clone> Clone for External<P> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.boxed_clone(),
            packets: self.packets.clone(),
            free: self.free.clone(),
        }
    }
}

impl<P: Packet> Qdisc<P> for External<P> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let id = self.free.pop().unwrap_or_else(|| {
            self.packets.push(None);
            u32::try_from(self.packets.len() - 1)
                .unwrap_or_else(|_| fail("the queue holds more than 2^32 packets"))
        });
        let ticket = Ticket::of(id, &pkt);
        self.packets[id as usize] = Some(pkt);
        let mut relay = Relay {
            packets: &mut self.packets,
            free: &mut self.free,
            obs,
        };
        self.queue.enqueue(now, ticket, &mut relay);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let mut relay = Relay {
            packets: &mut self.packets,
            free: &mut self.free,
            obs,
        };
        let ticket = self.queue.dequeue(now, &mut relay)?;
        Some(relay.redeem(&ticket))
    }

    fn peek(&self) -> Peek {
        self.queue.peek()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn next_timer(&self) -> Option<Instant> {
        self.queue.next_timer()
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

/// Passes drops and marks of tickets on as drops and marks of packets.
struct Relay<'a, P> {
    packets: &'a mut Vec<Option<P>>,
    free: &'a mut Vec<u32>,
    obs: &'a mut dyn Observer<P>,
}

impl<P: Packet> Relay<'_, P> {
    /// The packet of a ticket, with the ECN field and class that the discipline gave it.
    fn redeem(&mut self, ticket: &Ticket) -> P {
        let held = self.packets.get_mut(ticket.id() as usize);
        let Some(mut pkt) = held.and_then(Option::take) else {
            fail("the queue returned or dropped a packet that it does not hold");
        };
        self.free.push(ticket.id());
        if pkt.ecn() != ticket.ecn() {
            pkt.set_ecn(ticket.ecn());
        }
        if pkt.dscp() != ticket.dscp() {
            pkt.set_dscp(ticket.dscp());
        }
        pkt
    }
}

impl<P: Packet> Observer<Ticket> for Relay<'_, P> {
    fn on_class(&mut self, class: ClassId) {
        self.obs.on_class(class);
    }

    fn on_drop(&mut self, now: Instant, ticket: Ticket, reason: DropReason) {
        let pkt = self.redeem(&ticket);
        self.obs.on_drop(now, pkt, reason);
    }

    fn on_mark(&mut self, now: Instant, ticket: &Ticket, reason: MarkReason) {
        let held = self.packets.get_mut(ticket.id() as usize);
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The place of the packet in [`External`](super::External).
    id: u32,
    size: Bytes,
    ecn: Ecn,
    dscp: Dscp,
    control: bool,
    transport: Transport,
    flow: FlowKey,
}

impl Ticket {
    /// The number of the packet among those that wait in the same queue.
    pub const fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn of<P: Packet>(id: u32, pkt: &P) -> Self {
        Self {
            id,
            size: pkt.size(),
            ecn: pkt.ecn(),
            dscp: pkt.dscp(),
            control: pkt.is_control(),
            transport: pkt.transport(),
            flow: pkt.flow(),
        }
    }
}

impl Packet for Ticket {
    fn size(&self) -> Bytes {
        self.size
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn dscp(&self) -> Dscp {
        self.dscp
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }

    fn is_control(&self) -> bool {
        self.control
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn flow(&self) -> FlowKey {
        self.flow
    }
}
