//! What limits a connection, as `tcp_info` of Linux counts it in `tcpi_busy_time` and `tcpi_rwnd_limited`.

use super::Sender;
use super::state::recovery::Phase;
use crate::limit::Limit;

impl Sender {
    /// Why no more data is sent now. Only of an established connection that has sent what it may.
    #[inline]
    pub fn limit(&self) -> Limit {
        if self.recovery.phase() >= Phase::Recovery {
            Limit::Recovery
        } else if self.buffer.unsent() == 0 {
            Limit::Application
        } else if !self.buffer.has_room() {
            Limit::ReceiveWindow
        } else if self.departure().is_some() && self.board.in_flight() < self.window.cwnd {
            Limit::Pacing
        } else if self.nagle && self.board.in_flight() < self.window.cwnd && self.holds_short() {
            Limit::Application
        } else {
            Limit::CongestionWindow
        }
    }
}
