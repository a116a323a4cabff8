//! Bulk transfer: data in one direction over one connection, of a given size or endless.

use crate::contract::{AppEvent, AppOutput, Command, Side};

/// The only connection of a transfer, and the stream that carries request and data.
const CONNECTION: u32 = 0;
const STREAM: u16 = 0;

/// A running bulk transfer.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    bytes: Option<u64>,
    request: Option<u64>,
}

impl Bulk {
    /// A transfer of `bytes`, or endless. With a request the client downloads: it asks with that
    /// many bytes and the server sends the data. Without one the client uploads.
    pub const fn new(bytes: Option<u64>, request: Option<u64>) -> Self {
        Self { bytes, request }
    }

    /// The end that sends the data.
    pub const fn sender(&self) -> Side {
        match self.request {
            Some(_) => Side::Server,
            None => Side::Client,
        }
    }

    /// Handles an event; commands go to `out`.
    pub fn on(&mut self, event: AppEvent, out: &mut AppOutput) {
        match (event, self.request) {
            (AppEvent::Started, Some(request)) => out.push(Command::OpenAndWrite {
                number: CONNECTION,
                bytes: request,
                end: true,
            }),
            (AppEvent::Started, None) => {
                out.push(Command::OpenAndWrite {
                    number: CONNECTION,
                    bytes: self.bytes.unwrap_or(u64::MAX),
                    end: self.bytes.is_some(),
                });
                self.finish(out);
            }
            (AppEvent::RequestReceived(..), Some(_)) => {
                out.push(match self.bytes {
                    Some(bytes) => Command::WriteStream(CONNECTION, Side::Server, STREAM, bytes),
                    None => Command::Write(CONNECTION, Side::Server, u64::MAX),
                });
                self.finish(out);
            }
            _ => {}
        }
    }

    fn finish(&self, out: &mut AppOutput) {
        if self.bytes.is_some() {
            out.push(Command::Finish(CONNECTION, self.sender()));
        }
    }

    /// Whether `event` says that all data has arrived.
    pub const fn is_completed_by(&self, event: AppEvent) -> bool {
        matches!(
            (event, self.sender()),
            (AppEvent::RequestReceived(..), Side::Client)
                | (AppEvent::ResponseReceived(..), Side::Server)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(bulk: &mut Bulk, event: AppEvent) -> Vec<Command> {
        let mut out = AppOutput::default();
        bulk.on(event, &mut out);
        out.commands
    }

    #[test]
    fn an_upload_is_written_when_the_connection_is_opened() {
        let mut upload = Bulk::new(Some(5_000), None);
        let open = Command::OpenAndWrite {
            number: 0,
            bytes: 5_000,
            end: true,
        };
        let started = commands(&mut upload, AppEvent::Started);
        assert_eq!(started, [open, Command::Finish(0, Side::Client)]);
        assert_eq!(commands(&mut upload, AppEvent::Connected(0)), []);
        assert!(upload.is_completed_by(AppEvent::RequestReceived(0, 0)));
        let endless = commands(&mut Bulk::new(None, None), AppEvent::Started);
        let open = Command::OpenAndWrite {
            number: 0,
            bytes: u64::MAX,
            end: false,
        };
        assert_eq!(endless, [open]);
    }

    #[test]
    fn a_download_is_written_when_the_request_has_arrived() {
        let mut download = Bulk::new(Some(5_000), Some(200));
        let open = Command::OpenAndWrite {
            number: 0,
            bytes: 200,
            end: true,
        };
        assert_eq!(commands(&mut download, AppEvent::Started), [open]);
        let request = AppEvent::RequestReceived(0, 0);
        assert!(!download.is_completed_by(request));
        let answer = [
            Command::WriteStream(0, Side::Server, 0, 5_000),
            Command::Finish(0, Side::Server),
        ];
        assert_eq!(commands(&mut download, request), answer);
        assert!(download.is_completed_by(AppEvent::ResponseReceived(0, 0)));
        let endless = commands(&mut Bulk::new(None, Some(200)), request);
        assert_eq!(endless, [Command::Write(0, Side::Server, u64::MAX)]);
    }
}
