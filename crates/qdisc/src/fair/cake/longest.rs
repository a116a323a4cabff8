//! Finds the longest queue, with a heap that exists only while memory is short.

/// Departures after the last shortage during which the heap is kept.
const KEPT: u32 = 65_535;

/// The bytes of each queue, where a [`Longest`] reads them.
pub(super) trait Lengths {
    fn bytes(&self, queue: usize) -> u64;
}

/// The longest of all queues.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    /// Queues, each with no more bytes than its parent at half its place.
    heap: Vec<u16>,
    /// Where in the heap each queue is.
    places: Vec<u16>,
    kept: u32,
}

impl Longest {
    /// Of `queues`, at most 2^16.
    pub(super) fn new(queues: usize) -> Self {
        Self {
            heap: (0..=u16::MAX).take(queues).collect(),
            places: (0..=u16::MAX).take(queues).collect(),
            kept: 0,
        }
    }

    /// Queues that grow or shrink have to be reported.
    #[inline]
    pub(super) const fn is_kept(&self) -> bool {
        self.kept > 0
    }

    /// Queue `queue` has grown.
    #[inline]
    pub(super) fn grow(&mut self, queue: usize, lengths: &(impl Lengths + ?Sized)) {
        if self.is_kept() {
            self.rise(usize::from(self.places[queue]), lengths);
        }
    }

    /// Queue `queue` has shrunk.
    #[inline]
    pub(super) fn shrink(&mut self, queue: usize, lengths: &(impl Lengths + ?Sized)) {
        if self.is_kept() {
            self.sink(usize::from(self.places[queue]), lengths);
        }
    }

    /// A packet was sent.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// The queue with the most bytes.
    pub(super) fn find(&mut self, lengths: &(impl Lengths + ?Sized)) -> usize {
        if self.kept == 0 {
            for at in (0..=self.heap.len() / 2).rev() {
                self.sink(at, lengths);
            }
        }
        self.kept = KEPT;
        usize::from(self.heap[0])
    }

    fn at(&self, place: usize, lengths: &(impl Lengths + ?Sized)) -> u64 {
        let queue = self.heap.get(place).map(|&queue| usize::from(queue));
        queue.map_or(0, |queue| lengths.bytes(queue))
    }

    #[cold]
    fn sink(&mut self, mut place: usize, lengths: &(impl Lengths + ?Sized)) {
        loop {
            let mut largest = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if self.at(child, lengths) > self.at(largest, lengths) {
                    largest = child;
                }
            }
            if largest == place {
                return;
            }
            self.swap(place, largest);
            place = largest;
        }
    }

    #[cold]
    fn rise(&mut self, mut place: usize, lengths: &(impl Lengths + ?Sized)) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.at(place, lengths) <= self.at(parent, lengths) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            let queue = usize::from(self.heap[place]);
            #[expect(clippy::cast_possible_truncation, reason = "at most 2^16 queues")]
            let at = place as u16;
            self.places[queue] = at;
        }
    }
}
