//! The observation points of a link, the same in every capture.

use std::fmt;
use std::io::Write;

use sojourn_net::Rate;

use crate::writer::{Interface, Point, Writer};

/// The observation points of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkPoints {
    /// Where packets are offered to the queue.
    pub enq: Point,
    /// Where packets are taken from the queue.
    pub deq: Point,
    /// Where the queue drops packets, or the wire behind the link loses them.
    pub drop: Point,
}

impl LinkPoints {
    /// Adds the points of a link with a queue of this kind; `queue` is its specification, and `rate` is that of the link
    /// if it is constant.
    pub fn add<W: Write>(
        writer: &mut Writer<W>,
        link: &str,
        (kind, queue): (&str, &dyn fmt::Display),
        rate: Option<Rate>,
    ) -> Self {
        let mut point = |suffix: &str, description: &str| {
            let name = format!("{link}.{suffix}");
            let description = format!("{description}; queue: {queue}");
            writer.add(&Interface {
                description: Some(&description),
                queue: Some(kind),
                rate,
                ..Interface::new(&name)
            })
        };
        Self {
            enq: point("enq", "packets offered to the queue"),
            deq: point("deq", "packets taken from the queue to be sent"),
            drop: point("drop", "packets dropped by the queue or lost on the wire"),
        }
    }
}
