//! The two captures of a run between two networks, as the QUIC network simulator writes them: what crosses the end of
//! the link at each side.
//!
//! # Source
//!
//! The file format: draft-ietf-opsawg-pcap. What is captured: the devices of the point-to-point link of
//! [quic-network-simulator](https://github.com/quic-interop/quic-network-simulator), which capture a packet when its
//! transmission begins, and when it was received and not lost.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sojourn_net::Instant;

use crate::flows::Side;

/// The captures of both sides.
#[derive(Debug)]
pub(crate) struct Traces {
    /// Of the client's side and of the server's side.
    files: [BufWriter<File>; 2],
    /// Unix time of the origin of the clock, in ns.
    base: u64,
    /// The side that sends over each link.
    senders: Vec<Side>,
}

/// Time stamps in microseconds, as all readers know them.
const MAGIC: u32 = 0xA1B2_C3D4;
const VERSION: [u16; 2] = [2, 4];
/// IPv4 or IPv6 without a link-layer header (`LINKTYPE_RAW`).
const RAW: u32 = 101;
const LONGEST: u32 = 65_535;

impl Traces {
    /// Begins captures of a run that starts now; `senders` are the sides that send over each link.
    ///
    /// # Errors
    /// If the files cannot be written.
    #[expect(
        clippy::disallowed_methods,
        reason = "packets in a capture have wall-clock time stamps"
    )]
    pub(crate) fn begin(files: &Arc<[File; 2]>, senders: Vec<Side>) -> io::Result<Self> {
        let [near, far] = files.each_ref().map(File::try_clone);
        let mut files = [BufWriter::new(near?), BufWriter::new(far?)];
        let [major, minor] = VERSION.map(u16::to_ne_bytes);
        for file in &mut files {
            file.write_all(&MAGIC.to_ne_bytes())?;
            file.write_all(&[major, minor].concat())?;
            // The zone and the accuracy of time stamps.
            file.write_all(&[0; 8])?;
            file.write_all(&LONGEST.to_ne_bytes())?;
            file.write_all(&RAW.to_ne_bytes())?;
            file.flush()?;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let base = since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0));
        Ok(Self {
            files,
            base,
            senders,
        })
    }

    /// The transmission of a packet over a link begins.
    pub(crate) fn on_taken(&mut self, now: Instant, link: u32, packet: &[u8]) {
        if let Some(side) = self.senders.get(link as usize) {
            self.write(now, *side, packet);
        }
    }

    /// A packet has reached one side.
    pub(crate) fn on_received(&mut self, now: Instant, side: Side, packet: &[u8]) {
        self.write(now, side, packet);
    }

    /// Writes a record. An error, such as a full disk, does not end the run.
    fn write(&mut self, now: Instant, side: Side, packet: &[u8]) {
        const SECOND: u64 = 1_000_000_000;
        let nanos = self.base + now.as_nanos();
        let length = u32::try_from(packet.len()).unwrap_or(LONGEST);
        let seconds = u32::try_from(nanos / SECOND).unwrap_or(0);
        let micros = u32::try_from(nanos % SECOND / 1_000).unwrap_or(0);
        let head = [seconds, micros, length, length].map(u32::to_ne_bytes);
        let file = &mut self.files[side as usize];
        let _ = file
            .write_all(head.as_flattened())
            .and_then(|()| file.write_all(packet));
    }

    /// Writes what is buffered, so that a reader, or the end of the process by a signal, misses little.
    pub(crate) fn flush(&mut self) {
        for file in &mut self.files {
            let _ = file.flush();
        }
    }
}
