// SPDX-License-Identifier: GPL-2.0-or-later
//! Ping: echo requests and their round trips; also the engine of one-way datagrams.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, level, pair, positive, schedule};
use crate::apps::context::Context;
use crate::apps::datagrams::Datagrams;
use crate::apps::time::Latencies;
use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets};
use crate::host::sockets::Event;
use crate::host::traffic::Gap;
use crate::net::topology::Topology;

/// A host whose datagrams another host returns. A round trip lasts from when the request is handed
/// over, to a limiter if there is one, to when the answer arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// Number of the requesting host.
    pub src: u32,
    /// Number of the answering host.
    pub dst: u32,
    /// Level of requests and answers; 0 is served first.
    pub level: u8,
    /// Time of the first request; with Poisson gaps the first gap is counted from it.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Gap between two requests, which do not wait for answers.
    #[serde(rename = "spacing")]
    pub gap: Gap,
    /// Bytes on the wire, of requests and of answers.
    #[serde(with = "In::<Octets>")]
    pub bytes: u16,
    /// Number of requests.
    pub count: u32,
    /// Time that the host takes to answer.
    #[serde(with = "In::<Duration>")]
    pub turnaround: Ps,
}

impl Ping {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = format!("ping from {} to {}", self.src, self.dst);
        pair(&place, self.src, self.dst, topology)?;
        level(&place, self.level)?;
        count(&place, "requests", self.count)?;
        positive(&place, "bytes of its requests", self.bytes.into())?;
        schedule(&place, self.first, self.gap.mean(), self.count.into())?;
        schedule(&place, self.first, self.turnaround, 1)
    }
}

#[derive(Debug)]
pub(crate) struct PingRun {
    spec: Ping,
    /// Whether requests are answered; otherwise the one-way latency is measured.
    answered: bool,
    rng: Rng,
    channel: u32,
    results: Latencies,
}

/// The channels.
const REQUEST: u32 = 0;
const ANSWER: u32 = 1;
/// Timer tokens: this one, and otherwise the number of the request to answer.
const SEND: u32 = u32::MAX;

impl PingRun {
    pub fn begin(spec: Ping, ctx: &mut Context) -> Self {
        Self::start(spec, true, ctx)
    }

    pub fn one_way(spec: &Datagrams, ctx: &mut Context) -> Self {
        let &Datagrams { src, dst, level, first, gap, bytes, count } = spec;
        Self::start(Ping { src, dst, level, first, gap, bytes, count, turnaround: 0 }, false, ctx)
    }

    fn start(spec: Ping, answered: bool, ctx: &mut Context) -> Self {
        let mut rng = ctx.stream(0);
        ctx.wake(spec.first + spec.gap.first(&mut rng), SEND);
        let channel = ctx.channels([spec.src].into_iter().chain(answered.then_some(spec.dst)));
        PingRun { spec, answered, rng, channel, results: Latencies::default() }
    }

    pub fn act(&mut self, event: Event, ctx: &mut Context) {
        match event {
            Event::Timer(SEND) => self.request(ctx),
            Event::Timer(request) => self.answer(request, ctx),
            Event::Arrived { channel: REQUEST, token } if !self.answered => {
                self.results.end(token, ctx.now())
            }
            Event::Arrived { channel: REQUEST, token } if self.spec.turnaround == 0 => {
                self.answer(token, ctx)
            }
            Event::Arrived { channel: REQUEST, token } => {
                ctx.wake(ctx.now() + self.spec.turnaround, token)
            }
            Event::Arrived { channel: _, token } => self.results.end(token, ctx.now()),
            Event::Dropped(_) => self.results.lost += 1,
            Event::Received(_) | Event::Acknowledged { .. } => {}
        }
    }

    fn request(&mut self, ctx: &mut Context) {
        let Ping { dst, level, bytes, .. } = self.spec;
        let number = self.results.begin(ctx.now());
        ctx.datagram(self.channel + REQUEST, dst, level, bytes, number);
        if number + 1 < self.spec.count {
            ctx.wake(ctx.now() + self.spec.gap.next(&mut self.rng), SEND);
        }
    }

    fn answer(&mut self, request: u32, ctx: &mut Context) {
        let Ping { src, level, bytes, .. } = self.spec;
        ctx.datagram(self.channel + ANSWER, src, level, bytes, request);
    }

    pub fn results(&self) -> Latencies {
        self.results.clone()
    }
}
