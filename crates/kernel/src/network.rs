//! Where the links, hosts and delays of a plan are in the network of the guest.

use std::collections::BTreeMap;

use sojourn_net::Duration;
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{FlowConfig, Hop, LineConfig, LinkConfig, Loss, Shaper, Traffic};
use sojourn_transport::SenderParams;

/// Flow number `n` listens on port `FIRST_PORT + n`, and sends from `FIRST_PORT + 20000 + n`.
pub(crate) const FIRST_PORT: u16 = 20_000;
/// Links that are faster are not shaped, and take no time to send.
const FASTEST_SHAPED: u64 = 10_000_000_000;
/// Bands of `prio`, one per delay.
pub(crate) const MOST_DELAYS: usize = 16;

/// A direction through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toward {
    Servers,
    Clients,
}

impl Toward {
    pub(crate) const BOTH: [Self; 2] = [Self::Servers, Self::Clients];

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Servers => Self::Clients,
            Self::Clients => Self::Servers,
        }
    }
}

/// One value for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Both<T> {
    servers: T,
    clients: T,
}

impl<T> Both<T> {
    pub(crate) const fn of(&self, toward: Toward) -> &T {
        match toward {
            Toward::Servers => &self.servers,
            Toward::Clients => &self.clients,
        }
    }

    const fn of_mut(&mut self, toward: Toward) -> &mut T {
        match toward {
            Toward::Servers => &mut self.servers,
            Toward::Clients => &mut self.clients,
        }
    }
}

/// The path of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    link: Both<Option<usize>>,
    delay: Both<Duration>,
}

/// The paths of a plan, and the links on them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Paths {
    /// The only link of each direction.
    pub(crate) links: Both<Option<usize>>,
    /// The direction of the data of each flow.
    pub(crate) data: Vec<Toward>,
    each: Vec<Path>,
}

/// Why the network of the guest does not have a path: the flow, its key, and what it has.
pub(crate) type NoPath = (usize, &'static str, &'static str);

impl Paths {
    /// The paths of the flows.
    ///
    /// # Errors
    /// If a path has several links, or others than those of another flow.
    pub(crate) fn of(plan: &Plan) -> Result<Self, NoPath> {
        let mut links: Both<Option<usize>> = Both::default();
        let mut paths = Vec::new();
        let mut data = Vec::new();
        for (n, (flow, label)) in plan.config.flows.iter().zip(&plan.flows).enumerate() {
            let toward = match label.direction {
                Some("down") => Toward::Clients,
                _ => Toward::Servers,
            };
            let mut path = Path::default();
            let ways = [
                (toward, "forward", &flow.forward),
                (toward.other(), "reverse", &flow.reverse),
            ];
            for (way, key, hops) in ways {
                let (link, delay) = leg(hops).ok_or((n, key, "a path through several links"))?;
                *path.link.of_mut(way) = link;
                *path.delay.of_mut(way) = delay;
                let known = links.of_mut(way);
                if n > 0 && *known != link {
                    return Err((
                        n,
                        key,
                        "a path through another link than that of other traffic",
                    ));
                }
                *known = link;
            }
            paths.push(path);
            data.push(toward);
        }
        Ok(Self {
            links,
            data,
            each: paths,
        })
    }

    /// The delay of the path of each flow in a direction, apart from links.
    pub(crate) fn delays(&self, toward: Toward) -> impl Iterator<Item = Duration> {
        self.each.iter().map(move |path| *path.delay.of(toward))
    }

    /// The different delays in a direction, the most common first.
    pub(crate) fn classes(&self, toward: Toward) -> Vec<Duration> {
        let mut counts = BTreeMap::new();
        for delay in self.delays(toward) {
            *counts.entry(delay).or_insert(0_u32) += 1;
        }
        let mut classes: Vec<_> = counts.into_iter().collect();
        classes.sort_by_key(|&(delay, count)| (std::cmp::Reverse(count), delay));
        classes.into_iter().map(|(delay, _)| delay).collect()
    }
}

/// The link and the delay of a path in one direction; `None`: it has several links.
fn leg(hops: &[Hop]) -> Option<(Option<usize>, Duration)> {
    let mut found = (None, Duration::ZERO);
    for hop in hops {
        match *hop {
            Hop::Delay(delay) => found.1 += delay,
            Hop::Link(link) if found.0.is_none() => found.0 = Some(link),
            Hop::Link(_) => return None,
        }
    }
    Some(found)
}

/// What `tc` needs to know of a link besides its queue.
pub(crate) trait Shaped {
    /// The bucket of `htb` or `tbf` in bytes; `None`: nothing shapes the link.
    fn bucket(&self) -> Option<u64>;
    /// Whether a packet takes its time to be sent after it has left the shaper.
    fn is_serial(&self) -> bool;
    /// Whether there is anything on the wire behind the link.
    fn has_wire(&self) -> bool;
}

impl Shaped for LinkConfig {
    fn bucket(&self) -> Option<u64> {
        if self.fastest().bits_per_sec() > FASTEST_SHAPED {
            return None;
        }
        match self.shaper {
            // The next packet leaves the queue when the last one has been sent: with more credit, it would be earlier.
            Shaper::Serial | Shaper::Ring(_) => Some(1),
            Shaper::Bucket { burst } | Shaper::Tbf { burst } => Some(burst.0),
        }
    }

    fn is_serial(&self) -> bool {
        self.shaper == Shaper::Serial && self.bucket().is_some()
    }

    fn has_wire(&self) -> bool {
        self.is_serial()
            || self.delay > Duration::ZERO
            || self.line != LineConfig::PERFECT
            || self.is_uneven()
    }
}

/// The probability of random loss.
pub(crate) const fn probability(loss: Loss) -> Option<f64> {
    match loss {
        Loss::None => Some(0.0),
        Loss::Random(share) => Some(share),
        Loss::GilbertElliott(_) => None,
    }
}

/// The addresses of a flow, and what the route to its receiver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) client: String,
    pub(crate) server: String,
}

/// What a route says of the connections that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route {
    pub(crate) ecn: bool,
    pub(crate) initial_window: u32,
}

impl Route {
    const PLAIN: Self = Self {
        ecn: false,
        initial_window: 10,
    };

    fn of(flow: &FlowConfig) -> Self {
        match &flow.traffic {
            Traffic::Tcp { params, .. } => Self::of_sender(params),
            _ => Self::PLAIN,
        }
    }

    const fn of_sender(params: &SenderParams) -> Self {
        Self {
            ecn: params.offers_ecn(),
            initial_window: params.initial_window,
        }
    }

    pub(crate) fn is_plain(self) -> bool {
        self == Self::PLAIN
    }
}

/// The addresses of all flows, and the routes to the receivers that are not plain.
///
/// Flows without a host join one client and one server; a receiver has another address for each kind of route. A flow
/// with a host has that host as its client, and a server of its own.
pub(crate) fn addresses(
    plan: &Plan,
    paths: &Paths,
) -> (Vec<Addresses>, Vec<(Toward, String, Route)>) {
    let mut kinds: Vec<Route> = vec![Route::PLAIN];
    let mut routes = Vec::new();
    let mut all = Vec::new();
    for (n, flow) in plan.config.flows.iter().enumerate() {
        let route = Route::of(flow);
        let toward = paths.data[n];
        let found = if let Some(client) = flow.client {
            Addresses {
                client: format!(
                    "10.1.{}.{}",
                    1 + kind_of(&mut kinds, route),
                    1 + client.number
                ),
                server: format!("10.200.{}.{}", 1 + n / 250, 1 + n % 250),
            }
        } else {
            let kind = 1 + kind_of(&mut kinds, route);
            let [client, server] = match toward {
                Toward::Servers => [1, kind],
                Toward::Clients => [kind, 1],
            };
            Addresses {
                client: format!("10.1.0.{client}"),
                server: format!("10.200.0.{server}"),
            }
        };
        if !route.is_plain() {
            let receiver = match toward {
                Toward::Servers => &found.server,
                Toward::Clients => &found.client,
            };
            let entry = (toward, receiver.clone(), route);
            if !routes.contains(&entry) {
                routes.push(entry);
            }
        }
        all.push(found);
    }
    (all, routes)
}

/// The number of a kind of route.
fn kind_of(kinds: &mut Vec<Route>, route: Route) -> usize {
    let known = kinds.iter().position(|&kind| kind == route);
    known.unwrap_or_else(|| {
        kinds.push(route);
        kinds.len() - 1
    })
}
