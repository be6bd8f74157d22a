// SPDX-License-Identifier: GPL-2.0-or-later
//! Barrier: iterations of all-to-all messages that end when every host has heard from every other.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, hosts, level, message, schedule};
use crate::apps::context::{Context, Message};
use crate::apps::time::Latencies;
use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets};
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// In each iteration, each host sends a message to every other, over the reliable transport, and
/// starts the next iteration when it has one from each. An iteration lasts from its first host's
/// start to when the last host has all messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// Numbers of the hosts; each sends first to the next one in the list, then to the one after
    /// it.
    pub hosts: Vec<u32>,
    /// 0 is served first.
    pub level: u8,
    /// Bytes of a message on the wire; a message may have several packets.
    #[serde(with = "In::<Octets>")]
    pub bytes: u32,
    /// Start of the first iteration.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Pause between having all messages and the next iteration.
    #[serde(with = "In::<Duration>")]
    pub pause: Ps,
    /// Number of iterations.
    pub iterations: u32,
}

/// A key for each pair fits 32 bits.
const MAX_HOSTS: usize = 1 << 15;

impl Barrier {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = match self.hosts.first() {
            Some(host) => format!("barrier of {host} and others"),
            None => "barrier".to_owned(),
        };
        hosts(&place, &self.hosts, 2, topology)?;
        if self.hosts.len() > MAX_HOSTS {
            return Err(Error::new(format!(
                "{place}: its {} hosts are more than {MAX_HOSTS}",
                self.hosts.len()
            )));
        }
        level(&place, self.level)?;
        message(&place, "message", self.bytes.into())?;
        count(&place, "iterations", self.iterations)?;
        schedule(&place, self.first, self.pause, self.iterations.into())
    }
}

/// The state of a host. No host is ahead of another by more than one iteration, so two counters are
/// enough: for even and odd iterations.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    iteration: u32,
    /// It has started its iteration.
    inside: bool,
    /// Messages received.
    have: [u32; 2],
}

#[derive(Debug)]
pub(crate) struct BarrierRun {
    spec: Barrier,
    /// Path key of the first pair of hosts.
    key: u32,
    members: Vec<Member>,
    /// Hosts that have finished an iteration.
    ended: [u32; 2],
    results: Latencies,
}

impl BarrierRun {
    pub fn begin(spec: Barrier, ctx: &mut Context) -> Self {
        let hosts = spec.hosts.len() as u32;
        for member in 0..hosts {
            ctx.wake(spec.first, member);
        }
        let members = vec![Member::default(); spec.hosts.len()];
        BarrierRun {
            spec,
            key: ctx.keys(hosts * hosts),
            members,
            ended: [0; 2],
            results: Latencies::default(),
        }
    }

    pub fn act(&mut self, event: Event, ctx: &mut Context) {
        match event {
            Event::Timer(member) => self.enter(member, ctx),
            Event::Received(token) => {
                let (member, parity) = (token >> 1, token as usize & 1);
                self.members[member as usize].have[parity] += 1;
                self.look(member, ctx);
            }
            Event::Acknowledged { .. } | Event::Arrived { .. } | Event::Dropped(_) => {}
        }
    }

    /// A host starts its iteration.
    fn enter(&mut self, number: u32, ctx: &mut Context) {
        let hosts = self.spec.hosts.len() as u32;
        let member = &mut self.members[number as usize];
        member.inside = true;
        let iteration = member.iteration;
        if iteration == self.results.begun() {
            self.results.begin(ctx.now());
        }
        for other in (1..hosts).map(|distance| (number + distance) % hosts) {
            let message = Message {
                from: self.spec.hosts[number as usize],
                to: self.spec.hosts[other as usize],
                level: self.spec.level,
                bytes: self.spec.bytes.into(),
                key: self.key.wrapping_add(number * hosts + other),
            };
            ctx.send(message, other << 1 | iteration & 1);
        }
        self.look(number, ctx);
    }

    /// Ends a host's iteration if it has all messages.
    fn look(&mut self, number: u32, ctx: &mut Context) {
        let hosts = self.spec.hosts.len() as u32;
        let member = &mut self.members[number as usize];
        let (iteration, parity) = (member.iteration, member.iteration as usize & 1);
        if !member.inside || member.have[parity] < hosts - 1 {
            return;
        }
        member.have[parity] = 0;
        member.inside = false;
        member.iteration += 1;
        self.ended[parity] += 1;
        if self.ended[parity] == hosts {
            self.ended[parity] = 0;
            self.results.end(iteration, ctx.now());
        }
        if iteration + 1 < self.spec.iterations {
            ctx.wake(ctx.now() + self.spec.pause, number);
        }
    }

    pub fn results(&self) -> Latencies {
        self.results.clone()
    }
}
