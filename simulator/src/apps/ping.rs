// SPDX-License-Identifier: GPL-2.0-or-later
//! Datagrams at set times: echo requests and their round trips, or such as nobody answers.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, level, pair, positive, schedule};
use crate::apps::datagrams::Datagrams;
use crate::apps::net::Net;
use crate::apps::time::Latencies;
use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets};
use crate::host::sockets::Event;
use crate::host::traffic::Gap;
use crate::net::topology::Topology;

/// A host that sends datagrams which another one sends back. A round trip lasts from when the request is handed over, to a limiter
/// if there is one, to when the answer arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// Number of the host that asks.
    pub src: u32,
    /// Number of the host that answers.
    pub dst: u32,
    /// Of requests and answers; 0 is served first.
    pub level: u8,
    /// Time of the first one; with Poisson gaps the first is counted from it.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Between two requests; they do not wait for answers.
    #[serde(rename = "spacing")]
    pub gap: Gap,
    /// Bytes on the wire, of requests and of answers.
    #[serde(with = "In::<Octets>")]
    pub bytes: u16,
    /// How many requests.
    pub count: u32,
    /// How long the host takes to answer.
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
pub(crate) struct Pinging {
    spec: Ping,
    /// Otherwise what counts is the way there.
    answered: bool,
    rng: Rng,
    channel: u32,
    results: Latencies,
}

/// The channels.
const REQUEST: u32 = 0;
const ANSWER: u32 = 1;
/// The timers: this one, and all others for the answer to the request of that number.
const SEND: u32 = u32::MAX;

impl Pinging {
    pub fn begin(spec: Ping, net: &mut Net) -> Self {
        Self::start(spec, true, net)
    }

    pub fn one_way(spec: &Datagrams, net: &mut Net) -> Self {
        let &Datagrams { src, dst, level, first, gap, bytes, count } = spec;
        Self::start(Ping { src, dst, level, first, gap, bytes, count, turnaround: 0 }, false, net)
    }

    fn start(spec: Ping, answered: bool, net: &mut Net) -> Self {
        let mut rng = net.stream(0);
        net.wake(spec.first + spec.gap.first(&mut rng), SEND);
        let channel = net.channels([spec.src].into_iter().chain(answered.then_some(spec.dst)));
        Pinging { spec, answered, rng, channel, results: Latencies::default() }
    }

    pub fn act(&mut self, event: Event, net: &mut Net) {
        match event {
            Event::Timer(SEND) => self.request(net),
            Event::Timer(request) => self.answer(request, net),
            Event::Arrived { channel: REQUEST, token } if !self.answered => self.results.end(token, net.now()),
            Event::Arrived { channel: REQUEST, token } if self.spec.turnaround == 0 => self.answer(token, net),
            Event::Arrived { channel: REQUEST, token } => net.wake(net.now() + self.spec.turnaround, token),
            Event::Arrived { channel: _, token } => self.results.end(token, net.now()),
            Event::Dropped(_) => self.results.lost += 1,
            Event::Received(_) | Event::Acknowledged { .. } => {}
        }
    }

    fn request(&mut self, net: &mut Net) {
        let Ping { dst, level, bytes, .. } = self.spec;
        let number = self.results.begin(net.now());
        net.datagram(self.channel + REQUEST, dst, level, bytes, number);
        if number + 1 < self.spec.count {
            net.wake(net.now() + self.spec.gap.next(&mut self.rng), SEND);
        }
    }

    fn answer(&mut self, request: u32, net: &mut Net) {
        let Ping { src, level, bytes, .. } = self.spec;
        net.datagram(self.channel + ANSWER, src, level, bytes, request);
    }

    pub fn results(&self) -> Latencies {
        self.results.clone()
    }
}
