//! What is compared of a transfer.

use sojourn_net::{Duration, Instant};

use crate::network::{Sent, To};

/// A request and a response on stream 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// Bytes that the client sends.
    pub(crate) request: u64,
    /// Bytes that the server sends once it has the request.
    pub(crate) response: u64,
}

/// How a transfer went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// When the client could send its request.
    pub(crate) connected: Option<Instant>,
    /// When the client had all of the response.
    pub(crate) completed: Option<Instant>,
    pub(crate) sent: Vec<Sent>,
    /// Packets that the server declared lost.
    pub(crate) lost: u64,
    /// The server's window in datagrams, whenever it changed.
    pub(crate) windows: Vec<(Instant, f64)>,
}

impl Outcome {
    pub(crate) fn note_window(&mut self, at: Instant, window: f64) {
        if self
            .windows
            .last()
            .is_none_or(|&(_, last)| last.to_bits() != window.to_bits())
        {
            self.windows.push((at, window));
        }
    }

    /// Mean of the server's window over the transfer.
    pub(crate) fn mean_window(&self) -> f64 {
        let end = self.completed.unwrap_or(Instant::MAX);
        let mut area = 0.0;
        let ends = self.windows.iter().skip(1).map(|w| w.0).chain([end]);
        for (&(from, window), to) in self.windows.iter().zip(ends) {
            area += window * to.min(end).saturating_since(from).as_secs_f64();
        }
        let from = self.windows.first().map_or(end, |w| w.0);
        area / end.saturating_since(from).as_secs_f64()
    }

    /// Datagrams to an end.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    pub(crate) fn count(&self, to: To) -> f64 {
        self.sent.iter().filter(|sent| sent.to == to).count() as f64
    }

    /// When the first datagram to an end left that left after `after`, in ms.
    pub(crate) fn first_after(&self, to: To, after: Duration) -> Option<f64> {
        let after = Instant::ZERO + after;
        let mut sent = self
            .sent
            .iter()
            .filter(|sent| sent.to == to && sent.at > after);
        sent.next().map(|sent| sent.at.as_secs_f64() * 1e3)
    }
}
