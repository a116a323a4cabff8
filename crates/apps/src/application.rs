//! The interface of an application: its configuration and its response to events.

use std::any::Any;
use std::fmt::Debug;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use sojourn_net::{Bytes, Duration, Instant, Rng};
use sojourn_transport::{MSS, SMALLEST_MSS, SenderParams, quic};

use crate::contract::{AppEvent, AppOutput};
use crate::report::{PlayerRecord, ResponsivenessRecord};
use crate::transport::{Transport, quic_params};

/// A running application. Its commands and reports go to `out`.
pub trait Application: Debug {
    /// Handles an event.
    fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput);

    /// When [`AppEvent::Timer`] is due; `None`: no timer is set.
    fn next_timer(&self) -> Option<Instant>;

    /// The warm-up has ended: measurements start now.
    fn begin_measuring(&mut self) {}

    /// The run ends or the application is stopped: reports what has not completed.
    fn finish(&mut self, now: Instant, out: &mut AppOutput);

    /// What a video player has recorded; `None` for other applications.
    fn player(&self) -> Option<PlayerRecord> {
        None
    }

    /// The result of a responsiveness test; `None` for others, or before there is one.
    fn responsiveness(&self) -> Option<ResponsivenessRecord> {
        None
    }
}

/// Configuration of an application.
pub trait ApplicationConfig: Comparable + Debug + RefUnwindSafe + Send + Sync {
    /// Transport of its connections.
    fn transport(&self) -> Transport;

    /// Parameters of its TCP connections.
    fn tcp(&self) -> SenderParams;

    /// Parameters of its connections if they are of QUIC: of TCP's, those that both have.
    fn quic_params(&self) -> quic::Params {
        quic_params(&self.tcp())
    }

    /// Bytes of a request.
    fn request(&self) -> Bytes;

    /// Mean number of connections opened in `time` if it does not depend on the network; 0 if each connection waits
    /// for a response.
    fn connections(&self, _time: Duration) -> u64 {
        0
    }

    /// The first broken rule of those that only this application has: the key and what it must be.
    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The application, before it starts; its random streams derive from `rng`.
    fn build(self: Arc<Self>, rng: &Rng) -> Box<dyn Application>;
}

impl dyn ApplicationConfig {
    /// Parameters of its QUIC connections; `None`: it uses TCP.
    pub fn quic(&self) -> Option<quic::Params> {
        (self.transport() == Transport::Quic).then(|| self.quic_params())
    }

    /// The first broken rule: the key and what it must be.
    pub fn check(&self) -> Option<(&'static str, &'static str)> {
        self.broken_rule()
            .or_else(|| match (self.request().0, self.tcp().initial_window) {
                (0, _) => Some(("request", "must be > 0")),
                (_, 0) => Some(("initial_window", "must be >= 1")),
                _ if !(SMALLEST_MSS..=MSS).contains(&self.tcp().mss) => {
                    Some(("mss", "must be 128 to 1448 bytes"))
                }
                _ => None,
            })
    }
}

/// Values that can be compared without knowing their types; those of two types differ.
pub trait Comparable: Any {
    /// Whether `other` has the same type and the same value.
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + PartialEq> Comparable for T {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

impl PartialEq for dyn ApplicationConfig {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}
