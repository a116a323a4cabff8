//! The sending end of a TCP connection.
//!
//! # Source
//!
//! Linux 6.1, from measurements and facts (`docs/explanation/tcp.md`): RFC 9293 handshake, RFC 6675-style
//! scoreboard, RFC 8985 (RACK-TLP), RFC 6937 (PRR), RFC 5682 (F-RTO), RFC 3522 and 3708 (Eifel,
//! DSACK) undo, RFC 3168 and 8511 (ECN), RFC 2861 (idle restart).
//!
//! # Layout
//!
//! [`Sender`] (in `connection`) is a set of parts. Each part lives in a file of `state`, keeps its
//! fields private and knows none of the others. The remaining files are the steps that connect
//! them:
//!
//! | file | step |
//! |---|---|
//! | `handshake` | opening the connection, or joining the other half of a two-way connection |
//! | `ack`, `sack` | the order of steps for each acknowledgement |
//! | `plain_ack` | the same for an acknowledgement that reports nothing but progress, as most do |
//! | `loss_detection` | RACK: which segments are lost |
//! | `recovery` | congestion states: entering, reducing, undoing, leaving |
//! | `ecn` | the response to CE |
//! | `idle`, `validate` | the window of a connection that does not use it |
//! | `output`, `pacing` | what is sent, and when |
//! | `timers`, `persist` | what happens when a timer expires |
//! | `model` | model-based controllers and their delivery-rate samples |

mod ack;
mod connection;
mod ecn;
mod findings;
mod handshake;
mod idle;
mod loss_detection;
mod model;
mod output;
mod pacing;
mod params;
mod persist;
mod plain_ack;
mod recovery;
mod sack;
mod state;
mod timers;
mod validate;

pub use connection::{Sender, State};
pub use params::{AfterIdle, OnCe, SenderParams};
