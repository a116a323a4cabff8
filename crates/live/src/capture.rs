//! The packet capture of a run, in pcapng: packets as they enter and leave the queues of the links.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::net::Ipv4Addr;
use std::time::{SystemTime, UNIX_EPOCH};

use sojourn_capture::{
    Direction, Interface, LinkPoints, LinkType, Point, Record, Section, Verdict, Writer,
};
use sojourn_net::Instant;
use sojourn_qdisc::{DropReason, MarkReason};
use sojourn_records::CaptureOutput;
use sojourn_scenario::plan::LinkConfig;

use crate::frame::Frame;

/// The capture of a run.
pub(crate) struct Capture<'a> {
    writer: Writer<&'a mut (dyn Write + Send)>,
    /// One per link.
    points: Vec<LinkPoints>,
    /// Packets that were marked and are in a queue, by number.
    marked: BTreeMap<u64, MarkReason>,
}

impl<'a> Capture<'a> {
    /// Starts the capture of a run between hosts that starts now, on this kernel release; `begins` is what its packets
    /// begin with.
    #[expect(
        clippy::disallowed_methods,
        reason = "packets in a capture have wall-clock time stamps"
    )]
    pub(crate) fn new(
        links: &[LinkConfig],
        hosts: &[(Ipv4Addr, &str)],
        begins: LinkType,
        kernel: &str,
        output: CaptureOutput<'a>,
    ) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let os = format!("Linux {kernel}");
        let section = Section {
            os: Some(&os),
            comment: Some(output.comment),
            base: since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0)),
            ..Section::default()
        };
        let mut writer = Writer::new(output.out, &section);
        let points = links
            .iter()
            .map(|link| points_of(&mut writer, link, begins))
            .collect();
        writer.names(hosts.iter().map(|&(address, name)| (address.into(), name)));
        Self {
            writer,
            points,
            marked: BTreeMap::new(),
        }
    }

    /// A packet is offered to the queue of a link.
    pub(crate) fn on_offered(&mut self, now: Instant, link: u32, frame: &Frame, bytes: &[u8]) {
        let point = self.points[link as usize].enq;
        let verdict = Verdict::Passed;
        self.write(now, point, Direction::Inbound, frame, bytes, verdict);
    }

    /// The queue of a link marks a packet.
    pub(crate) fn on_mark(&mut self, frame: &Frame, reason: MarkReason) {
        self.marked.insert(frame.id, reason);
    }

    /// The queue of a link dequeued a packet.
    pub(crate) fn on_taken(&mut self, now: Instant, link: u32, frame: &Frame, bytes: &[u8]) {
        let mark = self.marked.remove(&frame.id);
        let verdict = mark.map_or(Verdict::Passed, Verdict::Marked);
        let point = self.points[link as usize].deq;
        self.write(now, point, Direction::Outbound, frame, bytes, verdict);
    }

    /// The queue of a link dropped a packet.
    pub(crate) fn on_drop(
        &mut self,
        now: Instant,
        link: u32,
        frame: &Frame,
        bytes: &[u8],
        reason: DropReason,
    ) {
        self.marked.remove(&frame.id);
        let point = self.points[link as usize].drop;
        let verdict = Verdict::Dropped(reason);
        self.write(now, point, Direction::Inbound, frame, bytes, verdict);
    }

    /// The wire behind a link lost a packet.
    pub(crate) fn on_lost(&mut self, now: Instant, link: u32, frame: &Frame, bytes: &[u8]) {
        let point = self.points[link as usize].drop;
        let verdict = Verdict::Lost;
        self.write(now, point, Direction::Outbound, frame, bytes, verdict);
    }

    /// Ends the capture. The owner of the output handles its errors.
    pub(crate) fn finish(self) {
        let _ = self.writer.finish();
    }

    fn write(
        &mut self,
        at: Instant,
        point: Point,
        direction: Direction,
        frame: &Frame,
        data: &[u8],
        verdict: Verdict,
    ) {
        let record = Record {
            at,
            id: Some(frame.id),
            direction,
            // Behind a link, a packet is in no queue.
            queue: frame.queue.filter(|_| verdict != Verdict::Lost),
            verdict,
            length: u32::try_from(frame.length()).unwrap_or(u32::MAX),
            data,
        };
        self.writer.write(point, &record);
    }
}

impl fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

fn points_of(
    writer: &mut Writer<&mut (dyn Write + Send)>,
    link: &LinkConfig,
    begins: LinkType,
) -> LinkPoints {
    let like = Interface {
        rate: link.constant_rate(),
        link: begins,
        ..Interface::new("")
    };
    LinkPoints::add_like(writer, &link.name, link.qdisc.kind(), &link.qdisc, &like)
}
