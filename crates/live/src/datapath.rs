//! The thread that moves packets: it reads, asks the network, waits, and writes.

mod frames;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags};
use rustix::time::ClockId;
use sojourn_net::{Duration, Instant};
use sojourn_path::ip::Parsed;
use sojourn_path::links::Events;
use sojourn_records::{ChangeRecord, Histogram, LinkRecord, SignalRecord};

use crate::clock::{Clock, Turns, time_of};
use crate::control::Changes;
use crate::cross::CrossTraffic;
use crate::ethernet::{self, Read};
use crate::flows::{Flows, Side};
use crate::frame::{Frame, Pool};
use crate::namespace::{Port, Refused};
use crate::network::Network;
use crate::observed::FlowProbe;
use crate::sys::BATCH;
use frames::Framing;

/// As `nice(1)` has it.
const HIGHEST_PRIORITY: i32 = -20;

/// Counters of the datapath, in addition to the records of links and flows.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// How late each packet reached the end of its path, and each interval of the series ended, in ns.
    pub(crate) lateness: Histogram,
    /// Packets lost because no buffer was free.
    pub(crate) lost: u64,
    /// Packets that could not be written, at the client's side and at the server's.
    pub(crate) refused: [Refused; 2],
    /// Packets that are longer than the MTU or not valid IP, or merged in a way that the kernel cannot describe.
    pub(crate) unreadable: u64,
    /// Frames that were split into the packets that had been merged to them.
    pub(crate) split: u64,
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
    /// What was asked for during the run.
    pub(crate) changes: Vec<ChangeRecord>,
    pub(crate) counted: Counted,
    /// What was done to packets at the end of their path, and the cross traffic, in words.
    pub(crate) impairment: Option<String>,
    pub(crate) cross: Option<String>,
}

/// The datapath of a run.
pub(crate) struct Datapath<'a, 'c> {
    pub(crate) clock: Clock,
    pub(crate) network: Network<'c>,
    /// Of the client and of the server.
    ports: [&'a Port; 2],
    pub(crate) flows: Flows,
    pub(crate) counted: Counted,
    turns: Turns,
    numbered: u64,
    incoming: Incoming,
    /// For ports with frames.
    framing: Option<Box<Framing>>,
    /// Packets to be written to each port.
    outgoing: [Vec<Frame>; 2],
    /// Packets of simulated hosts.
    pub(crate) cross: Option<Box<CrossTraffic>>,
}

/// Free buffers that packets are read into.
#[derive(Debug)]
struct Incoming {
    slots: Vec<u32>,
    /// The bytes of each, lent by the pool.
    buffers: Vec<Box<[u8]>>,
    /// Lengths of the packets that the last call has read.
    lengths: [usize; BATCH],
    /// For a packet that has no buffer.
    scratch: [Box<[u8]>; 1],
}

impl Incoming {
    fn new(size: usize) -> Self {
        Self {
            slots: Vec::with_capacity(BATCH),
            buffers: Vec::with_capacity(BATCH),
            lengths: [0; BATCH],
            scratch: [vec![0; size].into()],
        }
    }

    /// Takes as many free buffers as the pool has, [`BATCH`] at most.
    fn fill(&mut self, pool: &mut Pool) {
        while self.slots.len() < BATCH
            && let Some(slot) = pool.take()
        {
            self.slots.push(slot);
            self.buffers.push(pool.lend(slot));
        }
    }
}

impl<'a, 'c> Datapath<'a, 'c> {
    /// A datapath between the ports of the client and of the server.
    pub(crate) fn new(
        clock: Clock,
        network: Network<'c>,
        ports: [&'a Port; 2],
        flows: Flows,
    ) -> Self {
        let incoming = Incoming::new(network.pool.size());
        let mtu = ports.iter().filter_map(|port| port.mtu()).max();
        let framing = mtu.map(|mtu| Box::new(Framing::new(mtu)));
        Self {
            clock,
            network,
            ports,
            flows,
            counted: Counted::default(),
            turns: Turns::default(),
            numbered: 0,
            incoming,
            framing,
            outgoing: [const { Vec::new() }; 2],
            cross: None,
        }
    }

    /// Moves packets until `end` or until `stop` is true, and makes the `changes` that are asked for; returns what was
    /// observed.
    ///
    /// # Errors
    /// If a device cannot be read.
    pub(crate) fn run(
        mut self,
        end: Instant,
        stop: &AtomicBool,
        changes: Option<&Changes>,
    ) -> io::Result<Moved> {
        // A shorter slack makes sleeps end on time; if the kernel refuses, the default of 50 µs applies.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        // The thread does little work at a time, but must do it on time. Without the privilege it keeps its priority.
        let preferred = rustix::process::setpriority_process(None, HIGHEST_PRIORITY);
        self.counted.is_preferred = preferred.is_ok();
        self.counted.slack = rustix::thread::current_timer_slack().ok();
        let before = time_of(ClockId::ThreadCPUTime);
        let stopped = loop {
            let now = self.clock.now();
            self.network.on_timer(now, &mut self.counted.lateness);
            while let Some(asked) = changes.and_then(Changes::next) {
                if asked.watches {
                    self.network.watch();
                }
                // Who asked may have gone.
                let _ = asked.answer.send(self.network.change(now, &asked.changes));
            }
            self.write();
            self.send_cross_traffic(now);
            if now >= end || stop.load(Ordering::Relaxed) {
                break now.min(end);
            }
            let mut has_more = false;
            for side in [Side::Client, Side::Server] {
                has_more |= self.read(side)? >= BATCH;
            }
            self.write();
            if !has_more {
                self.wait(now, end)?;
            }
        };
        self.counted.cpu = time_of(ClockId::ThreadCPUTime).saturating_sub(before);
        self.counted.elapsed = stopped.since(Instant::ZERO);
        let ends = self.network.ends.take();
        let made = self.network.take_changes();
        let (links, mut observed) = self.network.finish(stopped);
        if let Some(capture) = observed.capture.take() {
            capture.finish();
        }
        Ok(Moved {
            stopped,
            links,
            flows: observed.flows,
            events: observed.events.map_or_else(Vec::new, Events::finish),
            changes: made,
            counted: self.counted,
            impairment: ends.and_then(|ends| ends.impaired.described()),
            cross: self.cross.map(|cross| cross.described(stopped)),
        })
    }

    /// Reads packets that have arrived on one side, at most [`BATCH`] before the other side is read.
    fn read(&mut self, side: Side) -> io::Result<usize> {
        let port = self.ports[side as usize];
        if port.mtu().is_some() {
            return self.read_frames(side, port.fd());
        }
        let mut all = 0;
        while all < BATCH {
            self.incoming.fill(&mut self.network.pool);
            let most = port.batch().min(BATCH - all);
            let (read, most) = match self.incoming.slots.len() {
                0 => (self.discard(port)?, 1),
                free => (
                    self.read_batch(side, free.saturating_sub(most))?,
                    most.min(free),
                ),
            };
            all += read;
            if read < most {
                break;
            }
        }
        Ok(all)
    }

    /// Reads packets with one call into the free buffers from number `first` on; returns how many.
    fn read_batch(&mut self, side: Side, first: usize) -> io::Result<usize> {
        let Incoming {
            buffers, lengths, ..
        } = &mut self.incoming;
        let read = self.ports[side as usize].read(&mut buffers[first..], lengths)?;
        for n in 0..read {
            let slot = self.incoming.slots[first + n];
            let buffer = std::mem::take(&mut self.incoming.buffers[first + n]);
            let length = self.incoming.lengths[n].min(buffer.len());
            self.network.pool.give_back(slot, buffer);
            self.accept(side, slot, length);
        }
        self.incoming.slots.drain(first..first + read);
        self.incoming.buffers.drain(first..first + read);
        Ok(read)
    }

    /// Reads a packet when no buffer is free: the packet is lost, and the run is invalid.
    fn discard(&mut self, port: &Port) -> io::Result<usize> {
        let read = port.read(&mut self.incoming.scratch, &mut [0])?;
        self.counted.lost += read as u64;
        Ok(read)
    }

    /// Passes a packet to the network, unless a router does not forward it.
    fn accept(&mut self, side: Side, slot: u32, length: usize) {
        if let Port::Routed(routed) = self.ports[side as usize] {
            let frame = &mut self.network.pool.bytes_mut(slot)[..length];
            if !routed.gate.forward(frame) {
                return self.network.pool.release(slot);
            }
        }
        self.enter(side, slot, length);
    }

    /// A packet enters the network.
    fn enter(&mut self, side: Side, slot: u32, length: usize) {
        let now = self.clock.now();
        // Events that are due before the packet are processed before it.
        self.network.on_timer(now, &mut self.counted.lateness);
        let bytes = &self.network.pool.bytes_mut(slot)[..length];
        let read = match &self.framing {
            None => Parsed::of(bytes).map(|parsed| Read {
                parsed,
                header: 0,
                is_ip: true,
            }),
            Some(framing) => {
                let fits = |read: &Read| usize::from(read.parsed.len) <= framing.mtu;
                ethernet::read(bytes).filter(fits)
            }
        };
        let Some(read) = read else {
            self.counted.unreadable += 1;
            return self.network.pool.release(slot);
        };
        let parsed = read.parsed;
        // Of the hosts of a run themselves; a bridge also passes what is for all hosts behind it.
        if parsed.is_multicast && self.framing.is_none() {
            self.counted.multicast += 1;
            return self.network.pool.release(slot);
        }
        self.counted.read += 1;
        self.counted.ecn_capable += u64::from(parsed.tos & 0b11 != 0);
        self.numbered += 1;
        let frame = Frame::new(parsed, slot, self.numbered, now).framed(read.header, read.is_ip);
        let (flow, forward) = self.flows.of(&parsed.flow, side);
        self.network.on_packet(now, frame, flow, forward);
    }

    /// Simulated hosts send what is due.
    fn send_cross_traffic(&mut self, now: Instant) {
        let Some(mut cross) = self.cross.take() else {
            return;
        };
        if cross.next() <= now {
            cross.turn(now);
            // The number that the packet gets when it enters.
            while let Some((side, frame)) = cross.take(self.numbered + 1) {
                let Some(slot) = self.network.pool.take() else {
                    self.counted.lost += 1;
                    continue;
                };
                self.network.pool.bytes_mut(slot)[..frame.len()].copy_from_slice(frame);
                let length = frame.len();
                self.enter(side, slot, length);
            }
            self.cross = Some(cross);
            return self.write();
        }
        self.cross = Some(cross);
    }

    /// Writes packets that have reached the end of their path.
    fn write(&mut self) {
        while let Some((at, frame)) = self.network.next_delivered() {
            if let Some(cross) = &mut self.cross
                && CrossTraffic::owns(&frame)
            {
                let to = self.flows.destination(&frame);
                cross.deliver(at, to, &frame);
                self.network.pool.release(frame.slot);
                continue;
            }
            let side = self.flows.destination(&frame);
            let most = self.ports[side as usize].batch();
            // Copies of a packet have one buffer, but not always the same ECN: they are written one by one.
            let is_shared = self.network.pool.is_shared(frame.slot);
            if is_shared {
                self.flush(side);
            }
            self.outgoing[side as usize].push(frame);
            if is_shared || self.outgoing[side as usize].len() >= most {
                self.flush(side);
            }
        }
        self.flush(Side::Client);
        self.flush(Side::Server);
    }

    /// Writes the packets that are to be written to one side.
    fn flush(&mut self, side: Side) {
        let pool = &mut self.network.pool;
        let frames = &mut self.outgoing[side as usize];
        if frames.is_empty() {
            return;
        }
        for frame in &*frames {
            pool.packet(frame);
        }
        let mut packets: [&[u8]; BATCH] = [&[]; BATCH];
        for (packet, frame) in packets.iter_mut().zip(&*frames) {
            *packet = pool.bytes(frame);
        }
        let refused = &mut self.counted.refused[side as usize];
        self.ports[side as usize].write(&packets[..frames.len()], refused);
        for frame in frames.drain(..) {
            pool.release(frame.slot);
        }
    }

    /// Waits after a turn that began at `began` until the next one.
    fn wait(&mut self, began: Instant, end: Instant) -> io::Result<()> {
        // An earlier stop of the run is noticed after at most this time.
        const LONGEST: Duration = Duration::from_millis(50);
        if let Some(earliest) = self.turns.after(began) {
            self.clock.sleep_until(earliest);
            return Ok(());
        }
        let cross = self.cross.as_ref().map_or(end, |cross| cross.next());
        let due = self.network.next_call().min(cross).min(end);
        let mut fds = [
            PollFd::from_borrowed_fd(self.ports[0].fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.ports[1].fd(), PollFlags::IN),
        ];
        self.clock.wait(&mut fds, due, LONGEST)
    }
}

#[cfg(test)]
mod tests;
