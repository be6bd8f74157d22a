// SPDX-License-Identifier: GPL-2.0-or-later
//! Iterations that end when everybody has heard of everybody.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, hosts, level, message, schedule};
use crate::apps::net::{Message, Net};
use crate::apps::time::Latencies;
use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets};
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// Hosts that in each iteration send a message to each other one, over the reliable transport, and begin the next when they have one
/// from each. An iteration lasts from when the first host begins it to when the last one has all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// Numbers of the hosts; each sends first to the one after it, then to the one after that.
    pub hosts: Vec<u32>,
    /// 0 is served first.
    pub level: u8,
    /// Bytes on the wire of a message; more than a data packet's are several packets.
    #[serde(with = "In::<Octets>")]
    pub bytes: u32,
    /// When all begin the first iteration.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// From when a host has all messages to its next iteration.
    #[serde(with = "In::<Duration>")]
    pub pause: Ps,
    /// How many.
    pub iterations: u32,
}

/// A number for each pair fits 32 bits.
const MOST_HOSTS: usize = 1 << 15;

impl Barrier {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = match self.hosts.first() {
            Some(host) => format!("barrier of {host} and others"),
            None => "barrier".to_owned(),
        };
        hosts(&place, &self.hosts, 2, topology)?;
        if self.hosts.len() > MOST_HOSTS {
            return Err(Error::new(format!("{place}: its {} hosts are more than {MOST_HOSTS}", self.hosts.len())));
        }
        level(&place, self.level)?;
        message(&place, "message", self.bytes.into())?;
        count(&place, "iterations", self.iterations)?;
        schedule(&place, self.first, self.pause, self.iterations.into())
    }
}

/// No host is ahead of another by more than one iteration: two of each counter are enough, for even iterations and odd.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    iteration: u32,
    /// Whether it has begun it.
    inside: bool,
    /// Messages that have come.
    have: [u32; 2],
}

#[derive(Debug)]
pub(crate) struct Meeting {
    spec: Barrier,
    /// Of the first pair of hosts.
    key: u32,
    members: Vec<Member>,
    /// Hosts that have ended an iteration.
    ended: [u32; 2],
    results: Latencies,
}

impl Meeting {
    pub fn begin(spec: Barrier, net: &mut Net) -> Self {
        let hosts = spec.hosts.len() as u32;
        for member in 0..hosts {
            net.wake(spec.first, member);
        }
        let members = vec![Member::default(); spec.hosts.len()];
        Meeting { spec, key: net.keys(hosts * hosts), members, ended: [0; 2], results: Latencies::default() }
    }

    pub fn act(&mut self, event: Event, net: &mut Net) {
        match event {
            Event::Timer(member) => self.enter(member, net),
            Event::Received(token) => {
                let (member, parity) = (token >> 1, token as usize & 1);
                self.members[member as usize].have[parity] += 1;
                self.look(member, net);
            }
            Event::Acknowledged { .. } | Event::Arrived { .. } | Event::Dropped(_) => {}
        }
    }

    /// A host begins its iteration.
    fn enter(&mut self, number: u32, net: &mut Net) {
        let hosts = self.spec.hosts.len() as u32;
        let member = &mut self.members[number as usize];
        member.inside = true;
        let iteration = member.iteration;
        if iteration == self.results.begun() {
            self.results.begin(net.now());
        }
        for other in (1..hosts).map(|distance| (number + distance) % hosts) {
            let message = Message {
                from: self.spec.hosts[number as usize],
                to: self.spec.hosts[other as usize],
                level: self.spec.level,
                bytes: self.spec.bytes.into(),
                key: self.key.wrapping_add(number * hosts + other),
            };
            net.send(message, other << 1 | iteration & 1);
        }
        self.look(number, net);
    }

    /// Whether a host has all messages of its iteration.
    fn look(&mut self, number: u32, net: &mut Net) {
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
            self.results.end(iteration, net.now());
        }
        if iteration + 1 < self.spec.iterations {
            net.wake(net.now() + self.spec.pause, number);
        }
    }

    pub fn results(&self) -> Latencies {
        self.results.clone()
    }
}
