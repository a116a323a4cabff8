//! The user of a connection: a bulk transfer or an application.

use super::bulk::BulkFlow;

/// Who uses a connection.
#[derive(Debug)]
pub(crate) enum User {
    /// A TCP or QUIC flow of the configuration, whose only connection it is.
    Bulk(Box<BulkFlow>),
    /// An application: its flow, and its number for the connection.
    App { app: u32, number: u32 },
}

impl User {
    /// The number that the user knows the connection by.
    pub(crate) const fn number(&self) -> u32 {
        match self {
            Self::Bulk(_) => 0,
            Self::App { number, .. } => *number,
        }
    }
}
