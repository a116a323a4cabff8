//! A web user, who loads one page after another.
//!
//! # Source
//!
//! RFC 9112 (HTTP/1.1: one request at a time on a connection; browsers open six to a server),
//! RFC 9113 (HTTP/2: one connection, frames of 16,384 B with a header of 9 B, taken from the
//! responses in turn), RFC 8446 (TLS 1.3: one round trip before the first request), RFC 9114
//! (HTTP/3: one QUIC connection, whose handshake holds that of TLS, a stream for each request and its
//! response; of its frames and of QPACK nothing is counted; the certificates are those of QUIC's default,
//! which fit the three datagrams that a server may send unasked).
//!
//! # Law
//!
//! An object is asked for once all it depends on are whole and the client's own work is done. An
//! object waits for a free connection, not for a certain one. A server sends what it has in turn
//! and no more than a little ahead of TCP, so that a response which becomes ready shares the
//! connection at once. The page is loaded when its last object is whole; its connections are then
//! closed, and the next visit opens new ones.
//!
//! # Differences from browsers
//!
//! No DNS, no cache, no priorities among objects, no speculative connections. The flights of TLS
//! have assumed sizes: [`HELLO`], [`FLIGHT`] and [`FINISHED`].

mod server;

use std::collections::VecDeque;
use std::sync::Arc;

use sojourn_net::{Bytes, Duration, Instant, Rng};
use sojourn_transport::{SenderParams, quic};

use crate::contract::{
    AppEvent, AppOutput, Application, ApplicationConfig, Command, Exchange, FINISHED, FLIGHT,
    HELLO, Side, Timers, Transport, quic_params,
};
use crate::demand::{Demand, Opportunity, Volume};
use crate::distributions::Wait;
use crate::page::Page;
use server::Serving;

/// Connections to a server that browsers open for HTTP/1.1.
const PARALLEL: usize = 6;

impl ApplicationConfig for WebConfig {
    /// HTTP/3 runs over QUIC, the others over TCP.
    fn exchange(&self) -> Exchange {
        Exchange {
            transport: match self.http {
                Http::One | Http::Two => Transport::Tcp,
                Http::Three => Transport::Quic,
            },
            tcp: self.tcp,
            request: self.request,
        }
    }

    fn quic_params(&self) -> quic::Params {
        quic::Params {
            zero_rtt: self.zero_rtt,
            flow: self.flow,
            ..quic_params(&self.tcp)
        }
    }

    /// A page takes a round trip for the handshake and one for a request.
    fn demand(&self, opportunity: &Opportunity) -> Demand {
        let Opportunity { time, rtt, .. } = *opportunity;
        let trips = if self.zero_rtt { 1 } else { 2 };
        let shortest = Duration::from_nanos(rtt.as_nanos().saturating_mul(trips));
        let visits = self.think.most_times(time, shortest);
        let objects = self.page.objects();
        let page = objects.iter().map(|object| object.bytes.least()).sum();
        let visits = visits.min(opportunity.transactions(page));
        let visits = visits.min(self.visits.map_or(u64::MAX, u64::from));
        let parallel = self.connections();
        let failures = opportunity.failures(parallel);
        let connections = visits.saturating_mul(parallel).saturating_add(failures);
        // A connection that fails has its objects requested again, at most all of them.
        let pages = visits.saturating_add(opportunity.failures(1));
        let requests = pages.saturating_mul(objects.len() as u64);
        let sizes = objects.iter().map(|object| object.bytes.most(pages));
        let bytes = sizes.fold(0, u64::saturating_add);
        let server = match self.http {
            Http::One | Http::Three => Volume {
                bytes,
                messages: requests,
            },
            Http::Two => server::in_frames(requests, bytes),
        };
        let client = Volume::of(requests, self.request.0);
        let demand = Demand {
            connections,
            open: parallel,
            transactions: visits,
            client,
            server,
        };
        if self.has_tls_round_trip() {
            demand.with_tls()
        } else {
            demand
        }
    }

    fn build(self: Arc<Self>, rng: &Rng) -> Box<dyn Application> {
        Box::new(Web::new(self, rng))
    }
}

impl WebConfig {
    /// Whether the handshake of TLS takes a round trip of its own: in QUIC's it is contained.
    fn has_tls_round_trip(&self) -> bool {
        self.tls && self.http != Http::Three
    }

    /// Connections of a page, at most.
    fn connections(&self) -> u64 {
        let origins = u64::from(self.page.origins());
        match self.http {
            // One for each object of an origin, up to the limit.
            Http::One => (origins * PARALLEL as u64).min(self.page.objects().len() as u64),
            Http::Two | Http::Three => origins,
        }
    }
}

/// Timers of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The next visit.
    Visit,
    /// The client has done its work for an object.
    Ready(u32),
    /// The server has done its work: connection and object.
    Respond(u32, u32),
}

/// A running web user.
#[derive(Debug)]
struct Web {
    config: Arc<WebConfig>,
    rng: Rng,
    timers: Timers<Due>,
    visits: u32,
    /// When the current visit began.
    since: Option<Instant>,
    /// For each object, its size in this visit and the number of objects that it still waits for.
    sizes: Vec<u64>,
    waits: Vec<u32>,
    missing: u32,
    origins: Vec<Origin>,
    conns: Vec<Conn>,
    /// The number of the first connection of this visit.
    base: u32,
}

/// A server, as the client sees it.
#[derive(Clone, Debug, Default)]
struct Origin {
    /// Objects to ask it for.
    queue: VecDeque<u32>,
    conns: Vec<u32>,
}

#[derive(Debug)]
struct Conn {
    origin: u32,
    stage: Stage,
    /// Bytes that the client has written.
    asked: u64,
    /// Objects asked for that are not whole.
    open: Vec<u32>,
    /// Requests under way: where each ends, and what it asks for.
    requests: VecDeque<(u64, u32)>,
    serving: Serving,
    /// The object of each stream of HTTP/3; `None`: it has none.
    streams: Option<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Greeting,
    Open,
    Dead,
}

impl Application for Web {
    fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput) {
        match event {
            AppEvent::Started => self.begin(now, out),
            AppEvent::Timer => {
                while let Some(due) = self.timers.pop(now) {
                    match due {
                        Due::Visit => self.begin(now, out),
                        Due::Ready(object) => self.ask(object, out),
                        Due::Respond(conn, object) => self.respond(conn, object, out),
                    }
                }
            }
            AppEvent::Connected(n) => self.on_connected(n, out),
            AppEvent::ServerReceived(n, bytes) => self.on_server_received(now, n, bytes, out),
            AppEvent::ClientReceived(n, bytes) => self.on_client_received(now, n, bytes, out),
            AppEvent::Writable(n) => {
                if let Some(conn) = self.conn(n) {
                    conn.serving.on_room();
                    conn.serving.send(n, out);
                }
            }
            AppEvent::RequestReceived(n, stream) => {
                if let Some(object) = self.conn(n).and_then(|conn| conn.object_of(stream)) {
                    self.work(now, n, object, out);
                }
            }
            AppEvent::ResponseReceived(n, stream) => self.on_response(now, n, stream, out),
            AppEvent::Failed(n) => self.on_failed(n, out),
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn finish(&mut self, _: Instant, out: &mut AppOutput) {
        if let Some(since) = self.since.take() {
            out.record(since, None, self.sizes.iter().sum());
        }
    }
}

impl Web {
    fn new(config: Arc<WebConfig>, rng: &Rng) -> Self {
        Self {
            config,
            rng: rng.fork("web"),
            timers: Timers::new(),
            visits: 0,
            since: None,
            sizes: Vec::new(),
            waits: Vec::new(),
            missing: 0,
            origins: Vec::new(),
            conns: Vec::new(),
            base: 0,
        }
    }

    /// A connection of this visit.
    fn conn(&mut self, n: u32) -> Option<&mut Conn> {
        let place = n.checked_sub(self.base)?;
        self.conns.get_mut(place as usize)
    }

    fn begin(&mut self, now: Instant, out: &mut AppOutput) {
        self.visits += 1;
        self.since = Some(now);
        let page = &self.config.page;
        let objects = page.objects();
        self.sizes = objects
            .iter()
            .map(|o| o.bytes.draw(&mut self.rng))
            .collect();
        self.waits = page.waits();
        self.missing = u32::try_from(objects.len()).unwrap_or(u32::MAX);
        self.origins = vec![Origin::default(); page.origins() as usize];
        for n in 0..self.missing {
            if self.waits[n as usize] == 0 {
                self.prepare(now, n, out);
            }
        }
    }

    /// Everything that `object` waits for is there.
    fn prepare(&mut self, now: Instant, object: u32, out: &mut AppOutput) {
        let delay = self.config.page.objects()[object as usize].delay;
        if delay.as_nanos() == 0 {
            self.ask(object, out);
        } else {
            self.timers.add(now + delay, Due::Ready(object));
        }
    }

    fn ask(&mut self, object: u32, out: &mut AppOutput) {
        let origin = self.config.page.objects()[object as usize].origin;
        self.origins[origin as usize].queue.push_back(object);
        self.use_connections(origin, out);
    }

    /// Sends what waits for `origin` over connections that are free, and opens more if it may.
    fn use_connections(&mut self, origin: u32, out: &mut AppOutput) {
        let base = self.base;
        let (most, streams) = match self.config.http {
            Http::One => (PARALLEL, 1),
            Http::Two | Http::Three => (1, usize::MAX),
        };
        let server = &mut self.origins[origin as usize];
        for &n in &server.conns {
            let conn = &mut self.conns[(n - base) as usize];
            while conn.stage == Stage::Open && conn.open.len() < streams {
                let Some(object) = server.queue.pop_front() else {
                    return;
                };
                conn.ask(n, object, self.config.request.0, out);
            }
        }
        let on_their_way = |conn: &&Conn| {
            conn.origin == origin && matches!(conn.stage, Stage::Connecting | Stage::Greeting)
        };
        let mut coming = self.conns.iter().filter(on_their_way).count();
        if server.conns.is_empty() && coming < server.queue.len() {
            // No more than may be opened: a run can have 100,000 connections.
            self.conns.reserve_exact(most);
        }
        while server.conns.len() < most && coming < server.queue.len() {
            let n = base + u32::try_from(self.conns.len()).unwrap_or(u32::MAX);
            server.conns.push(n);
            self.conns.push(Conn::new(origin, self.config.http));
            out.push(Command::Open(n));
            coming += 1;
            if self.config.zero_rtt && self.config.http == Http::Three {
                self.conns[(n - base) as usize].stage = Stage::Open;
                return self.use_connections(origin, out);
            }
        }
    }

    fn on_connected(&mut self, n: u32, out: &mut AppOutput) {
        let tls = self.config.has_tls_round_trip();
        let Some(conn) = self.conn(n) else { return };
        if tls {
            conn.stage = Stage::Greeting;
            conn.asked = HELLO;
            out.write(n, Side::Client, HELLO);
            out.push(Command::Expect(n, Side::Server, HELLO));
        } else {
            conn.stage = Stage::Open;
            let origin = conn.origin;
            self.use_connections(origin, out);
        }
    }

    /// Requests have reached the server.
    fn on_server_received(&mut self, now: Instant, n: u32, bytes: u64, out: &mut AppOutput) {
        let Some(conn) = self.conn(n) else { return };
        if conn.stage == Stage::Greeting {
            conn.serving.greet(n, FLIGHT, out);
            return;
        }
        while let Some(object) = self.conn(n).and_then(|c| c.next_request(bytes)) {
            self.work(now, n, object, out);
        }
        if let Some(&(end, _)) = self.conn(n).and_then(|c| c.requests.front()) {
            out.push(Command::Expect(n, Side::Server, end));
        }
    }

    /// A server has a request, and works for the response.
    fn work(&mut self, now: Instant, n: u32, object: u32, out: &mut AppOutput) {
        let work = self.config.page.objects()[object as usize].work;
        if work.as_nanos() == 0 {
            self.respond(n, object, out);
        } else {
            self.timers.add(now + work, Due::Respond(n, object));
        }
    }

    fn respond(&mut self, n: u32, object: u32, out: &mut AppOutput) {
        let bytes = self.sizes[object as usize];
        if let Some(conn) = self.conn(n)
            && conn.stage == Stage::Open
        {
            if let Some(stream) = conn.stream_of(object) {
                out.push(Command::WriteStream(n, Side::Server, stream, bytes));
                return;
            }
            conn.serving.add(object, bytes);
            conn.serving.send(n, out);
        }
    }

    /// A response on a stream of its own has reached the client.
    fn on_response(&mut self, now: Instant, n: u32, stream: u16, out: &mut AppOutput) {
        let Some(conn) = self.conn(n) else { return };
        let Some(object) = conn.object_of(stream) else {
            return;
        };
        conn.open.retain(|&open| open != object);
        self.on_object(now, object, out);
    }

    /// Responses have reached the client.
    fn on_client_received(&mut self, now: Instant, n: u32, bytes: u64, out: &mut AppOutput) {
        let Some(conn) = self.conn(n) else { return };
        if conn.stage == Stage::Greeting {
            conn.stage = Stage::Open;
            conn.asked += FINISHED;
            out.write(n, Side::Client, FINISHED);
        }
        while let Some(object) = self.conn(n).and_then(|c| c.serving.next_whole(bytes)) {
            if let Some(conn) = self.conn(n) {
                conn.open.retain(|&open| open != object);
            }
            self.on_object(now, object, out);
        }
        if let Some(conn) = self.conn(n) {
            let origin = conn.origin;
            conn.serving.expect(n, out);
            self.use_connections(origin, out);
        }
    }

    /// An object is complete.
    fn on_object(&mut self, now: Instant, object: u32, out: &mut AppOutput) {
        self.missing -= 1;
        if self.missing == 0 {
            self.end(now, out);
            return;
        }
        let config = Arc::clone(&self.config);
        for &waiting in config.page.dependents(object) {
            let waits = &mut self.waits[waiting as usize];
            *waits -= 1;
            if *waits == 0 {
                self.prepare(now, waiting, out);
            }
        }
    }

    /// The page is loaded.
    fn end(&mut self, now: Instant, out: &mut AppOutput) {
        if let Some(since) = self.since.take() {
            out.record(since, Some(now), self.sizes.iter().sum());
        }
        for (n, conn) in (self.base..).zip(&self.conns) {
            if conn.stage != Stage::Dead {
                out.push(Command::Close(n));
            }
        }
        self.base += u32::try_from(self.conns.len()).unwrap_or(u32::MAX);
        self.conns = Vec::new();
        self.origins = Vec::new();
        self.sizes = Vec::new();
        self.waits = Vec::new();
        self.timers.clear();
        if self.config.visits.is_none_or(|most| self.visits < most) {
            let think = self.config.think.draw(&mut self.rng);
            self.timers.add(now + think, Due::Visit);
        }
    }

    /// A connection has failed: its missing objects are requested again.
    fn on_failed(&mut self, n: u32, out: &mut AppOutput) {
        let Some(conn) = self.conn(n) else { return };
        conn.stage = Stage::Dead;
        let (origin, lost) = (conn.origin, std::mem::take(&mut conn.open));
        let server = &mut self.origins[origin as usize];
        server.conns.retain(|&other| other != n);
        server.queue.extend(lost);
        self.use_connections(origin, out);
    }
}

impl Conn {
    fn new(origin: u32, http: Http) -> Self {
        Self {
            origin,
            stage: Stage::Connecting,
            asked: 0,
            open: Vec::new(),
            requests: VecDeque::with_capacity(http.initial_capacity()),
            serving: Serving::new(http),
            streams: (http == Http::Three).then(Vec::new),
        }
    }

    fn object_of(&self, stream: u16) -> Option<u32> {
        self.streams.as_ref()?.get(usize::from(stream)).copied()
    }

    fn stream_of(&self, object: u32) -> Option<u16> {
        let streams = self.streams.as_ref()?;
        let place = streams.iter().position(|&other| other == object)?;
        u16::try_from(place).ok()
    }

    fn ask(&mut self, n: u32, object: u32, request: u64, out: &mut AppOutput) {
        self.asked += request;
        self.open.push(object);
        if let Some(streams) = &mut self.streams {
            streams.push(object);
            if let Some(stream) = self.stream_of(object) {
                out.push(Command::WriteStream(n, Side::Client, stream, request));
            }
            return;
        }
        self.requests.push_back((self.asked, object));
        out.write(n, Side::Client, request);
        if self.requests.len() == 1 {
            out.push(Command::Expect(n, Side::Server, self.asked));
        }
    }

    /// The next request within the first `bytes`.
    fn next_request(&mut self, bytes: u64) -> Option<u32> {
        let &(end, object) = self.requests.front()?;
        (end <= bytes).then(|| {
            self.requests.pop_front();
            object
        })
    }
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1 over up to six connections to a server.
    One,
    /// HTTP/2 over one.
    Two,
    /// HTTP/3 over one of QUIC.
    Three,
}

impl Http {
    /// Every version.
    pub const ALL: [Self; 3] = [Self::One, Self::Two, Self::Three];

    /// Its number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "1.1",
            Self::Two => "2",
            Self::Three => "3",
        }
    }

    /// Initial capacity of a connection's queues of requests and of responses. HTTP/1.1 has one request under way, and
    /// a `VecDeque` that grows from nothing allocates four places.
    const fn initial_capacity(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two | Self::Three => 0,
        }
    }
}

/// Configuration of web users.
#[derive(Clone, Debug, PartialEq)]
pub struct WebConfig {
    /// Parameters of both ends of each connection; over QUIC, those that QUIC has too.
    pub tcp: SenderParams,
    /// Version of HTTP.
    pub http: Http,
    /// Connections begin with the handshake of TLS 1.3.
    pub tls: bool,
    /// HTTP/3: users have been there before. Requests follow the client's hello at once (0-RTT), and the
    /// server sends no certificates.
    pub zero_rtt: bool,
    /// HTTP/3: how much may be sent before it is read.
    pub flow: quic::FlowControl,
    /// Bytes of a request.
    pub request: Bytes,
    /// The page.
    pub page: Page,
    /// Time from one page to the next.
    pub think: Wait,
    /// Number of pages; `None`: until the run ends.
    pub visits: Option<u32>,
}
