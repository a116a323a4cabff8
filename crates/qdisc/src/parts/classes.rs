//! The child queues of a classful discipline.

use sojourn_net::{Bytes, Instant, Packet, Rate};

use crate::contract::{Backlog, ClassId, DropReason, MarkReason, Observer, Peek, Qdisc, Statistic};

/// A queue for each class, the total backlog and the earliest timer.
///
/// Both are kept, not summed at each question: a link asks after every packet.
#[derive(Clone, Debug)]
pub(crate) struct Classes<Q, P> {
    names: Names,
    each: Vec<Class<Q, P>>,
    backlog: Backlog,
    next_timer: Option<Instant>,
}

/// What reports call the classes.
#[derive(Clone, Debug)]
enum Names {
    /// The discipline has a leaf, but no classes.
    None,
    /// This name and the place of the class.
    Numbered(&'static str),
    /// A name for each.
    Each(Vec<ClassId>),
}

#[derive(Clone, Debug)]
struct Class<Q, P> {
    queue: Q,
    /// The packet that left `queue` to be looked at and is the next to be sent.
    head: Option<P>,
    backlog: Backlog,
    next_timer: Option<Instant>,
    offered: u64,
    sent: u64,
    sent_bytes: u64,
}

impl<Q: Qdisc<P>, P: Packet> Class<Q, P> {
    fn new(queue: Q) -> Self {
        Self {
            backlog: Backlog::default(),
            next_timer: queue.next_timer(),
            queue,
            head: None,
            offered: 0,
            sent: 0,
            sent_bytes: 0,
        }
    }
}

/// Forwards events with the class of this discipline, and suppresses the classes of inner queues.
struct InClass<'a, P> {
    id: Option<ClassId>,
    obs: &'a mut dyn Observer<P>,
}

impl<P: Packet> Observer<P> for InClass<'_, P> {
    fn on_class(&mut self, class: ClassId) {
        if self.id.is_none() {
            self.obs.on_class(class);
        }
    }

    fn on_decision(&mut self, numbers: &dyn Fn() -> Vec<Statistic>) {
        self.obs.on_decision(numbers);
    }

    fn pacing_rate(&self, pkt: &P) -> Option<Rate> {
        self.obs.pacing_rate(pkt)
    }

    fn flow_of(&mut self, pkt: &P) -> Option<u32> {
        self.obs.flow_of(pkt)
    }

    fn station_of(&self, pkt: &P) -> u8 {
        self.obs.station_of(pkt)
    }

    fn on_drop(&mut self, now: Instant, pkt: P, reason: DropReason) {
        if let Some(id) = self.id {
            self.obs.on_class(id);
        }
        self.obs.on_drop(now, pkt, reason);
    }

    fn on_mark(&mut self, now: Instant, pkt: &P, reason: MarkReason) {
        if let Some(id) = self.id {
            self.obs.on_class(id);
        }
        self.obs.on_mark(now, pkt, reason);
    }
}

impl<Q: Qdisc<P>, P: Packet> Classes<Q, P> {
    /// `name` is what the discipline calls its classes; `None`: it has a leaf, but no classes.
    pub(crate) fn new(name: Option<&'static str>, queues: Vec<Q>) -> Self {
        Self::with_names(name.map_or(Names::None, Names::Numbered), queues)
    }

    /// Classes that reports call `ids`, one per queue.
    pub(crate) fn named(ids: Vec<ClassId>, queues: Vec<Q>) -> Self {
        Self::with_names(Names::Each(ids), queues)
    }

    /// Adds a class to [`Classes::named`] ones; its place is the next.
    pub(crate) fn add(&mut self, id: ClassId, queue: Q) {
        if let Names::Each(ids) = &mut self.names {
            ids.push(id);
        }
        let class = Class::new(queue);
        let timers = [self.next_timer, class.next_timer];
        self.next_timer = timers.into_iter().flatten().min();
        self.each.push(class);
    }

    fn with_names(names: Names, queues: Vec<Q>) -> Self {
        let each = queues.into_iter().map(Class::new);
        let mut classes = Self {
            names,
            each: each.collect(),
            backlog: Backlog::default(),
            next_timer: None,
        };
        classes.next_timer = classes.earliest();
        classes
    }

    /// What waits in all classes.
    #[inline]
    pub(crate) const fn backlog(&self) -> Backlog {
        self.backlog
    }

    #[inline]
    pub(crate) const fn next_timer(&self) -> Option<Instant> {
        self.next_timer
    }

    /// What reports call a class.
    #[inline]
    pub(crate) fn id(&self, class: usize) -> Option<ClassId> {
        match &self.names {
            Names::None => None,
            Names::Numbered(name) => Some(ClassId::numbered(name, class)),
            Names::Each(ids) => Some(ids[class]),
        }
    }

    /// What reports call the classes, or those of the leaf if there are none.
    pub(crate) fn ids(&self) -> Vec<ClassId> {
        match &self.names {
            Names::Numbered(name) => (0..self.each.len())
                .map(|class| ClassId::numbered(name, class))
                .collect(),
            Names::Each(ids) => ids.clone(),
            Names::None => self.each.iter().flat_map(|of| of.queue.classes()).collect(),
        }
    }

    /// Whether nothing waits in a class.
    #[inline]
    pub(crate) fn is_empty(&self, class: usize) -> bool {
        self.each[class].backlog.packets == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        class: usize,
        now: Instant,
        pkt: P,
        obs: &mut dyn Observer<P>,
    ) {
        let id = self.id(class);
        let of = &mut self.each[class];
        of.offered += 1;
        of.queue.enqueue(now, pkt, &mut InClass { id, obs });
        self.settle(class);
    }

    #[inline]
    pub(crate) fn dequeue(
        &mut self,
        class: usize,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let id = self.id(class);
        let of = &mut self.each[class];
        let pkt = match of.head.take() {
            Some(head) => Some(head),
            None => of.queue.dequeue(now, &mut InClass { id, obs }),
        };
        if let Some(pkt) = &pkt {
            if let Some(id) = id {
                obs.on_class(id);
            }
            of.sent += 1;
            of.sent_bytes += pkt.size().0;
        }
        self.settle(class);
        pkt
    }

    /// The size of the packet that the class sends next, if it has one that may go.
    ///
    /// A queue that cannot show it has decided on this packet then: a law that looks at delays sees those of now.
    #[inline]
    pub(crate) fn peek(
        &mut self,
        class: usize,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<Bytes> {
        match self.head(class) {
            Peek::Head(size) => return Some(size),
            Peek::Empty => return None,
            Peek::Dequeues => {}
        }
        let id = self.id(class);
        let of = &mut self.each[class];
        of.head = of.queue.dequeue(now, &mut InClass { id, obs });
        self.settle(class);
        self.each[class].head.as_ref().map(P::size)
    }

    /// The packet that the class sends next, without a dequeue from its queue.
    pub(crate) fn head(&self, class: usize) -> Peek {
        let of = &self.each[class];
        of.head
            .as_ref()
            .map_or_else(|| of.queue.peek(), |head| Peek::Head(head.size()))
    }

    /// Tells those whose time has come.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        for class in 0..self.each.len() {
            let of = &mut self.each[class];
            if of.next_timer.is_some_and(|due| due <= now) {
                of.queue.on_timer(now);
                of.next_timer = of.queue.next_timer();
            }
        }
        self.next_timer = self.earliest();
    }

    /// The link sends at `rate` from now on.
    pub(crate) fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        for of in &mut self.each {
            of.queue.on_link_rate(now, rate);
            of.next_timer = of.queue.next_timer();
        }
        self.next_timer = self.earliest();
    }

    /// Packets that each class passed, dropped and holds, and the statistics of its queue; the list
    /// excludes the parts of such a queue.
    pub(crate) fn statistics(&self, list: &'static str) -> Vec<Statistic> {
        let classes = 0..self.each.len();
        let each = classes.flat_map(|class| self.statistics_of(class, list, class));
        each.collect()
    }

    /// Those of one class, as of the one at `place`.
    pub(crate) fn statistics_of(
        &self,
        class: usize,
        list: &'static str,
        place: usize,
    ) -> impl Iterator<Item = Statistic> {
        let of = &self.each[class];
        let waiting = of.backlog.packets as u64;
        let own = [
            Statistic::count("bytes", of.sent_bytes),
            Statistic::count("packets", of.sent),
            Statistic::count("drops", of.offered - of.sent - waiting),
            Statistic::count("backlog", of.backlog.bytes.0),
            Statistic::count("qlen", waiting),
        ];
        own.into_iter()
            .map(move |statistic| statistic.within(list, place))
            .chain(of_class(of.queue.statistics(), list, place))
    }

    /// The state of the queue of each class, of parts of it excluded.
    pub(crate) fn state(&self, list: &'static str, now: Instant) -> Vec<Statistic> {
        let classes = 0..self.each.len();
        let each = classes.flat_map(|class| self.state_of(class, list, class, now));
        each.collect()
    }

    /// That of one class, as of the one at `place`.
    pub(crate) fn state_of(
        &self,
        class: usize,
        list: &'static str,
        place: usize,
        now: Instant,
    ) -> impl Iterator<Item = Statistic> {
        of_class(self.each[class].queue.state(now), list, place)
    }

    /// Brings the sums up to date with the queue of one class.
    #[inline]
    fn settle(&mut self, class: usize) {
        let of = &mut self.each[class];
        let (was, mut is) = (of.backlog, of.queue.backlog());
        if let Some(head) = &of.head {
            is.packets += 1;
            is.bytes += head.size();
        }
        of.backlog = is;
        self.backlog = Backlog {
            packets: self.backlog.packets + is.packets - was.packets,
            bytes: Bytes(self.backlog.bytes.0 + is.bytes.0 - was.bytes.0),
        };
        let (was, is) = (of.next_timer, of.queue.next_timer());
        if was != is {
            of.next_timer = is;
            self.next_timer = self.earliest();
        }
    }

    fn earliest(&self) -> Option<Instant> {
        self.each.iter().filter_map(|of| of.next_timer).min()
    }
}

/// The statistics of the queue of a class, without those of its parts.
fn of_class(
    statistics: Vec<Statistic>,
    list: &'static str,
    place: usize,
) -> impl Iterator<Item = Statistic> {
    let whole = statistics.into_iter();
    whole
        .filter(|statistic| statistic.part.is_none())
        .map(move |statistic| statistic.within(list, place))
}
