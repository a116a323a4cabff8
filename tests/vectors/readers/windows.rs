//! Compares congestion windows with those of the kernel; `../README.md` specifies the format.

/// From when on, in microseconds; window, and threshold of slow start (`None`: not set yet), in segments.
pub type Window = (u64, u64, Option<u64>);

/// Returns the first difference of what was in force here from the `window` rows of a file, up to a time.
///
/// `ours` has a row for each change, in order of time.
pub fn check(kernel: &[Window], ours: &[Window], until: u64) -> Option<String> {
    let text = |(_, cwnd, ssthresh): Window| {
        format!("window {cwnd} with threshold {}", ssthresh.unwrap_or(0))
    };
    for row in kernel.iter().take_while(|row| row.0 <= until) {
        // The kernel was sampled every millisecond; its times are accurate to this.
        let tolerance = 400 + row.0 / 1_000;
        let begin = row.0.saturating_sub(1_000 + tolerance);
        let first = ours.iter().rposition(|window| window.0 <= begin);
        let since = ours[first.unwrap_or(0)..].iter();
        let in_force = since.take_while(|window| window.0 <= row.0 + tolerance);
        if !in_force.clone().any(|w| (w.1, w.2) == (row.1, row.2)) {
            let (expected, got) = (
                text(*row),
                text(in_force.last().copied().unwrap_or_default()),
            );
            return Some(format!("at {} us: expected {expected}, got {got}", row.0));
        }
    }
    None
}
