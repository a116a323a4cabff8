//! Interface between an application and its driver: events in, commands and reports out.
//!
//! The driver may be a simulator or real sockets: nothing here knows which, nor which transport a
//! connection uses.

use sojourn_net::Instant;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that opens the connection.
    Client,
    /// The end that accepts it.
    Server,
}

/// An event that an application reacts to. A connection is named by the number that it was opened
/// with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEvent {
    /// The application starts.
    Started,
    /// The time returned by the application's `next_timer` has come.
    Timer,
    /// The connection is established; the client may write.
    Connected(u32),
    /// The server has received the bytes it expected: connection, total received so far.
    ServerReceived(u32, u64),
    /// The client has received the bytes it expected: connection, total received so far.
    ClientReceived(u32, u64),
    /// The server's unsent bytes have fallen to the limit it set.
    Writable(u32),
    /// The server has received a stream in full: connection, stream.
    RequestReceived(u32, u16),
    /// The client has received a stream in full: connection, stream.
    ResponseReceived(u32, u16),
    /// The connection failed: the transport gave up, or it could not be opened.
    Failed(u32),
}

/// How much data a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This many bytes.
    Bytes(u64),
    /// Data without an end: the connection always has more to send.
    Endless,
}

impl Length {
    /// This and `bytes` more.
    const fn plus(self, bytes: u64) -> Self {
        match self {
            Self::Bytes(written) => Self::Bytes(written + bytes),
            Self::Endless => Self::Endless,
        }
    }
}

/// An action that an application asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Open a connection with this number. Numbers are never reused.
    Open(u32),
    /// Open a connection whose client writes at once. Where the transport allows it, the first
    /// flight carries data.
    OpenAndWrite {
        /// Its number.
        number: u32,
        /// What the client sends.
        length: Length,
        /// The client writes nothing more.
        end: bool,
    },
    /// Send data: connection, writing end, how much.
    Write(u32, Side, Length),
    /// Send bytes on a stream and end it: connection, writing end, stream, number of bytes.
    WriteStream(u32, Side, u16, u64),
    /// Report when this end has received this many bytes in total.
    Expect(u32, Side, u64),
    /// Report when the server has at most this many bytes unsent.
    ExpectWritable(u32, u64),
    /// Close the connection once everything that this end wrote is acknowledged.
    Finish(u32, Side),
    /// Close the connection gracefully; no further event of it is reported.
    Close(u32),
}

impl Command {
    /// The number of its connection.
    pub const fn connection(self) -> u32 {
        match self {
            Self::Open(number)
            | Self::OpenAndWrite { number, .. }
            | Self::Write(number, ..)
            | Self::WriteStream(number, ..)
            | Self::Expect(number, ..)
            | Self::ExpectWritable(number, _)
            | Self::Finish(number, _)
            | Self::Close(number) => number,
        }
    }
}

/// One transaction: something that the user of an application waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The application's flow, by its place in the configuration.
    pub flow: u32,
    /// When it started.
    pub started: Instant,
    /// When it completed; `None`: not within the run.
    pub completed: Option<Instant>,
    /// Size of the responses, in bytes.
    pub bytes: u64,
}

/// Commands and reports of applications, collected by the driver.
#[derive(Debug, Default)]
pub struct AppOutput {
    /// Commands to execute, in order.
    pub commands: Vec<Command>,
    /// Transactions that have ended.
    pub transactions: Vec<Transaction>,
    /// The flow of the application that is running.
    pub flow: u32,
}

impl AppOutput {
    pub(crate) fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Sends `bytes`. All that one end of a connection writes in one turn leaves as one write.
    pub(crate) fn write(&mut self, n: u32, side: Side, bytes: u64) {
        let same = |command: &&mut Command| match command {
            Command::Write(other, end, _) => (*other, *end) == (n, side),
            _ => false,
        };
        match self.commands.iter_mut().rev().find(same) {
            Some(Command::Write(.., total)) => *total = total.plus(bytes),
            _ => self.push(Command::Write(n, side, Length::Bytes(bytes))),
        }
    }

    pub(crate) fn record(&mut self, started: Instant, completed: Option<Instant>, bytes: u64) {
        self.transactions.push(Transaction {
            flow: self.flow,
            started,
            completed,
            bytes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_one_end_are_joined_and_endless_data_stays_endless() {
        let mut out = AppOutput::default();
        out.write(3, Side::Client, 100);
        out.write(3, Side::Client, 20);
        let written = Command::Write(3, Side::Client, Length::Bytes(120));
        assert_eq!(out.commands, [written]);
        let endless = Command::Write(4, Side::Server, Length::Endless);
        out.push(endless);
        out.write(4, Side::Server, 20);
        assert_eq!(out.commands, [written, endless]);
    }
}
