//! Evidence that a reduction was unnecessary (RFC 3522, RFC 3708).

use std::num::NonZeroU32;

use crate::clock::before;

/// The reduction that may be undone, and the evidence for it.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    episode: Option<Episode>,
    /// The threshold to return to; `None` if the reduction was justified.
    prior_ssthresh: Option<NonZeroU32>,
    /// Timestamp of the first retransmission of the episode.
    first_resend: Option<NonZeroU32>,
}

/// A reduction that may yet prove to be unnecessary.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// The first unacknowledged segment when it began.
    marker: u32,
    /// Retransmissions that no DSACK has shown to be spurious; `None`: nothing was retransmitted.
    unproven: Option<u32>,
}

impl Undo {
    pub(crate) const fn new() -> Self {
        Self {
            episode: None,
            prior_ssthresh: None,
            first_resend: None,
        }
    }

    /// An episode begins at `una` with `resent` retransmissions in flight.
    pub(crate) fn begin(&mut self, una: u32, resent: u32) {
        self.episode = Some(Episode {
            marker: una,
            unproven: (resent > 0).then_some(resent),
        });
    }

    /// The episode is over, undone or not.
    pub(crate) const fn end(&mut self) {
        self.episode = None;
    }

    /// Whether there is a reduction that may be undone.
    pub(crate) const fn has_episode(&self) -> bool {
        self.episode.is_some()
    }

    pub(crate) const fn prior_ssthresh(&self) -> Option<NonZeroU32> {
        self.prior_ssthresh
    }

    pub(crate) const fn save_ssthresh(&mut self, ssthresh: u32) {
        self.prior_ssthresh = NonZeroU32::new(ssthresh);
    }

    pub(crate) const fn forget_ssthresh(&mut self) {
        self.prior_ssthresh = None;
    }

    /// A lost segment is retransmitted with timestamp `stamp`.
    pub(crate) fn on_resent(&mut self, stamp: u32) {
        self.first_resend = self.first_resend.or(NonZeroU32::new(stamp));
        if let Some(episode) = &mut self.episode {
            episode.unproven = Some(episode.unproven.unwrap_or(0) + 1);
        }
    }

    /// No retransmission is outstanding any more.
    pub(crate) const fn forget_first_resend(&mut self) {
        self.first_resend = None;
    }

    /// A DSACK of `count` segments up to `end`. Only retransmissions of this episode are evidence.
    pub(crate) fn on_dsack(&mut self, end: u32, count: u32) {
        if let Some(Episode {
            marker,
            unproven: Some(unproven),
        }) = &mut self.episode
            && end > *marker
        {
            *unproven = unproven.saturating_sub(count);
        }
    }

    /// Whether a DSACK reported every retransmission of the episode as a duplicate.
    pub(crate) fn all_spurious(&self) -> bool {
        self.episode
            .is_some_and(|episode| episode.unproven == Some(0))
    }

    /// Whether the echoed timestamp is older than the first retransmission: then the original was
    /// delivered (RFC 3522).
    pub(crate) fn echo_predates_resend(&self, echo: u32) -> bool {
        self.first_resend
            .is_some_and(|stamp| before(echo, stamp.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_spurious_once_each_retransmission_was_reported_a_duplicate() {
        let mut undo = Undo::new();
        undo.begin(10, 0);
        assert!(undo.has_episode() && !undo.all_spurious());
        undo.on_resent(7);
        undo.on_resent(8);
        undo.on_dsack(11, 1);
        // Below the marker: of an earlier episode.
        undo.on_dsack(10, 1);
        assert!(!undo.all_spurious());
        undo.on_dsack(12, 1);
        assert!(undo.all_spurious());
        undo.end();
        assert!(!undo.all_spurious());
    }

    #[test]
    fn the_first_retransmission_of_an_episode_dates_it() {
        let mut undo = Undo::new();
        assert!(!undo.echo_predates_resend(0));
        undo.on_resent(100);
        undo.on_resent(200);
        assert!(undo.echo_predates_resend(99));
        assert!(!undo.echo_predates_resend(100));
        undo.forget_first_resend();
        assert!(!undo.echo_predates_resend(99));
    }
}
