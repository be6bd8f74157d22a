// SPDX-License-Identifier: GPL-2.0-or-later
//! Requests and responses over the hosts' reliable transport, as a key-value store's.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, hosts, level, message, positive, schedule};
use crate::apps::net::{Message, Net};
use crate::apps::time::{Latencies, Span};
use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets};
use crate::host::sockets::Event;
use crate::host::traffic::Gap;
use crate::net::topology::Topology;

/// A kind of request, such as GET and SET.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Bytes on the wire of the request; more than a data packet's are several packets.
    #[serde(with = "In::<Octets>")]
    pub request: u32,
    /// Bytes on the wire of the response.
    #[serde(with = "In::<Octets>")]
    pub response: u32,
    /// Its share is this over the sum of all weights.
    pub weight: u32,
}

/// When requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Arrival {
    /// Whatever becomes of those before, each to a server drawn evenly, over a connection of it that is idle or else a new one.
    Open(Gap),
    /// So many connections, in turn to each server, each with one request at a time; the next follows a response after `think`.
    Closed {
        /// How many.
        connections: u32,
        /// From a response to the next request.
        #[serde(with = "In::<Duration>")]
        think: Ps,
    },
}

/// A client whose requests servers answer. The latency of one is from when it is handed over to when all of its response has arrived.
/// Servers serve all requests side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Number of the client's host.
    pub client: u32,
    /// Numbers of the servers' hosts.
    pub servers: Vec<u32>,
    /// Of requests and responses; 0 is served first.
    pub level: u8,
    /// Time of the first one; with Poisson gaps the first is counted from it.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// When they are made.
    pub arrival: Arrival,
    /// What is asked for.
    pub exchanges: Vec<Exchange>,
    /// How long a server takes.
    pub service: Span,
    /// How many requests.
    pub count: u32,
    /// When the client makes no more of them, though there may have been fewer; none: it makes them all.
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
        positive(&place, "weights of its exchanges", self.exchanges.iter().map(|e| u64::from(e.weight)).sum())?;
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

/// What has become of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RequestsResult {
    /// From request to response.
    pub latencies: Latencies,
    /// The exchange of each.
    pub kinds: Vec<u32>,
}

/// With its request under way, or idle.
#[derive(Debug)]
struct Connection {
    server: u32,
    there: u32,
    back: u32,
    /// Number of the request.
    request: u32,
}

#[derive(Debug)]
pub(crate) struct Requesting {
    spec: Requests,
    weights: u64,
    rng: Rng,
    connections: Vec<Connection>,
    /// Of an open loop, by the server's place.
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

impl Requesting {
    pub fn begin(spec: Requests, net: &mut Net) -> Self {
        let mut rng = net.stream(0);
        let mut connections = Vec::new();
        match spec.arrival {
            Arrival::Open(gap) => net.wake(spec.first + gap.first(&mut rng), NEXT),
            Arrival::Closed { connections: most, .. } => {
                for number in 0..most.min(spec.count) {
                    connections.push(Connection::open(number % spec.servers.len() as u32, net));
                    net.wake(spec.first, number << 2 | ASK);
                }
            }
        }
        let weights = spec.exchanges.iter().map(|e| u64::from(e.weight)).sum();
        let idle = vec![Vec::new(); spec.servers.len()];
        Requesting { spec, weights, rng, connections, idle, results: RequestsResult::default() }
    }

    pub fn act(&mut self, event: Event, net: &mut Net) {
        match event {
            Event::Timer(NEXT) => self.next(net),
            Event::Timer(token) if token & WHAT == ASK => self.ask(token >> 2, net),
            Event::Timer(token) => self.respond(token >> 2, net),
            Event::Received(token) if token & WHAT == RESPONSE => self.end(token >> 2, net),
            Event::Received(token) => {
                let took = self.spec.service.draw(&mut self.rng);
                if took == 0 {
                    self.respond(token >> 2, net);
                } else {
                    net.wake(net.now() + took, token & !WHAT | SERVED);
                }
            }
            Event::Acknowledged { .. } | Event::Arrived { .. } | Event::Dropped(_) => {}
        }
    }

    /// An open loop's next request.
    fn next(&mut self, net: &mut Net) {
        let Arrival::Open(gap) = self.spec.arrival else { return };
        if self.is_over(net) {
            return;
        }
        let server = self.rng.below(self.spec.servers.len() as u64) as u32;
        let connection = self.idle[server as usize].pop().unwrap_or_else(|| {
            self.connections.push(Connection::open(server, net));
            self.connections.len() as u32 - 1
        });
        self.ask(connection, net);
        if self.made() < self.spec.count {
            net.wake(net.now() + gap.next(&mut self.rng), NEXT);
        }
    }

    fn is_over(&self, net: &Net) -> bool {
        self.spec.until.is_some_and(|until| net.now() >= until)
    }

    fn made(&self) -> u32 {
        self.results.kinds.len() as u32
    }

    fn ask(&mut self, number: u32, net: &mut Net) {
        if self.made() == self.spec.count || self.is_over(net) {
            return;
        }
        let kind = self.draw();
        self.results.kinds.push(kind);
        let request = self.results.latencies.begin(net.now());
        let connection = &mut self.connections[number as usize];
        connection.request = request;
        let message = Message {
            from: self.spec.client,
            to: self.spec.servers[connection.server as usize],
            level: self.spec.level,
            bytes: self.spec.exchanges[kind as usize].request.into(),
            key: connection.there,
        };
        net.send(message, number << 2 | ASK);
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

    fn respond(&mut self, number: u32, net: &mut Net) {
        let connection = &self.connections[number as usize];
        let kind = self.results.kinds[connection.request as usize];
        let message = Message {
            from: self.spec.servers[connection.server as usize],
            to: self.spec.client,
            level: self.spec.level,
            bytes: self.spec.exchanges[kind as usize].response.into(),
            key: connection.back,
        };
        net.send(message, number << 2 | RESPONSE);
    }

    fn end(&mut self, number: u32, net: &mut Net) {
        let connection = &self.connections[number as usize];
        self.results.latencies.end(connection.request, net.now());
        match self.spec.arrival {
            Arrival::Open(_) => self.idle[connection.server as usize].push(number),
            Arrival::Closed { think: 0, .. } => self.ask(number, net),
            Arrival::Closed { think, .. } => net.wake(net.now() + think, number << 2 | ASK),
        }
    }

    pub fn results(&self) -> RequestsResult {
        self.results.clone()
    }
}

impl Connection {
    fn open(server: u32, net: &mut Net) -> Self {
        Connection { server, there: net.keys(1), back: net.keys(1), request: 0 }
    }
}
