//! QUIC, sans-IO: one end of a connection.
//!
//! # Source
//!
//! RFC 9000 (transport), RFC 9002 (loss detection and congestion control), from RFC 9001 the
//! visible part of TLS: which flight goes in which packets, and when keys become available and are
//! discarded; acknowledgement frequency after draft-ietf-quic-ack-frequency. Cross-checked with the crate quinn-proto,
//! see `docs/explanation/quic.md`.
//!
//! # Layout
//!
//! | file | content |
//! |---|---|
//! | `params` | the configuration |
//! | `endpoint` | the state of one end and its interface |
//! | `input`, `output` | received datagrams; assembly of datagrams |
//! | `recovery`, `timers` | acknowledgements and loss detection; timers |
//! | `congestion`, `rtt` | window and pacing; round-trip time |
//! | `space`, `received` | a packet-number space; its received packets |
//! | `streams` | stream data and flow control |
//! | `wire`, `sizes` | the form of a datagram; sizes of fields |
//!
//! # Model
//!
//! Both ends are an [`Endpoint`]; either may write to a stream. TLS messages have a size and no
//! content: `ClientHello`, `ServerHello` in Initial packets, the certificate flight in Handshake
//! packets, the client's `Finished`. Application packets are sent once their keys would be available;
//! packets that arrive before their keys are discarded.
//!
//! # Differences from RFC 9000 and RFC 9002
//!
//! | here | RFC | effect |
//! |---|---|---|
//! | flow-control windows are constant | a receiver may tune them | – |
//! | no Retry, version negotiation, migration, key update, path MTU discovery, stateless reset | specified | datagrams have 1200 B until the handshake is confirmed, then a given size |
//! | no `NEW_CONNECTION_ID`, `NEW_TOKEN`, session ticket | sent after the handshake | one or two packets fewer |
//! | ACK policy agreed beforehand | `ACK_FREQUENCY` frames | none once the first has arrived |
//! | counts of CE alone, which are believed | of ECT(0) and ECT(1) too, to validate them | none on paths that keep ECN |
//! | counts of 1-RTT packets alone; datagrams with Initial or Handshake packets are Not-ECT | of each space | a queue that marks drops these, as it does a SYN, and one with an L4S queue sends them through the other |

mod congestion;
mod endpoint;
mod input;
mod output;
mod params;
mod received;
mod recovery;
mod rtt;
mod sizes;
mod space;
mod streams;
mod timers;
mod wire;

use sojourn_net::Comparison;

pub use endpoint::{Endpoint, Role, State};
pub use params::{
    FlowControl, LARGEST_CERTIFICATE, LARGEST_DATAGRAM, LONGEST_ACK_DELAY, Params,
    SMALLEST_DATAGRAM, largest_datagram,
};
pub use received::AckPolicy;
pub use wire::Datagram;

/// What the behaviour of QUIC was compared with.
pub const COMPARISON: Comparison = Comparison::Partial(
    "quinn-proto 0.11: handshake, acknowledgements, loss recovery, Reno and CUBIC",
);
