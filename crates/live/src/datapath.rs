//! The thread that moves packets: it reads, asks the network, waits, and writes.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use sojourn_net::{Duration, Instant};
use sojourn_records::{Histogram, LinkRecord, SignalRecord};

use crate::clock::Clock;
use crate::flows::Flows;
use crate::frame::{Frame, Parsed};
use crate::network::Network;
use crate::observed::FlowProbe;
use crate::port::Port;
use crate::side::Side;
use crate::space::Space;
use crate::waiting::{Wait, Waiting};

/// Most packets read from one device before the other device is read.
const BATCH: usize = 64;
/// As `nice(1)` has it.
const HIGHEST_PRIORITY: i32 = -20;

/// Counters of the datapath, in addition to the records of links and flows.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// How late each event was processed, in ns.
    pub(crate) lateness: Histogram,
    /// Packets lost because no buffer was free.
    pub(crate) lost: u64,
    /// Packets that the receiving host did not accept.
    pub(crate) refused: u64,
    /// Packets that are longer than the MTU or not valid IP.
    pub(crate) unreadable: u64,
    /// Multicast packets of the hosts themselves, which are not forwarded.
    pub(crate) multicast: u64,
    /// ECN-capable packets read.
    pub(crate) ecn_capable: u64,
    /// Packets read.
    pub(crate) read: u64,
    /// Timer slack of the thread in ns; `None`: unknown.
    pub(crate) slack: Option<u64>,
    /// Whether the thread got the highest priority.
    pub(crate) is_preferred: bool,
    /// CPU time of the thread.
    pub(crate) cpu: Duration,
    /// Time from the start to the end of the run.
    pub(crate) elapsed: Duration,
}

/// State of a datapath that has stopped.
pub(crate) struct Moved {
    /// When it stopped.
    pub(crate) stopped: Instant,
    pub(crate) links: Vec<LinkRecord>,
    pub(crate) flows: Vec<FlowProbe>,
    pub(crate) events: Vec<SignalRecord>,
    pub(crate) counted: Counted,
}

/// The datapath of a run.
pub(crate) struct Datapath<'a, 'c> {
    pub(crate) clock: Clock,
    pub(crate) network: Network<'c>,
    pub(crate) space: &'a Space,
    pub(crate) flows: Flows,
    pub(crate) counted: Counted,
    waiting: Waiting,
    numbered: u64,
}

impl<'a, 'c> Datapath<'a, 'c> {
    pub(crate) fn new(clock: Clock, network: Network<'c>, space: &'a Space, flows: Flows) -> Self {
        Self {
            clock,
            network,
            space,
            flows,
            counted: Counted::default(),
            waiting: Waiting::default(),
            numbered: 0,
        }
    }

    fn port(&self, side: Side) -> &'a Port {
        match side {
            Side::Client => &self.space.client.port,
            Side::Server => &self.space.server.port,
        }
    }

    /// Moves packets until `end` or until `stop` is true; returns what was observed.
    ///
    /// # Errors
    /// If a device cannot be read.
    pub(crate) fn run(mut self, end: Instant, stop: &AtomicBool) -> io::Result<Moved> {
        // A shorter slack makes sleeps end on time; if the kernel refuses, the default of 50 µs applies.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        // The thread does little work at a time, but must do it on time. Without the privilege it keeps its priority.
        let preferred = rustix::process::setpriority_process(None, HIGHEST_PRIORITY);
        self.counted.is_preferred = preferred.is_ok();
        self.counted.slack = rustix::thread::current_timer_slack().ok();
        let before = thread_time();
        let stopped = loop {
            let now = self.clock.now();
            self.network.on_timer(now, &mut self.counted.lateness);
            self.write();
            if now >= end || stop.load(Ordering::Relaxed) {
                break now.min(end);
            }
            let mut read = 0;
            for side in [Side::Client, Side::Server] {
                read += self.read(side)?;
            }
            self.write();
            if read == 0 {
                let due = self.network.next_timer().min(end);
                match self.waiting.until(due, self.clock.now()) {
                    Wait::Spin => {}
                    Wait::Sleep(time) => self.sleep(time)?,
                }
            } else {
                self.waiting.on_work(now);
            }
        };
        self.counted.cpu = Duration::from_nanos(thread_time().saturating_sub(before));
        self.counted.elapsed = stopped.since(Instant::ZERO);
        let (links, mut observed) = self.network.finish(stopped);
        if let Some(capture) = observed.capture.take() {
            capture.finish();
        }
        Ok(Moved {
            stopped,
            links,
            flows: observed.flows,
            events: observed.events.unwrap_or_default(),
            counted: self.counted,
        })
    }

    /// Reads packets that have arrived on one side, at most one batch.
    fn read(&mut self, side: Side) -> io::Result<usize> {
        let port = self.port(side);
        for read in 0..BATCH {
            let Some(slot) = self.network.pool.take() else {
                // No free buffer: the packet is lost, and the run is invalid.
                let mut scratch = [0; 2_048];
                if port.read(&mut scratch)?.is_none() {
                    return Ok(read);
                }
                self.counted.lost += 1;
                continue;
            };
            let length = match port.read(self.network.pool.bytes_mut(slot)) {
                // A packet socket returns the full length of a packet that is longer than the buffer.
                Ok(Some(length)) => length.min(self.network.pool.size()),
                Ok(None) => {
                    self.network.pool.release(slot);
                    return Ok(read);
                }
                Err(error) => {
                    self.network.pool.release(slot);
                    return Err(error);
                }
            };
            self.accept(side, slot, length);
        }
        Ok(BATCH)
    }

    /// Passes a packet to the network.
    fn accept(&mut self, side: Side, slot: u32, length: usize) {
        let now = self.clock.now();
        // Events that are due before the packet are processed before it.
        self.network.on_timer(now, &mut self.counted.lateness);
        let parsed = Parsed::of(&self.network.pool.bytes_mut(slot)[..length]);
        let Some(parsed) = parsed else {
            self.counted.unreadable += 1;
            return self.network.pool.release(slot);
        };
        if parsed.is_multicast {
            self.counted.multicast += 1;
            return self.network.pool.release(slot);
        }
        self.counted.read += 1;
        self.counted.ecn_capable += u64::from(parsed.tos & 0b11 != 0);
        self.numbered += 1;
        let frame = Frame::new(parsed, slot, self.numbered, now);
        let (flow, forward) = self.flows.of(&parsed.flow, side);
        self.network.on_packet(now, frame, flow, forward);
    }

    /// Writes packets that have reached the end of their path.
    fn write(&mut self) {
        while let Some((_, frame)) = self.network.next_delivered() {
            let port = self.port(self.flows.destination(&frame));
            if !port.write(self.network.pool.packet(&frame)) {
                self.counted.refused += 1;
            }
            self.network.pool.release(frame.slot);
        }
    }

    /// Sleeps until a packet arrives, for `time` at most.
    fn sleep(&self, time: Duration) -> io::Result<()> {
        // An earlier stop of the run is noticed after at most this time.
        const LONGEST: u64 = 50_000_000;
        let nanos = time.as_nanos().min(LONGEST);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: nanos.try_into().unwrap_or(0),
        };
        let mut fds = [
            PollFd::from_borrowed_fd(self.space.client.port.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.space.server.port.fd(), PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// CPU time of the calling thread, in ns.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
