//! Finds the longest queue, with a heap that exists only while memory is short.

/// Departures after the last shortage during which the heap is kept.
const KEPT: u32 = 65_535;

/// The bytes of every queue, and the longest of them.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    bytes: Vec<u64>,
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
            bytes: vec![0; queues],
            heap: (0..=u16::MAX).take(queues).collect(),
            places: (0..=u16::MAX).take(queues).collect(),
            kept: 0,
        }
    }

    #[inline]
    pub(super) fn grow(&mut self, queue: usize, bytes: u64) {
        self.bytes[queue] = bytes;
        if self.kept > 0 {
            self.rise(usize::from(self.places[queue]));
        }
    }

    #[inline]
    pub(super) fn shrink(&mut self, queue: usize, bytes: u64) {
        self.bytes[queue] = bytes;
        if self.kept > 0 {
            self.sink(usize::from(self.places[queue]));
        }
    }

    /// A packet was sent.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// The queue with the most bytes.
    pub(super) fn find(&mut self) -> usize {
        if self.kept == 0 {
            for at in (0..=self.heap.len() / 2).rev() {
                self.sink(at);
            }
        }
        self.kept = KEPT;
        usize::from(self.heap[0])
    }

    fn at(&self, place: usize) -> u64 {
        let queue = self.heap.get(place).map(|&queue| usize::from(queue));
        queue.map_or(0, |queue| self.bytes[queue])
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let mut largest = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if self.at(child) > self.at(largest) {
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

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.at(place) <= self.at(parent) {
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
