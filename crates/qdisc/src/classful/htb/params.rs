//! The parameters of HTB: its classes and its filters.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_net::{Bytes, Comparison, Instant, IpVersion, Packet, Rate, Rng};
use sojourn_schema::{Entries, Word};

use super::values::{Address, Code, HtbIp, HtbProtocol, LinkLayer, Ports};
use crate::contract::Observer;
use crate::parameters::{
    FlowCondition, Footprint, Kind, LINUX, Leaf, LeafList, LinkFacts, Params, Provenance,
    Retention, TcStatistics, parameters,
};
use crate::parts::leaf;

/// Levels of classes: 0 has the leaves, 7 the roots with classes below them (`TC_HTB_MAXDEPTH`).
pub(super) const LEVELS: usize = 8;
/// The bucket that `tc` gives a class whose burst is not set: 1600 bytes, and what the rate sends between two ticks of
/// the clock, which is 1 ns with high-resolution timers.
const DEFAULT_BURST: u64 = 1_600;
/// More classes than any tree has: each takes its memory whether it is used or not.
const MAX_CLASSES: u64 = 16_384;
const MAX_FILTERS: u64 = 65_536;

parameters! {
    /// A class of [`Htb`](super::Htb).
    #[derive(Clone, Debug, PartialEq)]
    pub struct HtbClass<L> {
        /// Name of the class, such as voice or 1:10.
        pub name: Word = Word::NONE => word("a name without spaces").unset("required"),
            "net/sched/sch_htb.c: htb_class.common.classid";
        /// Class above it, from which it borrows.
        pub parent: Word = Word::NONE => word("the name of a class").unset("none: a root class"),
            "net/sched/sch_htb.c: htb_class.parent";
        /// Rate that the class may always send at.
        pub rate: Option<Rate> = None => rate().unset("required"),
            "net/sched/sch_htb.c: htb_class.rate";
        /// Rate that the class may reach by borrowing.
        pub ceil: Option<Rate> = None => rate().unset("rate"),
            "net/sched/sch_htb.c: htb_class.ceil; default of iproute2 tc/q_htb.c";
        /// Bytes that an idle class may send at once within its rate.
        pub burst: Option<Bytes> = None => size(1, 1 << 30).unset("1600b and 1 ns at rate"),
            "net/sched/sch_htb.c: htb_class.buffer; default of iproute2 tc/q_htb.c";
        /// Bytes that an idle class may send at once within its ceil.
        pub cburst: Option<Bytes> = None => size(1, 1 << 30).unset("1600b and 1 ns at ceil"),
            "net/sched/sch_htb.c: htb_class.cbuffer; default of iproute2 tc/q_htb.c";
        /// Classes of a lower number are served first.
        pub prio: u8 = 0 => count(0, 7),
            "net/sched/sch_htb.c: htb_class.prio";
        /// Bytes that the class sends per turn among those of its priority.
        pub quantum: Option<Bytes> = None => size(1, i32::MAX as u64).unset("rate / r2q, 1000b to 200000b"),
            "net/sched/sch_htb.c: htb_class.quantum";
        /// Bytes added to each packet by the link layer.
        pub overhead: u16 = 0 => size(0, u16::MAX as u64),
            "include/net/sch_generic.h: psched_ratecfg.overhead";
        /// Size that smaller packets count as, once the overhead is added.
        pub mpu: u16 = 0 => size(0, u16::MAX as u64),
            "include/net/sch_generic.h: psched_ratecfg.mpu";
        /// Link layer: atm counts cells of 53 bytes for 48.
        pub linklayer: LinkLayer = LinkLayer::Ethernet => choice(LinkLayer::WORDS),
            "include/net/sch_generic.h: psched_ratecfg.linklayer";
        /// Queue of the class; a class with classes below it has none.
        pub leaf: Vec<L> = Vec::new() => leaves(1).unset("pfifo"),
            "net/sched/sch_htb.c: htb_class.leaf.q";
    }
}

parameters! {
    /// A filter of [`Htb`](super::Htb): packets that match all of its conditions go to its class.
    #[derive(Clone, Debug, PartialEq)]
    pub struct HtbFilter {
        /// Class of the packets that match.
        pub to: Word = Word::NONE => word("the name of a class").unset("required"),
            "tc-u32(8): flowid; tc-flower(8): classid";
        /// Name of a block of traffic.
        pub traffic: Word = Word::NONE => word("the name of a block of traffic").unset("any"),
            "Sojourn parameter; in Linux, a mark that a firewall sets";
        /// Number of the subscriber-side host of the traffic.
        pub host: Option<u16> = None => count(0, 65_535).unset("any"),
            "Sojourn parameter; in Linux, an address of the host";
        /// Version of IP.
        pub ip: HtbIp = HtbIp::Any => choice(HtbIp::WORDS),
            "tc-u32(8), tc-flower(8): protocol ip and protocol ipv6";
        /// Source address, or an IPv4 network such as 10.0.0.0/8.
        pub source: Address = Address::ANY => word("an IP address, or an IPv4 network").unset("any"),
            "tc-u32(8): match ip src; tc-flower(8): src_ip";
        /// Destination address, or an IPv4 network.
        pub destination: Address = Address::ANY => word("an IP address, or an IPv4 network").unset("any"),
            "tc-u32(8): match ip dst; tc-flower(8): dst_ip";
        /// Protocol.
        pub protocol: HtbProtocol = HtbProtocol::Any => choice(HtbProtocol::WORDS),
            "tc-u32(8): match ip protocol; tc-flower(8): ip_proto";
        /// Source port of TCP or UDP, or a range such as 5000-5999.
        pub source_port: Ports = Ports::ANY => word("a port or a range of ports").unset("any"),
            "tc-u32(8): match ip sport; tc-flower(8): src_port";
        /// Destination port of TCP or UDP, or a range.
        pub destination_port: Ports = Ports::ANY => word("a port or a range of ports").unset("any"),
            "tc-u32(8): match ip dport; tc-flower(8): dst_port";
        /// DSCP.
        pub dscp: Code = Code::ANY
            => word("CS0 to CS7, AF11 to AF43, EF, VA, LE, BE or 0 to 63").unset("any"),
            "tc-u32(8): match ip dsfield; tc-flower(8): ip_tos";
    }
}

parameters! {
    /// Parameters of [`Htb`](super::Htb).
    #[derive(Clone, Debug, PartialEq)]
    pub struct HtbParams<L> {
        /// Class of packets that no filter matches; without one they are not shaped and sent first.
        pub default: Word = Word::NONE => word("the name of a class").unset("none"),
            "net/sched/sch_htb.c: htb_sched.defcls";
        /// Divisor of the rate of a class that gives its quantum.
        pub r2q: u32 = 10 => count(1, u32::MAX as u64),
            "net/sched/sch_htb.c: htb_sched.rate2quantum; default of iproute2 tc/q_htb.c";
        /// Maximum number of packets that are not in a class.
        pub direct_qlen: u32 = 1_000 => packets(0, 100_000_000),
            "net/sched/sch_htb.c: htb_sched.direct_qlen, the tx_queue_len of the interface";
        /// Classes in the order of their class IDs, each below its parent.
        pub classes: Entries<HtbClass<L>> = Entries::NONE
            => entries(HtbClass::<L>::PARAMETERS, MAX_CLASSES).unset("none"),
            "net/sched/sch_htb.c: htb_sched.clhash";
        /// Filters in order of evaluation; the first that matches decides.
        pub filters: Entries<HtbFilter> = Entries::NONE
            => entries(HtbFilter::PARAMETERS, MAX_FILTERS).unset("none"),
            "net/sched/sch_htb.c: htb_sched.filter_list";
    }
}

impl<L: Leaf> Params for HtbParams<L> {
    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    type Queue<P: Packet> = super::Htb<P, L::Queue<P>>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "htb",
        class: Some("Htb"),
        summary: "Tree of classes with rates that borrow from each other, with any queue in each class",
        source: "Linux 6.1 sch_htb; Devera, \"HTB Linux queuing discipline manual\" and \"HTB theory\", 2002",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const TC_STATISTICS: TcStatistics = TcStatistics::of(&[]).with_overlimits();

    fn conflict(&self) -> Option<String> {
        if let Err(why) = self.tree() {
            return Some(why);
        }
        if let Some(why) = self.wrong_filter() {
            return Some(why);
        }
        let leaves = self.classes.leaves_of_leaf_classes();
        let classes = u32::try_from(leaves.len()).unwrap_or(u32::MAX);
        leaf::conflict(&leaves, classes)
    }

    fn shaper_rate(&self) -> Option<Rate> {
        // Packets outside the classes are not shaped.
        self.default.get()?;
        let roots = self
            .classes
            .0
            .iter()
            .filter(|class| class.parent.get().is_none());
        let rates = roots.map(|root| {
            let rate = root.rate.map_or(0, Rate::bits_per_sec);
            root.ceil.map_or(rate, |ceil| ceil.bits_per_sec().min(rate))
        });
        Rate::from_bits_per_sec(rates.fold(0, u64::saturating_add))
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        let classes = self.classes.leaf_classes().count();
        Some((&self.classes, u32::try_from(classes).unwrap_or(u32::MAX)))
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> super::Htb<P, L::Queue<P>> {
        super::Htb::new(self, link, &rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        let same = |(a, b): (&HtbClass<L>, &HtbClass<L>)| {
            a.name == b.name && a.parent == b.parent && a.leaf == b.leaf
        };
        let (now, then) = (&self.classes.0, &next.classes.0);
        if now.len() != then.len() || !now.iter().zip(then).all(same) {
            let why = "classes cannot come, go, move or get other queues during a run; expected the same names, \
                       parents and queues, in the same order";
            return Err(why.to_owned());
        }
        Ok(Retention::Keeps)
    }

    fn change<P: Packet>(
        &self,
        queue: &mut super::Htb<P, L::Queue<P>>,
        _now: Instant,
        link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        queue.change(self, link);
    }
}

/// The place of the parent of each class.
pub(super) type Parents = Vec<Option<usize>>;

impl<L: Leaf> HtbParams<L> {
    /// The traffic and the hosts that filters name.
    pub(crate) fn flow_conditions(&self) -> impl Iterator<Item = FlowCondition> {
        self.filters.0.iter().flat_map(|filter| {
            let traffic = filter.traffic.get().map(str::to_owned);
            let host = filter.host.map(FlowCondition::Host);
            traffic.map(FlowCondition::Traffic).into_iter().chain(host)
        })
    }

    /// The places of the classes by name.
    pub(super) fn places(&self) -> BTreeMap<&str, usize> {
        let classes = self.classes.0.iter().enumerate();
        classes
            .map(|(place, class)| (class.name.as_str(), place))
            .collect()
    }

    /// The place of the class of packets that no filter matches.
    pub(super) fn default_place(&self) -> Option<usize> {
        let name = self.default.get()?;
        self.places().get(name).copied()
    }

    /// The parent of each class.
    ///
    /// # Errors
    /// What is wrong with the tree.
    pub(super) fn tree(&self) -> Result<Parents, String> {
        let mut places = BTreeMap::new();
        let mut parents: Parents = Vec::with_capacity(self.classes.0.len());
        for (place, class) in self.classes.0.iter().enumerate() {
            let number = place + 1;
            let Some(name) = class.name.get() else {
                return Err(format!("classes {number}: name is missing"));
            };
            if class.rate.is_none() {
                return Err(format!("classes {number}: class {name} has no rate"));
            }
            let parent = match class.parent.get() {
                None => None,
                Some(parent) => Some(*places.get(parent).ok_or_else(|| {
                    format!(
                        "classes {number}: parent {parent} of class {name} is not a class before it"
                    )
                })?),
            };
            if places.insert(name, place).is_some() {
                return Err(format!(
                    "classes {number}: a class before it has the name {name}"
                ));
            }
            parents.push(parent);
            let above = std::iter::successors(parent, |&place| parents[place]).count();
            if above >= LEVELS {
                return Err(format!(
                    "classes {number}: class {name} is at depth {}; expected at most {LEVELS}",
                    above + 1
                ));
            }
        }
        for &parent in parents.iter().flatten() {
            let HtbClass { name, leaf, .. } = &self.classes.0[parent];
            if !leaf.is_empty() {
                return Err(format!("class {name} has a leaf and classes below it"));
            }
        }
        Ok(parents)
    }

    /// What is wrong with the default or a filter.
    fn wrong_filter(&self) -> Option<String> {
        let leaves: BTreeSet<_> = self
            .classes
            .leaf_classes()
            .map(|leaf| leaf.name.as_str())
            .collect();
        let is_leaf = |name: &str| leaves.contains(name);
        let expected = || match self.classes.leaf_classes().next() {
            Some(leaf) => format!("a leaf class such as {}", leaf.name),
            None => "classes".to_owned(),
        };
        if let Some(default) = self.default.get().filter(|name| !is_leaf(name)) {
            return Some(format!(
                "default {default} is not a leaf class; expected {}",
                expected()
            ));
        }
        for (number, filter) in (1..).zip(&self.filters.0) {
            let Some(to) = filter.to.get() else {
                return Some(format!(
                    "filters {number}: to is missing; expected {}",
                    expected()
                ));
            };
            if !is_leaf(to) {
                let expected = expected();
                return Some(format!(
                    "filters {number}: to {to} is not a leaf class; expected {expected}"
                ));
            }
            let has_ports =
                filter.source_port != Ports::ANY || filter.destination_port != Ports::ANY;
            if has_ports && filter.protocol == HtbProtocol::Icmp {
                return Some(format!("filters {number}: icmp has no ports"));
            }
            let versions: Vec<_> = filter.versions().flatten().collect();
            if versions.windows(2).any(|pair| pair[0] != pair[1]) {
                return Some(format!(
                    "filters {number}: ip, source and destination have different versions of IP"
                ));
            }
        }
        None
    }
}

impl HtbFilter {
    /// The versions of IP that it and its addresses ask for.
    pub(super) fn versions(&self) -> impl Iterator<Item = Option<IpVersion>> {
        [
            self.ip.version(),
            self.source.version(),
            self.destination.version(),
        ]
        .into_iter()
    }
}

impl<L: Leaf> HtbClass<L> {
    /// The bucket of the rate and that of the ceil, in bytes.
    pub(super) fn bursts(&self) -> [u64; 2] {
        let default = |rate: Option<Rate>| {
            DEFAULT_BURST + rate.map_or(0, Rate::bits_per_sec) / 8 / 1_000_000_000
        };
        [
            self.burst
                .map_or_else(|| default(self.rate), |burst| burst.0),
            self.cburst
                .map_or_else(|| default(self.ceil.or(self.rate)), |burst| burst.0),
        ]
    }
}

trait LeafClasses<L> {
    /// The classes without classes below them, in order.
    fn leaf_classes<'a>(&'a self) -> impl Iterator<Item = &'a HtbClass<L>>
    where
        L: 'a;

    /// The queue of each of them.
    fn leaves_of_leaf_classes(&self) -> Vec<L>;
}

impl<L: Leaf> LeafClasses<L> for Entries<HtbClass<L>> {
    fn leaf_classes<'a>(&'a self) -> impl Iterator<Item = &'a HtbClass<L>>
    where
        L: 'a,
    {
        let inner: BTreeSet<_> = self
            .0
            .iter()
            .filter_map(|class| class.parent.get())
            .collect();
        self.0
            .iter()
            .filter(move |class| !inner.contains(class.name.as_str()))
    }

    fn leaves_of_leaf_classes(&self) -> Vec<L> {
        let leaf = |class: &HtbClass<L>| class.leaf.first().cloned().unwrap_or_else(L::plain_fifo);
        self.leaf_classes().map(leaf).collect()
    }
}

/// The queues of the classes.
pub(super) fn leaves<L: Leaf>(params: &HtbParams<L>) -> Vec<L> {
    params.classes.leaves_of_leaf_classes()
}

impl<L: Leaf> LeafList for Entries<HtbClass<L>> {
    fn depth(&self) -> usize {
        self.leaves_of_leaf_classes().depth()
    }

    fn queues(&self, classes: u32) -> u64 {
        self.leaves_of_leaf_classes().queues(classes)
    }

    fn footprint(&self, classes: u32) -> Footprint {
        self.leaves_of_leaf_classes().footprint(classes)
    }

    fn paces_sockets(&self) -> bool {
        self.leaves_of_leaf_classes().paces_sockets()
    }

    fn provenance(&self) -> Vec<Provenance> {
        self.leaves_of_leaf_classes().provenance()
    }

    fn flow_filters(&self) -> Vec<FlowCondition> {
        self.leaves_of_leaf_classes().flow_filters()
    }
}
