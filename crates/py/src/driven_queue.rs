//! A queue that Python drives packet by packet.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;
use sojourn_qdisc::testing::{Driven, TestPacket};
use sojourn_qdisc::{Bytes, Dscp, Ecn, Instant, LinkFacts, QdiscSpec, Rate, Rng};

use crate::errors::Failure;
use crate::python_queue::queue_failure;

/// A queue that is driven packet by packet.
///
/// `rate_bits_per_s` is the rate of its link, None if that is not known.
#[pyclass(name = "DrivenQueue", module = "sojourn._core", unsendable)]
#[derive(Debug)]
pub(crate) struct PyDrivenQueue {
    queue: Driven,
    /// The time of the last call.
    now: Instant,
}

#[pymethods]
impl PyDrivenQueue {
    #[new]
    #[pyo3(signature = (text, rate_bits_per_s, mtu, seed))]
    fn new(
        py: Python<'_>,
        text: &str,
        rate_bits_per_s: Option<u64>,
        mtu: u64,
        seed: u64,
    ) -> Result<Self, Failure> {
        let link = LinkFacts {
            rate: rate_bits_per_s.and_then(Rate::from_bits_per_sec),
            mtu: Bytes(mtu),
            ..LinkFacts::default()
        };
        let spec = QdiscSpec::parse(text)?;
        let built = || Driven::new(&spec, &link, Rng::new(seed));
        let queue = catch_unwind(AssertUnwindSafe(built));
        Ok(Self {
            queue: queue.map_err(|panic| queue_failure(py, panic))?,
            now: Instant::ZERO,
        })
    }

    /// A packet arrives.
    fn enqueue(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        number: u64,
        flow: u32,
        size: u64,
        tos: u8,
    ) -> Result<(), Failure> {
        let packet = TestPacket {
            flow,
            size,
            ecn: Ecn::from_bits(tos & 3),
            dscp: Dscp::new(tos >> 2).unwrap_or_default(),
            ..TestPacket::mtu(number)
        };
        self.call(py, now_ns, |queue, now| queue.enqueue(now, packet))
    }

    /// Return the number and the type-of-service byte of the packet that leaves; None: none may leave.
    fn dequeue(&mut self, py: Python<'_>, now_ns: u64) -> Result<Option<(u64, u8)>, Failure> {
        let packet = self.call(py, now_ns, Driven::dequeue)?;
        let tos = |packet: &TestPacket| packet.dscp.number() << 2 | packet.ecn.bits();
        Ok(packet.map(|packet| (packet.id, tos(&packet))))
    }

    /// Numbers of the packets dropped so far.
    #[getter]
    fn drops(&self) -> Vec<u64> {
        let drops = &self.queue.signals.drops;
        drops.iter().map(|(_, packet, _)| packet.id).collect()
    }

    /// Numbers of the packets marked so far.
    #[getter]
    fn marks(&self) -> Vec<u64> {
        let marks = &self.queue.signals.marks;
        marks.iter().map(|(_, packet, _)| packet.id).collect()
    }

    fn __len__(&self) -> usize {
        self.queue.waiting()
    }
}

impl PyDrivenQueue {
    /// Calls the queue at a time that is not before that of the last call.
    fn call<T>(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        call: impl FnOnce(&mut Driven, Instant) -> T,
    ) -> Result<T, Failure> {
        let now = Instant::from_nanos(now_ns);
        if now < self.now {
            let before = self.now.as_nanos();
            let text = format!("now_ns: {now_ns} is before the last call, at {before}");
            return Err(Failure::Scenario(text.into()));
        }
        self.now = now;
        let called = catch_unwind(AssertUnwindSafe(|| call(&mut self.queue, now)));
        called.map_err(|panic| queue_failure(py, panic))
    }
}
