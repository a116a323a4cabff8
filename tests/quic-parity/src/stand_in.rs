//! In the place of TLS: messages of given length that carry the transport parameters, and keys
//! that encrypt nothing but add a tag.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

const CLIENT_HELLO: usize = 300;
const SERVER_HELLO: usize = 90;
const FINISHED: usize = 36;
const TAG: usize = 16;

/// Lengths as in `sojourn_transport::quic`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandIn {
    /// Bytes of the server's flight in Handshake packets.
    pub(crate) certificate: usize,
}

/// What is due next in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    SendHello,
    AwaitHello,
    SendHandshakeKeys,
    SendFlight,
    AwaitFlight,
    SendFinished,
    AwaitFinished,
    Done,
}

struct Talk {
    side: Side,
    own: TransportParameters,
    peer: Option<TransportParameters>,
    certificate: usize,
    received: Vec<u8>,
    step: Step,
}

/// Keys that leave everything legible.
struct Open;

fn keys() -> Keys {
    let pair = || KeyPair::<Box<dyn PacketKey>> {
        local: Box::new(Open),
        remote: Box::new(Open),
    };
    Keys {
        header: KeyPair {
            local: Box::new(Open),
            remote: Box::new(Open),
        },
        packet: pair(),
    }
}

impl Talk {
    fn new(stand_in: StandIn, side: Side, own: &TransportParameters) -> Box<Self> {
        Box::new(Self {
            side,
            own: *own,
            peer: None,
            certificate: stand_in.certificate,
            received: Vec::new(),
            step: if side.is_client() {
                Step::SendHello
            } else {
                Step::AwaitHello
            },
        })
    }

    /// A message of `len` bytes with the own transport parameters, behind their length.
    fn message(&self, len: usize, out: &mut Vec<u8>) {
        let mut params = Vec::new();
        self.own.write(&mut params);
        let begin = out.len();
        let size = u16::try_from(params.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&size.to_be_bytes());
        out.extend_from_slice(&params);
        assert!(
            out.len() - begin <= len,
            "parameters need {} bytes",
            params.len()
        );
        out.resize(begin + len, 0);
    }

    /// Takes the peer's message of `len` bytes, once it is complete.
    fn take(&mut self, len: usize, with_params: bool) -> Result<bool, TransportError> {
        if self.received.len() < len {
            return Ok(false);
        }
        if with_params {
            let size = usize::from(u16::from_be_bytes([self.received[0], self.received[1]]));
            let mut params = Cursor::new(&self.received[2..2 + size]);
            self.peer = Some(TransportParameters::read(self.side, &mut params)?);
        }
        self.received.drain(..len);
        Ok(true)
    }
}

impl Session for Talk {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        if self.side.is_server() {
            if self.step == Step::AwaitHello && self.take(CLIENT_HELLO, true)? {
                self.step = Step::SendHandshakeKeys;
            }
            if self.step == Step::AwaitFinished && self.take(FINISHED, false)? {
                self.step = Step::Done;
            }
        } else {
            if self.step == Step::AwaitHello && self.take(SERVER_HELLO, false)? {
                self.step = Step::SendHandshakeKeys;
            }
            if self.step == Step::AwaitFlight && self.take(self.certificate, true)? {
                self.step = Step::SendFinished;
            }
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match self.step {
            Step::SendHello => {
                self.message(CLIENT_HELLO, out);
                self.step = Step::AwaitHello;
                None
            }
            Step::SendHandshakeKeys if self.side.is_server() => {
                out.resize(out.len() + SERVER_HELLO, 0);
                self.step = Step::SendFlight;
                Some(keys())
            }
            Step::SendHandshakeKeys => {
                self.step = Step::AwaitFlight;
                Some(keys())
            }
            Step::SendFlight => {
                self.message(self.certificate, out);
                self.step = Step::AwaitFinished;
                Some(keys())
            }
            Step::SendFinished => {
                out.resize(out.len() + FINISHED, 0);
                self.step = Step::Done;
                Some(keys())
            }
            Step::AwaitHello | Step::AwaitFlight | Step::AwaitFinished | Step::Done => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl ClientConfig for StandIn {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Talk::new(*self, Side::Client, params))
    }
}

impl ServerConfig for StandIn {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Talk::new(*self, Side::Server, params)
    }
}

impl PacketKey for Open {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let data = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(data);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Open {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl HmacKey for StandIn {
    fn sign(&self, _: &[u8], signature: &mut [u8]) {
        // Tags of packets are zero, and must not be taken for a reset.
        signature.fill(0xA5);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for StandIn {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(*self)
    }
}

impl AeadKey for StandIn {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}
