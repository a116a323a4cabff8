//! The ACK filter: finds acknowledgements that a later one makes redundant.

use sojourn_net::{Packet, TcpHeader, Transport};

use super::options::AckFilter;
use crate::parts::pool::{List, Pool};

const ECN: u8 = TcpHeader::ECE | TcpHeader::CWR;

/// The place in `pool` of an acknowledgement of `list` that can be dropped, since the newest packet
/// says it all.
///
/// Returns the one nearest to the head if there are at least two; [`AckFilter::Aggressive`] needs only
/// one if the newest packet directly follows it.
pub(super) fn superfluous<P: Packet>(
    pool: &Pool<P>,
    list: &List,
    filter: AckFilter,
) -> Option<u32> {
    let newest = pool.newest(list)?;
    let (flow, Transport::Tcp(news)) = (newest.flow(), newest.transport()) else {
        return None;
    };
    if news.flags & (TcpHeader::ACK | TcpHeader::SYN) != TcpHeader::ACK {
        return None;
    }
    let older = usize::try_from(list.packets()).unwrap_or_default() - 1;
    let mut eligible: Option<(u32, u8, usize)> = None;
    let mut found = 0_i64;
    for (nth, (at, pkt)) in pool.iter(list).take(older).enumerate() {
        let Transport::Tcp(ack) = pkt.transport() else {
            continue;
        };
        if pkt.flow() != flow {
            continue;
        }
        // Congestion was reported or answered between the two: both must arrive.
        if eligible.is_some_and(|(_, ecn, _)| ecn != ack.flags & ECN) {
            eligible = None;
            found -= 1;
        }
        if !is_covered(&ack, &news) {
            continue;
        }
        let first = *eligible.get_or_insert((at, ack.flags & ECN, nth));
        if found > 0 {
            return Some(first.0);
        }
        found += 1;
    }
    let (at, ecn, nth) = eligible?;
    let alone = filter == AckFilter::Aggressive && nth + 1 == older && ecn == news.flags & ECN;
    alone.then_some(at)
}

/// Whether `ack` is a pure acknowledgement that `news` makes superfluous.
fn is_covered(ack: &TcpHeader, news: &TcpHeader) -> bool {
    let pure = ack.flags & !ECN == TcpHeader::ACK && ack.payload == 0;
    let (clock, echo) = news.timestamps.unwrap_or_default();
    let older = ack
        .timestamps
        .is_none_or(|(own, peer)| !after(own, clock) && !after(peer, echo));
    if !pure || !older || after(ack.ack, news.ack) {
        return false;
    }
    match compare_sacks(ack, news) {
        Sacks::More => true,
        // The same number and the same blocks: a duplicate, which the sender counts.
        Sacks::Same => ack.ack != news.ack,
        Sacks::Lost => false,
    }
}

/// What the blocks of a later acknowledgement are to those of an earlier one.
#[derive(PartialEq, Eq)]
enum Sacks {
    More,
    Same,
    /// Something would be lost, or a duplicate is reported.
    Lost,
}

fn compare_sacks(ack: &TcpHeader, news: &TcpHeader) -> Sacks {
    let blocks = |header: &TcpHeader| {
        let sacks = header.sacks.into_iter();
        sacks.filter(|(start, end)| start != end)
    };
    let length = |header: &TcpHeader| -> u64 {
        blocks(header)
            .map(|(start, end)| u64::from(end.wrapping_sub(start)))
            .sum()
    };
    for (start, end) in blocks(ack) {
        let duplicate = after(ack.ack, start);
        let kept = blocks(news).any(|(s, e)| !after(s, start) && !after(end, e));
        if duplicate || !kept {
            return Sacks::Lost;
        }
    }
    if length(news) > length(ack) {
        Sacks::More
    } else {
        Sacks::Same
    }
}

/// Whether `a` comes after `b`, modulo 2^32.
const fn after(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) >= 1 << 31
}
