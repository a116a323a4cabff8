//! Impairments on the wire behind a link: loss, duplication and jitter.

use sojourn_net::{Duration, Ecn};

/// A wire that is not perfect.
#[derive(Clone, Debug, PartialEq)]
pub struct LineConfig {
    /// Which packets do not arrive.
    pub loss: Loss,
    /// The share of packets that arrive twice, 0 to 1.
    pub duplicate: f64,
    /// How the delay varies.
    pub jitter: Option<Jitter>,
    /// Packets that are lost besides: their numbers from 1, ascending.
    pub drops: Vec<u64>,
    /// What it does to the IP ECN field.
    pub ecn: Option<EcnRewrite>,
}

impl LineConfig {
    /// All packets arrive, once, after the same delay.
    pub const PERFECT: Self = Self {
        loss: Loss::None,
        duplicate: 0.0,
        jitter: None,
        drops: Vec::new(),
        ecn: None,
    };

    /// The key that is out of its range, and the rule.
    pub fn fault(&self) -> Option<(&'static str, String)> {
        let share = |x: &f64| (0.0..=1.0).contains(x);
        let losses = match &self.loss {
            Loss::None => true,
            Loss::Random(p) => share(p),
            Loss::GilbertElliott(chain) => {
                let GilbertElliott {
                    to_bad,
                    to_good,
                    in_bad,
                    in_good,
                } = chain;
                [to_bad, to_good, in_bad, in_good].into_iter().all(share)
            }
        };
        if !losses {
            return Some(("loss", "probabilities must be between 0 and 1".to_owned()));
        }
        if !share(&self.duplicate) {
            return Some(("duplicate", "must be between 0 and 1".to_owned()));
        }
        if self
            .jitter
            .is_some_and(|jitter| jitter.spread > Duration::YEAR)
        {
            return Some(("jitter", "must be at most one year".to_owned()));
        }
        None
    }
}

impl Default for LineConfig {
    fn default() -> Self {
        Self::PERFECT
    }
}

/// A wire from some time on; what is `None` stays as before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WireChange {
    /// Its delay.
    pub delay: Option<Duration>,
    /// The packets that it loses.
    pub loss: Option<Loss>,
    /// The share of packets that arrive twice, 0 to 1.
    pub duplicate: Option<f64>,
    /// The variation of its delay; within: `None` for none.
    pub jitter: Option<Option<Jitter>>,
}

impl WireChange {
    /// Nothing changes.
    pub const NONE: Self = Self {
        delay: None,
        loss: None,
        duplicate: None,
        jitter: None,
    };

    /// The key that is out of its range, and the rule.
    pub fn fault(&self) -> Option<(&'static str, String)> {
        if self.delay.is_some_and(|delay| delay > Duration::YEAR) {
            return Some(("delay", "must be at most one year".to_owned()));
        }
        let wire = LineConfig {
            loss: self.loss.unwrap_or(Loss::None),
            duplicate: self.duplicate.unwrap_or(0.0),
            jitter: self.jitter.flatten(),
            ..LineConfig::PERFECT
        };
        wire.fault()
    }
}

/// How a wire changes the IP ECN field of packets, as middleboxes do that take it for part of the Type of Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnRewrite {
    /// Every packet gets this field.
    All(Ecn),
    /// ECN-capable packets become CE, as if an AQM marked each of them.
    Mark,
}

impl EcnRewrite {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::All(Ecn::NotEct),
        Self::All(Ecn::Ect0),
        Self::All(Ecn::Ect1),
        Self::All(Ecn::Ce),
        Self::Mark,
    ];

    /// What scenarios call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All(Ecn::NotEct) => "not-ect",
            Self::All(Ecn::Ect0) => "ect0",
            Self::All(Ecn::Ect1) => "ect1",
            Self::All(Ecn::Ce) => "ce",
            Self::Mark => "mark",
        }
    }
}

/// Which packets a wire loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each with this probability, whatever became of the others.
    Random(f64),
    /// In bursts.
    GilbertElliott(GilbertElliott),
}

/// The chain of two states of Gilbert (1960) and Elliott (1963), as `netem` has it: a packet is
/// lost by the state that it finds, then the state may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability that the good state ends with a packet (*p*).
    pub to_bad: f64,
    /// Probability that the bad state ends with a packet (*r*).
    pub to_good: f64,
    /// Probability of loss in the bad state (1 − *h*).
    pub in_bad: f64,
    /// Probability of loss in the good state (1 − *k*).
    pub in_good: f64,
}

/// How the delay of a wire varies from packet to packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The scale of the distribution.
    pub spread: Duration,
    /// Of the deviations from the delay of the wire.
    pub distribution: Distribution,
    /// Whether a packet may overtake another.
    pub order: Order,
}

/// Deviations in units of the spread, as the tables of `netem` have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// From −1 to 1, all alike.
    Uniform,
    /// Of standard deviation 1, cut at ±4.
    Normal,
    /// 4/3 (*x* − 3/2) where *x* is Pareto's of shape 3, cut at 4: mean 0, seldom but far above.
    Pareto,
    /// A quarter of the normal one and three quarters of Pareto's.
    ParetoNormal,
}

impl Distribution {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Uniform,
        Self::Normal,
        Self::Pareto,
        Self::ParetoNormal,
    ];

    /// What `tc` calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Pareto => "pareto",
            Self::ParetoNormal => "paretonormal",
        }
    }
}

/// Treatment of a packet that would overtake the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It waits, and arrives together with that one.
    Kept,
    /// It overtakes.
    Free,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Kept, Self::Free];

    /// What scenarios call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Free => "free",
        }
    }
}
