//! The datapath between pairs of sockets, which are read and written like TUN devices.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sojourn_scenario::Scenario;

use super::*;
use crate::observed::Observers;

/// A port, and the socket of its host.
fn port() -> (Port, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    (Port::Tun(near), far)
}

/// A UDP datagram of 1,000 bytes with IPv4, numbered by its identification.
fn packet(number: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 3, 232, 0, number, 0, 0, 64, 17, 0, 0];
    packet.extend([100, 64, 0, 2, 100, 64, 0, 1]);
    packet.resize(1_000, 0);
    packet
}

/// Offers packets to the link `down` of this rate, with this many buffers, for `ms`; returns the counters and the
/// numbers of the packets that reach the client.
fn run(rate: &str, buffers: usize, packets: u8, ms: u64) -> (Counted, Vec<u8>) {
    let text = format!(
        "duration = \"1s\"\nwarmup = \"0s\"\nrtt = \"0ms\"\n\
         [links.down]\nrate = \"{rate}\"\nqdisc = \"pfifo\"\n\
         [links.up]\nrate = \"1gbit\"\nqdisc = \"pfifo\"\n\
         [[traffic]]\ntype = \"udp\"\nrate = \"1mbit\"\ndirection = \"down\"\n"
    );
    let plan = Scenario::from_toml(&text).unwrap().plan(0, 0);
    let config = Arc::new(plan.config.clone());
    let network = Network::new(config, Observers::default(), 2_048, buffers).unwrap();
    let ((client, at_client), (server, at_server)) = (port(), port());
    for number in 0..packets {
        rustix::io::write(&at_server, &packet(number)).unwrap();
    }
    let datapath = Datapath::new(
        Clock::start(),
        network,
        [&client, &server],
        Flows::new(&plan),
    );
    let never = AtomicBool::new(false);
    let moved = datapath
        .run(Instant::from_millis(ms), &never, None)
        .unwrap();
    let mut buffer = [0; 2_048];
    let numbers = std::iter::from_fn(|| {
        let read = rustix::io::read(&at_client, &mut buffer[..]).ok()?;
        (read > 0).then_some(buffer[5])
    });
    (moved.counted, numbers.collect())
}

#[test]
fn packets_arrive_in_their_order_if_there_are_buffers_for_all_of_them() {
    let (counted, numbers) = run("1gbit", 256, 40, 100);
    assert!(numbers.into_iter().eq(0..40));
    assert_eq!((counted.read, counted.lost), (40, 0));
    assert!(counted.refused.iter().all(|side| side.count == 0));
}

#[test]
fn packets_without_a_free_buffer_are_lost_and_counted() {
    // A packet takes 0.8 s: all that are read wait at the link.
    let (counted, numbers) = run("10kbit", 8, 20, 50);
    assert_eq!(numbers, [0_u8; 0]);
    assert_eq!((counted.read, counted.lost), (8, 12));
}
