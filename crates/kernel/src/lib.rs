//! The Linux kernel as a place for runs: its queues, its TCP and its `netem`, in virtual time.
//!
//! A run boots a User-Mode Linux with `time-travel=inf-cpu`: the clock of the guest jumps to the next timer when the
//! guest is idle and stands still while it computes, so that the load of the machine cannot change a result. Several
//! runs at once do not disturb each other either.
//!
//! The guest has a file system of its own: one program of ours (`guest/guest.c`), `tc` and `ip`. It sees the directory
//! of its run and no other file of the host. The program builds this network from the plan, without the nodes that the
//! plan does not need:
//!
//! ```text
//! c ── e ── r ── w ── d ── s      network namespaces, veth, MTU 1500
//! │    │    │    │    │    └ servers
//! │    │    │    │    └ the delays of the paths, in both directions
//! │    │    │    └ the wire behind the link towards the servers: its rate, delay and loss
//! │    │    └ both links: the rate by htb, and the queue; towards the servers and towards the clients
//! │    └ the wire behind the link towards the clients
//! └ clients
//! ```
//!

mod backend;
mod folder;
mod instructions;
mod machine;
mod network;
mod queues;
mod results;
mod run_folder;
mod support;
mod tap;

pub use backend::LinuxKernel;
pub use folder::{Folder, Kernel};
