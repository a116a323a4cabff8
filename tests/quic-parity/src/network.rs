//! The network between client and server, over sojourn-path, and the agenda of a run in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use sojourn_net::{Duration, Ecn, Instant, Rate, Rng};
use sojourn_path::{Bottleneck, Direction, Headers, Path, udp_flow};

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum To {
    Server,
    Client,
}

impl To {
    pub(crate) const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A datagram sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) to: To,
}

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) rate: Option<Rate>,
    /// Packets that may wait or be sent, if there is a rate.
    pub(crate) limit: usize,
    pub(crate) delay: Duration,
    /// Loss probability in thousandths.
    pub(crate) loss: u64,
    /// All datagrams sent in this time are lost.
    pub(crate) dark: Option<Range<Instant>>,
}

impl Way {
    pub(crate) const fn of_delay(delay: Duration) -> Self {
        Self {
            rate: None,
            limit: usize::MAX,
            delay,
            loss: 0,
            dark: None,
        }
    }

    fn bottleneck(&self) -> Bottleneck {
        let bottleneck = self.rate.map_or(Bottleneck::none(), |rate| {
            // The link holds one packet more.
            let queue = format!("pfifo limit {}", self.limit - 1);
            Bottleneck::new(rate, &queue).expect("a queue")
        });
        bottleneck.delay(self.delay)
    }

    fn loses(&self, now: Instant, rng: &mut Rng) -> bool {
        if self.dark.as_ref().is_some_and(|dark| dark.contains(&now)) {
            return true;
        }
        let lost = rng.below(1_000) < self.loss;
        if !lost {
            // The recorded losses are those of every fourth number.
            for _ in 0..3 {
                rng.next_u64();
            }
        }
        lost
    }
}

/// What happens next.
#[derive(Debug)]
pub(crate) enum Event<D> {
    /// A datagram arrives.
    Arrives(To, D),
    /// The timer of an end expires.
    Timer(To),
}

/// Datagrams on their way, and the timers of both ends. What happens at the same instant happens in the order in which
/// it was sent or set.
#[derive(Debug)]
pub(crate) struct Network<D> {
    pub(crate) now: Instant,
    pub(crate) sent: Vec<Sent>,
    path: Path<Numbered<D>>,
    ways: [Way; 2],
    rng: Rng,
    agenda: BinaryHeap<Reverse<Entry<D>>>,
    scheduled: u64,
    /// When the timers expire.
    due: [Option<Instant>; 2],
}

/// A datagram and its place among all that was scheduled.
#[derive(Clone, Debug)]
struct Numbered<D>(u64, D);

impl<D: AsRef<[u8]>> AsRef<[u8]> for Numbered<D> {
    fn as_ref(&self) -> &[u8] {
        self.1.as_ref()
    }
}

/// An event of the agenda, by its time and number.
#[derive(Debug)]
struct Entry<D>(Instant, u64, Event<D>);

impl<D> PartialEq for Entry<D> {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl<D> Eq for Entry<D> {}

impl<D> PartialOrd for Entry<D> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<D> Ord for Entry<D> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl<D: AsRef<[u8]> + Clone> Network<D> {
    pub(crate) fn new(to_server: &Way, to_client: &Way, seed: u64) -> Self {
        let path = Path::builder()
            .forward(to_server.bottleneck())
            .reverse(to_client.bottleneck());
        Self {
            now: Instant::ZERO,
            sent: Vec::new(),
            path: path.build().expect("parameters in range"),
            ways: [to_server.clone(), to_client.clone()],
            rng: Rng::new(seed),
            agenda: BinaryHeap::new(),
            scheduled: 0,
            due: [None; 2],
        }
    }

    /// Sends a datagram.
    pub(crate) fn send(&mut self, to: To, datagram: D) {
        self.sent.push(Sent { at: self.now, to });
        if self.ways[to as usize].loses(self.now, &mut self.rng) {
            return;
        }
        self.scheduled += 1;
        let direction = match to {
            To::Server => Direction::Forward,
            To::Client => Direction::Reverse,
        };
        let headers = Headers::udp(Ecn::NotEct, udp_flow(1));
        let datagram = Numbered(self.scheduled, datagram);
        self.path.push_with(self.now, direction, datagram, &headers);
    }

    /// The timer of an end expires at this time, or when it did before if that is earlier.
    pub(crate) fn set_timer(&mut self, of: To, due: Option<Instant>) {
        let Some(due) = due.map(|due| due.max(self.now)) else {
            return;
        };
        if self.due[of as usize].is_none_or(|pending| due < pending) {
            self.due[of as usize] = Some(due);
            self.scheduled += 1;
            let entry = Entry(due, self.scheduled, Event::Timer(of));
            self.agenda.push(Reverse(entry));
        }
    }

    /// What happens next, up to `end`.
    pub(crate) fn next(&mut self, end: Instant) -> Option<Event<D>> {
        loop {
            let timer = self.agenda.peek().map(|Reverse(entry)| entry.0);
            let now = timer.into_iter().chain(self.path.deadline()).min()?;
            if now > end {
                return None;
            }
            self.now = now;
            while let Some(delivery) = self.path.poll(now) {
                let to = match delivery.direction {
                    Direction::Forward => To::Server,
                    Direction::Reverse => To::Client,
                };
                let Numbered(number, datagram) = delivery.bytes;
                let entry = Entry(now, number, Event::Arrives(to, datagram));
                self.agenda.push(Reverse(entry));
            }
            if self
                .agenda
                .peek()
                .is_none_or(|Reverse(entry)| entry.0 > now)
            {
                continue;
            }
            let Some(Reverse(Entry(_, _, event))) = self.agenda.pop() else {
                continue;
            };
            match event {
                Event::Timer(of) if self.due[of as usize] != Some(now) => {}
                Event::Timer(of) => {
                    self.due[of as usize] = None;
                    return Some(event);
                }
                Event::Arrives(..) => return Some(event),
            }
        }
    }
}
