//! Live runs: real packets pass through the queues of the catalogue, between programs on one machine.
//!
//! A run creates two network namespaces, client and server, each with a TUN device, and passes the packets between them
//! through the links of a plan, which are the links and queues of the simulator, in real time. Programs and built-in
//! applications use the TCP of the host kernel.
//!
//! * `frame`, `network`, `timers`: the datapath as a sans-IO core; time and packets are inputs.
//! * `clock`, `datapath`: the thread that reads, waits and writes.
//! * `sys`, `netlink`, `namespace`, `space`, `program`: namespaces, devices and processes. `sys` is the only module with
//!   `unsafe`; `space` counts the packets that the hosts discard.
//! * `internet`, `forwarding`, `nftables`: the way from the server's namespace to the network of the machine.
//! * `control`, `view`: changes during a run, and what it shows meanwhile.
//! * `bridge`, `ethernet`: two interfaces of the machine in place of the namespaces.
//! * `router`, `routed`: two networks of the machine in place of the namespaces.
//! * `interop`, `impairment`, `cross`, `traces`: the scenarios of the QUIC network simulator between two networks.
//! * `connections`, `sock_diag`: the TCP connections of programs, which the kernel lists.
//! * `backend`: the backend `live`.

#![cfg(target_os = "linux")]

mod backend;
mod bridge;
mod capture;
mod clock;
mod connections;
mod control;
mod cross;
mod datapath;
mod error;
mod ethernet;
mod flows;
mod forwarding;
mod frame;
mod hosts;
mod impairment;
mod internet;
mod interop;
mod kept;
mod namespace;
mod netlink;
mod network;
mod nftables;
mod observed;
mod program;
mod routed;
mod router;
mod run;
mod sock_diag;
mod space;
mod sys;

#[cfg(any(test, fuzzing))]
pub mod testing;
mod timers;
mod traces;
mod validity;
mod view;

pub use backend::Live;
pub use bridge::Interfaces;
pub use control::{Changes, Control, Settings};
pub use cross::Cross;
pub use error::LiveError;
pub use impairment::{Blackhole, Chance, Impairment, Rebind};
pub use interop::{Interop, InteropError};
pub use namespace::enter_user_namespace;
pub use router::Networks;
pub use run::{BUFFER_BYTES, Ended, Options, Reach, Routing, Watcher, run};
pub use view::{FlowView, LinkView, Shows};

/// The name of the backend.
pub(crate) const NAME: &str = "live";

/// The release of the kernel.
pub(crate) fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}
