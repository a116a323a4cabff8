//! Every discipline behind one type, without a virtual call.

use sojourn_net::{Instant, Packet};

use crate::cobalt::Cobalt;
use crate::cocoa::Cocoa;
use crate::codel::Codel;
use crate::contract::{Backlog, Observer, Qdisc};
use crate::droptail::DropTail;
use crate::fq::Fq;
use crate::fq_codel::FqCodel;
use crate::pie::Pie;
use crate::red::Red;
use crate::sfb::Sfb;
use crate::sfq::Sfq;

/// One of the disciplines; which one is decided at run time, once.
#[derive(Clone, Debug)]
pub enum AnyQdisc<P> {
    /// `pfifo`, `bfifo` and `pfifo_head_drop`.
    DropTail(DropTail<P>),
    /// `red`, adaptive or not.
    Red(Red<P>),
    /// `codel`.
    Codel(Codel<P>),
    /// `pie`.
    Pie(Pie<P>),
    /// `fq_codel`.
    FqCodel(FqCodel<P>),
    /// `sfq`.
    Sfq(Sfq<P>),
    /// `fq`.
    Fq(Fq<P>),
    /// `cocoa`.
    Cocoa(Cocoa<P>),
    /// `sfb`.
    Sfb(Sfb<P>),
    /// `cobalt`.
    Cobalt(Cobalt<P>),
}

impl<P: Packet> Qdisc<P> for AnyQdisc<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        match self {
            Self::DropTail(q) => q.enqueue(now, pkt, obs),
            Self::Red(q) => q.enqueue(now, pkt, obs),
            Self::Codel(q) => q.enqueue(now, pkt, obs),
            Self::Pie(q) => q.enqueue(now, pkt, obs),
            Self::FqCodel(q) => q.enqueue(now, pkt, obs),
            Self::Sfq(q) => q.enqueue(now, pkt, obs),
            Self::Fq(q) => q.enqueue(now, pkt, obs),
            Self::Cocoa(q) => q.enqueue(now, pkt, obs),
            Self::Sfb(q) => q.enqueue(now, pkt, obs),
            Self::Cobalt(q) => q.enqueue(now, pkt, obs),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        match self {
            Self::DropTail(q) => q.dequeue(now, obs),
            Self::Red(q) => q.dequeue(now, obs),
            Self::Codel(q) => q.dequeue(now, obs),
            Self::Pie(q) => q.dequeue(now, obs),
            Self::FqCodel(q) => q.dequeue(now, obs),
            Self::Sfq(q) => q.dequeue(now, obs),
            Self::Fq(q) => q.dequeue(now, obs),
            Self::Cocoa(q) => q.dequeue(now, obs),
            Self::Sfb(q) => q.dequeue(now, obs),
            Self::Cobalt(q) => q.dequeue(now, obs),
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        match self {
            Self::DropTail(q) => q.backlog(),
            Self::Red(q) => q.backlog(),
            Self::Codel(q) => q.backlog(),
            Self::Pie(q) => q.backlog(),
            Self::FqCodel(q) => q.backlog(),
            Self::Sfq(q) => q.backlog(),
            Self::Fq(q) => q.backlog(),
            Self::Cocoa(q) => q.backlog(),
            Self::Sfb(q) => q.backlog(),
            Self::Cobalt(q) => q.backlog(),
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        match self {
            Self::DropTail(q) => q.next_timer(),
            Self::Red(q) => q.next_timer(),
            Self::Codel(q) => q.next_timer(),
            Self::Pie(q) => q.next_timer(),
            Self::FqCodel(q) => q.next_timer(),
            Self::Sfq(q) => q.next_timer(),
            Self::Fq(q) => q.next_timer(),
            Self::Cocoa(q) => q.next_timer(),
            Self::Sfb(q) => q.next_timer(),
            Self::Cobalt(q) => q.next_timer(),
        }
    }

    fn on_timer(&mut self, now: Instant) {
        match self {
            Self::DropTail(q) => q.on_timer(now),
            Self::Red(q) => q.on_timer(now),
            Self::Codel(q) => q.on_timer(now),
            Self::Pie(q) => q.on_timer(now),
            Self::FqCodel(q) => q.on_timer(now),
            Self::Sfq(q) => q.on_timer(now),
            Self::Fq(q) => q.on_timer(now),
            Self::Cocoa(q) => q.on_timer(now),
            Self::Sfb(q) => q.on_timer(now),
            Self::Cobalt(q) => q.on_timer(now),
        }
    }
}
