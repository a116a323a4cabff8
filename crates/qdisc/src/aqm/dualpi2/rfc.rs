//! The controller and the marking of RFC 9332, Appendix A.2, with its names.

use sojourn_net::{Duration, Ecn};

use super::params::DualPi2Params;
use super::{Band, Leaving, Verdict};
use crate::contract::MarkReason;

#[derive(Clone, Debug)]
pub(super) struct Rfc {
    /// In seconds, as the delays of the controller.
    target: f64,
    /// In 1/s.
    alpha: f64,
    /// In 1/s.
    beta: f64,
    k: f64,
    p_cmax: f64,
    /// The base probability may rise so far.
    most: f64,
    drop_on_overload: bool,
    min_th: Duration,
    range: Duration,
    th_len: u32,

    /// `p'`, the base probability.
    p: f64,
    p_cl: f64,
    p_c: f64,
    prevq: f64,
    /// What `recur` has counted up, for L and for C.
    l_count: f64,
    c_count: f64,
    /// The same for packets in a queue that is not that of their ECN field.
    nqb_count: f64,
    redirected_count: f64,
}

impl Rfc {
    pub(super) fn new(params: &DualPi2Params) -> Self {
        let k = f64::from(params.coupling_factor);
        let (alpha, beta) = params.gains();
        Self {
            target: params.target.as_secs_f64(),
            alpha,
            beta,
            k,
            p_cmax: f64::min(1.0 / (k * k), 1.0),
            most: if params.drop_on_overload {
                1.0
            } else {
                1.0 / k
            },
            drop_on_overload: params.drop_on_overload,
            min_th: params.step_thresh(),
            range: params.range(),
            th_len: params.th_len.unwrap_or(1),
            p: 0.0,
            p_cl: 0.0,
            p_c: 0.0,
            prevq: 0.0,
            l_count: 0.0,
            c_count: 0.0,
            nqb_count: 0.0,
            redirected_count: 0.0,
        }
    }

    /// The parameters of `next`; the state stays.
    pub(super) fn change(&mut self, next: &Self) {
        *self = Self {
            p: self.p,
            p_cl: self.p_cl,
            p_c: self.p_c,
            prevq: self.prevq,
            l_count: self.l_count,
            c_count: self.c_count,
            ..next.clone()
        };
    }

    /// Figure 7: decides about a packet that is about to leave.
    #[inline]
    pub(super) fn judge(&mut self, pkt: &Leaving) -> Verdict {
        if pkt.band == Band::Classic {
            return self.judge_classic(pkt.ecn);
        }
        let native = if self.p_cl >= 1.0 {
            if self.drop_on_overload && recur(&mut self.l_count, self.p_c) {
                return Verdict::Drop;
            }
            0.0
        } else {
            self.native(pkt.held, pkt.waited)
        };
        if !recur(&mut self.l_count, native.max(self.p_cl)) {
            Verdict::Pass
        } else if native > self.p_cl {
            Verdict::Mark(MarkReason::CeThreshold)
        } else {
            Verdict::Mark(MarkReason::Aqm)
        }
    }

    /// Decides about a packet of the C queue. L4S traffic is there after a sanction alone (section 2.5.1.1).
    #[inline]
    fn judge_classic(&mut self, ecn: Ecn) -> Verdict {
        let overload = self.p_c >= self.p_cmax;
        if ecn == Ecn::Ect1 && !overload {
            return if recur(&mut self.redirected_count, self.p_cl) {
                Verdict::Mark(MarkReason::Aqm)
            } else {
                Verdict::Pass
            };
        }
        if !recur(&mut self.c_count, self.p_c) {
            Verdict::Pass
        } else if ecn != Ecn::NotEct && !overload {
            Verdict::Mark(MarkReason::Aqm)
        } else {
            Verdict::Drop
        }
    }

    /// Decides about NQB traffic that is not L4S (section 2.5.1.1): the square of the base probability that would give
    /// L its signals, as for Classic traffic.
    pub(super) fn judge_nqb(&mut self, pkt: &Leaving) -> Verdict {
        let native = self.native(pkt.held, pkt.waited) / self.k;
        let base = self.p.max(native);
        if !recur(&mut self.nqb_count, base * base) {
            return Verdict::Pass;
        }
        let reason = if native > self.p {
            MarkReason::CeThreshold
        } else {
            MarkReason::Aqm
        };
        if pkt.ecn == Ecn::NotEct || self.p_c >= self.p_cmax {
            Verdict::Drop
        } else {
            Verdict::Mark(reason)
        }
    }

    /// The probability of L's own threshold, with `held` packets in L.
    #[inline]
    pub(super) fn native(&self, held: usize, delay: Duration) -> f64 {
        if held > self.th_len as usize {
            self.laqm(delay)
        } else {
            0.0
        }
    }

    /// Figure 5: the probability of L's own threshold.
    #[inline]
    fn laqm(&self, qdelay: Duration) -> f64 {
        if qdelay >= self.min_th + self.range {
            1.0
        } else if qdelay > self.min_th {
            let above = qdelay.saturating_sub(self.min_th);
            above.as_secs_f64() / self.range.as_secs_f64()
        } else {
            0.0
        }
    }

    /// Figure 8: moves the base probability by the longer waiting time.
    pub(super) fn update(&mut self, delay: Duration) {
        let curq = delay.as_secs_f64();
        let p = self.p + self.alpha * (curq - self.target) + self.beta * (curq - self.prevq);
        self.p = p.clamp(0.0, self.most);
        self.p_cl = (self.k * self.p).min(1.0);
        self.p_c = self.p * self.p;
        self.prevq = curq;
    }

    pub(super) fn probability(&self) -> f64 {
        self.p
    }

    /// `p_C` and `p_CL`.
    pub(super) fn coupled(&self) -> (f64, f64) {
        (self.p_c, self.p_cl)
    }
}

#[cfg(test)]
impl Rfc {
    pub(super) fn set_for_test(&mut self, p: f64) {
        self.p = p;
        self.p_cl = (self.k * p).min(1.0);
        self.p_c = p * p;
    }
}

/// Figure 4: true as often as `likelihood` says, evenly spaced.
#[inline]
fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    let reached = *count > 1.0;
    if reached {
        *count -= 1.0;
    }
    reached
}
