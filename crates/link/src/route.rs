//! The routes of packets.

use std::collections::BTreeMap;

use sojourn_net::Duration;

use sojourn_scenario::plan::{ConfigError, Hop};

/// What a packet does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is offered to a link.
    Link(u32),
    /// It is offered to a wireless link.
    Radio(u32),
    /// It is put on a wire.
    Wire(u32),
    /// It is put on a wire that is not perfect.
    Line(u32),
    /// It has arrived.
    End,
}

/// The properties of a link for the routes through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Whether a medium determines when it sends.
    pub wireless: bool,
    /// The next hop of its packets.
    pub behind: NextHop,
}

/// The wire behind a link's transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// A fixed delay.
    Wire(Duration),
    /// The imperfect wire with this number.
    Line(u32),
}

/// All routes of a run, concatenated; a packet holds the index of its next step.
#[derive(Debug, Default)]
pub struct Routes {
    steps: Vec<Step>,
    known: BTreeMap<Vec<(u8, u64)>, u16>,
    /// The delay of each wire; routes with the same delay share one wire.
    wires: Vec<Duration>,
}

impl Routes {
    /// Finds or adds the route through `links`; returns its first step.
    ///
    /// # Errors
    /// If all routes together have more steps than the index of a packet can address.
    pub fn add(&mut self, way: &[Hop], links: &[Passage]) -> Result<u16, ConfigError> {
        let mut steps = Vec::new();
        for hop in way {
            match *hop {
                Hop::Link(n) => {
                    let n32 = u32::try_from(n).map_err(|_| too_many())?;
                    let link = if links[n].wireless {
                        Step::Radio(n32)
                    } else {
                        Step::Link(n32)
                    };
                    steps.push(link);
                    match links[n].behind {
                        NextHop::Wire(delay) => self.push_delay(&mut steps, delay),
                        NextHop::Line(uneven) => steps.push(Step::Line(uneven)),
                    }
                }
                Hop::Delay(delay) => self.push_delay(&mut steps, delay),
            }
        }
        let key = steps
            .iter()
            .map(|step| match *step {
                Step::Link(n) => (0, u64::from(n)),
                Step::Wire(n) => (1, u64::from(n)),
                Step::End => (2, 0),
                Step::Line(n) => (3, u64::from(n)),
                Step::Radio(n) => (4, u64::from(n)),
            })
            .collect();
        if let Some(&at) = self.known.get(&key) {
            return Ok(at);
        }
        let at = u16::try_from(self.steps.len()).map_err(|_| too_many())?;
        self.steps.append(&mut steps);
        self.steps.push(Step::End);
        // The last step must be addressable too.
        u16::try_from(self.steps.len()).map_err(|_| too_many())?;
        self.known.insert(key, at);
        Ok(at)
    }

    fn push_delay(&mut self, steps: &mut Vec<Step>, delay: Duration) {
        if delay == Duration::ZERO {
            return;
        }
        let known = self.wires.iter().position(|&d| d == delay);
        let n = known.unwrap_or_else(|| {
            self.wires.push(delay);
            self.wires.len() - 1
        });
        steps.push(Step::Wire(u32::try_from(n).unwrap_or(u32::MAX)));
    }

    /// What a packet at this step does next.
    #[inline]
    pub fn step(&self, at: u16) -> Step {
        self.steps[usize::from(at)]
    }

    /// The delay of each wire on the routes.
    pub fn wire_delays(&self) -> &[Duration] {
        &self.wires
    }
}

fn too_many() -> ConfigError {
    ConfigError {
        place: "flows".to_owned(),
        rule: "too many distinct hops on the paths of all flows; expected at most 65535".to_owned(),
    }
}
