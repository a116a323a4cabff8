//! Every congestion control over TCP and over QUIC while packets are lost at random, at 100 Mbit/s and 50 ms.
//!
//! `make reference` compares what the test prints with the table of `docs/validation/tcp.md`.

mod path;
mod quic_path;

use quic_path::connection::{Connection, Transfer};
use quic_path::{To, Way};
use sojourn_net::{Duration, Rate, Rng};
use sojourn_transport::quic::Params;
use sojourn_transport::{CcKind, MSS};

const RTT: Duration = Duration::from_millis(50);
const MBIT: f64 = 100.0;
const LINK: Rate = Rate::mbit(100);
/// In thousandths.
const LOSSES: [u64; 5] = [1, 3, 10, 30, 100];
/// Losses of a run, so that one run comes near the mean.
const EPISODES: u64 = 300;
/// A run of a control that fills the link.
const LONG: Duration = Duration::from_secs(30);

fn float(n: u64) -> f64 {
    f64::from(u32::try_from(n).expect("less than 2^32"))
}

/// What a control is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    /// Reno's halving and its growth of a segment per round trip: without a queue, Vegas, LEDBAT, DCTCP and Prague
    /// do the same, and so does CUBIC in windows this small (RFC 9438 section 4.3).
    Reno,
    /// Reno's, or half the growth: Linux's `HighSpeed` TCP counts acknowledgements, of two segments each.
    HighSpeed,
    /// The rate of the link (Cardwell et al. 2016, figure 8: up to 15 % lost).
    Rate,
    /// The rate of the link, less what cruising yields after a loss, while less than 2 % are lost
    /// (draft-ietf-ccwg-bbr-06 section 2.8, `LossThresh`); then between Reno's and that.
    BoundedRate,
}

const fn law(cc: CcKind) -> Law {
    match cc {
        CcKind::Bbr => Law::Rate,
        CcKind::Bbr3 => Law::BoundedRate,
        CcKind::HighSpeed => Law::HighSpeed,
        _ => Law::Reno,
    }
}

impl Law {
    /// The least and the largest goodput in Mbit/s, with `loss` of segments of `bytes` lost.
    ///
    /// Losses are repaired without the time-outs of Padhye's model, but not all without any, so that the rate lies
    /// between that model's and Mathis's. The margins beside both, and the 0.75 of `BoundedRate`, which the draft
    /// does not state, were set after the rates were seen.
    fn range(self, loss: f64, bytes: f64) -> (f64, f64) {
        let reno = (0.8 * padhye(loss, 1.0, bytes), 1.2 * mathis(loss, bytes));
        let link = MBIT * (1.0 - loss);
        match self {
            Self::Reno => reno,
            Self::HighSpeed => (0.8 * padhye(loss, 2.0, bytes), reno.1),
            Self::Rate => (0.85 * link, link),
            Self::BoundedRate if loss < 0.02 => (0.75 * link, link),
            Self::BoundedRate => (reno.0, 0.75 * link),
        }
    }
}

/// The rate of Mathis et al. 1997, in Mbit/s: no time-outs.
fn mathis(loss: f64, bytes: f64) -> f64 {
    bytes * 8e-6 * (1.5 / loss).sqrt() / RTT.as_secs_f64()
}

/// The rate of Padhye et al. 1998, equation 30, in Mbit/s, when an acknowledgement grows the window as one of
/// `per_ack` segments does there.
fn padhye(loss: f64, per_ack: f64, bytes: f64) -> f64 {
    let timeout = 0.2 + RTT.as_secs_f64();
    let in_timeouts = (3.0 * (3.0 * per_ack * loss / 8.0).sqrt()).min(1.0);
    let in_timeouts = in_timeouts * loss * (1.0 + 32.0 * loss * loss);
    let trips = RTT.as_secs_f64() * (2.0 * per_ack * loss / 3.0).sqrt();
    bytes * 8e-6 / (trips + timeout * in_timeouts)
}

/// How many packets, and the time they may take.
fn length(cc: CcKind, loss: u64) -> (u64, Duration) {
    match law(cc) {
        Law::Reno | Law::HighSpeed => (EPISODES * 1_000 / loss, Duration::from_secs(100_000)),
        Law::Rate | Law::BoundedRate => (u32::MAX.into(), LONG),
    }
}

/// Goodput over TCP, in Mbit/s.
fn over_tcp(cc: CcKind, loss: u64) -> f64 {
    let (segments, time) = length(cc, loss);
    let mut path = path::Path::new(cc, RTT, LINK);
    let mut rng = Rng::new(1).fork("loss");
    let mut drops = |_| rng.below(1_000) < loss;
    while path.offered() < segments && path.now.as_nanos() < time.as_nanos() {
        path.step(&mut drops);
    }
    float(path.receiver.delivered_bytes() / 1_000) * 0.008 / path.now.as_secs_f64()
}

/// Goodput over QUIC, in Mbit/s.
fn over_quic(cc: CcKind, loss: u64) -> f64 {
    let (packets, time) = length(cc, loss);
    let way = Way::of_delay(Duration::from_nanos(RTT.as_nanos() / 2));
    let to_client = Way {
        loss,
        rate: Some(LINK),
        ..way.clone()
    };
    let transfer = Transfer {
        request: 400,
        response: packets * u64::from(Params::default().max_datagram),
    };
    let params = Params {
        cc: cc.into(),
        ..Params::default()
    };
    let path = quic_path::Path::new(way, to_client, 1);
    let mut connection = Connection::open(&params, transfer, path);
    connection.run(time);
    assert!(connection.path.dropped[To::Client as usize] > 0);
    float(connection.client.delivered_bytes() / 1_000) * 0.008 / connection.now.as_secs_f64()
}

#[test]
fn goodput_under_random_loss_follows_the_law_of_the_control() {
    println!("\n# random_loss\n| control | lost, % | over TCP, Mbit/s | over QUIC, Mbit/s |");
    println!("|---|---|---|---|");
    let mut failed = Vec::new();
    for cc in CcKind::ALL {
        for loss in LOSSES {
            let part = float(loss) / 1_000.0;
            let [tcp, quic] = [over_tcp(cc, loss), over_quic(cc, loss)];
            println!("| `{cc}` | {} | {tcp:.2} | {quic:.2} |", 100.0 * part);
            let datagram = f64::from(Params::default().max_datagram);
            for (seen, bytes) in [(tcp, MSS.into()), (quic, datagram)] {
                let range = law(cc).range(part, bytes);
                if !(range.0..range.1).contains(&seen) {
                    failed.push((cc, loss, seen, range));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
