//! Packet captures: pcapng files, real headers for simulated packets, and the analysis of captures.
//!
//! [`Analysis`] reads pcap and pcapng files of any program and finds connections, retransmissions and RTT samples.
//!
//! [`Writer`] appends blocks of the format pcapng (draft-ietf-opsawg-pcapng) to any
//! [`std::io::Write`]. Each observation point is an interface of the capture, for example `down.enq` and
//! `down.deq`; the same packet has the same number (`epb_packetid`) at every point. [`Synth`] writes the
//! IP headers of simulated packets, [`Connection`] converts segments to bytes, and [`Endpoints`] chooses
//! addresses and ports.
//!
//! # Time stamps
//!
//! Time stamps are nanoseconds since 1970. A live run sets [`Section::base`] to the Unix time of the origin
//! of its clock. A simulation has the base 0: it starts at 1970-01-01 00:00:00 UTC.
//!
//! # Several points in one file
//!
//! Wireshark analyses a TCP connection over all interfaces of a file, so it reports a packet that was
//! captured at two points as a retransmission. Select a point before the analysis:
//!
//! ```sh
//! tshark -r run.pcapng -Y 'frame.interface_name == "down.deq"' -w deq.pcapng
//! ```

pub mod analysis;
mod endpoints;
pub mod headers;
mod numbers;
pub mod reader;
mod synth;
mod writer;

pub use analysis::Analysis;
pub use endpoints::{Endpoints, SERVER_PORT, address};
pub use numbers::{Connection, Role, WINDOW_SCALE};
pub use synth::{AccurateEcn, Protocol, Synth, Tcp};
pub use writer::{
    Direction, Interface, LinkPoints, LinkType, Point, Record, SNAP_LENGTH, Section, Verdict,
    Writer,
};
