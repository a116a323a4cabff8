//! The receiving end of a TCP connection.
//!
//! # Source
//!
//! Linux 6.1, from measurements and facts (`docs/explanation/tcp.md`): RFC 9293 §3.8.6.3 and RFC 5681 §4.2
//! (delayed ACKs), RFC 2018 and 2883 (SACK, DSACK), RFC 7323 §4.3 (timestamp echo), RFC 3168
//! §6.1.3 (ECN echo); quick ACKs, ACK compression and window growth as in Linux.
//!
//! # Layout
//!
//! | file | content |
//! |---|---|
//! | `connection` | [`Receiver`]: a set of the parts below, and the steps that connect them |
//! | `ack_schedule` | when data is acknowledged |
//! | `feedback` | ECN: what acknowledgements report of CE |
//! | `out_of_order` | segments that wait for a hole to be filled, and SACK blocks |
//! | `window` | how the advertised window grows |

mod ack_schedule;
mod connection;
mod feedback;
mod out_of_order;
mod window;

pub use connection::{Arrival, Receiver};
