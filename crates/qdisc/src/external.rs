//! Disciplines from outside this crate, added at run time.
//!
//! A discipline of another crate, or one written in Python, cannot be a variant of
//! [`AnyQdisc`](crate::AnyQdisc), and it cannot know the packet type of every environment. It is
//! written once, against [`Ticket`], a copy of what a queue may read of a packet. [`External`]
//! keeps the packets themselves and translates.
//!
//! A program calls [`register`] before it reads scenarios; from then on the name is accepted
//! wherever a queue is named, with parameters as pairs of key and value:
//! `myqueue target 5ms limit 100`.
//!
//! # Failure
//!
//! [`Qdisc`] has no errors, and the disciplines of this crate need none. One from outside may
//! fail, for example with an exception. It then calls [`fail`], which unwinds to whoever started
//! the run with a [`QueueFailure`] as payload; the run ends at once and its records are discarded.

mod ticket;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{RefUnwindSafe, resume_unwind};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use sojourn_net::{Instant, Packet, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::link::LinkFacts;
use crate::parameters::{Field, Fields, Kind, Params};
pub use ticket::Ticket;

/// Kinds with this prefix name a class of Python; they are accepted without being registered, so
/// that a saved result loads where the class does not exist, but they cannot be built there.
pub const PYTHON_PREFIX: &str = "python:";

/// A kind of discipline that another crate, or Python, provides.
pub trait ExternalKind: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// The name in a specification: letters, digits, `_`, `:` and `.`.
    fn name(&self) -> &str;

    /// What it does and which parameters it has, in one line: for `sojourn qdiscs`.
    fn summary(&self) -> &str;

    /// The program text of the discipline, if results are to keep it; it is never executed.
    fn source(&self) -> Option<&str> {
        None
    }

    /// Reads the parameters, pairs of key and value in the order given.
    ///
    /// # Errors
    /// What is wrong and what is accepted, such as `unknown parameter "x"; expected target`.
    fn configure(&self, parameters: &[(String, String)])
    -> Result<Arc<dyn ExternalParams>, String>;
}

/// A configured discipline, ready to be built once per link and run.
pub trait ExternalParams: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// An empty queue for `link`; `rng` is its own.
    fn build(&self, link: &LinkFacts, rng: Rng) -> BoxedQueue;
}

/// A queue of tickets behind a pointer.
#[derive(Debug)]
pub struct BoxedQueue(Box<dyn TicketQueue>);

impl BoxedQueue {
    /// Boxes `queue`.
    pub fn new(queue: impl Qdisc<Ticket> + Clone + fmt::Debug + 'static) -> Self {
        Self(Box::new(queue))
    }
}

/// What [`Qdisc`], which has a constant, cannot be: a trait object.
trait TicketQueue: fmt::Debug {
    fn enqueue(&mut self, now: Instant, pkt: Ticket, obs: &mut dyn Observer<Ticket>);
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Ticket>;
    fn backlog(&self) -> Backlog;
    fn next_timer(&self) -> Option<Instant>;
    fn on_timer(&mut self, now: Instant);
    fn statistics(&self) -> Vec<Statistic>;
    fn boxed_clone(&self) -> Box<dyn TicketQueue>;
}

impl<Q: Qdisc<Ticket> + Clone + fmt::Debug + 'static> TicketQueue for Q {
    fn enqueue(&mut self, now: Instant, pkt: Ticket, obs: &mut dyn Observer<Ticket>) {
        Qdisc::enqueue(self, now, pkt, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Ticket> {
        Qdisc::dequeue(self, now, obs)
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

    fn statistics(&self) -> Vec<Statistic> {
        Qdisc::statistics(self)
    }

    fn boxed_clone(&self) -> Box<dyn TicketQueue> {
        Box::new(self.clone())
    }
}

/// Why a discipline was not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterError {
    /// The name is empty or has a character that a specification cannot hold.
    Name(String),
    /// A discipline of the catalogue has this name.
    Taken(String),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "invalid queue name {name:?}; expected letters, digits, '_', ':' and '.'"
            ),
            Self::Taken(name) => {
                write!(
                    f,
                    "the queue name {name:?} is already in use; expected another name"
                )
            }
        }
    }
}

impl std::error::Error for RegisterError {}

static KINDS: LazyLock<RwLock<BTreeMap<String, Arc<dyn ExternalKind>>>> =
    LazyLock::new(RwLock::default);

/// Adds a kind of discipline for the rest of the process; one of the same name is replaced.
///
/// # Errors
/// If the name is not valid or belongs to a discipline of this crate.
pub fn register(kind: Arc<dyn ExternalKind>) -> Result<(), RegisterError> {
    let name = kind.name().to_owned();
    let valid = |c: char| c.is_ascii_alphanumeric() || "_:.".contains(c);
    if name.is_empty() || !name.chars().all(valid) {
        return Err(RegisterError::Name(name));
    }
    if crate::catalogue().iter().any(|known| known.name == name) {
        return Err(RegisterError::Taken(name));
    }
    let mut kinds = KINDS.write().unwrap_or_else(PoisonError::into_inner);
    kinds.insert(name, kind);
    Ok(())
}

/// Whether `name` is that of a registered discipline, or of a class of Python.
pub fn is_external(name: &str) -> bool {
    let kinds = KINDS.read().unwrap_or_else(PoisonError::into_inner);
    name.starts_with(PYTHON_PREFIX) || kinds.contains_key(name)
}

/// The program text of a registered discipline, if it keeps one.
pub fn source_of(name: &str) -> Option<String> {
    let kinds = KINDS.read().unwrap_or_else(PoisonError::into_inner);
    kinds.get(name)?.source().map(str::to_owned)
}

/// The registered disciplines by name; classes of Python, which have no name to type, are left out.
pub fn registered() -> Vec<Arc<dyn ExternalKind>> {
    let kinds = KINDS.read().unwrap_or_else(PoisonError::into_inner);
    let named = kinds
        .values()
        .filter(|kind| !kind.name().starts_with(PYTHON_PREFIX));
    named.cloned().collect()
}

/// A discipline from outside and its parameters.
#[derive(Clone, Debug)]
pub struct ExternalSpec {
    kind: &'static str,
    parameters: Vec<(String, String)>,
    /// `None`: the class of Python that it names does not exist in this process.
    configured: Option<Arc<dyn ExternalParams>>,
}

impl PartialEq for ExternalSpec {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.parameters) == (other.kind, &other.parameters)
    }
}

impl ExternalSpec {
    /// Reads a specification whose kind is `name`; `None` if there is no such kind.
    pub(crate) fn read(
        name: &str,
        parameters: Vec<(String, String)>,
    ) -> Option<Result<Self, String>> {
        let kinds = KINDS.read().unwrap_or_else(PoisonError::into_inner);
        let configured = match kinds.get(name) {
            Some(kind) => kind.configure(&parameters).map(Some),
            None if name.starts_with(PYTHON_PREFIX) => Ok(None),
            None => return None,
        };
        Some(configured.map(|configured| Self {
            kind: intern(name),
            parameters,
            configured,
        }))
    }

    /// The parameters as given.
    pub(crate) fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// The same, by keys that live as long as those of the catalogue.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let pairs = self.parameters.iter();
        pairs
            .map(|(key, value)| (intern(key), value.clone()))
            .collect()
    }

    /// Whether it can be built in this process.
    pub fn is_available(&self) -> bool {
        self.configured.is_some()
    }
}

impl Fields for ExternalSpec {
    fn field(&mut self, _key: &str) -> Option<Field<'_>> {
        None
    }
}

impl Params for ExternalSpec {
    type Queue<P: Packet> = External<P>;

    /// Those of [`registered`] are known at run time only.
    const KINDS: &'static [Kind<Self>] = &[];

    fn kind(&self) -> &'static str {
        self.kind
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> External<P> {
        let Some(configured) = &self.configured else {
            fail(format!("{} is not loaded", self.kind));
        };
        External {
            queue: configured.build(link, rng).0,
            packets: Vec::new(),
            free: Vec::new(),
        }
    }
}

/// One copy of each name for the rest of the process: their number is that of the queues that
/// the program has ever named.
fn intern(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = name.to_owned().leak();
    names.insert(name);
    name
}

/// A discipline from outside, with the packets that wait in it.
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

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn next_timer(&self) -> Option<Instant> {
        self.queue.next_timer()
    }

    fn on_timer(&mut self, now: Instant) {
        self.queue.on_timer(now);
    }

    fn statistics(&self) -> Vec<Statistic> {
        self.queue.statistics()
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

/// What a queue from outside that cannot go on ends its run with.
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

#[cfg(test)]
mod tests;
