// SPDX-License-Identifier: GPL-2.0-or-later
//! Collective: a graph of messages and computing times that wait for each other, repeated.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, hosts, level, schedule};
use crate::apps::context::{Context, Message};
use crate::apps::operations::{Operation, Operations, Pattern};
use crate::apps::time::Latencies;
use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant};
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// Hosts that carry out operations over the reliable transport, each once those that it waits for
/// have ended. An iteration lasts from its start to the end of its last operation; the next one
/// starts `pause` later. Several collectives are competing jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collective {
    /// Numbers of the hosts; their places in this list are the ranks.
    pub hosts: Vec<u32>,
    /// What they do.
    pub pattern: Pattern,
    /// 0 is served first.
    pub level: u8,
    /// Start of the first iteration.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Time between the end of an iteration and the start of the next.
    #[serde(with = "In::<Duration>")]
    pub pause: Ps,
    /// Number of iterations.
    pub iterations: u32,
    /// From here on no iteration starts; none: all start.
    #[serde(with = "In::<Instant>")]
    pub until: Option<Ps>,
}

/// A key for each pair fits 32 bits.
const MAX_HOSTS: usize = 1 << 15;

impl Collective {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = match self.hosts.first() {
            Some(host) => format!("collective of {host} and others"),
            None => "collective".to_owned(),
        };
        hosts(&place, &self.hosts, 2, topology)?;
        if self.hosts.len() > MAX_HOSTS {
            return Err(Error::new(format!(
                "{place}: its {} hosts are more than {MAX_HOSTS}",
                self.hosts.len()
            )));
        }
        level(&place, self.level)?;
        count(&place, "iterations", self.iterations)?;
        schedule(&place, self.first, self.pause, self.iterations.into())?;
        self.pattern
            .check(self.hosts.len() as u32)
            .map_err(|error| Error::new(format!("{place}: {error}")))
    }
}

#[derive(Debug)]
pub(crate) struct CollectiveRun {
    spec: Collective,
    operations: Operations,
    /// Path key of the first pair of hosts.
    key: u32,
    /// By operation: how many that it waits for have not ended in this iteration.
    waits: Vec<u32>,
    /// Operations of this iteration that have not ended.
    left: u32,
    /// When a processor is idle again, by rank and number.
    idle_at: HashMap<(u32, u32), Ps>,
    /// Operations that may start.
    ready: VecDeque<u32>,
    results: Latencies,
}

/// The timer of an iteration; others are operations.
const START: u32 = u32::MAX;

impl CollectiveRun {
    pub fn begin(spec: Collective, ctx: &mut Context) -> Self {
        ctx.wake(spec.first, START);
        let ranks = spec.hosts.len() as u32;
        CollectiveRun {
            operations: Operations::new(spec.pattern.operations(ranks)),
            key: ctx.keys(ranks * ranks),
            waits: Vec::new(),
            left: 0,
            idle_at: HashMap::new(),
            ready: VecDeque::new(),
            results: Latencies::default(),
            spec,
        }
    }

    pub fn act(&mut self, event: Event, ctx: &mut Context) {
        match event {
            Event::Timer(START) => self.start(ctx),
            Event::Timer(number) => self.end(number),
            Event::Received(number) => {
                self.release(self.operations.after_arrival(number));
                self.left -= 1;
            }
            // One that nothing waits for may be acknowledged in a later iteration.
            Event::Acknowledged { token, .. } => self.release(self.operations.after_end(token)),
            Event::Arrived { .. } | Event::Dropped(_) => {}
        }
        while let Some(number) = self.ready.pop_front() {
            self.carry_out(number, ctx);
        }
        if self.left == 0 && self.results.times.last() == Some(&None) {
            self.finish(ctx);
        }
    }

    fn start(&mut self, ctx: &Context) {
        if self.spec.until.is_some_and(|until| ctx.now() >= until) {
            return;
        }
        self.results.begin(ctx.now());
        self.waits.clone_from(&self.operations.waits);
        self.left = self.waits.len() as u32;
        let free = (0..self.left).filter(|&number| self.waits[number as usize] == 0);
        self.ready.extend(free);
    }

    /// Ends an iteration.
    fn finish(&mut self, ctx: &mut Context) {
        let iteration = self.results.begun() - 1;
        self.results.end(iteration, ctx.now());
        if iteration + 1 < self.spec.iterations {
            ctx.wake(ctx.now() + self.spec.pause, START);
        }
    }

    fn carry_out(&mut self, number: u32, ctx: &mut Context) {
        match self.operations.list[number as usize] {
            Operation::Calc { time: 0, .. } => self.end(number),
            Operation::Calc { rank, cpu, time, .. } => {
                let idle_at = self.idle_at.entry((rank, cpu)).or_insert(0);
                *idle_at = (*idle_at).max(ctx.now()) + time;
                ctx.wake(*idle_at, number);
            }
            Operation::Send { rank, to, bytes, .. } => {
                let ranks = self.spec.hosts.len() as u32;
                let message = Message {
                    from: self.spec.hosts[rank as usize],
                    to: self.spec.hosts[to as usize],
                    level: self.spec.level,
                    bytes,
                    key: self.key.wrapping_add(rank * ranks + to),
                };
                ctx.send(message, number);
            }
        }
    }

    /// A computing time has ended.
    fn end(&mut self, number: u32) {
        self.release(self.operations.after_end(number));
        self.left -= 1;
    }

    /// Operations wait for one less.
    fn release(&mut self, range: std::ops::Range<usize>) {
        for &number in &self.operations.dependents[range] {
            self.waits[number as usize] -= 1;
            if self.waits[number as usize] == 0 {
                self.ready.push_back(number);
            }
        }
    }

    pub fn results(&self) -> Latencies {
        self.results.clone()
    }
}
