//! Configuration of a receiving end.

use sojourn_net::{Duration, Rate};

/// What a receiving end does differently from the usual one: a host with as much memory as any window takes, whose
/// application is always waiting to read, and which receives every packet by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverParams {
    /// The socket buffer.
    pub buffer: ReceiveBuffer,
    /// When the application reads.
    pub reader: Reader,
    /// When data is acknowledged.
    pub acks: AckPolicy,
    /// How its device hands over packets.
    pub device: Device,
}

/// Which ECN the end that receives supports, and how one with a fault answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEcn {
    /// None.
    None,
    /// RFC 3168.
    Classic,
    /// RFC 9768.
    Accurate,
    /// RFC 9768, and its SYN-ACK has the reserved combination (1, 0, 1).
    Reserved,
    /// None, and its SYN-ACK has the bits of the SYN.
    Reflecting,
    /// RFC 9768 in the handshake only: its acknowledgements have a counter of 0 and no option.
    Zeroed,
}

impl PeerEcn {
    /// Every kind of peer.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Classic,
        Self::Accurate,
        Self::Reserved,
        Self::Reflecting,
        Self::Zeroed,
    ];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Classic => "classic",
            Self::Accurate => "accurate",
            Self::Reserved => "reserved",
            Self::Reflecting => "reflecting",
            Self::Zeroed => "zeroed",
        }
    }
}

/// When data that arrives in order is acknowledged (RFC 5681 §4.2, RFC 9293 §3.8.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Full segments per acknowledgement.
    pub every: u8,
    /// Longest delay of an acknowledgement; `None`: as Linux adapts it, 40 to 200 ms.
    pub delay: Option<Duration>,
    /// Linux's quick ACKs: each of the first segments is acknowledged, and some after a pause, after a duplicate, when the
    /// window grows and after a mark.
    pub quick: bool,
}

impl AckPolicy {
    /// Linux.
    pub const LINUX: Self = Self {
        every: 2,
        delay: None,
        quick: true,
    };
    /// A delay of more is an error of the implementation (RFC 9293 §3.8.6.3).
    pub const LONGEST_DELAY: Duration = Duration::from_millis(500);
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self::LINUX
    }
}

/// How a device hands over what it has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// It merges segments (generic receive offload).
    pub merges: bool,
    /// Time between two polls while packets arrive (`gro_flush_timeout`); `None`: each packet is handed over when it
    /// arrives, those of the same instant together.
    pub poll: Option<Duration>,
}

impl Device {
    /// The longest time between two polls.
    pub const LONGEST_POLL: Duration = Duration::from_millis(100);
}

/// The receive buffer of a socket, which bounds the advertised window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// It grows as far as window scaling permits.
    #[default]
    Unlimited,
    /// The largest window in bytes, as an application sets it with `SO_RCVBUF`: the window does not tune itself.
    Fixed(u32),
    /// The size in bytes up to which the buffer grows, the maximum of `tcp_rmem`. The window is at most half of it.
    Tuned(u32),
}

impl ReceiveBuffer {
    /// The smallest and the largest fixed window.
    pub const WINDOWS: (u32, u32) = (4_096, 1 << 30);
    /// The smallest and the largest maximum of a tuned buffer.
    pub const SIZES: (u32, u32) = (8_192, 1 << 31);
}

/// When an application reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    /// It reads at most [`Reader::CHUNK`] bytes at a time, and again when these have taken their time at this rate.
    pub rate: Option<Rate>,
    /// From when to when of the run it does not read.
    pub pause: Option<(Duration, Duration)>,
}

impl Reader {
    /// Most bytes of one read of an application that reads at a rate.
    pub const CHUNK: u64 = 16_384;

    /// Whether it always reads what has arrived.
    pub const fn is_immediate(&self) -> bool {
        self.rate.is_none() && self.pause.is_none()
    }
}

impl ReceiverParams {
    /// Whether it is the usual one.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
