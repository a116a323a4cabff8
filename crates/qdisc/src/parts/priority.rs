//! Priorities of packets, and the band of each.

/// The priority of the packets of a router itself, such as ARP (`TC_PRIO_CONTROL`).
pub(crate) const CONTROL: usize = 7;

/// The band of each priority in `pfifo_fast`, and by default in `prio` and `fq`.
pub(crate) const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// The priority of a packet of this class; what the kernel makes of the byte that was once called
/// type of service.
///
/// Two bits of that type decide: the third and the second lowest of the DSCP.
pub(crate) fn priority(dscp: u8) -> usize {
    const BEST_EFFORT: usize = 0;
    const BULK: usize = 2;
    const INTERACTIVE: usize = 6;
    const INTERACTIVE_BULK: usize = 4;
    [BEST_EFFORT, BULK, INTERACTIVE, INTERACTIVE_BULK][usize::from(dscp >> 1 & 0b11)]
}

/// The band of each DSCP.
pub(crate) fn bands(priomap: &[u8; 16]) -> [u8; 64] {
    let mut bands = [0; 64];
    for (dscp, band) in (0..).zip(&mut bands) {
        *band = priomap[priority(dscp)];
    }
    bands
}
