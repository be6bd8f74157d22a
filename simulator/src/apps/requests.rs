// SPDX-License-Identifier: GPL-2.0-or-later
//! Requests and responses over the reliable transport, as those of a key-value store.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, hosts, level, message, positive, schedule};
use crate::apps::context::{Context, Message};
use crate::apps::time::{Latencies, Span};
use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets};
use crate::host::sockets::Event;
use crate::host::traffic::Gap;
use crate::net::topology::Topology;

/// A kind of request, such as GET or SET.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Bytes of the request on the wire; it may have several packets.
    #[serde(with = "In::<Octets>")]
    pub request: u32,
    /// Bytes of the response on the wire.
    #[serde(with = "In::<Octets>")]
    pub response: u32,
    /// Its share of requests is its weight over the sum of all weights.
    pub weight: u32,
}

/// When requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Arrival {
    /// Open loop: requests do not wait for others. Each goes to a random server, over an idle
    /// connection to it or a new one.
    Open(Gap),
    /// Closed loop: each connection, assigned to servers in turn, has one request at a time; the
    /// next follows `think` after a response.
    Closed {
        /// Number of connections.
        connections: u32,
        /// Time from a response to the next request.
        #[serde(with = "In::<Duration>")]
        think: Ps,
    },
}

/// A client and its servers. A request's latency lasts from when it is handed over to when all of
/// its response has arrived. Servers handle all requests in parallel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Number of the client's host.
    pub client: u32,
    /// Numbers of the servers' hosts.
    pub servers: Vec<u32>,
    /// Level of requests and responses; 0 is served first.
    pub level: u8,
    /// Time of the first request; with Poisson gaps the first gap is counted from it.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// When requests are made.
    pub arrival: Arrival,
    /// Kinds of requests.
    pub exchanges: Vec<Exchange>,
    /// Service time.
    pub service: Span,
    /// Number of requests.
    pub count: u32,
    /// The client makes no requests from this time on; none: it makes all of them.
    #[serde(with = "In::<Instant>")]
    pub until: Option<Ps>,
}

impl Requests {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = format!("requests from {}", self.client);
        let mut ends = self.servers.clone();
        ends.push(self.client);
        hosts(&place, &ends, 2, topology)?;
        level(&place, self.level)?;
        count(&place, "requests", self.count)?;
        positive(
            &place,
            "weights of its exchanges",
            self.exchanges.iter().map(|e| u64::from(e.weight)).sum(),
        )?;
        for exchange in &self.exchanges {
            message(&place, "request", exchange.request.into())?;
            message(&place, "response", exchange.response.into())?;
        }
        schedule(&place, self.first, self.service.mean(), self.count.into())?;
        match self.arrival {
            Arrival::Open(gap) => schedule(&place, self.first, gap.mean(), self.count.into()),
            Arrival::Closed { connections, think } => {
                count(&place, "connections", connections)?;
                schedule(&place, self.first, think, self.count.into())
            }
        }
    }
}

/// The results of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RequestsResult {
    /// Latency from request to response.
    pub latencies: Latencies,
    /// The kind of each request.
    pub kinds: Vec<u32>,
}

/// A connection, with a request under way or idle.
#[derive(Debug)]
struct Connection {
    server: u32,
    there: u32,
    back: u32,
    /// Number of its last request.
    request: u32,
}

#[derive(Debug)]
pub(crate) struct RequestsRun {
    spec: Requests,
    weights: u64,
    rng: Rng,
    connections: Vec<Connection>,
    /// Open loop: idle connections by server.
    idle: Vec<Vec<u32>>,
    results: RequestsResult,
}

/// Tokens are a connection's number and what is due for it.
const WHAT: u32 = 3;
const ASK: u32 = 0;
const SERVED: u32 = 1;
const RESPONSE: u32 = 2;
/// The open loop's timer.
const NEXT: u32 = u32::MAX;

impl RequestsRun {
    pub fn begin(spec: Requests, ctx: &mut Context) -> Self {
        let mut rng = ctx.stream(0);
        let mut connections = Vec::new();
        match spec.arrival {
            Arrival::Open(gap) => ctx.wake(spec.first + gap.first(&mut rng), NEXT),
            Arrival::Closed { connections: most, .. } => {
                for number in 0..most.min(spec.count) {
                    connections.push(Connection::open(number % spec.servers.len() as u32, ctx));
                    ctx.wake(spec.first, number << 2 | ASK);
                }
            }
        }
        let weights = spec.exchanges.iter().map(|e| u64::from(e.weight)).sum();
        let idle = vec![Vec::new(); spec.servers.len()];
        RequestsRun { spec, weights, rng, connections, idle, results: RequestsResult::default() }
    }

    pub fn act(&mut self, event: Event, ctx: &mut Context) {
        match event {
            Event::Timer(NEXT) => self.next(ctx),
            Event::Timer(token) if token & WHAT == ASK => self.ask(token >> 2, ctx),
            Event::Timer(token) => self.respond(token >> 2, ctx),
            Event::Received(token) if token & WHAT == RESPONSE => self.end(token >> 2, ctx),
            Event::Received(token) => {
                let took = self.spec.service.draw(&mut self.rng);
                if took == 0 {
                    self.respond(token >> 2, ctx);
                } else {
                    ctx.wake(ctx.now() + took, token & !WHAT | SERVED);
                }
            }
            Event::Acknowledged { .. } | Event::Arrived { .. } | Event::Dropped(_) => {}
        }
    }

    /// The open loop's next request.
    fn next(&mut self, ctx: &mut Context) {
        let Arrival::Open(gap) = self.spec.arrival else { return };
        if self.is_over(ctx) {
            return;
        }
        let server = self.rng.below(self.spec.servers.len() as u64) as u32;
        let connection = self.idle[server as usize].pop().unwrap_or_else(|| {
            self.connections.push(Connection::open(server, ctx));
            self.connections.len() as u32 - 1
        });
        self.ask(connection, ctx);
        if self.made() < self.spec.count {
            ctx.wake(ctx.now() + gap.next(&mut self.rng), NEXT);
        }
    }

    fn is_over(&self, ctx: &Context) -> bool {
        self.spec.until.is_some_and(|until| ctx.now() >= until)
    }

    fn made(&self) -> u32 {
        self.results.kinds.len() as u32
    }

    fn ask(&mut self, number: u32, ctx: &mut Context) {
        if self.made() == self.spec.count || self.is_over(ctx) {
            return;
        }
        let kind = self.draw();
        self.results.kinds.push(kind);
        let request = self.results.latencies.begin(ctx.now());
        let connection = &mut self.connections[number as usize];
        connection.request = request;
        let message = Message {
            from: self.spec.client,
            to: self.spec.servers[connection.server as usize],
            level: self.spec.level,
            bytes: self.spec.exchanges[kind as usize].request.into(),
            key: connection.there,
        };
        ctx.send(message, number << 2 | ASK);
    }

    fn draw(&mut self) -> u32 {
        let mut drawn = self.rng.below(self.weights);
        let holds = |exchange: &Exchange| {
            let weight = u64::from(exchange.weight);
            let inside = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            inside
        };
        self.spec.exchanges.iter().position(holds).unwrap_or(0) as u32
    }

    fn respond(&mut self, number: u32, ctx: &mut Context) {
        let connection = &self.connections[number as usize];
        let kind = self.results.kinds[connection.request as usize];
        let message = Message {
            from: self.spec.servers[connection.server as usize],
            to: self.spec.client,
            level: self.spec.level,
            bytes: self.spec.exchanges[kind as usize].response.into(),
            key: connection.back,
        };
        ctx.send(message, number << 2 | RESPONSE);
    }

    fn end(&mut self, number: u32, ctx: &mut Context) {
        let connection = &self.connections[number as usize];
        self.results.latencies.end(connection.request, ctx.now());
        match self.spec.arrival {
            Arrival::Open(_) => self.idle[connection.server as usize].push(number),
            Arrival::Closed { think: 0, .. } => self.ask(number, ctx),
            Arrival::Closed { think, .. } => ctx.wake(ctx.now() + think, number << 2 | ASK),
        }
    }

    pub fn results(&self) -> RequestsResult {
        self.results.clone()
    }
}

impl Connection {
    fn open(server: u32, ctx: &mut Context) -> Self {
        Connection { server, there: ctx.keys(1), back: ctx.keys(1), request: 0 }
    }
}
