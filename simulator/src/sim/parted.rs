// SPDX-License-Identifier: GPL-2.0-or-later
//! A run in parts: each has some of the switches with their hosts, and a simulation of its own. All go on by the least delay of a
//! cable between two of them, then hand over what has left for others (a conservative parallel simulation, by windows). On how
//! many cores they do so changes nothing: each takes in what comes in the order of the parts that it comes from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::core::error::{Error, Result};
use crate::core::rendezvous::Rendezvous;
use crate::core::time::{Ps, END};
use crate::net::division::{Division, Part};
use crate::net::topology::Topology;
use crate::packet::Packet;
use crate::sim::engine::Simulation;
use crate::sim::outcome::Outcome;
use crate::sim::progress::Progress;
use crate::sim::scheme::Scheme;
use crate::sim::watch::Watch;
use crate::sim::workload::Workload;

/// A run in parts, at some time of its life.
#[derive(Debug)]
pub struct Parted {
    parts: Vec<Simulation>,
    division: Arc<Division>,
}

impl Parted {
    /// At time 0, in so many parts.
    ///
    /// # Errors
    /// As of [`Simulation::new`]; more parts than switches with hosts; a cable without delay between two of them; what only one part
    /// knows all of: sources, applications, failing cables, pauses, and the schemes Homa and Aequitas.
    pub fn new(topology: &Topology, scheme: &Scheme, workload: &Workload, seed: u64, parts: u32) -> Result<Self> {
        let division = Arc::new(Division::new(topology, parts)?);
        let whole = [
            (!workload.sources.is_empty(), "sources"),
            (!workload.apps.is_empty(), "applications"),
            (!topology.changes.is_empty(), "cables that fail"),
            (scheme.pause.is_some(), "pauses"),
            (scheme.grants(), "receivers that grant"),
            (scheme.limiter.admits(), "admission by hosts"),
        ];
        if let Some((_, what)) = whole.iter().find(|(has, _)| *has) {
            return Err(Error::new(format!("parts: a run with {what} has only one")));
        }
        let its = |mine| Some(Part { division: Arc::clone(&division), mine });
        let part = |mine| Simulation::part(topology, scheme, workload, seed, &Watch::default(), its(mine));
        let parts = (0..parts as u16).map(part).collect::<Result<_>>()?;
        Ok(Parted { parts, division })
    }

    /// Runs about so many events of those that happen at `last` or before, on so many cores at most; returns whether it stopped for their
    /// number. Runs in any pieces, on any cores, yield the outcome of one.
    pub fn run_some(&mut self, last: Ps, most: u64, cores: usize) -> bool {
        let workers = cores.clamp(1, self.parts.len());
        let begun: u64 = self.parts.iter().map(Simulation::events).sum();
        let round = Round {
            window: self.division.window,
            last: last.min(END),
            end: begun.saturating_add(most),
            rendezvous: Rendezvous::new(workers),
            boards: self.parts.iter().map(|_| Board::default()).collect(),
            mail: self.parts.iter().flat_map(|_| &self.parts).map(|_| Mutex::default()).collect(),
        };
        let mut groups: Vec<Vec<(usize, &mut Simulation)>> = (0..workers).map(|_| Vec::new()).collect();
        for (number, part) in self.parts.iter_mut().enumerate() {
            groups[number % workers].push((number, part));
        }
        let more = thread::scope(|scope| {
            let mut groups = groups.into_iter();
            let own = groups.next().unwrap_or_default();
            for group in groups {
                scope.spawn(|| round.work(group));
            }
            round.work(own)
        });
        if !more && last != Ps::MAX {
            for part in &mut self.parts {
                part.network.now = last;
            }
        }
        more
    }

    /// How far it has come. `stop`: when it is to end, if it is.
    pub fn progress(&self, stop: Option<Ps>) -> Progress {
        // Of its own flows a part knows how much is acknowledged, of others nothing.
        let mut parts = self.parts.iter().map(|part| part.progress(None));
        let first = parts.next().unwrap_or_default();
        let all = parts.fold(first, |all, part| Progress {
            now: all.now.max(part.now),
            finished: all.finished + part.finished,
            flows: all.flows,
            share: all.share + part.share,
        });
        all.until(stop)
    }

    /// What has come out so far.
    pub fn outcome(&self) -> Outcome {
        let mut all = self.parts[0].outcome();
        for (number, part) in (1..).zip(self.parts[1..].iter().map(Simulation::outcome)) {
            let owns = |host: u32| self.division.of_host[host as usize] == number;
            all.end = all.end.max(part.end);
            all.counters += part.counters;
            for (flow, its) in all.flows.iter_mut().zip(part.flows).filter(|(_, its)| owns(its.src)) {
                *flow = its;
            }
        }
        all
    }
}

/// What a part tells all others before each window.
#[derive(Debug, Default)]
struct Board {
    /// When something happens next; `Ps::MAX`: nothing does.
    next: AtomicU64,
    events: AtomicU64,
}

/// Packets on their way from a part to another, with when they come.
type Mail = Mutex<Vec<(Ps, Packet)>>;

/// What threads share while parts go on.
struct Round {
    window: Ps,
    last: Ps,
    /// The number of events with which it ends.
    end: u64,
    rendezvous: Rendezvous,
    boards: Vec<Board>,
    /// By the part that it is for, and by that which it comes from.
    mail: Vec<Mail>,
}

impl Round {
    /// Goes on with some of the parts, by their numbers; returns whether there is more.
    fn work(&self, mut parts: Vec<(usize, &mut Simulation)>) -> bool {
        let _guard = self.rendezvous.guard();
        loop {
            for (number, part) in &parts {
                let board = &self.boards[*number];
                board.next.store(part.next().unwrap_or(Ps::MAX), Ordering::Relaxed);
                board.events.store(part.events(), Ordering::Relaxed);
            }
            self.rendezvous.wait();
            // All threads read the same.
            let next = self.boards.iter().map(|board| board.next.load(Ordering::Relaxed)).min().unwrap_or(Ps::MAX);
            let events: u64 = self.boards.iter().map(|board| board.events.load(Ordering::Relaxed)).sum();
            if next > self.last {
                return false;
            }
            if events >= self.end {
                return true;
            }
            let until = next.saturating_add(self.window - 1).min(self.last);
            for (number, part) in &mut parts {
                part.go_on(until);
                for to in (0..self.boards.len()).filter(|to| to != number) {
                    part.leave(to, &mut self.mail(to, *number));
                }
            }
            self.rendezvous.wait();
            for (number, part) in &mut parts {
                for from in (0..self.boards.len()).filter(|from| from != number) {
                    for (at, packet) in self.mail(*number, from).drain(..) {
                        part.enter(at, packet);
                    }
                }
            }
        }
    }

    fn mail(&self, to: usize, from: usize) -> std::sync::MutexGuard<'_, Vec<(Ps, Packet)>> {
        let mail = &self.mail[to * self.boards.len() + from];
        mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
