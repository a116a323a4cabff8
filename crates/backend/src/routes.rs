//! The routes of packets through the links of a plan, which backends share.

use std::collections::BTreeMap;

use sojourn_net::Duration;

use sojourn_scenario::plan::{ConfigError, Hop};

/// What a packet does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is offered to a link.
    Link(u32),
    /// It is offered to a link whose driver takes packets ahead of their transmission: a radio, or a ring.
    Driver(u32),
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
    /// Whether its driver takes packets ahead of their transmission.
    pub has_driver: bool,
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
    /// Each wire; routes with the same delay in the same direction share one wire.
    wires: Vec<(Duration, Direction)>,
}

/// The direction of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the sender of data to its receiver.
    Forward,
    /// From the receiver to the sender.
    Reverse,
}

impl Routes {
    /// Finds or adds the route through `links`; returns its first step.
    ///
    /// # Errors
    /// If all routes together have more steps than the index of a packet can address.
    pub fn add(
        &mut self,
        way: &[Hop],
        links: &[Passage],
        direction: Direction,
    ) -> Result<u16, ConfigError> {
        self.add_legs(&legs(way, links)?, direction)
    }

    /// Finds or adds both routes of a flow, and moves the fixed delays at the end of the forward route to the start of
    /// the reverse route. Returns the first steps and the sum of these delays; `None`: there are none, or the reverse
    /// route does not start with one.
    ///
    /// # Errors
    /// As [`Routes::add`].
    pub fn add_ahead(
        &mut self,
        forward: &[Hop],
        reverse: &[Hop],
        links: &[Passage],
    ) -> Result<Option<(u16, u16, Duration)>, ConfigError> {
        let (mut there, mut back) = (legs(forward, links)?, legs(reverse, links)?);
        let mut lead = Duration::ZERO;
        while let Some(&Leg::Delay(delay)) = there.last() {
            lead += delay;
            there.pop();
        }
        let Some(Leg::Delay(first)) = back.first_mut() else {
            return Ok(None);
        };
        if lead == Duration::ZERO {
            return Ok(None);
        }
        *first += lead;
        let there = self.add_legs(&there, Direction::Forward)?;
        let back = self.add_legs(&back, Direction::Reverse)?;
        Ok(Some((there, back, lead)))
    }

    fn add_legs(&mut self, legs: &[Leg], direction: Direction) -> Result<u16, ConfigError> {
        let steps = legs.iter().map(|leg| match *leg {
            Leg::Step(step) => step,
            Leg::Delay(delay) => self.wire(delay, direction),
        });
        let mut steps: Vec<_> = steps.collect();
        let key = steps
            .iter()
            .map(|step| match *step {
                Step::Link(n) => (0, u64::from(n)),
                Step::Wire(n) => (1, u64::from(n)),
                Step::End => (2, 0),
                Step::Line(n) => (3, u64::from(n)),
                Step::Driver(n) => (4, u64::from(n)),
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

    /// The wire with this delay in this direction.
    fn wire(&mut self, delay: Duration, direction: Direction) -> Step {
        let wire = (delay, direction);
        let known = self.wires.iter().position(|&other| other == wire);
        let n = known.unwrap_or_else(|| {
            self.wires.push(wire);
            self.wires.len() - 1
        });
        Step::Wire(u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// What a packet at this step does next.
    #[inline]
    pub fn step(&self, at: u16) -> Step {
        self.steps[usize::from(at)]
    }

    /// The delay of each wire on the routes.
    pub fn wire_delays(&self) -> impl Iterator<Item = Duration> {
        self.wires.iter().map(|&(delay, _)| delay)
    }
}

/// A part of a route.
#[derive(Clone, Copy, Debug)]
enum Leg {
    Step(Step),
    /// A fixed delay, not zero.
    Delay(Duration),
}

fn legs(way: &[Hop], links: &[Passage]) -> Result<Vec<Leg>, ConfigError> {
    let mut legs = Vec::new();
    for hop in way {
        let behind = match *hop {
            Hop::Link(n) => {
                let n32 = u32::try_from(n).map_err(|_| too_many())?;
                legs.push(Leg::Step(if links[n].has_driver {
                    Step::Driver(n32)
                } else {
                    Step::Link(n32)
                }));
                links[n].behind
            }
            Hop::Delay(delay) => NextHop::Wire(delay),
        };
        match behind {
            NextHop::Wire(Duration::ZERO) => {}
            NextHop::Wire(delay) => legs.push(Leg::Delay(delay)),
            NextHop::Line(uneven) => legs.push(Leg::Step(Step::Line(uneven))),
        }
    }
    Ok(legs)
}

fn too_many() -> ConfigError {
    ConfigError {
        place: "flows".to_owned(),
        rule: "too many distinct hops on the paths of all flows; expected at most 65535".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn steps(routes: &Routes, from: u16) -> Vec<Step> {
        let steps = (from..).map(|at| routes.step(at));
        steps.take_while(|&step| step != Step::End).collect()
    }

    #[test]
    fn delays_at_the_end_move_to_the_return_path() {
        let link = Passage {
            has_driver: false,
            behind: NextHop::Wire(MS(2)),
        };
        let links = [link; 2];
        let mut routes = Routes::default();
        let forward = [Hop::Link(0), Hop::Delay(MS(3))];
        let reverse = [Hop::Delay(MS(4)), Hop::Link(1)];
        let Ok(Some((there, back, lead))) = routes.add_ahead(&forward, &reverse, &links) else {
            panic!("nothing moved");
        };
        assert_eq!(lead, MS(5));
        assert_eq!(steps(&routes, there), [Step::Link(0)]);
        assert_eq!(
            steps(&routes, back),
            [Step::Wire(0), Step::Link(1), Step::Wire(1)]
        );
        assert_eq!(routes.wire_delays().collect::<Vec<_>>(), [MS(9), MS(2)]);
    }

    #[test]
    fn without_fixed_delays_on_both_sides_nothing_moves() {
        let links = [Passage {
            has_driver: false,
            behind: NextHop::Line(0),
        }];
        let mut routes = Routes::default();
        let (link, delay) = (Hop::Link(0), Hop::Delay(MS(1)));
        for (forward, reverse) in [
            (vec![link], vec![delay]),
            (vec![link, delay], vec![]),
            (vec![link, delay], vec![link, delay]),
            (vec![delay, link], vec![delay]),
        ] {
            assert_eq!(routes.add_ahead(&forward, &reverse, &links), Ok(None));
        }
        assert_eq!(routes.wire_delays().count(), 0);
    }

    #[test]
    fn directions_do_not_share_a_wire() {
        let mut routes = Routes::default();
        let mut wire = |direction| {
            let at = routes.add(&[Hop::Delay(MS(1))], &[], direction);
            at.map(|at| routes.step(at))
        };
        let forward = wire(Direction::Forward);
        assert_ne!(forward, wire(Direction::Reverse));
        assert_eq!(forward, wire(Direction::Forward));
    }
}
