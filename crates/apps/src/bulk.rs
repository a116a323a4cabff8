//! Bulk transfer: data in one direction over one connection, of a given size or endless, at once or at a rate.

use sojourn_net::{Bytes, Instant};
use sojourn_transport::Writer;

use crate::contract::{AppEvent, AppOutput, Application, Command, Length, Side};

/// The only connection of a transfer, and the stream that carries request and data.
const CONNECTION: u32 = 0;
const STREAM: u16 = 0;

/// A running bulk transfer.
#[derive(Clone, Debug)]
pub struct Bulk {
    bytes: Option<u64>,
    request: Option<u64>,
    connected: Option<Instant>,
    completed: Option<Instant>,
    /// Of a client that writes at a rate.
    writing: Option<Box<Writing>>,
}

/// What a client that writes at a rate has written.
#[derive(Clone, Copy, Debug)]
struct Writing {
    writer: Writer,
    written: u64,
    /// When the next block is due; `None`: not connected yet, or nothing is left.
    due: Option<Instant>,
}

impl Application for Bulk {
    fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput) {
        match event {
            AppEvent::Started if self.writing.is_some() => out.push(Command::Open(CONNECTION)),
            AppEvent::Started => {
                let length = self.request.map_or(self.length(), Length::Bytes);
                out.push(Command::OpenAndWrite {
                    number: CONNECTION,
                    length,
                    end: length != Length::Endless,
                });
                if self.sender() == Side::Client {
                    self.finish_sending(out);
                }
            }
            AppEvent::Connected(_) => {
                self.connected = Some(now);
                self.write_blocks(now, out);
            }
            AppEvent::Timer => self.write_blocks(now, out),
            AppEvent::RequestReceived(..) => match self.sender() {
                Side::Client => self.complete(now),
                Side::Server => {
                    out.push(match self.bytes {
                        Some(bytes) => {
                            Command::WriteStream(CONNECTION, Side::Server, STREAM, bytes)
                        }
                        None => Command::Write(CONNECTION, Side::Server, Length::Endless),
                    });
                    self.finish_sending(out);
                }
            },
            AppEvent::ResponseReceived(..) => self.complete(now),
            AppEvent::ServerReceived(..)
            | AppEvent::ClientReceived(..)
            | AppEvent::Writable(_)
            | AppEvent::Failed(_) => {}
        }
    }

    /// When a client that writes at a rate writes next.
    fn next_timer(&self) -> Option<Instant> {
        self.writing.as_ref()?.due
    }

    /// A transfer reports nothing here; [`Bulk::completed`] has the time of its end.
    fn finish(&mut self, _: Instant, _: &mut AppOutput) {}
}

impl Bulk {
    /// A transfer of `bytes`, or endless. With a request the client downloads: it asks with that
    /// many bytes and the server sends the data. Without one the client uploads.
    pub const fn new(bytes: Option<u64>, request: Option<u64>) -> Self {
        Self {
            bytes,
            request,
            connected: None,
            completed: None,
            writing: None,
        }
    }

    /// The same of a client that writes at a rate, from the moment at which it is connected.
    #[must_use]
    pub fn written_by(self, writer: Writer) -> Self {
        let writing = Writing {
            writer,
            written: 0,
            due: None,
        };
        Self {
            writing: Some(Box::new(writing)),
            ..self
        }
    }

    /// Writes the blocks that are due.
    fn write_blocks(&mut self, now: Instant, out: &mut AppOutput) {
        let (Some(writing), Some(began)) = (&mut self.writing, self.connected) else {
            return;
        };
        let Writer { rate, block } = writing.writer;
        loop {
            let due = began + rate.serialise(Bytes(writing.written));
            writing.due = Some(due);
            if due > now {
                return;
            }
            let left = self.bytes.map_or(u64::MAX, |bytes| bytes - writing.written);
            let length = left.min(block.into());
            writing.written += length;
            out.push(Command::Write(
                CONNECTION,
                Side::Client,
                Length::Bytes(length),
            ));
            if length == left {
                writing.due = None;
                out.push(Command::Finish(CONNECTION, Side::Client));
                return;
            }
        }
    }

    /// When the connection was established.
    pub const fn connected(&self) -> Option<Instant> {
        self.connected
    }

    /// When all data had arrived.
    pub const fn completed(&self) -> Option<Instant> {
        self.completed
    }

    fn length(&self) -> Length {
        self.bytes.map_or(Length::Endless, Length::Bytes)
    }

    /// The end that sends the data.
    const fn sender(&self) -> Side {
        match self.request {
            Some(_) => Side::Server,
            None => Side::Client,
        }
    }

    fn finish_sending(&self, out: &mut AppOutput) {
        if self.bytes.is_some() {
            out.push(Command::Finish(CONNECTION, self.sender()));
        }
    }

    fn complete(&mut self, now: Instant) {
        self.completed.get_or_insert(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::{Duration, Rate};

    const NOW: Instant = Instant::from_millis(7);

    fn commands(bulk: &mut dyn Application, event: AppEvent) -> Vec<Command> {
        let mut out = AppOutput::default();
        bulk.on(NOW, event, &mut out);
        out.commands
    }

    #[test]
    fn an_upload_is_written_when_the_connection_is_opened() {
        let mut upload = Bulk::new(Some(5_000), None);
        let open = Command::OpenAndWrite {
            number: 0,
            length: Length::Bytes(5_000),
            end: true,
        };
        let started = commands(&mut upload, AppEvent::Started);
        assert_eq!(started, [open, Command::Finish(0, Side::Client)]);
        assert_eq!((upload.connected(), upload.completed()), (None, None));
        assert_eq!(commands(&mut upload, AppEvent::Connected(0)), []);
        assert_eq!((upload.connected(), upload.completed()), (Some(NOW), None));
        assert_eq!(commands(&mut upload, AppEvent::RequestReceived(0, 0)), []);
        assert_eq!(upload.completed(), Some(NOW));
        let endless = commands(&mut Bulk::new(None, None), AppEvent::Started);
        let open = Command::OpenAndWrite {
            number: 0,
            length: Length::Endless,
            end: false,
        };
        assert_eq!(endless, [open]);
    }

    #[test]
    fn a_client_with_a_rate_writes_a_block_when_it_is_due() {
        let writer = Writer {
            rate: Rate::mbit(8),
            block: 1_000,
        };
        let mut upload = Bulk::new(Some(2_500), None).written_by(writer);
        let at = |micros| NOW + Duration::from_micros(micros);
        let mut turn = |now, event| {
            let mut out = AppOutput::default();
            upload.on(now, event, &mut out);
            (out.commands, upload.next_timer())
        };
        let block = |bytes| Command::Write(0, Side::Client, Length::Bytes(bytes));
        let started = turn(NOW, AppEvent::Started);
        assert_eq!(started, (vec![Command::Open(0)], None));
        let connected = turn(NOW, AppEvent::Connected(0));
        assert_eq!(connected, (vec![block(1_000)], Some(at(1_000))));
        assert_eq!(turn(at(999), AppEvent::Timer), (vec![], Some(at(1_000))));
        // A late timer makes up for it.
        let rest = vec![block(1_000), block(500), Command::Finish(0, Side::Client)];
        assert_eq!(turn(at(2_300), AppEvent::Timer), (rest, None));
    }

    #[test]
    fn a_download_is_written_when_the_request_has_arrived() {
        let mut download = Bulk::new(Some(5_000), Some(200));
        let open = Command::OpenAndWrite {
            number: 0,
            length: Length::Bytes(200),
            end: true,
        };
        assert_eq!(commands(&mut download, AppEvent::Started), [open]);
        let request = AppEvent::RequestReceived(0, 0);
        let answer = [
            Command::WriteStream(0, Side::Server, 0, 5_000),
            Command::Finish(0, Side::Server),
        ];
        assert_eq!(commands(&mut download, request), answer);
        assert_eq!(download.completed(), None);
        assert_eq!(
            commands(&mut download, AppEvent::ResponseReceived(0, 0)),
            []
        );
        assert_eq!(download.completed(), Some(NOW));
        let endless = commands(&mut Bulk::new(None, Some(200)), request);
        let write = Command::Write(0, Side::Server, Length::Endless);
        assert_eq!(endless, [write]);
    }
}
